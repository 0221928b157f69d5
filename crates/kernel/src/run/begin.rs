//! Which call begins next, and what a sub-agent is granted when it does.

use alloc::format;
use alloc::string::String;

use super::calls::{OpenCall, Step};
use super::closing::settle;
use super::limits::{Stop, money_left, tokens_left, turns_left};
use super::state::{Run, State};
use crate::context::weigh::Scale;
use crate::wire::agents::Grant;
use crate::wire::event::{Begun, Event};

/// The next call that begins, where there is a free place; or the result of one that puts a sub-agent to work for which
/// there is no room.
pub(super) fn begin(state: &State, run: &Run, scale: &Scale<'_>, now: i64) -> Option<Event> {
    let running = run.open_calls().filter(|call| matches!(call.step, Step::Running { .. })).count();
    if u64::try_from(running).unwrap_or(u64::MAX) >= run.config.limits.parallel {
        return None;
    }
    let (call, effect) = run.open_calls().find_map(|call| match call.step {
        Step::Ready { effect, .. } => Some((call, effect)),
        _ => None,
    })?;
    let begun = |grant| Event::Begun(Begun { call: call.at, effect, grant });
    if !call.agent || call.grant.is_some() {
        return Some(begun(call.grant.clone()));
    }
    Some(match room(run).and_then(|waiting| grant(state, run, waiting, now)) {
        Ok(grant) => begun(Some(grant)),
        Err(why) => settle(call, "not_run", &format!("not run: {why}"), scale),
    })
}

/// How many sub-agents of this reply are still to be granted something, at least one; or why there can be none.
fn room(run: &Run) -> Result<u64, String> {
    let agents = &run.config.agents;
    if agents.depth == 0 {
        let deep = agents.parent.as_ref().map_or(0, |parent| parent.path.len());
        return Err(format!("agents are nested {deep} deep already, which is as deep as they may; do it yourself"));
    }
    let free = agents.children.saturating_sub(run.tally.agents);
    if free == 0 {
        let most = agents.children;
        return Err(format!("{most} sub-agents were put to work for this goal, and no more may be; do it yourself"));
    }
    let waits = |call: &&OpenCall| call.agent && matches!(call.step, Step::Ready { begun: false, .. });
    Ok(u64::try_from(run.open_calls().filter(waits).count()).unwrap_or(u64::MAX).clamp(1, free))
}

/// An equal share of what is left for each sub-agent that waits and one for the parent, so that all of them together
/// stay within its limits, whatever they do. What runs at once shares no time: a tenth of it stays for the parent's answer.
fn grant(state: &State, run: &Run, waiting: u64, now: i64) -> Result<Grant, String> {
    let (limits, out) = (&run.config.limits, Granted::of(run));
    let share = |left: u64| left.checked_div(waiting.saturating_add(1)).unwrap_or(0);
    let turns = enough(share(turns_left(run).saturating_sub(out.turns)), Stop::Turns(limits.max_turns))?;
    let tokens = tokens_left(state, run, limits)
        .map(|(left, stop)| enough(share(left.saturating_sub(out.tokens)), stop))
        .transpose()?;
    let cost = money_left(state, run, limits)
        .map(|(left, stop)| enough(share(left.saturating_sub(out.cost)), stop))
        .transpose()?;
    let time_ms = limits.timeout_ms.map(|timeout| {
        let left = timeout.saturating_sub(run.active_ms(state.at, now));
        enough(left.saturating_sub(left.div_ceil(10)), Stop::Time(timeout))
    });
    let only = run.skill.as_ref().map(|skill| skill.allowed_tools.clone()).unwrap_or_default();
    Ok(Grant { turns, tokens, cost, time_ms: time_ms.transpose()?, only })
}

fn enough(share: u64, stop: Stop) -> Result<u64, String> {
    if share == 0 { Err(format!("too little is left for a sub-agent ({})", stop.figure())) } else { Ok(share) }
}

/// What the sub-agents at work may still use up.
#[derive(Default)]
struct Granted {
    turns: u64,
    tokens: u64,
    cost: u64,
}

impl Granted {
    fn of(run: &Run) -> Self {
        let grants = run.open_calls().filter_map(|call| call.grant.as_ref());
        grants.fold(Self::default(), |sum, grant| Self {
            turns: sum.turns.saturating_add(grant.turns),
            tokens: sum.tokens.saturating_add(grant.tokens.unwrap_or(0)),
            cost: sum.cost.saturating_add(grant.cost.unwrap_or(0)),
        })
    }
}
