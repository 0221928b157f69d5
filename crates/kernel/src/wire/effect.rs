//! Effects: what the kernel asks of the host. An effect's id is the seq of the record that made it owed.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::agents::Grant;
use super::event::Status;
use super::plain;

/// Ask the model. The prompt is the first `len` blocks of `epoch`; `digest` names them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallModel {
    /// The effect's id.
    pub id: u64,
    /// Of which epoch.
    pub epoch: u64,
    /// How many blocks.
    pub len: u64,
    /// Names the rendering.
    pub digest: String,
    /// Output limit, only where a budget needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
}

/// Run a tool whose Begun is in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTool {
    /// The effect's id.
    pub id: u64,
    /// Unique in the session.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// The validated JSON text.
    pub args: String,
    /// Idempotency key, stable over resumes.
    pub key: String,
    /// The recorded answers of its suspensions so far, as JSON text, in order.
    #[serde(default, skip_serializing_if = "plain")]
    pub answers: Vec<String>,
    /// What the sub-agent that it puts to work may use up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Grant>,
}

/// Have a summary written of the turns that left the prompt, before the model is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summarize {
    /// The effect's id.
    pub id: u64,
    /// Seq of the first record that left.
    pub from: u64,
    /// Seq of the last record that left.
    pub to: u64,
    /// Tokens that the summary may have.
    pub room: u64,
    /// The summary of what left before, which this one takes the place of.
    #[serde(default, skip_serializing_if = "plain")]
    pub before: String,
}

words! {
    /// What kind of question.
    Question {
        /// May this call run?
        Approval = "approval",
        /// A running tool asks.
        Suspension = "suspension",
        /// A sub-agent waits for answers to its own questions.
        Agent = "agent",
    }
}

/// A question that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskUser {
    /// The effect's id.
    pub id: u64,
    /// What kind.
    pub kind: Question,
    /// Unique in the session.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// The validated JSON text.
    pub args: String,
    /// JSON text of a suspension, or the reason for asking.
    pub payload: String,
}

tagged! {
    /// What the kernel asks of the host.
    Effect {
        CallModel(CallModel) = "call_model", RunTool(RunTool) = "run_tool", AskUser(AskUser) = "ask_user",
        Summarize(Summarize) = "summarize",
    }
}

tagged! {
    /// An open question of a parked run; tagged like the effect that it is.
    Open { AskUser(AskUser) = "ask_user" }
}

impl Effect {
    /// The seq of the record that made it owed.
    #[must_use]
    pub fn id(&self) -> u64 {
        match self {
            Self::CallModel(effect) => effect.id,
            Self::RunTool(effect) => effect.id,
            Self::AskUser(effect) => effect.id,
            Self::Summarize(effect) => effect.id,
        }
    }
}

/// How the current goal ended or parked, folded from the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// How.
    pub status: Status,
    /// Text of the last turn.
    pub text: String,
    /// Model calls.
    pub turns: u64,
    /// Tokens of all prompts.
    pub input_tokens: u64,
    /// Tokens of all replies.
    pub output_tokens: u64,
    /// Part of the input read from a cache.
    pub cached_tokens: u64,
    /// Part of the input written to a cache.
    pub cache_write_tokens: u64,
    /// Part of the output that was reasoning.
    pub reasoning_tokens: u64,
    /// Whether `cost` is known.
    #[serde(default, skip_serializing_if = "plain")]
    pub priced: bool,
    /// Micro-dollars.
    #[serde(default, skip_serializing_if = "plain")]
    pub cost: u64,
    /// Code of the fault.
    #[serde(default, skip_serializing_if = "plain")]
    pub code: String,
    /// Text of the fault.
    #[serde(default, skip_serializing_if = "plain")]
    pub message: String,
    /// Whether trying again may help.
    #[serde(default, skip_serializing_if = "plain")]
    pub retryable: bool,
    /// The open questions of a parked run.
    #[serde(default, skip_serializing_if = "plain")]
    pub pending: Vec<Open>,
}
