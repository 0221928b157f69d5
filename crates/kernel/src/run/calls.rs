//! The open calls of the last reply.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use xxhash_rust::xxh3::Xxh3;

use crate::context::arguments::object_text;
use crate::wire::agents::Grant;
use crate::wire::event::{CallRef, Verdict};
use crate::wire::message::{Err as Objection, RecordedCall, Validated};
use crate::wire::policy::Attended;

/// A call of the last reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// Its name in the records.
    pub at: CallRef,
    /// Unique in the session.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The validated arguments, or what is wrong with them.
    pub args: Result<String, Objection>,
    /// Idempotency key: from session, call and validated arguments.
    pub key: String,
    /// How far it is.
    pub step: Step,
    /// Whether a person approved it.
    pub approved: bool,
    /// The answers to its suspensions so far.
    pub answers: Vec<String>,
    /// Whether it puts a sub-agent to work.
    pub agent: bool,
    /// What that sub-agent may use up, once it has begun.
    pub grant: Option<Grant>,
}

/// How far a call is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// To be judged.
    Fresh,
    /// Refused by governance; to be settled.
    Refused(Verdict),
    /// Refused by a person, or left without the answer that its tool asked for; to be settled.
    Denied {
        /// Why.
        reason: String,
        /// Whether its tool had begun.
        begun: bool,
    },
    /// A person is asked whether it may run; `effect` is the seq of its Judged.
    Asked {
        /// The AskUser.
        effect: u64,
        /// Why.
        reason: String,
    },
    /// May begin, for the first time or again.
    Ready {
        /// Seq of its Judged.
        effect: u64,
        /// Whether its tool had begun before.
        begun: bool,
    },
    /// Runs.
    Running {
        /// Seq of its Judged.
        effect: u64,
        /// How many answers it was begun with.
        given: usize,
    },
    /// Its tool waits for an answer.
    Suspended {
        /// Seq of its Judged.
        effect: u64,
        /// How many answers it was begun with.
        given: usize,
        /// The AskUser: seq of its Suspended.
        ask: u64,
        /// JSON text.
        payload: String,
        /// Whether the tool itself is still there, waiting in this process.
        alive: bool,
    },
    /// It was running when the process ended, and must not run again by itself; to be settled.
    Lost,
    /// It has its result: the rendered block and its tokens, held back until all have theirs.
    Settled {
        /// The block.
        block: Box<str>,
        /// Seq of its Settled.
        seq: u64,
        /// What it says, as a hash.
        outcome: u64,
        /// The kind of error that it is, as a hash; none where it is none.
        failed: Option<u64>,
        /// Its tokens.
        tokens: u64,
    },
}

impl OpenCall {
    /// A call as it was recorded.
    #[must_use]
    pub fn new(session: &str, at: CallRef, call: &RecordedCall, agent: bool) -> Self {
        let args = validated_args(&call.validated, &call.args_text);
        let key = args.as_ref().map(|args| key(session, at, args)).unwrap_or_default();
        Self {
            at,
            id: call.id.clone(),
            name: call.name.clone(),
            args,
            key,
            step: Step::Fresh,
            approved: false,
            answers: Vec::new(),
            agent,
            grant: None,
        }
    }

    /// Whether it has no result yet.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !matches!(self.step, Step::Settled { .. })
    }

    /// Tokens of a result that is held back.
    pub(crate) fn settled_tokens(&self) -> u64 {
        if let Step::Settled { tokens, .. } = self.step { tokens } else { 0 }
    }

    /// Whether its tool has begun, at any time.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        match self.step {
            Step::Running { .. } | Step::Suspended { .. } | Step::Lost => true,
            Step::Ready { begun, .. } | Step::Denied { begun, .. } => begun,
            Step::Fresh | Step::Refused(_) | Step::Asked { .. } | Step::Settled { .. } => false,
        }
    }

    /// The RunTool that is owed for it.
    #[must_use]
    pub fn owed_run(&self) -> Option<(u64, usize)> {
        match self.step {
            Step::Running { effect, given } | Step::Suspended { effect, given, alive: true, .. } => {
                Some((effect, given))
            }
            _ => None,
        }
    }

    /// The AskUser that is owed for it.
    #[must_use]
    pub fn owed_ask(&self) -> Option<u64> {
        match self.step {
            Step::Asked { effect, .. } => Some(effect),
            Step::Suspended { ask, .. } => Some(ask),
            _ => None,
        }
    }

    /// Whether it waits for an answer that nobody in this process gives; what a sub-agent asks is answered inside it.
    #[must_use]
    pub fn is_parked(&self, attended: &Attended) -> bool {
        match self.step {
            Step::Asked { .. } => !attended.approvals,
            Step::Suspended { .. } => self.agent || !attended.suspensions,
            _ => false,
        }
    }

    /// Takes changed arguments of an approval.
    pub(crate) fn revise(&mut self, session: &str, arguments: &Validated) {
        let current = self.args.clone().unwrap_or_default();
        self.args = validated_args(arguments, &current);
        self.key = self.args.as_ref().map(|args| key(session, self.at, args)).unwrap_or_default();
    }
}

/// The arguments that governance sees and the tool gets.
fn validated_args(validated: &Validated, given: &str) -> Result<String, Objection> {
    match validated {
        Validated::Ok(valid) => Ok(valid.text.clone().unwrap_or_else(|| object_text(given).into_owned())),
        Validated::Err(objection) => Err(objection.clone()),
    }
}

/// xxh3-128 over session, call and arguments, each behind its length.
fn key(session: &str, at: CallRef, args: &str) -> String {
    let mut hash = Xxh3::new();
    for part in [session, &at.reply.to_string(), &at.index.to_string(), args] {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    format!("{:032x}", hash.digest128())
}
