//! What a prompt weighs: our own count of its blocks, anchored on what the provider reports.

/// Our count of the blocks, and the last report of the provider beside the count that it was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge {
    own: u64,
    seen: u64,
    told: u64,
    permille: u64,
}

/// A report below a third of our count is about something else: some services report only what they had not cached.
const PLAUSIBLE: u64 = 3;

/// Our count is right.
const EVEN: u64 = 1_000;

/// Our count is taken for too low by no more than this.
const HEAVIEST: u64 = 2_000;

impl Default for Gauge {
    fn default() -> Self {
        Self { own: 0, seen: 0, told: 0, permille: EVEN }
    }
}

impl Gauge {
    /// Our own count.
    #[must_use]
    pub fn own(self) -> u64 {
        self.own
    }

    /// The tokens of the prompt: what was reported, and our count of what came since.
    #[must_use]
    pub fn tokens(self) -> u64 {
        match self.own.checked_sub(self.seen) {
            Some(since) if self.told > 0 => self.told.saturating_add(self.scaled(since)),
            _ => self.scaled(self.own),
        }
    }

    /// What a part of our count comes to. Where the last report was above our count, as much more; it is never taken for
    /// less: content differs, and too high is safe.
    #[must_use]
    pub fn scaled(self, own: u64) -> u64 {
        share(own, self.permille, EVEN)
    }

    /// What a part of our count comes to at most, whatever is reported of it.
    #[must_use]
    pub fn heaviest(own: u64) -> u64 {
        share(own, HEAVIEST, EVEN)
    }

    /// Our count of what comes to so many tokens.
    #[must_use]
    pub fn own_of(self, tokens: u64) -> u64 {
        tokens.saturating_mul(EVEN).checked_div(self.permille).unwrap_or(tokens)
    }

    pub(crate) fn add(&mut self, tokens: u64) {
        self.own = self.own.saturating_add(tokens);
    }

    /// Takes the provider's count of the prompt as it is now. Below `least` it cannot be the count of all of it, and ours
    /// holds.
    pub(crate) fn anchor(&mut self, told: u64, least: u64) {
        if told == 0 || told.saturating_mul(PLAUSIBLE) < self.own {
            return;
        }
        let told = if told < least { self.own } else { told };
        (self.told, self.seen) = (told, self.own);
        self.permille = share(told, EVEN, self.own.max(1)).clamp(EVEN, HEAVIEST);
    }

    /// Other blocks: the report is not about them, but how it compared with our count still holds.
    pub(crate) fn recount(&mut self, own: u64) {
        *self = Self { own, permille: self.permille, ..Self::default() };
    }

    /// Another head: the report is about the one before, so what both weigh is put in its place.
    pub(crate) fn exchange(&mut self, before: u64, after: u64) {
        let other = |count: u64| count.saturating_sub(before).saturating_add(after);
        self.own = other(self.own);
        if self.told > 0 {
            (self.seen, self.told) = (other(self.seen), other(self.told));
        }
    }
}

/// `amount × part / whole`, rounded up.
pub(crate) fn share(amount: u64, part: u64, whole: u64) -> u64 {
    let product = u128::from(amount).saturating_mul(u128::from(part));
    u64::try_from(product.div_ceil(u128::from(whole).max(1))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::Gauge;

    /// A count of ours by another vocabulary than the model's, and a report.
    fn gauge(own: u64, told: u64) -> Gauge {
        reported(own, told, 740)
    }

    fn reported(own: u64, told: u64, least: u64) -> Gauge {
        let mut gauge = Gauge::default();
        gauge.add(own);
        gauge.anchor(told, least);
        gauge
    }

    #[test]
    fn a_report_replaces_our_count_and_what_comes_since_is_added() {
        let mut gauge = gauge(1_000, 800);
        gauge.add(100);
        assert_eq!((gauge.tokens(), gauge.own()), (900, 1_100));
    }

    #[test]
    fn a_report_below_what_the_prompt_has_at_least_does_not_lower_the_count() {
        let counts = [reported(1_000, 999, 1_000), reported(1_000, 400, 740), reported(1_000, 740, 740)];
        assert_eq!(counts.map(Gauge::tokens), [1_000, 1_000, 740]);
    }

    #[test]
    fn a_report_by_our_count_takes_back_that_an_earlier_one_was_heavier() {
        let mut gauge = reported(1_000, 1_500, 1_000);
        gauge.add(1_000);
        gauge.anchor(1_900, 2_000);
        assert_eq!((gauge.tokens(), gauge.scaled(100)), (2_000, 100));
    }

    #[test]
    fn where_our_count_was_too_low_what_comes_since_is_taken_for_heavier() {
        let mut gauge = gauge(1_000, 1_300);
        gauge.add(100);
        assert_eq!((gauge.tokens(), gauge.own_of(1_300)), (1_430, 1_000));
    }

    #[test]
    fn a_report_of_a_part_of_the_prompt_is_passed_over() {
        assert_eq!([gauge(1_000, 333), gauge(1_000, 0)].map(Gauge::tokens), [1_000, 1_000]);
    }

    #[test]
    fn other_blocks_are_weighed_as_the_last_report_says() {
        let mut heavier = gauge(1_000, 1_300);
        heavier.recount(200);
        let mut lighter = gauge(1_000, 800);
        lighter.recount(200);
        assert_eq!((heavier.tokens(), lighter.tokens()), (260, 200));
    }
}
