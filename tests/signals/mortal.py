"""`python mortal.py FOLDER DIE_AT`: a run that hears a gateway with a store, in a process that kills itself.

DIE_AT names the place: `taken` when a signal is taken and not in the session's log, `logged` when it is in the log and
still in the store, `shown` when the model is asked, `never`. Prints what the model was asked each time, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from deepstrike import RuntimeOptions, RuntimeRunner, SignalGateway, SqliteSessionLog, TextDelta
from deepstrike.errors import UnknownSession
from deepstrike.providers.base import Finish, ModelEvent, ModelRequest
from deepstrike.signals.queue import Entry, SignalQueue
from deepstrike.wire.message import Text, UserBlock


def die(at: str) -> None:
    """Here, if this is the place."""
    if sys.argv[2] == at:
        os.kill(os.getpid(), signal.SIGKILL)


class Model:
    """Says what it was asked, and answers."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        turns = [turn for turn in request.turns if isinstance(turn, UserBlock)]
        texts = [part.text for turn in turns for part in turn.parts if isinstance(part, Text)]
        print(json.dumps(texts), flush=True)
        die("shown")
        yield TextDelta("ok")
        yield Finish("stop")


class MortalLog(SqliteSessionLog):
    """Kills the process just before a signal is written to it."""

    async def append(self, session_id: str, records: Iterable[bytes], expected_seq: int, *, owner: str) -> int:
        lines = list(records)
        if any(b'"type":"signalled"' in line for line in lines):
            die("taken")
        return await super().append(session_id, lines, expected_seq, owner=owner)


class MortalQueue(SignalQueue):
    """Kills the process just before a delivered signal leaves the store."""

    def delivered(self, entries: Iterable[Entry]) -> None:
        die("logged")
        super().delivered(entries)


async def main(folder: Path) -> None:
    gateway = SignalGateway(folder / "signals.db")
    gateway.queue.__class__ = MortalQueue
    options = RuntimeOptions(provider=Model(), session_log=MortalLog(folder / "sessions.db"), signal_source=gateway)
    runner = RuntimeRunner(options)
    try:
        await runner.resume("s")
    except UnknownSession:
        await runner.run("Go.", session_id="s")
    print(json.dumps(len(gateway.queue)), flush=True)
    gateway.destroy()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
