//! A signal from outside a run.

use alloc::string::String;
use serde::{Deserialize, Serialize};

use super::plain;

words! {
    /// How soon a signal has to be heard.
    #[derive(Default)]
    Urgency {
        /// With the next model call.
        Low = "low",
        /// With the next model call.
        #[default]
        Normal = "normal",
        /// Before work that has not begun.
        High = "high",
        /// At once.
        Critical = "critical",
    }
}

/// A signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    /// What happened.
    pub kind: String,
    /// JSON text.
    pub payload: String,
    /// Who says so.
    #[serde(default = "custom", skip_serializing_if = "is_custom")]
    pub source: String,
    /// Its sort.
    #[serde(default = "event", skip_serializing_if = "is_event")]
    pub signal_type: String,
    /// How soon it has to be heard.
    #[serde(default, skip_serializing_if = "plain")]
    pub urgency: Urgency,
    /// Signals of one key are one signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedupe_key: Option<String>,
    /// Names one delivery: brought twice, it is heard once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Whether the user says it; `payload` is `{"text": …}` then.
    #[serde(default, skip_serializing_if = "plain")]
    pub from_user: bool,
}

fn custom() -> String {
    String::from("custom")
}

fn is_custom(source: &str) -> bool {
    source == "custom"
}

fn event() -> String {
    String::from("event")
}

fn is_event(sort: &str) -> bool {
    sort == "event"
}
