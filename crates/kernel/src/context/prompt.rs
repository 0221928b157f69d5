//! The prompt: the blocks of the current epoch, their digest and their weight.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The blocks of the current epoch. Within an epoch they only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    epoch: u64,
    blocks: Vec<Box<str>>,
    digest: u64,
    tokens: u64,
    head_tokens: u64,
    open_ended: bool,
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
        u64::try_from(self.blocks.len()).unwrap_or(u64::MAX)
    }

    /// Whether nothing was rendered yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Estimated tokens of all blocks.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Whether the last block is the model's own text, which no request may end with.
    #[must_use]
    pub fn is_open_ended(&self) -> bool {
        self.open_ended
    }

    /// Name of the rendering: xxh3-64 chained over the blocks, 16 hex digits.
    #[must_use]
    pub fn digest(&self) -> String {
        format!("{:016x}", self.digest)
    }

    /// Block 0, empty before the first epoch.
    #[must_use]
    pub fn head(&self) -> &str {
        self.blocks.first().map_or("", |head| head)
    }

    /// The blocks of `epoch` from number `from` on, as a JSON array; empty for another epoch.
    #[must_use]
    pub fn slice(&self, epoch: u64, from: u64) -> Vec<u8> {
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let blocks = self.blocks.get(from..).filter(|_| epoch == self.epoch).unwrap_or_default();
        let size = blocks.iter().fold(2_usize, |size, block| size.saturating_add(block.len()).saturating_add(1));
        let mut out = Vec::with_capacity(size);
        out.push(b'[');
        for (at, block) in blocks.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(block.as_bytes());
        }
        out.push(b']');
        out
    }

    /// The JSON texts of the blocks, in order.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().map(AsRef::as_ref)
    }

    /// Appends a user-side block or a result.
    pub(crate) fn push(&mut self, block: Box<str>, tokens: u64) {
        self.append(block);
        self.tokens = self.tokens.saturating_add(tokens);
        self.open_ended = false;
    }

    /// Appends what the model said.
    pub(crate) fn push_assistant(&mut self, block: Box<str>, tokens: u64) {
        self.push(block, tokens);
        self.open_ended = true;
    }

    /// Takes the provider's count of the prompt so far for ours.
    pub(crate) fn anchor(&mut self, tokens: u64) {
        self.tokens = tokens;
    }

    /// Puts another head in front of the same blocks: a new epoch.
    pub(crate) fn rehead(&mut self, head: Box<str>, tokens: u64) {
        self.tokens = self.tokens.saturating_sub(self.head_tokens).saturating_add(tokens);
        self.head_tokens = tokens;
        match self.blocks.first_mut() {
            Some(first) => *first = head,
            None => self.blocks.push(head),
        }
        self.turn_epoch();
    }

    /// Weight of another head, from the weight of this one: a `Resumed` carries no count, and a replay never tokenizes.
    pub(crate) fn scaled_head(&self, head: &str) -> u64 {
        share(self.head_tokens, head.len(), self.head().len().max(1))
    }

    /// Takes the count of the head anew, where it did not change.
    pub(crate) fn reweigh_head(&mut self, tokens: u64) {
        self.tokens = self.tokens.saturating_sub(self.head_tokens).saturating_add(tokens);
        self.head_tokens = tokens;
    }

    /// Replaces everything: a new epoch. The head stays where `blocks` brings none.
    pub(crate) fn replace(&mut self, blocks: Vec<Box<str>>, headed: bool, tokens: u64, open_ended: bool) {
        let head = self.blocks.first().cloned().filter(|_| !headed);
        self.blocks = head.into_iter().chain(blocks).collect();
        self.tokens = tokens;
        self.open_ended = open_ended;
        self.turn_epoch();
    }

    fn append(&mut self, block: Box<str>) {
        self.digest = xxh3_64_with_seed(block.as_bytes(), self.digest);
        self.blocks.push(block);
    }

    fn turn_epoch(&mut self) {
        self.epoch = self.epoch.saturating_add(1);
        self.digest = self.blocks.iter().fold(0, |digest, block| xxh3_64_with_seed(block.as_bytes(), digest));
    }
}

/// `tokens × part / whole`, rounded up.
pub(crate) fn share(tokens: u64, part: usize, whole: usize) -> u64 {
    let product = u128::from(tokens).saturating_mul(part as u128);
    u64::try_from(product.div_ceil((whole as u128).max(1))).unwrap_or(u64::MAX)
}
