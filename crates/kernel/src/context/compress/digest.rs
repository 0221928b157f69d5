//! The digest: what is left of the turns that left the prompt, within its room.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::ledger;
use crate::context::weigh::Scale;
use crate::wire::task::{Digest, Line, LineKind, Value};

/// The parts of the digest, in the order in which they are told.
const SECTIONS: &[(LineKind, &str)] = &[
    (LineKind::Constraint, "The user demanded:"),
    (LineKind::Said, "The user said:"),
    (LineKind::Decision, "You said:"),
    (LineKind::Result, "Last results:"),
    (LineKind::Failed, "Failed:"),
];

/// What stands above a model's summary. Its lines are quoted: none of them passes for a section of ours.
const SUMMARY: &str = "Summary, written by a model, not word for word:";

/// The digest as the model reads it; empty before the first compression.
#[must_use]
pub fn text(digest: &Digest) -> String {
    if digest.passes == 0 {
        return String::new();
    }
    let mut text = headline(digest);
    section(&mut text, SUMMARY, "\n> ", digest.summary.lines());
    for (kind, title) in SECTIONS {
        let lines = digest.lines.iter().filter(|line| line.kind == *kind).map(|line| line.text.as_str());
        section(&mut text, title, "\n- ", lines);
    }
    let values = ledger::lines(&digest.ledger);
    section(&mut text, "Values:", "\n", values.iter().map(String::as_str));
    text
}

/// Tokens that the digest's text cannot well be above, without counting it. A summary has a room of its own.
pub(super) fn at_most(digest: &Digest) -> u64 {
    let lines = digest.lines.iter().map(|line| line.text.len());
    let values = digest.ledger.iter().map(|value| value.value.len().saturating_add(1));
    let bytes = lines.chain(values).fold(0, usize::saturating_add);
    let lines = u64::try_from(digest.lines.len()).unwrap_or(u64::MAX).saturating_mul(AROUND);
    bulk(bytes).saturating_add(lines).saturating_add(HEADLINE)
}

fn bulk(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(3)).unwrap_or(u64::MAX)
}

/// Tokens of the first line and the titles.
const HEADLINE: u64 = 64;

fn headline(digest: &Digest) -> String {
    let Digest { passes, from, to, .. } = digest;
    let times = if *passes == 1 { String::from("once") } else { format!("{passes} times") };
    if *to == 0 {
        return format!(
            "This conversation was compressed {times}; what was left out has its recall reference in place."
        );
    }
    format!(
        "This conversation was compressed {times}; recall(\"{from}-{to}\") reads the turns that left it. What is known of them:"
    )
}

fn section<'a>(text: &mut String, title: &str, mark: &str, lines: impl Iterator<Item = &'a str>) {
    let mut lines = lines.peekable();
    if lines.peek().is_some() {
        text.push('\n');
        text.push_str(title);
    }
    for line in lines {
        text.push_str(mark);
        text.push_str(line);
    }
}

/// Hundredths of the room: what demands leave to the ledger at least, and what the ledger may take of the rest.
const FOR_LEDGER: u64 = 55;
const OF_LEDGER: u64 = 75;

/// Lines of one kind that are kept at most.
const MOST_LINES: usize = 400;

/// Cuts the digest to its room: demands first, then values, then what else was said and done, the newest first.
pub(super) fn trim(digest: &mut Digest, room: u64, labels: &[&str], scale: &Scale<'_>) {
    let mut left = room.saturating_sub(scale.text(&headline(digest)));
    let for_ledger = part(left, FOR_LEDGER);
    let lines = core::mem::take(&mut digest.lines);
    let (demands, others): (Vec<_>, Vec<_>) = lines.into_iter().partition(|line| line.kind == LineKind::Constraint);
    let (demands, spent) = newest_lines(demands, left.saturating_sub(for_ledger), scale);
    left = left.saturating_sub(spent);
    let ledger = core::mem::take(&mut digest.ledger);
    let (ledger, spent) = newest_values(ledger, part(left, OF_LEDGER).max(for_ledger), labels, scale);
    left = left.saturating_sub(spent);
    let (others, _) = newest_lines(others, left, scale);
    digest.lines = demands.into_iter().chain(others).collect();
    digest.ledger = ledger;
}

fn part(room: u64, hundredths: u64) -> u64 {
    room.saturating_mul(hundredths).checked_div(100).unwrap_or(0)
}

/// The newest of the lines that fit, and what they take.
fn newest_lines(lines: Vec<Line>, room: u64, scale: &Scale<'_>) -> (Vec<Line>, u64) {
    let mut spent = 0_u64;
    let mut kept = Vec::new();
    for line in lines.into_iter().rev().take(MOST_LINES) {
        let tokens = scale.text(&line.text).saturating_add(AROUND);
        if spent.saturating_add(tokens) <= room {
            spent = spent.saturating_add(tokens);
            kept.push(line);
        }
    }
    kept.reverse();
    (kept, spent)
}

/// Tokens of the mark before a line or value, and its share of the titles.
const AROUND: u64 = 3;

const LAST_RANK: u64 = 3;

/// How soon a value is kept: what names one thing and stands under the name of a parameter, before all others.
fn rank(value: &Value, labels: &[&str]) -> u64 {
    match (ledger::is_known(&value.label, labels), ledger::is_particular(&value.value)) {
        (true, true) => 0,
        (true, false) => 1,
        (false, true) => 2,
        (false, false) => LAST_RANK,
    }
}

/// The newest of the values that fit, by their rank, and what they take.
fn newest_values(ledger: Vec<Value>, room: u64, labels: &[&str], scale: &Scale<'_>) -> (Vec<Value>, u64) {
    let mut spent = 0_u64;
    let mut seen: Vec<&str> = Vec::new();
    let mut keep: Vec<bool> = ledger.iter().map(|_| false).collect();
    let ranks: Vec<u64> = ledger.iter().map(|value| rank(value, labels)).collect();
    for rank in 0..=LAST_RANK {
        for ((value, kept), own) in ledger.iter().zip(&mut keep).zip(&ranks).rev() {
            if *own != rank {
                continue;
            }
            let label = if seen.contains(&value.label.as_str()) { 0 } else { scale.text(&value.label) };
            let tokens = scale.text(&value.value).saturating_add(label).saturating_add(1);
            if spent.saturating_add(tokens) <= room {
                spent = spent.saturating_add(tokens);
                seen.push(&value.label);
                *kept = true;
            }
        }
    }
    let mut kept = keep.iter();
    let ledger = ledger.iter().filter(|_| kept.next().copied().unwrap_or(false)).cloned().collect();
    (ledger, spent)
}
