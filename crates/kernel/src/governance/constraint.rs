//! What the validated arguments must be.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::pattern::fits;
use super::{Call, StageVerdict, View, Windows};
use crate::Millis;

/// Refuses arguments that a constraint's schema objects to.
///
/// # Errors
/// A schema cannot be used.
pub(super) fn judge(view: &View<'_>, call: &Call<'_>, _: &mut Windows, _: Millis) -> Result<StageVerdict, String> {
    let fitting: Vec<_> = view.policy.constraints.iter().filter(|one| fits(&one.pattern, call.name)).collect();
    if fitting.is_empty() {
        return Ok(StageVerdict::Allow);
    }
    let schemas: Vec<&str> = fitting.iter().map(|one| one.schema.as_str()).collect();
    let Some((at, objections)) = view.schemas.objection(&schemas, call.args)? else { return Ok(StageVerdict::Allow) };
    let constraint = fitting.get(at).ok_or("the schema check named none of the constraints")?;
    Ok(StageVerdict::Refuse {
        rule: format!("constraint {} {}", constraint.pattern, constraint.schema),
        reason: format!("the arguments are not allowed: {}", objections.join("; ")),
        retry_after_ms: None,
    })
}
