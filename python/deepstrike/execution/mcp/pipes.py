"""A server that is our child: JSON lines on its standard input and output, its last words from standard error.

Not the client's own transport: this one bounds a line, answers for one that is no message, keeps the standard error
instead of printing it, and takes the process group down with the server.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, SubprocessStreamProtocol
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import anyio
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

from deepstrike.errors import ConfigError
from deepstrike.execution.mcp.heeded import Heeded
from deepstrike.execution.mcp.lines import Lines, TooLong, encoded, read_message
from deepstrike.execution.mcp.trimming import LISTING, trimmed
from deepstrike.execution.mcp.unasked import LISTEN, TOO_MUCH, Unasked
from deepstrike.execution.mcp.words import told

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import TracebackType

    from mcp.client._transport import TransportStreams

    from deepstrike.execution.mcp.endpoint import Command
    from deepstrike.execution.mcp.faults import Broken

FLUSH_SECONDS: Final = 0.5
"""For what was already handed over, such as the word that a call is cancelled, before the input closes."""
EXIT_SECONDS: Final = 1.0
"""For the server to end by itself once its input is closed, and again after SIGTERM, and for the kill to be seen."""
LAST_WORDS: Final = 2048
"""Characters shown of the standard error."""
LAST_BYTES: Final = 4 * LAST_WORDS
"""Kept of it: more than is shown, so that a secret at the edge is seen whole and hidden."""

LONGEST_NOISE: Final = 200
"""Characters shown of a line that is no message."""

_CHUNK: Final = 64 * 1024


class _Watched(SubprocessStreamProtocol):
    """Knows when the process has ended, whoever still holds its pipes."""

    def __init__(self) -> None:
        super().__init__(limit=_CHUNK, loop=asyncio.get_running_loop())
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class Pipes:
    """See `carrier.Carrier`."""

    def __init__(self, command: Command) -> None:
        self._command = command
        self._ended: Callable[[], None] | None = None
        self._stderr = bytearray()
        self._noise = ""
        self._heeded = Heeded()
        self._listings: set[int | str] = set()
        self._unasked = Unasked()
        self._tasks: set[asyncio.Task[None]] = set()
        self._left = False
        self.over: str | None = None

    async def __aenter__(self) -> TransportStreams:
        """Start the process. Raises `ConfigError` if that is not possible."""
        loop = asyncio.get_running_loop()
        try:
            self._transport, self._watched = await loop.subprocess_exec(
                _Watched,
                *self._command.argv,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env=self._command.environment(),
                cwd=self._command.cwd,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            raise ConfigError(
                f"the MCP server {self._command.label!r} cannot be started: {why}; check the command, cwd= and PATH"
            ) from None
        self._process = asyncio.subprocess.Process(self._transport, self._watched, loop)
        self._incoming, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, self._outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        self._session_ends = (incoming, outgoing)
        self._reader = self._begin(self._read())
        self._writer = self._begin(self._write())
        self._begin(self._listen())
        self._begin(self._mourn())
        return incoming, outgoing

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left = True
        for end in self._session_ends:
            end.close()
        try:
            await asyncio.wait({self._writer}, timeout=FLUSH_SECONDS)
            self._process.stdin.close()  # type: ignore[union-attr]
            await self._end()
        finally:
            self._kill(_KILL)
            for task in self._tasks:
                task.cancel()
            self._transport.close()
            self._incoming.close()
            self._outgoing.close()

    def watch(self, ended: Callable[[], None]) -> None:
        self._ended = ended
        if self.over is not None:
            ended()

    def mark(self) -> int:
        return self._heeded.times

    def silent_since(self, mark: int) -> bool:
        return self._heeded.times == mark

    def forget(self, number: int | str) -> None:
        """The server may still answer; the client drops that."""
        self._unasked.settle(number)
        self._heeded.forget(number)
        self._listings.discard(coerce_request_id(number))

    def broken(self, message: str, data: object) -> Broken | None:
        """None: on a pipe, what fails is the connection."""
        return None

    def account(self) -> str:
        said = [self.over or ""]
        if self._noise:
            said.append(f"it printed what is no message of the protocol: {self._noise!r}")
        stderr = told(self._stderr.decode("utf-8", "replace").strip(), LAST_BYTES, self._command.secrets)
        if stderr:
            said.append(f"its last words: {stderr[-LAST_WORDS:]}")
        return "; ".join(filter(None, said))

    def _begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _read(self) -> None:
        """Messages to the session, until the server closes its output."""
        lines, listening = Lines(), True
        while chunk := await self._process.stdout.read(_CHUNK):  # type: ignore[union-attr]
            if not listening:
                continue  # read on, so that a server that flushes can end
            if not self._unasked.take(chunk):
                listening = False
                self._finish(TOO_MUCH)
                continue
            try:
                for line in lines.feed(chunk):
                    listening = listening and await self._deliver(line)
            except TooLong as error:
                listening = False
                self._finish(str(error))
        await self._fall_silent("it closed its output")

    async def _deliver(self, line: bytes) -> bool:
        if self._listings:
            line = await trimmed(line)
        message = read_message(line)
        if message is None:
            noise = line[:LAST_BYTES].decode("utf-8", "replace").strip()
            self._noise = self._noise or told(noise, LONGEST_NOISE, self._command.secrets)
            return True
        self._heeded.hear(message)
        if isinstance(message, (JSONRPCResponse, JSONRPCError)) and message.id is not None:
            self._unasked.settle(message.id)
            self._listings.discard(coerce_request_id(message.id))
        try:
            await self._incoming.send(SessionMessage(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return False
        return True

    async def _write(self) -> None:
        stdin = self._process.stdin
        try:
            async for item in self._outgoing:
                message = item.message
                if isinstance(message, JSONRPCRequest) and message.method != LISTEN:
                    self._unasked.ask(message.id)
                    self._heeded.ask(message.id)
                if isinstance(message, JSONRPCRequest) and message.method == LISTING:
                    self._listings.add(coerce_request_id(message.id))
                stdin.write(encoded(message))  # type: ignore[union-attr]
                await stdin.drain()  # type: ignore[union-attr]
        except (OSError, anyio.ClosedResourceError):
            await self._fall_silent("it closed its input")

    async def _listen(self) -> None:
        while chunk := await self._process.stderr.read(_CHUNK):  # type: ignore[union-attr]
            self._stderr += chunk
            del self._stderr[:-LAST_BYTES]

    async def _mourn(self) -> None:
        """A server that has ended is over, though a child of its own may hold the pipes open."""
        await self._watched.exited.wait()
        await asyncio.wait({self._reader}, timeout=FLUSH_SECONDS)
        self._finish(_told(self._transport.get_returncode()))

    async def _fall_silent(self, why: str) -> None:
        """A pipe has closed: mostly because the process ends, and then its exit code says more."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._watched.exited.wait(), FLUSH_SECONDS)
            why = _told(self._transport.get_returncode())
        self._finish(why)

    def _finish(self, why: str) -> None:
        """The connection is over: the session hears it as the end of what it reads."""
        if not self._left:
            self.over = self.over or why
        self._incoming.close()
        ended, self._ended = self._ended, None
        if ended is not None:
            ended()

    async def _end(self) -> None:
        """Wait for the process to end, more and more firmly."""
        for step in (None, signal.SIGTERM, _KILL):
            if step is not None:
                self._kill(step)
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._watched.exited.wait(), EXIT_SECONDS)
                return

    def _kill(self, step: int) -> None:
        """To the whole group: servers start children, and a wrapper such as a shell may be gone already."""
        with suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._transport.kill()
            else:
                os.killpg(self._transport.get_pid(), step)


_KILL: Final = signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL


def _told(code: int | None) -> str:
    if code is None:
        return "it ended"
    if code >= 0:
        return f"it ended with exit code {code}"
    try:
        return f"it was ended by the signal {signal.Signals(-code).name}"
    except ValueError:
        return f"it was ended by the signal {-code}"
