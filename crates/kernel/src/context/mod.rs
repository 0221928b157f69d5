//! The context: rendered blocks in epochs, and what they weigh.

pub mod arguments;
pub mod prompt;
pub mod render;
pub mod slots;
pub mod weigh;
