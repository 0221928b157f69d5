//! What is told of signals that came in numbers: the newest in full, of the others how many of which kind.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

/// Kinds that are counted each for itself.
const KINDS: usize = 8;

/// The signals that are not told in full.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unshown {
    kinds: BTreeMap<Box<str>, u64>,
    others: u64,
}

impl Unshown {
    /// One more of this kind.
    pub fn count(&mut self, kind: &str) {
        if let Some(count) = self.kinds.get_mut(kind) {
            *count = count.saturating_add(1);
        } else if self.kinds.len() < KINDS {
            self.kinds.insert(kind.into(), 1);
        } else {
            self.others = self.others.saturating_add(1);
        }
    }

    /// What the model reads of them; None where there are none.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let total = self.kinds.values().fold(self.others, |sum, count| sum.saturating_add(*count));
        if total == 0 {
            return None;
        }
        let mut text = format!("{total} more signals came before and are not shown; the session's log holds them:");
        for (kind, count) in &self.kinds {
            text.push_str(&format!(" {kind} ×{count},"));
        }
        if self.others > 0 {
            text.push_str(&format!(" of other kinds ×{},", self.others));
        }
        text.pop();
        Some(text)
    }
}

/// Which of the signals that wait has to go: `waiting` holds the weight of each and whether it is urgent, the oldest
/// first. None while there are at most `most` and they weigh at most `share` tokens; the newest always stays.
#[must_use]
pub fn overflow(waiting: &[(u64, bool)], most: usize, share: u64) -> Option<usize> {
    let weight = waiting.iter().fold(0_u64, |sum, (tokens, _)| sum.saturating_add(*tokens));
    if waiting.len() <= 1 || (waiting.len() <= most && weight <= share) {
        return None;
    }
    Some(waiting.iter().position(|(_, urgent)| !urgent).unwrap_or(0))
}
