//! The kernel's promises, as sentences.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::arithmetic_side_effects,
    unreachable_pub,
    reason = "a test fails by panicking"
)]

mod agents;
mod compression;
mod contract;
mod curation;
mod governance;
mod layers;
mod limits;
mod log;
mod planning;
mod prompts;
mod questions;
mod random;
mod replies;
mod resume;
mod say;
mod signals;
mod skills;
mod stops;
mod stuck;
mod summaries;
mod table;
mod tools;
mod walk;
mod world;
