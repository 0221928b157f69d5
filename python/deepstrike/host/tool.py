"""RunTool: run one tool and hand its result to the kernel, large ones by reference."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from threading import Event
from typing import TYPE_CHECKING

from deepstrike.execution.base import Invocation
from deepstrike.kernel import clip
from deepstrike.stream import ToolDeltaEvent
from deepstrike.text import well_formed
from deepstrike.tools.context import ToolContext
from deepstrike.wire.input import Result
from deepstrike.wire.message import BlobRef, Text, ToolResult

if TYPE_CHECKING:
    from deepstrike.execution.base import ExecutionPlane
    from deepstrike.host.outbox import Outbox
    from deepstrike.host.session import Session
    from deepstrike.wire.effect import RunTool

# A token of a byte-level vocabulary is at least one byte, a character at most four; unknown vocabularies are counted
# with a factor of 1.35 over it. Texts below this need no count to be known to fit.
_BYTES_A_CHARACTER = 4 * 1.35
_UNSEEN = 256


class Progress:
    """What a tool emits beside its result, on its way to the caller: from any thread, bounded, the oldest dropped."""

    __slots__ = ("_call_id", "_cancelled", "_loop", "_name", "_outbox", "_scheduled", "_texts")

    def __init__(self, call_id: str, name: str, outbox: Outbox, cancelled: Event) -> None:
        self._call_id = call_id
        self._name = name
        self._outbox = outbox
        self._cancelled = cancelled
        self._loop = asyncio.get_running_loop()
        self._texts: deque[str] = deque(maxlen=_UNSEEN)
        self._scheduled = False

    def emit(self, text: str) -> None:
        """See `ToolContext.emit`."""
        if self._cancelled.is_set():
            return
        self._texts.append(text)
        if not self._scheduled:
            self._scheduled = True
            # The loop may be closed under a tool that was abandoned: then nobody listens.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.flush)

    def flush(self) -> None:
        """Hand on what is there, while the caller keeps up. On the loop's thread only."""
        self._scheduled = False
        while self._texts and not self._outbox.full:
            self._outbox.put(ToolDeltaEvent(self._call_id, self._name, self._texts.popleft()))


class ToolRun:
    """One tool run in flight."""

    __slots__ = ("_cancelled", "_effect", "_outbox", "_session")

    def __init__(self, effect: RunTool, session: Session, outbox: Outbox) -> None:
        self._effect = effect
        self._session = session
        self._outbox = outbox
        self._cancelled = Event()

    def stop(self, task: asyncio.Task[Result | None]) -> None:
        """Stop the tool: an async one is cancelled, a sync one fenced off and told by `ToolContext.cancelled`."""
        self._cancelled.set()
        task.cancel()

    async def run(self, plane: ExecutionPlane, agent_id: str | None, deps: object) -> Result | None:
        """The result; None when the run was stopped."""
        effect = self._effect
        progress = Progress(effect.call_id, effect.name, self._outbox, self._cancelled)
        context = ToolContext(
            self._session.id, effect.call_id, effect.key, agent_id, deps, self._cancelled, progress.emit
        )
        try:
            result = await plane.execute(Invocation(effect.name, effect.args, context, self._show))
            return Result(effect.id, await self._within_share(result))
        except asyncio.CancelledError:
            if self._cancelled.is_set():
                return None
            return Result(effect.id, ToolResult((Text("the tool was cancelled from inside"),), "exception"))
        except Exception as error:
            text = well_formed(f"{type(error).__name__}: {error}")
            return Result(effect.id, ToolResult((Text(text),), "exception"))
        finally:
            progress.flush()
            self._cancelled.set()

    async def _show(self, delta: str, chunk: object | None) -> None:
        self._outbox.put(ToolDeltaEvent(self._effect.call_id, self._effect.name, delta, chunk))
        if self._outbox.full:
            await self._outbox.room()

    async def _within_share(self, result: ToolResult) -> ToolResult:
        """A result larger than its share of the window goes to the blob store; its preview stays in the context."""
        share = self._session.result_share
        text = "\n".join(part.text for part in result.parts if isinstance(part, Text))
        if len(text) * _BYTES_A_CHARACTER <= share:
            return result
        data = text.encode()
        cut = await self._session.off_loop(len(data), clip, text, self._session.model, share)
        if cut is None:
            return result
        preview, tokens = cut
        ref = await self._session.put_blob(data)
        kept = tuple(part for part in result.parts if not isinstance(part, Text))
        return ToolResult((Text(preview), *kept), result.error_kind, BlobRef(ref, len(data), tokens))
