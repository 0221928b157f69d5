//! Compression: when, how far, and what stays.

use deepstrike_kernel::wire::event::{Compressed, Event, Status};
use deepstrike_kernel::wire::input::{Failure, Fault, Input, Reply, Start};
use deepstrike_kernel::wire::message::{AssistantPart, Block, Image, Opaque, Part, ReplyPart, Usage};
use deepstrike_kernel::wire::policy::{Config, Placement, Price};
use deepstrike_kernel::wire::signal::Urgency;

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
    assert!((2..16).contains(&compressions(&world).len()));
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
fn what_is_told_behind_a_reply_that_was_cut_leaves_with_it() {
    let mut world = begun(windowed(2_000));
    for number in 0..30 {
        world.take(signal(&format!("news_{number}"), Urgency::Low, None));
        world.take(shown(world.call(), &"half ".repeat(60), None));
    }
    assert!(compressions(&world).iter().any(|each| !each.gone.is_empty()));
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
fn artefacts_behind_a_rewrite_are_marked_and_those_of_earlier_replies_without_calls_leave() {
    let mut world = begun(windowed(4_000));
    let artefact = || ReplyPart::Opaque(Opaque { dialect: "d".into(), text: "{\"sig\":1}".into() });
    let id = world.call();
    world.take(Input::Reply(Reply { usage: None, ..reply(id, vec![artefact(), call("look")]) }));
    world.take(result(world.runs()[0].id, "r"));
    let id = world.call();
    world.take(Input::Reply(Reply { usage: None, ..reply(id, vec![artefact(), said("one")]) }));
    world.take(goal_in(&windowed(4_000), "Two."));
    let id = world.call();
    world.take(Input::Reply(Reply { usage: None, ..reply(id, vec![call("look"), call("look")]) }));
    world.take(result(world.runs()[0].id, &"x".repeat(9_000)));
    world.take(result(world.runs()[0].id, "r"));
    let id = world.call();
    world.take(Input::Reply(Reply { usage: None, ..reply(id, vec![artefact(), call("look")]) }));
    world.take(result(world.runs()[0].id, &"x".repeat(8_000)));
    assert_eq!(compressions(&world).iter().map(|each| each.stage.as_str()).collect::<Vec<_>>(), ["elide"]);
    let replies: Vec<_> = world.blocks().iter().filter_map(artefacts).collect();
    assert_eq!(replies, [(true, true), (false, false), (false, false), (true, true)]);
}

/// Whether a reply has an artefact, and whether it is marked.
fn artefacts(block: &Block<'_>) -> Option<(bool, bool)> {
    let Block::Assistant(reply) = block else { return None };
    let opaque = reply.parts.iter().any(|part| matches!(part, AssistantPart::Opaque(_)));
    Some((opaque, reply.rebased))
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

#[test]
fn a_low_report_never_lowers_the_count_of_a_vocabulary_that_is_known() {
    let mut world = begun(windowed(4_000));
    for number in 0..60 {
        let own = world.kernel.state().prompt().gauge().own();
        let usage = Some(Usage { input: own * 2 / 5, output: 10, ..Usage::default() });
        let id = world.call();
        world.take(Input::Reply(Reply { usage, ..reply(id, vec![numbered(number)]) }));
        world.take(result(world.runs()[0].id, &format!("{number} {}", "x ".repeat(200))));
        let gauge = world.kernel.state().prompt().gauge();
        assert!(gauge.tokens() >= gauge.own() && gauge.own() <= 4_000, "{gauge:?}");
    }
}

fn ends_with_overflow(world: &World) -> bool {
    world.kernel.outcome().is_some_and(|outcome| outcome.code == "context_overflow")
}

#[test]
fn a_goal_that_was_too_large_does_not_stand_in_the_way_of_the_next_one() {
    for before in [vec![], vec!["hi"]] {
        let mut world = World::new();
        for goal in before {
            world.take(goal_in(&windowed(2_500), goal));
            world.take(replies(world.call(), vec![said("hello")]));
        }
        world.take(goal_in(&windowed(2_500), &"word ".repeat(3_000)));
        assert!(ends_with_overflow(&world));
        world.take(goal_in(&windowed(2_500), "hi"));
        let text = whole(&world);
        assert!(
            world.call_model().is_some() && text.contains("word word") && text.contains("[… recall(\\\""),
            "{text}"
        );
        world.take(replies(world.call(), vec![said("hello")]));
        assert_eq!(world.outcome().status, Status::Completed);
    }
}

#[test]
fn goals_that_no_model_answered_leave_like_any_others() {
    let mut world = World::new();
    for number in 0..60 {
        world.take(goal_in(&windowed(2_500), &format!("Goal {number}: {}", "some words here ".repeat(10))));
        assert!(world.call_model().is_some(), "goal {number}: {:?}", world.kernel.outcome());
        world.take(fails(world.call(), "provider_error"));
    }
    world.take(goal_in(&windowed(2_500), "hi"));
    let text = whole(&world);
    assert!(world.call_model().is_some() && ["Goal 0: ", "Goal 59: "].iter().all(|goal| text.contains(goal)), "{text}");
}

/// A goal that fits alone behind slots 1 and 2, with a line that says what left, gets its call: whatever came before.
#[test]
fn whatever_came_before_a_goal_that_fits_alone_gets_its_call() {
    let mut seed = 20_261_130_u64;
    let mut roll = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut overflows = 0;
    for _ in 0..60 {
        let mut world = World::new();
        world.every = 50;
        for _ in 0..12 {
            let config = windowed(700 + roll(3_000));
            let words = ["word ", "必须保留 ", "Never do x. ", "x\n"][roll(4) as usize];
            let most = if roll(3) == 0 { 3_000 } else { 30 };
            world.take(goal_in(&config, &words.repeat(roll(most) as usize + 1)));
            let state = world.kernel.state();
            let alone = state.prompt().head_tokens() + goal_tokens(&world) + 64;
            let runs = world.call_model().is_some();
            assert!(
                runs || alone > config.limits.window,
                "{alone} of {}: {:?}",
                config.limits.window,
                world.kernel.outcome()
            );
            overflows += u64::from(!runs);
            for _ in 0..roll(4) {
                act(&mut world, &mut roll);
            }
        }
    }
    assert!(overflows > 20, "{overflows}");
}

fn goal_tokens(world: &World) -> u64 {
    content(&world.kernel.state().task().goal).len().div_ceil(4) as u64 + 8
}

/// Something happens to a goal: the model fails, or says something, or calls, and then the goal is left to the next one.
fn act(world: &mut World, roll: &mut impl FnMut(u64) -> u64) {
    let Some(call) = world.call_model() else { return };
    match roll(4) {
        0 => drop(world.take(fails(call.id, "provider_error"))),
        1 => drop(world.take(overflows(call.id))),
        2 => drop(world.take(Input::Reply(Reply { usage: None, ..reply(call.id, vec![said(&"y ".repeat(400))]) }))),
        _ => {
            let calls = (0..=roll(6)).map(|n| call_as("", "look", &format!("{{\"n\":{n}}}"))).collect();
            world.take(Input::Reply(Reply { usage: None, ..reply(call.id, calls) }));
            for run in world.runs() {
                world.take(result(run.id, &"z ".repeat(roll(3_000) as usize)));
            }
        }
    }
}

const CONSTRAINTS: &[&str] = &[
    "I am allergic to peanuts.",
    "Window seats are out of the question for me.",
    "Budget: 400 USD.",
    "Я не ем мясо.",
    "别订早上的航班。",
    "Non voglio volare di notte.",
    "Never book with Dr. Smith on Mondays.",
    "Report amounts in EUR.",
    "لا تحجز رحلات ليلية.",
    "비행기는 안 돼요.",
];

#[test]
fn what_the_user_said_stays_word_for_word_in_any_language_whatever_it_is_about() {
    for window in [4_000, 8_000, 32_000] {
        let long = format!("I would rather {}stay at home.", "never, as I said, ".repeat(60));
        let mut world = World::new();
        world.every = 1_000;
        let mut number = 0;
        for said in CONSTRAINTS.iter().copied().chain([long.as_str()]) {
            world.take(goal_in(&windowed(window), &format!("Visit {number}. {said} Thank you!")));
            let before = world.kernel.epoch();
            while world.kernel.epoch() == before {
                turn(&mut world, number, 900);
                number += 1;
            }
        }
        assert!(compressions(&world).len() >= 10);
        let text = whole(&world);
        let lost: Vec<_> =
            CONSTRAINTS.iter().copied().chain([long.as_str()]).filter(|said| !text.contains(said)).collect();
        assert_eq!(lost, Vec::<&str>::new(), "in a window of {window}");
    }
}

#[test]
fn an_opening_that_leaves_is_record_0_and_an_image_in_it_is_told_of() {
    let mut world = World::new();
    let image = Part::Image(Image { media_type: "image/png".into(), data: "aGk=".into(), url: String::new() });
    let goal = vec![text("Compare this."), image];
    world.take(Input::Start(Start { goal, config: windowed(6_000), criteria: vec![], feedback: vec![] }));
    for number in 0..3 {
        turn(&mut world, number, 4_000);
    }
    world.take(goal_in(&windowed(6_000), "And now?"));
    for number in 3..12 {
        turn(&mut world, number, 4_000);
    }
    let digest = compressions(&world).pop().unwrap().digest;
    assert_eq!((digest.from, digest.opening), (0, true));
    assert!(whole(&world).contains("Compare this.\\n[image image/png; recall(\\\"0\\\")]"), "{}", whole(&world));
}

#[test]
fn a_run_without_tools_is_offered_to_recall_once_something_left_and_from_then_on() {
    let config = Config { tools: vec![], ..windowed(2_000) };
    let tools = |world: &World| match &world.blocks()[0] {
        Block::Head(head) => head.tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>(),
        block => panic!("{block:?} is no head"),
    };
    let mut world = World::new();
    loop {
        world.take(goal_in(&config, "Tell me more."));
        if !compressions(&world).is_empty() {
            break;
        }
        assert_eq!(tools(&world), Vec::<String>::new());
        let id = world.call();
        world.take(Input::Reply(Reply { usage: None, ..reply(id, vec![said(&"more ".repeat(300))]) }));
    }
    assert_eq!((tools(&world), compressions(&world)[0].head.is_some()), (vec!["recall".into()], true));
    world.take(goal_in(&config, "More."));
    world.crash();
    world.take(resume_with(config));
    assert_eq!(tools(&world), ["recall"]);
}

#[test]
fn a_compression_says_what_left_and_what_was_shortened() {
    let compressed = |window, bytes| {
        let mut world = begun(windowed(window));
        (0..60).for_each(|number| drop(turn(&mut world, number, bytes)));
        compressions(&world)
    };
    let (collapses, elides) = (compressed(3_000, 200), compressed(8_000, 3_600));
    for each in collapses.iter().chain(&elides) {
        let stays: Vec<u64> = each.sources.iter().map(|source| source.seq).collect();
        assert!(each.shortened.iter().all(|seq| stays.contains(seq)), "{each:?}");
        assert_eq!((each.stages.last(), each.gone.is_empty()), (Some(&each.stage), each.stage == "elide"));
    }
    let gone: Vec<&String> = collapses.iter().flat_map(|each| &each.gone).collect();
    assert!(gone[0].starts_with("1-") && gone.len() > 1 && !elides[0].shortened.is_empty(), "{gone:?}");
}

#[test]
fn a_plan_at_its_bounds_and_a_storm_of_signals_never_fill_the_window() {
    for placement in [Placement::Frozen, Placement::Live] {
        let config = Config { placement, ..windowed(1_500) };
        let mut world = begun(config);
        let step = serde_json::json!({"text": "步 very long ".repeat(40), "status": "doing"});
        let plan = serde_json::json!({"steps": vec![step; 40], "progress": "p ".repeat(2_000)});
        world.take(replies(world.call(), vec![call_as("", "update_plan", &plan.to_string())]));
        assert!(whole(&world).contains("shortened to what there is room for"), "{}", whole(&world));
        world.take(replies(world.call(), vec![call("look")]));
        for number in 0..300 {
            let urgency = if number == 7 { Urgency::High } else { Urgency::Low };
            world.take(signal(&format!("news_{number}"), urgency, None));
        }
        world.take(result(world.runs()[0].id, "r"));
        let text = whole(&world);
        assert!(world.call_model().is_some() && text.contains("news_7 ") && text.contains("news_299"), "{text}");
        assert!(text.contains("more signals came before and are not told here; recall("), "{text}");
    }
}

#[test]
fn a_signal_that_is_too_long_is_told_in_short_with_the_way_to_the_rest() {
    let mut world = begun(windowed(2_000));
    world.take(signal(&"long ".repeat(4_000), Urgency::Low, None));
    world.take(replies(world.call(), vec![call("look")]));
    world.take(result(world.runs()[0].id, "r"));
    let text = whole(&world);
    assert!(world.call_model().is_some() && text.contains("characters left out; recall(\\\"1\\\")"), "{text}");
}
