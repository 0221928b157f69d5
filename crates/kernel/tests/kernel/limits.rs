//! Limits hold on every path.

use deepstrike_kernel::wire::event::Status;
use deepstrike_kernel::wire::input::{Finish, Input, Reply};
use deepstrike_kernel::wire::message::Usage;
use deepstrike_kernel::wire::policy::Price;

use crate::say::*;
use crate::world::World;

fn used(effect: u64, input: u64, output: u64, parts: Vec<deepstrike_kernel::wire::message::ReplyPart>) -> Input {
    Input::Reply(Reply { usage: Some(Usage { input, output, ..Usage::default() }), ..reply(effect, parts) })
}

#[test]
fn the_calls_of_the_last_allowed_reply_are_not_run() {
    let mut world = World::after([start_with(limited(|limits| limits.max_turns = 2))]);
    world.take(replies(0, vec![call("look")]));
    world.take(result(world.runs()[0].id, "r"));
    let events = world.take(replies(world.call(), vec![call("look"), call("write")]));
    assert_eq!(kinds(&events), ["replied", "settled", "settled", "ended"]);
    let text = "not run: limit reached (max_turns = 2)".to_string();
    assert_eq!(settled(&events), [("not_run".into(), text.clone()), ("not_run".into(), text)]);
    assert_eq!((world.outcome().status, world.outcome().turns), (Status::MaxTurns, 2));
}

#[test]
fn a_text_in_the_last_allowed_turn_completes() {
    let mut world = World::after([start_with(limited(|limits| limits.max_turns = 1))]);
    assert_eq!(end(&world.take(replies(0, vec![said("done")]))), Some((Status::Completed, String::new())));
}

#[test]
fn no_turn_allowed_means_no_model_call() {
    let mut world = World::new();
    let events = world.take(start_with(limited(|limits| limits.max_turns = 0)));
    assert_eq!(end(&events), Some((Status::MaxTurns, "max_turns".into())));
    assert_eq!(world.kernel.pending(None), []);
}

#[test]
fn empty_replies_and_repairs_count_as_turns() {
    let mut world = World::after([start_with(limited(|limits| limits.max_turns = 1))]);
    assert_eq!(end(&world.take(replies(0, vec![]))), Some((Status::MaxTurns, "max_turns".into())));
}

#[test]
fn a_token_budget_that_the_prompt_would_spend_ends_before_the_call() {
    let mut world = World::new();
    let events = world.take(start_with(limited(|limits| limits.max_total_tokens = Some(20))));
    assert_eq!(end(&events), Some((Status::TokenBudget, "max_total_tokens".into())));
}

#[test]
fn a_spent_token_budget_leaves_calls_unrun() {
    let mut world = World::after([start_with(limited(|limits| limits.max_total_tokens = Some(2_000)))]);
    let events = world.take(used(0, 1_500, 300, vec![call("look")]));
    assert_eq!(kinds(&events), ["replied", "settled", "ended"]);
    assert_eq!(settled(&events)[0].1, "not run: limit reached (max_total_tokens = 2000)");
    assert_eq!(world.outcome().status, Status::TokenBudget);
}

#[test]
fn a_completed_text_wins_over_a_budget_that_it_passed() {
    let mut world = World::after([start_with(limited(|limits| limits.max_total_tokens = Some(2_000)))]);
    let events = world.take(used(0, 1_500, 900, vec![said("done")]));
    assert_eq!(end(&events), Some((Status::Completed, String::new())));
}

#[test]
fn a_small_rest_of_the_budget_lowers_the_output_limit() {
    let world = World::after([start_with(limited(|limits| limits.max_total_tokens = Some(500)))]);
    let prompt = world.kernel.state().prompt().tokens();
    assert_eq!(world.call_model().unwrap().max_output, Some(500 - prompt));
    let wide = World::after([start_with(limited(|limits| limits.max_total_tokens = Some(50_000)))]);
    assert_eq!(wide.call_model().unwrap().max_output, None);
}

#[test]
fn a_reply_cut_by_a_lowered_limit_ends_with_that_budget() {
    let mut world = World::after([start_with(limited(|limits| limits.max_total_tokens = Some(500)))]);
    let cut = Reply { finish: Finish::Length, ..reply(0, vec![said("half")]) };
    assert_eq!(end(&world.take(Input::Reply(cut))), Some((Status::TokenBudget, "max_total_tokens".into())));
}

#[test]
fn a_cost_budget_lowers_the_output_limit_and_then_ends_the_goal() {
    let mut world = World::after([start_with(priced(1_000))]);
    let prompt = world.kernel.state().prompt().tokens();
    assert_eq!(world.call_model().unwrap().max_output, Some((1_000 - prompt) / 2));
    world.take(used(0, 100, 10, vec![call("look")]));
    world.take(result(world.runs()[0].id, "r"));
    let events = world.take(used(world.call(), 800, 10, vec![call("look")]));
    assert_eq!(end(&events), Some((Status::TokenBudget, "max_cost".into())));
    assert_eq!(world.outcome().cost, 120 + 820);
}

#[test]
fn the_price_of_the_model_that_answered_rules_what_the_budget_leaves() {
    let cheap = Price { input: 1_000, output: 2_000, cached: 100, cache_write: 1_250 };
    let dear = Price { input: 4_000_000, output: 8_000_000, cached: 400_000, cache_write: 5_000_000 };
    for (price, left) in [(Some(cheap), None), (Some(dear), Some((5_000 - 480 - 4 * 243) / 8)), (None, None)] {
        let mut world = World::after([start_with(priced(5_000))]);
        let looks = reply(0, vec![call("look")]);
        world.take(Input::Reply(Reply { price, ..looks }));
        world.take(result(world.runs()[0].id, "r"));
        let prompt = world.kernel.state().prompt().tokens();
        assert_eq!((world.call_model().unwrap().max_output, prompt), (left, 243));
    }
}

#[test]
fn a_prompt_that_does_not_fit_is_never_sent() {
    let mut world = World::new();
    let config = limited(|limits| (limits.window, limits.reserve) = (100, 80));
    assert_eq!(end(&world.take(start_with(config))), Some((Status::Error, "context_overflow".into())));
    let message = world.outcome().message;
    let prompt = world.kernel.state().prompt().tokens();
    assert!(
        message.contains(&format!("prompt of {prompt} tokens and a reserve of 80 in a window of 100")),
        "{message}"
    );
    assert!(
        message.contains("system prompt 3, initial memory 0, tools ") && message.contains("Raise max_tokens"),
        "{message}"
    );
}

#[test]
fn a_result_that_fills_the_window_is_shortened_before_the_next_call() {
    let mut world = World::after([start_with(limited(|limits| limits.window = 2_000))]);
    world.take(replies(0, vec![call("look")]));
    let events = world.take(result(world.runs()[0].id, &"x".repeat(8_000)));
    assert_eq!(kinds(&events), ["settled", "compressed"]);
    assert!(world.kernel.state().prompt().tokens() <= 1_000);
}

fn timed(ms: u64) -> World {
    World::after([start_with(limited(|limits| limits.timeout_ms = Some(ms)))])
}

#[test]
fn time_that_is_up_ends_a_model_call() {
    let mut world = timed(100);
    assert_eq!(world.kernel.deadline().unwrap().0, world.now + 100);
    assert_eq!(world.later(98).take(clock()), vec![]);
    assert_eq!(end(&world.take(clock())), Some((Status::Timeout, "timeout_ms".into())));
    assert_eq!(world.kernel.deadline(), None);
}

#[test]
fn time_that_is_up_cancels_running_tools_and_says_so() {
    let mut world = timed(100);
    world.take(replies(0, vec![call("write")]));
    let events = world.later(100).take(clock());
    assert_eq!(settled(&events), [("cancelled".into(), "cancelled; it may have taken effect".into())]);
    assert_eq!(end(&events), Some((Status::Timeout, "timeout_ms".into())));
}

#[test]
fn a_late_input_finds_the_time_up() {
    let mut world = timed(100);
    let events = world.later(100).take(replies(0, vec![call("write")]));
    assert_eq!(settled(&events)[0].1, "not run: limit reached (timeout_ms = 100)");
    assert_eq!(end(&events), Some((Status::Timeout, "timeout_ms".into())));
}

#[test]
fn a_text_that_completes_late_still_completes() {
    let mut world = timed(100);
    assert_eq!(end(&world.later(500).take(replies(0, vec![said("done")]))), Some((Status::Completed, String::new())));
}

#[test]
fn waiting_and_the_pause_before_a_resume_do_not_count() {
    let mut world = timed(100);
    world.take(replies(0, vec![call("look")]));
    world.take(suspends(world.runs()[0].id));
    assert_eq!((world.kernel.phase(), world.kernel.deadline()), ("waiting", None));
    let ask = world.asks()[0].id;
    world.later(10_000).take(value(ask, "1"));
    assert_eq!(world.kernel.phase(), "acting");
    world.crash();
    world.later(10_000).take(resume_with(limited(|limits| limits.timeout_ms = Some(100))));
    assert_eq!(world.kernel.phase(), "acting");
    assert_eq!(world.kernel.deadline().unwrap().0, world.now + 98);
}

#[test]
fn a_clock_that_goes_back_stands_still() {
    let mut world = timed(100);
    world.later(-900).take(replies(0, vec![call("look")]));
    let records = world.records();
    assert_eq!(records[1].at, records[0].at);
}

#[test]
fn limits_are_counted_per_goal() {
    let mut world = World::after([start_with(limited(|limits| limits.max_turns = 1)), replies(0, vec![call("look")])]);
    assert_eq!(world.outcome().status, Status::MaxTurns);
    world.take(start_with(limited(|limits| limits.max_turns = 1)));
    assert_eq!(world.kernel.phase(), "thinking");
}

#[test]
fn of_two_budgets_the_tighter_one_counts() {
    for (tokens, cost, expected) in [(300, 100_000, "max_total_tokens"), (100_000, 300, "max_cost")] {
        let mut config = priced(cost);
        config.limits.max_total_tokens = Some(tokens);
        let mut world = World::after([start_with(config)]);
        assert!(world.call_model().unwrap().max_output.unwrap() < 300);
        let events = world.take(used(0, 290, 10, vec![call("look")]));
        assert_eq!(end(&events), Some((Status::TokenBudget, expected.into())));
    }
}
