//! Signals reach the model once.

use deepstrike_kernel::wire::event::Status;
use deepstrike_kernel::wire::message::Block;
use deepstrike_kernel::wire::policy::{Config, Placement};
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
    world.take(signal("a", Urgency::Normal, None));
    assert_eq!(world.call_model(), before);
    world.take(replies(0, vec![call("look")]));
    world.take(result(world.runs()[0].id, "r"));
    assert!(matches!(world.blocks().last(), Some(Block::User(_))));
}

#[test]
fn a_high_signal_while_thinking_goes_before_the_calls_of_the_reply() {
    let mut world = World::after([start(), signal("a", Urgency::High, None)]);
    let events = world.take(replies(0, vec![call("look")]));
    assert_eq!(kinds(&events), ["replied", "settled"]);
    assert_eq!(settled(&events), [("not_run".into(), "not run: superseded".into())]);
    let Some(Block::User(user)) = world.blocks().pop() else { panic!() };
    assert_eq!(content(&user.parts), "Signal a (event, from custom, high): {}");
}

#[test]
fn a_high_signal_that_the_answer_has_not_read_is_read_before_the_goal_ends() {
    for said_by_user in [false, true] {
        let word = if said_by_user { user_says("Also in German.") } else { signal("a", Urgency::High, None) };
        let mut world = World::after([start(), word, replies(0, vec![said("Good morning.")])]);
        let Some(Block::User(user)) = world.blocks().pop() else { panic!() };
        let told =
            if said_by_user { "The user says: Also in German." } else { "Signal a (event, from custom, high): {}" };
        assert_eq!(content(&user.parts), told);
        let owed = world.call();
        world.take(replies(owed, vec![said("Guten Morgen.")]));
        assert_eq!((world.outcome().status, world.outcome().text), (Status::Completed, "Guten Morgen.".into()));
    }
}

#[test]
fn with_live_placement_no_request_that_reads_a_signal_ends_with_the_models_own_text() {
    let config = Config { placement: Placement::Live, ..config() };
    let word = user_says("Also in German.");
    let world = World::after([start_with(config), word, replies(0, vec![said("Good morning.")])]);
    let blocks = world.blocks();
    let Some(Block::User(first)) = blocks.get(1) else { panic!() };
    let Some(Block::User(last)) = blocks.last() else { panic!() };
    assert!(content(&first.parts).contains("The user says: Also in German."));
    assert_eq!(content(&last.parts), "Something came meanwhile: it stands in the first turn. Go on by it.");
}

#[test]
fn an_answer_that_spends_the_last_turn_stands_although_a_signal_waits() {
    let config = limited(|limits| limits.max_turns = 1);
    let mut world = World::after([start_with(config), signal("a", Urgency::High, None)]);
    world.take(replies(0, vec![said("done")]));
    assert_eq!(world.outcome().status, Status::Completed);
    world.take(goal("Next."));
    assert!(matches!(world.blocks().as_slice(), [.., Block::User(heard), Block::User(_)]
        if content(&heard.parts).starts_with("Signal a")));
}

#[test]
fn signals_that_come_before_the_call_is_begun_are_read_by_it_as_one_block() {
    let mut world = World::after([start()]);
    let events = world.take(together(&["a", "b", "c"], true));
    assert_eq!(kinds(&events), ["signalled", "signalled", "signalled"]);
    let Some(Block::User(user)) = world.blocks().pop() else { panic!() };
    assert_eq!((world.blocks().len(), user.parts.len()), (3, 3));
    assert_eq!(world.call(), 3);
    world.take(replies(3, vec![said("done")]));
    assert_eq!(world.outcome().turns, 1);
}

#[test]
fn a_delivery_that_is_brought_twice_is_heard_once_also_after_a_crash() {
    let mut world = World::after([start()]);
    assert_eq!(kinds(&world.take(delivery("d1"))), ["signalled"]);
    assert_eq!(world.take(delivery("d1")), vec![]);
    world.crash();
    assert_eq!(world.take(delivery("d1")), vec![]);
    assert_eq!(kinds(&world.take(delivery("d2"))), ["signalled"]);
}

#[test]
fn of_a_storm_of_signals_the_newest_are_told_and_the_others_counted() {
    let mut world = World::after([start(), replies(0, vec![call("look")])]);
    world.every = 200;
    for number in 0..500 {
        world.take(signal(if number % 5 == 0 { "mail" } else { "tick" }, Urgency::Low, None));
    }
    world.take(signal("disk", Urgency::High, None));
    world.every = 1;
    world.take(result(world.runs()[0].id, "r"));
    let Some(Block::User(user)) = world.blocks().pop() else { panic!() };
    let texts: Vec<String> = user.parts.iter().map(|part| content(std::slice::from_ref(part))).collect();
    let told = texts.iter().filter(|text| text.starts_with("Signal ")).count();
    assert_eq!(told, 20);
    assert!(texts.contains(&"Signal disk (event, from custom, high): {}".to_string()));
    let last = texts.last().map(String::as_str).unwrap_or_default();
    assert!(last.starts_with("481 more signals came before and are not told here; recall(\""), "{last}");
    assert!(last.ends_with("\"): mail ×97, tick ×384"), "{last}");
}

#[test]
fn a_signal_that_would_fill_the_window_is_told_in_short() {
    let config = limited(|limits| (limits.window, limits.reserve) = (4_000, 100));
    let mut world = World::after([start_with(config), replies(0, vec![call("look")])]);
    world.take(heavy("report", 8_000));
    world.take(result(world.runs()[0].id, "r"));
    let Some(Block::User(user)) = world.blocks().pop() else { panic!() };
    let told = content(&user.parts);
    assert!(told.starts_with("Signal report (event, from custom, normal): \"x"), "{told}");
    assert!(told.contains(" characters left out; recall(\""), "{told}");
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
