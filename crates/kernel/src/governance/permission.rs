//! Who may call what: rules on names, permission managers, and the default.

use alloc::format;
use alloc::string::{String, ToString};

use super::pattern::fits;
use super::{Call, StageVerdict, View, Windows};
use crate::Millis;
use crate::wire::policy::{Action, Mode, Permission, Permissions, Policy};

/// Deny goes before ask before allow, over everything that fits. A tool that only reads what the run itself holds needs
/// a rule against it to be refused.
///
/// # Errors
/// Never.
pub(super) fn judge(view: &View<'_>, call: &Call<'_>, _: &mut Windows, _: Millis) -> Result<StageVerdict, String> {
    let policy = view.policy;
    let said = strongest(policy, call);
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

fn strongest(policy: &Policy, call: &Call<'_>) -> Option<Said> {
    let by_rule = policy.rules.iter().filter(|rule| fits(&rule.pattern, call.name)).map(|rule| Said {
        action: rule.action,
        rule: format!("{} {}", rule.action.as_str(), rule.pattern),
        reason: rule.reason.clone(),
    });
    let by_permission =
        policy.permissions.iter().filter(|_| !call.own).map(|permissions| by_permissions(permissions, call));
    // Of equal words the first one counts.
    by_rule.chain(by_permission).reduce(
        |best, said| {
            if strength(said.action) > strength(best.action) { said } else { best }
        },
    )
}

/// A tool named `fs.read` is the action `read` of `fs`; a name without a dot is a tool whose action is `call`.
fn by_permissions(permissions: &Permissions, call: &Call<'_>) -> Said {
    let (tool, action) = call.name.rsplit_once('.').unwrap_or((call.name, "call"));
    decide(permissions, tool, action)
}

fn decide(permissions: &Permissions, tool: &str, action: &str) -> Said {
    let matched = matched(permissions, tool, action);
    let rule = matched.map_or_else(
        || permissions.mode.as_str().to_string(),
        |entry| format!("{} {}.{}", entry.verdict.as_str(), entry.tool, entry.action),
    );
    let note = matched.map_or_else(String::new, |entry| entry.note.clone());
    let action = match (permissions.mode, matched) {
        (Mode::Plan, _) | (Mode::Default, None) => Action::Deny,
        (Mode::Auto, None) => Action::Allow,
        (Mode::Default | Mode::Auto, Some(entry)) => entry.verdict,
    };
    Said { action, rule, reason: note }
}

/// The entry that decides: the one with fewer wildcards, among those the last one given.
fn matched<'a>(permissions: &'a Permissions, tool: &str, action: &str) -> Option<&'a Permission> {
    let fitting = permissions
        .entries
        .iter()
        .filter(|entry| (entry.tool == "*" || entry.tool == tool) && (entry.action == "*" || entry.action == action));
    fitting.max_by_key(|entry| (u8::from(entry.tool != "*"), u8::from(entry.action != "*")))
}
