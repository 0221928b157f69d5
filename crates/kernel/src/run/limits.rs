//! The limits of a goal: turns, tokens, cost, active time, and the window.

use alloc::format;
use alloc::string::String;

use super::phase::Phase;
use super::state::{Run, State};
use crate::wire::event::{Ended, Status};
use crate::wire::input::Fault;
use crate::wire::message::Usage;
use crate::wire::policy::{Limits, Price};

/// The code of a prompt that is too long, also in a provider's failure.
pub(crate) const TOO_LONG: &str = "context_overflow";

/// A limit that was reached, with its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The number of model calls.
    Turns(u64),
    /// The tokens of all calls.
    Tokens(u64),
    /// The cost of all calls, in micro-dollars.
    Cost(u64),
    /// The active milliseconds.
    Time(u64),
    /// The prompt does not fit.
    Window {
        /// Tokens of the prompt.
        prompt: u64,
        /// Tokens kept for the answer.
        reserve: u64,
        /// Tokens of the window.
        window: u64,
    },
}

impl Stop {
    /// The status that it ends with.
    #[must_use]
    pub fn status(self) -> Status {
        match self {
            Self::Turns(_) => Status::MaxTurns,
            Self::Tokens(_) | Self::Cost(_) => Status::TokenBudget,
            Self::Time(_) => Status::Timeout,
            Self::Window { .. } => Status::Error,
        }
    }

    /// The code of its fault: the limit's name.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Turns(_) => "max_turns",
            Self::Tokens(_) => "max_total_tokens",
            Self::Cost(_) => "max_cost",
            Self::Time(_) => "timeout_ms",
            Self::Window { .. } => TOO_LONG,
        }
    }

    /// The limit with its figure.
    #[must_use]
    pub fn figure(self) -> String {
        match self {
            Self::Turns(n) | Self::Tokens(n) | Self::Time(n) => format!("{} = {n}", self.code()),
            Self::Cost(n) => format!("max_cost = {n} micro-dollars"),
            Self::Window { prompt, reserve, window } => {
                format!("prompt of {prompt} tokens and a reserve of {reserve} in a window of {window}")
            }
        }
    }

    /// The end that it makes.
    #[must_use]
    pub fn ended(self) -> Ended {
        let message = format!("limit reached ({}); raise it to go on", self.figure());
        let fault = Fault { code: self.code().into(), message, retryable: false };
        Ended { status: self.status(), fault: Some(fault) }
    }
}

/// The limit that stands in the way at `now`, if one does.
pub(crate) fn reached(state: &State, run: &Run, now: i64) -> Option<Stop> {
    let limits = &run.config.limits;
    if turns_left(run) == 0 {
        return Some(Stop::Turns(limits.max_turns));
    }
    if let Some(timeout) = limits.timeout_ms.filter(|timeout| run.active_ms(state.at, now) >= *timeout) {
        return Some(Stop::Time(timeout));
    }
    match allowance(state, run) {
        Allowance::Spent(stop) => Some(stop),
        Allowance::Full | Allowance::Capped(..) => None,
    }
}

/// What the budgets leave for the output of the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowance {
    /// As much as there is.
    Full,
    /// So many tokens, by this budget.
    Capped(u64, Stop),
    /// Nothing.
    Spent(Stop),
}

/// The tighter of what the token and the cost budget leave.
pub(crate) fn allowance(state: &State, run: &Run) -> Allowance {
    let limits = &run.config.limits;
    let left = [tokens_left(state, run, limits), cost_left(state, run, limits)];
    let Some((left, stop)) = left.into_iter().flatten().min_by_key(|(left, _)| *left) else {
        return Allowance::Full;
    };
    match left {
        0 => Allowance::Spent(stop),
        left if left < limits.reserve => Allowance::Capped(left, stop),
        _ => Allowance::Full,
    }
}

/// Model calls that are left.
pub(crate) fn turns_left(run: &Run) -> u64 {
    run.config.limits.max_turns.saturating_sub(run.tally.all_turns())
}

/// Tokens that `max_total_tokens` leaves after the next prompt.
pub(crate) fn tokens_left(state: &State, run: &Run, limits: &Limits) -> Option<(u64, Stop)> {
    let most = limits.max_total_tokens?;
    let usage = run.tally.all_usage();
    let used = usage.input.saturating_add(usage.output);
    let left = most.saturating_sub(used).saturating_sub(state.prompt.tokens());
    Some((left, Stop::Tokens(most)))
}

/// Output tokens that `max_cost` leaves after the next prompt, at the list price without a cache.
fn cost_left(state: &State, run: &Run, limits: &Limits) -> Option<(u64, Stop)> {
    let (price, (left, stop)) = (run.price()?, money_left(state, run, limits)?);
    let tokens = u128::from(left).saturating_mul(MILLION).checked_div(u128::from(price.output));
    let tokens = tokens.unwrap_or(if left == 0 { 0 } else { u128::MAX });
    Some((u64::try_from(tokens).unwrap_or(u64::MAX), stop))
}

/// Micro-dollars that `max_cost` leaves after the next prompt.
pub(crate) fn money_left(state: &State, run: &Run, limits: &Limits) -> Option<(u64, Stop)> {
    let most = limits.max_cost?;
    let input = Usage { input: state.prompt.tokens(), ..Usage::default() };
    let prompt = run.price().map_or(0, |price| cost(price, &input));
    Some((most.saturating_sub(run.tally.all_cost()).saturating_sub(prompt), Stop::Cost(most)))
}

const MILLION: u128 = 1_000_000;

/// Micro-dollars of a call, rounded up.
#[must_use]
pub fn cost(price: &Price, usage: &Usage) -> u64 {
    let plain = usage.input.saturating_sub(usage.cached).saturating_sub(usage.cache_write);
    let lines = [
        (plain, price.input),
        (usage.cached, price.cached),
        (usage.cache_write, price.cache_write),
        (usage.output, price.output),
    ];
    let total = lines.iter().fold(0_u128, |sum, (tokens, price)| {
        sum.saturating_add(u128::from(*tokens).saturating_mul(u128::from(*price)))
    });
    u64::try_from(total.div_ceil(MILLION)).unwrap_or(u64::MAX)
}

/// When the goal's time is up, while it runs.
pub(crate) fn deadline(state: &State) -> Option<i64> {
    let run = state.run.as_ref()?;
    let timeout = run.config.limits.timeout_ms?;
    let running = matches!(run.phase(), Phase::Thinking | Phase::Acting);
    let left = i64::try_from(timeout.saturating_sub(run.tally.active_ms)).unwrap_or(i64::MAX);
    running.then(|| state.at.saturating_add(left))
}

/// Whether today's limits let a goal go on that ended by a limit: that limit is higher now, or gone.
pub(crate) fn raised(ended: &Ended, before: &Limits, today: &Limits) -> bool {
    let code = ended.fault.as_ref().map_or("", |fault| fault.code.as_str());
    let higher =
        |before: Option<u64>, today: Option<u64>| today.is_none_or(|today| before.is_some_and(|old| today > old));
    match (ended.status, code) {
        (Status::MaxTurns, _) => today.max_turns > before.max_turns,
        (Status::Timeout, _) => higher(before.timeout_ms, today.timeout_ms),
        (Status::TokenBudget, "max_cost") => higher(before.max_cost, today.max_cost),
        (Status::TokenBudget, _) => higher(before.max_total_tokens, today.max_total_tokens),
        _ => true,
    }
}
