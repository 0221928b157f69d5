//! The life cycle, as one table: what each input means in each phase.

use crate::wire::input::Input;

words! {
    /// Where a run stands.
    Phase {
        /// Nothing was started.
        Idle = "idle",
        /// The model's reply is awaited.
        Thinking = "thinking",
        /// Calls of the last reply are open, and something goes on.
        Acting = "acting",
        /// Every open call waits for an answer that nobody here gives.
        Waiting = "waiting",
        /// The goal has ended.
        Ended = "ended",
    }
}

/// What an input means in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// It is taken (if what it answers is owed).
    Take,
    /// It is taken and changes nothing: no records.
    Pass,
    /// It comes too late.
    Stale,
    /// It makes no sense, for this reason.
    Refuse(&'static str),
}

const NOT_STARTED: Cell = Cell::Refuse("the session has no goal yet; start one first");
const NOT_ACTIVE: Cell = Cell::Refuse("no goal is active; keep it for the next start or resume");

/// The table.
#[must_use]
pub fn cell(phase: Phase, input: &Input) -> Cell {
    use Cell::{Pass, Stale, Take};
    let row = match input {
        //                     idle         thinking acting waiting ended
        Input::Start(_) => [Take, Take, Take, Take, Take],
        Input::Resume(_) => [NOT_STARTED, Take, Take, Take, Take],
        Input::Reply(_) | Input::Failure(_) | Input::Summary(_) => [NOT_STARTED, Take, Stale, Stale, Stale],
        Input::Result(_) | Input::Suspend(_) => [NOT_STARTED, Stale, Take, Stale, Stale],
        Input::Answer(_) => [NOT_STARTED, Stale, Take, Take, Stale],
        Input::Notify(_) | Input::SetPolicy(_) => [NOT_STARTED, Take, Take, Take, NOT_ACTIVE],
        Input::Interrupt(_) => [Pass, Take, Take, Take, Pass],
        Input::Clock(_) => [Pass, Take, Take, Pass, Pass],
    };
    let [idle, thinking, acting, waiting, ended] = row;
    match phase {
        Phase::Idle => idle,
        Phase::Thinking => thinking,
        Phase::Acting => acting,
        Phase::Waiting => waiting,
        Phase::Ended => ended,
    }
}
