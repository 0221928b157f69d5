//! A goal goes on from its log.

use deepstrike_kernel::Rejected;
use deepstrike_kernel::wire::event::Status;
use deepstrike_kernel::wire::input::{Finish, Input, Reply};
use deepstrike_kernel::wire::message::Block;

use crate::say::*;
use crate::world::World;

#[test]
fn a_completed_goal_is_not_resumed() {
    let mut world = World::after([start(), replies(0, vec![said("done")])]);
    world.crash();
    assert!(matches!(world.give(resume()), Err(Rejected::Refused { .. })));
    assert_eq!(world.outcome().text, "done");
}

#[test]
fn a_thinking_goal_asks_again_under_another_id() {
    let mut world = World::after([start()]);
    world.crash();
    world.take(resume());
    assert_eq!(world.call(), 1);
    assert!(world.give(replies(0, vec![said("late")])).is_err());
}

#[test]
fn running_tools_are_taken_up_by_their_class() {
    let mut world = World::after([start(), replies(0, vec![call("write"), call("put"), call("look")])]);
    let before = world.runs();
    world.crash();
    let events = world.take(resume());
    assert_eq!(kinds(&events), ["resumed", "settled", "begun", "begun"]);
    assert_eq!(settled(&events)[0].0, "outcome_unknown");
    assert_eq!(world.runs(), before[1..], "the same effects under the same keys");
}

#[test]
fn calls_that_had_not_begun_are_judged_again() {
    let config = limited(|limits| limits.parallel = 1);
    let mut world = World::after([start_with(config), replies(0, vec![call("look"), call("put")])]);
    world.crash();
    let events = world.take(resume());
    assert_eq!(kinds(&events), ["resumed", "judged", "begun", "begun"]);
}

#[test]
fn resuming_twice_still_gives_each_call_one_result() {
    let mut world = World::after([start(), replies(0, vec![call("write"), call("look"), call("write")])]);
    world.take(result(world.runs()[1].id, "r"));
    for _ in 0..2 {
        world.crash();
        world.take(resume());
    }
    let results = world.blocks().iter().filter(|block| matches!(block, Block::Result(_))).count();
    assert_eq!((results, world.kernel.phase()), (3, "thinking"));
}

#[test]
fn a_reached_limit_that_is_not_raised_ends_again_without_a_call() {
    let limited = |n| limited(|limits| limits.max_turns = n);
    let mut world = World::after([start_with(limited(1)), replies(0, vec![call("look")])]);
    world.crash();
    for today in [1, 0] {
        let events = world.take(resume_with(limited(today)));
        assert_eq!(kinds(&events), ["resumed", "ended"]);
        assert_eq!(end(&events), Some((Status::MaxTurns, "max_turns".into())));
        assert!(world.outcome().message.contains("raise max_turns"));
    }
    world.take(resume_with(limited(2)));
    assert_eq!(world.kernel.phase(), "thinking");
}

#[test]
fn a_budget_and_a_timeout_go_on_only_when_they_are_raised() {
    let tokens = |n| limited(|limits| limits.max_total_tokens = n);
    let mut world = World::after([start_with(tokens(Some(500)))]);
    world.take(Input::Reply(Reply { finish: Finish::Length, ..reply(0, vec![said("half")]) }));
    assert_eq!(
        end(&world.take(resume_with(tokens(Some(500))))),
        Some((Status::TokenBudget, "max_total_tokens".into()))
    );
    world.take(resume_with(tokens(None)));
    assert_eq!(world.kernel.phase(), "thinking");

    let timed = |n| limited(|limits| limits.timeout_ms = Some(n));
    let mut world = World::after([start_with(timed(10))]);
    world.later(20).take(clock());
    assert_eq!(world.outcome().status, Status::Timeout);
    world.later(5_000).take(resume_with(timed(10)));
    assert_eq!(world.outcome().status, Status::Timeout);
    world.take(resume_with(timed(100)));
    assert_eq!(world.kernel.deadline().unwrap().0, world.now + 100 - 21);
}

#[test]
fn after_the_models_own_text_it_is_told_to_go_on() {
    let mut world = World::after([start()]);
    world.take(Input::Reply(Reply { finish: Finish::Length, ..reply(0, vec![said("half")]) }));
    world.take(resume());
    let blocks = world.blocks();
    let Some(Block::User(user)) = blocks.last() else { panic!() };
    assert_eq!(content(&user.parts), "The previous reply was interrupted; go on.");
}

#[test]
fn a_failed_an_aborted_and_an_emptied_goal_ask_again() {
    for input in [fails(0, "overloaded"), interrupt()] {
        let mut world = World::after([start(), input]);
        world.take(resume());
        assert_eq!(world.kernel.phase(), "thinking");
    }
    let mut world = World::after([start(), replies(0, vec![])]);
    world.take(replies(world.call(), vec![]));
    world.take(resume());
    assert_eq!(kinds(&world.take(replies(world.call(), vec![]))), ["replied"]);
}

#[test]
fn a_log_cut_behind_any_record_can_be_resumed() {
    let mut world = World::after([start(), replies(0, vec![call("write"), bad_call("put"), call("look")])]);
    world.take(suspends(world.runs()[1].id));
    world.take(value(world.asks()[0].id, "1"));
    for run in world.runs() {
        world.take(result(run.id, "r"));
    }
    world.take(replies(world.call(), vec![said("done")]));
    let whole = world.log.clone();
    for cut in 1..whole.len() {
        let mut world = World::new();
        world.log = whole[..cut].to_vec();
        world.now += 1_000;
        world.kernel =
            deepstrike_kernel::Kernel::replay(Box::new(crate::world::Quarters), world.log.iter().map(Vec::as_slice))
                .unwrap();
        world.take(resume());
        for run in world.runs() {
            world.take(result(run.id, "r"));
        }
        assert!(["thinking", "ended", "waiting"].contains(&world.kernel.phase()), "cut behind {cut}");
    }
}

#[test]
fn a_resumed_goal_may_repair_its_output_again() {
    let wrong = |effect| {
        Input::Reply(Reply { output: Some(invalid("invalid_output", "wrong")), ..reply(effect, vec![said("{}")]) })
    };
    let mut world = World::after([start()]);
    for _ in 0..3 {
        world.take(wrong(world.call()));
    }
    assert_eq!(world.outcome().code, "invalid_output");
    world.take(resume());
    let Some(Block::User(said)) = world.blocks().pop() else { panic!("no user-side block at the end") };
    assert_eq!(content(&said.parts), "The previous answer was not valid; answer again, in the form asked for.");
    assert_eq!(kinds(&world.take(wrong(world.call()))), ["replied"]);
}

#[test]
fn a_crash_between_repairs_gives_none_of_them_back() {
    let wrong = |effect| {
        Input::Reply(Reply { output: Some(invalid("invalid_output", "wrong")), ..reply(effect, vec![said("{}")]) })
    };
    let mut world = World::after([start()]);
    for _ in 0..2 {
        world.take(wrong(world.call()));
        world.crash();
        world.take(resume());
    }
    assert_eq!(end(&world.take(wrong(world.call()))), Some((Status::Error, "invalid_output".into())));
}

#[test]
fn a_tool_that_had_begun_in_another_process_may_have_taken_effect_even_before_it_begins_again() {
    let mut world = World::after([start(), replies(0, vec![call("look"), call("put")])]);
    world.crash();
    world.take(resume_with(limited(|limits| limits.parallel = 1)));
    assert_eq!(world.runs().len(), 1);
    let kinds: Vec<_> = settled(&world.take(interrupt())).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["cancelled", "cancelled"]);
}
