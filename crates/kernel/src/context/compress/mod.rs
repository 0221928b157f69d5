//! Compression: an ordered list of ways to make the history smaller. One pass goes down the list until the prompt is at
//! the mark; what leaves the prompt stays in the log, under a reference that `recall` reads.

mod artefacts;
mod collapse;
pub mod digest;
mod draft;
mod elide;
mod harvest;
mod ledger;
mod newest;
mod parameters;
mod renew;
mod snip;
mod words;

use super::prompt::Prompt;
use super::task::Task;
use super::weigh::Scale;
use crate::wire::event::Compressed;

pub use draft::Draft;
pub use parameters::parameters;

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

/// Compresses the history until the prompt weighs `target` tokens by our own count, or as far as it goes. None where
/// that changes nothing. `labels` are the names of the tools' parameters: values under them are kept first.
#[must_use]
pub fn compress(prompt: &Prompt, task: &Task, target: u64, labels: &[&str], scale: &Scale<'_>) -> Option<Compressed> {
    let mut draft = Draft::of(prompt, task, target, labels, *scale)?;
    artefacts::drop_unbound(&mut draft);
    let mut stage = None;
    for strategy in LADDER {
        if draft.is_light() {
            break;
        }
        let before = draft.changes();
        (strategy.apply)(&mut draft);
        if draft.changes() > before {
            stage = Some(strategy.name);
        }
    }
    draft.finish(prompt, stage?)
}
