//! A goal begins, or goes on.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec::Vec;

use super::close_all;
use crate::context::arguments::is_json;
use crate::context::render;
use crate::meta;
use crate::run::closing::Why;
use crate::run::follow::Desk;
use crate::run::limits::raised;
use crate::run::state::{Run, State};
use crate::wire::event::{Ended, Event, Remark, Resumed, Started, Status};
use crate::wire::input::{Fault, Resume, Start};
use crate::wire::policy::Config;
use crate::{FORMAT, RENDERER, Rejected};

pub(super) fn start(state: &State, input: Start, desk: &Desk<'_>) -> Result<Vec<Event>, Rejected> {
    check(state, &input.config)?;
    if input.goal.is_empty() {
        return Err(Rejected::Invalid("the goal has no content".into()));
    }
    let mut events = state.run.as_ref().map_or_else(Vec::new, |run| close_all(run, Why::OtherGoal, desk));
    let Start { goal, config, criteria, feedback } = input;
    let scale = desk.scale(&config.model.id);
    let head = scale.head(&render::head_block(&config, meta::tools(&config, state.task.has_left())));
    let tokens = scale.content(&render::goal_parts(&goal, &criteria)).saturating_add(head);
    let feedback = feedback.into_iter().map(|text| Remark { tokens: scale.text(&text), text }).collect();
    let (format, renderer, head) = (FORMAT, RENDERER, Some(head));
    events.push(Event::Started(Started { format, renderer, goal, config, tokens, criteria, feedback, head }));
    Ok(events)
}

pub(super) fn resume(state: &State, input: Resume) -> Result<Vec<Event>, Rejected> {
    check(state, &input.config)?;
    let ended = state.run.as_ref().and_then(|run| run.ended.as_ref().map(|ended| (run, ended)));
    let again = match ended {
        Some((_, Ended { status: Status::Completed, .. })) => return Err(COMPLETED),
        Some((run, ended)) => still_limited(run, ended, &input.config),
        None => None,
    };
    let resumed = Event::Resumed(Resumed { format: FORMAT, renderer: RENDERER, config: input.config });
    Ok([resumed].into_iter().chain(again).collect())
}

const COMPLETED: Rejected = Rejected::Refused {
    phase: "ended",
    input: "resume",
    why: "the goal is completed; read its outcome, or start another goal",
};

/// The same end again, where today's limit is not higher than the one that was reached.
fn still_limited(run: &Run, ended: &Ended, today: &Config) -> Option<Event> {
    if raised(ended, &run.config.limits, &today.limits) {
        return None;
    }
    let code = ended.fault.as_ref().map_or(ended.status.as_str(), |fault| fault.code.as_str());
    let message = format!("the session ended by its limit {code}, which is not higher now; raise {code} to go on");
    let fault = Fault { code: code.into(), message, retryable: false };
    Some(Event::Ended(Ended { status: ended.status, fault: Some(fault) }))
}

/// What cannot be run by is refused before anything is recorded.
fn check(state: &State, config: &Config) -> Result<(), Rejected> {
    let invalid = |text: alloc::string::String| Err(Rejected::Invalid(text));
    if let Some(run) = state.run.as_ref().filter(|run| run.config.session != config.session) {
        return invalid(format!("this is the log of session {:?}, not {:?}", run.config.session, config.session));
    }
    if config.limits.parallel == 0 {
        return invalid("limits.parallel must be at least 1".into());
    }
    let mut names = BTreeSet::new();
    for tool in &config.tools {
        if !names.insert(&tool.name) {
            return invalid(format!("two tools are called {:?}", tool.name));
        }
        if meta::named(&tool.name).is_some() {
            return invalid(format!(
                "{:?} is the name of a tool of the kernel's own; give the tool another one",
                tool.name
            ));
        }
        if !is_json(&tool.parameters) {
            return invalid(format!("the parameters of tool {:?} are not JSON", tool.name));
        }
    }
    Ok(())
}
