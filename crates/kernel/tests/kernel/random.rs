//! Any sequence of inputs: no panic, fold = live after every step (the `World` checks it, with pairing, growth and
//! refusals), and a rejected input changes nothing. `PROPTEST_CASES` sets how many; a failure prints its seed.

use deepstrike_kernel::governance::{Call, Stage, StageVerdict, View, Windows};
use deepstrike_kernel::wire::agents::{Agents, Grant, Spent};
use deepstrike_kernel::wire::input::{Finish, Input, Reply, Result as ToolEnd};
use deepstrike_kernel::wire::message::{Class, Ok as Valid, ReplyPart, ToolSpec, Usage, Validated};
use deepstrike_kernel::wire::policy::{Attended, Config};
use deepstrike_kernel::wire::signal::Urgency;
use deepstrike_kernel::{Kernel, Millis, Rejected};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::say::*;
use crate::world::{Quarters, World};

/// `write` is refused, `put` needs approval, everything else may run.
fn mixed(_: &View<'_>, call: &Call<'_>, _: &mut Windows, _: Millis) -> Result<StageVerdict, String> {
    Ok(match call.name {
        "write" => StageVerdict::Refuse { rule: "r".into(), reason: "no".into(), retry_after_ms: None },
        "put" => StageVerdict::Ask { rule: "r".into(), reason: "sure?".into() },
        _ => StageVerdict::Allow,
    })
}

const MIXED: &[Stage] = &[Stage { name: "mixed", judge: mixed }];

/// One step: an input made when its turn comes, since it names effects by their place among the pending ones.
#[derive(Clone, Debug)]
enum Step {
    Start(Config),
    Resume(Config),
    Reply {
        parts: Vec<ReplyPart>,
        finish: Finish,
        usage: Option<Usage>,
        complete: bool,
        bad_output: bool,
        faulty: bool,
        dear: bool,
    },
    Failure,
    Result(usize, usize),
    Suspend(usize),
    Value(usize),
    Approve(usize, Option<bool>),
    Deny(usize),
    Signal(Urgency, bool, Option<u8>),
    Signals(usize, bool),
    SetPolicy,
    Interrupt,
    Clock,
    Wait(i64),
    Crash,
    Stray(u8, u64),
}

fn configs() -> impl Strategy<Value = Config> {
    let numbers = (1_u64..8, 1_u64..4, proptest::option::of(0_u64..20_000), proptest::option::of(0_u64..400));
    (numbers, any::<(bool, bool, bool)>()).prop_map(
        |((turns, parallel, tokens, timeout), (approvals, suspensions, other))| {
            let mut config = limited(|limits| {
                limits.max_turns = turns * 3;
                limits.parallel = parallel;
                limits.max_total_tokens = tokens;
                limits.timeout_ms = timeout;
            });
            config.attended = Attended { approvals, suspensions };
            if other {
                config.tools.truncate(2);
                config.tools.push(ToolSpec { agent: true, ..tool("help", Class::Idempotent) });
                config.agents = Agents { delegate: approvals, depth: 2, children: 3, parent: None };
            }
            config
        },
    )
}

fn parts() -> impl Strategy<Value = Vec<ReplyPart>> {
    let part = prop_oneof![
        2 => "[ a-z]{0,6}".prop_map(|text| said(&text)),
         6 => ("(c|call_[0-9]_[0-9])?", "write|put|look|nothing|help|delegate", "\\{\\}|\\{|null|")
            .prop_map(|(id, name, args)| call_as(&id, &name, &args)),
        1 => Just(bad_call("look")),
    ];
    vec(part, 0..5)
}

fn finishes() -> impl Strategy<Value = Finish> {
    prop_oneof![
        12 => Just(Finish::Stop),
        2 => Just(Finish::ToolCalls),
        1 => Just(Finish::Length),
        1 => Just(Finish::ContentFilter),
        1 => Just(Finish::Other),
    ]
}

fn usages() -> impl Strategy<Value = Option<Usage>> {
    proptest::option::of((0_u64..900, 0_u64..90).prop_map(|(input, output)| Usage {
        input,
        output,
        ..Usage::default()
    }))
}

fn replies_any() -> impl Strategy<Value = Step> {
    let flags = (
        proptest::bool::weighted(0.8),
        proptest::bool::weighted(0.2),
        proptest::bool::weighted(0.3),
        proptest::bool::weighted(0.2),
    );
    (parts(), finishes(), usages(), flags).prop_map(|(parts, finish, usage, (complete, bad_output, faulty, dear))| {
        Step::Reply { parts, finish, usage, complete, bad_output, faulty: faulty && !complete, dear }
    })
}

fn urgencies() -> impl Strategy<Value = Urgency> {
    prop_oneof![Just(Urgency::Low), Just(Urgency::Normal), Just(Urgency::High), Just(Urgency::Critical)]
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => configs().prop_map(Step::Start),
        2 => configs().prop_map(Step::Resume),
        12 => replies_any(),
        1 => Just(Step::Failure),
        8 => (0_usize..4, 0_usize..40).prop_map(|(at, len)| Step::Result(at, len)),
        6 => (0_usize..4).prop_map(Step::Suspend),
        6 => (0_usize..4).prop_map(Step::Value),
        6 => (0_usize..4, any::<Option<bool>>()).prop_map(|(at, changed)| Step::Approve(at, changed)),
        2 => (0_usize..4).prop_map(Step::Deny),
        3 => (urgencies(), any::<bool>(), proptest::option::of(0_u8..3)).prop_map(|(u, i, k)| Step::Signal(u, i, k)),
        2 => (1_usize..40, any::<bool>()).prop_map(|(count, renews)| Step::Signals(count, renews)),
        1 => Just(Step::SetPolicy),
        1 => Just(Step::Interrupt),
        2 => Just(Step::Clock),
        2 => (-50_i64..200).prop_map(Step::Wait),
        3 => Just(Step::Crash),
        2 => (any::<u8>(), 0_u64..40).prop_map(|(kind, effect)| Step::Stray(kind, effect)),
    ]
}

/// The id at a place in a list, or one that is never owed.
fn nth(ids: &[u64], at: usize) -> u64 {
    if ids.is_empty() { 1_000_000 } else { ids[at % ids.len()] }
}

fn made(world: &World, step: Step) -> Option<Input> {
    let call = world.call_model().map_or(1_000_000, |call| call.id);
    let runs: Vec<u64> = world.runs().iter().map(|run| run.id).collect();
    let asks: Vec<u64> = world.asks().iter().map(|ask| ask.id).collect();
    Some(match step {
        Step::Start(config) => start_with(config),
        Step::Resume(config) => resume_with(config),
        Step::Reply { parts, finish, usage, complete, bad_output, faulty, dear } => {
            let output = bad_output.then(|| invalid("invalid_output", "wrong"));
            let fault = faulty.then(|| fault("stalled"));
            Input::Reply(Reply {
                finish,
                usage,
                complete,
                output,
                fault,
                price: dear.then(dollar),
                ..reply(call, parts)
            })
        }
        Step::Failure => fails(call, "overloaded"),
        Step::Result(at, len) => {
            let effect = nth(&runs, at);
            let grant = world.runs().into_iter().find(|run| run.id == effect).and_then(|run| run.grant);
            let spent = grant.map(|grant| spent(&grant, len as u64));
            Input::Result(ToolEnd { effect, result: good(&"x".repeat(len)), spent })
        }
        Step::Suspend(at) => suspends(nth(&runs, at)),
        Step::Value(at) => value(nth(&asks, at), "1"),
        Step::Approve(at, changed) => approve_with(nth(&asks, at), changed.map(arguments)),
        Step::Deny(at) => deny(nth(&asks, at)),
        Step::Signal(urgency, stops, key) => {
            let kind = if stops { "interrupt" } else { "news" };
            signal(kind, urgency, key.map(|key| key.to_string()).as_deref())
        }
        Step::Signals(count, renews) => together(&vec!["news"; count], renews),
        Step::SetPolicy => set_policy(),
        Step::Interrupt => interrupt(),
        Step::Clock => clock(),
        Step::Stray(kind, effect) => stray(kind, effect),
        Step::Wait(_) | Step::Crash => return None,
    })
}

/// What a sub-agent uses of its grant.
fn spent(grant: &Grant, len: u64) -> Spent {
    let usage = Usage { input: grant.tokens.unwrap_or(len).min(len), ..Usage::default() };
    Spent { turns: grant.turns.min(len), usage, cost: 0, unpriced: len.is_multiple_of(2) }
}

fn arguments(good: bool) -> Validated {
    if good { Validated::Ok(Valid { text: Some("{\"b\":1}".into()) }) } else { invalid("invalid_arguments", "wrong") }
}

fn stray(kind: u8, effect: u64) -> Input {
    match kind % 6 {
        0 => replies(effect, vec![said("stray")]),
        1 => fails(effect, "stray"),
        2 => result(effect, "stray"),
        3 => suspends(effect),
        4 => value(effect, "1"),
        _ => approve(effect),
    }
}

fn play(steps: Vec<Step>) -> World {
    let mut world = World::with_stages(MIXED);
    for step in steps {
        match step {
            Step::Wait(ms) => world.now += ms,
            Step::Crash => world.crash(),
            step => {
                let Some(input) = made(&world, step) else { continue };
                let before = world.log.len();
                if world.give(input).is_err() {
                    assert_eq!(world.log.len(), before);
                }
            }
        }
    }
    world
}

/// Fewer than proptest's own default: each case folds its log at every step.
fn counted() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(96);
    ProptestConfig { cases, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(counted())]

    #[test]
    fn any_sequence_of_inputs_folds_to_the_live_state(steps in vec(steps(), 0..40)) {
        let mut opened = vec![Step::Start(attended())];
        opened.extend(steps);
        play(opened);
    }

    #[test]
    fn any_finished_history_has_a_result_for_every_call(steps in vec(steps(), 0..30)) {
        let mut world = play([vec![Step::Start(config())], steps].concat());
        world.take(interrupt());
        prop_assert_eq!(world.kernel.phase(), "ended");
        prop_assert_eq!(world.kernel.pending(None), vec![]);
    }

    #[test]
    fn any_log_cut_anywhere_folds_and_takes_a_further_goal(steps in vec(steps(), 0..25), cut in any::<prop::sample::Index>()) {
        let played = play([vec![Step::Start(config())], steps].concat());
        let mut world = World::with_stages(MIXED);
        world.log = played.log[..cut.index(played.log.len() + 1)].to_vec();
        world.now = played.now + 1_000_000;
        world.kernel = Kernel::replay(Box::new(Quarters), world.log.iter().map(Vec::as_slice)).unwrap().with_stages(MIXED);
        world.take(goal("Go on."));
        prop_assert_eq!(world.kernel.phase(), "thinking");
    }

    #[test]
    fn bytes_that_are_no_input_are_refused_and_change_nothing(bytes in vec(any::<u8>(), 0..200)) {
        let mut world = World::after([start()]);
        prop_assert!(matches!(world.give_text(&bytes), Err(Rejected::Invalid(_))));
    }

    #[test]
    fn an_input_with_a_damaged_byte_never_panics(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut world = World::after([start(), interrupt()]);
        let mut text = serde_json::to_vec(&start()).unwrap();
        let at = at.index(text.len());
        text[at] = byte;
        let _ = world.give_text(&text);
    }

    #[test]
    fn a_log_with_a_damaged_byte_never_panics(steps in vec(steps(), 0..20), line in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut log = play([vec![Step::Start(config())], steps].concat()).log;
        let line = line.index(log.len());
        let at = at.index(log[line].len());
        log[line][at] = byte;
        let _ = Kernel::replay(Box::new(Quarters), log.iter().map(Vec::as_slice));
    }
}

#[test]
fn huge_deep_and_odd_inputs_are_refused() {
    let mut world = World::after([start()]);
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let numbers = ["-1", "1e400", "18446744073709551616", "NaN", "null", "1.0", "\"1\""];
    let mut texts = vec![String::new(), deep.clone(), format!(r#"{{"type":"clock","x":{deep}}}"#)];
    texts.extend(numbers.map(|number| format!(r#"{{"type":"suspend","effect":{number},"payload":"1"}}"#)));
    texts.push(r#"{"type":"clock"}{"type":"clock"}"#.into());
    texts.push(r#"{"effect":0,"type":"suspend","payload":"1"}"#.into());
    texts.push("[".repeat(10_000_000));
    for text in texts {
        assert!(matches!(world.give_text(text.as_bytes()), Err(Rejected::Invalid(_))), "{:.80}", text);
    }
    for now in [i64::MIN, -1, i64::MAX, 0] {
        world.now = now;
        world.give_text(br#"{"type":"clock"}"#).unwrap();
    }
}
