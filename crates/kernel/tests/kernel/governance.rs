//! The shipped stages, before real calls.

use deepstrike_kernel::governance::{Call, Name, STAGES, Schemas, Stage, StageVerdict, View, Windows, permit};
use deepstrike_kernel::wire::event::{Event, Trail, Verdict};
use deepstrike_kernel::wire::input::{Input, Interrupt, Resume, SetPolicy};
use deepstrike_kernel::wire::policy::{Action, Constraint, Mode, Permission, Permissions, Policy, Rate, Rule};
use deepstrike_kernel::{Kernel, Millis};

use crate::say::*;
use crate::world::{Quarters, World};

fn rule(pattern: &str, action: Action) -> Rule {
    Rule { pattern: pattern.into(), action, reason: String::new() }
}

fn rate(pattern: &str, max_calls: u64, window_ms: u64) -> Rate {
    Rate { pattern: pattern.into(), max_calls, window_ms }
}

/// What the calls of one reply come to: run, asked, or the text of their refusal.
fn fates(policy: impl FnOnce(&mut Policy), tools: &[&str]) -> Vec<String> {
    let mut world = World::with_stages(STAGES);
    world.take(governed(policy));
    let events = world.take(replies(0, tools.iter().map(|tool| call(tool)).collect()));
    let verdicts = events.into_iter().filter_map(|event| match event {
        Event::Judged(judged) => Some(judged.verdict),
        _ => None,
    });
    verdicts.map(told).collect()
}

fn told(verdict: Verdict) -> String {
    match verdict {
        Verdict::Allow(_) => "run".into(),
        Verdict::Ask(ask) => format!("ask by {}: {}", ask.stage, ask.rule),
        Verdict::Refuse(refuse) => format!("{} by {}", refuse.stage, refuse.rule),
    }
}

#[test]
fn deny_goes_before_ask_before_allow_in_any_order() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1]] {
        let rules = [rule("w*", Action::Allow), rule("wr*", Action::Ask), rule("write", Action::Deny)];
        let given: Vec<Rule> = order.iter().map(|at| rules[*at].clone()).collect();
        assert_eq!(fates(|policy| policy.rules = given, &["write"]), ["permission by deny write"]);
    }
    let both = || vec![rule("put", Action::Allow), rule("p?t", Action::Ask)];
    assert_eq!(fates(|policy| policy.rules = both(), &["put", "look"]), ["ask by permission: ask p?t", "run"]);
}

#[test]
fn the_default_holds_where_no_rule_fits() {
    let deny = |policy: &mut Policy| {
        policy.default = Action::Deny;
        policy.rules = vec![rule("look", Action::Allow)];
    };
    assert_eq!(fates(deny, &["look", "put"]), ["run", "permission by default"]);
    assert_eq!(fates(|policy| policy.default = Action::Ask, &["put"]), ["ask by permission: default"]);
}

#[test]
fn a_block_holds_against_every_grant() {
    let blocked = |policy: &mut Policy| {
        policy.rules = vec![rule("*", Action::Allow)];
        policy.blocked = vec!["w*".into()];
    };
    assert_eq!(fates(blocked, &["write", "put"]), ["veto by block w*", "run"]);
}

#[test]
fn a_permission_manager_has_to_agree() {
    let grant =
        |action: Action| Permission { tool: "put".into(), action: "call".into(), verdict: action, note: "n".into() };
    let with = |mode: Mode, entries: Vec<Permission>| {
        move |policy: &mut Policy| policy.permissions = vec![Permissions { mode, entries }]
    };
    let tools = ["put", "look"];
    assert_eq!(fates(with(Mode::Default, vec![grant(Action::Allow)]), &tools), ["run", "permission by default"]);
    assert_eq!(fates(with(Mode::Auto, vec![grant(Action::Deny)]), &tools), ["permission by deny put.call", "run"]);
    assert_eq!(fates(with(Mode::Plan, vec![grant(Action::Allow)]), &["put"]), ["permission by allow put.call"]);
    assert_eq!(fates(with(Mode::Default, vec![grant(Action::Ask)]), &["put"]), ["ask by permission: ask put.call"]);
}

#[test]
fn a_mode_that_lets_pass_what_was_not_revoked_does_not_lift_the_default() {
    let with = |default: Action, entries: Vec<Permission>| {
        move |policy: &mut Policy| {
            policy.default = default;
            policy.permissions = vec![Permissions { mode: Mode::Auto, entries }];
        }
    };
    let grant = Permission { tool: "put".into(), action: "call".into(), verdict: Action::Allow, note: String::new() };
    assert_eq!(fates(with(Action::Allow, vec![]), &["put"]), ["run"]);
    assert_eq!(fates(with(Action::Deny, vec![]), &["put"]), ["permission by default"]);
    assert_eq!(fates(with(Action::Ask, vec![]), &["put"]), ["ask by permission: default"]);
    assert_eq!(fates(with(Action::Deny, vec![grant]), &["put", "look"]), ["run", "permission by default"]);
}

#[test]
fn a_revocation_holds_until_a_later_grant_that_is_as_narrow_lifts_it() {
    let entry = |text: &str| {
        let mut words = text.split(' ');
        let mut word = || words.next().unwrap_or_default().to_string();
        let verdict = if word() == "grant" { Action::Allow } else { Action::Deny };
        Permission { verdict, tool: word(), action: word(), note: String::new() }
    };
    let says = |mode: Mode, entries: &[&str]| {
        permit(&Permissions { mode, entries: entries.iter().map(|text| entry(text)).collect() }, "fs", "delete").0
    };
    let cases: &[(&[&str], Action)] = &[
        (&["grant fs *", "revoke * *"], Action::Deny),
        (&["grant fs *", "revoke * delete"], Action::Deny),
        (&["grant fs delete", "revoke fs *"], Action::Deny),
        (&["revoke fs *", "grant fs delete"], Action::Allow),
        (&["revoke fs delete", "grant fs *"], Action::Deny),
        (&["revoke * delete", "grant fs *"], Action::Deny),
        (&["revoke * *", "grant fs *"], Action::Allow),
        (&["revoke fs delete", "grant * *", "grant fs delete"], Action::Allow),
        (&["grant fs *", "revoke fs del*"], Action::Deny),
        (&["grant fs *", "revoke f? [a-d]*"], Action::Deny),
        (&["revoke fs del*", "grant fs *"], Action::Deny),
        (&["revoke fs d*", "grant fs del*"], Action::Allow),
        (&["revoke fs [a-d]*", "grant fs del*"], Action::Deny),
        (&["revoke fs [a-d]*", "grant fs delete"], Action::Allow),
    ];
    for mode in [Mode::Default, Mode::Auto] {
        for (entries, wanted) in cases {
            assert_eq!(says(mode, entries), *wanted, "{mode:?} {entries:?}");
        }
    }
}

#[test]
fn a_limit_that_is_changed_begins_with_what_the_one_before_it_knows() {
    let rate = |calls: u64, ms: u64| Rate { pattern: "p*".into(), max_calls: calls, window_ms: ms };
    let name = |index: u64| Name { session: 1, reply: 1, index };
    let mut windows = Windows::default();
    windows.set(&[rate(3, 60_000)]);
    windows.take("put", &name(0), 1_000);
    windows.take("put", &name(1), 50_000);
    windows.set(&[rate(1, 30_000), rate(9, 60_000)]);
    assert_eq!(windows.wait(&rate(1, 30_000), &name(2), 51_000), Some(Some(29_000)));
    assert_eq!(windows.wait(&rate(9, 60_000), &name(2), 51_000), None);
    assert_eq!(windows.wait(&rate(2, 60_000), &name(2), 51_000), Some(Some(10_000)));
}

struct NoSecrets;

impl Schemas for NoSecrets {
    fn objection(&self, schemas: &[&str], document: &str) -> Result<Option<(usize, Vec<String>)>, String> {
        for (at, schema) in schemas.iter().enumerate() {
            match *schema {
                "broken" => return Err("schema: not JSON".into()),
                _ if document.contains("secret") => return Ok(Some((at, vec!["(root): a secret".into()]))),
                _ => {}
            }
        }
        Ok(None)
    }
}

fn kernel() -> Kernel {
    Kernel::new(Box::new(Quarters)).with_schemas(Box::new(NoSecrets))
}

fn judged(kernel: &mut Kernel, windows: &mut Windows, input: &Input, now: i64) -> Vec<String> {
    let text = serde_json::to_vec(input).unwrap();
    let lines = kernel.accept_with(windows, &text, Millis(now)).unwrap();
    let records = lines.iter().map(|line| serde_json::from_slice::<deepstrike_kernel::Record>(line).unwrap());
    let verdicts = records.filter_map(|record| match record.event {
        Event::Judged(judged) => Some(told(judged.verdict)),
        _ => None,
    });
    verdicts.collect()
}

#[test]
fn a_constraint_judges_the_arguments_and_a_broken_one_refuses() {
    let constrain = |schema: &str| {
        let constraint = Constraint { pattern: "p*".into(), schema: schema.into() };
        governed(|policy| policy.constraints = vec![constraint])
    };
    let reply = replies(0, vec![call_as("a", "put", "{\"key\":\"secret\"}"), call_as("b", "put", "{}"), call("look")]);
    let mut live = kernel();
    judged(&mut live, &mut Windows::default(), &constrain("{}"), 1);
    let verdicts = judged(&mut live, &mut Windows::default(), &reply, 2);
    assert_eq!(verdicts, ["constraint by constraint p* {}", "run", "run"]);
    let mut live = kernel();
    judged(&mut live, &mut Windows::default(), &constrain("broken"), 1);
    let verdicts = judged(&mut live, &mut Windows::default(), &reply, 2);
    assert_eq!(verdicts, ["constraint by error", "constraint by error", "run"]);
    let mut unequipped = Kernel::new(Box::new(Quarters));
    judged(&mut unequipped, &mut Windows::default(), &constrain("{}"), 1);
    assert_eq!(judged(&mut unequipped, &mut Windows::default(), &reply, 2)[1], "constraint by error");
}

fn limited_to(max_calls: u64) -> Input {
    governed(|policy| {
        policy.rates = vec![rate("p*", max_calls, 100)];
        policy.blocked = vec!["pat".into()];
    })
}

#[test]
fn a_rate_limit_is_an_exact_window_over_all_runs_that_share_it() {
    let mut windows = Windows::default();
    let (mut one, mut two) = (kernel(), kernel());
    let mut other = config();
    other.session = "other".into();
    other.policy.rates = vec![rate("p*", 2, 100)];
    judged(&mut one, &mut windows, &limited_to(2), 1_000);
    judged(&mut two, &mut windows, &start_with(other), 1_000);
    assert_eq!(judged(&mut one, &mut windows, &replies(0, vec![call("put")]), 1_000), ["run"]);
    assert_eq!(judged(&mut two, &mut windows, &replies(0, vec![call("put")]), 1_050), ["run"]);
    one.accept_input(result(2, "r"), Millis(1_060)).unwrap();
    let refused = judged(&mut one, &mut windows, &replies(4, vec![call("put"), call("look")]), 1_099);
    assert_eq!(refused, ["rate_limit by rate p* 2/100 ms", "run"]);
    two.accept_input(result(2, "r"), Millis(1_099)).unwrap();
    assert_eq!(judged(&mut two, &mut windows, &replies(4, vec![call("put")]), 1_100), ["run"]);
}

#[test]
fn a_refused_call_does_not_count_and_says_how_long_to_wait() {
    let mut world = World::with_stages(STAGES);
    world.take(limited_to(1));
    let events = world.take(replies(0, vec![call("pat"), call("put"), call("put")]));
    let kinds: Vec<(String, String)> = settled(&events);
    assert_eq!(kinds.len(), 2);
    assert_eq!(kinds[0].0, "denied");
    assert_eq!(kinds[1].0, "rate_limited");
    assert!(kinds[1].1.ends_with("try again in 100 ms"), "{}", kinds[1].1);
    assert_eq!(world.runs().len(), 1);
}

#[test]
fn a_limit_of_none_lets_nothing_pass_and_a_missing_clock_refuses() {
    let mut live = kernel();
    judged(&mut live, &mut Windows::default(), &limited_to(0), 5);
    assert_eq!(
        judged(&mut live, &mut Windows::default(), &replies(0, vec![call("put")]), 5),
        ["rate_limit by rate p* 0/100 ms"]
    );
    let mut blind = kernel();
    judged(&mut blind, &mut Windows::default(), &limited_to(5), 0);
    assert_eq!(judged(&mut blind, &mut Windows::default(), &replies(0, vec![call("put")]), 0), ["rate_limit by error"]);
}

#[test]
fn the_log_tells_fresh_windows_what_was_allowed() {
    let mut windows = Windows::default();
    let mut live = kernel();
    let mut log = Vec::new();
    for (input, now) in [(limited_to(1), 1_000), (replies(0, vec![call("put")]), 1_010), (result(2, "r"), 1_020)] {
        log.extend(live.accept_with(&mut windows, &serde_json::to_vec(&input).unwrap(), Millis(now)).unwrap());
    }
    let mut fresh = Windows::default();
    fresh.set(&[rate("p*", 1, 100)]);
    for _ in 0..2 {
        let lines = log.iter().map(Vec::as_slice);
        live = Kernel::replay_with(Box::new(Quarters), &mut fresh, lines).unwrap().with_schemas(Box::new(NoSecrets));
    }
    assert_eq!(
        judged(&mut live, &mut fresh, &replies(4, vec![call("put")]), 1_109),
        ["rate_limit by rate p* 1/100 ms"]
    );
}

#[test]
fn sessions_of_one_name_in_different_logs_count_apart() {
    let mut windows = Windows::default();
    let (mut one, mut two) = (kernel(), kernel());
    judged(&mut one, &mut windows, &limited_to(1), 1_000);
    judged(&mut two, &mut windows, &limited_to(1), 1_001);
    assert_eq!(judged(&mut one, &mut windows, &replies(0, vec![call("put")]), 1_010), ["run"]);
    let refused = judged(&mut two, &mut windows, &replies(0, vec![call("put")]), 1_010);
    assert_eq!(refused, ["rate_limit by rate p* 1/100 ms"]);
}

#[test]
fn a_call_judged_again_counts_from_its_last_time_also_when_the_log_tells_of_it() {
    let mut windows = Windows::default();
    let mut live = kernel();
    let mut log = Vec::new();
    let mut config = limited(|limits| limits.parallel = 1);
    config.policy.rates = vec![rate("p*", 1, 100)];
    let inputs = [
        (start_with(config.clone()), 1_000),
        (replies(0, vec![call("look"), call("put")]), 1_010),
        (Input::Resume(Resume { config: config.clone() }), 1_090),
    ];
    for (input, now) in inputs {
        log.extend(live.accept_with(&mut windows, &serde_json::to_vec(&input).unwrap(), Millis(now)).unwrap());
    }
    let mut told = Windows::default();
    told.set(&config.policy.rates);
    Kernel::replay_with(Box::new(Quarters), &mut told, log.iter().map(Vec::as_slice)).unwrap();
    for windows in [&mut windows, &mut told] {
        let mut other = kernel();
        judged(&mut other, windows, &start_with(config.clone()), 1_100);
        let refused = judged(&mut other, windows, &replies(0, vec![call("put")]), 1_189);
        assert_eq!(refused, ["rate_limit by rate p* 1/100 ms"]);
        other.accept_input(Input::Interrupt(Interrupt { reason: "r".into() }), Millis(1_190)).unwrap();
        let mut third = kernel();
        judged(&mut third, windows, &start_with(config.clone()), 1_190);
        assert_eq!(judged(&mut third, windows, &replies(0, vec![call("put")]), 1_190), ["run"]);
    }
}

#[test]
fn windows_that_heard_of_a_log_apart_count_with_the_others_by_the_limits_that_still_hold() {
    let name = |index: u64| Name { session: 1, reply: 1, index };
    let (old, new) = (rate("p*", 2, 100), rate("*", 2, 100));
    let mut windows = Windows::default();
    windows.set(std::slice::from_ref(&old));
    windows.take("put", &name(0), 10);
    let mut apart = windows.blank();
    assert_eq!(apart.wait(&old, &name(9), 10), None);
    for (index, at) in [(0, 20), (1, 30)] {
        apart.remember("put", &name(index), at);
    }
    windows.set(&[old.clone(), new.clone()]);
    windows.merge(apart);
    assert_eq!(windows.wait(&old, &name(9), 30), Some(Some(90)), "the first counts once, from 20 on");
    assert_eq!(windows.wait(&new, &name(9), 30), None);
}

fn fails(_: &View<'_>, _: &Call<'_>, _: &mut Windows, _: Millis) -> Result<StageVerdict, String> {
    Err("it broke".into())
}

#[test]
fn a_stage_that_fails_denies_whichever_it_is_and_the_record_says_so() {
    for (at, broken) in STAGES.iter().enumerate() {
        let mut stages = STAGES.to_vec();
        stages[at] = Stage { name: broken.name, judge: fails };
        let mut world = World::with_stages(Vec::leak(stages));
        world.take(governed(|policy| policy.rules = vec![rule("*", Action::Allow)]));
        let events = world.take(replies(0, vec![call("put")]));
        let Some(Event::Judged(judged)) = events.get(1) else { panic!("{events:?}") };
        assert_eq!(told(judged.verdict.clone()), format!("{} by error", broken.name));
        assert_eq!(judged.trail.last().map(|said| &*said.verdict), Some("error"));
        assert_eq!(settled(&events), [("denied".to_string(), format!("denied by {}: it broke", broken.name))]);
        assert!(world.runs().is_empty());
    }
}

#[test]
fn a_rejected_input_gives_its_slots_back() {
    let mut windows = Windows::default();
    let mut live = kernel();
    judged(&mut live, &mut windows, &limited_to(1), 1_000);
    let stale = serde_json::to_vec(&replies(9, vec![call("put")])).unwrap();
    live.accept_with(&mut windows, &stale, Millis(1_000)).unwrap_err();
    assert_eq!(judged(&mut live, &mut windows, &replies(0, vec![call("put")]), 1_000), ["run"]);
}

#[test]
fn a_call_judged_again_counts_once_and_the_new_policy_bites() {
    let mut world = World::with_stages(STAGES);
    let mut config = limited(|limits| limits.parallel = 1);
    config.policy.rates = vec![rate("*", 3, 1_000)];
    world.take(start_with(config));
    world.take(replies(0, vec![call("write"), call("put"), call("look")]));
    let mut policy = Policy { rates: vec![rate("*", 3, 1_000)], ..Policy::default() };
    policy.blocked = vec!["look".into()];
    let events = world.take(Input::SetPolicy(SetPolicy { policy }));
    assert_eq!(settled(&events).len(), 1, "only the blocked one is refused, none by the rate");
}

#[test]
fn an_audit_tells_of_calls_that_do_not_validate_too() {
    let mut world = World::with_stages(STAGES);
    world.take(governed(|policy| policy.audit = true));
    let events = world.take(replies(0, vec![bad_call("write"), call("look")]));
    assert_eq!(kinds(&events), ["replied", "judged", "judged", "settled", "begun"]);
    let Event::Judged(judged) = &events[1] else { panic!("{events:?}") };
    assert_eq!(told(judged.verdict.clone()), "validation by invalid_arguments");
    assert_eq!(judged.trail.len(), 1);
    assert_eq!(settled(&events), [("invalid_arguments".into(), "a is missing".into())]);
}

#[test]
fn the_trail_of_an_audited_call_names_all_stages() {
    let mut world = World::with_stages(STAGES);
    world.take(governed(|policy| policy.audit = true));
    let events = world.take(replies(0, vec![call("put")]));
    let Some(Event::Judged(judged)) = events.get(1) else { panic!("{events:?}") };
    let trail: Vec<Trail> = STAGES
        .iter()
        .map(|stage| Trail { stage: stage.name.into(), verdict: "allow".into(), reason: String::new() })
        .collect();
    assert_eq!(judged.trail, trail);
}
