//! What is kept of a block that leaves: lines for the digest, values for the ledger. All of it is taken word for word.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::demands::is_demand;
use super::draft::Piece;
use super::gathered::Gathered;
use super::ledger;
use super::words::{line, reference};
use crate::wire::message::{AssistantBlock, AssistantPart, Block, Part, ResultBlock};
use crate::wire::task::{Line, LineKind, Role};

/// Characters of a line that is not the user's.
const SHORT: usize = 140;

/// Everything of a block that leaves.
pub(super) fn piece(gathered: &mut Gathered, piece: &Piece, labels: &[&str]) {
    let seq = piece.source.seq;
    match &piece.block {
        Block::User(user) if piece.source.role == Role::Goal => self::user(gathered, &user.parts, seq),
        Block::Assistant(reply) => said(gathered, reply, seq),
        Block::Result(result) => came_to(gathered, result, seq),
        Block::User(_) | Block::Head(_) => {}
    }
    values(gathered, piece, labels);
}

/// The values of a block that leaves or is shortened.
pub(super) fn values(gathered: &mut Gathered, piece: &Piece, labels: &[&str]) {
    let seq = piece.source.seq;
    match &piece.block {
        Block::Assistant(reply) => {
            for part in &reply.parts {
                match part {
                    AssistantPart::Call(call) => ledger::arguments(gathered, &call.args_text, seq),
                    AssistantPart::Text(text) => ledger::text(gathered, &text.text, seq),
                    AssistantPart::Thinking(_) | AssistantPart::Opaque(_) => {}
                }
            }
        }
        Block::Result(result) => {
            let content = texts(&result.parts);
            // What was shortened before has given its values already.
            if !content.contains("recall(\"") {
                ledger::result(gathered, &content, labels, seq);
            }
        }
        Block::User(user) => ledger::text(gathered, &texts(&user.parts), seq),
        Block::Head(_) => {}
    }
}

/// What the user said, whole; an image or a file in it as a word that says so.
pub(super) fn user(gathered: &mut Gathered, parts: &[Part], seq: u64) {
    let parts: Vec<String> = parts.iter().map(|part| told(part, seq)).collect();
    let text = String::from(parts.join("\n").trim());
    if !text.is_empty() {
        let kind = if is_demand(&text) { LineKind::Constraint } else { LineKind::Said };
        gathered.line(Line { kind, text, seq });
    }
}

/// What was said of an earlier attempt, line by line: none of them passes for a section of the digest.
pub(super) fn feedback(gathered: &mut Gathered, piece: &Piece) {
    let Block::User(user) = &piece.block else { return };
    for text in texts(&user.parts).lines().map(|line| line.trim().trim_start_matches("- ")) {
        if !text.is_empty() {
            gathered.line(Line { kind: LineKind::Feedback, text: text.into(), seq: piece.source.seq });
        }
    }
}

/// The values that the user named.
pub(super) fn named(gathered: &mut Gathered, parts: &[Part], seq: u64) {
    ledger::text(gathered, &texts(parts), seq);
}

/// A part in the words of the digest.
pub(super) fn told(part: &Part, seq: u64) -> String {
    let (what, which) = match part {
        Part::Text(text) => return text.text.clone(),
        Part::Image(image) if image.url.is_empty() => ("image", &image.media_type),
        Part::Image(image) => ("image", &image.url),
        Part::File(file) if file.name.is_empty() => ("file", &file.media_type),
        Part::File(file) => ("file", &file.name),
    };
    format!("[{what} {}; recall(\"{}\")]", line(which, SHORT), reference(seq))
}

fn said(gathered: &mut Gathered, reply: &AssistantBlock<'_>, seq: u64) {
    let texts = reply.parts.iter().filter_map(|part| match part {
        AssistantPart::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    let text = line(&texts.collect::<Vec<_>>().join(" "), SHORT);
    if !text.is_empty() {
        gathered.line(Line { kind: LineKind::Decision, text, seq });
    }
}

/// The last result of each tool, and what failed.
fn came_to(gathered: &mut Gathered, result: &ResultBlock<'_>, seq: u64) {
    let kind = if result.is_error { LineKind::Failed } else { LineKind::Result };
    let parts: Vec<String> = result.parts.iter().map(|part| told(part, seq)).collect();
    let text = format!("{}: {}", result.name, line(&parts.join(" "), SHORT));
    gathered.line(Line { kind, text, seq });
}

/// The texts of content.
fn texts(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
