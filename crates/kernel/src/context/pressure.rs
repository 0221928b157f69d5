//! When the prompt is rewritten, and down to what.

use super::prompt::Prompt;
use super::task::Task;
use crate::wire::policy::{Limits, Price};

/// Parts of the room that history has, in hundredths: above the first it is rewritten, above the second where that is
/// free or pays.
const HIGH: u64 = 96;
const MIDDLE: u64 = 70;

/// And then down to this part: of a large room, where a rewrite is dear, less than of a small one, where what is kept is.
const LOW: u64 = 42;
const LOW_OF_SMALL: u64 = 86;

/// Tokens of a small and of a large room.
const SMALL: u64 = 2_000;
const LARGE: u64 = 16_000;

/// A rewrite that leaves more than so many hundredths of the prompt is not worth one, while the prompt fits.
const USELESS: u64 = 92;

/// What was refused was too much; so many hundredths of it are taken to be accepted.
const BELOW_REFUSED: u64 = 90;

/// Marks in tokens of the whole prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// What the request may weigh at most.
    pub most: u64,
    /// Above it the prompt is rewritten.
    pub high: u64,
    /// Above it the prompt is rewritten where that costs nothing, or pays.
    pub middle: u64,
    /// Down to this.
    pub low: u64,
}

/// The marks for a prompt: fractions of what the window has for history, behind the reserve and what is never compressed.
/// `ceiling`: tokens that the service has refused.
#[must_use]
pub fn marks(limits: &Limits, prompt: &Prompt, task: &Task, ceiling: Option<u64>) -> Marks {
    let fits = limits.window.saturating_sub(limits.reserve);
    let most = ceiling.map_or(fits, |refused| fits.min(part(refused, BELOW_REFUSED)));
    let fixed = prompt.gauge().scaled(prompt.head_tokens().saturating_add(task.opening_tokens));
    let room = most.saturating_sub(fixed);
    let mark = |hundredths: u64| fixed.saturating_add(part(room, hundredths)).min(most);
    Marks { most, high: mark(HIGH), middle: mark(MIDDLE), low: mark(low(room)) }
}

fn low(room: u64) -> u64 {
    let above = room.clamp(SMALL, LARGE).saturating_sub(SMALL);
    let lower = above.saturating_mul(LOW_OF_SMALL.saturating_sub(LOW));
    LOW_OF_SMALL.saturating_sub(lower.checked_div(LARGE.saturating_sub(SMALL)).unwrap_or(0))
}

fn part(whole: u64, hundredths: u64) -> u64 {
    whole.saturating_mul(hundredths).checked_div(100).unwrap_or(0)
}

impl Marks {
    /// Whether a rewrite from `before` to `after` tokens is worth it: a must while the prompt does not fit, else only if
    /// it frees a fair part.
    #[must_use]
    pub fn is_progress(&self, before: u64, after: u64) -> bool {
        after < before && (before > self.most || after <= part(before, USELESS))
    }
}

/// Whether a rewrite on a warm cache pays: it costs that what is left is written to the cache anew, it saves that what
/// left need not be read from the cache in each of the next `calls`.
#[must_use]
pub fn pays(price: &Price, before: u64, after: u64, calls: u64) -> bool {
    let fresh = price.input.max(price.cache_write).saturating_sub(price.cached);
    let cost = u128::from(after).saturating_mul(u128::from(fresh));
    let saved = u128::from(before.saturating_sub(after)).saturating_mul(u128::from(price.cached));
    saved.saturating_mul(u128::from(calls)) > cost
}

#[cfg(test)]
mod tests {
    use super::pays;
    use crate::wire::policy::Price;

    #[test]
    fn a_rewrite_pays_when_what_it_saves_in_the_calls_to_come_is_more_than_what_it_writes_anew() {
        let price = Price { input: 1_000, output: 0, cached: 100, cache_write: 1_250 };
        let breaks_even = |calls| pays(&price, 100_000, 50_000, calls);
        assert_eq!([11, 12].map(breaks_even), [false, true]);
    }

    #[test]
    fn without_a_price_for_cached_tokens_there_is_nothing_to_save() {
        let free = Price { input: 1_000, output: 0, cached: 0, cache_write: 1_000 };
        assert!(!pays(&free, 100_000, 1, u64::MAX));
    }
}
