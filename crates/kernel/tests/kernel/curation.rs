//! Curation: what becomes of memories, whatever the order in which insights come.

use deepstrike_kernel::curate::curate;
use deepstrike_kernel::wire::curation::{Curated, Curation, Ended, Kept, Observation};
use proptest::prelude::*;

/// An entry of a store: what was observed, and how it stands.
fn seen(said: &str, about: &str, at_ms: i64) -> Observation {
    Observation {
        said: said.into(),
        about: about.into(),
        whole: format!("{said}@{at_ms}"),
        digest: format!("#{said}"),
        keyed: false,
        retracted: false,
        untrusted: false,
        at_ms,
        record: 0,
        confidence: 1_000_000,
        ended: None,
        rough: false,
    }
}

fn ended(until_ms: i64, by: &str) -> Option<Ended> {
    Some(Ended { until_ms, by: by.into() })
}

fn asked(known: &[Observation], given: &[Observation], cap: Option<u64>) -> (Curation, Curated) {
    let curation = Curation { known: known.into(), given: given.into(), cap };
    let curated = curate(&curation);
    (curation, curated)
}

/// What the store holds once the result is committed, as a set.
fn after(known: &[Observation], given: &[Observation], cap: Option<u64>) -> Vec<Observation> {
    let (_, curated) = asked(known, given, cap);
    let all: Vec<_> = known.iter().chain(given).collect();
    let mut left: Vec<_> = (0..)
        .zip(known)
        .filter(|(number, _)| !curated.removed.contains(number))
        .map(|(_, seen)| seen.clone())
        .collect();
    for kept in curated.kept.iter().filter(|kept| kept.fresh) {
        let seen = all[usize::try_from(kept.number).unwrap()];
        left.push(Observation { ended: kept.ended.clone(), rough: false, ..seen.clone() });
    }
    left.sort_by(|one, other| one.whole.cmp(&other.whole));
    left
}

#[test]
fn a_later_value_ends_the_earlier_one() {
    let (old, new) = (seen("berlin", "home", 1), seen("rome", "home", 5));

    let (_, curated) = asked(std::slice::from_ref(&old), std::slice::from_ref(&new), None);

    let kept =
        vec![Kept { number: 1, ended: None, fresh: true }, Kept { number: 0, ended: ended(5, "#rome"), fresh: true }];
    assert_eq!(curated, Curated { kept, removed: vec![0], added: 1, duplicates: 0, superseded: 1 });
    let store = after(&[old], std::slice::from_ref(&new), None);
    assert_eq!(after(&store, &[seen("berlin", "home", 4)], None)[0].ended, ended(5, "#rome"));
}

#[test]
fn what_a_person_retracted_does_not_come_back() {
    let retraction = Observation { retracted: true, ..seen("jazz", "jazz", 2) };
    let store = after(&[seen("jazz", "jazz", 1)], &[retraction], None);

    let (_, again) = asked(&store, &[seen("jazz", "jazz", 99)], None);

    assert_eq!((again.removed.len(), again.kept.iter().any(|kept| kept.fresh)), (0, false));
}

#[test]
fn text_from_a_tool_never_replaces_the_users() {
    let said = seen("a@b.c", "mail", 1);
    let read = Observation { untrusted: true, ..seen("evil@x.y", "mail", 9) };

    let store = after(&[said], &[read], None);

    let so: Vec<_> = store.iter().filter(|entry| entry.ended.is_none()).map(|entry| entry.said.as_str()).collect();
    assert_eq!(so, ["a@b.c"]);
}

#[test]
fn of_a_key_one_value_is_left_also_of_one_moment() {
    let value = |said: &str| Observation { keyed: true, ..seen(said, "key city", 1) };
    let mate = |said: &str| seen(said, "that", 1);

    let keyed = after(&[], &[value("berlin"), value("rome")], None);
    let plain = after(&[], &[mate("tea"), mate("coffee")], None);

    assert_eq!(keyed.iter().filter(|entry| entry.ended.is_none()).count(), 1);
    assert_eq!(plain.iter().filter(|entry| entry.ended.is_none()).count(), 2);
}

#[test]
fn a_text_without_a_word_is_dropped_and_a_rough_entry_written_anew() {
    let rough = Observation { rough: true, ..seen("tea", "tea", 1) };

    let (_, curated) = asked(&[rough, seen("", "", 3)], &[], None);

    let kept = vec![Kept { number: 0, ended: None, fresh: true }];
    assert_eq!(curated, Curated { kept, removed: vec![0, 1], added: 0, duplicates: 0, superseded: 0 });
}

fn observation() -> impl Strategy<Value = Observation> {
    let words = (0..5usize, 0..3usize, 0..4i64, 0..3i64, 0..3u64);
    let marks = (any::<bool>(), prop::bool::weighted(0.15), any::<bool>());
    (words, marks).prop_map(|((said, about, at_ms, record, confidence), (keyed, retracted, untrusted))| {
        // What is said fixes what it is about, unless a key does.
        let (said, topic) = [("", ""), ("a", "x"), ("b", "x"), ("c", "y"), ("d", "y")][said];
        let about = if keyed { format!("key {about}") } else { topic.into() };
        let whole = format!("{said} {about} {keyed} {retracted} {untrusted} {at_ms} {record} {confidence}");
        Observation { whole, keyed, retracted, untrusted, record, confidence, ..seen(said, &about, at_ms) }
    })
}

proptest! {
    #[test]
    fn doing_it_again_changes_nothing(given in prop::collection::vec(observation(), 0..14), cap in 1..9u64) {
        let store = after(&[], &given, Some(cap));

        let (_, again) = asked(&store, &given, Some(cap));

        prop_assert!(again.removed.is_empty() && !again.kept.iter().any(|kept| kept.fresh));
        prop_assert_eq!((again.added, again.superseded, again.duplicates), (0, 0, given.len() as u64));
    }

    #[test]
    fn the_order_and_the_parts_do_not_matter(
        (given, shuffled) in prop::collection::vec(observation(), 0..14)
            .prop_flat_map(|given| (Just(given.clone()), Just(given).prop_shuffle())),
        part in 1..6usize,
        cap in 1..9u64,
    ) {
        let at_once = after(&[], &given, Some(cap));
        let in_parts = shuffled.chunks(part).fold(vec![], |store, part| after(&store, part, Some(cap)));

        prop_assert_eq!(in_parts, at_once);
    }

    #[test]
    fn each_key_has_at_most_one_value_and_it_is_the_highest(given in prop::collection::vec(observation(), 0..14)) {
        let store = after(&[], &given, None);

        for about in ["key 0", "key 1", "key 2"] {
            let of_key: Vec<_> = store.iter().filter(|entry| entry.about == about && !entry.retracted).collect();
            let retracted = |said: &str| store.iter().any(|entry| entry.retracted && entry.said == said);
            let living: Vec<_> = of_key.iter().filter(|entry| entry.ended.is_none()).collect();
            let best = of_key.iter().filter(|entry| !retracted(&entry.said)).max_by_key(
                |entry| (!entry.untrusted, entry.at_ms, entry.record, entry.confidence, entry.whole.clone()));
            prop_assert_eq!(living.len(), usize::from(best.is_some()));
            prop_assert!(living.first().map(|entry| &entry.whole) == best.map(|entry| &entry.whole));
        }
    }
}
