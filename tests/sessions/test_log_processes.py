"""Several processes on one store: one owner, a lock that ends with its process, readers meanwhile, forks."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from stores import KINDS, Durable, Kind, write

from deepstrike.errors import SessionBusy
from deepstrike.sessions.sqlite import SqliteSessionLog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.synchronize import Event

SOURCES = Path(__file__).parents[2] / "python"
OTHERS = KINDS[::2]

OWNER = """
import asyncio, sys
from pathlib import Path
from deepstrike.sessions.file import FileSessionLog
from deepstrike.sessions.sqlite import SqliteSessionLog

async def main():
    log = (FileSessionLog if sys.argv[1] == "file-os" else SqliteSessionLog)(Path(sys.argv[2]))
    owner = await log.acquire("s")
    seq = await log.latest_seq("s") + 1
    for line in sys.stdin:
        batch = line.split()
        seq = await log.append("s", [part.encode() for part in batch], seq, owner=owner) + 1
        print(seq, flush=True)
    await log.release("s", owner)

asyncio.run(main())
"""


class Process:
    """Another process that holds session `s` and appends what it is told to."""

    def __init__(self, kind: Kind, place: Path) -> None:
        command = [sys.executable, "-c", OWNER, kind.name, str(place)]
        environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
        )

    def append(self, *records: str) -> int:
        """Have a batch appended; the next seq, once it is acknowledged."""
        assert self._process.stdin
        assert self._process.stdout
        print(*records, file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def kill(self) -> None:
        """SIGKILL it, and wait until it is gone."""
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()

    def finish(self) -> int:
        """Let it release the session; its exit code."""
        self._process.communicate()
        return self._process.returncode


@pytest.fixture(params=OTHERS, ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    found = request.param
    assert isinstance(found, Kind)
    return found


@pytest.fixture
def other(kind: Kind, tmp_path: Path) -> Iterator[Process]:
    process = Process(kind, tmp_path / "log.db")
    yield process
    process.kill()


async def test_given_another_process_that_holds_a_session_then_it_is_read_and_neither_taken_nor_deleted(
    kind: Kind, tmp_path: Path, other: Process
) -> None:
    log = kind.open(tmp_path / "log.db")
    assert other.append("a", "b") == 2
    assert (await log.read("s"), await log.latest_seq("s"), await log.sessions()) == ([b"a", b"b"], 1, ["s"])
    for attempt in (log.acquire("s"), log.delete("s")):
        with pytest.raises(SessionBusy):
            await attempt
    assert other.append("c") == 3
    assert await log.read("s", 1) == [b"b", b"c"]
    await write(log, "another", [b"x"])
    assert other.finish() == 0
    await write(log, "s", [b"d"])
    assert await log.read("s") == [b"a", b"b", b"c", b"d"]


async def test_given_an_owner_that_is_killed_then_its_session_is_free_at_once_and_whole(
    kind: Kind, tmp_path: Path, other: Process
) -> None:
    assert other.append("a") == 1
    other.kill()
    log = kind.open(tmp_path / "log.db")
    owner = await log.acquire("s")
    assert await log.append("s", [b"b"], 1, owner=owner) == 1
    await log.release("s", owner)
    assert await log.read("s") == [b"a", b"b"]
    assert list(tmp_path.rglob("*.lock")) == []


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
fork_warning = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@forks
@fork_warning
async def test_given_a_fork_while_a_run_is_live_then_the_child_has_no_part_in_it(kind: Kind, tmp_path: Path) -> None:
    log = kind.open(tmp_path / "log.db")
    owner = await log.acquire("s")
    await log.append("s", [b"a"], 0, owner=owner)
    context = get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=try_in_the_child, args=(log, owner, there))
    child.start()
    assert here.recv() == ["StaleWriter", "SessionBusy", "SessionBusy", [b"a"], [b"theirs"]]
    child.join()
    # The child has gone, and with it its copies of what the lock hangs on.
    with pytest.raises(SessionBusy):
        await kind.open(tmp_path / "log.db").acquire("s")
    assert await log.append("s", [b"b"], 1, owner=owner) == 1
    await log.release("s", owner)
    assert (await log.read("s"), await log.read("child")) == ([b"a", b"b"], [b"theirs"])


def try_in_the_child(log: Durable, owner: str, answers: Connection) -> None:
    async def told() -> list[object]:
        attempts = (log.append("s", [b"x"], 1, owner=owner), log.acquire("s"), log.delete("s"))
        found = [type(refused).__name__ for refused in await asyncio.gather(*attempts, return_exceptions=True)]
        await log.release("s", owner)
        await write(log, "child", [b"theirs"])
        return [*found, await log.read("s"), await log.read("child")]

    answers.send(asyncio.run(told()))


@forks
@fork_warning
async def test_given_a_child_that_outlives_its_parents_run_then_the_session_is_free_when_the_run_ends(
    kind: Kind, tmp_path: Path
) -> None:
    log = kind.open(tmp_path / "log.db")
    owner = await log.acquire("s")
    await log.append("s", [b"a"], 0, owner=owner)
    context = get_context("fork")
    ready, done = context.Event(), context.Event()
    child = context.Process(target=stay, args=(ready, done))
    child.start()
    assert ready.wait(20)
    await log.release("s", owner)
    await write(kind.open(tmp_path / "log.db"), "s", [b"b"])
    done.set()
    child.join()
    assert await log.read("s") == [b"a", b"b"]


def stay(ready: Event, done: Event) -> None:
    ready.set()
    done.wait(20)


@forks
@fork_warning
async def test_given_many_forked_writers_then_every_session_is_whole(kind: Kind, tmp_path: Path) -> None:
    log = kind.open(tmp_path / "log.db")
    await write(log, "before", [b"a"])
    context = get_context("fork")
    children = [context.Process(target=write_in_the_child, args=(log, f"child-{number}")) for number in range(4)]
    for child in children:
        child.start()
    await write(log, "parent", *([b"%d" % turn] for turn in range(50)))
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * 4
    names = ["parent", *(f"child-{number}" for number in range(4))]
    assert sorted(await log.sessions()) == sorted(["before", *names])
    for name in names:
        assert await kind.open(tmp_path / "log.db").read(name) == [b"%d" % turn for turn in range(50)]


def write_in_the_child(log: Durable, session_id: str) -> None:
    asyncio.run(write(log, session_id, *([b"%d" % turn] for turn in range(50))))


FIRST = """
import asyncio, sys, time
from deepstrike.sessions.sqlite import SqliteSessionLog

async def main():
    folder, name, at = sys.argv[1], sys.argv[2], float(sys.argv[3])
    for place in range(6):
        while time.time() < at + place * 0.2:
            pass
        log = SqliteSessionLog(f"{folder}/{place}/s.db")
        owner = await log.acquire(name)
        await log.append(name, [b"a"], 0, owner=owner)
        await log.append(name, [b"b"], 1, owner=owner)
        await log.release(name, owner)
        assert await log.read(name) == [b"a", b"b"]

asyncio.run(main())
"""


async def test_given_several_processes_when_they_begin_on_a_new_database_at_once_then_all_have_what_they_wrote(
    tmp_path: Path,
) -> None:
    names = ["a", "b", "c", "d"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    at = str(time.time() + 1.5)
    commands = [[sys.executable, "-c", FIRST, str(tmp_path), name, at] for name in names]
    begun = [subprocess.Popen(command, env=environment) for command in commands]
    assert [process.wait(60) for process in begun] == [0] * len(names)
    for place in range(6):
        assert sorted(await SqliteSessionLog(tmp_path / str(place) / "s.db").sessions()) == names
