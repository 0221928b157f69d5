//! Compression: an ordered list of ways to make the history smaller. One pass goes down the list until the prompt is at
//! the mark; what leaves the prompt stays in the log, under a reference that `recall` reads.

mod artefacts;
mod collapse;
mod demands;
pub mod digest;
mod draft;
mod elide;
mod gathered;
mod harvest;
mod ledger;
mod newest;
mod parameters;
mod renew;
mod said;
mod sentences;
mod snip;
mod words;

use alloc::vec::Vec;

use super::prompt::Prompt;
use super::task::Task;
use super::weigh::Scale;
use crate::wire::event::Compressed;

pub use draft::Draft;
pub use parameters::parameters;
pub use words::span;

/// One way to make the history smaller: its name in the records, and what it does until the draft is light enough.
#[derive(Clone, Copy, Debug)]
pub struct Strategy {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub apply: fn(&mut Draft<'_>),
}

/// The strategies, the one that loses least first.
pub const LADDER: &[Strategy] = &[snip::SNIP, elide::ELIDE, collapse::COLLAPSE, renew::RENEW];

/// How light the prompt is to be, in tokens by our own count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goal {
    /// It is enough if it is no heavier.
    pub target: u64,
    /// Heavier than this it is of no use.
    pub most: u64,
    /// Tokens of the head, where the new epoch begins with another.
    pub head: Option<u64>,
}

/// Compresses the history until the prompt is light enough, or as far as it goes. None where that changes nothing.
/// `labels` are the names of the tools' parameters: values under them are kept first.
#[must_use]
pub fn compress(prompt: &Prompt, task: &Task, goal: Goal, labels: &[&str], scale: &Scale<'_>) -> Option<Compressed> {
    let mut draft = Draft::of(prompt, task, goal, labels, *scale)?;
    artefacts::drop_unbound(&mut draft);
    // A goal that `turns[0]` began with is the oldest of all turns.
    let mut stages: Vec<&str> = draft.supersede_opening().then_some(collapse::COLLAPSE.name).into_iter().collect();
    for strategy in LADDER {
        if draft.is_light() {
            break;
        }
        let before = draft.changes();
        (strategy.apply)(&mut draft);
        if draft.changes() > before && !stages.contains(&strategy.name) {
            stages.push(strategy.name);
        }
    }
    draft.finish(prompt, &stages)
}
