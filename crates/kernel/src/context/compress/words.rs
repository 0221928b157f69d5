//! The words that stand for what was left out.

use alloc::format;
use alloc::string::String;

/// How a record is called in `recall`.
#[must_use]
pub(super) fn reference(seq: u64) -> String {
    format!("{seq}")
}

/// How all records from one to another are called in `recall`.
#[must_use]
pub fn span(from: u64, to: u64) -> String {
    if from == to { reference(from) } else { format!("{from}-{to}") }
}

/// The beginning and the end of a text, and what was left out of its middle. None where that is not much shorter.
#[must_use]
pub(super) fn shortened(text: &str, begin: usize, end: usize, seq: u64) -> Option<String> {
    let all = text.chars().count();
    let kept = begin.saturating_add(end);
    if all <= kept.saturating_mul(2).max(200) {
        return None;
    }
    let head = head(text, begin);
    let tail = tail(text, end);
    let missing = all.saturating_sub(kept);
    Some(format!("{head}\n[… {missing} characters left out; recall(\"{}\") …]\n{tail}", reference(seq)))
}

/// The first characters of a text.
#[must_use]
pub(super) fn head(text: &str, characters: usize) -> &str {
    let end = text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at);
    text.split_at(end).0
}

/// The last characters of a text.
#[must_use]
pub(super) fn tail(text: &str, characters: usize) -> &str {
    let Some(before) = characters.checked_sub(1) else { return "" };
    let start = text.char_indices().rev().nth(before).map_or(0, |(at, _)| at);
    text.split_at(start).1
}

/// A text on one line, cut to so many characters.
#[must_use]
pub(super) fn line(text: &str, characters: usize) -> String {
    let mut out = String::new();
    let mut left = characters;
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
            left = left.saturating_sub(1);
        }
        let part = head(word, left);
        out.push_str(part);
        left = left.saturating_sub(part.chars().count());
        if left == 0 {
            out.push('…');
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{line, shortened};

    #[test]
    fn a_text_is_cut_between_characters_and_says_what_is_missing() {
        let text = "é🛡中".repeat(200);
        let short = shortened(&text, 2, 1, 7).unwrap_or_default();
        assert_eq!(short, "é🛡\n[… 597 characters left out; recall(\"7\") …]\n中");
        assert_eq!(shortened("short", 2, 1, 7), None);
    }

    #[test]
    fn a_line_has_no_break_and_ends_where_it_was_cut() {
        assert_eq!([line(" a\n b ", 9), line("abc def", 5)], ["a b", "abc d…"]);
    }
}
