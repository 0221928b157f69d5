//! Turns left the prompt, and a model wrote a summary of them.

use super::reply::spend;
use super::{Misfit, live, notes};
use crate::context::render;
use crate::run::state::{State, Unsummed};
use crate::wire::event::{Compressed, Event, Summarized};
use crate::wire::task::{Role, Source};

/// What a rewrite took away is to be summed up.
pub(super) fn compressed(state: &mut State, seq: u64, event: &Compressed) -> Result<(), Misfit> {
    let (before, to) = (state.task.digest.to, event.digest.to);
    let first = if before > 0 { before.saturating_add(1) } else { event.digest.from };
    notes::compressed(state, seq, event)?;
    if to > before {
        let from = state.unsummed.map_or(first, |left| left.from);
        state.unsummed = Some(Unsummed { from, to, unasked: true });
    }
    Ok(())
}

/// The model was asked without a summary, or has another goal: what left is summed up with what leaves next.
pub(super) fn pass_by(state: &mut State, event: &Event) {
    if matches!(event, Event::Replied(_) | Event::Failed(_) | Event::Started(_))
        && let Some(left) = &mut state.unsummed
    {
        left.unasked = false;
    }
}

/// The summary stands in `turns[0]`, which nobody was asked with yet; the model call is owed again, and reads what came
/// while the summary was written.
pub(super) fn summarized(state: &mut State, seq: u64, event: &Summarized) -> Result<(), Misfit> {
    let run = live(state)?;
    if run.owed != Some(event.effect) {
        return Err("this summary is not owed");
    }
    spend(&mut run.tally, &event.usage, event.cost);
    state.unsummed = None;
    if !event.text.is_empty() {
        reopen(state, event);
    }
    notes::ask(state, seq);
    Ok(())
}

fn reopen(state: &mut State, event: &Summarized) {
    let task = &mut state.task;
    task.digest.summary.clone_from(&event.text);
    task.digest_tokens = 0;
    task.digest_tokens = event.tokens.saturating_sub(task.snapshot_tokens());
    let source = Source { role: Role::State, seq: task.goal_seq, tokens: event.tokens };
    state.prompt.restate(render::user_block(&task.snapshot()), source);
}
