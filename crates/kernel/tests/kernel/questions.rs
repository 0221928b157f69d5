//! Approvals and suspensions.

use deepstrike_kernel::governance::{Call, Stage, StageVerdict, View, Windows};
use deepstrike_kernel::wire::effect::{Effect, Open, Question};
use deepstrike_kernel::wire::event::Status;
use deepstrike_kernel::wire::message::{Ok, Validated};
use deepstrike_kernel::wire::policy::Config;
use deepstrike_kernel::wire::signal::Urgency;
use deepstrike_kernel::{Millis, Rejected};

use crate::say::*;
use crate::world::World;

fn ask(_: &View<'_>, call: &Call<'_>, _: &mut Windows, _: Millis) -> Result<StageVerdict, String> {
    Ok(match call.name {
        "write" => StageVerdict::Ask { rule: "r".into(), reason: "it writes".into() },
        _ => StageVerdict::Allow,
    })
}

/// Refuses arguments with the word `secret`, also of an approved call.
fn no_secret(_: &View<'_>, call: &Call<'_>, _: &mut Windows, _: Millis) -> Result<StageVerdict, String> {
    Ok(match call.args.contains("secret") {
        true => StageVerdict::Refuse { rule: "s".into(), reason: "no secrets".into(), retry_after_ms: None },
        false => StageVerdict::Allow,
    })
}

const ASKING: &[Stage] = &[Stage { name: "ask", judge: ask }, Stage { name: "secret", judge: no_secret }];

fn asked() -> World {
    let mut world = World::with_stages(ASKING);
    world.take(start());
    world.take(replies(0, vec![call("write")]));
    world
}

#[test]
fn a_call_that_needs_approval_parks_the_run_where_nobody_gives_it() {
    let world = asked();
    assert_eq!(world.kernel.phase(), "waiting");
    let outcome = world.outcome();
    assert_eq!(outcome.status, Status::Suspended);
    assert_eq!(outcome.pending, [Open::AskUser(world.asks().remove(0))]);
    let Open::AskUser(question) = &outcome.pending[0];
    assert_eq!((question.kind, question.id, question.payload.as_str()), (Question::Approval, 2, "it writes"));
}

#[test]
fn a_call_that_needs_approval_acts_on_where_somebody_gives_it() {
    let mut world = World::with_stages(ASKING);
    world.take(start_with(attended()));
    world.take(replies(0, vec![call("write")]));
    assert_eq!((world.kernel.phase(), world.kernel.outcome()), ("acting", None));
}

#[test]
fn an_open_call_beside_a_question_keeps_the_run_acting() {
    let mut world = World::with_stages(ASKING);
    world.take(start());
    world.take(replies(0, vec![call("write"), call("look")]));
    assert_eq!(world.kernel.phase(), "acting");
    world.take(result(world.runs()[0].id, "r"));
    assert_eq!(world.kernel.phase(), "waiting");
}

#[test]
fn an_approved_call_is_judged_again_and_begins() {
    let mut world = asked();
    let events = world.take(approve(2));
    assert_eq!(kinds(&events), ["answered", "judged", "begun"]);
    assert_eq!(world.runs()[0].id, 6 - 2, "the id is the seq of the Judged that allowed it");
}

#[test]
fn changed_arguments_of_an_approval_are_what_runs() {
    let mut world = asked();
    let changed = Validated::Ok(Ok { text: Some("{\"to\":\"b\"}".into()) });
    world.take(approve_with(2, Some(changed)));
    assert_eq!(world.runs()[0].args, "{\"to\":\"b\"}");
}

#[test]
fn an_approval_does_not_open_what_another_stage_refuses() {
    let mut world = asked();
    let changed = Validated::Ok(Ok { text: Some("{\"to\":\"secret\"}".into()) });
    let events = world.take(approve_with(2, Some(changed)));
    assert_eq!(settled(&events), [("denied".into(), "denied by secret: no secrets".into())]);
}

#[test]
fn changed_arguments_that_do_not_validate_are_an_error_for_the_model() {
    let mut world = asked();
    let events = world.take(approve_with(2, Some(invalid("invalid_arguments", "to is missing"))));
    assert_eq!(settled(&events), [("invalid_arguments".into(), "to is missing".into())]);
}

#[test]
fn a_denied_call_is_settled_with_the_reason() {
    let mut world = asked();
    let events = world.take(deny(2));
    assert_eq!(kinds(&events), ["answered", "settled"]);
    assert_eq!(settled(&events), [("denied".into(), "denied: not today".into())]);
    assert_eq!(world.kernel.phase(), "thinking");
}

#[test]
fn an_answer_of_the_wrong_kind_is_invalid() {
    let mut world = asked();
    assert!(matches!(world.give(value(2, "1")), Err(Rejected::Invalid(_))));
    let mut world = suspended(false);
    for input in [approve(world.asks()[0].id), value(world.asks()[0].id, "{")] {
        assert!(matches!(world.give(input), Err(Rejected::Invalid(_))));
    }
}

#[test]
fn a_question_is_answered_once() {
    let mut world = asked();
    world.take(approve(2));
    assert_eq!(world.give(approve(2)), Err(Rejected::Stale { input: "answer", effect: 2 }));
}

fn suspended(present: bool) -> World {
    let config = if present { attended() } else { config() };
    let mut world = World::after([start_with(config), replies(0, vec![call("write")])]);
    world.take(suspends(world.runs()[0].id));
    world
}

#[test]
fn a_suspended_tool_parks_the_run_and_is_not_owed_any_more() {
    let world = suspended(false);
    assert_eq!((world.kernel.phase(), world.runs()), ("waiting", vec![]));
    let question = &world.asks()[0];
    assert_eq!((question.kind, question.payload.as_str(), question.id), (Question::Suspension, "{\"which\":1}", 4));
}

#[test]
fn a_parked_tool_is_begun_again_with_its_answers_under_the_same_key() {
    let mut world = World::after([start(), replies(0, vec![call("write")])]);
    let first = world.runs().remove(0);
    for answer in ["1", "2"] {
        world.take(suspends(first.id));
        let events = world.take(value(world.asks()[0].id, answer));
        assert_eq!(kinds(&events), ["answered", "begun"]);
    }
    let again = world.runs().remove(0);
    assert_eq!((again.id, &again.key, again.answers), (first.id, &first.key, vec!["1".to_string(), "2".to_string()]));
}

#[test]
fn a_tool_that_waits_in_this_process_stays_the_same_effect() {
    let mut world = World::after([start_with(attended()), replies(0, vec![call("write")])]);
    let before = world.runs();
    world.take(suspends(before[0].id));
    assert_eq!((world.kernel.phase(), world.runs()), ("acting", before.clone()));
    assert_eq!(kinds(&world.take(value(world.asks()[0].id, "1"))), ["answered"]);
    assert_eq!((world.asks(), world.runs()), (vec![], before.clone()));
    assert_eq!(kinds(&world.take(result(before[0].id, "r"))), ["settled"]);
}

#[test]
fn a_tool_that_ends_without_its_answer_is_settled() {
    let mut world = suspended(true);
    assert_eq!(kinds(&world.take(result(world.runs()[0].id, "gave up"))), ["settled"]);
    assert_eq!(world.asks(), vec![]);
}

#[test]
fn a_tools_question_that_gets_no_answer_settles_its_call_with_the_reason() {
    for present in [true, false] {
        let mut world = suspended(present);
        let events = world.take(deny(world.asks()[0].id));
        assert_eq!(kinds(&events), ["answered", "settled"]);
        assert_eq!(settled(&events), [("exception".into(), "not today".into())]);
        assert_eq!((world.runs(), world.kernel.phase()), (vec![], "thinking"));
    }
}

#[test]
fn a_tools_question_that_gets_no_answer_when_time_is_up_says_that_the_tool_had_begun() {
    let config = Config { attended: attended().attended, ..limited(|limits| limits.timeout_ms = Some(10)) };
    let mut world = World::after([start_with(config), replies(0, vec![call("write")])]);
    world.take(suspends(world.runs()[0].id));
    world.later(20);
    let ask = world.asks()[0].id;
    assert_eq!(settled(&world.take(deny(ask)))[0].0, "cancelled");
}

#[test]
fn a_tool_that_waits_cannot_ask_a_second_time() {
    let mut world = suspended(true);
    assert!(matches!(world.give(suspends(world.runs()[0].id)), Err(Rejected::Invalid(_))));
}

#[test]
fn a_tool_that_waited_in_a_process_that_died_is_begun_again_when_its_answer_comes() {
    let mut world = suspended(true);
    world.crash();
    let asks = world.asks();
    assert_eq!(kinds(&world.take(resume_with(attended()))), ["resumed"]);
    assert_eq!((world.asks(), world.runs()), (asks.clone(), vec![]));
    assert_eq!(kinds(&world.take(value(asks[0].id, "1"))), ["answered", "begun"]);
    assert_eq!(world.runs()[0].answers, ["1"]);
}

#[test]
fn a_once_tool_parked_at_a_question_is_not_unknown_but_after_its_next_begin_it_is() {
    let mut world = suspended(false);
    world.crash();
    world.take(resume());
    world.take(value(world.asks()[0].id, "1"));
    world.crash();
    assert_eq!(settled(&world.take(resume()))[0].0, "outcome_unknown");
}

#[test]
fn an_interrupted_question_says_what_its_call_may_have_done() {
    assert_eq!(settled(&asked().take(interrupt()))[0].0, "not_run");
    assert_eq!(settled(&suspended(false).take(interrupt()))[0].0, "cancelled");
}

#[test]
fn a_new_goal_withdraws_what_is_asked() {
    assert_eq!(settled(&asked().take(goal("Other.")))[0].0, "withdrawn");
    assert_eq!(settled(&suspended(false).take(goal("Other.")))[0].0, "withdrawn");
}

#[test]
fn a_high_signal_supersedes_a_call_that_waits_for_approval_but_not_one_that_has_begun() {
    let mut world = asked();
    let events = world.take(signal("news", Urgency::High, None));
    assert_eq!(settled(&events), [("not_run".into(), "not run: superseded".into())]);
    assert_eq!(world.kernel.phase(), "thinking");
    let mut world = suspended(false);
    assert_eq!(kinds(&world.take(signal("news", Urgency::High, None))), ["signalled"]);
    assert_eq!(world.kernel.phase(), "waiting");
}

#[test]
fn what_is_owed_comes_in_the_order_of_its_ids_and_from_a_given_one_on() {
    let mut world = World::with_stages(ASKING);
    world.take(start());
    world.take(replies(0, vec![call("look"), call("write"), call("look")]));
    let ids = |since| world.kernel.pending(since).iter().map(Effect::id).collect::<Vec<_>>();
    assert_eq!((ids(None), ids(Some(2)), ids(Some(4))), (vec![2, 3, 4], vec![3, 4], vec![]));
}
