//! What the model reads beside the goal, and a prompt made anew.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::goal::head_text;
use super::{Misfit, live};
use crate::context::compress::span;
use crate::context::prompt::Entry;
use crate::context::render;
use crate::context::task::{FRAME, Heard, SIGNALS, overflow};
use crate::context::weigh::own_words;
use crate::run::state::{Heed, Note, Origin, Overflow, State};
use crate::signals::{self, Force};
use crate::wire::event::{Compressed, Remark, Signalled, StateChanged};
use crate::wire::message::{Block, Part, Text};
use crate::wire::policy::Placement;
use crate::wire::task::{Role, Source};

const STATE_ABOVE: &str = "Something came meanwhile: it stands in the first turn. Go on by it.";

/// Makes a model call owed; what waits to be read becomes one block in front of it.
pub(super) fn ask(state: &mut State, seq: u64) {
    read_notes(state, seq);
    if state.prompt.is_open_ended() {
        // With live placement all that came may stand in `turns[0]`, and no request ends with the model's own text.
        note(state, STATE_ABOVE.into());
        read_notes(state, seq);
    }
    if let Some(run) = &mut state.run {
        (run.owed, run.reply) = (Some(seq), None);
    }
}

pub(super) fn note(state: &mut State, text: String) {
    let tokens = own_words(&text);
    state.notes.push(Note { text, tokens, of: Origin::Word, kind: Box::default(), seq: state.next });
}

/// What was said of an earlier attempt is read behind the goal, as a turn of its own.
pub(super) fn tell(state: &mut State, seq: u64, feedback: &[Remark]) {
    let notes = feedback.iter().map(|said| Note {
        text: said.text.clone(),
        tokens: said.tokens,
        of: Origin::Word,
        kind: Box::default(),
        seq,
    });
    append(state, seq, notes);
}

/// What waits to be read becomes one delta at the tail; with live placement, changes of the task state go to `turns[0]`.
pub(super) fn read_notes(state: &mut State, seq: u64) {
    if let Some(text) = core::mem::take(&mut state.unshown).text(span) {
        note(state, text);
    }
    let room = state.task_room();
    let (words, changes): (Vec<_>, Vec<_>) =
        core::mem::take(&mut state.notes).into_iter().partition(|note| note.of == Origin::Word);
    let live = state.run.as_ref().is_some_and(|run| run.config.placement == Placement::Live);
    let delta = if live { 0 } else { seq };
    let heard = changes.iter().filter_map(|note| match note.of {
        Origin::Signal(heed) => {
            Some(Heard { delta, text: note.text.clone(), tokens: note.tokens, said: heed == Heed::User })
        }
        Origin::Word | Origin::Plan => None,
    });
    state.task.hear(heard.collect(), room);
    if !live {
        return append(state, seq, changes.into_iter().chain(words));
    }
    if !changes.is_empty() {
        restate(state);
    }
    append(state, seq, words.into_iter());
}

/// With live placement `turns[0]` must not go on telling the plan of the goal before.
pub(super) fn begin_anew(state: &mut State, placement: Placement, was_under_way: bool) {
    if placement == Placement::Live && was_under_way {
        restate(state);
    }
}

fn append(state: &mut State, seq: u64, notes: impl Iterator<Item = Note>) {
    let mut tokens = 0_u64;
    let mut parts = Vec::new();
    for note in notes {
        tokens = tokens.saturating_add(note.tokens);
        parts.push(Part::Text(Text { text: note.text }));
    }
    if !parts.is_empty() {
        state.prompt.push(render::user_block(&parts), Source { role: Role::Delta, seq, tokens });
    }
}

/// `turns[0]` says how the task stands now.
fn restate(state: &mut State) {
    let task = &state.task;
    let text = render::user_block(&task.snapshot());
    let source = Source { role: Role::State, seq: task.goal_seq, tokens: task.snapshot_tokens() };
    state.prompt.restate(text, source);
}

/// No request ends with the model's own text.
pub(super) fn go_on(state: &mut State, words: &str) {
    if state.prompt.is_open_ended() {
        note(state, words.into());
    }
}

pub(super) fn signalled(state: &mut State, seq: u64, event: &Signalled) -> Result<(), Misfit> {
    // What comes from outside tells the rounds behind it from those before.
    live(state)?.rounds.clear();
    let signal = &event.signal;
    if let Some(key) = &signal.dedupe_key {
        state.heard.insert(key.as_str().into());
    }
    if let Some(id) = &signal.id {
        state.delivered.insert(id.as_str().into());
    }
    state.notes.push(heeded(event, seq));
    crowd_out(state);
    if event.renews && live(state)?.owed.is_some() {
        ask(state, seq);
    }
    Ok(())
}

/// A signal as it will be read.
fn heeded(event: &Signalled, seq: u64) -> Note {
    let signal = &event.signal;
    let of = match signals::force(signal) {
        _ if signal.from_user => Heed::User,
        Force::Read => Heed::Plain,
        Force::Supersede | Force::Stop => Heed::Urgent,
    };
    let text = if event.text.is_empty() { signals::text(signal) } else { event.text.clone() };
    Note { text, tokens: event.tokens, of: Origin::Signal(of), kind: signal.kind.as_str().into(), seq }
}

/// However many signals come before the model reads them, it is told of as many as have room, of one in any case.
fn crowd_out(state: &mut State) {
    let room = state.task_room();
    loop {
        let told = state.notes.iter().enumerate().filter_map(|(at, note)| match note.of {
            Origin::Signal(heed) => Some((at, (note.tokens.saturating_add(FRAME), heed))),
            Origin::Word | Origin::Plan => None,
        });
        let (places, weights): (Vec<_>, Vec<_>) = told.unzip();
        if places.len() <= 1 {
            return;
        }
        let Some(at) = overflow(&weights, SIGNALS, room).and_then(|found| places.get(found)) else { return };
        let gone = state.notes.remove(*at);
        state.unshown.count(&gone.kind, gone.seq);
    }
}

/// Of several changes of the plan before one call only the last is read.
pub(super) fn state_changed(state: &mut State, seq: u64, event: &StateChanged) -> Result<(), Misfit> {
    live(state)?;
    let of = if event.plan.is_some() { Origin::Plan } else { Origin::Word };
    if let Some(plan) = &event.plan {
        (state.task.plan, state.task.plan_tokens) = (plan.clone(), event.tokens);
        state.notes.retain(|note| note.of != Origin::Plan);
    }
    state.notes.push(Note { text: event.text.clone(), tokens: event.tokens, of, kind: Box::default(), seq });
    Ok(())
}

pub(super) fn compressed(state: &mut State, seq: u64, event: &Compressed) -> Result<(), Misfit> {
    let run = live(state)?;
    run.owed = run.owed.map(|_| seq);
    if run.overflow == Overflow::Refused {
        run.overflow = Overflow::Retried;
    }
    if event.blocks.len() != event.sources.len() {
        return Err("its blocks and their sources do not match");
    }
    if event.blocks.iter().any(|block| matches!(block, Block::Head(_))) {
        return Err("it brings another head");
    }
    let pairs = event.blocks.iter().zip(&event.sources);
    let turns = pairs.map(|(block, source)| Entry { text: render::block_text(block), source: *source }).collect();
    if let Some(tokens) = event.head {
        let head = head_text(&run.config, true);
        state.prompt.reopen(head, Source { role: Role::Head, seq, tokens });
    }
    state.prompt.replace(turns);
    reopen(state, event);
    Ok(())
}

/// The task state goes on from the `turns[0]` that the new epoch begins with.
fn reopen(state: &mut State, event: &Compressed) {
    let task = &mut state.task;
    let below = event.sources.iter().any(|source| source.role == Role::Goal && source.seq == task.goal_seq);
    task.opening = task.reopened(below);
    (task.opening_seq, task.opening_below) = (task.goal_seq, below);
    task.digest = event.digest.clone();
    let first = event.sources.first().map_or(0, |source| source.tokens);
    task.digest_tokens = event.digest.tokens;
    task.opening_tokens = 0;
    task.opening_tokens = first.saturating_sub(task.snapshot_tokens());
}
