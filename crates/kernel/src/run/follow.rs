//! What follows from the state alone, one event at a time, until nothing does. A crash between two events loses nothing:
//! the fold stands where it stood, and the same event follows.

use alloc::vec::Vec;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::begin::begin;
use super::calls::{OpenCall, Step};
use super::closing::{Why, close, settle_by_step};
use super::limits;
use super::planning::settle_here;
use super::press::press;
use super::resolve::Next;
use super::state::{Overflow, Run, State};
use super::stuck;
use crate::Millis;
use crate::context::weigh::{Scale, Tokens};
use crate::governance::{Call, Name, Schemas, Stage, View, Windows, judge, unfit};
use crate::meta;
use crate::wire::event::{CallRef, Event, Judged, Status, Trail, Verdict};

/// What *decide* may use beside the state.
pub(crate) struct Desk<'a> {
    pub(crate) tokens: &'a dyn Tokens,
    pub(crate) stages: &'a [Stage],
    pub(crate) windows: &'a mut Windows,
    pub(crate) schemas: &'a dyn Schemas,
}

impl<'a> Desk<'a> {
    pub(crate) fn scale<'b>(&self, model: &'b str) -> Scale<'b>
    where
        'a: 'b,
    {
        Scale { tokens: self.tokens, model }
    }
}

/// The next event that follows from the state at `now`. Records from `since` on are of the same batch: a call of the
/// model that became owed by one of them has not been asked yet, so its prompt may still be rewritten.
pub(crate) fn follow(state: &State, desk: &mut Desk<'_>, since: u64, now: i64) -> Option<Event> {
    let run = state.run.as_ref().filter(|run| run.ended.is_none())?;
    if let Some(Next::End(ended)) = run.reply.as_ref().map(|reply| &reply.next) {
        let why = end_of_reply(ended.status, state, run, now);
        return Some(close_next(run, why, desk).unwrap_or_else(|| Event::Ended(ended.clone())));
    }
    if let Some(stop) = limits::reached(state, run, now) {
        return Some(close_next(run, Why::Limit(stop), desk).unwrap_or_else(|| Event::Ended(stop.ended())));
    }
    let is_new = run.owed.is_some_and(|owed| owed >= since) || run.overflow == Overflow::Refused;
    if is_new && run.owed.is_some() {
        if let Some(end) = stuck::end(&run.rounds) {
            return Some(end);
        }
        return press(state, run, desk, now);
    }
    if state.is_urged()
        && let Some(superseded) = supersede(run, desk)
    {
        return Some(superseded);
    }
    act(state, run, desk, now)
}

/// The next call that has not begun gives way to what waits to be read.
fn supersede(run: &Run, desk: &Desk<'_>) -> Option<Event> {
    let scale = desk.scale(&run.config.model.id);
    let waiting = run.open_calls().find(|call| !call.has_begun())?;
    Some(close(waiting, Why::Superseded, &run.config, &scale))
}

/// Calls of a reply that ends the goal: cut off with it, or kept out by the budget that cut it.
fn end_of_reply(status: Status, state: &State, run: &Run, now: i64) -> Why {
    let stop = limits::reached(state, run, now).filter(|stop| stop.status() == status);
    stop.map_or(Why::Cut, Why::Limit)
}

fn close_next(run: &Run, why: Why, desk: &Desk<'_>) -> Option<Event> {
    let scale = desk.scale(&run.config.model.id);
    run.open_calls().next().map(|call| close(call, why, &run.config, &scale))
}

/// The next step of an open call: all are judged first, then settled where they cannot run, then begun.
fn act(state: &State, run: &Run, desk: &mut Desk<'_>, now: i64) -> Option<Event> {
    if let Some(call) = run.open_calls().find(|call| is_to_be_judged(run, call)) {
        return Some(pass(state, run, call, desk, now));
    }
    let scale = desk.scale(&run.config.model.id);
    if let Some(settled) = run.open_calls().find_map(|call| settle_by_step(call, &scale)) {
        return Some(settled);
    }
    if let Some(event) = run.open_calls().find_map(|call| settle_here(state, call, &scale)) {
        return Some(event);
    }
    begin(state, run, &scale, now)
}

/// Calls that are not valid come before no stage; where there is an audit, it tells of them all the same.
fn is_to_be_judged(run: &Run, call: &OpenCall) -> bool {
    call.step == Step::Fresh && (call.args.is_ok() || run.config.policy.audit)
}

fn pass(state: &State, run: &Run, call: &OpenCall, desk: &mut Desk<'_>, now: i64) -> Event {
    let (verdict, trail) = match &call.args {
        Ok(args) => judged(state, run, call, args, desk, now),
        Err(objection) => unfit(&objection.kind),
    };
    Event::Judged(Judged { call: call.at, verdict, trail })
}

fn judged(
    state: &State,
    run: &Run,
    call: &OpenCall,
    args: &str,
    desk: &mut Desk<'_>,
    now: i64,
) -> (Verdict, Vec<Trail>) {
    let view =
        View { policy: &run.config.policy, skill: run.skill.as_ref(), turns: run.tally.turns, schemas: desk.schemas };
    let seen = Call {
        at: windows_name(state, run, call.at),
        id: &call.id,
        name: &call.name,
        args,
        approved: call.approved,
        own: meta::is_own(&call.name),
    };
    judge(desk.stages, &view, &seen, desk.windows, Millis(now))
}

/// A call as the rate windows know it.
pub(crate) fn windows_name(state: &State, run: &Run, at: CallRef) -> Name {
    let session = xxh3_64_with_seed(run.config.session.as_bytes(), state.born.cast_unsigned());
    Name { session, reply: at.reply, index: at.index }
}
