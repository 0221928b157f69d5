//! Rate windows: the calls that were allowed lately. They belong to a `Governance` handle and serve every run that is
//! governed by it; the log does not hold them, but what they count can be found in it again.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use super::pattern::fits;
use crate::wire::policy::Rate;

/// A call as the windows know it: its session, and its reply and index there. A call that is judged again is the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// Hash of the session's id.
    pub session: u64,
    /// Seq of the reply.
    pub reply: u64,
    /// Its index among the reply's calls.
    pub index: u64,
}

/// The glob of a rate limit and its length.
type Key = (String, u64);

/// Rate windows. A window counts from when its limit was set.
#[derive(Debug, Default)]
pub struct Windows {
    calls: BTreeMap<Key, VecDeque<(i64, Name)>>,
    taken: Vec<(Key, Name)>,
}

impl Windows {
    /// Counts for these limits from now on, and no longer for others.
    pub fn set(&mut self, rates: &[Rate]) {
        let wanted: Vec<Key> = rates.iter().map(key).collect();
        self.calls.retain(|key, _| wanted.contains(key));
        for key in wanted {
            self.calls.entry(key).or_default();
        }
    }

    /// How long a call has to wait by this limit; None if it may pass at `now`, `Some(None)` if no waiting helps.
    #[must_use]
    pub fn wait(&mut self, rate: &Rate, name: &Name, now: i64) -> Option<Option<u64>> {
        if rate.max_calls == 0 {
            return Some(None);
        }
        let calls = self.calls.entry(key(rate)).or_default();
        while calls.front().is_some_and(|(at, _)| gone(*at, rate, now)) {
            calls.pop_front();
        }
        let others: Vec<i64> = calls.iter().filter(|(_, other)| other != name).map(|(at, _)| *at).collect();
        let limit = usize::try_from(rate.max_calls).unwrap_or(usize::MAX);
        let spare = others.len().checked_sub(limit)?;
        let free = others.get(spare).map_or(now, |at| at.saturating_add_unsigned(rate.window_ms));
        Some(Some(u64::try_from(free.saturating_sub(now)).unwrap_or(0).max(1)))
    }

    /// Counts a call that was allowed by every stage.
    pub fn take(&mut self, tool: &str, name: &Name, now: i64) {
        for (key, calls) in &mut self.calls {
            if fits(&key.0, tool) {
                let known = calls.iter().position(|(_, other)| other == name);
                if known.and_then(|at| calls.remove(at)).is_none() {
                    self.taken.push((key.clone(), name.clone()));
                }
                insert(calls, now, name.clone());
            }
        }
    }

    /// Counts a call that a log tells of, once.
    pub fn remember(&mut self, tool: &str, name: &Name, at: i64) {
        for (key, calls) in &mut self.calls {
            if fits(&key.0, tool) && !calls.iter().any(|(_, other)| other == name) {
                insert(calls, at, name.clone());
            }
        }
    }

    /// What was taken since the last `keep` stays.
    pub fn keep(&mut self) {
        self.taken.clear();
    }

    /// Gives back what was taken since the last `keep`.
    pub fn give_back(&mut self) {
        for (key, name) in core::mem::take(&mut self.taken) {
            if let Some(calls) = self.calls.get_mut(&key) {
                calls.retain(|(_, other)| *other != name);
            }
        }
    }
}

fn key(rate: &Rate) -> Key {
    (rate.pattern.clone(), rate.window_ms)
}

/// Whether a call no longer counts: the window is open at its old end.
fn gone(at: i64, rate: &Rate, now: i64) -> bool {
    at.saturating_add_unsigned(rate.window_ms) <= now
}

/// Keeps the calls in the order of their times; another run's clock may be a little ahead.
fn insert(calls: &mut VecDeque<(i64, Name)>, at: i64, name: Name) {
    let behind = calls.iter().rev().take_while(|(other, _)| *other > at).count();
    calls.insert(calls.len().saturating_sub(behind), (at, name));
}
