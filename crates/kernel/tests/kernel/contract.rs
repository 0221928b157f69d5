//! `contract/*.jsonl`: both languages read every line and write the same bytes.
//!
//! `UPDATE_CONTRACT=1` writes the logs anew after a wanted change.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use deepstrike_kernel::curate::curate;
use deepstrike_kernel::wire::curation::{Curated, Curation};
use deepstrike_kernel::wire::effect::{Effect, Outcome};
use deepstrike_kernel::wire::event::Event;
use deepstrike_kernel::wire::input::Input;
use deepstrike_kernel::wire::message::Block;
use deepstrike_kernel::wire::strict;
use deepstrike_kernel::{Kernel, Record};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::say::*;
use crate::world::{Quarters, World};

fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "contract", name].iter().collect()
}

fn lines(name: &str) -> Vec<String> {
    let text = fs::read_to_string(path(name)).unwrap();
    text.split_terminator('\n').map(Into::into).collect()
}

/// Reads every line strictly and writes it again.
fn same<T: DeserializeOwned + Serialize>(name: &str) -> Vec<T> {
    let read = |line: &String| {
        let value: T = strict::from_slice(line.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}: {line}"));
        assert_eq!(serde_json::to_string(&value).unwrap(), *line, "{name}");
        value
    };
    lines(name).iter().map(read).collect()
}

fn all(tags: &[&'static str], seen: impl IntoIterator<Item = &'static str>) {
    let seen: BTreeSet<_> = seen.into_iter().collect();
    assert_eq!(seen, tags.iter().copied().collect());
}

#[test]
fn every_input_is_the_same_in_both_languages() {
    all(Input::TAGS, same::<Input>("inputs.jsonl").iter().map(Input::tag));
}

#[test]
fn every_effect_is_the_same_in_both_languages() {
    all(Effect::TAGS, same::<Effect>("effects.jsonl").iter().map(Effect::tag));
    assert!(!same::<Outcome>("outcomes.jsonl").is_empty());
}

#[test]
fn every_curation_is_the_same_in_both_languages_and_comes_to_what_stands_beside_it() {
    let asked = same::<Curation>("curations.jsonl");
    assert_eq!(asked.iter().map(curate).collect::<Vec<_>>(), same::<Curated>("curated.jsonl"));
}

#[test]
fn every_record_is_the_same_in_both_languages() {
    all(Event::TAGS, same::<Record>("events.jsonl").iter().map(|record| record.event.tag()));
}

#[test]
fn every_block_is_the_same_in_both_languages() {
    all(Block::TAGS, same::<Block<'static>>("blocks.jsonl").iter().map(Block::tag));
}

/// Every way to put a further field into an object of a JSON text.
fn widened(line: &str) -> Vec<String> {
    let mut quoted = false;
    let mut escaped = false;
    let mut out = vec![];
    for (at, letter) in line.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '}' if !quoted => {
                let comma = if line[..at].ends_with('{') { "" } else { "," };
                out.push(format!(r#"{}{comma}"zz":[1,{{"a":2}}]{}"#, &line[..at], &line[at..]));
            }
            _ => {}
        }
    }
    out
}

#[test]
fn a_further_field_at_any_depth_is_refused_in_inputs_and_ignored_in_records() {
    for line in lines("inputs.jsonl").iter().flat_map(|line| widened(line)) {
        let error = strict::from_slice::<Input>(line.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("unknown field `zz`"), "{error}: {line}");
    }
    for line in lines("events.jsonl") {
        let record: Record = serde_json::from_str(&line).unwrap();
        for wider in widened(&line) {
            assert_eq!(serde_json::from_str::<Record>(&wider).unwrap(), record, "{wider}");
        }
    }
}

/// Whole sessions as this version writes them.
fn sessions() -> Vec<(&'static str, World)> {
    vec![("tools", tools()), ("parked", parked()), ("crashed", crashed())]
}

fn tools() -> World {
    let mut world = World::after([start_with(priced(1_000_000))]);
    world.take(replies(0, vec![said("I look."), call_as("c1", "look", "{\"n\": 1}"), bad_call("write")]));
    world.take(result(world.runs()[0].id, "45"));
    world.take(replies(world.call(), vec![said("It is 45.")]));
    world.take(goal("And now?"));
    world.take(signal("news", deepstrike_kernel::wire::signal::Urgency::Low, Some("k")));
    world.take(interrupt());
    world
}

fn parked() -> World {
    let mut world = World::after([start(), replies(0, vec![call("write")])]);
    world.take(suspends(world.runs()[0].id));
    world
}

fn crashed() -> World {
    let mut world = World::after([start(), replies(0, vec![call("write"), call("put")])]);
    world.crash();
    world.take(resume());
    world.take(result(world.runs()[0].id, "r"));
    world.take(shown(world.call(), "Half", Some(fault("stalled"))));
    world
}

#[test]
fn recorded_sessions_stay_as_they_were_written() {
    for (name, world) in sessions() {
        let name = format!("logs/{name}.jsonl");
        let written: String =
            world.records().iter().map(|record| serde_json::to_string(record).unwrap() + "\n").collect();
        if std::env::var_os("UPDATE_CONTRACT").is_some() {
            fs::create_dir_all(path("logs")).unwrap();
            fs::write(path(&name), &written).unwrap();
        }
        assert_eq!(fs::read_to_string(path(&name)).unwrap(), written, "{name}");
        let recorded = lines(&name);
        let kernel = Kernel::replay(Box::new(Quarters), recorded.iter().map(String::as_bytes)).unwrap();
        assert_eq!(kernel.state(), world.kernel.state());
    }
}

#[test]
fn sessions_that_an_earlier_renderer_wrote_fold_and_take_a_further_goal() {
    for entry in fs::read_dir(path("logs/format-1")).unwrap() {
        let log = fs::read_to_string(entry.unwrap().path()).unwrap();
        let mut world = World::of(log.lines().map(|line| line.as_bytes().to_vec()).collect());
        world.now = i64::MAX / 2;
        let epoch = world.kernel.epoch();
        world.take(goal("Go on."));
        assert_eq!((world.kernel.phase(), world.kernel.epoch()), ("thinking", epoch + 1));
    }
}
