//! Sub-agents: what they are granted, what comes back, and how they are taken up again.

use deepstrike_kernel::wire::agents::{Agents, Grant, Parent, Spent};
use deepstrike_kernel::wire::effect::{Question, RunTool};
use deepstrike_kernel::wire::event::{Event, Status};
use deepstrike_kernel::wire::input::{Input, Reply, Result as ToolEnd};
use deepstrike_kernel::wire::message::{Class, ReplyPart, Usage};
use deepstrike_kernel::wire::policy::{Action, Attended, Config, Limits, Policy, Skill, Sources};

use crate::say::*;
use crate::world::World;

fn agents() -> Agents {
    Agents { delegate: true, depth: 3, children: 8, parent: None }
}

fn delegating(change: impl FnOnce(&mut Limits)) -> Config {
    Config { agents: agents(), ..limited(change) }
}

fn delegate(id: &str) -> ReplyPart {
    call_as(id, "delegate", "{\"task\":\"Look.\"}")
}

fn spent(turns: u64, tokens: u64) -> Spent {
    Spent { turns, usage: Usage { input: tokens, ..Usage::default() }, cost: turns, unpriced: false }
}

fn comes_back(run: &RunTool, spent: Spent) -> Input {
    Input::Result(ToolEnd { effect: run.id, result: good("done"), spent: Some(spent) })
}

fn grants(world: &World) -> Vec<Grant> {
    world.runs().into_iter().filter_map(|run| run.grant).collect()
}

fn turns(turns: u64) -> Grant {
    Grant { turns, ..Grant::default() }
}

#[test]
fn delegate_is_offered_only_to_those_who_may() {
    let offered = |agents| {
        let world = World::after([start_with(Config { agents, ..config() })]);
        String::from_utf8(world.kernel.blocks(1, 0)).unwrap().contains("\"delegate\"")
    };
    assert_eq!([agents(), Agents { depth: 0, ..agents() }, Agents::default()].map(offered), [true, false, false]);
}

#[test]
fn parallel_sub_agents_share_what_is_left_with_their_parent() {
    let limits = |limits: &mut Limits| {
        (limits.max_turns, limits.max_total_tokens, limits.timeout_ms) = (13, Some(9_000), Some(1_000));
    };
    let mut world = World::after([start_with(delegating(limits))]);
    let usage = Some(Usage { input: 900, output: 100, ..Usage::default() });
    let parts = vec![delegate("a"), delegate("b"), call_as("l", "look", "{}")];
    world.take(Input::Reply(Reply { usage, ..reply(0, parts) }));
    let left = 8_000 - world.kernel.state().prompt().tokens();
    let each = Grant { turns: 4, tokens: Some(left / 3), cost: None, time_ms: Some(899), only: vec![] };
    assert_eq!(grants(&world), [each.clone(), each]);
}

#[test]
fn what_a_sub_agent_leaves_goes_to_the_next() {
    let config = delegating(|limits| (limits.max_turns, limits.parallel) = (13, 1));
    let mut world = World::after([start_with(config)]);
    world.take(replies(0, vec![delegate("a"), delegate("b")]));
    assert_eq!(grants(&world), [turns(4)]);
    world.take(comes_back(&world.runs()[0], spent(1, 10)));
    assert_eq!(grants(&world), [turns(5)]);
    world.take(comes_back(&world.runs()[0], spent(5, 10)));
    world.take(replies(world.call(), vec![said("done")]));
    let outcome = world.outcome();
    assert_eq!((outcome.status, outcome.turns, outcome.cost), (Status::Completed, 8, 6));
}

#[test]
fn the_limits_of_a_parent_count_what_its_sub_agents_used() {
    let mut world = World::after([start_with(delegating(|limits| limits.max_turns = 4))]);
    world.take(replies(0, vec![delegate("a")]));
    assert_eq!(grants(&world), [turns(1)]);
    world.take(comes_back(&world.runs()[0], spent(1, 10)));
    world.take(replies(world.call(), vec![delegate("b")]));
    assert_eq!(
        settled(&world.events(0)).last().unwrap().1,
        "not run: too little is left for a sub-agent (max_turns = 4)"
    );
    let events = world.take(replies(world.call(), vec![call("look")]));
    assert_eq!((end(&events), world.outcome().turns), (Some((Status::MaxTurns, "max_turns".into())), 4));
}

#[test]
fn the_share_of_money_is_what_the_next_prompt_leaves() {
    let config = Config { agents: agents(), ..priced(30_000) };
    let mut world = World::after([start_with(config)]);
    let usage = Some(Usage { input: 1_000, output: 100, ..Usage::default() });
    world.take(Input::Reply(Reply { usage, ..reply(0, vec![delegate("a")]) }));
    let left = 30_000 - 1_200 - world.kernel.state().prompt().tokens();
    assert_eq!(grants(&world).first().and_then(|grant| grant.cost), Some(left / 2));
}

#[test]
fn no_more_sub_agents_than_allowed_are_put_to_work() {
    let agents = Agents { children: 2, ..agents() };
    let mut world = World::after([start_with(Config { agents, ..config() })]);
    let events = world.take(replies(0, ["a", "b", "c"].map(delegate).to_vec()));
    let why = "not run: 2 sub-agents were put to work for this goal, and no more may be; do it yourself";
    assert_eq!((settled(&events), grants(&world).len()), (vec![("not_run".into(), why.into())], 2));
}

#[test]
fn agents_that_are_nested_too_deep_are_not_run() {
    let parent = Parent { session: "s".into(), path: vec!["a-1".into(), "b-2".into()] };
    let agents = Agents { depth: 0, parent: Some(parent), ..agents() };
    let mut config = Config { agents, ..config() };
    config.tools.push(deepstrike_kernel::wire::message::ToolSpec { agent: true, ..tool("help", Class::Idempotent) });
    let mut world = World::after([start_with(config)]);
    let events = world.take(replies(0, vec![delegate("a"), call_as("b", "help", "{}")]));
    let why = "not run: agents are nested 2 deep already, which is as deep as they may; do it yourself";
    assert_eq!(settled(&events), vec![("not_run".to_string(), why.to_string()); 2]);
}

#[test]
fn after_a_crash_a_sub_agent_goes_on_under_the_same_name_and_grant() {
    let mut world = World::after([start_with(delegating(|limits| limits.max_turns = 13))]);
    world.take(replies(0, vec![delegate("a"), delegate("b")]));
    let before = world.runs();
    world.crash();
    let agents = Agents { children: 1, ..agents() };
    world.take(resume_with(Config { agents, ..limited(|limits| limits.max_turns = 40) }));
    assert_eq!(world.runs(), before);
}

#[test]
fn what_a_sub_agent_asks_parks_its_parent_whoever_is_there() {
    let config = Config { attended: Attended { approvals: true, suspensions: true }, ..delegating(|_| {}) };
    let mut world = World::after([start_with(config)]);
    world.take(replies(0, vec![delegate("a")]));
    let run = world.runs()[0].clone();
    world.take(suspends(run.id));
    assert_eq!((world.kernel.phase(), world.runs().len(), world.asks()[0].kind), ("waiting", 0, Question::Agent));
    world.crash();
    world.take(resume_with(Config { agents: agents(), ..attended() }));
    assert_eq!(world.kernel.phase(), "waiting");
    world.take(value(world.asks()[0].id, "{}"));
    assert_eq!(world.runs(), [RunTool { answers: vec!["{}".into()], ..run }]);
}

#[test]
fn governance_judges_delegate_like_any_tool() {
    let policy = Policy { default: Action::Deny, ..Policy::default() };
    let mut world = World::with_stages(deepstrike_kernel::governance::STAGES);
    world.take(start_with(Config { policy, ..delegating(|_| {}) }));
    let events = world.take(replies(0, vec![delegate("a")]));
    assert_eq!(settled(&events)[0].0, "denied");
}

#[test]
fn only_a_sub_agent_spends() {
    let mut world = World::after([start_with(delegating(|_| {}))]);
    world.take(replies(0, vec![call("look")]));
    let events = world.take(comes_back(&world.runs()[0], spent(3, 30)));
    assert!(matches!(&events[0], Event::Settled(settled) if settled.spent.is_none()));
}

#[test]
fn a_skill_narrows_what_is_granted_to_sub_agents() {
    let skill = Skill { name: "sums".into(), allowed_tools: vec!["look".into(), "delegate".into()] };
    let sources = Sources { skills: vec![skill.clone()], ..Sources::default() };
    let mut world = World::after([start_with(Config { sources, ..delegating(|_| {}) })]);
    world.take(replies(0, vec![call_as("s", "skill", "{\"name\":\"sums\"}")]));
    world.take(result(world.runs()[0].id, "Add."));
    world.take(replies(world.call(), vec![delegate("a")]));
    assert_eq!(grants(&world).into_iter().map(|grant| grant.only).collect::<Vec<_>>(), [skill.allowed_tools]);
}
