//! The last stage: what was judged can be told apart afterwards.

use alloc::string::String;

use super::{Call, StageVerdict, View, Windows};
use crate::Millis;

/// Refuses what could not be audited: a call without a name, or arguments that are no object.
///
/// # Errors
/// The call cannot be recorded as it is.
pub(super) fn judge(_: &View<'_>, call: &Call<'_>, _: &mut Windows, _: Millis) -> Result<StageVerdict, String> {
    if call.name.is_empty() {
        return Err("the call has no name to be recorded under".into());
    }
    if !call.args.trim_start().starts_with('{') {
        return Err("the arguments are no JSON object".into());
    }
    Ok(StageVerdict::Allow)
}
