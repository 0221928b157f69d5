//! The prompt: the blocks of the current epoch, their digest and their weight.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::gauge::Gauge;
use crate::wire::task::{Role, Source};

/// A rendered block and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// JSON text.
    pub text: Box<str>,
    /// What it is, from which record, and what it weighs.
    pub source: Source,
}

/// The blocks of the current epoch. Within an epoch they only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    epoch: u64,
    entries: Vec<Entry>,
    digest: u64,
    gauge: Gauge,
}

impl Prompt {
    /// Number of the epoch; 0 before the first.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// How many blocks there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        u64::try_from(self.entries.len()).unwrap_or(u64::MAX)
    }

    /// Whether nothing was rendered yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The blocks.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Estimated tokens of all blocks.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.gauge.tokens()
    }

    /// Our count, and how the provider's compared with it.
    #[must_use]
    pub fn gauge(&self) -> Gauge {
        self.gauge
    }

    /// Whether the last block is the model's own text, which no request may end with.
    #[must_use]
    pub fn is_open_ended(&self) -> bool {
        self.entries.last().is_some_and(|last| last.source.role == Role::Reply)
    }

    /// Name of the rendering: xxh3-64 chained over the blocks, 16 hex digits.
    #[must_use]
    pub fn digest(&self) -> String {
        format!("{:016x}", self.digest)
    }

    /// Block 0, empty before the first epoch.
    #[must_use]
    pub fn head(&self) -> &str {
        self.entries.first().map_or("", |head| &head.text)
    }

    /// Tokens of block 0, by our own count.
    #[must_use]
    pub fn head_tokens(&self) -> u64 {
        self.entries.first().map_or(0, |head| head.source.tokens)
    }

    /// The blocks of `epoch` from number `from` on, as a JSON array; empty for another epoch.
    #[must_use]
    pub fn slice(&self, epoch: u64, from: u64) -> Vec<u8> {
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let entries = self.entries.get(from..).filter(|_| epoch == self.epoch).unwrap_or_default();
        let size = entries.iter().fold(2_usize, |size, entry| size.saturating_add(entry.text.len()).saturating_add(1));
        let mut out = Vec::with_capacity(size);
        out.push(b'[');
        for (at, entry) in entries.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(entry.text.as_bytes());
        }
        out.push(b']');
        out
    }

    /// The JSON texts of the blocks, in order.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.text.as_ref())
    }

    /// Appends a block.
    pub(crate) fn push(&mut self, text: Box<str>, source: Source) {
        self.digest = xxh3_64_with_seed(text.as_bytes(), self.digest);
        self.gauge.add(source.tokens);
        self.entries.push(Entry { text, source });
    }

    /// Takes the provider's count of the prompt so far for ours, where it is not below `least`; our count is that where
    /// none is given.
    pub(crate) fn anchor(&mut self, tokens: u64, least: Option<u64>) {
        self.gauge.anchor(tokens, least.unwrap_or(self.gauge.own()));
    }

    /// Puts another head in front of the same turns: a new epoch. Each turn is passed through `turn` on the way.
    pub(crate) fn rehead(&mut self, text: Box<str>, source: Source, turn: impl Fn(&str) -> Option<Box<str>>) {
        self.exchange(0, text, source);
        for entry in self.entries.iter_mut().skip(1) {
            if let Some(other) = turn(&entry.text) {
                entry.text = other;
            }
        }
        self.turn_epoch();
    }

    /// Puts another head in the place of this one, where the turns are about to be replaced too.
    pub(crate) fn reopen(&mut self, text: Box<str>, source: Source) {
        self.exchange(0, text, source);
    }

    /// Weight of another head, from the weight of this one: a `Resumed` carries no count, and a replay never tokenizes.
    pub(crate) fn scaled_head(&self, head: &str) -> u64 {
        share(self.head_tokens(), head.len(), self.head().len().max(1))
    }

    /// Takes the count of the head anew, where it did not change.
    pub(crate) fn reweigh_head(&mut self, tokens: u64) {
        if let Some(head) = self.entries.first_mut() {
            self.gauge.exchange(head.source.tokens, tokens);
            head.source.tokens = tokens;
        }
    }

    /// Puts another `turns[0]` in front of the same history: a new epoch.
    pub(crate) fn restate(&mut self, text: Box<str>, source: Source) {
        self.exchange(1, text, source);
        self.turn_epoch();
    }

    /// Replaces all but the head: a new epoch.
    pub(crate) fn replace(&mut self, turns: Vec<Entry>) {
        self.entries.truncate(1);
        self.entries.extend(turns);
        let own = self.entries.iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.source.tokens));
        self.gauge.recount(own);
        self.turn_epoch();
    }

    /// Puts a block in the place of another, or behind the last.
    fn exchange(&mut self, at: usize, text: Box<str>, source: Source) {
        match self.entries.get_mut(at) {
            Some(entry) => {
                self.gauge.exchange(entry.source.tokens, source.tokens);
                *entry = Entry { text, source };
            }
            None => self.push(text, source),
        }
    }

    fn turn_epoch(&mut self) {
        self.epoch = self.epoch.saturating_add(1);
        let entries = self.entries.iter();
        self.digest = entries.fold(0, |digest, entry| xxh3_64_with_seed(entry.text.as_bytes(), digest));
    }
}

/// `tokens × part / whole`, rounded up.
pub(crate) fn share(tokens: u64, part: usize, whole: usize) -> u64 {
    super::gauge::share(tokens, u64::try_from(part).unwrap_or(u64::MAX), u64::try_from(whole).unwrap_or(u64::MAX))
}
