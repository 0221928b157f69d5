"""One connection to a server: the client's contexts are entered and left in one task, its owner.

Errands come to the owner through a queue. When the connection ends, all of them end with it.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import mcp_types
from mcp import Client, MCPError
from pydantic import ValidationError

from deepstrike._version import __version__
from deepstrike.clock import current_clock
from deepstrike.errors import DeepStrikeError
from deepstrike.execution.mcp.elicitation import question
from deepstrike.execution.mcp.endpoint import Command
from deepstrike.execution.mcp.faults import Broken, Lost, Malformed, Refused, Unavailable, leaves
from deepstrike.execution.mcp.listing import list_tools, watch_list
from deepstrike.execution.mcp.sifting import Flaws, Sifting
from deepstrike.execution.mcp.words import told

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.client import ClientRequestContext
    from mcp.client.session import IncomingMessage

    from deepstrike.execution.mcp.carrier import Carrier
    from deepstrike.execution.mcp.catalogue import Listed
    from deepstrike.execution.mcp.elicitation import Desk
    from deepstrike.execution.mcp.endpoint import Endpoint

_log = logging.getLogger("deepstrike")
T = TypeVar("T")

LEAVE_SECONDS: Final = 1.0
"""For cancelled errands to tell the server."""
CLOSE_SECONDS: Final = 10.0
"""For the owner to leave its contexts; the process itself is killed earlier."""
LONGEST_REASON: Final = 4096

_UNREAD: Final = (mcp_types.CONNECTION_CLOSED, mcp_types.PARSE_ERROR)
"""The client's, and the pipes', for an answer that never came or cannot be read: the call may have taken effect."""


class Errand(Generic[T]):
    """Something to be done on the connection."""

    __slots__ = ("outcome", "work")

    def __init__(self, work: Callable[[Client], Awaitable[T]]) -> None:
        self.work = work
        self.outcome: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def fail(self, error: Exception) -> None:
        """It ends with `error`, if it has not ended."""
        if not self.outcome.done():
            self.outcome.set_exception(error)

    async def run(self, client: Client, judged: Callable[[Exception], Exception]) -> None:
        """Do it, for the owner. Whoever waits hears of it; nobody else does."""
        try:
            value = await self.work(client)
        except Exception as error:
            self.fail(judged(error))
        else:
            if not self.outcome.done():
                self.outcome.set_result(value)
        finally:
            self.fail(Lost(begun=True))


class Link:
    """See above. Bound to the loop on which it was made; made and used there only."""

    def __init__(self, endpoint: Endpoint, revision: str | None, desk: Desk) -> None:
        self._endpoint = endpoint
        self._revision = revision
        self._desk = desk
        self._carrier = _carrier(endpoint)
        self._flaws = Flaws()
        self._errands: asyncio.Queue[Errand[object] | None] = asyncio.Queue()
        self._running: dict[asyncio.Task[None], Errand[object]] = {}
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reason = ""
        self._leaving = False
        self.tools: tuple[Listed, ...] = ()
        self.slow = False
        """Whether it was given up because the server did not answer."""
        self._stale = False
        self._deaf = False
        self._owner = asyncio.get_running_loop().create_task(self._own())

    @property
    def over(self) -> bool:
        """Whether it serves nobody any more."""
        return self._leaving or self._owner.done() or self._carrier.over is not None

    @property
    def stale(self) -> bool:
        """Whether the server has said, or may have without our hearing it, that its list has changed."""
        return self._stale or self._deaf

    def mark(self) -> int:
        """See `Carrier.mark`."""
        return self._carrier.mark()

    def silent_since(self, mark: int) -> bool:
        """See `Carrier.silent_since`."""
        return self._carrier.silent_since(mark)

    async def up(self, seconds: float) -> None:
        """Wait until the server's tools are known. Raises `Unavailable` or `ConfigError`; then all is ended."""
        timer = current_clock().call_later(seconds, partial(self._give_up, seconds))
        try:
            await asyncio.shield(self._ready)
        except asyncio.CancelledError:
            await self.leave("")
            raise
        finally:
            timer.cancel()

    async def do(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Do something on the connection. Raises `Lost`, `Broken`, `Refused`, `Malformed`. Cancelling stops the work:
        the server is told, and nobody waits for it."""
        if self.over:
            raise Lost(begun=False)
        errand = Errand(work)
        self._errands.put_nowait(errand)  # type: ignore[arg-type]
        return await errand.outcome

    async def refresh(self) -> None:
        """List the tools anew. Raises what `do` raises."""
        self._stale = False
        try:
            self.tools = await self.do(partial(list_tools, flaws=self._flaws))
        except BaseException:
            self._stale = True
            raise

    async def epitaph(self) -> str:
        """End it, unless it has ended, and say why."""
        self.depart()
        await asyncio.wait({self._owner}, timeout=CLOSE_SECONDS)
        return self._reason or self._carrier.account() or "the connection ended"

    async def leave(self, reason: str) -> None:
        """End everything: errands in flight are lost. Waits until it is done; safe to call twice."""
        self.depart(reason)
        if not self._ready.done():
            self._owner.cancel()
        await asyncio.wait({self._owner}, timeout=CLOSE_SECONDS)
        self._owner.cancel()

    def depart(self, reason: str = "") -> None:
        """Begin to leave, without waiting."""
        self._reason = self._reason or reason
        self._leaving = True
        self._errands.put_nowait(None)

    def _give_up(self, seconds: float) -> None:
        self.slow = True
        self._reason = f"it did not answer within {round(seconds * 1000)} ms"
        self._owner.cancel()

    async def _own(self) -> None:
        failure: BaseException | None = None
        try:
            async with self._client() as client:
                self.tools = await list_tools(client, self._flaws)
                self._ready.set_result(None)
                await self._serve(client)
        except (Exception, asyncio.CancelledError) as error:
            failure = error
            if isinstance(error, asyncio.CancelledError) and not self._carrier.over:
                self._reason = self._reason or "it was closed"
        finally:
            self._close(failure)

    def _client(self) -> Client:
        return Client(
            Sifting(self._carrier, self._flaws, self.depart),
            mode="legacy" if self._revision == "2025-11-25" else self._revision or "auto",
            cache=None,
            client_info=mcp_types.Implementation(name="deepstrike", version=__version__),
            elicitation_callback=self._elicit,
            message_handler=self._hear,
        )

    async def _serve(self, client: Client) -> None:
        """Start errands as they come, until there is a reason to leave."""
        self._carrier.watch(self.depart)
        watching = asyncio.ensure_future(self._watch(client))
        try:
            while (errand := await self._errands.get()) is not None:
                if errand.outcome.done():
                    continue
                task = asyncio.ensure_future(errand.run(client, self._judged))
                self._running[task] = errand
                task.add_done_callback(self._running.pop)
                errand.outcome.add_done_callback(lambda _, task=task: task.cancel())  # type: ignore[misc]
        finally:
            watching.cancel()
            await self._stop(watching)

    async def _stop(self, watching: asyncio.Future[None]) -> None:
        """Cancel what runs, and let it tell the server."""
        tasks = {watching, *self._running}
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=LEAVE_SECONDS)

    def _close(self, failure: BaseException | None) -> None:
        """Everybody who waits hears that it is over."""
        self._leaving = True
        self._reason = self._reason or self._told(failure)
        lost = [(errand, True) for errand in self._running.values()]
        while not self._errands.empty():
            if (errand := self._errands.get_nowait()) is not None:
                lost.append((errand, False))
        for errand, begun in lost:
            errand.fail(Lost(begun))
        if not self._ready.done():
            self._ready.set_exception(self._unavailable(failure))
            self._ready.exception()  # seen, though nobody may wait any more

    def _unavailable(self, failure: BaseException | None) -> DeepStrikeError:
        if isinstance(failure, DeepStrikeError):
            return failure
        return Unavailable(f"the MCP server {self._endpoint.label!r} cannot be used: {self._reason}")

    def _told(self, failure: BaseException | None) -> str:
        account = self._carrier.account()
        if not self._carrier.over and failure is not None:
            first = next(leaves(failure))
            words = str(first) if isinstance(first, Malformed) else f"{type(first).__name__}: {first}"
            account = f"{words}; {account}" if account else words
        return self._safe(account)

    def _judged(self, error: Exception) -> Exception:
        """What an errand's failure means. The client's word for a lost connection is one that servers use, too."""
        if isinstance(error, MCPError):
            if (broken := self._carrier.broken(error.message, error.data)) is not None:
                return Broken(self._safe(str(broken)), broken.begun)
            if self._carrier.over is not None or self._leaving:
                return Lost(begun=True)
            words = self._safe(f"the server reports: {error.message} (code {error.code})")
            return Malformed(words) if error.code in _UNREAD else Refused(words)
        if isinstance(error, ValidationError):
            return Malformed("the server's answer has another form than the protocol's")
        words = str(error) if isinstance(error, Malformed) else f"{type(error).__name__}: {error}"
        return Malformed(self._safe(words))

    def _safe(self, text: str) -> str:
        return told(text, LONGEST_REASON, self._endpoint.secrets)

    async def _hear(self, message: IncomingMessage) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._outdate()

    def _outdate(self) -> None:
        self._stale = True

    async def _watch(self, client: Client) -> None:
        self._deaf = await watch_list(client, self._outdate)

    async def _elicit(
        self, context: ClientRequestContext, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult:
        if isinstance(params, mcp_types.ElicitRequestURLParams):
            asked = question(self._endpoint.label, params.message, None, params.url)
        else:
            asked = question(self._endpoint.label, params.message, params.requested_schema, "")
        try:
            fields = await self._desk.ask(asked)
        except Exception:
            _log.exception("on_elicitation failed; the server %r is told that nobody decided", self._endpoint.label)
            return mcp_types.ElicitResult(action="cancel")
        if fields is None:
            return mcp_types.ElicitResult(action="decline")
        return mcp_types.ElicitResult(action="accept", content=None if asked.url else dict(fields))


def _carrier(endpoint: Endpoint) -> Carrier:
    if isinstance(endpoint, Command):
        from deepstrike.execution.mcp.pipes import Pipes

        return Pipes(endpoint)
    from deepstrike.execution.mcp.web import Web

    return Web(endpoint)
