//! What the model reads beside the goal, and a prompt made anew.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Misfit, live};
use crate::context::render;
use crate::context::weigh::own_words;
use crate::run::state::{Note, State};
use crate::signals;
use crate::wire::event::{Compressed, Signalled, StateChanged};
use crate::wire::message::{Block, Part, Text};

/// Makes a model call owed; what waits to be read becomes one block in front of it.
pub(super) fn ask(state: &mut State, seq: u64) {
    read_notes(state);
    if let Some(run) = &mut state.run {
        (run.owed, run.reply) = (Some(seq), None);
    }
}

pub(super) fn note(state: &mut State, text: String) {
    let tokens = own_words(&text);
    state.notes.push(Note { text, tokens });
}

pub(super) fn read_notes(state: &mut State) {
    if state.notes.is_empty() {
        return;
    }
    let notes = core::mem::take(&mut state.notes);
    let tokens = notes.iter().fold(0_u64, |sum, note| sum.saturating_add(note.tokens));
    let parts = notes.into_iter().map(|note| Part::Text(Text { text: note.text }));
    let block = render::user_block(&parts.collect::<Vec<_>>());
    state.prompt.push(block, tokens);
}

/// No request ends with the model's own text.
pub(super) fn go_on(state: &mut State, words: &str) {
    if state.prompt.is_open_ended() {
        note(state, words.into());
    }
}

pub(super) fn signalled(state: &mut State, event: &Signalled) -> Result<(), Misfit> {
    live(state)?;
    if let Some(key) = &event.signal.dedupe_key {
        state.heard.insert(key.as_str().into());
    }
    state.notes.push(Note { text: signals::text(&event.signal), tokens: event.tokens });
    Ok(())
}

pub(super) fn state_changed(state: &mut State, event: &StateChanged) -> Result<(), Misfit> {
    live(state)?;
    state.notes.push(Note { text: event.text.clone(), tokens: event.tokens });
    Ok(())
}

pub(super) fn compressed(state: &mut State, seq: u64, event: &Compressed) -> Result<(), Misfit> {
    let run = live(state)?;
    run.owed = run.owed.map(|_| seq);
    let headed = matches!(event.blocks.first(), Some(Block::Head(_)));
    let open_ended = matches!(event.blocks.last(), Some(Block::Assistant(_)));
    let blocks = event.blocks.iter().map(render::block_text).collect();
    state.prompt.replace(blocks, headed, event.tokens, open_ended);
    Ok(())
}
