//! The goal stops: by the user, or because the model call failed.

use alloc::vec;
use alloc::vec::Vec;

use super::{close_all, failed};
use crate::Rejected;
use crate::run::closing::Why;
use crate::run::follow::Desk;
use crate::run::limits::TOO_LONG;
use crate::run::state::{Overflow, State};
use crate::run::summing::asked;
use crate::wire::event::{Ended, Event, Failed, Status};
use crate::wire::input::{Failure, Fault};

pub(super) fn interrupt(state: &State, reason: &str, desk: &Desk<'_>) -> Vec<Event> {
    let mut events = state.run.as_ref().map_or_else(Vec::new, |run| close_all(run, Why::Interrupted, desk));
    events.push(aborted(reason));
    events
}

pub(super) fn aborted(reason: &str) -> Event {
    let fault = Fault { code: "user_abort".into(), message: reason.into(), retryable: false };
    Event::Ended(Ended { status: Status::UserAbort, fault: Some(fault) })
}

pub(super) fn failure(state: &State, input: Failure) -> Result<Vec<Event>, Rejected> {
    let Failure { effect, fault } = input;
    let Some(run) = state.run.as_ref().filter(|run| asked(state, run) == Some(effect)) else {
        return Err(Rejected::Stale { input: "failure", effect });
    };
    if fault.code == TOO_LONG && run.overflow == Overflow::None {
        // The prompt is compressed and the model asked once more; see `press`.
        return Ok(vec![Event::Failed(Failed { effect, fault })]);
    }
    Ok(vec![Event::Failed(Failed { effect, fault: fault.clone() }), failed(fault)])
}
