//! What the validated arguments must be.

use alloc::format;
use alloc::string::String;

use super::pattern::fits;
use super::{Call, StageVerdict, View, Windows};
use crate::Millis;

/// Refuses arguments that a constraint's schema objects to.
///
/// # Errors
/// A schema cannot be used.
pub(super) fn judge(view: &View<'_>, call: &Call<'_>, _: &mut Windows, _: Millis) -> Result<StageVerdict, String> {
    for constraint in view.policy.constraints.iter().filter(|one| fits(&one.pattern, call.name)) {
        let objections = view.schemas.objections(&constraint.schema, call.args)?;
        if !objections.is_empty() {
            return Ok(StageVerdict::Refuse {
                rule: format!("constraint {} {}", constraint.pattern, constraint.schema),
                reason: format!("the arguments are not allowed: {}", objections.join("; ")),
                retry_after_ms: None,
            });
        }
    }
    Ok(StageVerdict::Allow)
}
