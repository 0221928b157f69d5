//! What is kept of a block that leaves: lines for the digest, values for the ledger. All of it is taken word for word.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::draft::Piece;
use super::ledger;
use super::words::line;
use crate::wire::message::{AssistantBlock, AssistantPart, Block, Part, ResultBlock};
use crate::wire::task::{Digest, Line, LineKind, Role};

/// Characters of a line that is not the user's.
const SHORT: usize = 140;

/// Characters of a user's sentence that is kept whole.
const SENTENCE: usize = 600;

/// Words that make a sentence of the user's a demand. A sentence that is taken for one without need costs a line.
const DEMANDS: &[&str] = &[
    "must",
    "never",
    "always",
    "only",
    "not",
    "don't",
    "dont",
    "cannot",
    "can't",
    "without",
    "avoid",
    "prefer",
    "ensure",
    "require",
    "requires",
    "required",
    "should",
    "shall",
    "need",
    "needs",
    "no",
    "remember",
    "important",
    "limit",
    "budget",
    "deadline",
    "instead",
    "unless",
    "except",
    "keep",
    "make",
    "use",
    "want",
    "please",
    "nicht",
    "nie",
    "immer",
    "nur",
    "kein",
    "keine",
    "muss",
    "müssen",
    "soll",
    "bitte",
    "ohne",
    "jamais",
    "toujours",
    "doit",
    "sans",
    "nunca",
    "siempre",
    "debe",
    "sin",
    "solo",
];

/// The same in scripts that do not part words by spaces.
const SIGNS: &[&str] =
    &["必须", "不要", "不能", "禁止", "务必", "只能", "请", "一定", "ない", "必ず", "してください", "마세요", "반드시"];

/// Everything of a block that leaves.
pub(super) fn piece(digest: &mut Digest, piece: &Piece, labels: &[&str]) {
    let seq = piece.source.seq;
    match &piece.block {
        Block::User(user) if piece.source.role == Role::Goal => self::user(digest, &user.parts, seq),
        Block::Assistant(reply) => said(digest, reply, seq),
        Block::Result(result) => came_to(digest, result, seq),
        Block::User(_) | Block::Head(_) => {}
    }
    values(digest, piece, labels);
}

/// The values of a block that leaves or is shortened.
pub(super) fn values(digest: &mut Digest, piece: &Piece, labels: &[&str]) {
    let seq = piece.source.seq;
    match &piece.block {
        Block::Assistant(reply) => {
            for part in &reply.parts {
                match part {
                    AssistantPart::Call(call) => ledger::arguments(digest, &call.args_text, seq),
                    AssistantPart::Text(text) => ledger::text(digest, &text.text, seq),
                    AssistantPart::Thinking(_) | AssistantPart::Opaque(_) => {}
                }
            }
        }
        Block::Result(result) => {
            let content = texts(&result.parts);
            // What was shortened before has given its values already.
            if !content.contains("recall(\"") {
                ledger::result(digest, &content, labels, seq);
            }
        }
        Block::User(user) => ledger::text(digest, &texts(&user.parts), seq),
        Block::Head(_) => {}
    }
}

/// What the user said, sentence by sentence: demands apart from the rest.
pub(super) fn user(digest: &mut Digest, parts: &[Part], seq: u64) {
    for sentence in sentences(&texts(parts)) {
        let kind = if is_demand(&sentence) { LineKind::Constraint } else { LineKind::Said };
        add(digest, kind, sentence, seq);
    }
}

fn said(digest: &mut Digest, reply: &AssistantBlock<'_>, seq: u64) {
    let texts = reply.parts.iter().filter_map(|part| match part {
        AssistantPart::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    let text = line(&texts.collect::<Vec<_>>().join(" "), SHORT);
    if !text.is_empty() {
        add(digest, LineKind::Decision, text, seq);
    }
}

/// The last result of each tool, and what failed.
fn came_to(digest: &mut Digest, result: &ResultBlock<'_>, seq: u64) {
    let kind = if result.is_error { LineKind::Failed } else { LineKind::Result };
    let begin = format!("{}: ", result.name);
    let text = format!("{begin}{}", line(&texts(&result.parts), SHORT));
    if kind == LineKind::Result {
        digest.lines.retain(|line| line.kind != LineKind::Result || !line.text.starts_with(&begin));
    }
    add(digest, kind, text, seq);
}

fn add(digest: &mut Digest, kind: LineKind, text: String, seq: u64) {
    digest.lines.retain(|line| line.kind != kind || line.text != text);
    digest.lines.push(Line { kind, text, seq });
}

/// The texts of content.
fn texts(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The sentences of a text, each as it was written; of a very long one the beginning.
fn sentences(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut begin = 0;
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let after = at.saturating_add(letter.len_utf8());
        let next = letters.peek().map(|(_, next)| *next);
        let ends = match letter {
            '\n' | '。' | '！' | '？' => true,
            '.' | '!' | '?' => next.is_none_or(char::is_whitespace),
            _ => false,
        };
        if ends || next.is_none() {
            let sentence = text.get(begin..after).unwrap_or_default().trim();
            if !sentence.is_empty() {
                out.push(super::words::head(sentence, SENTENCE).to_owned());
            }
            begin = after;
        }
    }
    out
}

fn is_demand(sentence: &str) -> bool {
    let mut words = sentence.split(|letter: char| !(letter.is_alphanumeric() || letter == '\'' || letter == '’'));
    words.any(|word| DEMANDS.contains(&word.to_lowercase().replace('’', "'").as_str()))
        || SIGNS.iter().any(|sign| sentence.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::{is_demand, sentences};

    #[test]
    fn sentences_are_taken_as_they_were_written() {
        let text = "Book it for 3.50 USD. Never before 11am!\n也不要靠窗。OK";
        assert_eq!(sentences(text), ["Book it for 3.50 USD.", "Never before 11am!", "也不要靠窗。", "OK"]);
    }

    #[test]
    fn demands_are_told_from_other_sentences() {
        let demands = ["You must not fly.", "Please don’t.", "也不要靠窗。", "Bitte ohne Fleisch."];
        let others = ["My name is Mia Li.", "That works for me, thanks."];
        assert_eq!((demands.map(is_demand), others.map(is_demand)), ([true; 4], [false; 2]));
    }
}
