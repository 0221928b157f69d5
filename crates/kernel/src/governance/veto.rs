//! Tools that never run, whatever the permissions say.

use alloc::format;
use alloc::string::String;

use super::pattern::fits;
use super::{Call, StageVerdict, View, Windows};
use crate::Millis;

/// Refuses what a blocked glob fits.
///
/// # Errors
/// Never.
pub(super) fn judge(view: &View<'_>, call: &Call<'_>, _: &mut Windows, _: Millis) -> Result<StageVerdict, String> {
    let blocked = view.policy.blocked.iter().find(|pattern| fits(pattern, call.name));
    Ok(blocked.map_or(StageVerdict::Allow, |pattern| StageVerdict::Refuse {
        rule: format!("block {pattern}"),
        reason: format!("the tool {:?} is blocked", call.name),
        retry_after_ms: None,
    }))
}
