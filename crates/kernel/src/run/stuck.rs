//! Runs that go in circles: the same calls with the same results over and over. The model is told once, then the goal ends.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::calls::{OpenCall, Step};
use crate::wire::event::{Ended, Event, Status};
use crate::wire::input::Fault;
use crate::wire::message::{Part, ToolResult};

/// The calls of one reply and what they came to, as hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Round {
    names: u64,
    calls: u64,
    results: u64,
    failed: bool,
}

/// A circle: how it is told, and how many rounds it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Circle {
    told: &'static str,
    rounds: usize,
    enough: usize,
}

/// Rounds that are remembered.
const REMEMBERED: usize = 16;

/// Rounds after which the model is told. Waiting for something is no circle: then results change, or what is asked.
const SAME: usize = 4;
const TURNS: usize = 6;
const ERRORS: usize = 5;

/// Rounds that the model then has to leave the circle.
const GRACE: usize = 3;

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

/// The round that these calls make, all of them settled.
#[must_use]
pub(crate) fn round(calls: &[OpenCall]) -> Round {
    let mut round = Round { names: 0, calls: 0, results: 0, failed: true };
    for call in calls {
        let args = call.args.as_ref().map_or_else(|objection| objection.message.as_str(), String::as_str);
        round.names = xxh3_64_with_seed(call.name.as_bytes(), round.names);
        round.calls = xxh3_64_with_seed(args.as_bytes(), xxh3_64_with_seed(call.name.as_bytes(), round.calls));
        if let Step::Settled { outcome, failed, .. } = call.step {
            round.results = xxh3_64_with_seed(&outcome.to_le_bytes(), round.results);
            round.failed &= failed;
        }
    }
    round
}

pub(crate) fn remember(rounds: &mut Vec<Round>, round: Round) {
    rounds.push(round);
    let surplus = rounds.len().saturating_sub(REMEMBERED);
    rounds.drain(..surplus);
}

/// What the model is told, in the round in which a circle is noticed.
#[must_use]
pub(crate) fn nudge(rounds: &[Round]) -> Option<String> {
    let circle = circle(rounds).filter(|circle| circle.rounds == circle.enough)?;
    Some(format!("{}, {} times now. Do something else, or say what stands in the way.", circle.told, circle.rounds))
}

/// The end, where the model went on in the circle after it was told.
#[must_use]
pub(crate) fn end(rounds: &[Round]) -> Option<Event> {
    let circle = circle(rounds).filter(|circle| circle.rounds >= circle.enough.saturating_add(GRACE))?;
    let message = format!(
        "the run is stuck: {}, {} times in a row, also after it was told so; change the goal, the tools or the model",
        circle.told, circle.rounds
    );
    let fault = Fault { code: "stuck".into(), message, retryable: false };
    Some(Event::Ended(Ended { status: Status::Error, fault: Some(fault) }))
}

fn circle(rounds: &[Round]) -> Option<Circle> {
    let same = |one: &Round, other: &Round| one.calls == other.calls && one.results == other.results;
    let alike = |one: &Round, other: &Round| {
        one.failed && other.failed && one.names == other.names && one.results == other.results
    };
    let circles = [
        Circle { told: "The same call was made with the same result", rounds: repeated(rounds, 1, same), enough: SAME },
        Circle { told: "The same error came from the same tool", rounds: repeated(rounds, 1, alike), enough: ERRORS },
        Circle {
            told: "The same two calls were made in turns with the same results",
            rounds: repeated(rounds, 2, same),
            enough: TURNS,
        },
    ];
    circles.into_iter().find(|circle| circle.rounds >= circle.enough)
}

/// How many of the last rounds are like the one `period` before them, with those that they repeat.
fn repeated(rounds: &[Round], period: usize, alike: impl Fn(&Round, &Round) -> bool) -> usize {
    let pairs = rounds.iter().rev().zip(rounds.iter().rev().skip(period));
    let count = pairs.take_while(|(later, earlier)| alike(later, earlier)).count();
    if count == 0 { 0 } else { count.saturating_add(period) }
}
