//! Collapse: the oldest turns give way to what the digest says of them.

use super::{Draft, Strategy};
use crate::wire::task::Role;

/// See the module.
pub(super) const COLLAPSE: Strategy = Strategy { name: "collapse", apply };

/// Pieces that stay beside the newest turn, so that the model sees how it came to where it is.
const KEPT: usize = 4;

fn apply(draft: &mut Draft<'_>) {
    take_turns(draft, KEPT);
}

/// Takes whole turns from the oldest on, until the draft is light or only `kept` pieces stand before the newest turn.
pub(super) fn take_turns(draft: &mut Draft<'_>, kept: usize) {
    let newest = draft.newest();
    let last = newest.saturating_sub(kept);
    let excess = draft.excess();
    let mut freed = 0_u64;
    let mut count = 0;
    while count < last && freed < excess {
        let end = turn_end(draft, count);
        if end > newest {
            break;
        }
        let taken = draft.pieces.get(count..end).unwrap_or_default();
        freed = taken.iter().fold(freed, |sum, piece| sum.saturating_add(piece.source.tokens));
        count = end;
    }
    if count > 0 {
        draft.take_away(count);
    }
}

/// Where the turn that begins at `at` ends: before the next reply or goal, and what is told with that.
fn turn_end(draft: &Draft<'_>, at: usize) -> usize {
    let after = draft.pieces.iter().skip(at.saturating_add(1));
    let within = after.take_while(|piece| match piece.source.role {
        Role::Result => true,
        Role::Delta => !draft.is_told_with_goal(piece),
        Role::Head | Role::State | Role::Goal | Role::Reply => false,
    });
    at.saturating_add(1).saturating_add(within.count())
}
