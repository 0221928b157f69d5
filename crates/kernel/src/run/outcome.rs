//! How the current goal ended or parked.

use alloc::vec::Vec;

use super::pending::ask_user;
use super::phase::Phase;
use super::state::{Run, State};
use crate::wire::effect::{Open, Outcome};
use crate::wire::event::Status;
use crate::wire::input::Fault;

/// The outcome of a goal that has ended or waits; none while it runs.
pub(crate) fn outcome(state: &State) -> Option<Outcome> {
    let run = state.run.as_ref()?;
    if let Some(ended) = &run.ended {
        return Some(summary(run, ended.status, ended.fault.as_ref()));
    }
    if run.phase() != Phase::Waiting {
        return None;
    }
    let mut asks: Vec<_> = run.open_calls().filter_map(ask_user).collect();
    asks.sort_by_key(|ask| ask.id);
    let pending = asks.into_iter().map(Open::AskUser).collect();
    Some(Outcome { pending, ..summary(run, Status::Suspended, None) })
}

fn summary(run: &Run, status: Status, fault: Option<&Fault>) -> Outcome {
    let (tally, usage) = (&run.tally, run.tally.all_usage());
    let unpriced = tally.unpriced || tally.delegated.unpriced;
    Outcome {
        status,
        text: tally.text.clone(),
        turns: tally.all_turns(),
        input_tokens: usage.input,
        output_tokens: usage.output,
        cached_tokens: usage.cached,
        cache_write_tokens: usage.cache_write,
        reasoning_tokens: usage.reasoning,
        priced: !unpriced && (tally.turns > 0 || run.config.model.price.is_some()),
        cost: tally.all_cost(),
        code: fault.map(|fault| fault.code.clone()).unwrap_or_default(),
        message: fault.map(|fault| fault.message.clone()).unwrap_or_default(),
        retryable: fault.is_some_and(|fault| fault.retryable),
        pending: Vec::new(),
    }
}
