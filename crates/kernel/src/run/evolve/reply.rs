//! The model replied.

use alloc::vec::Vec;
use xxhash_rust::xxh3::xxh3_64;

use super::notes::{ask, note};
use super::{Misfit, live};
use crate::context::render;
use crate::meta::is_agent;
use crate::run::calls::OpenCall;
use crate::run::limits::{self, Allowance, TOO_LONG, allowance};
use crate::run::resolve::{Next, calls, next, speaks};
use crate::run::state::{LastReply, Overflow, Run, State, Tally};
use crate::wire::event::{CallRef, Ended, Replied, Status};
use crate::wire::input::Fault;
use crate::wire::message::{RecordedCall, RecordedPart, Usage};
use crate::wire::policy::Config;
use crate::wire::task::{Role, Source};

fn owed(run: &Run, effect: u64) -> Result<(), Misfit> {
    if run.owed == Some(effect) { Ok(()) } else { Err("this model call is not owed") }
}

pub(super) fn replied(state: &mut State, seq: u64, event: &Replied) -> Result<(), Misfit> {
    owed(live(state)?, event.effect)?;
    let capped = match state.run.as_ref().map(|run| allowance(state, run)) {
        Some(Allowance::Capped(_, stop)) => Some(stop),
        _ => None,
    };
    let run = live(state)?;
    let then = next(event, &run.tally, capped);
    count(&mut run.tally, event, &then);
    (run.owed, run.answered_at, run.overflow) = (None, event.price.clone(), Overflow::None);
    keep(state, seq, event);
    if let Next::Again(message) = then {
        message.into_iter().for_each(|text| note(state, text));
        ask(state, seq);
    } else if is_answer(&then) && must_heed(state) {
        ask(state, seq);
    } else {
        let run = live(state)?;
        let calls = recorded_calls(event, seq, &run.config);
        run.reply = Some(LastReply { next: then, since_ms: run.tally.active_ms, calls });
    }
    Ok(())
}

fn is_answer(then: &Next) -> bool {
    matches!(then, Next::End(Ended { status: Status::Completed, .. }))
}

/// Whether something came that the model has to read before the goal ends, and may be asked once more for it.
fn must_heed(state: &State) -> bool {
    state.is_urged() && state.run.as_ref().is_some_and(|run| limits::reached(state, run, state.at).is_none())
}

/// Adds a call of the model to the tally.
fn count(tally: &mut Tally, event: &Replied, then: &Next) {
    tally.turns = tally.turns.saturating_add(1);
    spend(tally, &event.usage, event.cost);
    tally.text.clear();
    for part in &event.parts {
        if let RecordedPart::Text(text) = part {
            tally.text.push_str(&text.text);
        }
    }
    match then {
        Next::Again(Some(_)) if event.complete => tally.repairs = tally.repairs.saturating_add(1),
        Next::Again(None) if event.complete => tally.blanks = tally.blanks.saturating_add(1),
        _ => tally.blanks = 0,
    }
}

/// Adds what a call used and cost.
pub(super) fn spend(tally: &mut Tally, usage: &Usage, cost: Option<u64>) {
    tally.usage.add(usage);
    tally.cost = tally.cost.saturating_add(cost.unwrap_or(0));
    tally.unpriced |= cost.is_none();
}

/// Puts what the model said into the prompt, if it said anything.
fn keep(state: &mut State, seq: u64, event: &Replied) {
    if event.usage.input > 0 {
        state.prompt.anchor(event.usage.input, event.least);
    }
    if speaks(&event.parts) || (event.complete && calls(&event.parts)) {
        let block = render::assistant_block(&event.parts, event.complete, &event.dialect, &event.model);
        state.prompt.push(block, Source { role: Role::Reply, seq, tokens: event.tokens });
    }
    for part in &event.parts {
        if let RecordedPart::Call(call) = part {
            state.ids.insert(xxh3_64(call.id.as_bytes()));
        }
    }
}

fn recorded_calls(event: &Replied, reply: u64, config: &Config) -> Vec<OpenCall> {
    let calls = event.parts.iter().filter_map(|part| match part {
        RecordedPart::Call(call) => Some(call),
        _ => None,
    });
    let open = |(index, call): (u64, &RecordedCall)| {
        OpenCall::new(&config.session, CallRef { reply, index }, call, is_agent(config, &call.name))
    };
    (0..).zip(calls).map(open).collect()
}

/// The model call that is owed, or the one whose shown part stands in the record before this.
pub(super) fn failed(state: &mut State, effect: u64, fault: &Fault) -> Result<(), Misfit> {
    let tokens = state.prompt.tokens();
    let run = live(state)?;
    if run.owed.is_none_or(|owed| effect > owed) {
        return Err("no model call is owed");
    }
    if fault.code == TOO_LONG && run.overflow == Overflow::None {
        run.overflow = Overflow::Refused;
        state.ceiling = Some(tokens.min(state.ceiling.unwrap_or(tokens)));
    }
    Ok(())
}
