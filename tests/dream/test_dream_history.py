"""What dreams have changed: shown, taken back, and forgotten with the sessions that it was drawn from."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from dreams import Reader, runner, session, texts

from deepstrike.memory import MemoryEntry, SqliteDreamStore, curate, observed
from deepstrike.memory.curation import is_current
from deepstrike.memory.dream_rows import KEPT


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteDreamStore]:
    made = SqliteDreamStore(tmp_path / "dreams.db")
    yield made
    made.close()


async def dream(store: SqliteDreamStore, session_id: str, *facts: str, at: int, now: int = 0) -> None:
    await store.save_session(session(session_id, *(f"fact: {fact}" for fact in facts), at=at))
    await runner(Reader(), store).dream("ann", now_ms=now)


async def so(store: SqliteDreamStore) -> list[str]:
    return texts([entry for entry in await store.load_memories("ann") if is_current(entry)])


def told(entries: object) -> list[tuple[str, object]]:
    assert isinstance(entries, list)
    return [(entry.text, entry.metadata.get("valid_until_ms")) for entry in entries if isinstance(entry, MemoryEntry)]


async def test_given_dreams_when_shown_then_each_says_what_is_so_since_and_what_no_longer_is(
    store: SqliteDreamStore,
) -> None:
    await dream(store, "s1", "User lives in Berlin", "User drinks tea", at=1, now=10)
    await dream(store, "s2", "User lives in Rome", at=2, now=20)

    last, first = await store.dreams("ann")

    assert (last.at_ms, told(last.added), told(last.removed)) == (
        20,
        [("User lives in Rome", None)],
        [("User lives in Berlin", 2)],
    )
    assert (first.at_ms, sorted(told(first.added)), first.removed) == (
        10,
        [("User drinks tea", None), ("User lives in Berlin", None)],
        [],
    )
    assert await store.dreams("bo") == []


async def test_given_a_dream_when_undone_then_all_is_as_before_and_it_does_not_come_again(
    store: SqliteDreamStore,
) -> None:
    await dream(store, "s1", "User lives in Berlin", at=1)
    before = await store.load_memories("ann")
    await dream(store, "s2", "User lives in Rome", "User has a dog", at=2)
    [diff, _] = await store.dreams("ann")

    assert await store.undo_dream("ann") == diff

    assert await store.load_memories("ann") == before
    found = await store.search("ann", "Berlin Rome", 5)
    assert texts([entry for entry in found if entry.metadata["kind"] == "memory"]) == ["User lives in Berlin"]
    assert (await runner(Reader(), store).dream("ann")).sessions_processed == 0
    undone = await store.undo_dream("ann")
    assert undone is not None
    assert (await so(store), await store.undo_dream("ann")) == ([], None)


async def test_given_a_dream_of_several_sessions_when_undone_then_all_of_it_is(store: SqliteDreamStore) -> None:
    for at in range(1, 4):
        await store.save_session(session(f"s{at}", f"fact: User has dog {at}", f"fact: port: {at}", at=at))
    await runner(Reader(), store).dream("ann")

    [diff] = await store.dreams("ann")

    assert texts(diff.added) == ["User has dog 1", "User has dog 2", "User has dog 3", "port: 3"]
    await store.undo_dream("ann")
    assert await store.load_memories("ann") == []


async def test_given_what_was_learned_since_when_a_dream_is_undone_then_it_stays(store: SqliteDreamStore) -> None:
    await dream(store, "s1", "User lives in Berlin", at=1)
    existing = await store.load_memories("ann")
    mine = observed("User likes tea", session_id="me", record=0, at_ms=3, source="x")
    await store.commit("ann", curate(existing, [mine]), existing)

    await store.undo_dream("ann")

    assert await store.load_memories("ann") == [mine]


async def test_given_very_many_dreams_when_shown_then_the_changes_of_the_last_ones_are_kept(
    store: SqliteDreamStore,
) -> None:
    for at in range(KEPT + 3):
        await dream(store, f"s{at}", f"User has dog {at}", at=at + 1, now=at)

    assert [diff.at_ms for diff in await store.dreams("ann")] == list(range(KEPT + 2, 2, -1))


async def test_given_a_dreamed_session_when_forgotten_then_no_byte_is_left_and_no_undo_brings_it_back(
    store: SqliteDreamStore, tmp_path: Path
) -> None:
    await dream(store, "keep", "User lives in Berlin", at=1)
    await dream(store, "secret-session", "User lives in Xyzzyplugh", "zqxcode: vwqgarbanzo", at=2)
    await dream(store, "later", "User lives in Rome", at=3)  # the forgotten one is what this dream ended

    await store.forget("secret-session")

    left = b"".join(path.read_bytes() for path in sorted(tmp_path.iterdir())).lower()
    traces = (b"xyzzyplugh", b"zqxcode", b"vwqgarbanzo", b"secret-session")
    assert [trace in left for trace in traces] == [False] * len(traces)
    assert await so(store) == ["User lives in Rome"]
    diffs = await store.dreams("ann")
    assert [texts(diff.added) for diff in diffs] == [["User lives in Rome"], ["User lives in Berlin"]]
    await store.undo_dream("ann")
    assert await so(store) == ["User lives in Berlin"]
