//! Calls are judged, begun, suspended, answered and settled.

use super::notes::{ask, note};
use super::{Misfit, live};
use crate::context::render;
use crate::meta::loaded;
use crate::run::calls::{OpenCall, Step};
use crate::run::resolve::Next;
use crate::run::state::{Run, State};
use crate::run::stuck;
use crate::wire::event::{Answered, Begun, CallRef, Judged, Settled, Suspended, Verdict};
use crate::wire::input::AnswerBody;
use crate::wire::task::{Role, Source};

fn open_call(state: &mut State, at: CallRef) -> Result<&mut OpenCall, Misfit> {
    live(state)?.call_mut(at).ok_or("there is no such open call")
}

pub(super) fn judged(state: &mut State, seq: u64, event: &Judged) -> Result<(), Misfit> {
    let call = open_call(state, event.call)?;
    if call.step != Step::Fresh {
        return Err("the call was judged before");
    }
    call.step = match &event.verdict {
        Verdict::Allow(_) => Step::Ready { effect: seq, begun: false },
        Verdict::Refuse(_) => Step::Refused(event.verdict.clone()),
        Verdict::Ask(ask) => Step::Asked { effect: seq, reason: ask.reason.clone() },
    };
    Ok(())
}

pub(super) fn begun(state: &mut State, event: &Begun) -> Result<(), Misfit> {
    let call = open_call(state, event.call)?;
    match call.step {
        Step::Ready { effect, .. } if effect == event.effect => {
            call.step = Step::Running { effect, given: call.answers.len() };
        }
        _ => return Err("the call is not allowed to begin"),
    }
    let is_new = call.grant.is_none() && event.grant.is_some();
    call.grant.clone_from(&event.grant);
    if is_new {
        let tally = &mut live(state)?.tally;
        tally.agents = tally.agents.saturating_add(1);
    }
    Ok(())
}

pub(super) fn settled(state: &mut State, seq: u64, event: &Settled) -> Result<(), Misfit> {
    let call = open_call(state, event.call)?;
    let block = render::result_block(&call.id, &call.name, &event.result);
    let (outcome, failed) = (stuck::outcome(&event.result), stuck::failed(&event.result));
    call.step = Step::Settled { block, seq, outcome, failed, tokens: event.tokens };
    if let Some(spent) = &event.spent {
        live(state)?.tally.delegated.add(spent);
    }
    if live(state)?.open_calls().next().is_none() {
        close_reply(state, seq)?;
    }
    Ok(())
}

/// All calls have their results: they go into the prompt in call order, directly behind the reply.
fn close_reply(state: &mut State, seq: u64) -> Result<(), Misfit> {
    let run = live(state)?;
    let reply = run.reply.as_mut().ok_or("there is no reply")?;
    let calls = core::mem::take(&mut reply.calls);
    let ends = matches!(reply.next, Next::End(_));
    let took_ms = run.tally.active_ms.saturating_sub(reply.since_ms);
    activate(run, &calls);
    stuck::remember(&mut run.rounds, stuck::round(&calls, took_ms));
    let nudge = stuck::nudge(&run.rounds);
    for call in calls {
        if let Step::Settled { block, seq, tokens, .. } = call.step {
            state.prompt.push(block, Source { role: Role::Result, seq, tokens });
        }
    }
    if !ends {
        nudge.into_iter().for_each(|text| note(state, text));
        ask(state, seq);
    }
    Ok(())
}

/// The skill that the last of these calls has loaded is active from here on. The other calls of the same reply were made
/// without it, so it does not touch them, in whatever order they were run.
fn activate(run: &mut Run, calls: &[OpenCall]) {
    let sources = &run.config.sources;
    let loads = calls.iter().rev().find_map(|call| match (&call.step, &call.args) {
        (Step::Settled { failed: None, .. }, Ok(args)) => loaded(sources, &call.name, args),
        _ => None,
    });
    if let Some(skill) = loads {
        run.skill = Some(skill.clone());
    }
}

pub(super) fn suspended(state: &mut State, seq: u64, event: &Suspended) -> Result<(), Misfit> {
    let alive = live(state)?.config.attended.suspensions;
    let call = open_call(state, event.call)?;
    let Step::Running { effect, given } = call.step else { return Err("the call does not run") };
    let alive = alive && !call.agent;
    call.step = Step::Suspended { effect, given, ask: seq, payload: event.payload.clone(), alive };
    Ok(())
}

pub(super) fn answered(state: &mut State, event: &Answered) -> Result<(), Misfit> {
    let session = live(state)?.config.session.clone();
    let call = open_call(state, event.call)?;
    if call.owed_ask() != Some(event.effect) {
        return Err("this was not asked");
    }
    call.step = match (&call.step, &event.answer) {
        (Step::Asked { .. }, AnswerBody::Approve(approve)) => {
            call.approved = true;
            approve.arguments.iter().for_each(|arguments| call.revise(&session, arguments));
            Step::Fresh
        }
        (Step::Asked { .. }, AnswerBody::Deny(deny)) => Step::Denied { reason: deny.reason.clone(), begun: false },
        (Step::Suspended { .. }, AnswerBody::Deny(deny)) => Step::Denied { reason: deny.reason.clone(), begun: true },
        (Step::Suspended { effect, given, alive, .. }, AnswerBody::Value(value)) => {
            call.answers.push(value.json.clone());
            if *alive {
                Step::Running { effect: *effect, given: *given }
            } else {
                Step::Ready { effect: *effect, begun: true }
            }
        }
        _ => return Err("the answer does not fit the question"),
    };
    Ok(())
}
