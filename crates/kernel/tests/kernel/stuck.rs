//! Runs that go in circles.

use deepstrike_kernel::wire::event::{Event, Status};
use deepstrike_kernel::wire::input::{Input, Result as ToolEnd};
use deepstrike_kernel::wire::message::{Block, ToolResult};

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

/// In which round the model is told, and in which the goal ends.
fn noticed(rounds: impl IntoIterator<Item = (String, ToolResult)>) -> (Option<usize>, Option<usize>) {
    let mut world = begun();
    let (mut told, mut ended) = (None, None);
    for (at, (args, outcome)) in (1..).zip(rounds) {
        let events = round(&mut world, &args, outcome);
        if told.is_none() && matches!(world.blocks().last(), Some(Block::User(_))) {
            told = Some(at);
        }
        if let Some(end) = end(&events) {
            assert_eq!(end, (Status::Error, "stuck".into()));
            ended = Some(at);
            break;
        }
    }
    (told, ended)
}

fn numbered(number: usize) -> String {
    format!("{{\"n\":{number}}}")
}

#[test]
fn the_same_call_with_the_same_result_is_told_once_and_then_ends_the_goal() {
    assert_eq!(noticed((0..20).map(|_| (numbered(1), good("r")))), (Some(4), Some(7)));
}

#[test]
fn two_calls_in_turns_with_the_same_results_are_noticed() {
    assert_eq!(noticed((0..20).map(|n| (numbered(n % 2), good("r")))), (Some(6), Some(9)));
}

#[test]
fn the_same_error_on_ever_other_arguments_is_noticed() {
    assert_eq!(noticed((0..20).map(|n| (numbered(n), error("exception", "no such file")))), (Some(5), Some(8)));
}

#[test]
fn asking_again_until_the_result_changes_is_no_circle() {
    assert_eq!(noticed((0..40).map(|n| (numbered(1), good(&format!("{n} % done"))))), (None, None));
}

#[test]
fn waiting_for_ever_other_times_is_no_circle() {
    assert_eq!(noticed((0..40).map(|n| (numbered(n), good("waited")))), (None, None));
}

#[test]
fn a_circle_that_was_left_is_forgotten() {
    let rounds = (0..30).map(|n| (numbered(if n % 6 < 5 { 1 } else { n }), good("r")));
    assert_eq!(noticed(rounds), (Some(4), None));
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
