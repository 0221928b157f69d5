//! Closing a call without its tool's word: every call gets exactly one result, whatever ends it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;

use super::calls::{OpenCall, Step};
use super::limits::Stop;
use crate::context::weigh::Scale;
use crate::meta::class;
use crate::wire::event::{Event, Refuse, Settled, Verdict};
use crate::wire::message::{Class, Part, Text, ToolResult};
use crate::wire::policy::Config;

/// Why a call is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// A limit was reached.
    Limit(Stop),
    /// The run was stopped.
    Interrupted,
    /// A signal goes before it.
    Superseded,
    /// A further goal began.
    OtherGoal,
    /// The reply that holds it was not a whole one.
    Cut,
}

const MAY_HAVE: &str = "cancelled; it may have taken effect";
const UNKNOWN: &str = "the outcome is unknown; it may have taken effect";
const WITHDRAWN: &str = "withdrawn: a new goal was started before the answer came";

/// The Settled of a call that its tool does not settle.
pub(crate) fn close(call: &OpenCall, why: Why, config: &Config, scale: &Scale<'_>) -> Event {
    let (kind, text) = words(call, why, config);
    settle(call, kind, &text, scale)
}

fn words(call: &OpenCall, why: Why, config: &Config) -> (&'static str, String) {
    let waits = call.owed_ask().is_some();
    match why {
        Why::OtherGoal if waits => ("withdrawn", WITHDRAWN.to_string()),
        Why::OtherGoal if call.has_begun() && class(config, &call.name) == Class::Once => lost(),
        _ if call.has_begun() => ("cancelled", MAY_HAVE.to_string()),
        _ => ("not_run", not_run(why)),
    }
}

fn not_run(why: Why) -> String {
    match why {
        Why::Limit(stop) => format!("not run: limit reached ({})", stop.figure()),
        Why::Interrupted => "not run: interrupted".to_string(),
        Why::Superseded => "not run: superseded".to_string(),
        Why::OtherGoal => "not run: a new goal was started".to_string(),
        Why::Cut => "not run: the reply was cut off".to_string(),
    }
}

fn lost() -> (&'static str, String) {
    ("outcome_unknown", UNKNOWN.to_string())
}

/// The Settled of a call whose own step calls for one: not valid, refused, denied, or lost in a crash.
pub(crate) fn settle_by_step(call: &OpenCall, scale: &Scale<'_>) -> Option<Event> {
    let (kind, text) = match (&call.step, &call.args) {
        (Step::Fresh | Step::Refused(_), Err(objection)) => (objection.kind.as_str(), objection.message.clone()),
        (Step::Refused(Verdict::Refuse(refusal)), _) => refused(refusal),
        (Step::Denied { reason, begun: false }, _) => ("denied", format!("denied: {reason}")),
        (Step::Denied { reason, begun: true }, _) => ("exception", reason.clone()),
        (Step::Lost, _) => lost(),
        _ => return None,
    };
    Some(settle(call, kind, &text, scale))
}

fn refused(refusal: &Refuse) -> (&'static str, String) {
    match refusal.retry_after_ms {
        Some(wait) => ("rate_limited", format!("{}: {}; try again in {wait} ms", refusal.stage, refusal.reason)),
        None => ("denied", format!("denied by {}: {}", refusal.stage, refusal.reason)),
    }
}

pub(crate) fn settle(call: &OpenCall, kind: &str, text: &str, scale: &Scale<'_>) -> Event {
    let parts = vec![Part::Text(Text { text: text.to_string() })];
    let tokens = scale.content(&parts);
    let result = ToolResult { parts, error_kind: kind.to_string(), blob: None };
    Event::Settled(Settled { call: call.at, result, tokens, spent: None })
}
