//! The task state: what `turns[0]` says, and where rendered blocks come from.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::plain;

words! {
    /// How far a step of the plan is.
    StepStatus {
        /// Not begun.
        Todo = "todo",
        /// Being worked on.
        Doing = "doing",
        /// Done.
        Done = "done",
    }
}

/// A step of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// What is to be done, on one line.
    pub text: String,
    /// How far it is.
    pub status: StepStatus,
}

/// The model's plan and what it says of its progress.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The steps, in order.
    #[serde(default, skip_serializing_if = "plain")]
    pub steps: Vec<PlanStep>,
    /// What was reached, on one line.
    #[serde(default, skip_serializing_if = "plain")]
    pub progress: String,
}

words! {
    /// What a line of the digest says.
    LineKind {
        /// Something the user demands, word for word.
        Constraint = "constraint",
        /// What else the user said, word for word.
        Said = "said",
        /// What was said of an earlier attempt, word for word.
        Feedback = "feedback",
        /// What the model found or decided.
        Decision = "decision",
        /// The last result of a tool.
        Result = "result",
        /// A call that failed.
        Failed = "failed",
    }
}

/// A line of the digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// What it says.
    pub kind: LineKind,
    /// Its text.
    pub text: String,
    /// Seq of the record that it is from.
    pub seq: u64,
}

/// A value that later calls may need again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Value {
    /// What it is: the name of the argument or field.
    pub label: String,
    /// The value, as text.
    pub value: String,
    /// Seq of the record that it was last seen in.
    pub seq: u64,
}

/// What is left of the turns that left the prompt; every word of it is taken from them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// How often the prompt was compressed.
    pub passes: u64,
    /// Seq of the first record that left.
    pub from: u64,
    /// Seq of the last record that left.
    pub to: u64,
    /// What they said, oldest first.
    #[serde(default, skip_serializing_if = "plain")]
    pub lines: Vec<Line>,
    /// The value ledger, the value used last at the end.
    #[serde(default, skip_serializing_if = "plain")]
    pub ledger: Vec<Value>,
    /// A summary that a model wrote of them.
    #[serde(default, skip_serializing_if = "plain")]
    pub summary: String,
    /// Whether a goal that `turns[0]` began with is among them, be it record 0.
    #[serde(default, skip_serializing_if = "plain")]
    pub opening: bool,
    /// How many messages of the user are not among the lines, not even in part.
    #[serde(default, skip_serializing_if = "plain")]
    pub unsaid: u64,
    /// Tokens of its text.
    #[serde(default, skip_serializing_if = "plain")]
    pub tokens: u64,
}

impl Digest {
    /// Whether records have left, `from` to `to`.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.to > 0 || self.opening
    }
}

words! {
    /// What a rendered block is to the task.
    Role {
        /// Slots 1 and 2 and the tools.
        Head = "head",
        /// `turns[0]`: the task state at the epoch's start.
        State = "state",
        /// A further goal.
        Goal = "goal",
        /// A change of the task state, or a word of the kernel's own.
        Delta = "delta",
        /// What the model said.
        Reply = "reply",
        /// A call's result.
        Result = "result",
    }
}

/// Where a block comes from and what it weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// What it is.
    pub role: Role,
    /// Seq of the record that made it.
    pub seq: u64,
    /// Its tokens.
    pub tokens: u64,
}
