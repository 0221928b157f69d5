//! Calls that change nothing but the task state: the kernel answers them itself.

use alloc::format;
use alloc::string::{String, ToString};

use super::calls::{OpenCall, Step};
use super::closing::settle;
use super::state::State;
use crate::context::task::plan_text;
use crate::context::weigh::Scale;
use crate::meta;
use crate::wire::event::{Event, StateChanged};
use crate::wire::task::{Plan, PlanStep, StepStatus};

const KEPT: &str = "The plan is kept.";
const SHORTENED: &str = "The plan is kept, shortened to what there is room for.";
const EMPTY: &str = "The plan is empty now.";

/// What an allowed call of such a tool comes to: the change first, if there is one, then its result. Whoever stops
/// between the two finds nothing left to change and goes on with the result.
pub(crate) fn settle_here(state: &State, call: &OpenCall, scale: &Scale<'_>) -> Option<Event> {
    let settles = meta::named(&call.name)?.settle?;
    let (Step::Ready { .. }, Ok(args)) = (&call.step, &call.args) else { return None };
    let asked = match settles(args) {
        Ok(plan) => plan,
        Err(why) => return Some(settle(call, "invalid_arguments", &why, scale)),
    };
    let plan = within(&asked, state.task_room(), scale);
    if plan != state.task.plan {
        return Some(changed(plan, scale));
    }
    Some(settle(call, "", if plan == asked { KEPT } else { SHORTENED }, scale))
}

/// Characters of a step, from generous to meagre; the progress may have three times as many.
const STEPS: &[usize] = &[300, 120, 60, 30];

/// The plan in so many tokens: its texts are cut, then steps leave, those that are done before others.
fn within(plan: &Plan, room: u64, scale: &Scale<'_>) -> Plan {
    let mut short = plan.clone();
    for limit in STEPS {
        short = cut(plan, *limit);
        if fits(&short, room, scale) {
            return short;
        }
    }
    while !short.steps.is_empty() && !fits(&short, room, scale) {
        let done = short.steps.iter().position(|step| step.status == StepStatus::Done);
        short.steps.remove(done.unwrap_or(short.steps.len().saturating_sub(1)));
        let left = plan.steps.len().saturating_sub(short.steps.len());
        short.progress = format!("({left} steps left out)");
    }
    if fits(&short, room, scale) { short } else { Plan::default() }
}

fn fits(plan: &Plan, room: u64, scale: &Scale<'_>) -> bool {
    scale.text(&plan_text(plan)) <= room
}

fn cut(plan: &Plan, limit: usize) -> Plan {
    let steps = plan.steps.iter();
    let steps = steps.map(|step| PlanStep { text: ended(&step.text, limit), status: step.status }).collect();
    Plan { steps, progress: ended(&plan.progress, limit.saturating_mul(3)) }
}

/// The text, or its first characters and a mark.
fn ended(text: &str, limit: usize) -> String {
    let begin: String = text.chars().take(limit).collect();
    if begin.len() < text.len() { format!("{begin}…") } else { begin }
}

fn changed(plan: Plan, scale: &Scale<'_>) -> Event {
    let told = plan_text(&plan);
    let text = if told.is_empty() { EMPTY.to_string() } else { told };
    let tokens = scale.text(&text);
    Event::StateChanged(StateChanged { text, tokens, plan: Some(plan) })
}
