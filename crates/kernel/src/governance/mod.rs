//! Governance: an ordered list of stages that every call passes before it runs. It fails closed.

mod audit;
mod constraint;
mod pattern;
mod permission;
mod rate_limit;
mod veto;
mod windows;

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

pub use pattern::fits;
pub use permission::permit;
pub use windows::{Name, Windows};

use crate::Millis;
use crate::wire::event::{Allow, Ask, Refuse, Trail, Verdict};
use crate::wire::policy::{Policy, Skill};

/// The stages of the shipped kernel, in order.
pub const STAGES: &[Stage] = &[
    Stage { name: "permission", judge: permission::judge },
    Stage { name: "veto", judge: veto::judge },
    Stage { name: "rate_limit", judge: rate_limit::judge },
    Stage { name: "constraint", judge: constraint::judge },
    Stage { name: "audit", judge: audit::judge },
];

/// What stands in the audit in place of a stage for a call that none of them was asked about.
const VALIDATION: &str = "validation";

/// What a JSON schema objects to in a document; too large for this crate, so the binding hands it in. Pure.
pub trait Schemas {
    /// The first of the schemas that objects to the document, as its place among them and its objections, one text each;
    /// None if the document is valid by all of them. All are JSON text.
    ///
    /// # Errors
    /// A schema before that one cannot be used, and why.
    fn objection(&self, schemas: &[&str], document: &str) -> Result<Option<(usize, Vec<String>)>, String>;
}

/// No schema check: every constraint fails, and so every call that has one is refused.
#[derive(Clone, Copy, Debug)]
pub struct NoSchemas;

impl Schemas for NoSchemas {
    fn objection(&self, _: &[&str], _: &str) -> Result<Option<(usize, Vec<String>)>, String> {
        Err("no schema check was handed in".into())
    }
}

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
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The policy in force.
    pub policy: &'a Policy,
    /// The skill that is active.
    pub skill: Option<&'a Skill>,
    /// Model calls of the current goal.
    pub turns: u64,
    /// The schema check.
    pub schemas: &'a dyn Schemas,
}

impl core::fmt::Debug for View<'_> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("View")
            .field("policy", self.policy)
            .field("skill", &self.skill)
            .field("turns", &self.turns)
            .finish_non_exhaustive()
    }
}

/// A call with validated arguments.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// Which call of which session.
    pub at: Name,
    /// Unique in the session.
    pub id: &'a str,
    /// The tool's name.
    pub name: &'a str,
    /// The validated JSON text.
    pub args: &'a str,
    /// Whether a person has already approved it: a question is then no obstacle.
    pub approved: bool,
    /// Whether it only reads what the run itself holds.
    pub own: bool,
}

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

/// Passes a call through the stages. The first refusal ends it; a question waits for the stages behind it. A call that
/// all of them allow is counted in the rate windows.
///
/// The trail names every stage that was asked if the policy wants it so, else those that had something to say.
pub fn judge(
    stages: &[Stage],
    view: &View<'_>,
    call: &Call<'_>,
    windows: &mut Windows,
    now: Millis,
) -> (Verdict, Vec<Trail>) {
    let mut verdict = Verdict::Allow(Allow {});
    let mut trail = Vec::new();
    for stage in stages {
        let said = (stage.judge)(view, call, windows, now);
        if view.policy.audit || said != Ok(StageVerdict::Allow) {
            trail.push(note(stage, &said));
        }
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
    if matches!(verdict, Verdict::Allow(_)) {
        windows.take(call.name, &call.at, now.0);
    }
    (verdict, trail)
}

/// What the audit says of a call that comes before no stage: there is no such tool, or its arguments are not valid. `kind`
/// is the kind of its error.
#[must_use]
pub fn unfit(kind: &str) -> (Verdict, Vec<Trail>) {
    let refuse = Refuse { stage: VALIDATION.into(), rule: kind.into(), reason: String::new(), retry_after_ms: None };
    let trail = Trail { stage: VALIDATION.into(), verdict: "refuse".into(), reason: String::new() };
    (Verdict::Refuse(refuse), vec![trail])
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
    Trail { stage: Cow::Borrowed(stage.name), verdict: Cow::Borrowed(verdict), reason: reason.into() }
}
