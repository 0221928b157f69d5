//! The kernel of deepstrike: one deterministic state machine that cannot do I/O.
//!
//! `Input` → *decide* → `Event` → *evolve* → `State` → *pending* → `Effect`. The events are the session log and
//! replay is their fold; what is owed to the world is a view of the state. There is no clock, file, thread,
//! environment or random number here, and `no_std` lets the compiler prove it: time is an argument, and what needs
//! more is a pure function behind a trait that the binding hands in.
#![no_std]

extern crate alloc;

#[macro_use]
pub mod wire;

pub mod context;
pub mod curate;
mod fault;
pub mod governance;
mod kernel;
pub mod meta;
pub mod run;
pub mod signals;

pub use context::weigh::Tokens;
pub use fault::{Corrupt, Rejected};
pub use kernel::Kernel;
pub use wire::record::Record;

/// Number of a record; they count from 0 without gaps. Also the id of an effect.
pub type Seq = u64;

/// Milliseconds since the epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub i64);

/// Version of the log's words, written into `Started` and `Resumed`.
pub const FORMAT: u64 = 1;

/// Version of the rendering: digests are compared only between equal ones.
pub const RENDERER: u64 = 3;
