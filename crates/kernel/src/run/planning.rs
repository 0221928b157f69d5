//! Calls that change nothing but the task state: the kernel answers them itself.

use alloc::string::ToString;

use super::calls::{OpenCall, Step};
use super::closing::settle;
use crate::context::task::{Task, plan_text};
use crate::context::weigh::Scale;
use crate::meta;
use crate::wire::event::{Event, StateChanged};
use crate::wire::task::Plan;

const KEPT: &str = "The plan is kept.";
const EMPTY: &str = "The plan is empty now.";

/// What an allowed call of such a tool comes to: the change first, if there is one, then its result. Whoever stops
/// between the two finds nothing left to change and goes on with the result.
pub(crate) fn settle_here(task: &Task, call: &OpenCall, scale: &Scale<'_>) -> Option<Event> {
    let settles = meta::named(&call.name)?.settle?;
    let (Step::Ready { .. }, Ok(args)) = (&call.step, &call.args) else { return None };
    Some(match settles(args) {
        Ok(plan) if plan != task.plan => changed(plan, scale),
        Ok(_) => settle(call, "", KEPT, scale),
        Err(why) => settle(call, "invalid_arguments", &why, scale),
    })
}

fn changed(plan: Plan, scale: &Scale<'_>) -> Event {
    let told = plan_text(&plan);
    let text = if told.is_empty() { EMPTY.to_string() } else { told };
    let tokens = scale.text(&text);
    Event::StateChanged(StateChanged { text, tokens, plan: Some(plan) })
}
