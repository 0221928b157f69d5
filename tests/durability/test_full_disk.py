"""A log that cannot be written ends the run with a typed error, stays whole, and goes on when there is room again."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lives import FULL, KINDS, nursery, seeded
from msgspec.structs import replace
from trials import Trials

from deepstrike import (
    DoneEvent,
    ErrorEvent,
    LocalExecutionPlane,
    RunFailed,
    RuntimeOptions,
    RuntimeRunner,
    ScriptedProvider,
    SessionError,
    StreamEvent,
    tool,
)
from deepstrike.providers.base import ModelEvent, ModelRequest, ToolCall
from deepstrike.replay.proof import replay
from deepstrike.sessions.file import FileSessionLog
from deepstrike.sessions.sqlite import SqliteSessionLog
from deepstrike.wire.message import ResultBlock

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither fork nor SIGKILL")

Durable = FileSessionLog | SqliteSessionLog
LONG = "a line of a long answer; " * 200


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[None]:
    """A file system of its own at `folder`; skips where this user may not mount one."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root mounts a file system, on Linux")
    folder.mkdir(exist_ok=True)
    done = subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", str(folder)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def log_in(folder: Path, kind: str) -> Durable:
    """A new log object on what is in `folder`."""
    return SqliteSessionLog(folder / "sessions.db") if kind == "sqlite" else FileSessionLog(folder / "sessions")


def runner_on(log: Durable, act: Callable[[], None], turns: int = 3) -> RuntimeRunner:
    """A runner whose model has a tool `work` done in each of its turns, then says that it is done."""

    @tool(effect="idempotent")
    def work(step: int) -> str:
        if step == 1:
            act()
        return f"{step}: {LONG}"

    def answer(request: ModelRequest) -> str | list[ModelEvent]:
        step = sum(isinstance(turn, ResultBlock) for turn in request.turns)
        return [ToolCall(f"c{step}", "work", f'{{"step":{step}}}')] if step < turns else "All done."

    model = ScriptedProvider([answer], repeat_last=True)
    plane = LocalExecutionPlane().register(work)
    return RuntimeRunner(RuntimeOptions(provider=model, session_log=log, execution_plane=plane))


async def events_of(runner: RuntimeRunner) -> list[StreamEvent]:
    """All events of a run on session `s`."""
    return [event async for event in runner.run_streaming("go", session_id="s")]


def nothing() -> None:
    """What a tool does when all is well."""


@pytest.mark.parametrize("kind", KINDS)
async def test_given_files_that_cannot_grow_when_a_run_fails_then_the_error_is_typed_and_another_process_goes_on(
    kind: str, tmp_path: Path
) -> None:
    seed, dice = seeded()
    with nursery() as opened:
        trials = await Trials.begin(opened, tmp_path, kind)
        low, high = (400, sum(map(len, trials.undisturbed))) if kind == "file" else (33_000, 130_000)
        times = 60 if FULL else 8
        for _ in range(times):
            bound = replace(trials.base, most_bytes=dice.randint(low, high))
            await trials.session(lambda life, bound=bound: bound if life == 0 else None)  # type: ignore[misc]

    # SQLite does not tell a file that may not grow from a disk that fails.
    code = "log_io" if kind == "sqlite" else "disk_full"
    assert {(each.error, each.code) for each in trials.parted} == {("RunFailed", code)}, f"DEEPSTRIKE_SEED={seed}"
    assert (len(trials.parted), trials.kills, trials.totals["once"]) == (times, 0, 0), f"DEEPSTRIKE_SEED={seed}"


@pytest.mark.parametrize("kind", KINDS)
async def test_given_a_disk_that_fills_in_mid_run_when_there_is_room_again_then_resume_completes(
    kind: str, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    with mounted(disk, "-o", "size=4m"):
        ballast = disk / "ballast"

        def fill() -> None:
            with ballast.open("wb", buffering=0) as file:
                try:
                    while file.write(b"x" * 512):
                        pass
                except OSError:
                    return

        log = log_in(disk, kind)
        events = await events_of(runner_on(log, fill))
        report = await log_in(disk, kind).verify("s")
        ballast.unlink()
        result = await runner_on(log, nothing).resume("s")
        records = await log.read("s")

    failure, done = events[-2:]
    assert isinstance(failure, ErrorEvent)
    assert isinstance(done, DoneEvent)
    # Python 3.10 does not say what SQLite met.
    code = "log_io" if kind == "sqlite" and sys.version_info < (3, 11) else "disk_full"
    assert (failure.code, done.status, report.sound) == (code, "error", True)
    assert (result.status, result.text) == ("completed", "All done.")
    assert (replay(records).divergence, len(records) > report.records) == (None, True)


@pytest.mark.parametrize("kind", KINDS)
async def test_given_a_folder_that_is_read_only_when_a_goal_is_pursued_then_a_session_error_says_where(
    kind: str, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    with mounted(disk, "-o", "size=4m"):
        before = await runner_on(log_in(disk, kind), nothing).run("go", session_id="s")
        gc.collect()  # a log that is still open keeps its file system writable; a thread closes it
        for _ in range(100):
            if subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=False).returncode == 0:
                break
            await asyncio.sleep(0.05)
        with pytest.raises(SessionError) as refusal:
            await runner_on(log_in(disk, kind), nothing).run("more", session_id="s")
        shutil.copytree(disk, tmp_path / "copy")

    copy = log_in(tmp_path / "copy", kind)
    assert before.status == "completed"
    assert (refusal.value.code, str(disk) in refusal.value.message) == ("log_io", True)
    assert (await copy.sessions(), replay(await copy.read("s")).divergence) == (["s"], None)


@pytest.mark.parametrize("kind", KINDS)
async def test_given_a_log_whose_folder_is_removed_in_mid_run_when_it_goes_on_then_the_run_ends_and_says_so(
    kind: str, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    place.mkdir()

    with pytest.raises(RunFailed) as failure:
        await runner_on(log_in(place, kind), lambda: shutil.rmtree(place), turns=12).run("go", session_id="s")

    assert (failure.value.code, str(place) in failure.value.message) == ("log_io", True)
    assert not place.exists()


@pytest.mark.parametrize("kind", KINDS)
async def test_given_a_folder_that_is_put_back_from_a_copy_when_the_same_log_goes_on_then_it_goes_on_from_the_copy(
    kind: str, tmp_path: Path
) -> None:
    place, copy = tmp_path / "place", tmp_path / "copy"
    place.mkdir()
    log = log_in(place, kind)
    await runner_on(log, nothing).run("go", session_id="s")
    shutil.copytree(place, copy)
    kept = await log.read("s")
    await runner_on(log, nothing).run("more", session_id="s")

    shutil.rmtree(place)
    gone = await log.sessions()
    copy.rename(place)
    found = await log.read("s")
    again = await runner_on(log, nothing).run("more", session_id="s")

    assert (gone, found, again.status) == ([], kept, "completed")
    assert replay(await log_in(place, kind).read("s")).divergence is None
