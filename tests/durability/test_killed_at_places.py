"""A process killed at any place loses nothing that was acknowledged and does nothing twice that must be done once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from lives import FULL, KINDS, nursery
from msgspec.structs import replace
from telling import Fate
from trials import Trials

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither fork nor SIGKILL")

DURABILITIES = ["os", "disk"] if FULL else ["os"]


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("kind", KINDS)
async def test_given_a_kill_at_each_place_of_a_session_when_another_process_goes_on_then_it_ends_as_if_undisturbed(
    kind: str, durability: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with nursery() as opened:
        trials = await Trials.begin(opened, tmp_path, kind, durability)
        for place in count(1):
            kills = trials.kills
            await trials.session(dying_at(trials.base, place))
            if trials.kills == kills:
                break

    record_property("kills", trials.kills)
    assert trials.kills >= 60
    assert (trials.parted, trials.warnings) == ([], [])
    # Every rule was needed: reads and idempotent calls were repeated, once calls were lost and never repeated,
    # batches in flight were absent as a whole and there as a whole.
    assert {name for name, times in trials.totals.items() if times} == {"read", "idempotent", "lost", "absent", "whole"}


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("kind", KINDS)
async def test_given_a_kill_at_each_place_and_another_one_place_on_when_a_third_goes_on_then_it_ends_as_if_undisturbed(
    kind: str, durability: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    step = 1 if FULL else 9
    with nursery() as opened:
        trials = await Trials.begin(opened, tmp_path, kind, durability)
        for place in range(1, 60, step):
            await trials.session(lambda life, place=place: dying_at(trials.base, place)(0) if life < 2 else None)  # type: ignore[misc]

    record_property("kills", trials.kills)
    assert trials.kills >= 60 // step
    assert (trials.parted, trials.totals["once"]) == ([], 0)


def dying_at(base: Fate, place: int) -> Callable[[int], Fate | None]:
    """The first process dies at its n-th place, the next one lives."""
    return lambda life: replace(base, die_at=place) if life == 0 else None
