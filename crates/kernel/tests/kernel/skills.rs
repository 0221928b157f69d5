//! Skills that are loaded, and what they let pass while they are active.

use deepstrike_kernel::Kernel;
use deepstrike_kernel::governance::STAGES;
use deepstrike_kernel::meta::META_TOOLS;
use deepstrike_kernel::wire::event::{Event, Refuse, Verdict};
use deepstrike_kernel::wire::input::{Input, Result as ToolEnd};
use deepstrike_kernel::wire::message::{Block, Class, ReplyPart};
use deepstrike_kernel::wire::policy::{Action, Config, Rule, Skill, Sources};

use crate::say::*;
use crate::world::{Quarters, World};

fn skill(name: &str, allowed: &[&str]) -> Skill {
    Skill { name: name.into(), allowed_tools: allowed.iter().map(|glob| (*glob).into()).collect() }
}

/// `reader` allows what begins with l, `writer` allows writing, `open` says nothing of tools.
fn skilled() -> Config {
    let skills = vec![skill("reader", &["l*"]), skill("writer", &["write"]), skill("open", &[])];
    Config { sources: Sources { skills, ..Sources::default() }, ..config() }
}

fn loads(name: &str) -> ReplyPart {
    call_as("", "skill", &format!(r#"{{"name":"{name}"}}"#))
}

fn world(config: Config) -> World {
    let mut world = World::with_stages(STAGES);
    world.take(start_with(config));
    world
}

/// Takes a reply of these calls, whose tools all give something; the fate of each call.
fn replied(world: &mut World, calls: Vec<ReplyPart>) -> Vec<String> {
    let events = world.take(replies(world.call(), calls));
    while let Some(run) = world.runs().first() {
        let effect = run.id;
        world.take(result(effect, "done"));
    }
    events.into_iter().filter_map(fate).collect()
}

fn fate(event: Event) -> Option<String> {
    let Event::Judged(judged) = event else { return None };
    Some(match judged.verdict {
        Verdict::Allow(_) => "run".into(),
        Verdict::Ask(ask) => format!("ask by {}", ask.rule),
        Verdict::Refuse(Refuse { stage, rule, .. }) => format!("{stage} by {rule}"),
    })
}

fn names(world: &World) -> Vec<String> {
    let Block::Head(head) = &world.blocks()[0] else { panic!() };
    head.tools.iter().map(|tool| tool.name.clone()).collect()
}

#[test]
fn each_source_brings_its_tool_and_the_tools_that_go_with_any() {
    let offered = |sources: Sources| {
        let world = world(Config { tools: vec![], sources, ..config() });
        assert!(
            META_TOOLS.iter().all(|tool| world.kernel.offers(tool.name) == names(&world).contains(&tool.name.into()))
        );
        names(&world)
    };
    assert_eq!(offered(Sources::default()), [""; 0]);
    let skills = vec![skill("open", &[])];
    assert_eq!(offered(Sources { skills, ..Sources::default() }), ["recall", "skill", "update_plan"]);
    assert_eq!(offered(Sources { knowledge: true, ..Sources::default() }), ["knowledge", "recall", "update_plan"]);
    assert_eq!(offered(Sources { memory: true, ..Sources::default() }), ["memory", "recall", "update_plan"]);
    assert!(!World::new().kernel.offers("recall") && !world(config()).kernel.offers("look"));
}

#[test]
fn a_loaded_skill_narrows_the_calls_of_later_replies_to_its_tools_and_the_runs_own() {
    let mut world = world(skilled());
    assert_eq!(replied(&mut world, vec![call("write"), loads("reader"), call("write")]), ["run", "run", "run"]);
    let calls = vec![call("look"), call("write"), call_as("", "recall", r#"{"ref":"0"}"#), call("update_plan")];
    assert_eq!(replied(&mut world, calls), ["run", "permission by skill reader", "run", "run"]);
    let Block::Result(refused) = world.blocks()[8].clone() else { panic!() };
    let told = r#"denied by permission: the skill "reader" is active and allows only l*, not "write""#;
    assert_eq!(content(&refused.parts), told);
}

#[test]
fn another_skill_takes_the_place_of_the_first_and_one_that_names_no_tools_frees_them() {
    let mut world = world(skilled());
    replied(&mut world, vec![loads("reader")]);
    replied(&mut world, vec![loads("writer")]);
    assert_eq!(replied(&mut world, vec![call("look"), call("write")]), ["permission by skill writer", "run"]);
    replied(&mut world, vec![loads("open")]);
    assert_eq!(replied(&mut world, vec![call("look"), call("write")]), ["run", "run"]);
}

#[test]
fn of_several_skills_in_one_reply_the_last_that_was_called_is_active_however_they_end() {
    let mut world = world(skilled());
    world.take(replies(0, vec![loads("reader"), loads("writer")]));
    let ids: Vec<u64> = world.runs().iter().map(|run| run.id).collect();
    for id in ids.into_iter().rev() {
        world.take(result(id, "body"));
    }
    assert_eq!(replied(&mut world, vec![call("look"), call("write")]), ["permission by skill writer", "run"]);
}

#[test]
fn a_skill_that_could_not_be_read_an_unknown_one_and_a_file_of_one_change_nothing() {
    let mut world = world(skilled());
    world.take(replies(0, vec![loads("reader")]));
    world.take(Input::Result(ToolEnd {
        effect: world.runs()[0].id,
        result: error("tool_error", "cannot be read"),
        spent: None,
    }));
    let file = call_as("", "skill", r#"{"name":"reader","file":"a.md"}"#);
    replied(&mut world, vec![loads("unknown"), file]);
    assert_eq!(replied(&mut world, vec![call("write")]), ["run"]);
}

#[test]
fn a_crash_and_a_resume_keep_the_skill_and_another_goal_begins_without() {
    let mut world = world(skilled());
    replied(&mut world, vec![loads("reader")]);
    world.kernel = Kernel::replay(Box::new(Quarters), world.log.iter().map(Vec::as_slice)).unwrap().with_stages(STAGES);
    world.take(resume_with(skilled()));
    assert_eq!(replied(&mut world, vec![call("write")]), ["permission by skill reader"]);
    let mut goal = skilled();
    goal.system = "Another.".into();
    world.take(start_with(goal));
    assert_eq!(replied(&mut world, vec![call("write")]), ["run"]);
}

#[test]
fn a_resumed_goal_goes_by_what_the_skill_allows_today_and_by_what_it_allowed_where_it_is_gone() {
    for (today, fates) in [
        (vec![skill("reader", &["write"])], ["run", "permission by skill reader"]),
        (vec![skill("reader", &[])], ["run", "run"]),
        (vec![], ["permission by skill reader", "run"]),
    ] {
        let mut world = world(skilled());
        replied(&mut world, vec![loads("reader")]);
        world.take(interrupt());
        world.take(resume_with(Config { sources: Sources { skills: today, ..Sources::default() }, ..config() }));
        assert_eq!(replied(&mut world, vec![call("write"), call("look")]), fates);
    }
}

#[test]
fn a_deny_of_the_policy_is_told_first_and_an_ask_does_not_open_what_the_skill_keeps_shut() {
    let rule = |pattern: &str, action| Rule { pattern: pattern.into(), action, reason: String::new() };
    let mut config = skilled();
    config.policy.rules = vec![rule("write", Action::Deny), rule("put", Action::Ask), rule("look", Action::Ask)];
    let mut world = world(config);
    replied(&mut world, vec![loads("reader")]);
    let fates = replied(&mut world, vec![call("write"), call("put"), call("look")]);
    assert_eq!(fates, ["permission by deny write", "permission by skill reader", "ask by ask look"]);
}

#[test]
fn the_runs_own_tools_need_a_rule_against_them_to_be_refused() {
    let mut config = skilled();
    config.sources = Sources { knowledge: true, memory: true, ..config.sources };
    config.policy.default = Action::Deny;
    let own = META_TOOLS.iter().filter(|tool| tool.own);
    let calls = || own.clone().map(|tool| call(tool.name)).collect::<Vec<_>>();
    let mut open = world(config.clone());
    let events = open.take(replies(open.call(), calls()));
    assert_eq!(events.into_iter().filter_map(fate).collect::<Vec<_>>(), ["run"; 5]);
    config.policy.blocked = vec!["skill".into()];
    let mut shut = world(config);
    let events = shut.take(replies(shut.call(), vec![loads("reader")]));
    assert_eq!(events.into_iter().filter_map(fate).collect::<Vec<_>>(), ["veto by block skill"]);
}

#[test]
fn a_long_list_of_tools_is_told_in_part() {
    let many: Vec<String> = (0..30).map(|number| format!("t{number}")).collect();
    let mut config = skilled();
    config.sources.skills = vec![Skill { name: "long".into(), allowed_tools: many }];
    let mut world = world(config);
    replied(&mut world, vec![loads("long")]);
    replied(&mut world, vec![call("write")]);
    let Block::Result(refused) = world.blocks().pop().unwrap() else { panic!() };
    assert!(content(&refused.parts).ends_with(r#"t18, t19, …, not "write""#));
}

#[test]
fn a_log_tells_which_skill_was_active_behind_which_record() {
    let mut world = world(skilled());
    replied(&mut world, vec![loads("reader")]);
    replied(&mut world, vec![loads("writer")]);
    world.take(goal("More."));
    let lines = world.log.iter().map(Vec::as_slice);
    let changes = Kernel::active_skills(Box::new(Quarters), lines).unwrap();
    let told: Vec<_> = changes.into_iter().map(|(seq, skill)| (seq, skill.map(|skill| skill.name))).collect();
    assert_eq!(told, [(4, Some("reader".into())), (8, Some("writer".into())), (9, None)]);
}

#[test]
fn the_names_of_the_kernels_own_tools_are_taken() {
    for own in META_TOOLS {
        let taken = Config { tools: vec![tool(own.name, Class::Read)], ..config() };
        assert!(World::new().give(start_with(taken)).is_err());
    }
}
