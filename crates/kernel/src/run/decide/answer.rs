//! A tool comes to an end, asks, or gets its answer.

use alloc::vec;
use alloc::vec::Vec;

use crate::Rejected;
use crate::context::arguments::is_json;
use crate::run::calls::{OpenCall, Step};
use crate::run::follow::Desk;
use crate::run::state::State;
use crate::wire::event::{Answered, Event, Settled, Suspended};
use crate::wire::input::{Answer, AnswerBody, Result as ToolEnd, Suspend};

pub(super) fn result(state: &State, input: ToolEnd, desk: &Desk<'_>) -> Result<Vec<Event>, Rejected> {
    let call = running(state, "result", input.effect)?;
    let model = state.run.as_ref().map_or("", |run| &run.config.model.id);
    let tokens = desk.scale(model).content(&input.result.parts);
    let spent = input.spent.filter(|_| call.agent);
    Ok(vec![Event::Settled(Settled { call: call.at, result: input.result, tokens, spent })])
}

pub(super) fn suspend(state: &State, input: Suspend) -> Result<Vec<Event>, Rejected> {
    let call = running(state, "suspend", input.effect)?;
    if matches!(call.step, Step::Suspended { .. }) {
        return Err(Rejected::Invalid("the tool waits for an answer already".into()));
    }
    json(&input.payload, "payload")?;
    Ok(vec![Event::Suspended(Suspended { call: call.at, payload: input.payload, agent: call.agent })])
}

pub(super) fn answer(state: &State, input: Answer) -> Result<Vec<Event>, Rejected> {
    let Answer { effect, answer } = input;
    let asked = state.open_calls().find(|call| call.owed_ask() == Some(effect));
    let call = asked.ok_or(Rejected::Stale { input: "answer", effect })?;
    match (&call.step, &answer) {
        (Step::Asked { .. }, AnswerBody::Approve(_) | AnswerBody::Deny(_)) => {}
        (Step::Suspended { .. }, AnswerBody::Value(value)) => json(&value.json, "value")?,
        (Step::Suspended { .. }, AnswerBody::Deny(_)) => {}
        (Step::Asked { .. }, _) => return Err(Rejected::Invalid("an approval takes approve or deny".into())),
        _ => return Err(Rejected::Invalid("a suspension takes a value or deny".into())),
    }
    Ok(vec![Event::Answered(Answered { call: call.at, effect, answer })])
}

/// The call whose RunTool is `effect`.
fn running<'a>(state: &'a State, input: &'static str, effect: u64) -> Result<&'a OpenCall, Rejected> {
    let mut calls = state.open_calls();
    let owed = calls.find(|call| call.owed_run().is_some_and(|(id, _)| id == effect));
    owed.ok_or(Rejected::Stale { input, effect })
}

fn json(text: &str, what: &str) -> Result<(), Rejected> {
    if is_json(text) { Ok(()) } else { Err(Rejected::Invalid(alloc::format!("the {what} is not JSON text"))) }
}
