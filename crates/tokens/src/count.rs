//! Counting in windows, so that time and memory stay linear on any text.
//!
//! A tokenizer first splits a text into pieces, then merges the bytes of each. Both may take more than linear time on
//! odd text (one piece of ten megabytes, odd white space). So a long text is cut where a piece is known to end; where
//! there is no such place, at a token that two overlapping windows agree on: merging is decided by neighbours, so
//! tokens on which both sides agree are those of the whole text.

use tiktoken::CoreBpe;

/// The longest text that is counted in one go, in bytes.
const WINDOW: usize = 4096;
/// What two windows share where a text has no natural cut, in bytes; the longest token has 128.
const OVERLAP: usize = 768;
/// How much of the shared part both windows must tokenize alike.
const AGREEMENT: usize = 384;
/// Added where they do not agree; it is more than a cut can hide.
const SLACK: u64 = 64;

/// Tokens of `text`, never below those that `bpe` gives the text as a whole.
pub(crate) fn count_linear(bpe: &CoreBpe, text: &str) -> u64 {
    let mut total: u64 = 0;
    let mut rest = text;
    while rest.len() > WINDOW {
        let (window, _) = rest.split_at(rest.floor_char_boundary(WINDOW));
        let (used, tokens) = match natural_cut(rest, window) {
            Some(cut) => (cut, None),
            None => seam(bpe, rest, window),
        };
        let (head, tail) = rest.split_at(used);
        total = total.saturating_add(tokens.unwrap_or_else(|| bpe.count(head) as u64));
        rest = tail;
    }
    total.saturating_add(bpe.count(rest) as u64)
}

/// The last place in the second half of `window` where every splitter ends a piece, whatever surrounds it: behind a
/// letter or digit, before white space or a CJK full stop or comma. Offset in bytes.
fn natural_cut(rest: &str, window: &str) -> Option<usize> {
    let half = window.len() / 2;
    let next = rest.split_at(window.len()).1.chars().next();
    let mut after = next;
    for (at, current) in window.char_indices().rev() {
        if at < half {
            return None;
        }
        if ends_word(current) && after.is_some_and(begins_gap) {
            return at.checked_add(current.len_utf8());
        }
        after = Some(current);
    }
    None
}

fn ends_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, 'ぁ'..='ゖ' | 'ァ'..='ヺ' | '\u{4e00}'..='\u{9fa5}' | '가'..='힣')
}

fn begins_gap(c: char) -> bool {
    c.is_whitespace() || matches!(c, '。' | '、' | '，')
}

/// Cuts where no piece is known to end: `(bytes used, their tokens)`.
fn seam(bpe: &CoreBpe, rest: &str, window: &str) -> (usize, Option<u64>) {
    let tokens = bpe.encode(window);
    agreed(bpe, rest, window, &tokens)
        .unwrap_or_else(|| (window.len(), Some((tokens.len() as u64).saturating_add(SLACK))))
}

/// The token boundary, about `OVERLAP` bytes before the window's end, from which on a fresh start gives the same tokens.
fn agreed(bpe: &CoreBpe, rest: &str, window: &str, tokens: &[u32]) -> Option<(usize, Option<u64>)> {
    let (kept, cut) = boundary(bpe, window, tokens)?;
    let until = rest.floor_char_boundary(window.len().saturating_add(OVERLAP));
    let fresh = bpe.encode(rest.get(cut..until)?);
    let alike: Vec<u32> = tokens.iter().skip(kept).zip(&fresh).take_while(|(a, b)| a == b).map(|(a, _)| *a).collect();
    (bpe.decode(&alike).len() >= AGREEMENT).then_some((cut, Some(kept as u64)))
}

/// The last token boundary at least `OVERLAP` bytes before the window's end at which a piece may begin:
/// `(tokens before it, its offset)`.
fn boundary(bpe: &CoreBpe, window: &str, tokens: &[u32]) -> Option<(usize, usize)> {
    let mut offset = window.len();
    for (index, token) in tokens.iter().enumerate().rev() {
        offset = offset.checked_sub(bpe.decode(&[*token]).len())?;
        if offset.saturating_add(OVERLAP) <= window.len() && may_begin(window, offset) {
            return (offset > 0).then_some((index, offset));
        }
    }
    None
}

/// False inside a character, and inside digits that tokens may split within a group of three: a start there would
/// group all that follow differently.
fn may_begin(window: &str, offset: usize) -> bool {
    let before = window.get(..offset).and_then(|head| head.chars().next_back());
    before.is_some_and(|c| c.is_ascii() || !c.is_numeric())
}
