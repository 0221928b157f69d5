//! What a reply leads to.

use deepstrike_kernel::wire::event::{Event, Status};
use deepstrike_kernel::wire::input::{Fault, Finish, Input, Reply};
use deepstrike_kernel::wire::message::{Block, Notice, Ok, RecordedPart, ReplyPart, Thinking, Usage, Validated};
use deepstrike_kernel::wire::policy::Price;

use crate::say::*;
use crate::world::World;

fn finished(finish: Finish, parts: Vec<ReplyPart>) -> Input {
    Input::Reply(Reply { finish, ..reply(0, parts) })
}

fn with_output(effect: u64, output: Validated) -> Input {
    Input::Reply(Reply { output: Some(output), ..reply(effect, vec![said("{}")]) })
}

/// Text of the last user-side block.
fn last_words(world: &World) -> String {
    match world.blocks().last() {
        Some(Block::User(user)) => content(&user.parts),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_text_completes_the_goal() {
    let mut world = World::after([start()]);
    let events = world.take(replies(0, vec![said("4"), said("2")]));
    assert_eq!(end(&events), Some((Status::Completed, String::new())));
    let outcome = world.outcome();
    assert_eq!((outcome.text.as_str(), outcome.turns, outcome.input_tokens, outcome.output_tokens), ("42", 1, 100, 10));
}

#[test]
fn calls_decide_and_not_the_reason() {
    for finish in [Finish::Stop, Finish::ToolCalls, Finish::Other] {
        let mut world = World::after([start()]);
        let events = world.take(finished(finish, vec![said("I look."), call("look")]));
        assert_eq!(kinds(&events), ["replied", "judged", "begun"], "{finish:?}");
    }
}

#[test]
fn tool_calls_without_a_call_is_just_a_text() {
    let mut world = World::after([start()]);
    let events = world.take(finished(Finish::ToolCalls, vec![said("hello")]));
    assert_eq!(end(&events), Some((Status::Completed, String::new())));
}

#[test]
fn a_reply_cut_by_its_limit_ends_with_output_limit_and_its_text() {
    let mut world = World::after([start()]);
    let events = world.take(finished(Finish::Length, vec![said("half")]));
    assert_eq!(end(&events), Some((Status::Error, "output_limit".into())));
    assert_eq!(world.outcome().text, "half");
}

#[test]
fn whole_calls_of_a_cut_reply_are_not_run() {
    let mut world = World::after([start()]);
    let events = world.take(finished(Finish::Length, vec![said("half"), call("look")]));
    assert_eq!(settled(&events), [("not_run".into(), "not run: the reply was cut off".into())]);
    assert_eq!(end(&events), Some((Status::Error, "output_limit".into())));
}

#[test]
fn a_content_filter_ends_with_its_name_after_one_request() {
    let mut world = World::after([start()]);
    let events = world.take(finished(Finish::ContentFilter, vec![]));
    assert_eq!(end(&events), Some((Status::Error, "content_filter".into())));
    assert_eq!(world.outcome().turns, 1);
}

#[test]
fn an_empty_reply_is_asked_once_more_and_leaves_no_block() {
    let mut world = World::after([start()]);
    let before = world.blocks();
    let thought = ReplyPart::Thinking(Thinking { text: "hm".into() });
    assert_eq!(kinds(&world.take(replies(0, vec![thought, said(" \n")]))), ["replied"]);
    assert_eq!(world.blocks(), before);
    let call = world.call();
    let events = world.take(finished_at(call, vec![]));
    assert_eq!(end(&events), Some((Status::Error, "empty_reply".into())));
}

#[test]
fn two_empty_replies_with_a_call_between_them_are_not_in_a_row() {
    let mut world = World::after([start(), replies(0, vec![])]);
    world.take(replies(world.call(), vec![call("look")]));
    world.take(result(world.runs()[0].id, "r"));
    assert_eq!(kinds(&world.take(replies(world.call(), vec![]))), ["replied"]);
    assert_eq!(world.kernel.phase(), "thinking");
}

fn finished_at(effect: u64, parts: Vec<ReplyPart>) -> Input {
    Input::Reply(Reply { finish: Finish::ToolCalls, ..reply(effect, parts) })
}

#[test]
fn an_invalid_output_is_repaired_at_most_twice() {
    let mut world = World::after([start()]);
    for _ in 0..2 {
        world.take(with_output(world.call(), invalid("invalid_output", "a is missing")));
        assert_eq!(
            last_words(&world),
            "The answer is not valid: a is missing\nAnswer again, with nothing but the answer in the form asked for."
        );
    }
    let events = world.take(with_output(world.call(), invalid("invalid_output", "a is missing")));
    assert_eq!(end(&events), Some((Status::Error, "invalid_output".into())));
    let outcome = world.outcome();
    assert_eq!((outcome.text.as_str(), outcome.turns), ("{}", 3));
    assert_eq!(
        outcome.message,
        "the answer is not valid, 2 repairs included: a is missing; loosen output_type or change the request"
    );
}

#[test]
fn a_repaired_output_completes() {
    let mut world = World::after([start()]);
    world.take(with_output(0, invalid("invalid_output", "a is missing")));
    let events = world.take(with_output(world.call(), Validated::Ok(Ok { text: None })));
    assert_eq!(kinds(&events), ["replied", "ended"]);
    assert_eq!((world.outcome().status, world.outcome().turns), (Status::Completed, 2));
}

#[test]
fn a_repair_in_the_last_allowed_turn_is_not_asked_for() {
    let mut world = World::after([start_with(limited(|limits| limits.max_turns = 1))]);
    let events = world.take(with_output(0, invalid("invalid_output", "a is missing")));
    assert_eq!(end(&events), Some((Status::MaxTurns, "max_turns".into())));
    assert_eq!(world.outcome().text, "{}");
}

#[test]
fn tool_turns_between_do_not_give_repairs_back() {
    let mut world = World::after([start()]);
    for _ in 0..2 {
        world.take(with_output(world.call(), invalid("invalid_output", "a is missing")));
        world.take(replies(world.call(), vec![call("look")]));
        world.take(result(world.runs()[0].id, "r"));
    }
    let events = world.take(with_output(world.call(), invalid("invalid_output", "a is missing")));
    assert_eq!(end(&events), Some((Status::Error, "invalid_output".into())));
}

#[test]
fn a_valid_output_completes_and_stands_in_the_record() {
    let mut world = World::after([start()]);
    let output = Validated::Ok(Ok { text: Some("{\"a\":1}".into()) });
    let events = world.take(with_output(0, output.clone()));
    let Some(Event::Replied(replied)) = events.first() else { panic!("{events:?}") };
    assert_eq!(replied.output, Some(output));
    assert_eq!(end(&events), Some((Status::Completed, String::new())));
}

#[test]
fn what_was_shown_of_a_stopped_reply_stays_and_the_model_goes_on() {
    let mut world = World::after([start()]);
    assert_eq!(kinds(&world.take(shown(0, "half a", None))), ["replied"]);
    assert_eq!(last_words(&world), "The previous reply was interrupted; go on.");
    assert_eq!(world.kernel.phase(), "thinking");
}

#[test]
fn what_was_shown_before_a_fault_stays_and_the_goal_ends_with_that_fault() {
    let mut world = World::after([start()]);
    let events = world.take(shown(0, "half a", Some(fault("stalled"))));
    assert_eq!(kinds(&events), ["replied", "failed", "ended"]);
    let outcome = world.outcome();
    assert_eq!((outcome.code.as_str(), outcome.text.as_str(), outcome.retryable), ("stalled", "half a", true));
}

#[test]
fn calls_and_thinking_of_an_incomplete_reply_are_not_sent_back() {
    let mut world = World::after([start()]);
    let thought = ReplyPart::Thinking(Thinking { text: "hm".into() });
    let parts = vec![thought, said("half"), call("write")];
    let events = world.take(Input::Reply(Reply { complete: false, ..reply(0, parts) }));
    let [Event::Replied(replied)] = events.as_slice() else { panic!("{events:?}") };
    assert!(!replied.parts.iter().any(|part| matches!(part, RecordedPart::Call(_))));
    let Block::Assistant(block) = &world.blocks()[2] else { panic!() };
    assert_eq!(serde_json::to_string(&block.parts).unwrap(), r#"[{"type":"text","text":"half"}]"#);
}

#[test]
fn a_complete_reply_with_a_fault_is_invalid() {
    let mut world = World::after([start()]);
    let input = Input::Reply(Reply { fault: Some(fault("x")), ..reply(0, vec![said("a")]) });
    assert!(world.give(input).is_err());
}

#[test]
fn a_failure_ends_the_goal_with_its_fault() {
    let mut world = World::after([start()]);
    let events = world.take(fails(0, "overloaded"));
    assert_eq!(kinds(&events), ["failed", "ended"]);
    let Some(Event::Ended(ended)) = events.last() else { panic!() };
    let expected = Fault { code: "overloaded".into(), message: "it is overloaded".into(), retryable: true };
    assert_eq!(ended.fault, Some(expected));
}

#[test]
fn wire_ids_are_kept_while_unused_and_made_unique_when_they_repeat() {
    let mut world = World::after([start()]);
    let mut seen = vec![];
    for _ in 0..3 {
        let events = world.take(replies(world.call(), vec![call_as("counter:0", "look", "{}"), call("look")]));
        let Some(Event::Replied(replied)) = events.first() else { panic!() };
        for part in &replied.parts {
            if let RecordedPart::Call(call) = part {
                seen.push((call.id.clone(), call.wire_id.clone()));
            }
        }
        world.crash();
        world.take(resume());
        for run in world.runs() {
            world.take(result(run.id, "r"));
        }
    }
    let (first, again) = (("counter:0".to_string(), None), Some("counter:0".to_string()));
    assert_eq!(seen[0], first);
    assert_eq!((&seen[2].1, &seen[4].1), (&again, &again));
    let ids: std::collections::BTreeSet<_> = seen.iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len(), 6);
}

#[test]
fn a_wire_id_that_looks_like_ours_still_gets_a_unique_id() {
    let mut world = World::after([start()]);
    world.take(replies(0, vec![call_as("call_1_1", "look", "{}"), call("look")]));
    let ids: Vec<_> = world.runs().into_iter().map(|run| run.call_id).collect();
    assert_eq!(ids, ["call_1_1", "call_1_1x"]);
}

#[test]
fn usage_is_taken_as_given_and_estimated_where_it_is_missing() {
    let mut world = World::after([start()]);
    let usage = Usage { input: 131, output: 58, cached: 100, cache_write: 5, reasoning: 8 };
    world.take(Input::Reply(Reply { usage: Some(usage.clone()), ..reply(0, vec![call("look")]) }));
    world.take(result(world.runs()[0].id, "r"));
    let prompt = world.kernel.state().prompt().tokens();
    let events = world.take(Input::Reply(Reply { usage: None, ..reply(world.call(), vec![said("four")]) }));
    let Some(Event::Replied(replied)) = events.first() else { panic!() };
    assert!(replied.estimated);
    assert_eq!(replied.usage, Usage { input: prompt, output: replied.tokens, ..Usage::default() });
    let outcome = world.outcome();
    assert_eq!((outcome.input_tokens, outcome.cached_tokens), (131 + prompt, 100));
    assert_eq!((outcome.cache_write_tokens, outcome.reasoning_tokens), (5, 8));
}

#[test]
fn a_call_costs_its_tokens_at_their_prices_rounded_up() {
    let mut world = World::after([start_with(priced(1_000_000))]);
    let usage = Usage { input: 101, output: 7, cached: 33, cache_write: 10, reasoning: 0 };
    world.take(Input::Reply(Reply { usage: Some(usage), ..reply(0, vec![said("x")]) }));
    let outcome = world.outcome();
    // 58 × 1 + 33 × 0.1 + 10 × 1.25 + 7 × 2 = 87.8 micro-dollars
    assert_eq!((outcome.priced, outcome.cost), (true, 88));
}

#[test]
fn the_price_of_the_model_that_answered_rules_the_cost() {
    let double = Price { input: 2_000_000, output: 4_000_000, cached: 200_000, cache_write: 2_500_000 };
    for config in [priced(1_000_000), config()] {
        let mut world = World::after([start_with(config)]);
        world.take(Input::Reply(Reply { price: Some(double.clone()), ..reply(0, vec![said("x")]) }));
        assert_eq!((world.outcome().priced, world.outcome().cost), (true, 2 * 100 + 4 * 10));
    }
}

#[test]
fn what_the_caller_should_know_of_a_call_stands_in_its_record() {
    let notices = vec![Notice { code: "fallback".into(), message: "another model answered".into() }];
    let mut world = World::after([start()]);
    let events = world.take(Input::Reply(Reply { notices: notices.clone(), ..reply(0, vec![said("x")]) }));
    let Some(Event::Replied(replied)) = events.first() else { panic!("{events:?}") };
    assert_eq!(replied.notices, notices);
}

#[test]
fn without_a_price_there_is_no_cost() {
    let world = World::after([start(), replies(0, vec![said("x")])]);
    assert_eq!((world.outcome().priced, world.outcome().cost), (false, 0));
}
