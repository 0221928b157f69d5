//! Renew: only the task state, the digest and the newest turn stay; of that turn, in the end, what fits.

use super::collapse::take_turns;
use super::newest::shorten_newest;
use super::{Draft, Strategy};

/// See the module.
pub(super) const RENEW: Strategy = Strategy { name: "renew", apply };

fn apply(draft: &mut Draft<'_>) {
    take_turns(draft, 0);
    if !draft.is_light() {
        shorten_newest(draft);
    }
}
