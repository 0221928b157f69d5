//! The context: rendered blocks in epochs, and what they weigh.

pub mod arguments;
pub mod compress;
pub mod gauge;
pub mod pressure;
pub mod prompt;
pub mod render;
pub mod shorten;
pub mod slots;
pub mod task;
pub mod weigh;
