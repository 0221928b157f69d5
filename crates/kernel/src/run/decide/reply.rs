//! The model replied.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::failed;
use crate::Rejected;
use crate::run::follow::Desk;
use crate::run::limits::cost;
use crate::run::state::State;
use crate::run::summing::asked;
use crate::wire::event::{Event, Failed, Replied};
use crate::wire::input::Reply;
use crate::wire::message::{CallPart, RecordedCall, RecordedPart, ReplyPart, Usage};

pub(super) fn reply(state: &State, input: Reply, desk: &Desk<'_>) -> Result<Vec<Event>, Rejected> {
    let stale = Rejected::Stale { input: "reply", effect: input.effect };
    let Some(run) = state.run.as_ref().filter(|run| asked(state, run) == Some(input.effect)) else {
        return Err(stale);
    };
    let Reply { effect, parts, finish, dialect, model, usage, complete, output, fault, notices, price } = input;
    if complete && fault.is_some() {
        return Err(Rejected::Invalid("a complete reply has no fault".into()));
    }
    let parts = recorded(state, parts, complete);
    let scale = desk.scale(&run.config.model.id);
    let tokens = scale.reply(&parts);
    let own = state.prompt.gauge().own();
    let least = Some(scale.least(own)).filter(|least| *least < own);
    let estimated = usage.is_none();
    let usage = usage.unwrap_or_else(|| estimate(state, tokens));
    let replied = Event::Replied(Replied {
        effect,
        finish,
        digest: state.prompt.digest(),
        tokens,
        dialect,
        model,
        complete,
        estimated,
        cost: price.as_ref().or(run.config.model.price.as_ref()).map(|price| cost(price, &usage)),
        output,
        notices,
        price,
        least,
        parts,
        usage,
    });
    let Some(fault) = fault else { return Ok(vec![replied]) };
    Ok(vec![replied, Event::Failed(Failed { effect, fault: fault.clone() }), failed(fault)])
}

fn estimate(state: &State, output: u64) -> Usage {
    Usage { input: state.prompt.tokens(), output, ..Usage::default() }
}

/// The parts as they are recorded: calls get their ids; an incomplete reply keeps no call.
fn recorded(state: &State, parts: Vec<ReplyPart>, complete: bool) -> Vec<RecordedPart> {
    let mut given: Vec<String> = Vec::new();
    let mut out = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            ReplyPart::Text(text) => out.push(RecordedPart::Text(text)),
            ReplyPart::Thinking(thinking) => out.push(RecordedPart::Thinking(thinking)),
            ReplyPart::Opaque(opaque) => out.push(RecordedPart::Opaque(opaque)),
            ReplyPart::Call(call) if complete => {
                let id = unique(state, &call.wire_id, &given);
                given.push(id.clone());
                out.push(RecordedPart::Call(named(call, id)));
            }
            ReplyPart::Call(_) => {}
        }
    }
    out
}

fn named(call: CallPart, id: String) -> RecordedCall {
    let CallPart { wire_id, name, args_text, validated } = call;
    let wire_id = (wire_id != id).then_some(wire_id);
    RecordedCall { id, name, args_text, validated, wire_id }
}

/// The wire id while it is unused in the session, else `call_{seq}_{index}`, lengthened until it is unused.
fn unique(state: &State, wire_id: &str, given: &[String]) -> String {
    let used = |id: &str| state.knows(id) || given.iter().any(|other| other == id);
    if !wire_id.is_empty() && !used(wire_id) {
        return wire_id.to_string();
    }
    let mut id = format!("call_{}_{}", state.next, given.len());
    while used(&id) {
        id.push('x');
    }
    id
}
