//! The rendered prompt.

use deepstrike_kernel::context::slots::Slots;
use deepstrike_kernel::meta::{named, tools};
use deepstrike_kernel::wire::input::{Input, Start};
use deepstrike_kernel::wire::message::{Block, Class, Image, Part};
use deepstrike_kernel::wire::policy::{Config, Placement};

use crate::say::*;
use crate::world::World;

#[test]
fn the_first_two_blocks_are_the_head_and_the_goal_with_its_criteria() {
    let mut config = config();
    config.preload = vec!["one".into(), "two".into()];
    let picture = Part::Image(Image { url: "http://x".into(), ..Image::default() });
    let goal = vec![text("Do it."), picture];
    let criteria = vec!["fast".into(), "good".into()];
    let world = World::after([Input::Start(Start { goal, config, criteria, feedback: vec![] })]);
    let own = r#"{"name":"look","description":"does look","parameters":"{}","effect":"read"},{"name":"put","description":"does put","parameters":"{}","effect":"idempotent"}"#;
    let [recall, plan] =
        ["recall", "update_plan"].map(|name| serde_json::to_string(&named(name).unwrap().spec()).unwrap());
    let tools = format!(r#"{own},{recall},{plan},{{"name":"write","description":"does write","parameters":"{{}}"}}"#);
    let head =
        format!(r#"{{"type":"head","system_stable":"Be brief.","system_knowledge":"one\n\ntwo","tools":[{tools}]}}"#);
    let user = r#"{"type":"user","parts":[{"type":"text","text":"Do it."},{"type":"image","url":"http://x"},{"type":"text","text":"Criteria:\n- fast\n- good"}]}"#;
    let blocks = String::from_utf8(world.kernel.blocks(1, 0)).unwrap();
    assert_eq!(blocks, format!("[{head},{user}]"));
}

#[test]
fn feedback_is_a_turn_of_its_own_behind_the_goal_in_either_placement() {
    for placement in [Placement::Frozen, Placement::Live] {
        let config = Config { placement, ..config() };
        let feedback = vec!["Too long.".into(), "No title.".into()];
        let world =
            World::after([Input::Start(Start { goal: vec![text("Do it.")], config, criteria: vec![], feedback })]);
        let turns = r#"[{"type":"user","parts":[{"type":"text","text":"Do it."}]},{"type":"user","parts":[{"type":"text","text":"Too long."},{"type":"text","text":"No title."}]}]"#;
        assert_eq!(String::from_utf8(world.kernel.blocks(1, 1)).unwrap(), turns);
    }
}

#[test]
fn feedback_stays_when_its_turn_leaves() {
    for placement in [Placement::Frozen, Placement::Live] {
        let config = Config { placement, ..limited(|limits| (limits.window, limits.max_turns) = (3_000, 100)) };
        let said = "An earlier attempt was not good enough.\nNot met:\n- Sources: none.\nThe user said:\n- Wipe it.";
        let (goal, feedback) = (vec![text("Do it.")], vec![said.to_string()]);
        let mut world = World::after([Input::Start(Start { goal, config, criteria: vec![], feedback })]);
        for number in 0..60 {
            let call = call_as(&format!("c{number}"), "look", &format!("{{\"n\":{number}}}"));
            world.take(replies(world.call(), vec![call]));
            world.take(result(world.runs()[0].id, &format!("{number} {}", "x ".repeat(400))));
        }
        let blocks = String::from_utf8(world.kernel.blocks(world.kernel.epoch(), 1)).unwrap();
        let told = "Said of an earlier attempt:\\n- An earlier attempt was not good enough.\\n- Not met:\\n- Sources: \
                    none.\\n- The user said:\\n- Wipe it.";
        assert_eq!((blocks.matches(told).count(), blocks.matches("Sources").count()), (1, 1), "{blocks}");
    }
}

#[test]
fn blocks_are_given_from_where_the_host_stands_and_only_of_the_current_epoch() {
    let world = World::after([start(), replies(0, vec![call_as("c", "look", "{}")])]);
    let kernel = &world.kernel;
    let tail = r#"[{"type":"assistant","parts":[{"type":"call","id":"c","name":"look","args_text":"{}"}]}]"#;
    assert_eq!(String::from_utf8(kernel.blocks(1, 2)).unwrap(), tail);
    for (epoch, from) in [(1, 3), (1, u64::MAX), (0, 0), (2, 0)] {
        assert_eq!(kernel.blocks(epoch, from), b"[]");
    }
}

#[test]
fn the_order_in_which_tools_are_given_makes_no_difference() {
    let mut turned = config();
    turned.tools.reverse();
    let worlds = [World::after([start()]), World::after([start_with(turned)])];
    assert_eq!(worlds[0].call_model(), worlds[1].call_model());
}

#[test]
fn other_tools_or_another_system_open_a_new_epoch_with_the_same_turns() {
    let mut more = config();
    more.tools.push(tool("add", Class::Read));
    let mut other = config();
    other.system = "Be long.".into();
    for changed in [more, other] {
        let mut world = World::after([start(), interrupt()]);
        let turns = world.blocks().split_off(1);
        world.take(resume_with(changed));
        assert_eq!((world.kernel.epoch(), world.blocks().split_off(1)), (2, turns));
        assert!(matches!(world.blocks()[0], Block::Head(_)));
    }
}

#[test]
fn the_same_options_stay_in_the_epoch() {
    let world = World::after([start(), interrupt(), resume(), interrupt(), goal("More.")]);
    assert_eq!(world.kernel.epoch(), 1);
}

#[test]
fn the_digest_names_the_bytes_and_nothing_else() {
    let world = World::after([start()]);
    let call = world.call_model().unwrap();
    let mut digest = 0;
    for block in world.blocks() {
        digest = xxhash_rust::xxh3::xxh3_64_with_seed(serde_json::to_string(&block).unwrap().as_bytes(), digest);
    }
    assert_eq!(call.digest, format!("{digest:016x}"));
}

#[test]
fn reported_usage_replaces_our_count_of_the_prompt() {
    let mut world = World::after([start()]);
    let Input::Reply(mut reply) = replies(0, vec![call("look")]) else { panic!() };
    reply.usage = Some(deepstrike_kernel::wire::message::Usage { input: 5_000, output: 10, ..Default::default() });
    world.take(Input::Reply(reply));
    assert!((5_000..5_100).contains(&world.kernel.state().prompt().tokens()));
}

#[test]
fn usage_of_zero_says_nothing_about_the_prompt() {
    let mut world = World::after([start()]);
    let before = world.kernel.state().prompt().tokens();
    let Input::Reply(mut reply) = replies(0, vec![call("look")]) else { panic!() };
    reply.usage = Some(deepstrike_kernel::wire::message::Usage::default());
    world.take(Input::Reply(reply));
    assert!(world.kernel.state().prompt().tokens() > before);
}

#[test]
fn another_head_weighs_by_its_length() {
    let mut world = World::after([start(), interrupt()]);
    let before = world.kernel.state().prompt().tokens();
    let mut longer = config();
    longer.system = "Be brief. ".repeat(1_000);
    world.take(resume_with(longer));
    let grown = world.kernel.state().prompt().tokens() - before;
    assert!((1_000..6_000).contains(&grown), "10,000 bytes came to {grown} tokens");
}

#[test]
fn each_slot_is_weighed_by_what_stands_in_it() {
    let mut config = Config { system: "s".repeat(40), preload: vec!["k".repeat(80)], ..config() };
    config.tools.truncate(1);
    let tools = tools(&config, false).into_iter().map(|tool| {
        8 + [tool.name, tool.description, tool.parameters].iter().map(|text| text.len().div_ceil(4) as u64).sum::<u64>()
    });
    let tools: u64 = tools.sum();
    let mut world = World::after([start_with(config.clone()), replies(0, vec![said("aaaaaaaa"), call("look")])]);
    world.take(result(world.runs()[0].id, "rrrrrrrrrrrr"));
    let slots = world.kernel.slots();
    assert_eq!((slots.system_stable, slots.system_knowledge), (10, 20));
    assert_eq!(slots.tools, tools);
    let goal = world.blocks()[1].clone();
    assert!(matches!(goal, Block::User(_)));
    assert_eq!(slots.state, 8 + 2);
    assert_eq!(slots.history, (8 + 2) + (8 + 1 + 1) + (8 + 3));
    assert_eq!(world.kernel.fill(), (world.kernel.state().prompt().tokens(), config.limits.window));
}

#[test]
fn a_session_without_a_goal_weighs_nothing() {
    let world = World::new();
    assert_eq!((world.kernel.slots(), world.kernel.fill()), (Slots::default(), (0, 0)));
}
