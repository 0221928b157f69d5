//! Shortening a text to a number of tokens, from the middle.

use crate::vocabulary::Vocabulary;

/// A text that was shortened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clipped {
    /// Beginning, a line that says how much is missing, end.
    pub text: String,
    /// Tokens of the whole text.
    pub total: u64,
}

/// Shortens `text` to at most `limit` tokens of `model`; None if it fits as it is.
///
/// Two thirds of the room go to the beginning, one third to the end, cut on character boundaries. A limit too small for
/// the line between them leaves "…", one of 0 nothing.
#[must_use]
pub fn clip(text: &str, model: &str, limit: u64) -> Option<Clipped> {
    let vocabulary = Vocabulary::of(model);
    if vocabulary.at_most(text) <= limit {
        return None;
    }
    let total = vocabulary.count(text);
    (total > limit).then(|| Clipped { text: shorten(vocabulary, text, limit), total })
}

/// Joining may cost tokens that the parts alone do not show, so the room shrinks until the whole fits.
fn shorten(vocabulary: Vocabulary, text: &str, limit: u64) -> String {
    let mut room = limit.saturating_sub(vocabulary.count(&marker(text.len(), text.len())));
    while room > 0 {
        let shortened = around(vocabulary, text, room);
        let excess = vocabulary.count(&shortened).saturating_sub(limit);
        if excess == 0 {
            return shortened;
        }
        room = room.saturating_sub(excess);
    }
    last_resort(vocabulary, text, limit)
}

fn around(vocabulary: Vocabulary, text: &str, room: u64) -> String {
    let tail_room = room / 3;
    let head_room = room.saturating_sub(tail_room);
    let head_size = longest(text.len(), head_room, |size| vocabulary.count(head_and_rest(text, size).0));
    let (head, rest) = head_and_rest(text, head_size);
    let tail_size = longest(rest.len(), tail_room, |size| vocabulary.count(gap_and_tail(rest, size).1));
    let (gap, tail) = gap_and_tail(rest, tail_size);
    let missing = gap.chars().count();
    format!("{head}{}{tail}", marker(missing, text.chars().count()))
}

/// Splits behind at most `size` bytes.
fn head_and_rest(text: &str, size: usize) -> (&str, &str) {
    text.split_at(text.floor_char_boundary(size))
}

/// Splits before at most the last `size` bytes.
fn gap_and_tail(text: &str, size: usize) -> (&str, &str) {
    text.split_at(text.ceil_char_boundary(text.len().saturating_sub(size)))
}

fn marker(missing: usize, all: usize) -> String {
    format!("\n[… {missing} of {all} characters left out …]\n")
}

/// The line alone, else a sign that something is missing, else nothing.
fn last_resort(vocabulary: Vocabulary, text: &str, limit: u64) -> String {
    let all = text.chars().count();
    [marker(all, all), "…".to_owned()].into_iter().find(|line| vocabulary.count(line) <= limit).unwrap_or_default()
}

/// The greatest size in bytes, of `all`, whose `tokens` stay within `room`, to about one part in a hundred. It grows
/// from a size that surely fits, so that a short cut from a long text reads little of it.
fn longest(all: usize, room: u64, tokens: impl Fn(usize) -> u64) -> usize {
    let mut fits: usize = 0;
    let mut fails = all.saturating_add(1);
    let mut probe = usize::try_from(room).unwrap_or(all).min(all);
    while fits < probe && probe < fails {
        if tokens(probe) <= room {
            fits = probe;
        } else {
            fails = probe;
        }
        let unknown = fails.saturating_sub(fits);
        if unknown <= fits / 128 {
            break;
        }
        probe = fits.saturating_mul(2).max(1).min(fits.saturating_add(unknown / 2));
    }
    fits
}
