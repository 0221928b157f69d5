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

/// Rate windows. A window counts from when its limit was set, or from when the first limit of the same glob was: one that
/// is changed begins with what the ones before it know.
#[derive(Debug, Default)]
pub struct Windows {
    /// By the glob of their limit and its length.
    globs: BTreeMap<String, BTreeMap<u64, Window>>,
}

impl Windows {
    /// Counts for these limits from now on, and no longer for others.
    pub fn set(&mut self, rates: &[Rate]) {
        let before = core::mem::take(&mut self.globs);
        for rate in rates {
            let known = before.get(&rate.pattern);
            let same = known.and_then(|windows| windows.get(&rate.window_ms)).cloned();
            let window = same.unwrap_or_else(|| known.map(all_of).unwrap_or_default());
            self.globs.entry(rate.pattern.clone()).or_default().insert(rate.window_ms, window);
        }
    }

    /// How long a call has to wait by this limit; None if it may pass at `now`, `Some(None)` if no waiting helps.
    #[must_use]
    pub fn wait(&mut self, rate: &Rate, name: &Name, now: i64) -> Option<Option<u64>> {
        if rate.max_calls == 0 {
            return Some(None);
        }
        // One that was not set counts from here on.
        let window = match self.globs.get_mut(&rate.pattern) {
            Some(windows) => windows.entry(rate.window_ms).or_default(),
            None => self.globs.entry(rate.pattern.clone()).or_default().entry(rate.window_ms).or_default(),
        };
        window.forget(rate.window_ms, now);
        let limit = usize::try_from(rate.max_calls).unwrap_or(usize::MAX);
        let free = window.free_behind(limit, name)?.map_or(now, |at| at.saturating_add_unsigned(rate.window_ms));
        Some(Some(u64::try_from(free.saturating_sub(now)).unwrap_or(0).max(1)))
    }

    /// Counts a call that was allowed by every stage.
    pub fn take(&mut self, tool: &str, name: &Name, now: i64) {
        for window in self.of(tool) {
            if window.put(*name, now) {
                window.taken.push(*name);
            }
        }
    }

    /// Counts a call that a log tells of, once, at the last time that it tells of.
    pub fn remember(&mut self, tool: &str, name: &Name, at: i64) {
        for window in self.of(tool) {
            window.put(*name, at);
        }
    }

    /// Empty windows of the same limits: a long log is told to them while nobody waits for the real ones, then merged.
    #[must_use]
    pub fn blank(&self) -> Self {
        let blank = |windows: &BTreeMap<u64, Window>| windows.keys().map(|ms| (*ms, Window::default())).collect();
        Self { globs: self.globs.iter().map(|(glob, windows)| (glob.clone(), blank(windows))).collect() }
    }

    /// Counts what others have counted, each call once, by the limits that still hold.
    pub fn merge(&mut self, others: Self) {
        for (glob, windows) in others.globs {
            let Some(own) = self.globs.get_mut(&glob) else { continue };
            for (ms, window) in windows {
                let Some(own) = own.get_mut(&ms) else { continue };
                for (at, name) in window.calls {
                    own.put(name, at);
                }
            }
        }
    }

    /// What was taken since the last `keep` stays.
    pub fn keep(&mut self) {
        for window in self.globs.values_mut().flat_map(BTreeMap::values_mut) {
            window.taken.clear();
        }
    }

    /// Gives back what was taken since the last `keep`.
    pub fn give_back(&mut self) {
        for window in self.globs.values_mut().flat_map(BTreeMap::values_mut) {
            for name in core::mem::take(&mut window.taken) {
                window.remove(&name);
            }
        }
    }

    /// The windows that a tool's calls count in.
    fn of(&mut self, tool: &str) -> impl Iterator<Item = &mut Window> {
        let fitting = self.globs.iter_mut().filter(move |(glob, _)| fits(glob, tool));
        fitting.flat_map(|(_, windows)| windows.values_mut())
    }
}

/// The calls that windows of one glob have counted.
fn all_of(windows: &BTreeMap<u64, Window>) -> Window {
    let mut all = Window::default();
    for (at, name) in windows.values().flat_map(|window| &window.calls) {
        all.put(*name, *at);
    }
    all
}

/// The calls that count by one limit, in the order of their times; each stands there once.
#[derive(Clone, Debug, Default)]
struct Window {
    calls: BTreeSet<(i64, Name)>,
    times: BTreeMap<Name, i64>,
    /// Those that are not kept yet.
    taken: Vec<Name>,
}

impl Window {
    /// Counts a call at a time, or at the later one of two; whether it was not counted before.
    fn put(&mut self, name: Name, at: i64) -> bool {
        let before = self.times.insert(name, at);
        match before {
            Some(before) if before >= at => {
                self.times.insert(name, before);
                return false;
            }
            Some(before) => {
                self.calls.remove(&(before, name));
            }
            None => {}
        }
        self.calls.insert((at, name));
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
        let spare = self.calls.len().checked_sub(limit)?.checked_sub(usize::from(self.times.contains_key(name)))?;
        Some(self.calls.iter().filter(|(_, other)| other != name).nth(spare).map(|(at, _)| *at))
    }
}
