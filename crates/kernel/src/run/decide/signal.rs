//! A signal arrives, or the policy changes.

use alloc::vec;
use alloc::vec::Vec;

use super::close_all;
use super::stop::aborted;
use crate::context::shorten::to_fit;
use crate::run::closing::{Why, close};
use crate::run::follow::Desk;
use crate::run::state::{Run, State};
use crate::signals::{self, Force};
use crate::wire::event::{Event, PolicyChanged, Signalled};
use crate::wire::input::{Notify, SetPolicy};

/// Which part of the room for signals one of them may have.
const MOST_OF_ROOM: u64 = 2;

/// A signal whose key was heard before makes no records.
pub(super) fn notify(state: &State, input: Notify, desk: &Desk<'_>) -> Vec<Event> {
    let Some(run) = &state.run else { return Vec::new() };
    let signal = input.signal;
    if signal.dedupe_key.as_ref().is_some_and(|key| state.heard.contains(key.as_str())) {
        return Vec::new();
    }
    let after = match signals::force(&signal) {
        Force::Read => Vec::new(),
        Force::Supersede => supersede(run, desk),
        Force::Stop => stop(run, desk),
    };
    let scale = desk.scale(&run.config.model.id);
    let text = signals::text(&signal);
    let short = to_fit(&text, state.task_room() / MOST_OF_ROOM, state.next, &scale);
    let tokens = scale.text(short.as_deref().unwrap_or(&text));
    let heard = Event::Signalled(Signalled { signal, tokens, text: short.unwrap_or_default() });
    [heard].into_iter().chain(after).collect()
}

/// Calls that have not begun give way.
fn supersede(run: &Run, desk: &Desk<'_>) -> Vec<Event> {
    let scale = desk.scale(&run.config.model.id);
    let waiting = run.open_calls().filter(|call| !call.has_begun());
    waiting.map(|call| close(call, Why::Superseded, &run.config, &scale)).collect()
}

fn stop(run: &Run, desk: &Desk<'_>) -> Vec<Event> {
    let mut events = close_all(run, Why::Interrupted, desk);
    events.push(aborted("stopped by a critical interrupt signal"));
    events
}

pub(super) fn set_policy(input: SetPolicy) -> Vec<Event> {
    vec![Event::PolicyChanged(PolicyChanged { policy: input.policy })]
}
