//! Sub-agents: who may have them, what they are granted, and what they have spent.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::message::Usage;
use super::plain;

/// Whose sub-agent a session is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// The session whose call put it to work.
    pub session: String,
    /// The agents from the root down to this one, by name.
    pub path: Vec<String>,
}

/// What a run may do with sub-agents, and whose it is itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agents {
    /// Whether `delegate` is there.
    #[serde(default, skip_serializing_if = "plain")]
    pub delegate: bool,
    /// How many levels of sub-agents there may be below this one.
    #[serde(default, skip_serializing_if = "plain")]
    pub depth: u64,
    /// How many sub-agents one goal may put to work.
    #[serde(default, skip_serializing_if = "plain")]
    pub children: u64,
    /// Whose sub-agent this is; none for a root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
}

/// The part of its parent's limits that a sub-agent may use up, over all its resumes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Model calls, those of its own sub-agents included.
    pub turns: u64,
    /// Tokens of all calls, where the parent has a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Micro-dollars, where the parent has a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// Active milliseconds, where the parent has a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// Globs of the only tools that it may be left of its parent's, by the skill that is active there; all without any.
    #[serde(default, skip_serializing_if = "plain")]
    pub only: Vec<String>,
}

/// What a sub-agent has used, its own sub-agents included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Model calls.
    pub turns: u64,
    /// Tokens of all calls.
    pub usage: Usage,
    /// Micro-dollars, as far as prices are known.
    #[serde(default, skip_serializing_if = "plain")]
    pub cost: u64,
    /// Whether a price was not known.
    #[serde(default, skip_serializing_if = "plain")]
    pub unpriced: bool,
}

impl Spent {
    /// Adds another one to it.
    pub fn add(&mut self, spent: &Self) {
        self.turns = self.turns.saturating_add(spent.turns);
        self.usage.add(&spent.usage);
        self.cost = self.cost.saturating_add(spent.cost);
        self.unpriced |= spent.unpriced;
    }
}
