"""The session of the kill tests: what its model says, what its tools do, how a program goes on with it.

Two goals. The first asks for a tool of each effect class at once, then for one that suspends and is answered by a later
resume; the second asks for two of them again. Nothing is remembered outside the log: any process can go on.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence

import msgspec
from telling import Acknowledged, Acted, Asked, Handed, Told

from deepstrike import (
    LocalExecutionPlane,
    ModelRequest,
    RunResult,
    RuntimeOptions,
    RuntimeRunner,
    ScriptedProvider,
    SessionLog,
    Suspend,
    ToolContext,
    tool,
)
from deepstrike.providers.base import ModelEvent, ToolCall
from deepstrike.records import decode_record
from deepstrike.stream import TextDelta
from deepstrike.wire.event import Started
from deepstrike.wire.message import AssistantBlock, CallBlock, ResultBlock, Text, Turn, UserBlock

SESSION = "the trip/../to Röme"
GOALS = ("Prepare the trip.", "Now tell Bob.")
SEAT = "12A"
LONG = "a long timetable; " * 400
"""More than one result's share of the window, so it becomes a blob beside the log."""


class Witness:
    """Tells the parent what has happened, at once and in order, and dies where it is to die."""

    def __init__(self, descriptor: int, die_at: int, at: str, *, hold: bool) -> None:
        self._descriptor = descriptor
        self._left = die_at
        self._at = at
        self._signal = signal.SIGSTOP if hold else signal.SIGKILL
        self.passed = 0

    def tell(self, what: Told) -> None:
        """A line in the pipe survives the process, so whatever was told has happened."""
        os.write(self._descriptor, msgspec.json.encode(what) + b"\n")

    def passes(self, place: str) -> None:
        """Called at every place where a process may die."""
        if place.startswith(self._at):
            self.passed += 1
            if self.passed == self._left:
                os.kill(os.getpid(), self._signal)


def digest(record: bytes) -> str:
    """What stands for a record in what is told."""
    return hashlib.sha256(record).hexdigest()[:16]


class WatchedLog:
    """Passes everything on to `inner`, and tells what is handed to it and what it acknowledges."""

    def __init__(self, inner: SessionLog, witness: Witness) -> None:
        self._inner = inner
        self._witness = witness

    async def acquire(self, session_id: str) -> str:
        owner = await self._inner.acquire(session_id)
        self._witness.passes("acquired")
        return owner

    async def release(self, session_id: str, owner: str) -> None:
        self._witness.passes("release")
        await self._inner.release(session_id, owner)
        self._witness.passes("released")

    async def append(self, session_id: str, records: Sequence[bytes], expected_seq: int, *, owner: str) -> int:
        self._witness.tell(Handed(expected_seq, tuple(map(digest, records))))
        self._witness.passes("append")
        last = await self._inner.append(session_id, records, expected_seq, owner=owner)
        self._witness.passes("written")
        self._witness.tell(Acknowledged(last))
        self._witness.passes("appended")
        return last

    async def put_blob(self, session_id: str, data: bytes) -> str:
        self._witness.passes("put blob")
        ref = await self._inner.put_blob(session_id, data)
        self._witness.passes("blob put")
        return ref

    async def read(self, session_id: str, from_seq: int = 0) -> list[bytes]:
        return await self._inner.read(session_id, from_seq)

    async def latest_seq(self, session_id: str) -> int:
        return await self._inner.latest_seq(session_id)

    async def sessions(self) -> list[str]:
        return await self._inner.sessions()

    async def delete(self, session_id: str) -> None:
        await self._inner.delete(session_id)

    async def get_blob(self, ref: str, offset: int = 0, length: int | None = None) -> bytes:
        return await self._inner.get_blob(ref, offset, length)


def tools(witness: Witness) -> list[Callable[..., object]]:
    """A tool of each effect class, one of them in a thread, and one that asks and waits."""

    def act(name: str, context: ToolContext) -> None:
        witness.passes(f"{name} begins")
        witness.tell(Acted(name, context.call_id, context.idempotency_key))
        witness.passes(f"{name} acted")

    @tool(effect="read")
    async def look(context: ToolContext) -> str:
        act("look", context)
        await asyncio.sleep(0)
        return LONG

    @tool(effect="idempotent")
    def put(context: ToolContext) -> str:
        act("put", context)
        return "it is put"

    @tool
    async def send(to: str, context: ToolContext) -> str:
        await asyncio.sleep(0)
        act("send", context)
        return f"sent to {to}"

    @tool
    async def book(context: ToolContext) -> AsyncIterator[str | Suspend]:
        yield "Seats are free. "
        witness.passes("book asks")
        seat = yield Suspend({"choose": [SEAT, "14C"]})
        act("book", context)
        yield f"Booked {seat}."

    return [look, put, send, book]


def reply(turns: Sequence[Turn]) -> str | list[ModelEvent]:
    """What the model says next, by what it has been shown."""
    goal = max(position for position, turn in enumerate(turns) if _text_of(turn) in GOALS)
    results = [turn for turn in turns[goal:] if isinstance(turn, ResultBlock)]
    called = {turn.name for turn in results}
    if _text_of(turns[goal]) == GOALS[1]:
        if not called:
            return [ToolCall("e", "send", '{"to":"Bob"}'), ToolCall("f", "put", "{}")]
    elif not called:
        wanted = [ToolCall("a", "look", "{}"), ToolCall("b", "put", "{}"), ToolCall("c", "send", '{"to":"Ann"}')]
        return [TextDelta("I shall "), TextDelta("begin."), *wanted]
    elif "book" not in called:
        return [ToolCall("d", "book", "{}")]
    return "So: " + "; ".join(_text_of(turn)[-20:] for turn in results)


def flaw_in(turns: Sequence[Turn]) -> str:
    """What is wrong with a transcript: each call has exactly one result, behind its block and in call order."""
    owed: list[str] = []
    for position, turn in enumerate(turns):
        if isinstance(turn, ResultBlock):
            if owed[:1] != [turn.call_id]:
                return f"turn {position} is the result of {turn.call_id!r}, where {owed} are owed"
            owed.pop(0)
        elif owed:
            return f"turn {position} follows, where the results of {owed} are owed"
        elif isinstance(turn, AssistantBlock):
            owed = [part.id for part in turn.parts if isinstance(part, CallBlock)]
    return f"the results of {owed} are owed" if owed else ""


def _text_of(turn: Turn) -> str:
    parts = turn.parts if isinstance(turn, UserBlock | ResultBlock) else ()
    return "".join(part.text for part in parts if isinstance(part, Text))


async def live(log: SessionLog, witness: Witness, goals: int) -> RunResult:
    """Go on with the session from wherever its log stands, until `goals` goals are completed."""

    def answer(request: ModelRequest) -> str | list[ModelEvent]:
        witness.tell(Asked(flaw_in(request.turns)))
        witness.passes("model asked")
        return reply(request.turns)

    model = ScriptedProvider([answer], repeat_last=True)
    plane = LocalExecutionPlane().register(*tools(witness))
    watched = WatchedLog(log, witness)
    options = RuntimeOptions(provider=model, session_log=watched, execution_plane=plane, max_tokens=4_000)
    runner = RuntimeRunner(options)
    begun = await _goals_begun(log)
    result = await runner.resume(SESSION) if begun else await runner.run(GOALS[0], session_id=SESSION)
    while result.status == "suspended" or await _goals_begun(log) < goals:
        if result.status == "suspended":
            seats = {request.request_id: SEAT for request in result.pending}
            result = await runner.resume(SESSION, answers=seats)
        else:
            result = await runner.run(GOALS[await _goals_begun(log)], session_id=SESSION)
    return result


async def _goals_begun(log: SessionLog) -> int:
    return sum(isinstance(decode_record(line).event, Started) for line in await log.read(SESSION))
