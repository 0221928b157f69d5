//! How often the tools may be called.

use alloc::format;
use alloc::string::String;

use super::pattern::fits;
use super::{Call, StageVerdict, View, Windows};
use crate::Millis;

/// Refuses what is over a limit. It only looks: a call is counted when every stage has allowed it.
///
/// # Errors
/// There is a limit and no clock.
pub(super) fn judge(
    view: &View<'_>,
    call: &Call<'_>,
    windows: &mut Windows,
    now: Millis,
) -> Result<StageVerdict, String> {
    for rate in view.policy.rates.iter().filter(|rate| fits(&rate.pattern, call.name)) {
        if now.0 <= 0 {
            return Err("there is no clock to measure the rate by".into());
        }
        if let Some(wait) = windows.wait(rate, &call.at, now.0) {
            return Ok(StageVerdict::Refuse {
                rule: format!("rate {} {}/{} ms", rate.pattern, rate.max_calls, rate.window_ms),
                reason: format!("more than {} calls of {} in {} ms", rate.max_calls, rate.pattern, rate.window_ms),
                retry_after_ms: wait,
            });
        }
    }
    Ok(StageVerdict::Allow)
}
