//! Renew: only the task state, the digest and the newest turn stay; of that turn, in the end, what fits. A goal that
//! nothing stands before any more opens the epoch.

use super::collapse::take_turns;
use super::newest::shorten_newest;
use super::{Draft, Strategy};

/// See the module.
pub(super) const RENEW: Strategy = Strategy { name: "renew", apply };

fn apply(draft: &mut Draft<'_>) {
    take_turns(draft, 0);
    draft.open_with_goal();
    if !draft.is_light() {
        shorten_newest(draft);
    }
}
