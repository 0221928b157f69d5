//! Signals reach the model once.

use deepstrike_kernel::wire::event::Status;
use deepstrike_kernel::wire::message::Block;
use deepstrike_kernel::wire::signal::Urgency;

use crate::say::*;
use crate::world::World;

fn acting(parallel: u64) -> World {
    let config = limited(|limits| limits.parallel = parallel);
    World::after([start_with(config), replies(0, vec![call("write"), call("look")])])
}

#[test]
fn several_signals_become_one_block_behind_the_results() {
    let mut world = acting(8);
    world.take(signal("a", Urgency::Low, None));
    world.take(signal("b", Urgency::Normal, None));
    for run in world.runs() {
        world.take(result(run.id, "r"));
    }
    let blocks = world.blocks();
    let Some(Block::User(user)) = blocks.last() else { panic!() };
    assert_eq!(content(&user.parts), "Signal a (event, from custom, low): {}Signal b (event, from custom, normal): {}");
    assert_eq!((user.parts.len(), blocks.len()), (2, 6));
}

#[test]
fn a_signal_while_thinking_waits_for_the_next_call() {
    let mut world = World::after([start()]);
    let before = world.call_model();
    world.take(signal("a", Urgency::High, None));
    assert_eq!(world.call_model(), before);
    world.take(replies(0, vec![call("look")]));
    world.take(result(world.runs()[0].id, "r"));
    assert!(matches!(world.blocks().last(), Some(Block::User(_))));
}

#[test]
fn a_signal_that_came_too_late_for_one_goal_stands_before_the_next() {
    let mut world = World::after([start(), signal("a", Urgency::Low, None), replies(0, vec![said("done")])]);
    world.take(goal("Next."));
    let blocks = world.blocks();
    let [.., Block::User(signal), Block::User(goal)] = blocks.as_slice() else { panic!("{blocks:?}") };
    assert!(content(&signal.parts).starts_with("Signal a"));
    assert_eq!(content(&goal.parts), "Next.");
}

#[test]
fn a_key_is_heard_once_also_after_a_crash() {
    let mut world = acting(8);
    assert_eq!(kinds(&world.take(signal("a", Urgency::Low, Some("k")))), ["signalled"]);
    assert_eq!(world.take(signal("a", Urgency::Low, Some("k"))), vec![]);
    world.crash();
    assert_eq!(world.take(signal("a", Urgency::Critical, Some("k"))), vec![]);
}

#[test]
fn a_high_signal_supersedes_calls_that_have_not_begun() {
    for urgency in [Urgency::High, Urgency::Critical] {
        let mut world = acting(1);
        let events = world.take(signal("a", urgency, None));
        assert_eq!(kinds(&events), ["signalled", "settled"]);
        assert_eq!(settled(&events), [("not_run".into(), "not run: superseded".into())]);
        assert_eq!(world.runs().len(), 1);
    }
}

#[test]
fn a_critical_interrupt_ends_the_goal() {
    let mut world = acting(8);
    let events = world.take(signal("interrupt", Urgency::Critical, None));
    assert_eq!(kinds(&events), ["signalled", "settled", "settled", "ended"]);
    assert_eq!(world.outcome().status, Status::UserAbort);
}
