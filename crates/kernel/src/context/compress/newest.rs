//! The newest turn, when it alone is too much: its largest blocks give way first, and keep as much as fits.

use alloc::vec::Vec;

use super::snip::snipped;
use super::words::shortened;
use super::{Draft, elide};
use crate::wire::message::{Block, Part, ResultBlock, Text};

/// Characters at the ends of a result, from generous to meagre.
const STEPS: &[(usize, usize)] = &[(4_000, 1_500), (2_000, 700), (1_000, 400), (500, 200), (200, 80)];

pub(super) fn shorten_newest(draft: &mut Draft<'_>) {
    for &(begin, end) in STEPS {
        for at in by_weight(draft) {
            if draft.is_light() {
                return;
            }
            if let Some(block) = shorter(draft, at, begin, end) {
                draft.shorten(at, block);
            }
        }
    }
}

/// The pieces of the newest turn, the heaviest first.
fn by_weight(draft: &Draft<'_>) -> Vec<usize> {
    let mut places: Vec<usize> = (draft.newest()..draft.pieces.len()).collect();
    let tokens = |at: &usize| draft.pieces.get(*at).map_or(0, |piece| piece.source.tokens);
    places.sort_by_key(|at| core::cmp::Reverse(tokens(at)));
    places
}

fn shorter(draft: &Draft<'_>, at: usize, begin: usize, end: usize) -> Option<Block<'static>> {
    let piece = draft.pieces.get(at)?;
    let seq = piece.source.seq;
    match &piece.block {
        Block::Result(result) => shorter_result(result, begin, end, seq, piece.source.tokens),
        Block::Assistant(reply) => {
            elide::without_large_arguments(reply, seq).or_else(|| snipped(reply, begin, end, seq))
        }
        Block::Head(_) | Block::User(_) => None,
    }
}

/// The ends of the result's text; of one that is no text, a reference.
fn shorter_result(
    result: &ResultBlock<'static>,
    begin: usize,
    end: usize,
    seq: u64,
    tokens: u64,
) -> Option<Block<'static>> {
    let [Part::Text(text)] = &*result.parts else { return Some(elide::left_out(result, begin, seq, tokens)) };
    let text = shortened(&text.text, begin, end, seq)?;
    let parts = alloc::vec![Part::Text(Text { text })].into();
    Some(Block::Result(ResultBlock { parts, ..result.clone() }))
}
