//! What crosses the boundary and what stands in the log. Every struct has a twin in `python/deepstrike/wire`.
//!
//! Both languages write the same bytes: same names, same field order, the tag `type` first, defaults left out.

#[macro_use]
mod tagged;
#[macro_use]
mod words;

pub mod agents;
pub mod curation;
pub mod effect;
pub mod event;
pub mod input;
pub mod message;
pub mod policy;
pub mod record;
pub mod signal;
pub mod strict;
pub mod task;

/// Whether a field has its default and is left out.
pub(crate) fn plain<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
