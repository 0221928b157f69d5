//! The state: what the fold of the log comes to. Only *evolve* writes it.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use xxhash_rust::xxh3::xxh3_64;

use super::calls::OpenCall;
use super::phase::Phase;
use super::resolve::Next;
use super::stuck::Round;
use crate::context::prompt::Prompt;
use crate::context::task::Task;
use crate::signals::Unshown;
use crate::wire::agents::Spent;
use crate::wire::event::{CallRef, Ended};
use crate::wire::message::Usage;
use crate::wire::policy::{Config, Limits, Price, Skill};
use crate::wire::signal::Signal;

/// Which part of the room for history the plan may have, and which the signals.
const TASK_SHARE: u64 = 6;

/// The fold of a session's log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub(crate) next: u64,
    pub(crate) at: i64,
    /// Time of the first record: it tells sessions of the same id in different logs apart.
    pub(crate) born: i64,
    /// When the model last replied.
    pub(crate) asked: Option<i64>,
    pub(crate) run: Option<Run>,
    pub(crate) prompt: Prompt,
    pub(crate) task: Task,
    /// Tokens that the model's service has refused as too many.
    pub(crate) ceiling: Option<u64>,
    pub(crate) notes: Vec<Note>,
    pub(crate) ids: BTreeSet<u64>,
    /// Keys of signals.
    pub(crate) heard: BTreeSet<Box<str>>,
    /// Deliveries of signals.
    pub(crate) delivered: BTreeSet<Box<str>>,
    /// Signals that wait to be read, but are too many to be told.
    pub(crate) unshown: Unshown,
    /// What left the prompt and is in no summary yet.
    pub(crate) unsummed: Option<Unsummed>,
}

/// Records that left the prompt. `unasked` while the model was not asked with what is left of it: then another `turns[0]`
/// costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unsummed {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) unasked: bool,
}

/// The current goal and how far it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) format: u64,
    pub(crate) renderer: u64,
    pub(crate) config: Config,
    pub(crate) tally: Tally,
    /// Price of the model that answered last, where it is not that of the config: the next answer may be its too.
    pub(crate) answered_at: Option<Price>,
    pub(crate) overflow: Overflow,
    /// The skill that was loaded last: it narrows what the calls of the replies behind it may do.
    pub(crate) skill: Option<Skill>,
    /// What the last replies did.
    pub(crate) rounds: Vec<Round>,
    /// The CallModel that is owed.
    pub(crate) owed: Option<u64>,
    /// The last reply, while its calls are open or its end is due.
    pub(crate) reply: Option<LastReply>,
    pub(crate) ended: Option<Ended>,
}

/// Whether the service refused the prompt as too long since the last reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// It did not.
    None,
    /// It did, and the prompt is still that one.
    Refused,
    /// It did, and the prompt was compressed since.
    Retried,
}

/// What the current goal has used, over all its resumes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) turns: u64,
    pub(crate) usage: Usage,
    pub(crate) cost: u64,
    pub(crate) unpriced: bool,
    pub(crate) active_ms: u64,
    pub(crate) repairs: u64,
    pub(crate) blanks: u64,
    pub(crate) text: String,
    /// How many sub-agents were put to work.
    pub(crate) agents: u64,
    /// What those have used that came to an end.
    pub(crate) delegated: Spent,
}

impl Tally {
    /// Model calls, those of sub-agents included.
    pub(crate) fn all_turns(&self) -> u64 {
        self.turns.saturating_add(self.delegated.turns)
    }

    /// Tokens, those of sub-agents included.
    pub(crate) fn all_usage(&self) -> Usage {
        let mut usage = self.usage.clone();
        usage.add(&self.delegated.usage);
        usage
    }

    /// Micro-dollars, those of sub-agents included.
    pub(crate) fn all_cost(&self) -> u64 {
        self.cost.saturating_add(self.delegated.cost)
    }
}

/// The last reply.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LastReply {
    pub(crate) next: Next,
    /// Active milliseconds of the goal when it came.
    pub(crate) since_ms: u64,
    pub(crate) calls: Vec<OpenCall>,
}

/// Something for the model to read with its next call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) text: String,
    pub(crate) tokens: u64,
    pub(crate) of: Origin,
    /// A signal's kind.
    pub(crate) kind: Box<str>,
    /// The record that it is from.
    pub(crate) seq: u64,
}

/// What a note is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A word of the kernel's own.
    Word,
    /// The plan changed.
    Plan,
    /// A signal came.
    Signal(Heed),
}

/// How a signal is to be heeded, what goes first last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Heed {
    /// With the next call, among others.
    Plain,
    /// Before anything else is begun.
    Urgent,
    /// As that, and in more room than others: the user says it.
    User,
}

impl State {
    /// Where the run stands.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match &self.run {
            None => Phase::Idle,
            Some(run) => run.phase(),
        }
    }

    /// The blocks of the current epoch.
    #[must_use]
    pub fn prompt(&self) -> &Prompt {
        &self.prompt
    }

    /// The task state.
    #[must_use]
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The bounds of the current goal.
    #[must_use]
    pub fn limits(&self) -> Option<&Limits> {
        self.run.as_ref().map(|run| &run.config.limits)
    }

    /// Tokens that the plan may have, and the signals: the task state must never fill what head and goal leave.
    pub(crate) fn task_room(&self) -> u64 {
        let Some(Limits { window, reserve, .. }) = self.limits() else { return 0 };
        let fixed = self.prompt.head_tokens().saturating_add(self.task.opening_tokens);
        window.saturating_sub(*reserve).saturating_sub(fixed) / TASK_SHARE
    }

    /// Whether a call id was given out in this session. Ids are kept as hashes: a collision only costs a longer id.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.ids.contains(&xxh3_64(id.as_bytes()))
    }

    /// Whether a signal was heard before, by its key or its delivery.
    pub(crate) fn has_heard(&self, signal: &Signal) -> bool {
        signal.dedupe_key.as_ref().is_some_and(|key| self.heard.contains(key.as_str()))
            || signal.id.as_ref().is_some_and(|id| self.delivered.contains(id.as_str()))
    }

    /// Whether something waits to be read that goes before calls not begun, and before the goal's end.
    pub(crate) fn is_urged(&self) -> bool {
        self.notes.iter().any(|note| matches!(note.of, Origin::Signal(Heed::Urgent | Heed::User)))
    }

    /// The calls of the last reply that have no result yet.
    pub(crate) fn open_calls(&self) -> impl Iterator<Item = &OpenCall> {
        self.run.iter().flat_map(Run::open_calls)
    }
}

impl Run {
    pub(crate) fn open_calls(&self) -> impl Iterator<Item = &OpenCall> {
        self.reply.iter().flat_map(|reply| reply.calls.iter()).filter(|call| call.is_open())
    }

    pub(crate) fn phase(&self) -> Phase {
        if self.ended.is_some() {
            return Phase::Ended;
        }
        if self.owed.is_some() {
            return Phase::Thinking;
        }
        let mut open = self.open_calls().peekable();
        if open.peek().is_some() && open.all(|call| call.is_parked(&self.config.attended)) {
            return Phase::Waiting;
        }
        Phase::Acting
    }

    /// What the next call is expected to cost by.
    pub(crate) fn price(&self) -> Option<&Price> {
        self.answered_at.as_ref().or(self.config.model.price.as_ref())
    }

    /// The open call of a name.
    pub(crate) fn call_mut(&mut self, at: CallRef) -> Option<&mut OpenCall> {
        let calls = self.reply.iter_mut().flat_map(|reply| reply.calls.iter_mut());
        calls.filter(|call| call.is_open()).find(|call| call.at == at)
    }

    /// Active milliseconds of the goal at `now`, when the last record was at `at`.
    pub(crate) fn active_ms(&self, at: i64, now: i64) -> u64 {
        let running = matches!(self.phase(), Phase::Thinking | Phase::Acting);
        let since = u64::try_from(now.saturating_sub(at)).unwrap_or(0);
        self.tally.active_ms.saturating_add(if running { since } else { 0 })
    }
}
