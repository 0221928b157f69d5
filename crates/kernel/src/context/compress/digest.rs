//! The digest: what is left of the turns that left the prompt, within its room.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::gathered::Parts;
use super::ledger;
use super::said::{self, AROUND};
use super::words::span;
use crate::context::weigh::Scale;
use crate::wire::task::{Digest, Line, LineKind, Value};

/// The parts of the digest behind what the user said, in the order in which they are told.
const SECTIONS: &[(LineKind, &str)] = &[
    (LineKind::Feedback, "Said of an earlier attempt:"),
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
    if digest.unsaid > 0 {
        text.push_str(&unsaid(digest));
    }
    let said = digest.lines.iter().filter(|line| is_said(line)).map(|line| line.text.as_str());
    section(&mut text, "The user said:", "\n- ", said);
    for (kind, title) in SECTIONS {
        let lines = digest.lines.iter().filter(|line| line.kind == *kind).map(|line| line.text.as_str());
        section(&mut text, title, "\n- ", lines);
    }
    let values = ledger::lines(&digest.ledger);
    section(&mut text, "Values:", "\n", values.iter().map(String::as_str));
    text
}

fn is_said(line: &Line) -> bool {
    matches!(line.kind, LineKind::Constraint | LineKind::Said)
}

/// Tokens of the summary; none where there is none.
pub(super) fn summary_tokens(digest: &Digest, scale: &Scale<'_>) -> u64 {
    let mut text = String::new();
    section(&mut text, SUMMARY, "\n> ", digest.summary.lines());
    if text.is_empty() { 0 } else { scale.text(&text) }
}

/// What there was no room for, not even in part.
fn unsaid(digest: &Digest) -> String {
    let messages = if digest.unsaid == 1 { "message" } else { "messages" };
    format!("\nNot told here: {} {messages} of the user; {} has them.", digest.unsaid, recall(digest))
}

/// Tokens that lines of so many bytes cannot well be above, without counting them.
pub(super) fn at_most(bytes: usize, lines: usize) -> u64 {
    let lines = u64::try_from(lines).unwrap_or(u64::MAX).saturating_mul(AROUND);
    u64::try_from(bytes.div_ceil(3)).unwrap_or(u64::MAX).saturating_add(lines)
}

/// Tokens of the first line and the titles.
pub(super) const HEADLINE: u64 = 64;

fn headline(digest: &Digest) -> String {
    let passes = digest.passes;
    let times = if passes == 1 { String::from("once") } else { format!("{passes} times") };
    if !digest.has_left() {
        return format!(
            "This conversation was compressed {times}; what was left out has its recall reference in place."
        );
    }
    let recall = recall(digest);
    format!("This conversation was compressed {times}; {recall} reads the turns that left it. What is known of them:")
}

fn recall(digest: &Digest) -> String {
    format!("recall(\"{}\")", span(digest.from, digest.to))
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

/// Tokens that the digest has: for the user's own words, and for everything else in it, which takes what they leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) said: u64,
    pub(super) others: u64,
}

/// Tokens that everything but the user's words has at most.
pub(super) const DIGEST_MOST: u64 = 4_000;

/// Hundredths of the room behind the user's words that the ledger may take at most.
const OF_LEDGER: u64 = 75;

impl Room {
    /// Room of so many tokens less: the user's words are the last to go.
    pub(super) fn less(self, tokens: u64) -> Self {
        let rest = tokens.saturating_sub(self.others);
        Self { said: self.said.saturating_sub(rest), others: self.others.saturating_sub(tokens) }
    }
}

/// What a digest holds of all that was gathered: the user's words first, then values, then what else was said and done,
/// the newest first. A summary has a room of its own.
pub(super) fn filled(digest: &Digest, gathered: &Parts, room: Room, labels: &[&str], scale: &Scale<'_>) -> Digest {
    let all = room.said.saturating_add(room.others).saturating_sub(scale.text(&headline(digest)));
    let (said, spent, unsaid) = said::fitted(&gathered.said, room.said.min(all), scale);
    let left = all.saturating_sub(spent).min(DIGEST_MOST);
    let (ledger, spent) = newest_values(&gathered.ledger, part(left, OF_LEDGER), labels, scale);
    let others = newest_lines(&gathered.others, left.saturating_sub(spent), scale);
    let lines = said.into_iter().chain(others).collect();
    let unsaid = digest.unsaid.saturating_add(unsaid);
    let mut filled = Digest { lines, ledger, unsaid, ..digest.clone() };
    filled.tokens = scale.text(&text(&filled));
    filled
}

fn part(room: u64, hundredths: u64) -> u64 {
    room.saturating_mul(hundredths).checked_div(100).unwrap_or(0)
}

/// The newest of the lines that fit.
fn newest_lines(lines: &[Line], room: u64, scale: &Scale<'_>) -> Vec<Line> {
    let mut spent = 0_u64;
    let mut kept = Vec::new();
    for line in lines.iter().rev() {
        let tokens = scale.text(&line.text).saturating_add(AROUND);
        if spent.saturating_add(tokens) <= room {
            spent = spent.saturating_add(tokens);
            kept.push(line.clone());
        }
    }
    kept.reverse();
    kept
}

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
fn newest_values(ledger: &[Value], room: u64, labels: &[&str], scale: &Scale<'_>) -> (Vec<Value>, u64) {
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
