//! The history while it is being compressed.

use alloc::string::String;
use alloc::vec::Vec;

use super::collapse::COLLAPSE;
use super::digest::{self, DIGEST_MOST, Room};
use super::gathered::{Gathered, Parts};
use super::words::span;
use super::{Goal, harvest, said};
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
    pub(super) gathered: Gathered,
    pub(super) labels: &'a [&'a str],
    pub(super) scale: Scale<'a>,
    digest: Digest,
    /// Tokens of the summary in it.
    summary: u64,
    task: &'a Task,
    goal: Goal,
    head: u64,
    weight: u64,
    /// Where the current goal stands in full, if it is among the pieces.
    goal_at: Option<usize>,
    /// Tokens of it in full, and shortened.
    goal_tokens: (u64, u64),
    changes: u64,
    gone: Vec<String>,
    shortened: Vec<u64>,
}

/// Hundredths of the target's room for history that the user's own words may take.
const SAID_SHARE: u64 = 45;

/// Hundredths of the rest that everything else in the digest may take; and the least of that in tokens.
const DIGEST_SHARE: u64 = 60;
const DIGEST_LEAST: u64 = 60;

impl<'a> Draft<'a> {
    /// The draft of a prompt; none where there is no history, or a block that cannot be read.
    pub(super) fn of(
        prompt: &Prompt,
        task: &'a Task,
        goal: Goal,
        labels: &'a [&'a str],
        scale: Scale<'a>,
    ) -> Option<Self> {
        let (head, turns) = prompt.entries().split_first()?;
        let (_, history) = turns.split_first()?;
        let pieces = history.iter().map(piece).collect::<Option<Vec<_>>>()?;
        let is_goal = |piece: &Piece| piece.source.role == Role::Goal && piece.source.seq == task.goal_seq;
        let goal_at = pieces.iter().position(is_goal);
        let whole = match goal_at.and_then(|at| pieces.get(at)) {
            Some(piece) => piece.source.tokens,
            None if task.opening_seq == task.goal_seq => task.opening_tokens,
            None => scale.content(&task.goal),
        };
        Some(Self {
            weight: history.iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.source.tokens)),
            pieces,
            gathered: Gathered::of(&task.digest),
            digest: task.digest.clone(),
            summary: digest::summary_tokens(&task.digest, &scale),
            labels,
            scale,
            task,
            goal,
            head: goal.head.unwrap_or(head.source.tokens),
            goal_at,
            goal_tokens: (whole, scale.content(&task.reopened(true))),
            changes: 0,
            gone: Vec::new(),
            shortened: Vec::new(),
        })
    }

    /// A goal that `turns[0]` began with, and that is not the current one, goes to the digest: `turns[0]` will begin with
    /// another. Whether there was one.
    pub(super) fn supersede_opening(&mut self) -> bool {
        let seq = self.task.opening_seq;
        if seq == self.task.goal_seq || self.task.opening_below {
            return false;
        }
        harvest::user(&mut self.gathered, &self.task.opening, seq);
        harvest::named(&mut self.gathered, &self.task.opening, seq);
        self.note_gone(seq, seq);
        self.digest.opening = true;
        self.changes = self.changes.saturating_add(1);
        true
    }

    /// How often something was changed.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Whether the prompt is down to the target.
    #[must_use]
    pub fn is_light(&self) -> bool {
        self.tokens() <= self.goal.target
    }

    /// Tokens of the prompt as it stands, with its digest.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.fixed().saturating_add(self.digest_need()).saturating_add(self.weight)
    }

    /// Tokens of pieces above the target, where the digest takes all of its room.
    pub(super) fn excess(&self) -> u64 {
        let Room { said, others } = self.digest_room(self.said_at_most());
        let others = self.fixed().saturating_add(said).saturating_add(others);
        self.weight.saturating_sub(self.goal.target.saturating_sub(others))
    }

    /// The first of the pieces that are never taken away one by one: the current goal, where the model has not replied to
    /// it yet, else its last reply and what it has not read yet.
    #[must_use]
    pub fn newest(&self) -> usize {
        let role = |at: usize| self.pieces.get(at).map(|piece| piece.source.role);
        let mut at = self.pieces.len();
        while at > 0 && role(at.saturating_sub(1)) == Some(Role::Delta) {
            at = at.saturating_sub(1);
        }
        if let Some(goal) = self.goal_at.filter(|goal| goal.saturating_add(1) == at) {
            return self.told_before(goal);
        }
        if role(at.saturating_sub(1)) == Some(Role::Result) {
            while at > 0 && role(at) != Some(Role::Reply) {
                at = at.saturating_sub(1);
            }
        }
        at
    }

    /// Whether a delta was made by the record that the current goal is from.
    pub(super) fn is_told_with_goal(&self, piece: &Piece) -> bool {
        piece.source.role == Role::Delta && piece.source.seq == self.task.goal_seq
    }

    /// Where what is told together with the goal begins.
    fn told_before(&self, goal: usize) -> usize {
        let told = self.pieces.iter().take(goal).rev().take_while(|piece| self.is_told_with_goal(piece));
        goal.saturating_sub(told.count())
    }

    /// Puts a shorter block in the place of one, if that saves enough; what it said first goes to the digest.
    pub(super) fn shorten(&mut self, at: usize, block: Block<'static>) {
        let tokens = self.scale.block(&block);
        let Some(piece) = self.pieces.get_mut(at) else { return };
        if tokens.saturating_add(LEAST_SAVING) > piece.source.tokens {
            return;
        }
        harvest::values(&mut self.gathered, piece, self.labels);
        self.weight = self.weight.saturating_sub(piece.source.tokens).saturating_add(tokens);
        (piece.block, piece.source.tokens) = (block, tokens);
        self.changes = self.changes.saturating_add(1);
        self.shortened.push(piece.source.seq);
    }

    /// Takes away the oldest `count` pieces; what is left of them is in the digest.
    pub(super) fn take_away(&mut self, count: usize) {
        let taken: Vec<Piece> = self.pieces.drain(..count.min(self.pieces.len())).collect();
        for (at, piece) in taken.iter().enumerate() {
            self.weight = self.weight.saturating_sub(piece.source.tokens);
            if self.goal_at != Some(at) {
                harvest::piece(&mut self.gathered, piece, self.labels);
            }
            // Behind the goal stands what was said of an earlier attempt, before it what the model had not read yet.
            if self.is_told_with_goal(piece) && self.goal_at.is_none_or(|goal| goal < at) {
                harvest::feedback(&mut self.gathered, piece);
            }
        }
        // Results stand in the order of their calls, not of their records.
        let seqs = taken.iter().map(|piece| piece.source.seq);
        let (Some(first), Some(last)) = (seqs.clone().min(), seqs.max()) else { return };
        self.note_gone(first, last);
        self.shortened.retain(|seq| *seq > last);
        self.goal_at = self.goal_at.and_then(|at| at.checked_sub(taken.len()));
        self.changes = self.changes.saturating_add(u64::try_from(taken.len()).unwrap_or(u64::MAX));
    }

    /// Where nothing but the current goal is left, it opens the epoch: `turns[0]` need not tell it twice.
    pub(super) fn open_with_goal(&mut self) {
        if let Some(goal) = self.goal_at.filter(|goal| self.told_before(*goal) == 0) {
            self.take_away(goal.saturating_add(1));
        }
    }

    /// Removes what a rewrite made invalid of a piece; nothing leaves by that.
    pub(super) fn lighten(&mut self, at: usize, block: Block<'static>) {
        let tokens = self.scale.block(&block);
        if let Some(piece) = self.pieces.get_mut(at) {
            let lighter = tokens.min(piece.source.tokens);
            self.weight = self.weight.saturating_sub(piece.source.tokens).saturating_add(lighter);
            (piece.block, piece.source.tokens) = (block, lighter);
        }
    }

    /// The record of the new epoch; none if the prompt did not get lighter. Where no strategy had anything to do and the
    /// prompt does not fit, the digest is cut to the room that it has now.
    pub(super) fn finish(mut self, prompt: &Prompt, stages: &[&str]) -> Option<Compressed> {
        if stages.is_empty() && prompt.gauge().own() <= self.goal.most {
            return None;
        }
        self.digest.passes = self.digest.passes.saturating_add(1);
        let gathered = core::mem::replace(&mut self.gathered, Gathered::of(&Digest::default())).into_parts();
        if self.fixed().saturating_add(self.weight) >= self.goal.target {
            self.drop_summary();
        }
        let room = self.last_room(said::weight(&gathered.said, &self.scale));
        let (digest, first) = self.filled(&gathered, room);
        let pieces = [first].into_iter().chain(self.pieces);
        let (blocks, sources): (Vec<_>, Vec<_>) = pieces.map(|piece| (piece.block, piece.source)).unzip();
        let own = sources.iter().fold(self.head, |sum, source: &Source| sum.saturating_add(source.tokens));
        if stages.is_empty() && own > self.goal.most {
            return None;
        }
        let stage = String::from(stages.last().copied().unwrap_or(COLLAPSE.name));
        (own < prompt.gauge().own()).then(|| Compressed {
            stage,
            blocks,
            tokens_before: prompt.tokens(),
            tokens: prompt.gauge().scaled(own),
            sources,
            digest,
            left: self.changes,
            stages: stages.iter().copied().map(String::from).collect(),
            gone: self.gone,
            shortened: self.shortened,
            head: self.goal.head,
        })
    }

    /// The digest in its room, and `turns[0]` as the new epoch begins with it. Its parts were weighed one by one; where
    /// together they are too much for the request to fit, they get less room.
    fn filled(&mut self, gathered: &Parts, mut room: Room) -> (Digest, Piece) {
        let mut filled = self.fill(gathered, room);
        for _ in 0..TRIES {
            let own = self.head.saturating_add(self.weight).saturating_add(filled.1.source.tokens);
            let excess = own.saturating_sub(self.goal.most);
            if excess == 0 {
                break;
            }
            if self.summary > 0 {
                self.drop_summary();
            } else {
                room = room.less(excess);
            }
            filled = self.fill(gathered, room);
        }
        filled
    }

    fn fill(&self, gathered: &Parts, room: Room) -> (Digest, Piece) {
        let mut task = self.task.clone();
        task.opening = task.reopened(self.goal_at.is_some());
        task.digest = digest::filled(&self.digest, gathered, room, self.labels, &self.scale);
        let parts = task.snapshot();
        let source = Source { role: Role::State, seq: task.goal_seq, tokens: self.scale.content(&parts) };
        (task.digest, Piece { block: Block::User(UserBlock { parts: parts.into() }), source })
    }

    /// What is kept word for word goes before a model's words.
    fn drop_summary(&mut self) {
        self.digest.summary.clear();
        self.summary = 0;
    }

    /// Tokens that no strategy changes: the head, the goal at the beginning, the task state, a summary.
    fn fixed(&self) -> u64 {
        let (whole, below) = self.goal_tokens;
        let opening = if self.goal_at.is_some() { below } else { whole };
        let parts = [self.head, opening, self.summary, self.task.state_tokens(self.digest.to)];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// Tokens of the digest as it is gathered; none before anything left.
    fn digest_need(&self) -> u64 {
        if self.changes == 0 && self.digest.passes == 0 {
            return 0;
        }
        let Room { said, others } = self.digest_room(self.said_at_most());
        let (bytes, lines) = self.gathered.others();
        said.saturating_add(others.min(digest::at_most(bytes, lines).saturating_add(digest::HEADLINE)))
    }

    /// Tokens that the user's words cannot well be above.
    fn said_at_most(&self) -> u64 {
        let (bytes, lines) = self.gathered.said();
        digest::at_most(bytes, lines)
    }

    /// What the digest may take: the user's words the `need` that they have, within their share; everything else its own.
    fn digest_room(&self, need: u64) -> Room {
        let room = self.goal.target.saturating_sub(self.fixed());
        let said = need.min(part(room, SAID_SHARE));
        let others = part(room.saturating_sub(said), DIGEST_SHARE).clamp(DIGEST_LEAST, DIGEST_MOST);
        Room { said, others }
    }

    /// The digest's room when all is done: what the pieces have left of the target is better used by it than by nothing.
    /// Where they leave too little for the request to fit, the user's words are the last to go.
    fn last_room(&self, need: u64) -> Room {
        let pieces = self.fixed().saturating_add(self.weight);
        let Room { said, others } = self.digest_room(need);
        let most = self.goal.most.saturating_sub(pieces);
        let free = self.goal.target.saturating_sub(pieces).saturating_sub(said);
        let others = others.max(free.min(DIGEST_MOST));
        let said = said.saturating_add(free.saturating_sub(others)).min(most);
        Room { said, others: others.min(most.saturating_sub(said)) }
    }

    fn note_gone(&mut self, from: u64, to: u64) {
        let first = if self.digest.has_left() { self.digest.from.min(from) } else { from };
        (self.digest.from, self.digest.to) = (first, self.digest.to.max(to));
        self.gone.push(span(from, to));
    }
}

/// How often the digest gets less room.
const TRIES: usize = 4;

fn part(whole: u64, hundredths: u64) -> u64 {
    whole.saturating_mul(hundredths).checked_div(100).unwrap_or(0)
}

/// Tokens that a shortening must save.
const LEAST_SAVING: u64 = 24;

fn piece(entry: &Entry) -> Option<Piece> {
    serde_json::from_str(&entry.text).ok().map(|block| Piece { block, source: entry.source })
}
