//! The history while it is being compressed.

use alloc::string::String;
use alloc::vec::Vec;

use super::{digest, harvest};
use crate::context::prompt::{Entry, Prompt};
use crate::context::task::Task;
use crate::context::weigh::Scale;
use crate::wire::event::Compressed;
use crate::wire::message::{Block, UserBlock};
use crate::wire::task::{Digest, Role, Source};

/// A block of the history.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// What it says.
    pub(super) block: Block<'static>,
    /// Where it is from.
    pub(super) source: Source,
}

/// The history while it is being compressed. `turns[0]` is made anew at the end.
#[allow(missing_debug_implementations, reason = "a counter has nothing to show")]
pub struct Draft<'a> {
    pub(super) pieces: Vec<Piece>,
    pub(super) digest: Digest,
    pub(super) labels: &'a [&'a str],
    pub(super) scale: Scale<'a>,
    task: &'a Task,
    target: u64,
    head: u64,
    weight: u64,
    changes: u64,
    left: bool,
}

/// Hundredths of the target's room for history that the digest may take, and its bounds in tokens.
const DIGEST_SHARE: u64 = 60;
const DIGEST_LEAST: u64 = 60;
const DIGEST_MOST: u64 = 4_000;

impl<'a> Draft<'a> {
    /// The draft of a prompt; none where there is no history, or a block that cannot be read.
    pub(super) fn of(
        prompt: &Prompt,
        task: &'a Task,
        target: u64,
        labels: &'a [&'a str],
        scale: Scale<'a>,
    ) -> Option<Self> {
        let (head, turns) = prompt.entries().split_first()?;
        let (_, history) = turns.split_first()?;
        let pieces = history.iter().map(piece).collect::<Option<Vec<_>>>()?;
        let weight = history.iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.source.tokens));
        let mut draft = Self {
            pieces,
            weight,
            digest: task.digest.clone(),
            labels,
            scale,
            task,
            target,
            head: head.source.tokens,
            changes: 0,
            left: task.digest.passes > 0,
        };
        draft.supersede_opening();
        Some(draft)
    }

    /// A goal that `turns[0]` began with, and that is not the current one, goes to the digest: `turns[0]` will begin with
    /// another.
    fn supersede_opening(&mut self) {
        if self.task.opening_seq != self.task.goal_seq && !self.task.opening_below {
            harvest::user(&mut self.digest, &self.task.opening, self.task.opening_seq);
        }
    }

    /// How often something was changed.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Whether the prompt is down to the target.
    #[must_use]
    pub fn is_light(&self) -> bool {
        self.tokens() <= self.target
    }

    /// Tokens of the prompt as it stands, with its digest.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        let digest = if self.left { self.digest_room().min(digest::at_most(&self.digest)) } else { 0 };
        self.fixed().saturating_add(digest).saturating_add(self.weight)
    }

    /// Tokens of pieces above the target, where the digest takes all of its room.
    pub(super) fn excess(&self) -> u64 {
        let others = self.fixed().saturating_add(self.digest_room());
        self.weight.saturating_sub(self.target.saturating_sub(others))
    }

    /// The first of the pieces that are never taken away: the newest turn, and what the model has not read yet.
    #[must_use]
    pub fn newest(&self) -> usize {
        let mut at = self.pieces.len();
        let role = |at: usize| self.pieces.get(at).map(|piece| piece.source.role);
        while at > 0 && matches!(role(at.saturating_sub(1)), Some(Role::Delta | Role::Goal)) {
            at = at.saturating_sub(1);
        }
        if role(at.saturating_sub(1)) == Some(Role::Result) {
            while at > 0 && role(at) != Some(Role::Reply) {
                at = at.saturating_sub(1);
            }
        }
        at
    }

    /// Puts a shorter block in the place of one, if that saves enough; what it said first goes to the digest.
    pub(super) fn shorten(&mut self, at: usize, block: Block<'static>) {
        let tokens = self.weigh(&block);
        let Some(piece) = self.pieces.get_mut(at) else { return };
        if tokens.saturating_add(LEAST_SAVING) > piece.source.tokens {
            return;
        }
        harvest::values(&mut self.digest, piece, self.labels);
        self.weight = self.weight.saturating_sub(piece.source.tokens).saturating_add(tokens);
        (piece.block, piece.source.tokens) = (block, tokens);
        (self.changes, self.left) = (self.changes.saturating_add(1), true);
    }

    /// Takes away the oldest `count` pieces; what is left of them is in the digest.
    pub(super) fn take_away(&mut self, count: usize) {
        let goal = self.task.goal_seq;
        for piece in self.pieces.drain(..count).collect::<Vec<_>>() {
            self.note_taken(&piece.source);
            if !(piece.source.role == Role::Goal && piece.source.seq == goal) {
                harvest::piece(&mut self.digest, &piece, self.labels);
            }
        }
    }

    /// Removes what a rewrite made invalid of a piece; nothing leaves by that.
    pub(super) fn lighten(&mut self, at: usize, block: Block<'static>) {
        let tokens = self.weigh(&block);
        if let Some(piece) = self.pieces.get_mut(at) {
            let lighter = tokens.min(piece.source.tokens);
            self.weight = self.weight.saturating_sub(piece.source.tokens).saturating_add(lighter);
            (piece.block, piece.source.tokens) = (block, lighter);
        }
    }

    /// The record of the new epoch; none if the prompt did not get lighter.
    pub(super) fn finish(mut self, prompt: &Prompt, stage: &str) -> Option<Compressed> {
        self.digest.passes = self.digest.passes.saturating_add(1);
        // What the pieces have left of the target is better used by the digest than by nothing.
        let free = self.target.saturating_sub(self.fixed()).saturating_sub(self.weight);
        let room = free.clamp(self.digest_room(), DIGEST_MOST);
        if free == 0 {
            // The pieces are above the target: what is kept word for word goes before a model's words.
            self.digest.summary.clear();
        }
        digest::trim(&mut self.digest, room, self.labels, &self.scale);
        let first = self.first();
        let pieces = [first].into_iter().chain(self.pieces);
        let (blocks, sources): (Vec<_>, Vec<_>) = pieces.map(|piece| (piece.block, piece.source)).unzip();
        let own = sources.iter().fold(self.head, |sum, source: &Source| sum.saturating_add(source.tokens));
        (own < prompt.gauge().own()).then(|| Compressed {
            stage: String::from(stage),
            blocks,
            tokens_before: prompt.tokens(),
            tokens: prompt.gauge().scaled(own),
            sources,
            digest: self.digest,
            left: self.changes,
        })
    }

    /// `turns[0]` as the new epoch begins with it.
    fn first(&self) -> Piece {
        let goal = self.task.goal_seq;
        let below = self.pieces.iter().any(|piece| piece.source.role == Role::Goal && piece.source.seq == goal);
        let mut task = self.task.clone();
        task.opening = task.reopened(below);
        task.digest = self.digest.clone();
        let parts = task.snapshot();
        let source = Source { role: Role::State, seq: task.goal_seq, tokens: self.scale.content(&parts) };
        Piece { block: Block::User(UserBlock { parts: parts.into() }), source }
    }

    fn fixed(&self) -> u64 {
        self.head.saturating_add(self.task.snapshot_tokens()).saturating_sub(self.task.digest_tokens)
    }

    fn digest_room(&self) -> u64 {
        let room = self.target.saturating_sub(self.fixed());
        let part = room.saturating_mul(DIGEST_SHARE).checked_div(100).unwrap_or(0);
        part.clamp(DIGEST_LEAST, DIGEST_MOST)
    }

    fn note_taken(&mut self, source: &Source) {
        let seq = source.seq;
        self.weight = self.weight.saturating_sub(source.tokens);
        self.digest.from = if self.digest.to == 0 { seq } else { self.digest.from.min(seq) };
        self.digest.to = self.digest.to.max(seq);
        (self.changes, self.left) = (self.changes.saturating_add(1), true);
    }

    fn weigh(&self, block: &Block<'_>) -> u64 {
        self.scale.block(block)
    }
}

/// Tokens that a shortening must save.
const LEAST_SAVING: u64 = 24;

fn piece(entry: &Entry) -> Option<Piece> {
    serde_json::from_str(&entry.text).ok().map(|block| Piece { block, source: entry.source })
}
