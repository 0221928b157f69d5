//! A kernel with its log and its clock. After every step the log is folded anew and must come to the same state.

use std::collections::BTreeSet;

use deepstrike_kernel::governance::Stage;
use deepstrike_kernel::wire::effect::{AskUser, CallModel, Effect, Outcome, RunTool};
use deepstrike_kernel::wire::event::{Event, Verdict};
use deepstrike_kernel::wire::input::Input;
use deepstrike_kernel::wire::message::{AssistantPart, Block};
use deepstrike_kernel::{Kernel, Millis, Record, Rejected, Tokens};

/// One token for four bytes, begun or full.
pub struct Quarters;

impl Tokens for Quarters {
    fn count(&self, _: &str, text: &str) -> u64 {
        text.len().div_ceil(4) as u64
    }
}

/// A replay must not count.
struct Never;

impl Tokens for Never {
    fn count(&self, _: &str, text: &str) -> u64 {
        panic!("a replay counted {text:?}")
    }
}

pub struct World {
    pub kernel: Kernel,
    pub log: Vec<Vec<u8>>,
    pub now: i64,
    stages: &'static [Stage],
    sent: (u64, Vec<String>),
    refused: BTreeSet<u64>,
}

impl World {
    pub fn new() -> Self {
        Self::with_stages(&[])
    }

    pub fn with_stages(stages: &'static [Stage]) -> Self {
        let kernel = Kernel::new(Box::new(Quarters)).with_stages(stages);
        Self { kernel, log: vec![], now: 1_000, stages, sent: (0, vec![]), refused: BTreeSet::new() }
    }

    /// A world in which these inputs were taken.
    pub fn after(inputs: impl IntoIterator<Item = Input>) -> Self {
        let mut world = Self::new();
        for input in inputs {
            world.take(input);
        }
        world
    }

    /// Gives an input a millisecond later.
    pub fn give(&mut self, input: Input) -> Result<Vec<Event>, Rejected> {
        self.now += 1;
        let text = serde_json::to_vec(&input).unwrap();
        self.give_text(&text)
    }

    pub fn give_text(&mut self, text: &[u8]) -> Result<Vec<Event>, Rejected> {
        let before = self.kernel.state().clone();
        match self.kernel.accept(text, Millis(self.now)) {
            Ok(lines) => {
                let from = self.log.len();
                self.log.extend(lines);
                self.check();
                Ok(self.events(from))
            }
            Err(rejected) => {
                assert!(!matches!(rejected, Rejected::Broken(_)), "{rejected}");
                assert_eq!(*self.kernel.state(), before, "a rejected input changed the state");
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
        self.kernel = self.refold();
    }

    /// The log's events from a record on.
    pub fn events(&self, from: usize) -> Vec<Event> {
        self.records().split_off(from).into_iter().map(|record| record.event).collect()
    }

    pub fn records(&self) -> Vec<Record> {
        self.log.iter().map(|line| serde_json::from_slice(line).unwrap()).collect()
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
        let fresh = Kernel::replay(Box::new(Quarters), self.log.iter().map(Vec::as_slice)).unwrap();
        fresh.with_stages(self.stages)
    }

    /// What must hold after every step.
    fn check(&mut self) {
        let replayed = self.refold();
        let epoch = self.kernel.epoch();
        assert_eq!(replayed.blocks(epoch, 0), self.kernel.blocks(epoch, 0));
        assert_eq!(replayed.pending(None), self.kernel.pending(None));
        self.check_seqs();
        self.check_growth();
        self.check_refusals();
        self.check_pairs();
    }

    fn check_seqs(&self) {
        let records = self.records();
        for (seq, record) in (0..).zip(&records) {
            assert_eq!(record.seq, seq);
        }
        assert!(records.windows(2).all(|pair| pair[0].at <= pair[1].at));
        assert_eq!(self.kernel.next_seq(), self.log.len() as u64);
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

    /// A call that was refused never becomes a RunTool.
    fn check_refusals(&mut self) {
        for record in self.records() {
            match record.event {
                Event::Judged(judged) if !matches!(judged.verdict, Verdict::Allow(_)) => {
                    self.refused.insert(record.seq);
                }
                Event::Begun(begun) => assert!(!self.refused.contains(&begun.effect)),
                _ => {}
            }
        }
        let allowed: BTreeSet<u64> = self
            .records()
            .iter()
            .filter(
                |record| matches!(&record.event, Event::Judged(judged) if matches!(judged.verdict, Verdict::Allow(_))),
            )
            .map(|record| record.seq)
            .collect();
        assert!(self.runs().iter().all(|run| allowed.contains(&run.id)));
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

fn calls_of(block: &Block<'_>) -> Vec<String> {
    let Block::Assistant(block) = block else { return vec![] };
    let calls = block.parts.iter().filter_map(|part| match part {
        AssistantPart::Call(call) => Some(call.id.to_string()),
        _ => None,
    });
    calls.collect()
}
