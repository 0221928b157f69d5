//! What is owed to the world: a view of the state.

use alloc::string::String;
use alloc::vec::Vec;

use super::calls::{OpenCall, Step};
use super::limits::{Allowance, allowance};
use super::state::{Run, State};
use super::summing::{asked, summarize};
use crate::wire::effect::{AskUser, CallModel, Effect, Question, RunTool};

/// All effects that are owed, in the order of their ids.
pub(crate) fn pending(state: &State) -> Vec<Effect> {
    let Some(run) = state.run.as_ref().filter(|run| run.ended.is_none()) else { return Vec::new() };
    let mut effects: Vec<Effect> = Vec::new();
    effects.extend(summarize(state, run).map(Effect::Summarize));
    effects.extend(call_model(state, run).map(Effect::CallModel));
    effects.extend(run.open_calls().filter_map(run_tool).map(Effect::RunTool));
    effects.extend(run.open_calls().filter_map(ask_user).map(Effect::AskUser));
    effects.sort_by_key(Effect::id);
    effects
}

fn call_model(state: &State, run: &Run) -> Option<CallModel> {
    let max_output = match allowance(state, run) {
        Allowance::Capped(left, _) => Some(left),
        Allowance::Full | Allowance::Spent(_) => None,
    };
    let prompt = &state.prompt;
    let id = asked(state, run)?;
    Some(CallModel { id, epoch: prompt.epoch(), len: prompt.len(), digest: prompt.digest(), max_output })
}

/// The effect stays the same from its Begun on, also while its tool waits in this process and after the answer.
fn run_tool(call: &OpenCall) -> Option<RunTool> {
    let (id, given) = call.owed_run()?;
    Some(RunTool {
        id,
        call_id: call.id.clone(),
        name: call.name.clone(),
        args: arguments(call),
        key: call.key.clone(),
        answers: call.answers.iter().take(given).cloned().collect(),
        grant: call.grant.clone(),
    })
}

/// The question that a call waits with.
pub(crate) fn ask_user(call: &OpenCall) -> Option<AskUser> {
    let (id, kind, payload) = match &call.step {
        Step::Asked { effect, reason } => (*effect, Question::Approval, reason),
        Step::Suspended { ask, payload, .. } if call.agent => (*ask, Question::Agent, payload),
        Step::Suspended { ask, payload, .. } => (*ask, Question::Suspension, payload),
        _ => return None,
    };
    Some(AskUser {
        id,
        kind,
        call_id: call.id.clone(),
        name: call.name.clone(),
        args: arguments(call),
        payload: payload.clone(),
    })
}

fn arguments(call: &OpenCall) -> String {
    call.args.clone().unwrap_or_default()
}
