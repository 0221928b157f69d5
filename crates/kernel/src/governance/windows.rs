//! Rate windows: the calls that were allowed lately. They belong to a `Governance` handle and serve every run that is
//! governed by it; the log does not hold them, but what they count can be found in it again.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::pattern::fits;
use crate::wire::policy::Rate;

/// A call as the windows know it: its session, and its reply and index there. A call that is judged again is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// Hash of the session's id and birth: sessions of the same id in different logs are not the same.
    pub session: u64,
    /// Seq of the reply.
    pub reply: u64,
    /// Its index among the reply's calls.
    pub index: u64,
}

/// The glob of a rate limit and its length.
type Key = (String, u64);

/// Rate windows. A window counts from when its limit was set, or from when the first limit of the same glob was: one that
/// is changed begins with what the ones before it know.
#[derive(Debug, Default)]
pub struct Windows {
    windows: BTreeMap<Key, Window>,
    taken: Vec<(Key, Name)>,
}

impl Windows {
    /// Counts for these limits from now on, and no longer for others.
    pub fn set(&mut self, rates: &[Rate]) {
        let before = core::mem::take(&mut self.windows);
        for key in rates.iter().map(key) {
            let window = before.get(&key).cloned().unwrap_or_else(|| known(&before, &key.0));
            self.windows.insert(key, window);
        }
    }

    /// How long a call has to wait by this limit; None if it may pass at `now`, `Some(None)` if no waiting helps.
    #[must_use]
    pub fn wait(&mut self, rate: &Rate, name: &Name, now: i64) -> Option<Option<u64>> {
        if rate.max_calls == 0 {
            return Some(None);
        }
        let window = self.windows.entry(key(rate)).or_default();
        window.forget(rate.window_ms, now);
        let limit = usize::try_from(rate.max_calls).unwrap_or(usize::MAX);
        let free = window.free_behind(limit, name)?.map_or(now, |at| at.saturating_add_unsigned(rate.window_ms));
        Some(Some(u64::try_from(free.saturating_sub(now)).unwrap_or(0).max(1)))
    }

    /// Counts a call that was allowed by every stage.
    pub fn take(&mut self, tool: &str, name: &Name, now: i64) {
        for (key, window) in &mut self.windows {
            if fits(&key.0, tool) && window.put(*name, now) {
                self.taken.push((key.clone(), *name));
            }
        }
    }

    /// Counts a call that a log tells of, once, at the last time that it tells of.
    pub fn remember(&mut self, tool: &str, name: &Name, at: i64) {
        for (key, window) in &mut self.windows {
            if fits(&key.0, tool) {
                window.put(*name, at);
            }
        }
    }

    /// Empty windows of the same limits: a long log is told to them while nobody waits for the real ones, then merged.
    #[must_use]
    pub fn blank(&self) -> Self {
        let windows = self.windows.keys().map(|key| (key.clone(), Window::default())).collect();
        Self { windows, taken: Vec::new() }
    }

    /// Counts what others have counted, each call once, by the limits that still hold.
    pub fn merge(&mut self, others: Self) {
        for (key, window) in others.windows {
            let Some(own) = self.windows.get_mut(&key) else { continue };
            for (at, name) in window.calls {
                own.put(name, at);
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
            if let Some(window) = self.windows.get_mut(&key) {
                window.remove(&name);
            }
        }
    }
}

/// The calls that windows of a glob have counted.
fn known(windows: &BTreeMap<Key, Window>, glob: &str) -> Window {
    let mut all = Window::default();
    for (_, window) in windows.iter().filter(|(key, _)| key.0 == glob) {
        for (at, name) in &window.calls {
            all.put(*name, *at);
        }
    }
    all
}

/// The calls that count by one limit, in the order of their times; each stands there once.
#[derive(Clone, Debug, Default)]
struct Window {
    calls: BTreeSet<(i64, Name)>,
    times: BTreeMap<Name, i64>,
}

impl Window {
    /// Counts a call at a time, or at the later one of two; whether it was not counted before.
    fn put(&mut self, name: Name, at: i64) -> bool {
        let before = self.times.get(&name).copied();
        if before.is_none_or(|before| before < at) {
            self.remove(&name);
            self.calls.insert((at, name));
            self.times.insert(name, at);
        }
        before.is_none()
    }

    fn remove(&mut self, name: &Name) {
        if let Some(at) = self.times.remove(name) {
            self.calls.remove(&(at, *name));
        }
    }

    /// Drops the calls that no longer count at `now`: the window is open at its old end.
    fn forget(&mut self, window_ms: u64, now: i64) {
        while self.calls.first().is_some_and(|(at, _)| at.saturating_add_unsigned(window_ms) <= now) {
            if let Some((_, name)) = self.calls.pop_first() {
                self.times.remove(&name);
            }
        }
    }

    /// None if fewer than `limit` calls other than this one count; else the time of the one that has to go first.
    fn free_behind(&self, limit: usize, name: &Name) -> Option<Option<i64>> {
        let others = self.calls.len().saturating_sub(usize::from(self.times.contains_key(name)));
        let spare = others.checked_sub(limit)?;
        Some(self.calls.iter().filter(|(_, other)| other != name).nth(spare).map(|(at, _)| *at))
    }
}

fn key(rate: &Rate) -> Key {
    (rate.pattern.clone(), rate.window_ms)
}
