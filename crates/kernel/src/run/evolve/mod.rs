//! The fold: the only writer of the state. A replayed log and a live run go through the same lines.

mod calls;
mod goal;
mod notes;
mod reply;
mod summary;

use super::state::{Run, State};
use crate::wire::event::{Event, Resumed, Started};
use crate::wire::record::Record;
use crate::{Corrupt, FORMAT, RENDERER};

/// Why a record cannot stand where it stands.
type Misfit = &'static str;

/// Folds one record into the state.
pub(crate) fn evolve(state: &mut State, record: &Record) -> Result<(), Corrupt> {
    let Record { seq, at, event, .. } = record;
    if *seq != state.next {
        return Err(Corrupt::Gap { expected: state.next, found: *seq });
    }
    if state.next > 0 && *at < state.at {
        return Err(Corrupt::order(*seq, event, "its time is before that of the record in front of it"));
    }
    known_format(*seq, event)?;
    same_prompt(state, *seq, event)?;
    pass_time(state, event, *at);
    apply(state, *seq, event).map_err(|why| Corrupt::order(*seq, event, why))?;
    summary::pass_by(state, event);
    if matches!(event, Event::Replied(_)) {
        state.asked = Some(*at);
    }
    step_over(state, *at);
    Ok(())
}

/// Counts a record without an event known here.
pub(crate) fn step_over(state: &mut State, at: i64) {
    if state.next == 0 {
        state.born = at;
    }
    state.next = state.next.saturating_add(1);
    state.at = state.at.max(at);
}

fn known_format(seq: u64, event: &Event) -> Result<(), Corrupt> {
    match event {
        Event::Started(Started { format, .. }) | Event::Resumed(Resumed { format, .. }) if *format > FORMAT => {
            Err(Corrupt::Newer { seq, format: *format, known: FORMAT })
        }
        _ => Ok(()),
    }
}

/// The model must have answered the prompt that the log folds to, if it was rendered by the same version.
fn same_prompt(state: &State, seq: u64, event: &Event) -> Result<(), Corrupt> {
    let (Event::Replied(replied), Some(run)) = (event, &state.run) else { return Ok(()) };
    let rendered = state.prompt.digest();
    if run.renderer != RENDERER || run.owed != Some(replied.effect) || replied.digest == rendered {
        return Ok(());
    }
    Err(Corrupt::Digest { seq, recorded: replied.digest.clone(), rendered })
}

/// Active time is the time between records while something goes on; a pause between two processes is none.
fn pass_time(state: &mut State, event: &Event, at: i64) {
    let since = state.at;
    if let Some(run) = state.run.as_mut().filter(|_| !matches!(event, Event::Started(_) | Event::Resumed(_))) {
        run.tally.active_ms = run.active_ms(since, at);
    }
}

fn apply(state: &mut State, seq: u64, event: &Event) -> Result<(), Misfit> {
    match event {
        Event::Started(event) => goal::started(state, seq, event),
        Event::Resumed(event) => goal::resumed(state, seq, event),
        Event::Replied(event) => reply::replied(state, seq, event),
        Event::Judged(event) => calls::judged(state, seq, event),
        Event::Begun(event) => calls::begun(state, event),
        Event::Settled(event) => calls::settled(state, seq, event),
        Event::Suspended(event) => calls::suspended(state, seq, event),
        Event::Answered(event) => calls::answered(state, event),
        Event::Signalled(event) => notes::signalled(state, seq, event),
        Event::StateChanged(event) => notes::state_changed(state, seq, event),
        Event::Compressed(event) => summary::compressed(state, seq, event),
        Event::Summarized(event) => summary::summarized(state, seq, event),
        Event::PolicyChanged(event) => goal::policy_changed(state, &event.policy),
        Event::Failed(event) => reply::failed(state, event.effect, &event.fault),
        Event::Ended(event) => goal::ended(state, event),
    }
}

/// The run of a goal that has not ended.
fn live(state: &mut State) -> Result<&mut Run, Misfit> {
    state.run.as_mut().filter(|run| run.ended.is_none()).ok_or("no goal is active")
}
