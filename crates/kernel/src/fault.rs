//! What can go wrong: an input that is not taken, a log that does not fold.

use alloc::string::String;

use crate::wire::event::Event;

/// An input was not taken. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// It answers an effect that is no longer owed; drop it.
    #[error("{input} answers effect {effect}, which is not owed (any more)")]
    Stale {
        /// The input's tag.
        input: &'static str,
        /// The effect it names.
        effect: u64,
    },
    /// It is not JSON, has not the shape, or says something impossible.
    #[error("invalid input: {0}")]
    Invalid(String),
    /// The life cycle has no place for it now.
    #[error("{input} is not possible while {phase}: {why}")]
    Refused {
        /// The phase's name.
        phase: &'static str,
        /// The input's tag.
        input: &'static str,
        /// The reason and the remedy.
        why: &'static str,
    },
    /// The kernel contradicts itself; drop it and fold the log again.
    #[error("the kernel's own record does not fold, drop this kernel and replay the log: {0}")]
    Broken(Corrupt),
}

/// A log that does not fold. It stays untouched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Corrupt {
    /// The record is no record.
    #[error("record {seq} is not readable: {why}")]
    Unreadable {
        /// The seq that was due.
        seq: u64,
        /// What the reader says.
        why: String,
    },
    /// A record is missing or doubled.
    #[error("record {expected} was due, record {found} came")]
    Gap {
        /// The seq that was due.
        expected: u64,
        /// The seq that came.
        found: u64,
    },
    /// A record of a kind that is not known here, and that must not be skipped.
    #[error("record {seq} is a {kind:?}, which this version does not know; the log was written by format {format}")]
    UnknownKind {
        /// Its seq.
        seq: u64,
        /// Its kind.
        kind: String,
        /// The `format` in the log's last Started or Resumed; 0 before the first.
        format: u64,
    },
    /// The log was written by a newer version.
    #[error("record {seq} says format {format}, this version reads up to {known}; use a newer deepstrike")]
    Newer {
        /// Its seq.
        seq: u64,
        /// The log's format.
        format: u64,
        /// Ours.
        known: u64,
    },
    /// The prompt as rendered here is not the one that the model answered.
    #[error("record {seq} answers the prompt {recorded}, but the log folds to {rendered}")]
    Digest {
        /// Its seq.
        seq: u64,
        /// The digest in the record.
        recorded: String,
        /// The digest of the fold.
        rendered: String,
    },
    /// The record cannot follow the ones before it.
    #[error("record {seq} ({kind}) cannot stand here: {why}")]
    Order {
        /// Its seq.
        seq: u64,
        /// Its kind.
        kind: &'static str,
        /// Why.
        why: &'static str,
    },
}

impl Corrupt {
    pub(crate) fn order(seq: u64, event: &Event, why: &'static str) -> Self {
        Self::Order { seq, kind: event.tag(), why }
    }
}
