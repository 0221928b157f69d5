//! What becomes of memories when insights are added: a pure function of everything that was ever observed.
//!
//! Those that say the same are one observation: the highest of them stays. An order of all observations decides
//! everything; `rank` has it. Of several about one thing the highest is what is so now, the others are kept with the
//! time until which they were. Because an old session's time is old, reading it again never brings a corrected fact
//! back; what a person retracted stays known, so that it does not come back either. Beyond the cap the lowest are
//! dropped, whatever they are.
//!
//! So the outcome depends on the set of observations alone, not on the order in which they came, and doing it again
//! changes nothing: each step keeps the highest of a set, and the highest of the highest are the highest.

mod changes;
mod rank;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use self::rank::Ranked;
use crate::wire::curation::{Curated, Curation, Ended, Kept, Observation};

/// What a store holds once everything given has come to it, and what changes for that.
#[must_use]
pub fn curate(curation: &Curation) -> Curated {
    let cap = curation.cap.map_or(usize::MAX, |cap| usize::try_from(cap).unwrap_or(usize::MAX));
    let highest = highest(curation.known.iter().chain(&curation.given), cap);
    let kept = annotated(&highest);
    changes::changes(curation, &highest, kept)
}

/// The highest of those that say the same, and of these the `cap` highest, highest first.
fn highest<'a>(all: impl Iterator<Item = &'a Observation>, cap: usize) -> Vec<Ranked<'a>> {
    let mut best: BTreeMap<(Option<&str>, &str), Ranked<'a>> = BTreeMap::new();
    for (number, seen) in (0..).zip(all).filter(|(_, seen)| !seen.said.is_empty()) {
        // With a key, the same value of another key is another observation.
        let key = seen.keyed.then_some(seen.about.as_str());
        let ranked = Ranked { number, seen };
        let place = best.entry((key, &seen.said)).or_insert(ranked);
        if ranked.rank() > place.rank() {
            *place = ranked;
        }
    }
    let mut sorted: Vec<_> = best.into_values().collect();
    sorted.sort_by(|one, other| other.rank().cmp(&one.rank()));
    sorted.truncate(cap);
    sorted
}

/// All of them, with the end of those that are no longer so.
fn annotated(highest: &[Ranked<'_>]) -> Vec<Kept> {
    let mut retracted: BTreeMap<&str, &Ranked<'_>> = BTreeMap::new();
    for each in highest.iter().filter(|each| each.seen.retracted) {
        retracted.entry(&each.seen.said).or_insert(each);
    }
    // Highest first, those that may be so, by what they are about.
    let mut living: BTreeMap<&str, Vec<&Ranked<'_>>> = BTreeMap::new();
    let mut kept = Vec::with_capacity(highest.len());
    for each in highest {
        let by = if each.seen.retracted {
            None
        } else if let Some(by) = retracted.get(each.seen.said.as_str()) {
            Some(*by)
        } else {
            let above = living.entry(&each.seen.about).or_default();
            let by = above.iter().rev().find(|higher| higher.ends(each)).copied();
            above.push(each);
            by
        };
        kept.push(Kept { number: each.number, ended: by.map(|by| end(each, by)), fresh: false });
    }
    kept
}

fn end(each: &Ranked<'_>, by: &Ranked<'_>) -> Ended {
    Ended { until_ms: each.seen.at_ms.max(by.seen.at_ms), by: by.seen.digest.clone() }
}
