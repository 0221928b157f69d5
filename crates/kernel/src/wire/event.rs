//! Events: what the kernel remembers, in past participles. They are the session log.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::agents::{Grant, Spent};
use super::input::{AnswerBody, Fault, Finish, is_yes, yes};
use super::message::{Block, Notice, Part, RecordedPart, ToolResult, Usage, Validated};
use super::plain;
use super::policy::{Config, Policy, Price};
use super::signal::Signal;
use super::task::{Digest, Plan, Source};

/// A call's name: the seq of its Replied and its index among the calls of that reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRef {
    /// Seq of the Replied.
    pub reply: u64,
    /// Position among the calls of that reply.
    pub index: u64,
}

/// A goal of the session began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// Version of the log's words.
    pub format: u64,
    /// Version of the rendering.
    pub renderer: u64,
    /// The goal.
    pub goal: Vec<Part>,
    /// By which options.
    pub config: Config,
    /// Tokens of the head and of the goal's block.
    pub tokens: u64,
    /// What makes it good.
    #[serde(default, skip_serializing_if = "plain")]
    pub criteria: Vec<String>,
    /// Those of `tokens` that are the head's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<u64>,
    /// What was said of an earlier attempt at it.
    #[serde(default, skip_serializing_if = "plain")]
    pub feedback: Vec<Remark>,
}

/// A text that the model reads behind the goal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// As the model reads it.
    pub text: String,
    /// Its tokens.
    pub tokens: u64,
}

/// The goal goes on, by these options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// Version of the log's words.
    pub format: u64,
    /// Version of the rendering.
    pub renderer: u64,
    /// By which options.
    pub config: Config,
}

/// The model replied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replied {
    /// What it answers.
    pub effect: u64,
    /// In wire order.
    pub parts: Vec<RecordedPart>,
    /// Why it ended.
    pub finish: Finish,
    /// Tokens of this call.
    pub usage: Usage,
    /// Names the rendering that it answers.
    pub digest: String,
    /// Tokens of the block it becomes.
    pub tokens: u64,
    /// The dialect that it came in.
    #[serde(default, skip_serializing_if = "plain")]
    pub dialect: String,
    /// The model that said it.
    #[serde(default, skip_serializing_if = "plain")]
    pub model: String,
    /// Whether all of it is here.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub complete: bool,
    /// Whether `usage` was counted here.
    #[serde(default, skip_serializing_if = "plain")]
    pub estimated: bool,
    /// Micro-dollars, where the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// Validation of the final text, where asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Validated>,
    /// What the caller should know of the call.
    #[serde(default, skip_serializing_if = "plain")]
    pub notices: Vec<Notice>,
    /// Price of the model that answered, where it is not that of the config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Tokens that the prompt has at least, where our count of it may be too high; none where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<u64>,
}

/// What one governance stage said of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trail {
    /// The stage.
    pub stage: Cow<'static, str>,
    /// allow, refuse, ask or error.
    pub verdict: Cow<'static, str>,
    /// Why.
    #[serde(default, skip_serializing_if = "plain")]
    pub reason: String,
}

/// The call may run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allow {}

/// The call is refused by a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refuse {
    /// The stage.
    pub stage: String,
    /// Its rule.
    pub rule: String,
    /// Why.
    pub reason: String,
    /// When a rate limit would let it pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// A person has to say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The stage.
    pub stage: String,
    /// Its rule.
    pub rule: String,
    /// Why.
    pub reason: String,
}

tagged! {
    /// What governance says of a call.
    Verdict { Allow(Allow) = "allow", Refuse(Refuse) = "refuse", Ask(Ask) = "ask" }
}

/// Governance has spoken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// Of which call.
    pub call: CallRef,
    /// What it says.
    pub verdict: Verdict,
    /// The audit.
    #[serde(default, skip_serializing_if = "plain")]
    pub trail: Vec<Trail>,
}

/// The tool of `effect` is about to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// Which call.
    pub call: CallRef,
    /// Seq of its Judged.
    pub effect: u64,
    /// What the sub-agent that it puts to work may use up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Grant>,
}

/// A call has its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// Which call.
    pub call: CallRef,
    /// What it came to.
    pub result: ToolResult,
    /// Tokens of the block it becomes.
    pub tokens: u64,
    /// What the sub-agent used that it put to work; the rest of its grant returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
}

/// A running tool waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspended {
    /// Which call.
    pub call: CallRef,
    /// JSON text.
    pub payload: String,
    /// Whether it is a sub-agent that waits, with questions of its own.
    #[serde(default, skip_serializing_if = "plain")]
    pub agent: bool,
}

/// The answer to the AskUser `effect`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// Which call.
    pub call: CallRef,
    /// Which question.
    pub effect: u64,
    /// The answer.
    pub answer: AnswerBody,
}

/// A signal was taken; it is rendered with the next model call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signalled {
    /// The signal.
    pub signal: Signal,
    /// Tokens of its text.
    pub tokens: u64,
    /// It makes the model call that is owed anew, which reads it.
    #[serde(default, skip_serializing_if = "plain")]
    pub renews: bool,
    /// Its text, where there was no room for all of it.
    #[serde(default, skip_serializing_if = "plain")]
    pub text: String,
}

/// The task state changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateChanged {
    /// The delta as it is rendered.
    pub text: String,
    /// Its tokens.
    pub tokens: u64,
    /// The plan that is in force now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
}

/// A new epoch began: the head, where none is among them, and these blocks; kept whole so that newer strategies replay old logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compressed {
    /// The strategy that went furthest.
    pub stage: String,
    /// The blocks of the new epoch.
    pub blocks: Vec<Block<'static>>,
    /// Tokens of the prompt before.
    pub tokens_before: u64,
    /// Tokens of the prompt now.
    pub tokens: u64,
    /// Where each of the blocks is from.
    #[serde(default, skip_serializing_if = "plain")]
    pub sources: Vec<Source>,
    /// What is left of what left the prompt, now and before.
    #[serde(default, skip_serializing_if = "plain")]
    pub digest: Digest,
    /// How many records left the prompt, or were shortened in it, this time.
    #[serde(default, skip_serializing_if = "plain")]
    pub left: u64,
    /// All strategies that had something to do, in their order.
    #[serde(default, skip_serializing_if = "plain")]
    pub stages: Vec<String>,
    /// What left the prompt this time: references as `recall` reads them.
    #[serde(default, skip_serializing_if = "plain")]
    pub gone: Vec<String>,
    /// Records that stay in a shorter form since this time.
    #[serde(default, skip_serializing_if = "plain")]
    pub shortened: Vec<u64>,
    /// Tokens of the head, where the new epoch begins with another: one that offers to recall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<u64>,
}

/// A model has written a summary of the turns that left, or was to: `turns[0]` begins anew with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summarized {
    /// What it answers.
    pub effect: u64,
    /// The summary; empty where there is none.
    #[serde(default, skip_serializing_if = "plain")]
    pub text: String,
    /// Tokens of `turns[0]` with it; 0 where there is none.
    #[serde(default, skip_serializing_if = "plain")]
    pub tokens: u64,
    /// What it took.
    #[serde(default, skip_serializing_if = "plain")]
    pub usage: Usage,
    /// Price of the model that wrote it, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Micro-dollars, where the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

/// Another policy from here on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyChanged {
    /// The policy.
    pub policy: Policy,
}

/// The model call `effect` failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Which call.
    pub effect: u64,
    /// Why.
    pub fault: Fault,
}

words! {
    /// How a goal stands.
    Status {
        /// Done.
        Completed = "completed",
        /// Ended by the number of turns.
        MaxTurns = "max_turns",
        /// Ended by the tokens or the cost.
        TokenBudget = "token_budget",
        /// Ended by the active time.
        Timeout = "timeout",
        /// Stopped by the user.
        UserAbort = "user_abort",
        /// Failed.
        Error = "error",
        /// Parked; never in a record, only in an outcome.
        Suspended = "suspended",
    }
}

/// The goal ended. `fault` says why, for every status but completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// How.
    pub status: Status,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

tagged! {
    /// What the kernel remembers.
    Event {
        Started(Started) = "started", Resumed(Resumed) = "resumed", Replied(Replied) = "replied",
        Judged(Judged) = "judged", Begun(Begun) = "begun", Settled(Settled) = "settled",
        Suspended(Suspended) = "suspended", Answered(Answered) = "answered", Signalled(Signalled) = "signalled",
        StateChanged(StateChanged) = "state_changed", Compressed(Compressed) = "compressed",
        PolicyChanged(PolicyChanged) = "policy_changed", Failed(Failed) = "failed", Ended(Ended) = "ended",
        Summarized(Summarized) = "summarized",
    }
}
