//! Calls: judged, begun, settled.

use deepstrike_kernel::Millis;
use deepstrike_kernel::governance::{Call, Stage, StageVerdict, View, Windows};
use deepstrike_kernel::wire::event::{Event, Trail, Verdict};
use deepstrike_kernel::wire::input::{Input, Reply};
use deepstrike_kernel::wire::message::{AssistantPart, Block, CallPart, Ok, ReplyPart, Validated};

use crate::say::*;
use crate::world::World;

fn three(limit: u64) -> World {
    let config = limited(|limits| limits.parallel = limit);
    World::after([start_with(config), replies(0, vec![call("write"), call("put"), call("look")])])
}

fn names(world: &World) -> Vec<String> {
    world.runs().into_iter().map(|run| run.name).collect()
}

#[test]
fn parallel_calls_are_judged_and_begun_one_record_each() {
    let world = three(8);
    assert_eq!(kinds(&world.events(1)), ["replied", "judged", "judged", "judged", "begun", "begun", "begun"]);
    let ids: Vec<u64> = world.runs().iter().map(|run| run.id).collect();
    assert_eq!(ids, [2, 3, 4], "an effect's id is the seq of its Judged");
}

#[test]
fn not_more_tools_run_at_once_than_allowed() {
    let mut world = three(2);
    assert_eq!(names(&world), ["write", "put"]);
    let second = world.runs()[1].id;
    assert_eq!(kinds(&world.take(result(second, "r"))), ["settled", "begun"]);
    assert_eq!(names(&world), ["write", "look"]);
}

#[test]
fn results_stand_in_call_order_however_they_arrive() {
    let mut world = three(8);
    for at in [2, 0, 0] {
        let run = world.runs().remove(at);
        world.take(result(run.id, &run.name));
    }
    let blocks = world.blocks();
    let results = blocks.iter().filter_map(|block| match block {
        Block::Result(result) => Some(content(&result.parts)),
        _ => None,
    });
    assert_eq!(results.collect::<Vec<_>>(), ["write", "put", "look"]);
    assert_eq!(blocks.len(), 6);
}

#[test]
fn the_next_model_call_is_named_after_the_last_result() {
    let mut world = three(8);
    for run in world.runs() {
        world.take(result(run.id, "r"));
    }
    assert_eq!(world.call(), world.kernel.next_seq() - 1);
}

#[test]
fn a_call_that_does_not_validate_is_settled_unjudged_and_the_turn_goes_on() {
    let mut world = World::after([start()]);
    let events = world.take(replies(0, vec![bad_call("write"), call("look")]));
    assert_eq!(kinds(&events), ["replied", "judged", "settled", "begun"]);
    assert_eq!(settled(&events), [("invalid_arguments".into(), "a is missing".into())]);
    assert_eq!(names(&world), ["look"]);
}

#[test]
fn only_calls_that_do_not_validate_lead_straight_to_the_next_turn() {
    let mut world = World::after([start()]);
    let events = world.take(replies(0, vec![bad_call("write")]));
    assert_eq!(kinds(&events), ["replied", "settled"]);
    assert_eq!(world.kernel.phase(), "thinking");
}

#[test]
fn the_prompt_replays_the_models_own_text_and_the_tool_gets_the_validated_one() {
    let mut world = World::after([start()]);
    let part = ReplyPart::Call(CallPart {
        wire_id: "c".into(),
        name: "look".into(),
        args_text: "{\"n\": \"1\"}".into(),
        validated: Validated::Ok(Ok { text: Some("{\"n\":1}".into()) }),
    });
    world.take(replies(0, vec![part]));
    assert_eq!(world.runs()[0].args, "{\"n\":1}");
    assert_eq!(sent_arguments(&world), "{\"n\": \"1\"}");
}

fn sent_arguments(world: &World) -> String {
    let blocks = world.blocks();
    let Block::Assistant(block) = &blocks[2] else { panic!() };
    let AssistantPart::Call(call) = &block.parts[0] else { panic!() };
    call.args_text.to_string()
}

#[test]
fn arguments_that_are_no_object_are_sent_back_inside_one() {
    for (given, sent) in [("", "{}"), ("null", "{}"), ("{\"a\":", "{\"invalid_arguments\":\"{\\\"a\\\":\"}")] {
        let mut world = World::after([start()]);
        let Input::Reply(mut reply) = replies(0, vec![bad_call("write")]) else { panic!() };
        if let ReplyPart::Call(call) = &mut reply.parts[0] {
            call.args_text = given.into();
        }
        world.take(Input::Reply(Reply { ..reply }));
        assert_eq!(sent_arguments(&world), sent);
    }
}

#[test]
fn the_same_call_twice_runs_twice_under_two_keys() {
    let world = World::after([start(), replies(0, vec![call("look"), call("look")])]);
    let runs = world.runs();
    assert_eq!(runs.len(), 2);
    assert_ne!(runs[0].key, runs[1].key);
    assert_eq!(runs[0].key.len(), 32);
}

#[test]
fn a_tools_error_reaches_the_model_and_its_siblings_go_on() {
    let mut world = three(8);
    let run = world.runs().remove(1);
    let failed =
        deepstrike_kernel::wire::input::Result { effect: run.id, result: error("tool_error", "bad b"), spent: None };
    world.take(Input::Result(failed));
    assert_eq!(names(&world), ["write", "look"]);
}

#[test]
fn a_second_result_for_one_call_is_stale() {
    let mut world = three(8);
    let run = world.runs()[0].id;
    world.take(result(run, "r"));
    assert!(world.give(result(run, "again")).is_err());
}

fn gate(_: &View<'_>, call: &Call<'_>, _: &mut Windows, _: Millis) -> Result<StageVerdict, String> {
    let refuse = |retry_after_ms| StageVerdict::Refuse { rule: "r".into(), reason: "no".into(), retry_after_ms };
    match call.name {
        "write" => Ok(refuse(None)),
        "put" => Ok(refuse(Some(50))),
        "look" => Err("the clock is missing".into()),
        _ => Ok(StageVerdict::Allow),
    }
}

fn open(_: &View<'_>, _: &Call<'_>, _: &mut Windows, _: Millis) -> Result<StageVerdict, String> {
    Ok(StageVerdict::Allow)
}

const GATES: &[Stage] = &[Stage { name: "open", judge: open }, Stage { name: "gate", judge: gate }];

#[test]
fn a_refused_call_is_answered_with_the_reason_and_the_turn_goes_on() {
    let mut world = World::with_stages(GATES);
    world.take(start());
    let events = world.take(replies(0, vec![call("write"), call("put"), call("look")]));
    assert_eq!(
        settled(&events),
        [
            ("denied".to_string(), "denied by gate: no".to_string()),
            ("rate_limited".to_string(), "gate: no; try again in 50 ms".to_string()),
            ("denied".to_string(), "denied by gate: the clock is missing".to_string()),
        ]
    );
    assert_eq!(world.runs(), []);
    assert_eq!(world.kernel.phase(), "thinking");
}

#[test]
fn the_audit_names_what_every_stage_said() {
    let mut world = World::with_stages(GATES);
    world.take(governed(|policy| policy.audit = true));
    let events = world.take(replies(0, vec![call("write")]));
    let Some(Event::Judged(judged)) = events.get(1) else { panic!("{events:?}") };
    assert!(matches!(&judged.verdict, Verdict::Refuse(refuse) if refuse.stage == "gate" && refuse.rule == "r"));
    let trail = |stage: &'static str, verdict: &'static str, reason: &str| Trail {
        stage: stage.into(),
        verdict: verdict.into(),
        reason: reason.into(),
    };
    assert_eq!(judged.trail, [trail("open", "allow", ""), trail("gate", "refuse", "no")]);
}

#[test]
fn a_changed_policy_judges_again_what_has_not_begun() {
    let mut world = three(1);
    let events = world.take(set_policy());
    assert_eq!(kinds(&events), ["policy_changed", "judged", "judged"]);
    assert_eq!(names(&world), ["write"]);
}
