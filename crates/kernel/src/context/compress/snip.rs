//! Snip: long texts of the model keep their beginning and end.

use alloc::borrow::Cow;

use super::words::shortened;
use super::{Draft, Strategy};
use crate::wire::message::{AssistantBlock, AssistantPart, Block, Text};

/// See the module.
pub(super) const SNIP: Strategy = Strategy { name: "snip", apply };

/// Characters that stay at both ends.
const BEGIN: usize = 600;
const END: usize = 200;

fn apply(draft: &mut Draft<'_>) {
    for at in 0..draft.newest() {
        if draft.is_light() {
            return;
        }
        let Some(piece) = draft.pieces.get(at) else { return };
        if let Block::Assistant(reply) = &piece.block
            && let Some(block) = snipped(reply, BEGIN, END, piece.source.seq)
        {
            draft.shorten(at, block);
        }
    }
}

/// The reply with its long texts shortened; none where it has none.
pub(super) fn snipped(reply: &AssistantBlock<'static>, begin: usize, end: usize, seq: u64) -> Option<Block<'static>> {
    let mut changed = false;
    let mut reply = reply.clone();
    for part in &mut reply.parts {
        if let AssistantPart::Text(text) = part
            && let Some(short) = shortened(&text.text, begin, end, seq)
        {
            (*part, changed) = (AssistantPart::Text(Cow::Owned(Text { text: short })), true);
        }
    }
    changed.then_some(Block::Assistant(reply))
}
