//! What the model reads beside the goal, and a prompt made anew.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::goal::head_text;
use super::{Misfit, live};
use crate::context::compress::span;
use crate::context::prompt::Entry;
use crate::context::render;
use crate::context::task::{FRAME, Heard};
use crate::context::weigh::own_words;
use crate::run::state::{Note, Origin, Overflow, State};
use crate::signals;
use crate::wire::event::{Compressed, Signalled, StateChanged};
use crate::wire::message::{Block, Part, Text};
use crate::wire::policy::Placement;
use crate::wire::task::{Role, Source};

/// Makes a model call owed; what waits to be read becomes one block in front of it.
pub(super) fn ask(state: &mut State, seq: u64) {
    read_notes(state, seq);
    if let Some(run) = &mut state.run {
        (run.owed, run.reply) = (Some(seq), None);
    }
}

pub(super) fn note(state: &mut State, text: String) {
    let tokens = own_words(&text);
    state.notes.push(Note { text, tokens, of: Origin::Word, seq: state.next });
}

/// What waits to be read becomes one delta at the tail; with live placement, changes of the task state go to `turns[0]`.
pub(super) fn read_notes(state: &mut State, seq: u64) {
    let room = state.task_room();
    let notes = within(core::mem::take(&mut state.notes), room);
    let (words, changes): (Vec<_>, Vec<_>) = notes.into_iter().partition(|note| note.of == Origin::Word);
    let live = state.run.as_ref().is_some_and(|run| run.config.placement == Placement::Live);
    for note in changes.iter().filter(|note| matches!(note.of, Origin::Signal { .. })) {
        let delta = if live { 0 } else { seq };
        state.task.hear(Heard { delta, text: note.text.clone(), tokens: note.tokens }, room);
    }
    if !live {
        return append(state, seq, changes.into_iter().chain(words));
    }
    if !changes.is_empty() {
        restate(state);
    }
    append(state, seq, words.into_iter());
}

/// The notes without the signals that there is no room for: the urgent ones stay before others, the newest before older
/// ones. What does not stay is told of, with its reference.
fn within(notes: Vec<Note>, room: u64) -> Vec<Note> {
    let mut left = room;
    let mut gone: BTreeSet<u64> = BTreeSet::new();
    for urgent in [true, false] {
        for note in notes.iter().rev().filter(|note| note.of == Origin::Signal { urgent }) {
            let tokens = note.tokens.saturating_add(FRAME);
            match left.checked_sub(tokens) {
                Some(rest) => left = rest,
                None => drop(gone.insert(note.seq)),
            }
        }
    }
    let (Some(first), Some(last)) = (gone.first(), gone.last()) else { return notes };
    let text = format!("{} more signals came that are not told here; recall(\"{}\")", gone.len(), span(*first, *last));
    let told = Note { tokens: own_words(&text), text, of: Origin::Word, seq: *last };
    let kept = notes.into_iter().filter(|note| !gone.contains(&note.seq) || note.of == Origin::Word);
    kept.chain([told]).collect()
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
    if let Some(key) = &event.signal.dedupe_key {
        state.heard.insert(key.as_str().into());
    }
    let text = if event.text.is_empty() { signals::text(&event.signal) } else { event.text.clone() };
    let of = Origin::Signal { urgent: signals::force(&event.signal) != signals::Force::Read };
    state.notes.push(Note { text, tokens: event.tokens, of, seq });
    Ok(())
}

/// Of several changes of the plan before one call only the last is read.
pub(super) fn state_changed(state: &mut State, seq: u64, event: &StateChanged) -> Result<(), Misfit> {
    live(state)?;
    let of = if event.plan.is_some() { Origin::Plan } else { Origin::Word };
    if let Some(plan) = &event.plan {
        (state.task.plan, state.task.plan_tokens) = (plan.clone(), event.tokens);
        state.notes.retain(|note| note.of != Origin::Plan);
    }
    state.notes.push(Note { text: event.text.clone(), tokens: event.tokens, of, seq });
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
