//! Interrupts, further goals, and the calls that they leave open.

use deepstrike_kernel::Rejected;
use deepstrike_kernel::wire::event::Status;
use deepstrike_kernel::wire::input::{Input, Start};
use deepstrike_kernel::wire::message::Block;

use crate::say::*;
use crate::world::World;

#[test]
fn an_interrupt_cancels_what_runs_and_leaves_the_rest_unrun() {
    let config = limited(|limits| limits.parallel = 1);
    let mut world = World::after([start_with(config), replies(0, vec![call("write"), call("look")])]);
    let events = world.take(interrupt());
    assert_eq!(
        settled(&events),
        [
            ("cancelled".to_string(), "cancelled; it may have taken effect".to_string()),
            ("not_run".to_string(), "not run: interrupted".to_string()),
        ]
    );
    let outcome = world.outcome();
    assert_eq!((outcome.status, outcome.message.as_str()), (Status::UserAbort, "enough"));
}

#[test]
fn an_interrupt_while_thinking_just_ends() {
    let mut world = World::after([start()]);
    assert_eq!(end(&world.take(interrupt())), Some((Status::UserAbort, "user_abort".into())));
    assert!(world.give(replies(0, vec![said("late")])).is_err());
}

#[test]
fn a_second_goal_comes_after_the_old_turns() {
    let mut world = World::after([goal("First."), replies(0, vec![said("1")]), goal("Second.")]);
    let users: Vec<_> = world.blocks().iter().map(label).collect();
    assert_eq!(users, ["head", "First.", "assistant", "Second."]);
    world.take(replies(world.call(), vec![said("2")]));
    assert_eq!((world.outcome().turns, world.outcome().text.as_str()), (1, "2"));
}

fn label(block: &Block<'_>) -> String {
    match block {
        Block::User(user) => content(&user.parts),
        other => other.tag().into(),
    }
}

#[test]
fn a_new_goal_after_a_crash_closes_the_open_calls_by_what_may_have_happened() {
    let config = limited(|limits| limits.parallel = 3);
    let mut world = World::after([start_with(config)]);
    world.take(replies(0, vec![call("write"), call("put"), call("look"), call("look")]));
    world.take(suspends(world.runs()[2].id));
    world.crash();
    let events = world.take(goal("Another."));
    assert_eq!(
        settled(&events),
        [
            ("outcome_unknown".to_string(), "the outcome is unknown; it may have taken effect".to_string()),
            ("cancelled".to_string(), "cancelled; it may have taken effect".to_string()),
            ("withdrawn".to_string(), "withdrawn: a new goal was started before the answer came".to_string()),
            ("cancelled".to_string(), "cancelled; it may have taken effect".to_string()),
        ]
    );
    assert_eq!(kinds(&events).last(), Some(&"started"));
    assert_eq!(label(world.blocks().last().unwrap()), "Another.");
}

#[test]
fn a_goal_without_content_or_with_impossible_options_is_invalid() {
    let mut world = World::new();
    let empty = Input::Start(Start { goal: vec![], config: config(), criteria: vec![], feedback: vec![] });
    let mut doubled = config();
    doubled.tools.push(doubled.tools[0].clone());
    let mut broken = config();
    broken.tools[0].parameters = "{".into();
    let idle = limited(|limits| limits.parallel = 0);
    for input in [empty, start_with(doubled), start_with(broken), start_with(idle)] {
        assert!(matches!(world.give(input), Err(Rejected::Invalid(_))));
    }
}

#[test]
fn another_sessions_options_are_invalid() {
    let mut world = World::after([start(), replies(0, vec![said("1")])]);
    let mut other = config();
    other.session = "t".into();
    assert!(matches!(world.give(start_with(other)), Err(Rejected::Invalid(_))));
}

#[test]
fn the_model_reads_that_the_goal_before_was_given_up() {
    for (inputs, why) in [
        (vec![start(), interrupt()], "user_abort"),
        (vec![start(), fails(0, "overloaded")], "error"),
        (vec![start()], "interrupted"),
    ] {
        let mut world = World::after(inputs);
        world.take(goal("Second."));
        let labels: Vec<_> = world.blocks().iter().map(label).collect();
        let note = format!("The goal before was not completed ({why}); a new one follows.");
        assert_eq!(labels, ["head", "Do it.", &note, "Second."]);
    }
}
