//! Summaries that a model writes, where they are asked for: owed between a rewrite and the model call behind it.

use super::state::{Run, State};
use crate::context::pressure::marks;
use crate::wire::effect::Summarize;

/// Parts of what the prompt has left below its high mark that a summary may take, in hundredths, and its bounds in tokens.
const SHARE: u64 = 50;
const LEAST: u64 = 60;
const MOST: u64 = 1_000;

/// The summary that is owed in front of a model call, the first one behind a rewrite that took turns away.
pub(crate) fn summarize(state: &State, run: &Run) -> Option<Summarize> {
    let left = state.unsummed.filter(|left| run.config.summaries && left.unasked)?;
    let (id, room) = (run.owed?, room(state, run));
    (room >= LEAST).then(|| Summarize {
        id,
        from: left.from,
        to: left.to,
        room,
        before: state.task.digest.summary.clone(),
    })
}

/// The model call that is owed; none while a summary comes before it.
pub(crate) fn asked(state: &State, run: &Run) -> Option<u64> {
    run.owed.filter(|_| summarize(state, run).is_none())
}

/// Tokens that the summary may have, so that the prompt stays below the mark at which it is rewritten.
fn room(state: &State, run: &Run) -> u64 {
    let high = marks(&run.config.limits, &state.prompt, &state.task, state.ceiling).high;
    let free = state.prompt.gauge().own_of(high.saturating_sub(state.prompt.tokens()));
    free.saturating_mul(SHARE).checked_div(100).unwrap_or(0).min(MOST)
}
