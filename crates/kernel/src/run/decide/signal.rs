//! Signals arrive, or the policy changes.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::close_all;
use super::stop::aborted;
use crate::context::shorten::to_fit;
use crate::context::weigh::Scale;
use crate::run::closing::Why;
use crate::run::follow::Desk;
use crate::run::state::State;
use crate::run::summing::asked;
use crate::signals::{self, Force};
use crate::wire::event::{Event, PolicyChanged, Signalled};
use crate::wire::input::{Notify, SetPolicy};
use crate::wire::signal::Signal;

/// Which part of the room for signals one of them may have that is not the user's word.
const MOST_OF_ROOM: u64 = 2;

/// A signal whose key or delivery was heard before makes no records. What the others supersede follows from the state.
pub(super) fn notify(state: &State, input: Notify, desk: &Desk<'_>) -> Vec<Event> {
    let Some(run) = &state.run else { return Vec::new() };
    let scale = desk.scale(&run.config.model.id);
    let mut heard: Vec<Signal> = Vec::new();
    for signal in [input.signal].into_iter().chain(input.more) {
        if !state.has_heard(&signal) && !heard.iter().any(|other| is_same(other, &signal)) {
            heard.push(signal);
        }
    }
    let stops = heard.iter().any(|signal| signals::force(signal) == Force::Stop);
    // Where a summary is owed first, the call behind it reads them.
    let renews = input.renews && asked(state, run).is_some();
    let mut left = heard.len();
    let mut events = Vec::with_capacity(left);
    for (seq, signal) in (state.next..).zip(heard) {
        left = left.saturating_sub(1);
        let (text, tokens) = told(&signal, state.task_room(), seq, &scale);
        // The last one makes the call anew: then all of them stand in one block.
        events.push(Event::Signalled(Signalled { signal, tokens, renews: renews && left == 0 && !stops, text }));
    }
    if stops {
        events.extend(close_all(run, Why::Interrupted, desk));
        events.push(aborted("stopped by a critical interrupt signal"));
    }
    events
}

/// The text of a signal where there is no room for all of it, and the tokens of what is told.
fn told(signal: &Signal, room: u64, seq: u64, scale: &Scale<'_>) -> (String, u64) {
    let room = if signal.from_user { room } else { room / MOST_OF_ROOM };
    let text = signals::text(signal);
    let short = to_fit(&text, room, seq, scale);
    let tokens = scale.text(short.as_deref().unwrap_or(&text));
    (short.unwrap_or_default(), tokens)
}

fn is_same(one: &Signal, other: &Signal) -> bool {
    (one.dedupe_key.is_some() && one.dedupe_key == other.dedupe_key) || (one.id.is_some() && one.id == other.id)
}

pub(super) fn set_policy(input: SetPolicy) -> Vec<Event> {
    vec![Event::PolicyChanged(PolicyChanged { policy: input.policy })]
}
