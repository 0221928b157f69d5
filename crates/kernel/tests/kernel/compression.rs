//! Compression: when, how far, and what stays.

use deepstrike_kernel::wire::event::{Compressed, Event, Status};
use deepstrike_kernel::wire::input::{Failure, Fault, Input, Reply, Start};
use deepstrike_kernel::wire::message::{AssistantPart, Block, Opaque, ReplyPart, Usage};
use deepstrike_kernel::wire::policy::{Config, Price};

use crate::say::*;
use crate::world::World;

/// A window of so many tokens, all of them for the prompt.
fn windowed(window: u64) -> Config {
    limited(|limits| (limits.window, limits.reserve, limits.max_turns) = (window, 0, 1_000))
}

fn begun(config: Config) -> World {
    let mut world = World::new();
    world.every = 10;
    world.take(start_with(config));
    world
}

/// One turn: a call of `look`, and a result of so many bytes that no other turn has.
fn turn(world: &mut World, number: usize, bytes: usize) -> Vec<Event> {
    let call = call_as(&format!("c{number}"), "look", &format!(r#"{{"item":"item_{number}"}}"#));
    let parts = vec![said(&format!("I look at {number}.")), call];
    let from = world.log.len();
    let id = world.call();
    world.take(Input::Reply(Reply { usage: None, ..reply(id, parts) }));
    let text = format!("order_{number} {}", "x ".repeat(bytes / 2));
    world.take(result(world.runs()[0].id, &text));
    world.events(from)
}

fn numbered(number: usize) -> ReplyPart {
    call_as(&format!("c{number}"), "look", &format!("{{\"n\":{number}}}"))
}

fn compressions(world: &World) -> Vec<Compressed> {
    let events = world.events(0).into_iter();
    events.filter_map(|event| if let Event::Compressed(event) = event { Some(event) } else { None }).collect()
}

fn whole(world: &World) -> String {
    serde_json::to_string(&world.blocks()).unwrap()
}

#[test]
fn the_prompt_is_rewritten_before_the_call_that_it_would_be_too_long_for() {
    let mut world = begun(windowed(3_000));
    for number in 0..40 {
        turn(&mut world, number, 1_000);
        assert!(world.kernel.state().prompt().tokens() <= 3_000);
    }
    assert!((2..12).contains(&compressions(&world).len()));
}

#[test]
fn one_rewrite_goes_down_to_the_low_mark_so_that_the_next_is_far() {
    let mut world = begun(windowed(20_000));
    for number in 0..60 {
        turn(&mut world, number, 2_000);
    }
    let compressions = compressions(&world);
    assert!(!compressions.is_empty() && compressions.iter().all(|each| each.tokens <= each.tokens_before / 2));
}

#[test]
fn the_ladder_takes_the_strategy_that_loses_least() {
    let mut talks = begun(windowed(8_000));
    for number in 0..9 {
        let id = talks.call();
        talks
            .take(Input::Reply(Reply { usage: None, ..reply(id, vec![said(&"so ".repeat(1_200)), numbered(number)]) }));
        talks.take(result(talks.runs()[0].id, "r"));
    }
    let mut looks = begun(windowed(8_000));
    (0..9).for_each(|number| drop(turn(&mut looks, number, 3_600)));
    let mut long = begun(windowed(3_000));
    (0..70).for_each(|number| drop(turn(&mut long, number, 40)));
    let stages = [talks, looks, long].map(|world| compressions(&world)[0].stage.clone());
    assert_eq!(stages, ["snip", "elide", "collapse"]);
}

#[test]
fn head_and_goal_stay_and_the_first_turn_says_that_something_left() {
    let mut world = begun(windowed(3_000));
    let head = world.blocks()[0].clone();
    for number in 0..60 {
        turn(&mut world, number, 200);
    }
    let blocks = world.blocks();
    let Block::User(first) = &blocks[1] else { panic!() };
    let text = content(&first.parts);
    assert_eq!(blocks[0], head);
    assert!(text.starts_with("Do it.This conversation was compressed") && text.contains("recall(\""), "{text}");
}

#[test]
fn what_left_has_a_reference_to_its_records() {
    let mut world = begun(windowed(3_000));
    for number in 0..60 {
        turn(&mut world, number, 200);
    }
    let last = compressions(&world).pop().unwrap();
    let kept = last.sources.iter().skip(1).map(|source| source.seq).min().unwrap();
    assert_eq!(last.digest.from, 1);
    assert!(last.digest.to < kept && whole(&world).contains(&format!("recall(\\\"1-{}\\\")", last.digest.to)));
}

#[test]
fn values_of_what_left_stay_in_the_ledger() {
    let mut world = begun(windowed(3_000));
    for number in 0..60 {
        turn(&mut world, number, 200);
    }
    let text = whole(&world);
    let last = compressions(&world).pop().unwrap();
    assert!(last.digest.ledger.iter().any(|value| value.value == "item_30"));
    assert!(["item_30", "order_30"].iter().all(|value| text.contains(value)), "{text}");
}

#[test]
fn a_users_demands_stay_word_for_word_through_ten_compressions() {
    let demands: Vec<String> = (0..10).map(|n| format!("Rule {n}: never book seat {n}A before {n}am.")).collect();
    let mut world = begun(windowed(4_000));
    world.every = 1_000;
    for (number, demand) in demands.iter().enumerate() {
        let goal = vec![text(&format!("Hello. {demand} Thanks."))];
        world.take(Input::Start(Start { goal, config: windowed(4_000), criteria: vec![], feedback: vec![] }));
        let before = world.kernel.epoch();
        let mut at = 0;
        while world.kernel.epoch() == before {
            turn(&mut world, number * 1_000 + at, 300);
            at += 1;
        }
    }
    assert!(compressions(&world).len() >= 10);
    let text = whole(&world);
    assert_eq!(demands.iter().filter(|demand| !text.contains(*demand)).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn a_goal_that_is_still_among_the_turns_stays_there_and_a_later_one_opens_the_epoch_once_it_left() {
    let mut world = begun(windowed(3_000));
    for number in 0..8 {
        turn(&mut world, number, 800);
    }
    world.take(goal_in(&windowed(3_000), "Now the second thing."));
    let mut number = 100;
    while !first_text(&world).starts_with("Now the second thing.") {
        turn(&mut world, number, 800);
        number += 1;
        assert!(number < 200, "{}", first_text(&world));
    }
    assert!(whole(&world).contains("Do it."), "what the first goal said stays");
}

fn goal_in(config: &Config, goal: &str) -> Input {
    Input::Start(Start { goal: vec![text(goal)], config: config.clone(), criteria: vec![], feedback: vec![] })
}

fn first_text(world: &World) -> String {
    let Block::User(first) = &world.blocks()[1] else { panic!() };
    content(&first.parts)
}

#[test]
fn results_of_one_turn_that_are_too_much_together_are_shortened_and_keep_their_references() {
    let mut world = begun(windowed(3_000));
    let calls = (0..6).map(|n| call_as(&format!("c{n}"), "look", "{}")).collect();
    world.take(replies(0, calls));
    for run in world.runs() {
        world.take(result(run.id, &"word ".repeat(800)));
    }
    assert!(world.kernel.state().prompt().tokens() <= 3_000);
    assert!(whole(&world).contains("characters left out; recall("));
}

#[test]
fn a_prompt_that_nothing_can_shorten_ends_before_any_call_and_names_what_fills_it() {
    let mut config = windowed(1_000);
    config.system = "s".repeat(6_000);
    let mut world = World::new();
    let events = world.take(start_with(config));
    assert_eq!(end(&events), Some((Status::Error, "context_overflow".into())));
    assert!(
        world.outcome().message.contains("system prompt 1500, initial memory 0, tools "),
        "{}",
        world.outcome().message
    );
}

fn overflows(effect: u64) -> Input {
    let fault = Fault { code: "context_overflow".into(), message: "too long".into(), retryable: false };
    Input::Failure(Failure { effect, fault })
}

#[test]
fn a_prompt_that_the_service_refuses_is_compressed_to_the_floor_and_asked_once_more() {
    let mut world = begun(windowed(100_000));
    for number in 0..20 {
        turn(&mut world, number, 1_000);
    }
    let (call, before) = (world.call(), whole(&world).len());
    let events = world.take(overflows(call));
    assert_eq!(kinds(&events), ["failed", "compressed"]);
    assert!(world.call() > call && whole(&world).len() < before / 5);
    let events = world.take(overflows(world.call()));
    assert_eq!(
        (kinds(&events), end(&events)),
        (vec!["failed", "ended"], Some((Status::Error, "context_overflow".into())))
    );
}

#[test]
fn what_was_refused_is_not_reached_again() {
    let mut world = begun(windowed(100_000));
    for number in 0..20 {
        turn(&mut world, number, 1_000);
    }
    let refused = world.kernel.state().prompt().tokens();
    world.take(overflows(world.call()));
    for number in 20..60 {
        turn(&mut world, number, 1_000);
        assert!(world.kernel.state().prompt().tokens() < refused);
    }
}

#[test]
fn a_refused_prompt_with_nothing_to_leave_out_ends_with_what_fills_it() {
    let mut world = begun(windowed(100_000));
    let events = world.take(overflows(0));
    assert_eq!(kinds(&events), ["failed", "ended"]);
    assert!(world.outcome().message.contains("goal and task state"), "{}", world.outcome().message);
}

#[test]
fn a_session_that_was_idle_longer_than_the_cache_lives_is_compressed_earlier() {
    let epochs = [1_000, 600_000].map(|idle| {
        let mut world = begun(windowed(20_000));
        while world.kernel.state().prompt().tokens() < 15_600 {
            let number = world.log.len();
            turn(&mut world, number, 4_000);
        }
        world.take(replies(world.call(), vec![said("Done.")]));
        world.later(idle);
        world.take(goal_in(&windowed(20_000), "More."));
        world.kernel.epoch()
    });
    assert_eq!(epochs, [1, 2]);
}

#[test]
fn a_rewrite_on_a_warm_cache_comes_earlier_only_where_it_pays() {
    let epoch = |cached: u64| {
        let mut config = windowed(20_000);
        config.model.price = Some(Price { input: 1_000, output: 0, cached, cache_write: 1_000 });
        let mut world = begun(config);
        while world.kernel.state().prompt().tokens() < 16_000 && world.kernel.epoch() == 1 {
            let number = world.log.len();
            turn(&mut world, number, 400);
        }
        world.kernel.epoch()
    };
    assert_eq!([0, 500].map(epoch), [1, 2]);
}

#[test]
fn calls_and_results_are_compressed_only_between_turns() {
    let mut world = begun(windowed(3_000));
    world.take(replies(0, vec![call_as("a", "look", "{}"), call_as("b", "look", "{}")]));
    let first = world.runs()[0].id;
    assert_eq!(kinds(&world.take(result(first, &"x".repeat(20_000)))), ["settled"], "b is still in flight");
    assert_eq!(kinds(&world.take(result(world.runs()[0].id, "r"))), ["settled", "compressed"]);
}

#[test]
fn artefacts_behind_a_rewrite_are_marked_and_those_of_earlier_goals_leave() {
    let mut world = begun(windowed(4_000));
    let artefact = || ReplyPart::Opaque(Opaque { dialect: "d".into(), text: "{\"sig\":1}".into() });
    let id = world.call();
    world.take(Input::Reply(Reply { usage: None, ..reply(id, vec![artefact(), said("one")]) }));
    world.take(goal_in(&windowed(4_000), "Two."));
    let id = world.call();
    world.take(Input::Reply(Reply { usage: None, ..reply(id, vec![artefact(), call("look")]) }));
    world.take(result(world.runs()[0].id, &"x".repeat(15_900)));
    assert_eq!(compressions(&world).len(), 1);
    let replies: Vec<(bool, bool)> = world.blocks().iter().filter_map(artefacts).collect();
    assert_eq!(replies, [(true, true)], "the reply of the goal before has left, or lost its artefact");
}

/// Whether a reply has an artefact, and whether it is marked.
fn artefacts(block: &Block<'_>) -> Option<(bool, bool)> {
    let Block::Assistant(reply) = block else { return None };
    let opaque = reply.parts.iter().any(|part| matches!(part, AssistantPart::Opaque(_)));
    opaque.then_some((opaque, reply.rebased))
}

#[test]
fn usage_above_our_count_makes_the_rewrite_come_in_time() {
    let mut world = begun(windowed(4_000));
    let mut number = 0;
    while compressions(&world).is_empty() {
        let prompt = world.kernel.state().prompt().gauge().own();
        let usage = Some(Usage { input: prompt * 3 / 2, output: 10, ..Usage::default() });
        let id = world.call();
        let call = numbered(number);
        world.take(Input::Reply(Reply { usage, ..reply(id, vec![call]) }));
        world.take(result(world.runs()[0].id, &"x ".repeat(200)));
        let real = world.kernel.state().prompt().gauge().own() * 3 / 2;
        assert!(real <= 4_000, "the request would be {real} tokens");
        number += 1;
    }
}
