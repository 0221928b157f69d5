//! What a run is configured with, as the kernel sees it.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::agents::Agents;
use super::message::ToolSpec;
use super::plain;

/// Micro-dollars for a million tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// Prompt tokens that are neither read from nor written to a cache.
    pub input: u64,
    /// Reply tokens.
    pub output: u64,
    /// Prompt tokens read from the cache.
    pub cached: u64,
    /// Prompt tokens written to the cache.
    pub cache_write: u64,
}

/// The model a run talks to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// Its name; also chooses the vocabulary.
    pub id: String,
    /// Its price, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// How long its provider's cache keeps a prompt that is not asked again, in milliseconds.
    #[serde(default = "five_minutes", skip_serializing_if = "is_five_minutes")]
    pub cache_ms: u64,
}

const FIVE_MINUTES: u64 = 300_000;

fn five_minutes() -> u64 {
    FIVE_MINUTES
}

fn is_five_minutes(ms: &u64) -> bool {
    *ms == FIVE_MINUTES
}

/// Bounds of a goal, over all its resumes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Model calls.
    pub max_turns: u64,
    /// Context window in tokens.
    pub window: u64,
    /// Part of the window kept for the answer.
    pub reserve: u64,
    /// Tools that may run at once; at least one.
    pub parallel: u64,
    /// Tokens of all calls, input and output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_total_tokens: Option<u64>,
    /// Micro-dollars of all calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<u64>,
    /// Active milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

words! {
    /// What a rule says of the calls it fits.
    #[derive(Default)]
    Action {
        /// They may run.
        #[default]
        Allow = "allow",
        /// They may not.
        Deny = "deny",
        /// A person has to say.
        Ask = "ask",
    }
}

/// A rule on tool names. Among the rules that fit, deny goes before ask before allow, whatever their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// A glob over the whole name.
    pub pattern: String,
    /// What it says.
    pub action: Action,
    /// Why, for the model and the audit.
    #[serde(default, skip_serializing_if = "plain")]
    pub reason: String,
}

/// At most `max_calls` allowed calls of the tools that fit, together, in any `window_ms`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// A glob over the whole name.
    pub pattern: String,
    /// Allowed calls in a window; 0 lets none pass.
    pub max_calls: u64,
    /// Length of the window in milliseconds.
    pub window_ms: u64,
}

/// What the validated arguments of a tool must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constraint {
    /// A glob over the whole name.
    pub pattern: String,
    /// JSON schema text.
    pub schema: String,
}

words! {
    /// What holds where no permission says anything.
    Mode {
        /// What is not granted is denied.
        Default = "default",
        /// Everything is denied.
        Plan = "plan",
        /// What is not revoked is allowed.
        Auto = "auto",
    }
}

/// A grant or a revocation of an action of a tool; `*` stands for any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permission {
    /// The tool's name, or `*`.
    pub tool: String,
    /// The action's name, or `*`.
    pub action: String,
    /// Deny is a revocation, ask a grant that a person has to confirm.
    pub verdict: Action,
    /// Why, for the model and the audit.
    #[serde(default, skip_serializing_if = "plain")]
    pub note: String,
}

/// The grants of a permission manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permissions {
    /// What holds without one.
    pub mode: Mode,
    /// The grants and revocations; the last that fits best decides.
    #[serde(default, skip_serializing_if = "plain")]
    pub entries: Vec<Permission>,
}

/// What governance decides by. Without anything in it every call may run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// What holds for a tool that no rule fits.
    #[serde(default, skip_serializing_if = "plain")]
    pub default: Action,
    /// Rules on names.
    #[serde(default, skip_serializing_if = "plain")]
    pub rules: Vec<Rule>,
    /// Globs of tools that never run.
    #[serde(default, skip_serializing_if = "plain")]
    pub blocked: Vec<String>,
    /// Rate limits.
    #[serde(default, skip_serializing_if = "plain")]
    pub rates: Vec<Rate>,
    /// Constraints on arguments.
    #[serde(default, skip_serializing_if = "plain")]
    pub constraints: Vec<Constraint>,
    /// Permission managers; each has to agree.
    #[serde(default, skip_serializing_if = "plain")]
    pub permissions: Vec<Permissions>,
    /// Whether the trail of a call names every stage, also those without a rule.
    #[serde(default, skip_serializing_if = "plain")]
    pub audit: bool,
}

/// Which questions somebody in this process answers; a call that waits for another one parks the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attended {
    /// Approvals.
    #[serde(default, skip_serializing_if = "plain")]
    pub approvals: bool,
    /// Suspensions of tools.
    #[serde(default, skip_serializing_if = "plain")]
    pub suspensions: bool,
}

words! {
    /// Where changes of the task state stand on the wire.
    #[derive(Default)]
    Placement {
        /// In delta blocks at the tail.
        #[default]
        Frozen = "frozen",
        /// In `turns[0]`.
        Live = "live",
    }
}

/// A skill that the model can load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skill {
    /// Its name, as the model loads it.
    pub name: String,
    /// Globs of the tools that may run while it is active; an empty list leaves the tools as they are.
    #[serde(default, skip_serializing_if = "plain")]
    pub allowed_tools: Vec<String>,
}

/// What a run can draw on beside its tools. Each is offered to the model by a tool of the kernel's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    /// The skills.
    #[serde(default, skip_serializing_if = "plain")]
    pub skills: Vec<Skill>,
    /// Whether something can be looked up.
    #[serde(default, skip_serializing_if = "plain")]
    pub knowledge: bool,
    /// Whether something is remembered over sessions.
    #[serde(default, skip_serializing_if = "plain")]
    pub memory: bool,
}

/// All that the prompt and the decisions are made of, apart from the goal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// The session's id.
    pub session: String,
    /// Slot 1.
    pub system: String,
    /// Blocks of slot 2.
    pub preload: Vec<String>,
    /// The tools, in any order.
    pub tools: Vec<ToolSpec>,
    /// What governance decides by.
    pub policy: Policy,
    /// The bounds.
    pub limits: Limits,
    /// The model.
    pub model: Model,
    /// Where changes of the task state stand.
    #[serde(default, skip_serializing_if = "plain")]
    pub placement: Placement,
    /// Who is there to answer.
    #[serde(default, skip_serializing_if = "plain")]
    pub attended: Attended,
    /// Its sub-agents, and whose it is itself.
    #[serde(default, skip_serializing_if = "plain")]
    pub agents: Agents,
    /// What there is beside the tools.
    #[serde(default, skip_serializing_if = "plain")]
    pub sources: Sources,
    /// Whether a model writes a summary of the turns that leave the prompt.
    #[serde(default, skip_serializing_if = "plain")]
    pub summaries: bool,
}
