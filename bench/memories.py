"""What a memory finds, and how fast: turns of invented conversations, beside plain full-text search with neighbours."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import tempfile
import time
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from bench.dialogues import MARKS, MATTERS, VALUES, Dialogue, dialogue
from deepstrike.memory import SessionData, SqliteDreamStore, curate, observed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepstrike.memory import MemoryEntry

Samples = list[float]
SEEDS = range(100, 108)
TOP = 10
MEMORIES = 100_000
SEARCHES = 300
UPDATES = 4
COMMITTED = 100
Place = tuple[int, int]


def measure(who: str, case: str) -> Samples:
    """The samples of one figure in this process."""
    with tempfile.TemporaryDirectory() as folder:
        if case == "memory_missed":
            return [missed(who, Path(folder))]
        if case == "memory_stale":
            return [asyncio.run(stale(Path(folder) / "keyed.db"))]
        return [asyncio.run(slow_search(Path(folder) / "many.db"))]


def missed(who: str, folder: Path) -> float:
    """How much of the evidence is not among the first ten, in percent."""
    sought = found = 0
    for seed in SEEDS:
        talk = dialogue(seed)
        ranked = plain(talk) if who == "neighbours" else asyncio.run(ours(talk, folder / f"{seed}.db"))
        for question, places in zip(talk.questions, ranked, strict=True):
            sought += len(question.evidence)
            found += len(question.evidence & set(places[:TOP]))
    return 100 * (1 - found / sought)


async def ours(talk: Dialogue, path: Path) -> list[list[Place]]:
    """The first ten turns for each question, by the store."""
    store = SqliteDreamStore(path)
    for session in sessions(talk, ""):
        await store.save_session(session)
    ranked: list[list[Place]] = []
    for question in talk.questions:
        entries = await store.search("bench", question.text, TOP)
        ranked.append([(int(str(e.metadata["session_id"])), int(str(e.metadata["record"]))) for e in entries])
    return ranked


def plain(talk: Dialogue) -> list[list[Place]]:
    """The first ten turns for each question, by BM25 over stems, each hit followed by the turns beside it."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE turns USING fts5(speaker, text, tokenize='porter unicode61')")
    connection.executemany("INSERT INTO turns VALUES (?, ?)", ((turn.speaker, turn.text) for turn in talk.turns))
    query = f"SELECT rowid FROM turns WHERE turns MATCH ? ORDER BY rank LIMIT {TOP}"
    places = {(turn.session, turn.place) for turn in talk.turns}
    ranked: list[list[Place]] = []
    for question in talk.questions:
        words = " OR ".join(f'"{word}"' for word in "".join(c if c.isalnum() else " " for c in question.text).split())
        hits = [talk.turns[number - 1] for (number,) in connection.execute(query, (words,))]
        around = [(hit.session, hit.place + step) for hit in hits for step in (0, -1, 1)]
        ranked.append(list(dict.fromkeys(place for place in around if place in places)))
    return ranked


def sessions(talk: Dialogue, name: str) -> Iterator[SessionData]:
    """The sessions of a conversation; their ids are `name` and a number."""
    for number, turns in groupby(talk.turns, key=lambda turn: turn.session):
        messages = [{"role": "user", "name": turn.speaker, "content": turn.text} for turn in turns]
        yield SessionData(f"{name}{number}", "bench", messages, {}, number, number)


async def stale(path: Path) -> float:
    """Of how many keyed facts, each updated several times in sessions dreamed of in any order, not just the value of
    the latest session is found, in percent."""
    dice, store = random.Random(SEEDS[0]), SqliteDreamStore(path)
    facts = [(noun, mark, at) for noun, _ in MATTERS for mark in MARKS for at in range(UPDATES)]
    dice.shuffle(facts)
    for start in range(0, len(facts), COMMITTED):
        existing = await store.load_memories("bench")
        insights = [_keyed(*fact) for fact in facts[start : start + COMMITTED]]
        await store.commit("bench", curate(existing, insights), existing)
    wrong = 0
    for noun, mark, _ in facts:
        found = await store.search("bench", f"the date of the {mark} {noun}", TOP)
        values = [entry.text for entry in found if entry.metadata.get("key") == f"date of the {mark} {noun}"]
        wrong += values != [_keyed(noun, mark, UPDATES - 1).text]
    return 100 * wrong / len(facts)


def _keyed(noun: str, mark: str, at: int) -> MemoryEntry:
    key, source = f"date of the {mark} {noun}", VALUES["when"][at]
    return observed(f"The {key} is {source}", session_id=f"s{at}", record=0, at_ms=at, source=source, key=key)


async def slow_search(path: Path) -> float:
    """The 95th percentile of the wall time of a search among 100,000 turns, in ms."""
    store = SqliteDreamStore(path)
    stored, seed = 0, 0
    questions: list[str] = []
    while stored < MEMORIES:
        talk = dialogue(seed, sessions=160)
        for session in sessions(talk, f"{seed}-"):
            await store.save_session(session)
        questions += [question.text for question in talk.questions[:30]]
        stored += len(talk.turns)
        seed += 1
    await store.search("bench", "warm", TOP)
    times: Samples = []
    for question in questions[:SEARCHES]:
        start = time.perf_counter()
        await store.search("bench", question, TOP)
        times.append((time.perf_counter() - start) * 1e3)
    return sorted(times)[len(times) * 95 // 100]
