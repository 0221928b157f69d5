//! From events to blocks: compact JSON text, the same bytes for the same log.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::arguments::object_text;
use crate::wire::message::{
    AssistantBlock, AssistantPart, Block, CallBlock, HeadBlock, Part, RecordedPart, ResultBlock, Text, ToolResult,
    ToolSpec, UserBlock,
};
use crate::wire::policy::Config;

/// A block as JSON text. A block holds nothing that cannot be written, so the empty text never occurs.
#[must_use]
pub fn block_text(block: &Block<'_>) -> Box<str> {
    serde_json::to_string(block).unwrap_or_default().into_boxed_str()
}

/// Slots 1 and 2 and these tools, in an order that does not depend on how they were given.
#[must_use]
pub fn head_block(config: &Config, mut tools: Vec<ToolSpec>) -> HeadBlock {
    tools.sort_by(|left, right| left.name.cmp(&right.name));
    HeadBlock { system_stable: config.system.clone(), system_knowledge: config.preload.join("\n\n"), tools }
}

/// The goal with its criteria: `turns[0]`, or a later goal.
#[must_use]
pub fn goal_parts(goal: &[Part], criteria: &[String]) -> Vec<Part> {
    let mut parts = goal.to_vec();
    if !criteria.is_empty() {
        let mut text = String::from("Criteria:");
        for criterion in criteria {
            text.push_str("\n- ");
            text.push_str(criterion);
        }
        parts.push(Part::Text(Text { text }));
    }
    parts
}

/// A user-side block.
#[must_use]
pub fn user_block(parts: &[Part]) -> Box<str> {
    block_text(&Block::User(UserBlock { parts: Cow::Borrowed(parts) }))
}

/// The model's reply as a block. Of an incomplete one only the text stays.
#[must_use]
pub fn assistant_block(parts: &[RecordedPart], complete: bool, dialect: &str, model: &str) -> Box<str> {
    let parts = parts.iter().filter_map(assistant_part);
    let parts = parts.filter(|part| complete || matches!(part, AssistantPart::Text(_))).collect();
    block_text(&Block::Assistant(AssistantBlock {
        parts,
        dialect: Cow::Borrowed(dialect),
        model: Cow::Borrowed(model),
        rebased: false,
    }))
}

/// A part as it is sent back; an empty text says nothing and some providers refuse it.
fn assistant_part(part: &RecordedPart) -> Option<AssistantPart<'_>> {
    match part {
        RecordedPart::Text(text) if text.text.is_empty() => None,
        RecordedPart::Text(text) => Some(AssistantPart::Text(Cow::Borrowed(text))),
        RecordedPart::Thinking(thinking) => Some(AssistantPart::Thinking(Cow::Borrowed(thinking))),
        RecordedPart::Opaque(opaque) => Some(AssistantPart::Opaque(Cow::Borrowed(opaque))),
        RecordedPart::Call(call) => Some(AssistantPart::Call(CallBlock {
            id: Cow::Borrowed(&call.id),
            name: Cow::Borrowed(&call.name),
            args_text: object_text(&call.args_text),
        })),
    }
}

/// A reply that stands behind another prefix than the one it was given to, if that matters to any of its parts.
#[must_use]
pub fn rebased(text: &str) -> Option<Box<str>> {
    // Most replies have no artefact; what says otherwise within a text costs only a look.
    if !text.contains(r#""type":"opaque""#) && !text.contains(r#""type":"thinking""#) {
        return None;
    }
    let Ok(Block::Assistant(mut reply)) = serde_json::from_str::<Block<'static>>(text) else { return None };
    reply.rebased = true;
    Some(block_text(&Block::Assistant(reply)))
}

/// A call's result as a block.
#[must_use]
pub fn result_block(call_id: &str, name: &str, result: &ToolResult) -> Box<str> {
    block_text(&Block::Result(ResultBlock {
        call_id: Cow::Borrowed(call_id),
        name: Cow::Borrowed(name),
        parts: Cow::Borrowed(&result.parts),
        is_error: !result.error_kind.is_empty(),
    }))
}
