"""A process killed in the middle of a write, at any moment, or again and again leaves a log that goes on."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from lives import FULL, KINDS, nursery, seeded
from msgspec.structs import replace
from telling import Fate
from trials import Trials

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither fork nor SIGKILL")

DAY_MS = 86_400_000
Kept = Callable[[str, object], None]


@pytest.mark.parametrize("kind", KINDS)
async def test_given_a_process_that_dies_within_a_write_when_another_goes_on_then_no_part_of_the_batch_is_left(
    kind: str, tmp_path: Path, record_property: Kept
) -> None:
    seed, dice = seeded()
    times = 200 if FULL else 20
    with nursery() as opened:
        trials = await Trials.begin(opened, tmp_path, kind)
        # SQLite's shared-memory file has 32 KiB at once, and the log beside it grows by whole pages.
        low, high = (400, sum(map(len, trials.undisturbed))) if kind == "file" else (33_000, 130_000)
        for _ in range(times):
            death = replace(trials.base, most_bytes=dice.randint(low, high), die_full=True)
            await trials.session(lambda life, death=death: death if life == 0 else None)  # type: ignore[misc]

    record_property("kills", trials.kills)
    assert (trials.kills, trials.parted) == (times, []), f"DEEPSTRIKE_SEED={seed}"
    assert trials.totals["once"] == 0, f"DEEPSTRIKE_SEED={seed}"
    # Now and then a process dies behind the write, before it has said so: then the batch is whole.
    assert trials.totals["whole"] <= times // 4, f"DEEPSTRIKE_SEED={seed}"
    # A file shows the torn tail, which is said; of a transaction that was never finished nothing is to be seen.
    assert bool(trials.warnings) is (kind == "file")
    assert all("was never finished" in text and "were cut off and kept in" in text for text in trials.warnings)


@pytest.mark.parametrize("kind", KINDS)
async def test_given_a_kill_at_any_moment_when_another_process_goes_on_then_it_ends_as_if_undisturbed(
    kind: str, tmp_path: Path, record_property: Kept
) -> None:
    seed, dice = seeded()
    with nursery() as opened:
        trials = await Trials.begin(opened, tmp_path, kind)
        # The first life also made everything warm; a later one tells how long they last.
        before = time.monotonic()
        await trials.session(lambda life: None)
        longest_us = int((time.monotonic() - before) * 1e6)
        for _ in range(250 if FULL else 24):
            death = replace(trials.base, after_us=dice.randint(1, longest_us))
            await trials.session(lambda life, death=death: death if life == 0 else None)  # type: ignore[misc]

    record_property("kills", trials.kills)
    assert trials.kills >= 1, f"DEEPSTRIKE_SEED={seed}"
    assert (trials.parted, trials.totals["once"]) == ([], 0), f"DEEPSTRIKE_SEED={seed}"


@pytest.mark.parametrize("kind", KINDS)
async def test_given_processes_that_die_one_after_the_other_under_jumping_clocks_when_one_lives_then_all_is_in_order(
    kind: str, tmp_path: Path, record_property: Kept
) -> None:
    seed, dice = seeded()
    with nursery() as opened:
        trials = await Trials.begin(opened, tmp_path, kind)
        for _ in range(40 if FULL else 4):
            await trials.session(lambda life: any_death(trials.base, dice) if life < 12 else None)

    record_property("kills", trials.kills)
    assert trials.kills >= (200 if FULL else 20), f"DEEPSTRIKE_SEED={seed}"
    assert (trials.parted, trials.totals["once"]) == ([], 0), f"DEEPSTRIKE_SEED={seed}"


def any_death(base: Fate, dice: random.Random) -> Fate:
    """At one of the next places, flushed or not, with a clock that is up to a day off."""
    return replace(
        base,
        die_at=dice.randint(1, 16),
        durability=dice.choice(["os", "os", "disk"]),
        ahead_ms=dice.randint(-DAY_MS, DAY_MS),
    )
