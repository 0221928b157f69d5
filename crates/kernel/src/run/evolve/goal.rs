//! A goal begins, goes on, ends.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::notes::{ask, begin_anew, go_on, note, read_notes, tell};
use super::{Misfit, live};
use crate::context::prompt::share;
use crate::context::render;
use crate::meta::{self, class};
use crate::run::calls::{OpenCall, Step};
use crate::run::resolve::{ANSWER_AGAIN, GO_ON, INVALID_OUTPUT};
use crate::run::state::{Overflow, Run, State, Tally};
use crate::wire::event::{Ended, Resumed, Started, Status};
use crate::wire::message::{Block, Class};
use crate::wire::policy::{Config, Policy};
use crate::wire::task::{Role, Source};

pub(super) fn started(state: &mut State, seq: u64, event: &Started) -> Result<(), Misfit> {
    if state.open_calls().next().is_some() {
        return Err("calls of the goal before it are open");
    }
    let head = head_text(&event.config, state.task.has_left());
    let goal = render::user_block(&render::goal_parts(&event.goal, &event.criteria));
    // A record of before has but one count for both.
    let by_size = || share(event.tokens, head.len(), head.len().saturating_add(goal.len()));
    let head_tokens = event.head.unwrap_or_else(by_size);
    if is_other_head(state, &head, event.renderer) {
        rehead(state, seq, head, head_tokens);
    } else {
        state.prompt.reweigh_head(head_tokens);
    }
    leave_behind(state);
    read_notes(state, seq);
    let was_under_way = state.task.is_under_way();
    state.task.begin(seq, &event.goal, &event.criteria);
    let tokens = event.tokens.saturating_sub(head_tokens);
    let first = state.prompt.len() == 1;
    if first {
        state.task.open(tokens);
    }
    let role = if first { Role::State } else { Role::Goal };
    state.prompt.push(goal, Source { role, seq, tokens });
    begin_anew(state, event.config.placement, was_under_way);
    tell(state, seq, &event.feedback);
    forget_ceiling(state, &event.config);
    state.run = Some(Run {
        format: event.format,
        renderer: event.renderer,
        config: event.config.clone(),
        tally: Tally::default(),
        answered_at: None,
        overflow: Overflow::None,
        skill: None,
        rounds: Vec::new(),
        owed: Some(seq),
        reply: None,
        ended: None,
    });
    Ok(())
}

/// The model reads that the goal before was given up, so that it does not go on with it.
fn leave_behind(state: &mut State) {
    let status = match state.run.as_ref().map(|run| run.ended.as_ref().map(|ended| ended.status)) {
        None | Some(Some(Status::Completed)) => return,
        Some(Some(status)) => status.as_str(),
        Some(None) => "interrupted",
    };
    note(state, format!("The goal before was not completed ({status}); a new one follows."));
}

pub(super) fn head_text(config: &Config, left: bool) -> Box<str> {
    render::block_text(&Block::Head(render::head_block(config, meta::tools(config, left))))
}

fn rehead(state: &mut State, seq: u64, head: Box<str>, tokens: u64) {
    state.prompt.rehead(head, Source { role: Role::Head, seq, tokens }, render::rebased);
}

/// What one model's service refused as too long says nothing of another's window.
fn forget_ceiling(state: &mut State, config: &Config) {
    if state.run.as_ref().is_none_or(|run| run.config.model.id != config.model.id) {
        state.ceiling = None;
    }
}

fn is_other_head(state: &State, head: &str, renderer: u64) -> bool {
    state.prompt.head() != head || state.run.as_ref().is_none_or(|run| run.renderer != renderer)
}

pub(super) fn resumed(state: &mut State, seq: u64, event: &Resumed) -> Result<(), Misfit> {
    let head = head_text(&event.config, state.task.has_left());
    if is_other_head(state, &head, event.renderer) {
        let tokens = state.prompt.scaled_head(&head);
        rehead(state, seq, head, tokens);
    }
    forget_ceiling(state, &event.config);
    let run = state.run.as_mut().ok_or("no goal was started")?;
    let before = core::mem::replace(&mut run.config, event.config.clone());
    let words = if is_invalid(run.ended.as_ref()) { ANSWER_AGAIN } else { GO_ON };
    if run.ended.is_some() {
        // A goal that had failed gets new tries; one that a crash left goes on with those it has.
        (run.tally.repairs, run.tally.blanks) = (0, 0);
    }
    (run.format, run.renderer, run.ended, run.answered_at) = (event.format, event.renderer, None, None);
    run.overflow = Overflow::None;
    run.rounds.clear();
    as_of_today(run);
    if let Some(reply) = &mut run.reply {
        reply.calls.iter_mut().for_each(|call| take_up(call, &before));
    } else {
        go_on(state, words);
        ask(state, seq);
    }
    Ok(())
}

/// The active skill allows what its file says today; one whose file is gone goes on as it was.
fn as_of_today(run: &mut Run) {
    let Some(active) = &mut run.skill else { return };
    if let Some(today) = run.config.sources.skills.iter().find(|skill| skill.name == active.name) {
        active.clone_from(today);
    }
}

fn is_invalid(ended: Option<&Ended>) -> bool {
    ended.and_then(|ended| ended.fault.as_ref()).is_some_and(|fault| fault.code == INVALID_OUTPUT)
}

/// A call as another process finds it: what had not begun is judged anew, what was running goes by its class.
fn take_up(call: &mut OpenCall, before: &Config) {
    call.step = match core::mem::replace(&mut call.step, Step::Fresh) {
        Step::Fresh | Step::Refused(_) | Step::Ready { begun: false, .. } => Step::Fresh,
        Step::Running { .. } if class(before, &call.name) == Class::Once => Step::Lost,
        Step::Running { effect, .. } => Step::Ready { effect, begun: true },
        Step::Suspended { effect, given, ask, payload, .. } => {
            Step::Suspended { effect, given, ask, payload, alive: false }
        }
        step @ (Step::Ready { begun: true, .. } | Step::Denied { .. } | Step::Asked { .. }) => step,
        step @ (Step::Lost | Step::Settled { .. }) => step,
    };
}

/// Another policy: what was allowed by the one before and has not begun is judged again.
pub(super) fn policy_changed(state: &mut State, policy: &Policy) -> Result<(), Misfit> {
    let run = live(state)?;
    run.config.policy = policy.clone();
    for call in run.reply.iter_mut().flat_map(|reply| reply.calls.iter_mut()) {
        if matches!(call.step, Step::Ready { begun: false, .. }) {
            call.step = Step::Fresh;
        }
    }
    Ok(())
}

pub(super) fn ended(state: &mut State, event: &Ended) -> Result<(), Misfit> {
    let run = live(state)?;
    if run.open_calls().next().is_some() {
        return Err("calls are open");
    }
    (run.owed, run.reply, run.ended) = (None, None, Some(event.clone()));
    Ok(())
}
