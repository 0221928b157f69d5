//! Pressure: whether the prompt is rewritten before the model is asked, and what is said where it cannot be.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::calls::OpenCall;
use super::follow::Desk;
use super::limits::{Stop, TOO_LONG, turns_left};
use super::state::{Overflow, Run, State};
use crate::context::compress::{Goal, compress, parameters};
use crate::context::gauge::Gauge;
use crate::context::pressure::{Marks, marks, pays};
use crate::context::render::head_block;
use crate::context::weigh::Scale;
use crate::meta;
use crate::wire::event::{Compressed, Ended, Event};
use crate::wire::input::Fault;

/// Why the prompt is rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// The service refused it.
    Refused,
    /// It is above the high mark.
    Full,
    /// It is above the middle mark, and the provider's cache has forgotten it.
    Cold,
    /// It is above the middle mark, and the calls to come make up for it.
    Pays,
}

/// The rewrite that is due before the call that has just become owed, or the end where the request does not fit.
pub(crate) fn press(state: &State, run: &Run, desk: &Desk<'_>, now: i64) -> Option<Event> {
    let marks = marks(&run.config.limits, &state.prompt, &state.task, state.ceiling);
    if let Some(why) = why(state, run, &marks, state.prompt.tokens(), run.tally.turns, now)
        && let Some(compressed) = rewrite(state, run, desk, &marks, why)
    {
        return Some(Event::Compressed(compressed));
    }
    if run.overflow == Overflow::Refused {
        return Some(refused_again(state, run, desk));
    }
    let (prompt, reserve, window) = (state.prompt.tokens(), run.config.limits.reserve, run.config.limits.window);
    let fits = prompt.saturating_add(reserve) <= window;
    (!fits).then(|| does_not_fit(Stop::Window { prompt, reserve, window }, state, run, desk))
}

/// A part of the window that no input brings: what is loaded or recalled, words of the kernel's own.
const UNFORESEEN: u64 = 16;

/// Whether the input that comes next, of so many bytes, may have the prompt rewritten. `told`: the tokens of the prompt that
/// it reports. Foresees what a reply, a result or a signal brings; not that a goal begins or that the service refuses.
pub(crate) fn may_rewrite(state: &State, bytes: u64, told: u64, now: i64) -> bool {
    let Some(run) = state.run.as_ref().filter(|run| run.ended.is_none()) else { return true };
    let marks = marks(&run.config.limits, &state.prompt, &state.task, state.ceiling);
    let results = run.reply.iter().flat_map(|reply| &reply.calls).map(OpenCall::settled_tokens);
    let notes = state.notes.iter().map(|note| note.tokens);
    let waiting = results.chain(notes).chain([bytes, state.unshown.size()]).fold(0, u64::saturating_add);
    let more = Gauge::heaviest(waiting).saturating_add(run.config.limits.window / UNFORESEEN);
    let tokens = state.prompt.tokens().max(told).saturating_add(more);
    why(state, run, &marks, tokens, run.tally.turns.saturating_add(1), now).is_some()
}

/// Why a prompt of so many tokens is rewritten, behind so many turns.
fn why(state: &State, run: &Run, marks: &Marks, tokens: u64, turns: u64, now: i64) -> Option<Why> {
    if run.overflow == Overflow::Refused {
        return Some(Why::Refused);
    }
    if tokens > marks.high {
        return Some(Why::Full);
    }
    if tokens <= marks.middle {
        return None;
    }
    let life = i64::try_from(run.config.model.cache_ms).unwrap_or(i64::MAX);
    if state.asked.is_some_and(|asked| now.saturating_sub(asked) > life) {
        return Some(Why::Cold);
    }
    could_pay(run, turns, tokens, marks.low).then_some(Why::Pays)
}

/// A goal is taken to go on for as many calls as it has had, within its limit.
fn calls_to_come(run: &Run, turns: u64) -> u64 {
    turns.min(turns_left(run))
}

fn could_pay(run: &Run, turns: u64, before: u64, after: u64) -> bool {
    run.price().is_some_and(|price| pays(price, before, after, calls_to_come(run, turns)))
}

fn rewrite(state: &State, run: &Run, desk: &Desk<'_>, marks: &Marks, why: Why) -> Option<Compressed> {
    let gauge = state.prompt.gauge();
    let scale = desk.scale(&run.config.model.id);
    let goal = Goal {
        target: if why == Why::Refused { 0 } else { gauge.own_of(marks.low) },
        most: gauge.own_of(marks.most),
        head: other_head(state, run, &scale),
    };
    let tools = meta::tools(&run.config, true);
    let labels: BTreeSet<String> = tools.iter().flat_map(|tool| parameters(&tool.parameters)).collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let compressed = compress(&state.prompt, &state.task, goal, &labels, &scale)?;
    let (before, after) = (state.prompt.tokens(), compressed.tokens);
    let is_worth = match why {
        Why::Refused => true,
        Why::Full | Why::Cold => marks.is_progress(before, after),
        Why::Pays => marks.is_progress(before, after) && could_pay(run, run.tally.turns, before, after),
    };
    is_worth.then_some(compressed)
}

/// Tokens of the head that the new epoch begins with, if it is another: what leaves can be recalled from then on, also
/// where the run has no tools.
fn other_head(state: &State, run: &Run, scale: &Scale<'_>) -> Option<u64> {
    let tools = |left| meta::tools(&run.config, left);
    let is_other = !state.task.has_left() && tools(true).len() != tools(false).len();
    is_other.then(|| scale.head(&head_block(&run.config, tools(true))))
}

fn does_not_fit(stop: Stop, state: &State, run: &Run, desk: &Desk<'_>) -> Event {
    let message = format!(
        "the request does not fit: {}; {}. Raise max_tokens, or shorten what is largest",
        stop.figure(),
        what_fills(state, run, desk)
    );
    ended(message)
}

fn refused_again(state: &State, run: &Run, desk: &Desk<'_>) -> Event {
    let message = format!(
        "the model service refused the prompt as too long, and there is nothing more to leave out: {}. Shorten what is \
         largest, or use a model with a larger window",
        what_fills(state, run, desk)
    );
    ended(message)
}

fn ended(message: String) -> Event {
    let fault = Fault { code: TOO_LONG.into(), message, retryable: false };
    Event::Ended(Ended { status: crate::wire::event::Status::Error, fault: Some(fault) })
}

/// The parts of the prompt with their tokens.
fn what_fills(state: &State, run: &Run, desk: &Desk<'_>) -> String {
    let scale = desk.scale(&run.config.model.id);
    let head = head_block(&run.config, meta::tools(&run.config, state.task.has_left()));
    let (system, memory) = (scale.text(&head.system_stable), scale.text(&head.system_knowledge));
    let tools = scale.head(&head).saturating_sub(system).saturating_sub(memory);
    let turns = state.prompt.entries().iter().skip(1).map(|entry| entry.source.tokens);
    let task = turns.clone().next().unwrap_or(0);
    let newest = turns.skip(1).fold(0, u64::saturating_add);
    format!(
        "system prompt {system}, initial memory {memory}, tools {tools}, goal and task state {task}, newest turns \
         {newest} tokens"
    )
}
