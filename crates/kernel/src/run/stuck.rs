//! Runs that go in circles: the same calls with the same results over and over. The model is told once, then the goal ends.
//!
//! Calls are compared as JSON, whatever their spacing, and those of one reply in any order. What waits (a round whose tools
//! take a second or more, or a tool called after waiting) may ask the same for much longer: that is how one polls.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde_json::Value as Json;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::calls::{OpenCall, Step};
use crate::wire::event::{Ended, Event, Status};
use crate::wire::input::Fault;
use crate::wire::message::{Part, ToolResult};

/// The calls of one reply and what they came to, as hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Round {
    /// The calls with their results, in any order.
    done: u64,
    /// The tools and the kinds of their errors, where all failed.
    failed: Option<u64>,
    /// Whether it waited.
    waited: bool,
}

/// A circle: how many replies make it up, over how many rounds it went, and after how many it is told and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Circle {
    kind: Kind,
    rounds: usize,
    bounds: Bounds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The same calls with the same results, in so many rounds by turns.
    Same(usize),
    /// The same error of the same tools.
    Errors,
}

/// Rounds after which the model is told, and after which the goal ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    told: usize,
    ends: usize,
}

/// By how many rounds a circle repeats itself: the longest that is noticed has as many as there are bounds here.
const SAME: [Bounds; 4] = [
    Bounds { told: 6, ends: 16 },
    Bounds { told: 8, ends: 18 },
    Bounds { told: 9, ends: 21 },
    Bounds { told: 12, ends: 24 },
];

/// The same call that fails in the same way.
const SAME_FAILING: Bounds = Bounds { told: 4, ends: 8 };

/// Other calls of the same tools that all fail in the same way: a search that finds nothing looks like that.
const ERRORS: Bounds = Bounds { told: 10, ends: 20 };

/// What waits has so many times the rounds; the limits of the goal bound it too.
const PATIENCE: usize = 4;

/// Rounds that are remembered: those of the most patient circle.
const REMEMBERED: usize = 96;

/// Milliseconds of a round that waits.
const WAITS_MS: u64 = 1_000;

/// Parts of the names of tools that wait.
const WAITING: &[&str] = &["wait", "sleep"];

/// What a result comes to, for comparison.
#[must_use]
pub(crate) fn outcome(result: &ToolResult) -> u64 {
    let mut hash = xxh3_64(result.error_kind.as_bytes());
    for part in &result.parts {
        hash = match part {
            Part::Text(text) => xxh3_64_with_seed(text.text.as_bytes(), hash),
            Part::Image(image) => {
                xxh3_64_with_seed(image.data.as_bytes(), xxh3_64_with_seed(image.url.as_bytes(), hash))
            }
            Part::File(file) => xxh3_64_with_seed(file.data.as_bytes(), hash),
        };
    }
    hash
}

/// The kind of error that a result is, for comparison.
#[must_use]
pub(crate) fn failed(result: &ToolResult) -> Option<u64> {
    (!result.error_kind.is_empty()).then(|| xxh3_64(result.error_kind.as_bytes()))
}

/// The round that these calls make, all of them settled, in so many active milliseconds.
#[must_use]
pub(crate) fn round(calls: &[OpenCall], took_ms: u64) -> Round {
    let mut done: Vec<u64> = calls.iter().map(what_was_done).collect();
    done.sort_unstable();
    let named = |call: &OpenCall| WAITING.iter().any(|word| call.name.to_ascii_lowercase().contains(word));
    Round { done: folded(&done), failed: failure(calls), waited: took_ms >= WAITS_MS || calls.iter().any(named) }
}

fn what_was_done(call: &OpenCall) -> u64 {
    let args = call.args.as_ref().map_or_else(|objection| objection.message.clone(), |args| canonical(args));
    let outcome = if let Step::Settled { outcome, .. } = call.step { outcome } else { 0 };
    folded(&[xxh3_64(call.name.as_bytes()), xxh3_64(args.as_bytes()), outcome])
}

/// The tools and the kinds of their errors; none where a call did not fail.
fn failure(calls: &[OpenCall]) -> Option<u64> {
    let kinds = calls.iter().map(|call| match call.step {
        Step::Settled { failed: Some(kind), .. } => Some(folded(&[xxh3_64(call.name.as_bytes()), kind])),
        _ => None,
    });
    let mut kinds = kinds.collect::<Option<Vec<u64>>>()?;
    kinds.sort_unstable();
    Some(folded(&kinds))
}

fn folded(hashes: &[u64]) -> u64 {
    hashes.iter().fold(0, |all, hash| xxh3_64_with_seed(&hash.to_le_bytes(), all))
}

/// Arguments that say the same are the same text.
fn canonical(args: &str) -> String {
    serde_json::from_str::<Json>(args).map_or_else(|_| args.into(), |json| format!("{json}"))
}

pub(crate) fn remember(rounds: &mut Vec<Round>, round: Round) {
    rounds.push(round);
    let surplus = rounds.len().saturating_sub(REMEMBERED);
    rounds.drain(..surplus);
}

/// What the model is told, in the round in which a circle is noticed.
#[must_use]
pub(crate) fn nudge(rounds: &[Round]) -> Option<String> {
    let circle = circle(rounds).filter(|circle| circle.rounds == circle.bounds.told)?;
    Some(format!(
        "{}, {} times now. Do something else, wait with a tool that takes its time, or say what stands in the way.",
        circle.kind.words(),
        circle.rounds
    ))
}

/// The end, where the model went on in the circle after it was told.
#[must_use]
pub(crate) fn end(rounds: &[Round]) -> Option<Event> {
    let circle = circle(rounds).filter(|circle| circle.rounds >= circle.bounds.ends)?;
    let message = format!(
        "the run is stuck: {}, {} times in a row, also after it was told so; change the goal, the tools or the model",
        circle.kind.words(),
        circle.rounds
    );
    let fault = Fault { code: "stuck".into(), message, retryable: false };
    Some(Event::Ended(Ended { status: Status::Error, fault: Some(fault) }))
}

impl Kind {
    fn words(self) -> String {
        match self {
            Self::Same(1) => "The same calls were made with the same results".into(),
            Self::Same(period) => format!("The same {period} rounds of calls came in turns with the same results"),
            Self::Errors => "The same kind of error came from the same tools".into(),
        }
    }
}

/// The circle that the last rounds are in; of several the one that is nearest to its end.
fn circle(rounds: &[Round]) -> Option<Circle> {
    let same = |one: &Round, other: &Round| one.done == other.done;
    let errors = |one: &Round, other: &Round| one.failed.is_some() && one.failed == other.failed;
    let fails = rounds.last().is_some_and(|round| round.failed.is_some());
    let periods = (1..).zip(SAME).map(|(period, bounds)| {
        let bounds = if fails && period == 1 { SAME_FAILING } else { bounds };
        Circle { kind: Kind::Same(period), rounds: repeated(rounds, period, same), bounds }
    });
    let failing = Circle { kind: Kind::Errors, rounds: repeated(rounds, 1, errors), bounds: ERRORS };
    let patient = periods.chain([failing]).map(|circle| circle.patient(rounds));
    patient
        .filter(|circle| circle.rounds >= circle.bounds.told)
        .min_by_key(|circle| circle.bounds.ends.saturating_sub(circle.rounds))
}

impl Circle {
    /// With the bounds that it has if one of its rounds waited.
    fn patient(self, rounds: &[Round]) -> Self {
        let waits = rounds.iter().rev().take(self.rounds).any(|round| round.waited);
        let times = if waits { PATIENCE } else { 1 };
        let Bounds { told, ends } = self.bounds;
        Self { bounds: Bounds { told: told.saturating_mul(times), ends: ends.saturating_mul(times) }, ..self }
    }
}

/// How many of the last rounds are like the one `period` before them, with those that they repeat.
fn repeated(rounds: &[Round], period: usize, alike: impl Fn(&Round, &Round) -> bool) -> usize {
    let pairs = rounds.iter().rev().zip(rounds.iter().rev().skip(period));
    let count = pairs.take_while(|(later, earlier)| alike(later, earlier)).count();
    if count == 0 { 0 } else { count.saturating_add(period) }
}
