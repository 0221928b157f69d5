//! Which of two observations counts.

use crate::wire::curation::Observation;

/// An observation and its number.
#[derive(Clone, Copy)]
pub(super) struct Ranked<'a> {
    pub(super) number: u64,
    pub(super) seen: &'a Observation,
}

/// From what weighs most: what a person retracted before what was only observed; what the user or the agent said before
/// text from a tool or the web, which so never replaces it; the later one; in one session the later record. The rest
/// only makes the order one of all.
type Rank<'a> = (Weight, u64, &'a str);
type Weight = (bool, bool, i64, i64);

impl<'a> Ranked<'a> {
    pub(super) fn rank(&self) -> Rank<'a> {
        (self.weight(), self.seen.confidence, &self.seen.whole)
    }

    /// Whether this one, higher and about the same, leaves no room for the other. With a key one value is left.
    pub(super) fn ends(&self, lower: &Self) -> bool {
        (self.seen.keyed && lower.seen.keyed) || self.weight() > lower.weight()
    }

    fn weight(&self) -> Weight {
        (self.seen.retracted, !self.seen.untrusted, self.seen.at_ms, self.seen.record)
    }
}
