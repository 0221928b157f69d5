//! What has been gathered of what leaves, while a draft is worked on: each line and each value once, the newest last.
//! Whatever is put in takes no longer the more there is.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use xxhash_rust::xxh3::xxh3_64;

use super::ledger::MENTIONED;
use crate::wire::task::{Digest, Line, LineKind, Value};

/// Lines of one sort, other than the user's, before the oldest give way.
const MOST_LINES: usize = 400;

/// Values before the oldest give way.
const MOST_VALUES: usize = 600;

/// What was gathered: the user's lines, the other lines, and the ledger, each oldest first.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) said: Vec<Line>,
    pub(super) others: Vec<Line>,
    pub(super) ledger: Vec<Value>,
}

/// Lines and values by their age.
#[derive(Debug)]
pub(super) struct Gathered {
    lines: [BTreeMap<u64, Line>; 4],
    places: BTreeMap<(usize, u64), u64>,
    values: BTreeMap<u64, Value>,
    held: BTreeMap<String, u64>,
    next: u64,
    bytes: usize,
    /// Bytes of the user's lines, and how many there are.
    said: (usize, usize),
}

/// Where lines of a kind stand: those of the user together, in the order in which they were said.
fn sort(kind: LineKind) -> usize {
    match kind {
        LineKind::Constraint | LineKind::Said | LineKind::Feedback => 0,
        LineKind::Decision => 1,
        LineKind::Result => 2,
        LineKind::Failed => 3,
    }
}

/// What makes two lines the same: of a tool's last result its name, of all others their text.
fn name(line: &Line) -> u64 {
    let whole = line.text.as_str();
    let named = if line.kind == LineKind::Result { whole.split(": ").next().unwrap_or(whole) } else { whole };
    xxh3_64(named.as_bytes())
}

impl Gathered {
    /// What a digest holds already.
    pub(super) fn of(digest: &Digest) -> Self {
        let mut gathered = Self {
            lines: Default::default(),
            places: BTreeMap::new(),
            values: BTreeMap::new(),
            held: BTreeMap::new(),
            next: 0,
            bytes: digest.summary.len(),
            said: (0, 0),
        };
        digest.lines.iter().for_each(|line| gathered.line(line.clone()));
        digest.ledger.iter().for_each(|value| gathered.value(&value.label, &value.value, value.seq));
        gathered
    }

    /// Puts a line at the end of its sort.
    pub(super) fn line(&mut self, line: Line) {
        let (sort, at) = (sort(line.kind), self.turn());
        if let Some(before) = self.places.insert((sort, name(&line)), at) {
            self.drop_line(sort, before);
        }
        self.count_line(sort, &line, usize::saturating_add);
        if let Some(lines) = self.lines.get_mut(sort) {
            lines.insert(at, line);
        }
        let oldest = self.lines.get(sort).filter(|lines| sort > 0 && lines.len() > MOST_LINES);
        if let Some((&oldest, line)) = oldest.and_then(BTreeMap::first_key_value) {
            self.places.remove(&(sort, name(line)));
            self.drop_line(sort, oldest);
        }
    }

    /// Puts a value at the end of the ledger. One that is mentioned only keeps the label that it had.
    pub(super) fn value(&mut self, label: &str, value: &str, seq: u64) {
        let at = self.turn();
        let before = self.held.insert(value.into(), at).and_then(|before| self.drop_value(before));
        let label = match before {
            Some(before) if label == MENTIONED => before.label,
            _ => label.into(),
        };
        self.bytes = self.bytes.saturating_add(value.len()).saturating_add(1);
        self.values.insert(at, Value { label, value: value.into(), seq });
        if self.values.len() > MOST_VALUES
            && let Some(oldest) = self.values.first_key_value().map(|(at, _)| *at)
            && let Some(gone) = self.drop_value(oldest)
        {
            self.held.remove(&gone.value);
        }
    }

    /// Bytes of the user's lines, and how many there are.
    pub(super) fn said(&self) -> (usize, usize) {
        self.said
    }

    /// Bytes of everything else, and how many lines that is.
    pub(super) fn others(&self) -> (usize, usize) {
        (self.bytes, self.lines.iter().skip(1).map(BTreeMap::len).fold(0, usize::saturating_add))
    }

    /// The user's lines, the other lines, and the ledger.
    pub(super) fn into_parts(self) -> Parts {
        let [said, others @ ..] = self.lines;
        let others = others.into_iter().flat_map(BTreeMap::into_values);
        Parts {
            said: said.into_values().collect(),
            others: others.collect(),
            ledger: self.values.into_values().collect(),
        }
    }

    fn turn(&mut self) -> u64 {
        self.next = self.next.saturating_add(1);
        self.next
    }

    fn drop_line(&mut self, sort: usize, at: u64) {
        if let Some(line) = self.lines.get_mut(sort).and_then(|lines| lines.remove(&at)) {
            self.count_line(sort, &line, usize::saturating_sub);
        }
    }

    fn drop_value(&mut self, at: u64) -> Option<Value> {
        let value = self.values.remove(&at)?;
        self.bytes = self.bytes.saturating_sub(value.value.len()).saturating_sub(1);
        Some(value)
    }

    fn count_line(&mut self, sort: usize, line: &Line, change: fn(usize, usize) -> usize) {
        if sort == 0 {
            self.said = (change(self.said.0, line.text.len()), change(self.said.1, 1));
        } else {
            self.bytes = change(self.bytes, line.text.len());
        }
    }
}
