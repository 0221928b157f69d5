//! The task state: goal, criteria, plan, progress, compression log and signals, as `turns[0]` shows them.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::render::goal_parts;
use crate::wire::message::{Part, Text};
use crate::wire::task::{Digest, Plan};

/// Signals that the task state keeps; older ones are in the log.
pub const SIGNALS: usize = 20;

/// Characters of a goal that stands in full further down.
const BELOW: usize = 400;

/// The task state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task {
    /// The goal with its criteria, as parts.
    pub goal: Vec<Part>,
    /// Seq of its Started.
    pub goal_seq: u64,
    /// What `turns[0]` begins with: the goal that the epoch began with.
    pub opening: Vec<Part>,
    /// Seq of the Started whose goal the opening is.
    pub opening_seq: u64,
    /// Whether the opening is a goal that stood in full further down when the epoch began.
    pub opening_below: bool,
    /// Tokens of the opening.
    pub opening_tokens: u64,
    /// The plan.
    pub plan: Plan,
    /// Tokens of the plan's text.
    pub plan_tokens: u64,
    /// The signals that the model has read for this goal, the newest last.
    pub signals: Vec<Heard>,
    /// What is left of the turns that left the prompt.
    pub digest: Digest,
    /// Tokens of the digest's text.
    pub digest_tokens: u64,
}

/// A signal that the model has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Seq of the delta that it stood in; 0 for one that stood in `turns[0]` from the beginning.
    pub delta: u64,
    /// Its text.
    pub text: String,
    /// Its tokens.
    pub tokens: u64,
    /// Whether the user says it: then others go first.
    pub said: bool,
}

/// Which signal has to go: `signals` holds the weight of each and its rank, the oldest first. The lowest rank goes before
/// others, of that the oldest. None while there are at most `most` and they weigh at most `room` tokens.
#[must_use]
pub fn overflow<R: Ord>(signals: &[(u64, R)], most: usize, room: u64) -> Option<usize> {
    let weight = signals.iter().fold(0_u64, |sum, (tokens, _)| sum.saturating_add(*tokens));
    if signals.len() <= most && weight <= room {
        return None;
    }
    let ranked = signals.iter().enumerate();
    ranked.min_by(|(_, (_, one)), (_, (_, other))| one.cmp(other)).map(|(at, _)| at)
}

impl Task {
    /// Another goal: plan, progress and signals of the one before do not count for it.
    pub(crate) fn begin(&mut self, seq: u64, goal: &[Part], criteria: &[String]) {
        (self.goal, self.goal_seq) = (goal_parts(goal, criteria), seq);
        (self.plan, self.plan_tokens) = (Plan::default(), 0);
        self.signals.clear();
    }

    /// The goal becomes what `turns[0]` begins with.
    pub(crate) fn open(&mut self, tokens: u64) {
        (self.opening, self.opening_tokens) = (self.goal.clone(), tokens);
        (self.opening_seq, self.opening_below) = (self.goal_seq, false);
    }

    /// Whether the prompt was compressed, so that something of it stands in the log only.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.digest.passes > 0
    }

    /// Whether there is anything beside the goal.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        self.plan != Plan::default() || !self.signals.is_empty()
    }

    /// All of these signals are read. Of those before as many are kept as have room beside them, the newest, and what the
    /// user says longest.
    pub(crate) fn hear(&mut self, heard: Vec<Heard>, room: u64) {
        let weight = |heard: &Heard| heard.tokens.saturating_add(FRAME);
        let most = SIGNALS.saturating_sub(heard.len());
        let left = heard.iter().map(weight).fold(room, u64::saturating_sub);
        loop {
            let kept: Vec<_> = self.signals.iter().map(|heard| (weight(heard), heard.said)).collect();
            let Some(goes) = overflow(&kept, most, left) else { break };
            self.signals.remove(goes);
        }
        self.signals.extend(heard);
    }

    /// What `turns[0]` begins with in another epoch: the goal, shortened where it stands in full further down.
    #[must_use]
    pub fn reopened(&self, below: bool) -> Vec<Part> {
        if !below {
            return self.goal.clone();
        }
        let texts = self.goal.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        let whole = texts.collect::<Vec<_>>().join("\n");
        let mut text: String = whole.chars().take(BELOW).collect();
        if text.len() < whole.len() {
            text.push_str(" … (in full below)");
        }
        if text.trim().is_empty() {
            text = "(the goal stands below)".to_string();
        }
        vec![Part::Text(Text { text })]
    }

    /// `turns[0]`: the opening, the state, the digest.
    #[must_use]
    pub fn snapshot(&self) -> Vec<Part> {
        self.with_state(&self.opening, self.state_text(self.without_delta(self.digest.to)))
    }

    /// The canonical `turns[0]`: the goal and the state as they are now, wherever on the wire they stand.
    #[must_use]
    pub fn canonical(&self) -> Vec<Part> {
        self.with_state(&self.goal, self.state_text(self.signals.iter()))
    }

    fn with_state(&self, goal: &[Part], state: String) -> Vec<Part> {
        let mut parts = goal.to_vec();
        for text in [state, super::compress::digest::text(&self.digest)] {
            if !text.is_empty() {
                parts.push(Part::Text(Text { text }));
            }
        }
        parts
    }

    /// Tokens of that snapshot: of the parts it is made of, each counted when it came.
    #[must_use]
    pub fn snapshot_tokens(&self) -> u64 {
        let parts = [self.opening_tokens, self.digest_tokens, self.state_tokens(self.digest.to)];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// Tokens of plan and signals in it, where the deltas up to record `to` have left.
    #[must_use]
    pub fn state_tokens(&self, to: u64) -> u64 {
        let signals = self.without_delta(to).map(|heard| heard.tokens.saturating_add(FRAME));
        [self.plan_tokens, FRAME].into_iter().chain(signals).fold(0, u64::saturating_add)
    }

    /// Signals that no delta among the turns behind record `to` tells.
    fn without_delta(&self, to: u64) -> impl Iterator<Item = &Heard> {
        self.signals.iter().filter(move |heard| heard.delta <= to)
    }

    fn state_text<'a>(&self, signals: impl Iterator<Item = &'a Heard>) -> String {
        let mut text = plan_text(&self.plan);
        for heard in signals {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&heard.text);
        }
        text
    }
}

/// Tokens of the words between the parts of a snapshot.
pub const FRAME: u64 = 8;

/// The plan as the model reads it, the same in `turns[0]` and in a delta; empty where there is none.
#[must_use]
pub fn plan_text(plan: &Plan) -> String {
    let mut text = String::new();
    if !plan.steps.is_empty() {
        text.push_str("Plan:");
    }
    for step in &plan.steps {
        text.push_str("\n[");
        text.push_str(step.status.as_str());
        text.push_str("] ");
        text.push_str(&step.text);
    }
    if !plan.progress.is_empty() {
        text.push_str(if text.is_empty() { "Progress: " } else { "\nProgress: " });
        text.push_str(&plan.progress);
    }
    text
}
