"""`python nursery.py`: reads fates from its input, forks a process to live each, and writes down how it lived.

It has one thread and everything imported, so that forking it is safe and quick. A process is killed by SIGKILL only:
by itself at a place, by this parent at a moment, or by the system at a byte (SIGXFSZ, where a file may not grow).
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
import select
import signal
import sys
import time
from pathlib import Path

import msgspec
from story import Witness, live, tools
from telling import Fate, Finished, Life, Parted, Told, Warned

from deepstrike import LocalExecutionPlane
from deepstrike.clock import SystemClock, use_clock
from deepstrike.errors import DeepStrikeError, RunFailed
from deepstrike.kernel import warm
from deepstrike.sessions.durability import Durability
from deepstrike.sessions.file import FileSessionLog
from deepstrike.sessions.sqlite import SqliteSessionLog

LONGEST_LIFE = 30.0
"""Seconds after which a process that should have ended is killed, and the test with it."""


class ShiftedClock(SystemClock):
    """The machine's clock, put forward or back."""

    def __init__(self, ahead_ms: int) -> None:
        self._ahead_ms = ahead_ms

    def now_ms(self) -> int:
        return super().now_ms() + self._ahead_ms


class _Telling(logging.Handler):
    """Tells what the package logs as a warning."""

    def __init__(self, witness: Witness) -> None:
        super().__init__(logging.WARNING)
        self._witness = witness

    def emit(self, record: logging.LogRecord) -> None:
        self._witness.tell(Warned(record.getMessage()))


def log_of(fate: Fate) -> FileSessionLog | SqliteSessionLog:
    """The log that the fate names."""
    durability = msgspec.convert(fate.durability, Durability)
    if fate.kind == "sqlite":
        return SqliteSessionLog(Path(fate.place) / "sessions.db", durability=durability)
    return FileSessionLog(Path(fate.place) / "sessions", durability=durability)


def bound_files(fate: Fate) -> None:
    """From here on no file of this process grows beyond the limit of its fate."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if fate.most_bytes:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if fate.die_full else signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (fate.most_bytes, fate.most_bytes))


def live_it(fate: Fate, descriptor: int) -> None:
    """The child: live, and tell how it went."""
    witness = Witness(descriptor, fate.die_at, fate.at, hold=fate.hold)
    logging.getLogger("deepstrike").addHandler(_Telling(witness))
    bound_files(fate)
    try:
        with use_clock(ShiftedClock(fate.ahead_ms)):
            result = asyncio.run(live(log_of(fate), witness, fate.goals))
        witness.tell(Finished(result.text, witness.passed))
    except RunFailed as failed:
        witness.tell(Parted("RunFailed", failed.code, failed.message))
    except DeepStrikeError as error:
        witness.tell(Parted(type(error).__name__, error.code, error.message))


def heard(child: int, reader: int, fate: Fate) -> bytes:
    """All that the child tells until its end or its stop; it is killed when its time has come."""
    moment = time.monotonic() + (fate.after_us / 1e6 or LONGEST_LIFE)
    told = b""
    while True:
        left = moment - time.monotonic()
        if left <= 0:
            os.kill(child, signal.SIGKILL)
        ready, _, _ = select.select([reader], [], [], 0.02 if fate.hold else max(left, 0.0))
        if ready:
            more = os.read(reader, 1 << 16)
            told += more
            if not more:
                return told
        elif fate.hold and os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED | os.WNOHANG)[1]):
            return told
        elif left <= 0:
            moment += LONGEST_LIFE


def lived(fate: Fate, held: list[int]) -> Life:
    """Fork a process, let it live its fate, and say how it ended. One that stops is kept in `held`."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            live_it(fate, writer)
        finally:
            sys.stderr.flush()
            os._exit(0)
    os.close(writer)
    said = heard(child, reader, fate)
    os.close(reader)
    told = tuple(msgspec.json.decode(line, type=Told) for line in said.splitlines())
    if fate.hold and not any(isinstance(each, Parted | Finished) for each in told):
        held.append(child)
        return Life(told, -1)
    return Life(told, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) * -1)


def prepare() -> None:
    """Do once what every child would do anew: load modules and a vocabulary, compile the schemas' machinery."""
    warm("scripted")
    LocalExecutionPlane().register(*tools(Witness(-1, 0, "", hold=False))).specs()
    gc.collect()
    gc.freeze()


def main() -> None:
    """Until the input ends. An empty line kills the processes that stop and stay."""
    prepare()
    held: list[int] = []
    for line in sys.stdin.buffer:
        if line.strip():
            answer = msgspec.json.encode(lived(msgspec.json.decode(line, type=Fate), held))
        else:
            while held:
                child = held.pop()
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            answer = b"null"
        sys.stdout.buffer.write(answer + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
