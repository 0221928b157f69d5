//! What a rewrite makes invalid: artefacts that are bound to what stood before them.

use super::Draft;
use crate::wire::message::{AssistantPart, Block};
use crate::wire::task::Role;

/// All artefacts that stay are marked: what a service binds to the prefix, its dialect leaves out. Replies of earlier
/// goals that called nothing lose their reasoning, which no service demands; those with calls keep it, which some do for
/// as long as the calls are there.
pub(super) fn drop_unbound(draft: &mut Draft<'_>) {
    let current = draft.pieces.iter().rposition(|piece| piece.source.role == Role::Goal).unwrap_or(0);
    for at in 0..draft.pieces.len() {
        let Some(Block::Assistant(reply)) = draft.pieces.get(at).map(|piece| &piece.block) else { continue };
        if !reply.parts.iter().any(is_artefact) {
            continue;
        }
        let mut reply = reply.clone();
        if at < current && !reply.parts.iter().any(is_call) {
            reply.parts.retain(|part| !is_artefact(part));
        } else {
            reply.rebased = true;
        }
        draft.lighten(at, Block::Assistant(reply));
    }
}

fn is_artefact(part: &AssistantPart<'_>) -> bool {
    matches!(part, AssistantPart::Thinking(_) | AssistantPart::Opaque(_))
}

fn is_call(part: &AssistantPart<'_>) -> bool {
    matches!(part, AssistantPart::Call(_))
}
