//! What a store has to change to hold what is kept.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::rank::Ranked;
use crate::wire::curation::{Curated, Curation, Ended, Kept, Observation};

/// An observation and how it stands: two that have the same are the same entry.
type Entry<'a> = (&'a str, Option<&'a Ended>);

pub(super) fn changes(curation: &Curation, highest: &[Ranked<'_>], kept: Vec<Kept>) -> Curated {
    let (there, removed) = compared(&curation.known, highest, &kept);
    let fresh: Vec<bool> = entries(highest, &kept).map(|entry| !there.contains(&entry)).collect();
    let kept: Vec<Kept> = kept.into_iter().zip(fresh).map(|(each, fresh)| Kept { fresh, ..each }).collect();
    counted(curation, highest, kept, removed)
}

/// The entries that stand in the store as they are kept, and the numbers of all others.
fn compared<'a>(known: &'a [Observation], highest: &[Ranked<'_>], kept: &[Kept]) -> (BTreeSet<Entry<'a>>, Vec<u64>) {
    let wanted: BTreeSet<Entry<'_>> = entries(highest, kept).collect();
    let mut there = BTreeSet::new();
    let mut removed = Vec::new();
    for (number, seen) in (0..).zip(known) {
        let entry = (seen.whole.as_str(), seen.ended.as_ref());
        if seen.rough || !wanted.contains(&entry) || !there.insert(entry) {
            removed.push(number);
        }
    }
    (there, removed)
}

fn entries<'a>(highest: &'a [Ranked<'_>], kept: &'a [Kept]) -> impl Iterator<Item = Entry<'a>> {
    highest.iter().zip(kept).map(|(each, kept)| (each.seen.whole.as_str(), kept.ended.as_ref()))
}

fn counted(curation: &Curation, highest: &[Ranked<'_>], kept: Vec<Kept>, removed: Vec<u64>) -> Curated {
    let mut was_so: BTreeMap<&str, bool> = BTreeMap::new();
    for seen in &curation.known {
        *was_so.entry(&seen.said).or_default() |= seen.ended.is_none() && !seen.retracted;
    }
    let given: BTreeSet<&str> = curation.given.iter().map(|seen| seen.said.as_str()).collect();
    let changed = || highest.iter().zip(&kept).filter(|(_, kept)| kept.fresh);
    let new: BTreeSet<&str> =
        changed().map(|(each, _)| each.seen.said.as_str()).filter(|said| !was_so.contains_key(said)).collect();
    let gone: BTreeSet<&str> = changed()
        .filter(|(each, kept)| kept.ended.is_some() || each.seen.retracted)
        .map(|(each, _)| each.seen.said.as_str())
        .filter(|said| was_so.get(said).copied().unwrap_or(false))
        .collect();
    let brought = new.intersection(&given).count();
    let (added, superseded) = (count(new.len()), count(gone.len()));
    Curated { kept, removed, added, duplicates: count(curation.given.len().saturating_sub(brought)), superseded }
}

fn count(many: usize) -> u64 {
    u64::try_from(many).unwrap_or(u64::MAX)
}
