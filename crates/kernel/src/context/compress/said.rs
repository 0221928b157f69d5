//! The user's own words in the digest: whole, as long as they have room; what has none leaves a mark and its reference.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::demands::is_demand;
use super::sentences::sentences;
use super::words::reference;
use crate::context::weigh::Scale;
use crate::wire::task::{Line, LineKind};

/// Tokens of the mark before a line.
pub(super) const AROUND: u64 = 3;

/// Tokens that a line is not shortened below: rather some lines leave whole.
const LEAST: u64 = 48;

/// Tokens of the mark that stands for what was left out.
const MARK: u64 = 24;

/// Bytes at either end of a text in which its sentences are looked for.
const LOOKED_THROUGH: usize = 32 * 1024;

/// How often a line is made shorter when it turns out heavier than its share.
const TRIES: usize = 4;

/// What all these lines weigh.
pub(super) fn weight(lines: &[Line], scale: &Scale<'_>) -> u64 {
    lines.iter().fold(0, |sum, line| sum.saturating_add(scale.text(&line.text)).saturating_add(AROUND))
}

/// The lines that fit, in their order; what they weigh; and how many left.
pub(super) fn fitted(lines: &[Line], room: u64, scale: &Scale<'_>) -> (Vec<Line>, u64, u64) {
    let weights: Vec<u64> = lines.iter().map(|line| scale.text(&line.text).saturating_add(AROUND)).collect();
    let kept = chosen(lines, &weights, room);
    let left = u64::try_from(lines.len().saturating_sub(kept.len())).unwrap_or(u64::MAX);
    let share = share(weights.iter().enumerate().filter(|(at, _)| kept.contains(at)).map(|(_, weight)| *weight), room);
    let mut spent = 0_u64;
    let mut out = Vec::new();
    for ((at, line), weight) in lines.iter().enumerate().zip(&weights) {
        if !kept.contains(&at) {
            continue;
        }
        let (line, weight) =
            if *weight > share { shortened(line, *weight, share, scale) } else { (line.clone(), *weight) };
        spent = spent.saturating_add(weight);
        out.push(line);
    }
    (out, spent, left)
}

/// Which lines stay: all, where each has its least; else demands before others, the newest and the oldest by turns.
fn chosen(lines: &[Line], weights: &[u64], room: u64) -> BTreeSet<usize> {
    let mut kept = BTreeSet::new();
    let mut spent = 0_u64;
    for kind in [LineKind::Constraint, LineKind::Feedback, LineKind::Said] {
        let places = (0..).zip(lines).filter(|(_, line)| line.kind == kind).map(|(at, _)| at).collect();
        for at in by_turns(places) {
            let least = weights.get(at).map_or(0, |weight| (*weight).min(LEAST));
            if spent.saturating_add(least) <= room {
                spent = spent.saturating_add(least);
                kept.insert(at);
            }
        }
    }
    kept
}

/// The last, the first, the last but one, the second, and so on.
fn by_turns(places: Vec<usize>) -> Vec<usize> {
    let half = places.len() / 2;
    let (oldest, newest) = places.split_at(half);
    let mut out = Vec::with_capacity(places.len());
    let mut oldest = oldest.iter();
    for at in newest.iter().rev() {
        out.push(*at);
        out.extend(oldest.next());
    }
    out
}

/// The most that one line may weigh so that all fit: the short ones stay whole, the long ones share what is left.
fn share(weights: impl Iterator<Item = u64>, room: u64) -> u64 {
    let mut weights: Vec<u64> = weights.collect();
    weights.sort_unstable();
    let (mut left, mut others) = (room, u64::try_from(weights.len()).unwrap_or(u64::MAX));
    for weight in weights {
        let each = left.checked_div(others).unwrap_or(0);
        if weight > each {
            return each;
        }
        (left, others) = (left.saturating_sub(weight), others.saturating_sub(1));
    }
    u64::MAX
}

/// The line in so many tokens: its demands, its beginning and its end, and where the rest can be read.
fn shortened(line: &Line, weight: u64, share: u64, scale: &Scale<'_>) -> (Line, u64) {
    let rest = format!("[… recall(\"{}\")]", reference(line.seq));
    let whole = line.text.strip_suffix(&rest).unwrap_or(&line.text).trim_end();
    let (mut text, mut tokens) = (rest.clone(), MARK);
    let mut bytes = part(whole.len(), share.saturating_sub(MARK.saturating_add(AROUND)), weight);
    for _ in 0..TRIES {
        let picked = picked(whole, bytes);
        let told = if picked.is_empty() { rest.clone() } else { format!("{picked} {rest}") };
        let weight = scale.text(&told).saturating_add(AROUND);
        if weight <= share {
            (text, tokens) = (told, weight);
            break;
        }
        bytes = bytes.saturating_sub(bytes / 4);
    }
    (Line { text, ..*line }, tokens)
}

fn part(bytes: usize, tokens: u64, of: u64) -> usize {
    let bytes = u128::try_from(bytes).unwrap_or(u128::MAX).saturating_mul(u128::from(tokens));
    usize::try_from(bytes.checked_div(u128::from(of)).unwrap_or(0)).unwrap_or(usize::MAX)
}

/// The sentences that fit in so many bytes, as they were written, with a mark where one is missing between two.
fn picked(text: &str, bytes: usize) -> String {
    let sentences = ends(text);
    let demands = (0..).zip(&sentences).filter(|(_, sentence)| is_demand(sentence)).map(|(at, _)| at);
    let order: Vec<usize> = demands.chain(by_turns((0..sentences.len()).collect())).collect();
    let mut kept = BTreeSet::new();
    let mut left = bytes;
    for at in order {
        let size = sentences.get(at).map_or(0, |sentence| sentence.len().saturating_add(1));
        if !kept.contains(&at) && size <= left {
            left = left.saturating_sub(size);
            kept.insert(at);
        }
    }
    if kept.is_empty() {
        return text.split_at(text.floor_char_boundary(bytes)).0.into();
    }
    joined(&sentences, &kept)
}

/// The sentences of a text; of a very long one those of its beginning and its end.
fn ends(text: &str) -> Vec<&str> {
    if text.len() <= LOOKED_THROUGH.saturating_mul(2) {
        return sentences(text);
    }
    let begin = text.split_at(text.floor_char_boundary(LOOKED_THROUGH)).0;
    let end = text.split_at(text.ceil_char_boundary(text.len().saturating_sub(LOOKED_THROUGH))).1;
    let mut all = sentences(begin);
    all.pop();
    all.extend(sentences(end).into_iter().skip(1));
    all
}

fn joined(sentences: &[&str], kept: &BTreeSet<usize>) -> String {
    let mut out = String::new();
    let mut next = 0;
    for &at in kept {
        if !out.is_empty() {
            out.push_str(if at == next { " " } else { " […] " });
        }
        out.push_str(sentences.get(at).copied().unwrap_or_default());
        next = at.saturating_add(1);
    }
    out
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use super::{by_turns, fitted, share};
    use crate::context::weigh::{Scale, Tokens};
    use crate::wire::task::{Line, LineKind};

    const WHOLE: &str = "I begin here. And so on. And so on. […] Never on Mondays. […] Or so. Or so. Or so. That is all. \
                         [… recall(\"7\")]";

    /// A token for each byte.
    struct Bytes;

    impl Tokens for Bytes {
        fn count(&self, _: &str, text: &str) -> u64 {
            text.len() as u64
        }

        fn least(&self, _: &str, counted: u64) -> u64 {
            counted
        }
    }

    fn line(kind: LineKind, text: &str, seq: u64) -> Line {
        Line { kind, text: text.into(), seq }
    }

    #[test]
    fn short_lines_stay_whole_and_the_long_ones_share_what_is_left() {
        assert_eq!(share([5, 10, 100, 200].into_iter(), 115), 50);
        assert_eq!(share([5, 10].into_iter(), 15), u64::MAX);
        assert_eq!(by_turns((0..5).collect()), [4, 0, 3, 1, 2]);
    }

    #[test]
    fn a_line_that_is_too_long_keeps_its_demands_its_ends_and_the_way_to_the_rest() {
        let scale = Scale { tokens: &Bytes, model: "" };
        let text =
            format!("I begin here. {}Never on Mondays. {}That is all.", "And so on. ".repeat(30), "Or so. ".repeat(30));
        let lines = [line(LineKind::Said, "Hello.", 3), line(LineKind::Constraint, &text, 7)];
        let (kept, spent, left) = fitted(&lines, 130, &scale);
        let texts: Vec<&str> = kept.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["Hello.", WHOLE]);
        assert!(spent <= 130 && left == 0);
    }

    #[test]
    fn where_not_all_have_room_demands_stay_and_of_them_the_newest_and_the_oldest() {
        let scale = Scale { tokens: &Bytes, model: "" };
        let lines = (0..9).map(|n| {
            let kind = if n % 3 == 0 { LineKind::Said } else { LineKind::Constraint };
            line(kind, &format!("{n}{}", "x".repeat(60)), n)
        });
        let (kept, _, left) = fitted(&lines.collect::<Vec<_>>(), 200, &scale);
        assert_eq!((kept.iter().map(|line| line.seq).collect::<Vec<_>>(), left), (alloc::vec![1, 2, 7, 8], 5));
    }
}
