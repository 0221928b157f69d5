//! What is told of signals that came in numbers: the newest in full, of the others how many of which kind.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

/// Kinds that are counted each for itself.
const KINDS: usize = 8;

/// Bytes of a count beside its kind, and of the words around all of them, at most.
const LONGEST_COUNT: usize = 32;
const LONGEST_FRAME: usize = 256;

/// The signals that are not told in full.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unshown {
    kinds: BTreeMap<Box<str>, u64>,
    others: u64,
    /// Seqs of the first and the last of them.
    records: Option<(u64, u64)>,
}

impl Unshown {
    /// One more of this kind, from record `seq`.
    pub fn count(&mut self, kind: &str, seq: u64) {
        let (first, last) = self.records.unwrap_or((seq, seq));
        self.records = Some((first.min(seq), last.max(seq)));
        if let Some(count) = self.kinds.get_mut(kind) {
            *count = count.saturating_add(1);
        } else if self.kinds.len() < KINDS {
            self.kinds.insert(kind.into(), 1);
        } else {
            self.others = self.others.saturating_add(1);
        }
    }

    /// More than the bytes of what the model reads of them.
    #[must_use]
    pub fn size(&self) -> u64 {
        let kinds = self.kinds.keys().map(|kind| kind.len().saturating_add(LONGEST_COUNT));
        u64::try_from(kinds.fold(LONGEST_FRAME, usize::saturating_add)).unwrap_or(u64::MAX)
    }

    /// What the model reads of them, and by which reference it can read more, as `way` calls all records from one to
    /// another; None where there are none.
    #[must_use]
    pub fn text(&self, way: impl FnOnce(u64, u64) -> String) -> Option<String> {
        let (first, last) = self.records?;
        let total = self.kinds.values().fold(self.others, |sum, count| sum.saturating_add(*count));
        let way = way(first, last);
        let mut text = format!("{total} more signals came before and are not told here; recall(\"{way}\"):");
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
