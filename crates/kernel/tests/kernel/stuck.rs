//! Runs that go in circles.

use deepstrike_kernel::wire::event::{Event, Status};
use deepstrike_kernel::wire::input::{Input, Result as ToolEnd};
use deepstrike_kernel::wire::message::{Block, Class, ToolResult};
use deepstrike_kernel::wire::signal::Urgency;

use crate::say::*;
use crate::world::World;

fn begun() -> World {
    World::after([start_with(limited(|limits| limits.max_turns = 100))])
}

/// One round: a call with these arguments, and what it comes to.
fn round(world: &mut World, args: &str, outcome: ToolResult) -> Vec<Event> {
    let from = world.log.len();
    world.take(replies(world.call(), vec![call_as("", "look", args)]));
    let effect = world.runs()[0].id;
    world.take(Input::Result(ToolEnd { effect, result: outcome, spent: None }));
    world.events(from)
}

/// A round: its arguments, what it comes to, and how long that takes.
type Round = (String, ToolResult, i64);

/// In which rounds the model is told, and in which the goal ends.
fn noticed(rounds: impl IntoIterator<Item = Round>) -> (Vec<usize>, Option<usize>) {
    let mut world = begun();
    world.every = 20;
    let mut told = vec![];
    for (at, (args, outcome, ms)) in (1..).zip(rounds) {
        let from = world.log.len();
        world.take(replies(world.call(), vec![call_as("", "look", &args)]));
        let effect = world.runs()[0].id;
        world.later(ms).take(Input::Result(ToolEnd { effect, result: outcome, spent: None }));
        if matches!(world.blocks().last(), Some(Block::User(_))) {
            told.push(at);
        }
        if let Some(end) = end(&world.events(from)) {
            assert_eq!(end, (Status::Error, "stuck".into()));
            return (told, Some(at));
        }
    }
    (told, None)
}

fn quick(args: String, outcome: ToolResult) -> Round {
    (args, outcome, 1)
}

fn numbered(number: usize) -> String {
    format!("{{\"n\":{number}}}")
}

#[test]
fn the_same_call_with_the_same_result_is_told_once_and_then_ends_the_goal() {
    assert_eq!(noticed((0..40).map(|_| quick(numbered(1), good("r")))), (vec![6], Some(16)));
}

#[test]
fn the_same_call_with_the_same_error_ends_sooner() {
    assert_eq!(noticed((0..40).map(|_| quick(numbered(1), error("exception", "no")))), (vec![4], Some(8)));
}

#[test]
fn calls_in_turns_with_the_same_results_are_noticed_in_circles_of_up_to_four() {
    let circle = |period: usize| noticed((0..60).map(move |n| quick(numbered(n % period), good("r"))));
    let noticed = [(vec![8], Some(18)), (vec![9], Some(21)), (vec![12], Some(24)), (vec![], None)];
    assert_eq!([2, 3, 4, 5].map(circle), noticed);
}

#[test]
fn arguments_that_say_the_same_are_the_same() {
    let spaced = |n: usize| format!("{{\"b\":{}1,{}\"a\":2}}", " ".repeat(n % 7), " ".repeat(n));
    let turned = |n: usize| if n.is_multiple_of(2) { spaced(n) } else { "{\"a\":2,\"b\":1}".into() };
    assert_eq!(noticed((0..40).map(|n| quick(turned(n), good("r")))), (vec![6], Some(16)));
}

#[test]
fn calls_of_one_reply_are_the_same_in_any_order() {
    let mut world = begun();
    world.every = 20;
    let mut rounds = 0;
    while world.kernel.phase() != "ended" {
        let (one, other) = (numbered(rounds % 2), numbered((rounds + 1) % 2));
        world.take(replies(world.call(), vec![call_as("", "look", &one), call_as("", "look", &other)]));
        world.runs().iter().for_each(|run| drop(world.take(result(run.id, "r"))));
        rounds += 1;
    }
    let message = world.outcome().message;
    assert_eq!((rounds, message.contains("The same calls were made with the same results, 16 times")), (16, true));
}

#[test]
fn the_same_kind_of_error_on_ever_other_arguments_is_a_search_for_a_while() {
    let search = |n| quick(numbered(n), error("exception", &format!("no file {n}")));
    assert_eq!(noticed((0..40).map(search)), (vec![10], Some(20)));
    assert_eq!(noticed((0..9).map(|n| quick(numbered(n), error("tool_error", "no match")))), (vec![], None));
}

#[test]
fn asking_again_until_the_result_changes_is_no_circle() {
    assert_eq!(noticed((0..40).map(|n| quick(numbered(1), good(&format!("{n} % done"))))), (vec![], None));
    let (told, ended) = noticed((0..12).map(|n| quick(numbered(1), good(if n < 11 { "running" } else { "done" }))));
    assert_eq!((told, ended), (vec![6], None));
}

#[test]
fn waiting_for_ever_other_times_is_no_circle() {
    assert_eq!(noticed((0..40).map(|n| quick(numbered(n), good("waited")))), (vec![], None));
}

#[test]
fn what_takes_its_time_may_come_to_the_same_for_four_times_as_long() {
    assert_eq!(noticed((0..99).map(|_| (numbered(1), good("running"), 1_000))), (vec![24], Some(64)));
    let checked = |n: usize| (numbered(n % 2), good("r"), if n.is_multiple_of(2) { 0 } else { 30_000 });
    assert_eq!(noticed((0..99).map(checked)), (vec![32], Some(72)));
}

#[test]
fn a_tool_that_is_called_after_waiting_waits_however_fast_the_clock_goes() {
    let mut config = limited(|limits| limits.max_turns = 100);
    config.tools.push(tool("wait_a_bit", Class::Read));
    let mut world = World::after([start_with(config)]);
    world.every = 20;
    for name in ["look", "wait_a_bit"].into_iter().cycle().take(60) {
        world.take(replies(world.call(), vec![call_as("", name, "{}")]));
        world.take(result(world.runs()[0].id, "r"));
    }
    assert_eq!(world.kernel.phase(), "thinking");
}

#[test]
fn a_circle_that_was_left_is_forgotten() {
    let rounds = (0..50).map(|n| quick(numbered(if n % 8 < 7 { 1 } else { n }), good("r")));
    assert_eq!(noticed(rounds), (vec![6, 14, 22, 30, 38, 46], None));
}

#[test]
fn a_signal_tells_the_rounds_behind_it_from_those_before() {
    let mut world = begun();
    world.every = 20;
    for number in 0..40 {
        if number % 5 == 0 {
            world.take(signal("tick", Urgency::Normal, None));
        }
        round(&mut world, "{}", good("r"));
    }
    assert_eq!(world.kernel.phase(), "thinking");
}

#[test]
fn a_resumed_goal_gets_another_chance() {
    let mut world = begun();
    while world.kernel.phase() != "ended" {
        round(&mut world, "{}", good("r"));
    }
    world.take(resume());
    assert_eq!(world.kernel.phase(), "thinking");
}
