//! What each slot of the prompt weighs, counted anew: for whoever looks at a session, never for a decision.

use super::prompt::Prompt;
use super::weigh::Scale;
use crate::wire::message::{Block, Part};

/// Tokens by slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    /// Slot 1.
    pub system_stable: u64,
    /// Slot 2.
    pub system_knowledge: u64,
    /// The tools, which go with every request.
    pub tools: u64,
    /// `turns[0]` as the task stands now.
    pub state: u64,
    /// The turns behind it.
    pub history: u64,
}

/// The weight of every slot of `prompt`, with `task` for `turns[0]`.
#[must_use]
pub fn slots(prompt: &Prompt, task: &[Part], scale: &Scale<'_>) -> Slots {
    let mut slots = Slots::default();
    for (place, text) in prompt.texts().enumerate() {
        match (place, serde_json::from_str::<Block<'_>>(text)) {
            (_, Ok(Block::Head(head))) => {
                slots.system_stable = scale.text(&head.system_stable);
                slots.system_knowledge = scale.text(&head.system_knowledge);
                slots.tools = scale.tools(&head.tools);
            }
            (1, Ok(_)) => slots.state = scale.content(task),
            (_, Ok(block)) => slots.history = slots.history.saturating_add(scale.block(&block)),
            (_, Err(_)) => {}
        }
    }
    slots
}
