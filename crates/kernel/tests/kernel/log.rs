//! Reading a log back.

use deepstrike_kernel::wire::event::{Compressed, Event, StateChanged};
use deepstrike_kernel::wire::message::Block;
use deepstrike_kernel::wire::task::{Digest, Role, Source};
use deepstrike_kernel::{Corrupt, Kernel, Record};

use crate::say::*;
use crate::world::{Quarters, World};

fn replay(log: &[Vec<u8>]) -> Result<Kernel, Corrupt> {
    Kernel::replay(Box::new(Quarters), log.iter().map(Vec::as_slice))
}

fn whole() -> World {
    let mut world = World::after([start(), replies(0, vec![said("I look."), call("look")])]);
    world.take(result(world.runs()[0].id, "r"));
    world.take(replies(world.call(), vec![said("done")]));
    world
}

/// The log with one line changed.
fn changed(at: usize, from: &str, to: &str) -> Vec<Vec<u8>> {
    let mut log = whole().log;
    let line = String::from_utf8(log[at].clone()).unwrap();
    assert!(line.contains(from), "{line}");
    log[at] = line.replacen(from, to, 1).into_bytes();
    log
}

fn line(seq: usize, event: &str, rest: &str) -> Vec<u8> {
    format!(r#"{{"seq":{seq},"at":99999,"event":{event}{rest}}}"#).into_bytes()
}

#[test]
fn unknown_fields_of_records_are_ignored_at_any_depth() {
    let mut log = changed(0, r#""limits":{"#, r#""limits":{"later":[{"deep":1}],"#);
    let end = log.len() - 1;
    log[end] = String::from_utf8(log[end].clone()).unwrap().replacen("{", r#"{"v":1.5,"#, 1).into_bytes();
    assert_eq!(replay(&log).unwrap().state(), replay(&whole().log).unwrap().state());
}

#[test]
fn an_unknown_kind_is_passed_over_only_if_it_says_so() {
    let mut log = whole().log;
    log.push(line(7, r#"{"type":"dreamt","of":["sheep"]}"#, r#","optional":true"#));
    assert_eq!(replay(&log).unwrap().next_seq(), 8);
    log.push(line(8, r#"{"type":"dreamt"}"#, ""));
    assert_eq!(replay(&log).unwrap_err(), Corrupt::UnknownKind { seq: 8, kind: "dreamt".into(), format: 1 });
}

#[test]
fn a_newer_format_is_named() {
    let log = changed(0, r#""format":1"#, r#""format":2"#);
    assert_eq!(replay(&log).unwrap_err(), Corrupt::Newer { seq: 0, format: 2, known: 1 });
}

#[test]
fn missing_doubled_and_unreadable_records_are_found() {
    let log = whole().log;
    let mut missing = log.clone();
    missing.remove(2);
    assert_eq!(replay(&missing).unwrap_err(), Corrupt::Gap { expected: 2, found: 3 });
    let mut doubled = log.clone();
    doubled.insert(2, log[1].clone());
    assert_eq!(replay(&doubled).unwrap_err(), Corrupt::Gap { expected: 2, found: 1 });
    let mut torn = log;
    torn[3].truncate(20);
    assert!(matches!(replay(&torn).unwrap_err(), Corrupt::Unreadable { seq: 3, .. }));
}

#[test]
fn a_prompt_that_folds_to_other_bytes_is_found() {
    let log = changed(0, "Do it.", "Do it!");
    assert!(matches!(replay(&log).unwrap_err(), Corrupt::Digest { seq: 1, .. }));
}

#[test]
fn digests_of_another_renderer_are_not_compared_and_a_resume_opens_a_new_epoch() {
    let mut world = World::new();
    world.log = changed(0, r#""renderer":3"#, r#""renderer":0"#);
    world.log[0] = String::from_utf8(world.log[0].clone()).unwrap().replace("Do it.", "Do it!").into_bytes();
    world.log.truncate(5);
    world.kernel = replay(&world.log).unwrap();
    world.now += 1_000;
    world.take(resume());
    assert_eq!(world.kernel.epoch(), 2);
}

#[test]
fn a_record_that_cannot_follow_is_found() {
    let log = whole().log;
    let cases = [
        (0, r#"{"type":"ended","status":"completed"}"#),
        (0, r#"{"type":"resumed","format":1,"renderer":1,"config":CONFIG}"#),
        (2, r#"{"type":"begun","call":{"reply":1,"index":0},"effect":2}"#),
        (3, r#"{"type":"judged","call":{"reply":1,"index":0},"verdict":{"type":"allow"}}"#),
        (3, r#"{"type":"settled","call":{"reply":1,"index":1},"result":{"parts":[]},"tokens":1}"#),
        (3, r#"{"type":"ended","status":"completed"}"#),
        (3, r#"{"type":"suspended","call":{"reply":1,"index":0},"payload":"1"}"#),
        (3, r#"{"type":"failed","effect":0,"fault":{"code":"x","message":"y"}}"#),
    ];
    let config = serde_json::to_string(&config()).unwrap();
    for (at, event) in cases {
        let mut log = log[..at].to_vec();
        log.push(line(at, &event.replace("CONFIG", &config), ""));
        assert!(matches!(replay(&log).unwrap_err(), Corrupt::Order { .. }), "{event} at {at}");
    }
}

/// A world in which a record was added that no input of today makes.
fn with_event(mut world: World, event: Event) -> World {
    let record = Record { seq: world.kernel.next_seq(), at: world.now, event, optional: false };
    world.log.push(serde_json::to_vec(&record).unwrap());
    world.kernel = replay(&world.log).unwrap();
    world
}

#[test]
fn a_changed_task_state_is_read_with_the_next_call() {
    let world = World::after([start(), replies(0, vec![call("look")])]);
    let mut world =
        with_event(world, Event::StateChanged(StateChanged { text: "Step 2 of 3.".into(), tokens: 5, plan: None }));
    world.take(result(world.runs()[0].id, "r"));
    let blocks = world.blocks();
    let Some(Block::User(user)) = blocks.last() else { panic!() };
    assert_eq!(content(&user.parts), "Step 2 of 3.");
}

#[test]
fn a_compression_opens_an_epoch_with_the_blocks_it_carries() {
    let world = World::after([start()]);
    let (head, blocks) = (world.blocks()[0].clone(), world.blocks().split_off(1));
    let event = Compressed {
        stage: "renew".into(),
        blocks: blocks.clone(),
        tokens_before: 90,
        tokens: 12,
        sources: vec![Source { role: Role::State, seq: 0, tokens: 7 }],
        digest: Digest::default(),
        left: 0,
        stages: vec![],
        gone: vec![],
        shortened: vec![],
        head: None,
    };
    let before = world.kernel.state().prompt().head_tokens();
    let world = with_event(world, Event::Compressed(event));
    let call = world.call_model().unwrap();
    assert_eq!((call.id, call.epoch, call.len), (1, 2, 2));
    assert_eq!(world.blocks(), [vec![head], blocks].concat());
    assert_eq!(world.kernel.state().prompt().tokens(), before + 7, "tokens are those of the head and the sources");
}

#[test]
fn another_process_gives_the_same_bytes() {
    let (first, second) = (whole(), whole());
    assert_eq!(first.log, second.log);
    let replayed = replay(&first.log).unwrap();
    assert_eq!(replayed.blocks(1, 0), second.kernel.blocks(1, 0));
    assert_eq!(replayed.outcome(), second.kernel.outcome());
}

#[test]
fn a_record_from_before_the_one_in_front_of_it_is_found() {
    let log = changed(2, r#""at":1002"#, r#""at":1001"#);
    assert!(matches!(replay(&log).unwrap_err(), Corrupt::Order { seq: 2, .. }));
}

#[test]
fn calls_in_a_recorded_incomplete_reply_do_not_reach_the_prompt() {
    let mut log = changed(1, r#""finish""#, r#""complete":false,"finish""#);
    log.truncate(2);
    let kernel = replay(&log).unwrap();
    let blocks: Vec<Block<'static>> = serde_json::from_slice(&kernel.blocks(1, 2)).unwrap();
    let text = serde_json::to_string(&blocks).unwrap();
    assert!(!text.contains(r#""call""#) && text.contains("I look."), "{text}");
}
