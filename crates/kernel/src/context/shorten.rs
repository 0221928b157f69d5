//! Text in a number of tokens: its beginning and its end, and where the rest can be read.

use alloc::format;
use alloc::string::String;

use super::weigh::Scale;

/// How often a text is made shorter when it turns out heavier than its room.
const TRIES: usize = 6;

/// Characters that stay in any case: they say what the text is.
const LEAST: usize = 24;

/// The text on one line in at most `room` tokens, as far as the mark allows it; none where it fits as it is. `seq` is the
/// record that has all of it.
#[must_use]
pub fn to_fit(text: &str, room: u64, seq: u64, scale: &Scale<'_>) -> Option<String> {
    let weight = scale.text(text);
    if weight <= room {
        return None;
    }
    let all = text.chars().count();
    let mut kept = part(all, room, weight);
    for _ in 0..TRIES {
        if kept < LEAST {
            break;
        }
        let short = around(text, all, kept, seq);
        if scale.text(&short) <= room {
            return Some(short);
        }
        kept = kept.saturating_sub(kept.div_ceil(3));
    }
    Some(around(text, all, LEAST, seq))
}

/// Three quarters of the characters that stay are from the beginning.
fn around(text: &str, all: usize, kept: usize, seq: u64) -> String {
    let end = kept / 4;
    let begin = kept.saturating_sub(end);
    let head: String = text.chars().take(begin).collect();
    let tail: String = text.chars().skip(all.saturating_sub(end)).collect();
    format!("{head}[… {} characters left out; recall(\"{seq}\") …]{tail}", all.saturating_sub(kept))
}

fn part(whole: usize, room: u64, weight: u64) -> usize {
    let product = u128::try_from(whole).unwrap_or(u128::MAX).saturating_mul(u128::from(room));
    usize::try_from(product.checked_div(u128::from(weight)).unwrap_or(0)).unwrap_or(whole)
}
