"""The sandbox holds: nothing that a program does is seen outside of what it was granted."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

import pytest
from sandbox_attempts import ATTEMPTS
from sandbox_world import SECRET, all_attempts, run

from deepstrike.execution.confine.landlock import landlock_abi
from deepstrike.execution.sandbox import SandboxExecutionPlane

if TYPE_CHECKING:
    from collections.abc import Callable

    Reached = dict[str, list[str]]

FULL = os.environ.get("DEEPSTRIKE_FULL") == "1"

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or landlock_abi() < 3, reason="this kernel has no Landlock, so nothing would run"
)

LAYERS = {
    "landlock and seccomp": ["landlock", "seccomp"],
    "namespaces too": ["landlock", "seccomp", "namespaces"],
    "bubblewrap too": ["landlock", "seccomp", "bubblewrap"],
}

# A test run that is not full makes all attempts under the layers that a plane has by default, and a part of them
# elsewhere.
STEPS = {"landlock and seccomp": 2, "namespaces too": 1, "bubblewrap too": 2}
PART = slice(None, None, 1 if FULL else 6)
WANTED = {name: ATTEMPTS[:: 1 if FULL else step] for name, step in STEPS.items()}
CASES = [(name, each.sentence) for name, wanted in WANTED.items() for each in wanted]
REAL = [each for each in ATTEMPTS if each.works_unconfined][PART]


async def _works(layers: list[str]) -> bool:
    async with SandboxExecutionPlane(layers=layers) as plane:
        result, _, _ = await run(plane, command="true")
        return result.error_kind == ""


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Reached]:
    """What each attempt reached under some layers: all are made when the first is asked for, a few at a time."""
    found: dict[str, Reached] = {}

    def look(name: str) -> Reached:
        if name not in found:
            works = asyncio.run(_works(LAYERS[name]))
            found[name] = _all_under(name, tmp_path_factory) if works else {}
        return found[name]

    return look


def _all_under(name: str, folders: pytest.TempPathFactory) -> Reached:
    """All attempts, from a host with a secret in its environment and an open file that children inherit."""
    os.environ["HOST_SECRET"] = SECRET
    left_open = os.open("/etc/passwd", os.O_RDONLY)
    os.set_inheritable(left_open, True)
    try:
        return asyncio.run(all_attempts(folders.mktemp("world"), WANTED[name], LAYERS[name]))
    finally:
        os.close(left_open)
        del os.environ["HOST_SECRET"]


@pytest.mark.parametrize(("layers", "sentence"), CASES, ids=[f"{name}: {sentence}" for name, sentence in CASES])
def test_given_a_program_that_tries_to_get_out_when_it_is_run_then_it_reaches_nothing(
    reached: Callable[[str], Reached], layers: str, sentence: str, record_property: Callable[[str, object], None]
) -> None:
    found = reached(layers)
    if not found:
        pytest.skip(f"{layers}: does not work on this machine")

    record_property("attempts", 1)
    assert found[sentence] == []


@pytest.fixture(scope="module")
def reached_unconfined(tmp_path_factory: pytest.TempPathFactory) -> Reached:
    return asyncio.run(all_attempts(tmp_path_factory.mktemp("open"), REAL, None))


@pytest.mark.skipif(os.geteuid() != 0, reason="some of the attempts succeed for root only")
@pytest.mark.parametrize("sentence", [each.sentence for each in REAL])
def test_given_the_same_program_when_nothing_confines_it_then_it_gets_out(
    reached_unconfined: Reached, sentence: str
) -> None:
    assert reached_unconfined[sentence] != []
