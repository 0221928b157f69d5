//! The run: the life cycle, what is decided, what is remembered, what is owed.

pub(crate) mod begin;
pub mod calls;
pub mod closing;
pub(crate) mod decide;
pub(crate) mod evolve;
pub(crate) mod follow;
pub mod limits;
pub mod outcome;
pub mod pending;
pub mod phase;
pub(crate) mod planning;
pub(crate) mod press;
pub mod resolve;
pub mod state;
pub(crate) mod stuck;
pub(crate) mod summing;
