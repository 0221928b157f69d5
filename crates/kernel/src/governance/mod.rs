//! Governance: an ordered list of stages that every call passes before it runs. It fails closed.

use alloc::string::String;
use alloc::vec::Vec;

use crate::Millis;
use crate::wire::event::{Allow, Ask, Refuse, Trail, Verdict};
use crate::wire::policy::Config;

/// The stages of the shipped kernel, in order. There are no rules yet.
pub const STAGES: &[Stage] = &[];

/// One stage: its name in the audit, and its judgement.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    /// Its name in verdicts and trails.
    pub name: &'static str,
    /// What it says of a call.
    pub judge: Judge,
}

/// A stage's judgement. An error is a refusal.
pub type Judge = fn(&View<'_>, &Call<'_>, &mut Windows, Millis) -> Result<StageVerdict, String>;

/// What a stage may see of the state.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The configuration with the policy in force.
    pub config: &'a Config,
    /// Model calls of the current goal.
    pub turns: u64,
}

/// A call with validated arguments.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Unique in the session.
    pub id: &'a str,
    /// The tool's name.
    pub name: &'a str,
    /// The validated JSON text.
    pub args: &'a str,
    /// Whether a person has already approved it: a question is then no obstacle.
    pub approved: bool,
}

/// Rate windows: the only thing that *decide* sees and the log does not hold. The binding's `Governance` owns them and
/// lends them to `accept`. No stage counts anything yet.
#[derive(Debug, Default)]
pub struct Windows {}

/// What one stage says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageVerdict {
    /// Nothing against it.
    Allow,
    /// No.
    Refuse {
        /// The rule that says so.
        rule: String,
        /// Why.
        reason: String,
        /// When a rate limit would let it pass.
        retry_after_ms: Option<u64>,
    },
    /// A person has to say.
    Ask {
        /// The rule that says so.
        rule: String,
        /// Why.
        reason: String,
    },
}

/// Passes a call through the stages. The first refusal ends it; a question waits for the stages behind it.
pub fn judge(
    stages: &[Stage],
    view: &View<'_>,
    call: &Call<'_>,
    windows: &mut Windows,
    now: Millis,
) -> (Verdict, Vec<Trail>) {
    let mut verdict = Verdict::Allow(Allow {});
    let mut trail = Vec::with_capacity(stages.len());
    for stage in stages {
        let said = (stage.judge)(view, call, windows, now);
        trail.push(note(stage, &said));
        match said {
            Ok(StageVerdict::Allow) => {}
            Ok(StageVerdict::Ask { .. }) if call.approved => {}
            Ok(StageVerdict::Ask { rule, reason }) => ask_once(&mut verdict, stage, rule, reason),
            Ok(StageVerdict::Refuse { rule, reason, retry_after_ms }) => {
                return (refusal(stage, rule, reason, retry_after_ms), trail);
            }
            Err(reason) => return (refusal(stage, String::from("error"), reason, None), trail),
        }
    }
    (verdict, trail)
}

fn ask_once(verdict: &mut Verdict, stage: &Stage, rule: String, reason: String) {
    if matches!(verdict, Verdict::Allow(_)) {
        *verdict = Verdict::Ask(Ask { stage: stage.name.into(), rule, reason });
    }
}

fn refusal(stage: &Stage, rule: String, reason: String, retry_after_ms: Option<u64>) -> Verdict {
    Verdict::Refuse(Refuse { stage: stage.name.into(), rule, reason, retry_after_ms })
}

fn note(stage: &Stage, said: &Result<StageVerdict, String>) -> Trail {
    let (verdict, reason) = match said {
        Ok(StageVerdict::Allow) => ("allow", ""),
        Ok(StageVerdict::Refuse { reason, .. }) => ("refuse", reason.as_str()),
        Ok(StageVerdict::Ask { reason, .. }) => ("ask", reason.as_str()),
        Err(reason) => ("error", reason.as_str()),
    };
    Trail { stage: stage.name.into(), verdict: verdict.into(), reason: reason.into() }
}
