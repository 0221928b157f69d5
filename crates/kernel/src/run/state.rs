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
use crate::wire::event::{CallRef, Ended};
use crate::wire::message::Usage;
use crate::wire::policy::{Config, Limits, Price};

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
    pub(crate) heard: BTreeSet<Box<str>>,
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
}

/// The last reply.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LastReply {
    pub(crate) next: Next,
    pub(crate) calls: Vec<OpenCall>,
}

/// Something for the model to read with its next call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) text: String,
    pub(crate) tokens: u64,
    pub(crate) of: Origin,
}

/// What a note is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A word of the kernel's own.
    Word,
    /// The plan changed.
    Plan,
    /// A signal came.
    Signal,
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

    /// Whether a call id was given out in this session. Ids are kept as hashes: a collision only costs a longer id.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.ids.contains(&xxh3_64(id.as_bytes()))
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
