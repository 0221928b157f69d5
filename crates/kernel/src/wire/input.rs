//! Inputs: what the world tells the kernel.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::agents::Spent;
use super::message::{Notice, Part, ReplyPart, ToolResult, Usage, Validated};
use super::plain;
use super::policy::{Config, Policy, Price};
use super::signal::Signal;

/// Why something failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// A stable code.
    pub code: String,
    /// A text for people.
    pub message: String,
    /// Whether trying again may help.
    #[serde(default, skip_serializing_if = "plain")]
    pub retryable: bool,
}

words! {
    /// Why a reply ended.
    Finish {
        /// The model was done.
        Stop = "stop",
        /// It asked for tools.
        ToolCalls = "tool_calls",
        /// The output limit cut it.
        Length = "length",
        /// A filter cut it.
        ContentFilter = "content_filter",
        /// Another reason.
        Other = "other",
        /// The stream stopped or was stopped.
        Interrupted = "interrupted",
    }
}

/// A goal; the first or a further one of the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Its content.
    pub goal: Vec<Part>,
    /// By which options.
    pub config: Config,
    /// What makes it good.
    #[serde(default, skip_serializing_if = "plain")]
    pub criteria: Vec<String>,
    /// What was said of an earlier attempt at it, to be read behind it.
    #[serde(default, skip_serializing_if = "plain")]
    pub feedback: Vec<String>,
}

/// Go on with the current goal, by today's options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// By which options.
    pub config: Config,
}

/// The model's finished reply to the CallModel `effect`; an incomplete one is what was shown of a stopped one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// What it answers.
    pub effect: u64,
    /// In wire order.
    pub parts: Vec<ReplyPart>,
    /// Why it ended.
    pub finish: Finish,
    /// The dialect that it came in.
    #[serde(default, skip_serializing_if = "plain")]
    pub dialect: String,
    /// The model that said it.
    #[serde(default, skip_serializing_if = "plain")]
    pub model: String,
    /// As the provider reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Whether all of it is here.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub complete: bool,
    /// Validation of the final text, where asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Validated>,
    /// Why an incomplete reply stopped; none when it was stopped on purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// What the caller should know of the call.
    #[serde(default, skip_serializing_if = "plain")]
    pub notices: Vec<Notice>,
    /// Price of the model that answered, where it is not that of the config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

pub(crate) fn yes() -> bool {
    true
}

pub(crate) fn is_yes(value: &bool) -> bool {
    *value
}

/// The model call `effect` failed before anything was shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Which call.
    pub effect: u64,
    /// Why.
    pub fault: Fault,
}

/// The tool run `effect` came to an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Result {
    /// Which run.
    pub effect: u64,
    /// What it came to.
    pub result: ToolResult,
    /// What the sub-agent used that it put to work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
}

/// The tool run `effect` asks a question and waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspend {
    /// Which run.
    pub effect: u64,
    /// JSON text.
    pub payload: String,
}

/// An answer to a suspension.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Value {
    /// JSON text.
    pub json: String,
}

/// An approval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approve {
    /// Changed arguments, validated again by the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Validated>,
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deny {
    /// Why.
    pub reason: String,
}

tagged! {
    /// What somebody answered.
    AnswerBody { Value(Value) = "value", Approve(Approve) = "approve", Deny(Deny) = "deny" }
}

/// The answer to the AskUser `effect`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Which question.
    pub effect: u64,
    /// The answer.
    pub answer: AnswerBody,
}

/// The summary that the Summarize `effect` asks for; without a text there is none, for the reason in `fault`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Which effect.
    pub effect: u64,
    /// The summary.
    #[serde(default, skip_serializing_if = "plain")]
    pub text: String,
    /// What it took.
    #[serde(default, skip_serializing_if = "plain")]
    pub usage: Usage,
    /// Price of the model that wrote it, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

/// A signal arrived, or several at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notify {
    /// The signal.
    pub signal: Signal,
    /// Those that came with it, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<Signal>,
    /// The model call that is owed has not been begun, so it is made anew and reads them.
    #[serde(default, skip_serializing_if = "plain")]
    pub renews: bool,
}

/// The policy changed while the run goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetPolicy {
    /// The policy from here on.
    pub policy: Policy,
}

/// Stop now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupt {
    /// Why.
    pub reason: String,
}

/// Time has passed; the kernel looks at its deadline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {}

tagged! {
    /// What the world tells the kernel.
    Input {
        Start(Start) = "start", Resume(Resume) = "resume", Reply(Reply) = "reply", Failure(Failure) = "failure",
        Result(Result) = "result", Suspend(Suspend) = "suspend", Answer(Answer) = "answer", Notify(Notify) = "signal",
        SetPolicy(SetPolicy) = "set_policy", Interrupt(Interrupt) = "interrupt", Clock(Clock) = "clock",
        Summary(Summary) = "summary",
    }
}
