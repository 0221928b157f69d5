//! Elide: old results and large arguments give way to a reference.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec;

use super::words::{head, line, reference};
use super::{Draft, Strategy};
use crate::wire::message::{AssistantBlock, AssistantPart, Block, Part, ResultBlock, Text};

/// See the module.
pub(super) const ELIDE: Strategy = Strategy { name: "elide", apply };

/// Characters of a result that stay.
const SHOWN: usize = 80;

/// Bytes of arguments that are large.
const LARGE: usize = 800;

fn apply(draft: &mut Draft<'_>) {
    for at in 0..draft.newest() {
        if draft.is_light() {
            return;
        }
        let Some(piece) = draft.pieces.get(at) else { return };
        let (seq, tokens) = (piece.source.seq, piece.source.tokens);
        let block = match &piece.block {
            Block::Result(result) => Some(left_out(result, SHOWN, seq, tokens)),
            Block::Assistant(reply) => without_large_arguments(reply, seq),
            Block::Head(_) | Block::User(_) => None,
        };
        if let Some(block) = block {
            draft.shorten(at, block);
        }
    }
}

/// The result as its first characters and a reference.
pub(super) fn left_out(result: &ResultBlock<'static>, shown: usize, seq: u64, tokens: u64) -> Block<'static> {
    let texts = result.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    let begin = line(texts.collect::<vec::Vec<_>>().join(" ").as_str(), shown);
    let text = format!("{begin}\n[result left out, {tokens} tokens; recall(\"{}\")]", reference(seq));
    let parts = Cow::Owned(vec![Part::Text(Text { text })]);
    Block::Result(ResultBlock { parts, ..result.clone() })
}

/// The reply with large arguments shortened to an object that says so; none where it has none.
pub(super) fn without_large_arguments(reply: &AssistantBlock<'static>, seq: u64) -> Option<Block<'static>> {
    let mut changed = false;
    let mut reply = reply.clone();
    for part in &mut reply.parts {
        if let AssistantPart::Call(call) = part
            && call.args_text.len() > LARGE
        {
            (call.args_text, changed) = (Cow::Owned(shorter(&call.args_text, seq)), true);
        }
    }
    changed.then_some(Block::Assistant(reply))
}

fn shorter(arguments: &str, seq: u64) -> String {
    let begin = serde_json::to_string(head(arguments, LARGE / 4)).unwrap_or_default();
    let note = format!("recall(\\\"{}\\\")", reference(seq));
    format!("{{\"left_out\":\"{note}\",\"begins\":{begin}}}")
}
