//! The kernel's own tools, and the plan in the task state.

use deepstrike_kernel::Rejected;
use deepstrike_kernel::wire::event::{Event, StateChanged};
use deepstrike_kernel::wire::message::{Block, Class};
use deepstrike_kernel::wire::policy::{Config, Placement};
use deepstrike_kernel::wire::signal::Urgency;
use deepstrike_kernel::wire::task::Role;

use crate::say::*;
use crate::world::World;

const STEPS: &str =
    r#"{"steps":[{"text":"look","status":"done"},{"text":"write","status":"doing"}],"progress":"seen"}"#;
const TOLD: &str = "Plan:\n[done] look\n[doing] write\nProgress: seen";

/// Roles and texts of the blocks behind the head.
fn told(world: &World) -> Vec<(Role, String)> {
    let roles = world.kernel.state().prompt().entries().iter().map(|entry| entry.source.role);
    let texts = world.blocks().into_iter().map(|block| match block {
        Block::User(user) => content(&user.parts),
        Block::Result(result) => content(&result.parts),
        _ => String::new(),
    });
    roles.zip(texts).skip(1).collect()
}

fn planned(config: Config) -> World {
    World::after([start_with(config), replies(0, vec![call_as("p", "update_plan", STEPS)])])
}

#[test]
fn a_plan_is_settled_without_the_host_and_read_as_one_delta() {
    let world = planned(config());
    assert_eq!(kinds(&world.events(1)), ["replied", "judged", "state_changed", "settled"]);
    let expected = [
        (Role::State, "Do it.".to_string()),
        (Role::Reply, String::new()),
        (Role::Result, "The plan is kept.".to_string()),
        (Role::Delta, TOLD.to_string()),
    ];
    assert_eq!(told(&world), expected);
}

#[test]
fn the_same_plan_again_changes_nothing_and_leaves_no_delta() {
    let mut world = planned(config());
    let events = world.take(replies(world.call(), vec![call_as("q", "update_plan", STEPS)]));
    assert_eq!(kinds(&events), ["replied", "judged", "settled"]);
    assert_eq!(told(&world).last(), Some(&(Role::Result, "The plan is kept.".to_string())));
}

#[test]
fn of_several_plans_in_one_reply_the_last_is_read() {
    let other = r#"{"steps":[],"progress":"none"}"#;
    let calls = vec![call_as("p", "update_plan", STEPS), call_as("q", "update_plan", other)];
    let world = World::after([start(), replies(0, calls)]);
    assert_eq!(told(&world).last(), Some(&(Role::Delta, "Progress: none".to_string())));
}

#[test]
fn a_process_that_ends_between_the_change_and_the_result_goes_on_with_the_result() {
    let mut log = planned(config()).log;
    log.truncate(4);
    let mut world = World::of(log);
    assert!(matches!(world.events(3)[..], [Event::StateChanged(StateChanged { plan: Some(_), .. })]));
    assert_eq!(kinds(&world.take(resume())), ["resumed", "judged", "settled"]);
    assert_eq!(told(&world).last(), Some(&(Role::Delta, TOLD.to_string())));
}

#[test]
fn a_plan_that_is_none_is_a_result_the_model_can_act_on() {
    let events = World::after([start()]).take(replies(0, vec![call_as("p", "update_plan", r#"{"steps":3}"#)]));
    assert_eq!(settled(&events)[0].0, "invalid_arguments");
}

#[test]
fn another_goal_begins_without_the_plan_of_the_one_before() {
    let mut world = planned(config());
    world.take(goal("Something else."));
    assert_eq!(world.kernel.state().task().plan, Default::default());
}

#[test]
fn with_live_placement_the_state_stands_in_the_first_turn_and_each_change_opens_an_epoch() {
    let live = Config { placement: Placement::Live, ..config() };
    let mut world = planned(live);
    assert_eq!(
        (world.kernel.epoch(), told(&world)[0].1.as_str()),
        (2, "Do it.Plan:\n[done] look\n[doing] write\nProgress: seen")
    );
    assert_eq!(told(&world).len(), 3, "no delta");
    world.take(signal("news", Urgency::Low, None));
    world.take(replies(world.call(), vec![call("look")]));
    world.take(result(world.runs()[0].id, "r"));
    assert_eq!(world.kernel.epoch(), 3);
    assert!(
        told(&world)[0]
            .1
            .ends_with("seen\nSignal news (event, from custom, normal): {}".replace("normal", "low").as_str())
    );
}

#[test]
fn the_kernels_own_tools_are_offered_only_beside_others_and_their_names_are_taken() {
    let alone = World::after([start_with(Config { tools: vec![], ..config() })]);
    let Block::Head(head) = &alone.blocks()[0] else { panic!() };
    assert_eq!(head.tools, vec![]);
    for name in ["recall", "update_plan"] {
        let taken = Config { tools: vec![tool(name, Class::Read)], ..config() };
        assert!(matches!(World::new().give(start_with(taken)), Err(Rejected::Invalid(_))));
    }
}

#[test]
fn a_recall_is_run_by_the_host_and_again_after_a_crash() {
    let mut world = World::after([start(), replies(0, vec![call_as("r", "recall", r#"{"ref":"0"}"#)])]);
    assert_eq!(world.runs()[0].name, "recall");
    world.crash();
    world.take(resume());
    assert_eq!(world.runs()[0].name, "recall");
}
