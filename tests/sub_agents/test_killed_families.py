"""Processes with sub-agents at work are killed; another one goes on. Nothing is lost, nothing is paid twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from victim import PAYEES, SESSION, live

from deepstrike import FileSessionLog

FULL = bool(os.environ.get("DEEPSTRIKE_FULL"))
PLACES = range(1, 90) if FULL else (2, 3, 5, 8, 11, 14, 19, 24, 30, 37)
NEVER = 10**9


def killed(folder: Path, die_at: int) -> bool:
    """Let a process live until it dies at this step; whether it did."""
    command = [sys.executable, str(Path(__file__).with_name("victim.py")), str(folder), str(die_at)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
    return ended.returncode != 0


async def check(folder: Path) -> None:
    """Go on to the end: everybody was paid once, or somebody was told that it is not known."""
    result = await live(folder, NEVER)
    assert (result.status, len(result.text.split(" | "))) == ("completed", 3)
    paid = (folder / "paid").read_text().split()
    assert len(paid) == len(set(paid)), "somebody was paid twice"
    for payee in PAYEES:
        assert payee in paid or "the outcome is unknown" in result.text
    assert result.text.count("unknown") <= 3
    sessions = await FileSessionLog(folder / "log").sessions()
    assert len([each for each in sessions if each.startswith(f"{SESSION}/")]) == 4


@pytest.mark.parametrize("die_at", PLACES)
async def test_after_a_kill_at_any_place_the_family_goes_on(tmp_path: Path, die_at: int) -> None:
    killed(tmp_path, die_at)
    await check(tmp_path)


async def test_a_family_that_is_killed_again_and_again_comes_to_its_end(tmp_path: Path) -> None:
    for die_at in (7, 6, 9, 5, 8, 4):
        if not killed(tmp_path, die_at):
            break
    await check(tmp_path)
