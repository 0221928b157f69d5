//! A kernel with its log and its clock. After every step the log is folded anew and must come to the same state.

use std::collections::BTreeSet;

use deepstrike_kernel::context::task::{SIGNALS, plan_text};
use deepstrike_kernel::governance::Stage;
use deepstrike_kernel::wire::effect::{AskUser, CallModel, Effect, Outcome, RunTool};
use deepstrike_kernel::wire::event::{Event, Verdict};
use deepstrike_kernel::wire::input::Input;
use deepstrike_kernel::wire::message::{AssistantPart, Block, Part, Text, UserBlock};
use deepstrike_kernel::wire::task::Role;
use deepstrike_kernel::{Kernel, Millis, Record, Rejected, Tokens};

/// One token for four bytes, begun or full.
pub struct Quarters;

impl Tokens for Quarters {
    fn count(&self, _: &str, text: &str) -> u64 {
        text.len().div_ceil(4) as u64
    }

    fn least(&self, _: &str, counted: u64) -> u64 {
        counted
    }
}

/// A replay must not count.
struct Never;

impl Tokens for Never {
    fn count(&self, _: &str, text: &str) -> u64 {
        panic!("a replay counted {text:?}")
    }

    fn least(&self, _: &str, counted: u64) -> u64 {
        panic!("a replay counted {counted}")
    }
}

pub struct World {
    pub kernel: Kernel,
    pub log: Vec<Vec<u8>>,
    pub now: i64,
    /// After how many steps the log is folded anew and looked through; 1 where nothing says otherwise.
    pub every: usize,
    steps: usize,
    stages: &'static [Stage],
    sent: (u64, Vec<String>),
    /// Calls that were allowed, and that were refused, in the first so many records.
    allowed: BTreeSet<u64>,
    refused: BTreeSet<u64>,
    seen: usize,
}

impl World {
    pub fn new() -> Self {
        Self::with_stages(&[])
    }

    pub fn with_stages(stages: &'static [Stage]) -> Self {
        let kernel = Kernel::new(Box::new(Quarters)).with_stages(stages);
        Self {
            kernel,
            log: vec![],
            now: 1_000,
            every: 1,
            steps: 0,
            stages,
            sent: (0, vec![]),
            allowed: BTreeSet::new(),
            refused: BTreeSet::new(),
            seen: 0,
        }
    }

    /// A world in which these inputs were taken.
    pub fn after(inputs: impl IntoIterator<Item = Input>) -> Self {
        let mut world = Self::new();
        for input in inputs {
            world.take(input);
        }
        world
    }

    /// A world whose log is this, in a process of its own.
    pub fn of(log: Vec<Vec<u8>>) -> Self {
        let kernel = Kernel::replay(Box::new(Quarters), log.iter().map(Vec::as_slice)).unwrap();
        Self { kernel, log, now: 1_000_000, ..Self::new() }
    }

    /// Gives an input a millisecond later.
    pub fn give(&mut self, input: Input) -> Result<Vec<Event>, Rejected> {
        self.now += 1;
        let text = serde_json::to_vec(&input).unwrap();
        let foreseen = self.foresees(&input, text.len());
        let events = self.give_text(&text)?;
        let rewrote = events.iter().any(|event| event.tag() == "compressed");
        assert!(foreseen || !rewrote, "a rewrite came unforeseen with {input:?}");
        Ok(events)
    }

    /// Whether the kernel says that the prompt may be rewritten; a goal and a refusal may always.
    fn foresees(&self, input: &Input, bytes: usize) -> bool {
        let told = match input {
            Input::Start(_) | Input::Resume(_) | Input::Failure(_) => return true,
            Input::Reply(reply) => reply.usage.as_ref().map_or(0, |usage| usage.input),
            _ => 0,
        };
        self.kernel.may_rewrite(bytes as u64, told, Millis(self.now))
    }

    pub fn give_text(&mut self, text: &[u8]) -> Result<Vec<Event>, Rejected> {
        let before = self.is_due().then(|| self.kernel.state().clone());
        match self.kernel.accept(text, Millis(self.now)) {
            Ok(lines) => {
                let from = self.log.len();
                self.log.extend(lines);
                self.check_now();
                Ok(self.events(from))
            }
            Err(rejected) => {
                assert!(!matches!(rejected, Rejected::Broken(_)), "{rejected}");
                let after = before.as_ref().map(|_| self.kernel.state().clone());
                assert_eq!(after, before, "a rejected input changed the state");
                Err(rejected)
            }
        }
    }

    /// Gives an input that must be taken.
    pub fn take(&mut self, input: Input) -> Vec<Event> {
        self.give(input).unwrap()
    }

    pub fn later(&mut self, ms: i64) -> &mut Self {
        self.now += ms;
        self
    }

    /// The process ends; another one folds the log.
    pub fn crash(&mut self) {
        self.refold();
        let fresh = Kernel::replay(Box::new(Quarters), self.log.iter().map(Vec::as_slice)).unwrap();
        self.kernel = fresh.with_stages(self.stages);
    }

    /// The log's events from a record on.
    pub fn events(&self, from: usize) -> Vec<Event> {
        self.records_from(from).map(|record| record.event).collect()
    }

    pub fn records(&self) -> Vec<Record> {
        self.records_from(0).collect()
    }

    fn records_from(&self, from: usize) -> impl Iterator<Item = Record> {
        self.log[from..].iter().map(|line| serde_json::from_slice(line).unwrap())
    }

    pub fn call_model(&self) -> Option<CallModel> {
        self.kernel.pending(None).into_iter().find_map(|effect| match effect {
            Effect::CallModel(effect) => Some(effect),
            _ => None,
        })
    }

    /// The id of the CallModel that is owed.
    pub fn call(&self) -> u64 {
        self.call_model().expect("a model call is owed").id
    }

    pub fn runs(&self) -> Vec<RunTool> {
        let tools = self.kernel.pending(None).into_iter().filter_map(|effect| match effect {
            Effect::RunTool(effect) => Some(effect),
            _ => None,
        });
        tools.collect()
    }

    pub fn asks(&self) -> Vec<AskUser> {
        let asks = self.kernel.pending(None).into_iter().filter_map(|effect| match effect {
            Effect::AskUser(effect) => Some(effect),
            _ => None,
        });
        asks.collect()
    }

    pub fn blocks(&self) -> Vec<Block<'static>> {
        serde_json::from_slice(&self.kernel.blocks(self.kernel.epoch(), 0)).unwrap()
    }

    pub fn outcome(&self) -> Outcome {
        self.kernel.outcome().expect("the goal has ended or waits")
    }

    fn refold(&self) -> Kernel {
        let replayed = Kernel::replay(Box::new(Never), self.log.iter().map(Vec::as_slice)).unwrap();
        assert_eq!(replayed.state(), self.kernel.state(), "the fold differs from the live state");
        replayed
    }

    fn check_now(&mut self) {
        self.steps += 1;
        self.check_fit();
        self.check_task();
        if self.is_due() {
            self.check();
        }
    }

    fn is_due(&self) -> bool {
        self.steps.is_multiple_of(self.every)
    }

    /// What must hold after every step.
    fn check(&mut self) {
        let replayed = self.refold();
        let epoch = self.kernel.epoch();
        assert_eq!(replayed.blocks(epoch, 0), self.kernel.blocks(epoch, 0));
        assert_eq!(replayed.pending(None), self.kernel.pending(None));
        self.check_growth();
        self.check_new_records();
        self.check_pairs();
    }

    /// A request that is owed fits.
    fn check_fit(&self) {
        let Some(limits) = self.kernel.state().limits() else { return };
        let tokens = self.kernel.state().prompt().tokens();
        if self.call_model().is_some() {
            assert!(tokens + limits.reserve <= limits.window, "{tokens} tokens in {limits:?}");
        }
    }

    /// What the turns say of the task, from `turns[0]` on, comes to the task state.
    fn check_task(&self) {
        if self.kernel.phase() != "thinking" {
            return;
        }
        let task = self.kernel.state().task();
        let mut told = Told::by(&self.kernel);
        // Of the signals the task state keeps as many as have room, the newest first; where a smaller window has come, the
        // user's words before newer ones. The model may have read more.
        let kept: Vec<&str> = task.signals.iter().map(|heard| heard.text.as_str()).collect();
        let told_all = std::mem::take(&mut told.signals);
        let mut rest = told_all.iter();
        assert!(kept.len() <= SIGNALS);
        assert!(kept.iter().all(|text| rest.any(|told| told == text)), "{kept:?} are not of {told_all:?}");
        let is_newest = told_all.last().map(String::as_str) == kept.last().copied();
        assert!(is_newest || kept.iter().all(|text| text.starts_with("The user says: ")), "{kept:?} of {told_all:?}");
        assert_eq!(told, Told { goal: task.goal.clone(), plan: plan_text(&task.plan), signals: vec![] });
    }

    /// Within an epoch the prompt only grows, and a digest names what it says.
    fn check_growth(&mut self) {
        let epoch = self.kernel.epoch();
        let blocks: Vec<String> = self.blocks().iter().map(|block| serde_json::to_string(block).unwrap()).collect();
        if self.sent.0 == epoch {
            assert!(blocks.starts_with(&self.sent.1), "the prompt changed within an epoch");
        }
        if let Some(call) = self.call_model() {
            assert_eq!((call.epoch, call.len), (epoch, blocks.len() as u64));
        }
        self.sent = (epoch, blocks);
    }

    /// Records follow one another. A call that was refused never becomes a RunTool, one that runs was allowed.
    fn check_new_records(&mut self) {
        // The one before them is read again, for its time.
        let from = self.seen.saturating_sub(1);
        let records: Vec<Record> = self.records_from(from).collect();
        assert!(records.windows(2).all(|pair| pair[0].at <= pair[1].at));
        for (seq, record) in (from as u64..).zip(records) {
            assert_eq!(record.seq, seq);
            match record.event {
                Event::Judged(judged) if matches!(judged.verdict, Verdict::Allow(_)) => self.allowed.insert(seq),
                Event::Judged(_) => self.refused.insert(seq),
                Event::Begun(begun) => {
                    assert!(!self.refused.contains(&begun.effect));
                    continue;
                }
                _ => continue,
            };
        }
        self.seen = self.log.len();
        assert_eq!(self.kernel.next_seq(), self.log.len() as u64);
        assert!(self.runs().iter().all(|run| self.allowed.contains(&run.id)));
    }

    /// Every call has exactly one result, adjacent and in call order; only the last reply's calls may be open, and then
    /// no model call is owed. No request ends with the model's own words.
    fn check_pairs(&self) {
        let blocks = self.blocks();
        let mut ids = BTreeSet::new();
        let mut due: Vec<String> = vec![];
        for block in &blocks {
            match block {
                Block::Result(result) => assert_eq!(due.remove(0), result.call_id),
                block => {
                    assert!(due.is_empty(), "a result is missing");
                    due = calls_of(block);
                    assert!(due.iter().all(|id| ids.insert(id.clone())), "a call id is used twice");
                }
            }
        }
        if self.kernel.phase() == "thinking" {
            assert!(due.is_empty());
            assert!(!matches!(blocks.last(), Some(Block::Assistant(_))));
        }
        if self.kernel.phase() == "ended" {
            assert!(due.is_empty());
        }
    }
}

/// The task state as the turns tell it.
#[derive(Debug, Default, PartialEq)]
struct Told {
    goal: Vec<Part>,
    plan: String,
    signals: Vec<String>,
}

impl Told {
    fn by(kernel: &Kernel) -> Self {
        let mut told = Self::default();
        let opening = kernel.state().task().opening.len();
        let mut since = 0;
        for entry in kernel.state().prompt().entries() {
            let read = || match serde_json::from_str(&entry.text).unwrap() {
                Block::User(UserBlock { parts }) => parts.into_owned(),
                block => panic!("{block:?} is no change of the task state"),
            };
            match entry.source.role {
                Role::State => {
                    since = entry.source.seq;
                    let mut goal = read();
                    let state = goal.split_off(opening.min(goal.len()));
                    told.goal = goal;
                    state.iter().for_each(|part| told.change(part));
                }
                Role::Goal if entry.source.seq > since => told = Self { goal: read(), ..Self::default() },
                Role::Goal if entry.source.seq == since => told.goal = read(),
                // What stood there when the epoch began is older than `turns[0]`.
                Role::Goal => {}
                Role::Delta if entry.source.seq <= since => {}
                Role::Delta => read().iter().for_each(|part| told.change(part)),
                Role::Head | Role::Reply | Role::Result => {}
            }
        }
        told
    }

    fn change(&mut self, part: &Part) {
        let Part::Text(Text { text }) = part else { panic!("{part:?} is no change") };
        if text.starts_with("This conversation was compressed") {
            return;
        }
        let told = |line: &&str| line.starts_with("Signal ") || line.starts_with("The user says: ");
        let (signals, plan): (Vec<&str>, Vec<&str>) = text.lines().partition(told);
        if plan.first().is_some_and(|line| ["Plan:", "Progress:"].iter().any(|word| line.starts_with(word))) {
            self.plan = plan.join("\n");
        } else if plan == ["The plan is empty now."] {
            self.plan.clear();
        }
        self.signals.extend(signals.into_iter().map(String::from));
    }
}

fn calls_of(block: &Block<'_>) -> Vec<String> {
    let Block::Assistant(block) = block else { return vec![] };
    let calls = block.parts.iter().filter_map(|part| match part {
        AssistantPart::Call(call) => Some(call.id.to_string()),
        _ => None,
    });
    calls.collect()
}
