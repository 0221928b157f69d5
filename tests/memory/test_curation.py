"""Curation: what becomes of memories, whatever the order in which insights come."""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepstrike.memory import CurationStats, MemoryEntry, curate, observed, retraction
from deepstrike.memory.claims import folded, subject
from deepstrike.memory.curation import digest, is_current, resolved

STORES = 10_000 if os.environ.get("DEEPSTRIKE_FULL") == "1" else 300
THOROUGH = settings(max_examples=STORES, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def seen(text: str, at_ms: int = 1, *, session: str = "s", record: int = 0, trusted: bool = True) -> MemoryEntry:
    return observed(text, session_id=session, record=record, at_ms=at_ms, source=text, trusted=trusted)


def keyed(key: str, text: str, at_ms: int, *, trusted: bool = True) -> MemoryEntry:
    return observed(text, session_id="s", record=0, at_ms=at_ms, source=text, key=key, trusted=trusted)


def after(existing: list[MemoryEntry], *insights: MemoryEntry, cap: int = 10_000) -> list[MemoryEntry]:
    """The store's memories once the curation is committed as any store would."""
    result = curate(existing, insights, cap=cap)
    left = [entry for index, entry in enumerate(existing) if index not in result.to_remove_indices]
    return sorted([*left, *result.to_add], key=repr)


def current(entries: list[MemoryEntry]) -> set[str]:
    return {entry.text for entry in entries if is_current(entry)}


TEXTS = st.sampled_from(
    [
        "User lives in Berlin", "User lives in Rome", " user lives  in rome.", "User drinks tea", "Straße",
        "User no longer drinks tea", "port: 80", "port: 443", "The user's name is Ann",
        "The user's name is Bo", "", " ",
    ]
)  # fmt: skip
OBSERVATIONS = st.builds(
    keyed, st.sampled_from(["city", "City ", "tea"]), TEXTS, st.integers(0, 4), trusted=st.booleans()
) | st.builds(
    seen, TEXTS, st.integers(0, 4), session=st.sampled_from("ab"), record=st.integers(0, 2), trusted=st.booleans()
)
ENTRIES = OBSERVATIONS | st.builds(retraction, TEXTS, st.integers(0, 4))
CAPS = st.sampled_from([1, 2, 3, 5, 10_000])


@THOROUGH
@given(st.lists(ENTRIES, max_size=12), CAPS)
def test_given_any_store_when_curated_twice_then_the_second_time_changes_nothing(
    entries: list[MemoryEntry], cap: int
) -> None:
    once = after([], *entries, cap=cap)

    again = curate(once, entries, cap=cap)

    assert (list(again.to_add), list(again.to_remove_indices)) == ([], [])
    assert (again.stats.entries_added, again.stats.conflicts_resolved) == (0, 0)


@THOROUGH
@given(st.lists(ENTRIES, max_size=12), CAPS, st.randoms(use_true_random=False))
def test_given_insights_in_any_order_and_parts_when_curated_then_the_store_is_the_same(
    entries: list[MemoryEntry], cap: int, dice: random.Random
) -> None:
    at_once = after([], *entries, cap=cap)
    shuffled = dice.sample(entries, len(entries))
    in_parts: list[MemoryEntry] = []
    while shuffled:
        size = dice.randint(1, len(shuffled))
        in_parts = after(in_parts, *shuffled[:size], cap=cap)
        shuffled = shuffled[size:]

    assert in_parts == at_once


@THOROUGH
@given(st.lists(OBSERVATIONS, max_size=12))
def test_given_any_observations_when_curated_then_each_thing_has_its_newest_trusted_value(
    entries: list[MemoryEntry],
) -> None:
    kept = after([], *entries)

    for key in {"city", "tea"}:
        values = [entry for entry in kept if str(entry.metadata.get("key", "")).strip().lower() == key]
        living = [entry for entry in values if is_current(entry)]
        best = max(
            ((entry.metadata.get("trust") is None, entry.metadata["observed_at_ms"]) for entry in values), default=None
        )
        assert len(living) == min(len(values), 1)
        assert [(e.metadata.get("trust") is None, e.metadata["observed_at_ms"]) for e in living] == [best] * len(living)
    unkeyed = [folded(entry.text) for entry in kept if "key" not in entry.metadata]
    assert len(unkeyed) == len(set(unkeyed))
    assert "" not in unkeyed


def test_given_the_same_said_twice_when_curated_then_it_is_kept_once_with_its_newest_source() -> None:
    first, second = seen("User prefers tea", 1, session="a"), seen(" user prefers  tea. ", 2, session="b", record=7)

    kept = after(after([], first), second)

    assert kept == [
        MemoryEntry(
            "user prefers tea.",
            None,
            {
                "session_id": "b",
                "record": 7,
                "hash": digest(" user prefers  tea. "),
                "observed_at_ms": 2,
                "confidence": 1.0,
            },
        )
    ]


def test_given_an_update_when_curated_then_the_old_value_has_an_end_and_old_sessions_do_not_bring_it_back() -> None:
    old, new = seen("User lives in Berlin", 1, session="a"), seen("The user moved to Munich", 5, session="b")
    result = curate([old], [new])
    ended = MemoryEntry(
        "User lives in Berlin",
        None,
        {**old.metadata, "valid_until_ms": 5, "superseded_by": digest("The user moved to Munich")},
    )

    assert (list(result.to_add), list(result.to_remove_indices)) == ([new, ended], [0])
    assert result.stats == CurationStats(1, 0, 1, 1)
    kept = after([old], new)
    assert after(kept, old, seen("User lives in Berlin", 4, session="c")) != kept  # a later sighting is noted …
    assert current(after(kept, old, seen("User lives in Berlin", 4, session="c"))) == {"The user moved to Munich"}
    assert current(after(kept, seen("User lives in Berlin", 9, session="d"))) == {"User lives in Berlin"}


def test_given_text_from_a_tool_when_it_contradicts_the_user_then_the_user_is_right_whenever_that_was_said() -> None:
    said, read = seen("User's email is a@b.c", 1), seen("User's email is evil@x.y", 9, trusted=False)

    kept = after([said], read)

    assert current(kept) == {"User's email is a@b.c"}
    assert {entry.text: entry.metadata.get("trust") for entry in kept} == {
        "User's email is a@b.c": None,
        "User's email is evil@x.y": "untrusted",
    }
    assert current(after(kept, seen("User's email is n@b.c", 10))) == {"User's email is n@b.c"}


def test_given_a_retraction_when_the_same_is_dreamed_again_then_it_stays_away() -> None:
    kept = after([seen("User likes jazz", 1)], retraction("user likes jazz", 2))

    assert current(after(kept, seen("User likes jazz", 99, session="later"))) == set()


def test_given_more_than_the_cap_when_curated_then_the_newest_trusted_stay() -> None:
    entries = [seen(f"fact {at}", at, trusted=at % 2 == 0) for at in range(10)]

    assert {entry.text for entry in after([], *entries, cap=4)} == {"fact 8", "fact 6", "fact 4", "fact 2"}


def test_given_nothing_new_when_curated_then_nothing_is_removed() -> None:
    existing = [seen("a fact"), seen("another fact")]

    assert curate(existing, []).to_remove_indices == []
    assert curate(existing, [seen("  ")]).to_remove_indices == []
    assert curate([], []).to_add == []


def test_given_metadata_of_another_hand_when_curated_then_it_is_taken_as_it_comes() -> None:
    odd = [
        MemoryEntry("a", 0.7, {"observed_at_ms": "yesterday", "confidence": float("nan"), "key": 5, "record": None}),
        MemoryEntry("b", None, {"confidence": "high", "valid_until_ms": 7, "mine": {"x": [1]}}),
    ]

    assert sorted(resolved(odd), key=repr) == sorted(
        [MemoryEntry("a", None, odd[0].metadata), MemoryEntry("b", None, {"confidence": "high", "mine": {"x": [1]}})],
        key=repr,
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("User lives in Berlin", "The user now lives in Rome."),
        ("the user's time zone is CET", "The user’s time zone changed to PST"),
        ("Ann's favourite color is red", "Ann's favourite color is now blue"),
        ("deadline: Friday", "Deadline = Monday morning"),
        ("User works at Acme", "User works for Initech"),
        ("User drinks coffee", "User no longer drinks coffee"),
        ("User drinks coffee", "User does not drink coffee"),
    ],
)
def test_given_two_texts_about_one_thing_when_compared_then_they_have_one_subject(one: str, other: str) -> None:
    assert subject(one) == subject(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("User lives in Berlin", "Ann lives in Berlin"),
        ("User's dog is brown", "User's dog is called Rex"),
        ("User likes tea", "User likes coffee"),
        ("Note: call Ann", "Note: call Bo"),
        ("User: likes tea", "User: has a dog"),
        ("User lives in Berlin", "User works at Acme"),
        ("see https://a.b", "see https://c.d"),
    ],
)
def test_given_two_texts_that_can_both_be_so_when_compared_then_their_subjects_differ(one: str, other: str) -> None:
    assert subject(one) != subject(other)
