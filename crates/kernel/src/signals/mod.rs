//! Signals: how they are worded for the model, what they stop, and how many are told at once.

mod waiting;

use alloc::format;
use alloc::string::String;
use serde::Deserialize;

pub use waiting::Unshown;

use crate::wire::signal::{Signal, Urgency};

/// What the user says while the run goes on.
#[derive(Deserialize)]
struct Said {
    text: String,
}

/// The text that the model reads; it names its source, so that it is not taken for the user's word.
#[must_use]
pub fn text(signal: &Signal) -> String {
    if signal.from_user
        && let Ok(said) = serde_json::from_str::<Said>(&signal.payload)
    {
        return format!("The user says: {}", said.text);
    }
    format!(
        "Signal {} ({}, from {}, {}): {}",
        signal.kind,
        signal.signal_type,
        signal.source,
        signal.urgency.as_str(),
        signal.payload
    )
}

/// What a signal does beyond being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// Nothing.
    Read,
    /// Calls that have not begun are not run, and an answer does not end the goal before it is read.
    Supersede,
    /// The goal ends.
    Stop,
}

/// The force of a signal: a critical interrupt stops, other critical and high ones supersede.
#[must_use]
pub fn force(signal: &Signal) -> Force {
    match signal.urgency {
        Urgency::Critical if signal.kind == "interrupt" => Force::Stop,
        Urgency::Critical | Urgency::High => Force::Supersede,
        Urgency::Normal | Urgency::Low => Force::Read,
    }
}
