//! What a reply leads to. Calls decide, not the reason that the provider gives.

use alloc::format;
use alloc::string::{String, ToString};

use super::limits;
use super::state::Tally;
use crate::wire::event::{Ended, Replied, Status};
use crate::wire::input::{Fault, Finish};
use crate::wire::message::{RecordedPart, Validated};

/// Repair turns for a final text that does not validate.
const REPAIRS: u64 = 2;

/// What the model reads when it was stopped in mid-sentence.
pub(crate) const GO_ON: &str = "The previous reply was interrupted; go on.";

/// What the model reads when a goal goes on that had failed over the form of its answer.
pub(crate) const ANSWER_AGAIN: &str = "The previous answer was not valid; answer again, in the form asked for.";

/// The code of that failure.
pub(crate) const INVALID_OUTPUT: &str = "invalid_output";

/// What a reply leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Its calls are run.
    Act,
    /// The model is asked again; it reads this first.
    Again(Option<String>),
    /// The goal ends.
    End(Ended),
}

/// Whether a reply says anything.
pub(crate) fn speaks(parts: &[RecordedPart]) -> bool {
    parts.iter().any(|part| matches!(part, RecordedPart::Text(text) if !text.text.trim().is_empty()))
}

/// Whether a reply has calls.
pub(crate) fn calls(parts: &[RecordedPart]) -> bool {
    parts.iter().any(|part| matches!(part, RecordedPart::Call(_)))
}

/// What a reply leads to, by what was used before it. `capped`: a budget had lowered its output limit.
pub(crate) fn next(reply: &Replied, tally: &Tally, capped: Option<limits::Stop>) -> Next {
    if !reply.complete {
        return Next::Again(speaks(&reply.parts).then(|| GO_ON.to_string()));
    }
    match (reply.finish, capped) {
        (Finish::Length, Some(stop)) => return Next::End(stop.ended()),
        (Finish::Length, None) => return failed("output_limit", CUT),
        (Finish::ContentFilter, _) => return failed("content_filter", FILTERED),
        _ => {}
    }
    if calls(&reply.parts) {
        return Next::Act;
    }
    if !speaks(&reply.parts) {
        return if tally.blanks == 0 { Next::Again(None) } else { failed("empty_reply", EMPTY) };
    }
    match &reply.output {
        Some(Validated::Err(objection)) if tally.repairs < REPAIRS => Next::Again(Some(repair(&objection.message))),
        Some(Validated::Err(objection)) => failed(INVALID_OUTPUT, &still_invalid(&objection.message)),
        Some(Validated::Ok(_)) | None => Next::End(Ended { status: Status::Completed, fault: None }),
    }
}

const CUT: &str = "the reply was cut by the output limit; raise max_output_tokens or ask for less";
const FILTERED: &str = "the provider's content filter stopped the reply; change the request";
const EMPTY: &str = "the model gave an empty reply twice in a row; change the request or the model";

/// What the model reads of an answer that does not validate.
fn repair(objection: &str) -> String {
    format!("The answer is not valid: {objection}\nAnswer again, with nothing but the answer in the form asked for.")
}

fn still_invalid(objection: &str) -> String {
    format!(
        "the answer is not valid, {REPAIRS} repairs included: {objection}; loosen output_type or change the request"
    )
}

fn failed(code: &str, message: &str) -> Next {
    let fault = Fault { code: code.to_string(), message: message.to_string(), retryable: false };
    Next::End(Ended { status: Status::Error, fault: Some(fault) })
}
