//! Memories to be curated, and what becomes of them.
//!
//! A text and what else is known of it stay with the host, which names them here by number.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::plain;

/// Everything that was ever observed, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Curation {
    /// What the store holds.
    #[serde(default, skip_serializing_if = "plain")]
    pub known: Vec<Observation>,
    /// What comes to it. These are numbered behind the known ones.
    #[serde(default, skip_serializing_if = "plain")]
    pub given: Vec<Observation>,
    /// How many are kept at most; without it, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<u64>,
}

/// Something observed, as far as it matters to others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// What it says, in a form that is the same for texts that say the same; empty for a text without a word.
    pub said: String,
    /// What it is about; two that are about the same cannot both be so.
    pub about: String,
    /// The whole of it as one text: no two different ones have the same.
    pub whole: String,
    /// The digest of its text.
    pub digest: String,
    /// Whether `about` is a key that was given, so that one value is left of it.
    #[serde(default, skip_serializing_if = "plain")]
    pub keyed: bool,
    /// A person has said that it is not to be remembered.
    #[serde(default, skip_serializing_if = "plain")]
    pub retracted: bool,
    /// It came from a tool or the web.
    #[serde(default, skip_serializing_if = "plain")]
    pub untrusted: bool,
    /// When it was said, in milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "plain")]
    pub at_ms: i64,
    /// Which record of its session it was drawn from.
    #[serde(default, skip_serializing_if = "plain")]
    pub record: i64,
    /// How sure it is, in millionths.
    #[serde(default, skip_serializing_if = "plain")]
    pub confidence: u64,
    /// How it stands in the store now, where it is no longer so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// It does not stand in the store as it would be written.
    #[serde(default, skip_serializing_if = "plain")]
    pub rough: bool,
}

/// Until when something was so, and what is so since.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ended {
    /// Milliseconds since the epoch.
    pub until_ms: i64,
    /// The digest of what superseded it.
    pub by: String,
}

/// What a store holds afterwards, and what changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Curated {
    /// What is kept, the highest first.
    pub kept: Vec<Kept>,
    /// The numbers of the known ones that go, ascending; one that stands otherwise from now on goes and is kept fresh.
    pub removed: Vec<u64>,
    /// Texts among the kept that were not known.
    pub added: u64,
    /// Of the given, how many brought no such text.
    pub duplicates: u64,
    /// Texts that were so until now and are no longer.
    pub superseded: u64,
}

/// One that is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Its number.
    pub number: u64,
    /// Until when it was so, unless it still is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// The store does not hold it like this yet.
    #[serde(default, skip_serializing_if = "plain")]
    pub fresh: bool,
}
