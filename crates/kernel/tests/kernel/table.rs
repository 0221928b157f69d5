//! Every cell of the life cycle.

use deepstrike_kernel::Rejected;
use deepstrike_kernel::wire::input::Input;
use deepstrike_kernel::wire::signal::Urgency;

use crate::say::*;
use crate::world::World;

/// Worlds in each phase, with an effect id that is owed there.
fn worlds() -> Vec<(&'static str, World, u64)> {
    let idle = World::new();
    let thinking = World::after([start()]);
    let acting = World::after([start(), replies(0, vec![call("look")])]);
    let run = acting.runs()[0].id;
    let mut waiting = World::after([start(), replies(0, vec![call("look")])]);
    waiting.take(suspends(run));
    let ask = waiting.asks()[0].id;
    let ended = World::after([start(), interrupt()]);
    vec![
        ("idle", idle, 0),
        ("thinking", thinking, 0),
        ("acting", acting, run),
        ("waiting", waiting, ask),
        ("ended", ended, 0),
    ]
}

fn inputs(effect: u64) -> Vec<Input> {
    vec![
        start(),
        resume(),
        replies(effect, vec![said("done")]),
        fails(effect, "overloaded"),
        result(effect, "r"),
        suspends(effect),
        value(effect, "1"),
        signal("news", Urgency::Normal, None),
        set_policy(),
        interrupt(),
        clock(),
        summary(effect, "said"),
    ]
}

/// What each input comes to: the records it makes, or how it is rejected.
fn cell(mut world: World, input: Input) -> String {
    match world.give(input) {
        Ok(events) => kinds(&events).join("+"),
        Err(Rejected::Stale { .. }) => "stale".into(),
        Err(Rejected::Refused { .. }) => "refused".into(),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn every_input_in_every_phase_does_what_the_table_says() {
    let expected = [
        // start
        ["started", "started", "settled+started", "settled+started", "started"],
        // resume: a running read is begun again
        ["refused", "resumed", "resumed+begun", "resumed", "resumed"],
        // reply
        ["refused", "replied+ended", "stale", "stale", "stale"],
        // failure
        ["refused", "failed+ended", "stale", "stale", "stale"],
        // result
        ["refused", "stale", "settled", "stale", "stale"],
        // suspend
        ["refused", "stale", "suspended", "stale", "stale"],
        // answer: a value takes the tool up again; in acting nothing was asked
        ["refused", "stale", "stale", "answered+begun", "stale"],
        // signal
        ["refused", "signalled", "signalled", "signalled", "refused"],
        // set_policy
        ["refused", "policy_changed", "policy_changed", "policy_changed", "refused"],
        // interrupt
        ["", "ended", "settled+ended", "settled+ended", ""],
        // clock, before the deadline
        ["", "", "", "", ""],
        // summary: none is owed
        ["refused", "stale", "stale", "stale", "stale"],
    ];
    for (row, expected) in expected.iter().enumerate() {
        for (column, expected) in expected.iter().enumerate() {
            let (phase, world, effect) = worlds().swap_remove(column);
            assert_eq!(world.kernel.phase(), phase);
            let input = inputs(effect).swap_remove(row);
            let tag = input.tag();
            assert_eq!(cell(world, input), *expected, "{tag} while {phase}");
        }
    }
}

#[test]
fn an_answer_to_something_else_than_what_is_owed_is_stale() {
    for (phase, mut world, _) in worlds().into_iter().skip(1) {
        for input in inputs(99).into_iter().skip(2).take(5) {
            let tag = input.tag();
            assert_eq!(world.give(input), Err(Rejected::Stale { input: tag, effect: 99 }), "{tag} while {phase}");
        }
    }
}

#[test]
fn an_interrupt_or_a_clock_without_a_running_goal_makes_no_record() {
    for input in [interrupt(), clock()] {
        let mut world = World::new();
        assert_eq!(world.take(input), vec![]);
    }
}
