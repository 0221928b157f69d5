//! A record: one line of the session log.

use alloc::string::String;
use serde::{Deserialize, Serialize};

use super::event::Event;
use super::plain;

/// One line of the log. `seq` counts from 0 without gaps; `at` is milliseconds since the epoch, never falling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its number.
    pub seq: u64,
    /// When.
    pub at: i64,
    /// What happened.
    pub event: Event,
    /// Whether one who does not know the event may skip it.
    #[serde(default, skip_serializing_if = "plain")]
    pub optional: bool,
}

/// What can be said of a record whose event is not known here.
#[derive(Debug, Deserialize)]
pub(crate) struct Envelope {
    pub(crate) seq: u64,
    pub(crate) at: i64,
    pub(crate) event: Kind,
    #[serde(default)]
    pub(crate) optional: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Kind {
    #[serde(rename = "type")]
    pub(crate) tag: String,
}
