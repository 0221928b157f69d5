//! Who may call what: rules on names, permission managers, the active skill, and the default.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::pattern::{covers, fits, narrowness};
use super::{Call, StageVerdict, View, Windows};
use crate::Millis;
use crate::wire::policy::{Action, Mode, Permission, Permissions, Policy, Skill};

/// Deny goes before ask before allow, over everything that fits. The active skill only ever denies. A tool that only
/// reads what the run itself holds needs a rule against it to be refused.
///
/// # Errors
/// Never.
pub(super) fn judge(view: &View<'_>, call: &Call<'_>, _: &mut Windows, _: Millis) -> Result<StageVerdict, String> {
    let policy = view.policy;
    let said = strongest(policy, view.skill, call);
    Ok(match said {
        Some(said) => said.verdict(call),
        None if call.own || policy.default == Action::Allow => StageVerdict::Allow,
        None => Said { action: policy.default, rule: "default".into(), reason: String::new() }.verdict(call),
    })
}

/// What a rule or a permission says of a call.
struct Said {
    action: Action,
    rule: String,
    reason: String,
}

impl Said {
    fn verdict(self, call: &Call<'_>) -> StageVerdict {
        let Self { action, rule, reason } = self;
        let told = |word: &str| if reason.is_empty() { format!("{word} {:?}", call.name) } else { reason.clone() };
        match action {
            Action::Allow => StageVerdict::Allow,
            Action::Ask => StageVerdict::Ask { reason: told("a person has to allow"), rule },
            Action::Deny => StageVerdict::Refuse { reason: told("the policy denies"), rule, retry_after_ms: None },
        }
    }
}

/// How strong a word is against the others.
fn strength(action: Action) -> u8 {
    match action {
        Action::Allow => 0,
        Action::Ask => 1,
        Action::Deny => 2,
    }
}

fn strongest(policy: &Policy, skill: Option<&Skill>, call: &Call<'_>) -> Option<Said> {
    let by_rule = policy.rules.iter().filter(|rule| fits(&rule.pattern, call.name)).map(|rule| Said {
        action: rule.action,
        rule: format!("{} {}", rule.action.as_str(), rule.pattern),
        reason: rule.reason.clone(),
    });
    let by_permission =
        policy.permissions.iter().filter(|_| !call.own).filter_map(|permissions| by_permissions(permissions, call));
    // Of equal words the first one counts.
    by_rule
        .chain(by_permission)
        .chain(skill.and_then(|skill| by_skill(skill, call)))
        .reduce(|best, said| if strength(said.action) > strength(best.action) { said } else { best })
}

/// How many globs of a skill a refusal names.
const SHOWN: usize = 20;

/// While a skill that names tools is active, no others run, but for those that only read what the run itself holds.
fn by_skill(skill: &Skill, call: &Call<'_>) -> Option<Said> {
    let allowed = &skill.allowed_tools;
    if call.own || allowed.is_empty() || allowed.iter().any(|pattern| fits(pattern, call.name)) {
        return None;
    }
    let mut shown = allowed.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if allowed.len() > SHOWN {
        shown.push_str(", …");
    }
    let reason = format!("the skill {:?} is active and allows only {shown}, not {:?}", skill.name, call.name);
    Some(Said { action: Action::Deny, rule: format!("skill {}", skill.name), reason })
}

/// A tool named `fs.read` is the action `read` of `fs`; a name without a dot is a tool whose action is `call`. A mode that
/// merely lets pass what was not revoked says nothing: the policy's default still holds.
fn by_permissions(permissions: &Permissions, call: &Call<'_>) -> Option<Said> {
    let (tool, action) = call.name.rsplit_once('.').unwrap_or((call.name, "call"));
    let (word, matched) = permit(permissions, tool, action);
    if matched.is_none() && word == Action::Allow {
        return None;
    }
    let entry = matched.and_then(|at| permissions.entries.get(at));
    let rule = entry.map_or_else(
        || permissions.mode.as_str().to_string(),
        |entry| format!("{} {}.{}", entry.verdict.as_str(), entry.tool, entry.action),
    );
    Some(Said { action: word, rule, reason: entry.map_or_else(String::new, |entry| entry.note.clone()) })
}

/// What a permission manager says of an action, and the number of the entry that decides.
///
/// A revocation holds until a later grant that is as narrow as it, in the tool and in the action, lifts it. Among grants
/// the narrowest decides, by the tool first, among equals the last one given.
#[must_use]
pub fn permit(permissions: &Permissions, tool: &str, action: &str) -> (Action, Option<usize>) {
    let entries = permissions.entries.iter().enumerate();
    let fitting = entries.filter(|(_, entry)| fits(&entry.tool, tool) && fits(&entry.action, action));
    let is_grant = |entry: &Permission| entry.verdict != Action::Deny;
    let mut revoked = fitting.clone().filter(|(_, entry)| !is_grant(entry)).filter(|(at, revocation)| {
        let later = fitting.clone().filter(|(other, entry)| other > at && is_grant(entry));
        !later.into_iter().any(|(_, grant)| is_as_narrow(grant, revocation))
    });
    let granted = fitting.clone().filter(|(_, entry)| is_grant(entry));
    let narrowest = || granted.max_by_key(|(_, entry)| (narrowness(&entry.tool), narrowness(&entry.action)));
    let decisive = revoked.next_back().or_else(narrowest);
    let word = match (permissions.mode, decisive) {
        (Mode::Plan, _) | (Mode::Default, None) => Action::Deny,
        (Mode::Auto, None) => Action::Allow,
        (Mode::Default | Mode::Auto, Some((_, entry))) => entry.verdict,
    };
    (word, decisive.map(|(at, _)| at))
}

fn is_as_narrow(entry: &Permission, other: &Permission) -> bool {
    covers(&other.tool, &entry.tool) && covers(&other.action, &entry.action)
}
