//! What a run is configured with, as the kernel sees it.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

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

/// What governance decides by. It has no rules yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {}

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
}
