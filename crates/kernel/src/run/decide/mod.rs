//! Decide: what an input comes to. It reads the state and makes events; every reason to refuse is found before the
//! first of them is folded, so a rejected input changes nothing.

mod answer;
mod reply;
mod signal;
mod start;
mod stop;
mod summary;

use alloc::vec::Vec;

use super::closing::{Why, close};
use super::follow::Desk;
use super::phase::{Cell, cell};
use super::state::{Run, State};
use crate::Rejected;
use crate::wire::event::{Event, Status};
use crate::wire::input::{Fault, Input};

/// The events that an input itself makes; what follows from the state comes after them.
pub(crate) fn decide(state: &State, input: Input, desk: &Desk<'_>) -> Result<Option<Vec<Event>>, Rejected> {
    let (phase, kind) = (state.phase(), input.tag());
    match cell(phase, &input) {
        Cell::Take => take(state, input, desk).map(Some),
        Cell::Pass => Ok(None),
        Cell::Stale => Err(Rejected::Stale { input: kind, effect: effect(&input) }),
        Cell::Refuse(why) => Err(Rejected::Refused { phase: phase.as_str(), input: kind, why }),
    }
}

/// The effect that an input answers; 0 for one that answers none, which is never stale.
fn effect(input: &Input) -> u64 {
    match input {
        Input::Reply(input) => input.effect,
        Input::Failure(input) => input.effect,
        Input::Result(input) => input.effect,
        Input::Suspend(input) => input.effect,
        Input::Answer(input) => input.effect,
        Input::Summary(input) => input.effect,
        _ => 0,
    }
}

fn take(state: &State, input: Input, desk: &Desk<'_>) -> Result<Vec<Event>, Rejected> {
    match input {
        Input::Start(input) => start::start(state, input, desk),
        Input::Resume(input) => start::resume(state, input),
        Input::Reply(input) => reply::reply(state, input, desk),
        Input::Failure(input) => stop::failure(state, input),
        Input::Result(input) => answer::result(state, input, desk),
        Input::Suspend(input) => answer::suspend(state, input),
        Input::Answer(input) => answer::answer(state, input),
        Input::Summary(input) => summary::summary(state, input, desk),
        Input::Notify(input) => Ok(signal::notify(state, input, desk)),
        Input::SetPolicy(input) => Ok(signal::set_policy(input)),
        Input::Interrupt(input) => Ok(stop::interrupt(state, &input.reason, desk)),
        Input::Clock(_) => Ok(Vec::new()),
    }
}

/// Closes all open calls.
fn close_all(run: &Run, why: Why, desk: &Desk<'_>) -> Vec<Event> {
    let scale = desk.scale(&run.config.model.id);
    run.open_calls().map(|call| close(call, why, &run.config, &scale)).collect()
}

fn failed(fault: Fault) -> Event {
    Event::Ended(crate::wire::event::Ended { status: Status::Error, fault: Some(fault) })
}
