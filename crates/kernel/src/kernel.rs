//! The kernel: `accept` is its only writer, everything else is a view.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::context::render::user_block;
use crate::context::slots::{Slots, slots};
use crate::context::weigh::{Scale, Tokens};
use crate::governance::{NoSchemas, STAGES, Schemas, Stage, Windows};
use crate::meta;
use crate::run::decide::decide;
use crate::run::evolve::{evolve, step_over};
use crate::run::follow::{Desk, follow, windows_name};
use crate::run::state::State;
use crate::run::{limits, outcome, pending, press};
use crate::wire::effect::{Effect, Outcome};
use crate::wire::event::{Event, Judged, Verdict};
use crate::wire::input::Input;
use crate::wire::policy::Skill;
use crate::wire::record::{Envelope, Record};
use crate::wire::strict;
use crate::{Corrupt, Millis, Rejected, Seq};

/// One session's state machine.
pub struct Kernel {
    state: State,
    tokens: Box<dyn Tokens + Send>,
    stages: &'static [Stage],
    schemas: Box<dyn Schemas + Send>,
    windows: Windows,
}

impl Kernel {
    /// The kernel of a session without records.
    #[must_use]
    pub fn new(tokens: Box<dyn Tokens + Send>) -> Self {
        let schemas = Box::new(NoSchemas);
        Self { state: State::default(), tokens, stages: STAGES, schemas, windows: Windows::default() }
    }

    /// The kernel of a recorded session: the fold of its records. It never tokenizes.
    ///
    /// Unknown fields are ignored. A record of an unknown kind is passed over if it says `optional`.
    ///
    /// # Errors
    /// The log does not fold; `Corrupt` names the record and what is wrong with it.
    pub fn replay<'a>(
        tokens: Box<dyn Tokens + Send>,
        records: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Self, Corrupt> {
        Self::replay_with(tokens, &mut Windows::default(), records)
    }

    /// `replay`, which tells rate windows that somebody else owns of the calls that were allowed.
    ///
    /// # Errors
    /// As `replay`.
    pub fn replay_with<'a>(
        tokens: Box<dyn Tokens + Send>,
        windows: &mut Windows,
        records: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Self, Corrupt> {
        let mut kernel = Self::new(tokens);
        for line in records {
            kernel.fold(line, windows)?;
        }
        Ok(kernel)
    }

    /// Which skill a log makes active, or none, behind which of its records: one entry for each change.
    ///
    /// # Errors
    /// As `replay`.
    pub fn active_skills<'a>(
        tokens: Box<dyn Tokens + Send>,
        records: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Vec<(Seq, Option<Skill>)>, Corrupt> {
        let (mut kernel, mut changes) = (Self::new(tokens), Vec::new());
        let mut before = None;
        for line in records {
            let seq = kernel.next_seq();
            kernel.fold(line, &mut Windows::default())?;
            let active = kernel.state.run.as_ref().and_then(|run| run.skill.as_ref());
            if active != before.as_ref() {
                before = active.cloned();
                changes.push((seq, before.clone()));
            }
        }
        Ok(changes)
    }

    /// The same kernel with a schema check for constraints.
    #[must_use]
    pub fn with_schemas(self, schemas: Box<dyn Schemas + Send>) -> Self {
        Self { schemas, ..self }
    }

    /// The same kernel with other governance stages.
    #[must_use]
    pub fn with_stages(self, stages: &'static [Stage]) -> Self {
        Self { stages, ..self }
    }

    /// Takes one input as JSON text and gives the records it makes, as JSON text, to be appended before anything is
    /// done about them. A `now` before the last record counts as that record's time.
    ///
    /// # Errors
    /// The input is not taken; nothing has changed.
    pub fn accept(&mut self, input: &[u8], now: Millis) -> Result<Vec<Vec<u8>>, Rejected> {
        let mut windows = core::mem::take(&mut self.windows);
        let records = self.accept_with(&mut windows, input, now);
        self.windows = windows;
        records
    }

    /// `accept` with rate windows that somebody else owns.
    ///
    /// # Errors
    /// As `accept`.
    pub fn accept_with(&mut self, windows: &mut Windows, input: &[u8], now: Millis) -> Result<Vec<Vec<u8>>, Rejected> {
        let input: Input = strict::from_slice(input).map_err(|error| Rejected::Invalid(error.to_string()))?;
        let records = self.step(windows, input, now)?;
        records.iter().map(written).collect()
    }

    /// `accept` for an input that is already read.
    ///
    /// # Errors
    /// As `accept`.
    pub fn accept_input(&mut self, input: Input, now: Millis) -> Result<Vec<Record>, Rejected> {
        let mut windows = core::mem::take(&mut self.windows);
        let records = self.step(&mut windows, input, now);
        self.windows = windows;
        records
    }

    /// What is owed, in the order of the ids; only ids above `since`, if it is given. A call that had to wait for a free
    /// place becomes owed under an id below others that are owed already.
    #[must_use]
    pub fn pending(&self, since: Option<Seq>) -> Vec<Effect> {
        let mut effects = pending::pending(&self.state);
        effects.retain(|effect| since.is_none_or(|since| effect.id() > since));
        effects
    }

    /// The prompt's blocks from number `from` on, as a JSON array; empty for any but the current epoch.
    #[must_use]
    pub fn blocks(&self, epoch: u64, from: u64) -> Vec<u8> {
        self.state.prompt().slice(epoch, from)
    }

    /// `turns[0]` as the task stands now, as a JSON block, wherever on the wire its parts stand.
    #[must_use]
    pub fn task_block(&self) -> String {
        user_block(&self.state.task().canonical()).into_string()
    }

    /// What each slot of the prompt weighs, counted anew.
    #[must_use]
    pub fn slots(&self) -> Slots {
        let model = self.state.run.as_ref().map_or("", |run| &run.config.model.id);
        slots(self.state.prompt(), &self.state.task().canonical(), &Scale { tokens: &*self.tokens, model })
    }

    /// The estimate of the whole prompt that the limits go by, and the window; zeros before the first goal.
    #[must_use]
    pub fn fill(&self) -> (u64, u64) {
        let window = self.state.run.as_ref().map_or(0, |run| run.config.limits.window);
        (self.state.prompt().tokens(), window)
    }

    /// Whether an input of so many bytes may have the prompt rewritten, which takes time in proportion to all of it.
    /// `told`: the tokens of the prompt that the input reports. Always, where no goal is under way.
    ///
    /// Says nothing of inputs that begin a goal, or tell that the service refused the prompt: those may.
    #[must_use]
    pub fn may_rewrite(&self, bytes: u64, told: u64, now: Millis) -> bool {
        press::may_rewrite(&self.state, bytes, told, now.0)
    }

    /// When a `Clock` input is due; none while no time counts.
    #[must_use]
    pub fn deadline(&self) -> Option<Millis> {
        limits::deadline(&self.state).map(Millis)
    }

    /// How the goal ended; also of a parked run, with its open questions. None while it runs.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        outcome::outcome(&self.state)
    }

    /// Name of the phase: idle, thinking, acting, waiting, ended.
    #[must_use]
    pub fn phase(&self) -> &'static str {
        self.state.phase().as_str()
    }

    /// The seq that the next record gets.
    #[must_use]
    pub fn next_seq(&self) -> Seq {
        self.state.next
    }

    /// Whether the current goal offers the meta-tool of this name.
    #[must_use]
    pub fn offers(&self, name: &str) -> bool {
        self.state.run.as_ref().is_some_and(|run| meta::offers(&run.config, name, self.state.task.has_left()))
    }

    /// Number of the epoch; 0 before the first goal.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.state.prompt().epoch()
    }

    /// The state, for comparison.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    fn step(&mut self, windows: &mut Windows, input: Input, now: Millis) -> Result<Vec<Record>, Rejected> {
        let records = self.try_step(windows, input, now);
        if records.is_ok() {
            windows.keep();
        } else {
            windows.give_back();
        }
        records
    }

    fn try_step(&mut self, windows: &mut Windows, input: Input, now: Millis) -> Result<Vec<Record>, Rejected> {
        let mut desk = Desk { tokens: &*self.tokens, stages: self.stages, windows, schemas: &*self.schemas };
        let Some(events) = decide(&self.state, input, &desk)? else { return Ok(Vec::new()) };
        let since = self.state.next;
        let at = if self.state.next == 0 { now.0 } else { now.0.max(self.state.at) };
        let mut records = Vec::with_capacity(events.len().saturating_add(4));
        for event in events {
            records.push(recorded(&mut self.state, event, at)?);
        }
        while let Some(event) = follow(&self.state, &mut desk, since, at) {
            records.push(recorded(&mut self.state, event, at)?);
        }
        Ok(records)
    }

    fn fold(&mut self, line: &[u8], windows: &mut Windows) -> Result<(), Corrupt> {
        match serde_json::from_slice::<Record>(line) {
            Ok(record) => {
                evolve(&mut self.state, &record)?;
                remember(&self.state, &record, windows);
                Ok(())
            }
            Err(error) => self.pass_over(line, error.to_string()),
        }
    }

    /// A line that is no record known here: passed over only if it allows it.
    fn pass_over(&mut self, line: &[u8], why: String) -> Result<(), Corrupt> {
        let seq = self.state.next;
        let envelope = match serde_json::from_slice::<Envelope>(line) {
            Ok(envelope) if !Event::TAGS.contains(&envelope.event.tag.as_str()) => envelope,
            _ => return Err(Corrupt::Unreadable { seq, why }),
        };
        if envelope.seq != seq {
            return Err(Corrupt::Gap { expected: seq, found: envelope.seq });
        }
        if envelope.optional {
            step_over(&mut self.state, envelope.at);
            return Ok(());
        }
        let format = self.state.run.as_ref().map_or(0, |run| run.format);
        Err(Corrupt::UnknownKind { seq, kind: envelope.event.tag, format })
    }
}

impl core::fmt::Debug for Kernel {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("Kernel").field("state", &self.state).finish_non_exhaustive()
    }
}

/// Makes an event a record and folds it at once.
fn recorded(state: &mut State, event: Event, at: i64) -> Result<Record, Rejected> {
    let record = Record { seq: state.next, at, event, optional: false };
    evolve(state, &record).map_err(Rejected::Broken)?;
    Ok(record)
}

/// Tells the rate windows of a call that was allowed.
fn remember(state: &State, record: &Record, windows: &mut Windows) {
    let Event::Judged(Judged { call: at, verdict: Verdict::Allow(_), .. }) = &record.event else { return };
    let Some(run) = &state.run else { return };
    if let Some(call) = run.open_calls().find(|call| call.at == *at) {
        windows.remember(&call.name, &windows_name(state, run, *at), record.at);
    }
}

fn written(record: &Record) -> Result<Vec<u8>, Rejected> {
    serde_json::to_vec(record).map_err(|error| Rejected::Invalid(error.to_string()))
}
