"""Dreams that are killed, and dreams in two processes: the store is the old or the new one, nothing is doubled."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from dreams import Reader, runner, session, texts

from deepstrike.dream.marks import is_dreamed
from deepstrike.memory import SqliteDreamStore

ROOT = Path(__file__).parents[2]
KILLS = 200 if os.environ.get("DEEPSTRIKE_FULL") == "1" else 12
SEED = int(os.environ.get("DEEPSTRIKE_SEED", "20261130"))
SESSIONS = 12

DREAMER = """
import asyncio, sys, time
sys.path.insert(0, sys.argv[2])
from dreams import Reader, runner
from deepstrike.memory import SqliteDreamStore

model = Reader(lambda: (print("asked", flush=True), time.sleep(0.002)))
result = asyncio.run(runner(model, SqliteDreamStore(sys.argv[1])).dream("ann"))
print("done", result.sessions_processed, result.entries_added, flush=True)
"""


def start(path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", DREAMER, str(path), str(ROOT / "tests" / "dream")],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        text=True,
    )


async def filled(path: Path) -> SqliteDreamStore:
    """A store with sessions, each of which tells two facts that no other tells."""
    store = SqliteDreamStore(path)
    for at in range(SESSIONS):
        await store.save_session(session(f"s{at}", f"fact: number {at}", f"fact: colour {at}", at=at + 1))
    return store


def all_facts() -> list[str]:
    return sorted(f"{kind} {at}" for kind in ("number", "colour") for at in range(SESSIONS))


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
async def test_given_a_dream_killed_at_any_moment_when_dreamed_again_then_it_is_finished_and_nothing_is_doubled(
    tmp_path: Path,
) -> None:
    print(f"seed {SEED}")
    dice = random.Random(SEED)
    for kill in range(KILLS):
        path = tmp_path / f"{kill}.db"
        store = await filled(path)
        store.close()
        process = start(path)
        assert process.stdout
        for _ in range(dice.randint(1, SESSIONS)):
            process.stdout.readline()
        dice_ms = dice.random() * 0.006
        try:
            process.wait(timeout=dice_ms)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()

        sessions = await store.load_sessions("ann")
        dreamed = {data.session_id[1:] for data in sessions if is_dreamed(data)}
        expected = sorted(f"{kind} {at}" for kind in ("number", "colour") for at in dreamed)
        assert texts(await store.load_memories("ann")) == expected, f"seed {SEED}, kill {kill}"
        result = await runner(Reader(), store).dream("ann")
        assert result.sessions_processed == SESSIONS - len(dreamed)
        assert texts(await store.load_memories("ann")) == all_facts()
        store.close()


async def test_given_two_processes_that_dream_at_once_when_both_end_then_each_session_counts_once(
    tmp_path: Path,
) -> None:
    store = await filled(tmp_path / "dreams.db")
    store.close()

    processes = [start(tmp_path / "dreams.db") for _ in range(2)]
    ends = [process.communicate(timeout=60)[0].splitlines()[-1].split() for process in processes]

    assert [end[0] for end in ends] == ["done", "done"]
    assert (sum(int(end[1]) for end in ends), sum(int(end[2]) for end in ends)) == (SESSIONS, 2 * SESSIONS)
    assert texts(await store.load_memories("ann")) == all_facts()
