//! A model has written a summary, or was to.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::Rejected;
use crate::run::follow::Desk;
use crate::run::limits::cost;
use crate::run::state::State;
use crate::run::summing::summarize;
use crate::wire::event::{Event, Summarized};
use crate::wire::input::{Fault, Summary};
use crate::wire::message::{Part, Usage};

/// A summary above so many times its room is none: it would take what history has left.
const ABOVE: u64 = 2;

pub(super) fn summary(state: &State, input: Summary, desk: &Desk<'_>) -> Result<Vec<Event>, Rejected> {
    let stale = Rejected::Stale { input: "summary", effect: input.effect };
    let Some(run) = state.run.as_ref() else { return Err(stale) };
    let Some(owed) = summarize(state, run).filter(|owed| owed.id == input.effect) else { return Err(stale) };
    let scale = desk.scale(&run.config.model.id);
    let Summary { effect, mut text, usage, price, mut fault } = input;
    if fault.is_none() && scale.text(&text) > owed.room.saturating_mul(ABOVE) {
        fault = Some(too_long(owed.room));
    }
    if fault.is_some() {
        text.clear();
    }
    let tokens = if text.is_empty() { 0 } else { scale.content(&opening(state, &text)) };
    // What was not used costs nothing, whatever the price.
    let unused = (usage == Usage::default()).then_some(0);
    let cost = price.as_ref().map(|price| cost(price, &usage)).or(unused);
    Ok(vec![Event::Summarized(Summarized { effect, text, tokens, usage, price, cost, fault })])
}

/// `turns[0]` with this summary.
fn opening(state: &State, summary: &str) -> Vec<Part> {
    let mut task = state.task.clone();
    task.digest.summary = String::from(summary);
    task.snapshot()
}

fn too_long(room: u64) -> Fault {
    Fault { code: "summary_too_long".into(), message: format!("it is far above its {room} tokens"), retryable: false }
}
