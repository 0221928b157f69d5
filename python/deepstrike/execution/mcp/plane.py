"""The tools of an MCP server."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from deepstrike.clock import current_clock
from deepstrike.errors import ConfigError, DeepStrikeError
from deepstrike.execution.mcp.catalogue import Catalogue, Choice
from deepstrike.execution.mcp.contact import Contact, check_client
from deepstrike.execution.mcp.endpoint import read_endpoint
from deepstrike.execution.mcp.faults import Broken, Malformed, Refused, Unavailable
from deepstrike.execution.mcp.flight import Expired
from deepstrike.execution.mcp.names import LONGEST
from deepstrike.execution.mcp.words import plain
from deepstrike.tools.failures import failure
from deepstrike.tools.threads import TooManyHungThreads, run_in_thread
from deepstrike.wire.message import Err, Notice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType
    from typing import Literal

    from typing_extensions import Self

    from deepstrike.execution.base import Invocation
    from deepstrike.execution.mcp.catalogue import Listed, Offered
    from deepstrike.execution.mcp.elicitation import OnElicitation
    from deepstrike.execution.mcp.flight import Flight
    from deepstrike.wire.message import ToolResult, ToolSpec, Validated

    Revision = Literal["2025-11-25", "2026-07-28"]

_log = logging.getLogger("deepstrike")

REVISIONS: Final = ("2025-11-25", "2026-07-28")
_LONGEST_PREFIX: Final = 32
_MAYBE: Final = "the call may have taken effect"


class McpExecutionPlane:
    """The tools of an MCP server, over standard input and output or streamable HTTP.

    `server` is a command line (`"python server.py"`), its words as a list, or a URL. A command is started in a process
    group of its own, with `env` and a few harmless variables (`endpoint.INHERITED`) as its whole environment; `headers`
    go with every request to a URL and show nowhere else.

    `prefix="web"` makes `search` the model's `web_search`; a tool that has the name of one of the runtime's own
    (`recall`) becomes `mcp_recall`. `allow` offers only the tools whose own names are in it;
    `*`, `?` and `[…]` match as in a shell. `timeout_ms` bounds a call, `connect_timeout_ms` the way to a list of tools.
    `on_elicitation(Elicitation)` answers the server's questions to the user, with a mapping of fields, `True` or None
    (declined); it may be async, a sync one runs in a thread. Without it a question becomes a `ToolSuspendEvent` of the
    call, with the same answers from `on_tool_suspend` or a later `resume`. No server waits that long: where the run
    parks, the call is cancelled, and made again once the answer is there. It is declined while several calls of this
    plane are under way, since a server does not say which one asks. `trust_hints=True` believes
    the server that a tool only reads or may be repeated, and so lets its calls be run again after a crash; otherwise
    every tool is `once`. `revision` fixes the protocol's revision, else the newest that both speak is used.

    The connection is made by `open()` (or `async with`), one for each event loop, and made again when it is needed
    after it was lost; it ends with `aclose()`, or with its loop. Sampling and roots are refused. Raises `ConfigError`,
    also if the official client (`pip install 'deepstrike[mcp]'`) is not there.
    """

    def __init__(
        self,
        server: str | Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        prefix: str | None = None,
        allow: Iterable[str] | None = None,
        timeout_ms: int = 60_000,
        connect_timeout_ms: int = 30_000,
        on_elicitation: OnElicitation | None = None,
        trust_hints: bool = False,
        revision: Revision | None = None,
    ) -> None:
        self._endpoint = read_endpoint(server, env, headers, cwd)
        self._choice = Choice(_checked_prefix(prefix), _checked_allow(allow), _checked_trust(trust_hints))
        self._timeout_ms = _milliseconds("timeout_ms", timeout_ms)
        self._connect_seconds = _milliseconds("connect_timeout_ms", connect_timeout_ms) / 1000
        if on_elicitation is not None and not callable(on_elicitation):
            raise ConfigError("on_elicitation is a function that takes an Elicitation")
        self._on_elicitation = on_elicitation
        if revision is not None and revision not in REVISIONS:
            raise ConfigError(f"revision is one of {', '.join(REVISIONS)}, or None for the newest that both speak")
        self._revision = revision
        check_client()
        self._lock = threading.Lock()
        self._contacts: dict[asyncio.AbstractEventLoop, Contact] = {}
        self._catalogue: Catalogue | None = None

    def __repr__(self) -> str:
        return f"McpExecutionPlane({self._endpoint.label!r})"

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def open(self) -> None:
        """Connect if that is not done, and list the tools if they may have changed; a run does it before it begins.

        Raises `ConfigError` if a command cannot be started, else `DeepStrikeError` with the code `mcp_unavailable` if
        the server cannot be used; the message has its last words. Cancelling it lets the connection be.
        """
        listed = await self._contact().tools()
        catalogue = await self._looked_through(listed)
        with self._lock:
            before = self._catalogue
            if before is not None and (before.specs, before.omitted) == (catalogue.specs, catalogue.omitted):
                return
            self._catalogue = catalogue
        for notice in self.notices():
            _log.warning("%s", notice.message)

    async def _looked_through(self, listed: tuple[Listed, ...]) -> Catalogue:
        """Away from the loop where that may take long."""
        if not any(tool.slow for tool in listed):
            return Catalogue(listed, self._choice)
        clock = current_clock()
        try:
            return await run_in_thread(lambda: Catalogue(listed, self._choice, clock))
        except TooManyHungThreads as error:
            raise Unavailable(f"the tools of {self!r} cannot be looked through: {error}") from error

    async def aclose(self) -> None:
        """End the connections: calls in flight become error results, the server's process group is gone afterwards.

        Connections of other loops are asked to end and not waited for. Safe to call twice; what is needed later is
        opened again.
        """
        running = asyncio.get_running_loop()
        with self._lock:
            contacts = [(loop, contact) for loop, contact in self._contacts.items() if contact.pid == os.getpid()]
            self._contacts = {}
        for loop, contact in contacts:
            if loop is not running and not loop.is_closed():
                asyncio.run_coroutine_threadsafe(contact.close(), loop)
        for loop, contact in contacts:
            if loop is running:
                await contact.close()

    @property
    def omitted(self) -> dict[str, str]:
        """Tools that the server lists and this plane cannot offer, by the server's name, each with the reason."""
        return {} if self._catalogue is None else dict(self._catalogue.omitted)

    def notices(self) -> tuple[Notice, ...]:
        """The tools that are not offered, or under another name, since the runtime has a tool of their name."""
        catalogue = self._catalogue
        if catalogue is None:
            return ()
        left_out = [
            Notice("tool_omitted", f"{self!r}: the tool {plain(name, 100)!r} is not offered: {why}")
            for name, why in catalogue.omitted.items()
        ]
        renamed = [
            Notice("tool_renamed", f"{self!r}: the tool {name!r} is offered as {new!r}; {name!r} is the runtime's own")
            for name, new in catalogue.renamed.items()
        ]
        return (*left_out, *renamed)

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model sees them, sorted by name; the same object until `open` finds other ones.

        Raises `ConfigError` before the first `open`.
        """
        if self._catalogue is None:
            raise ConfigError(f"the tools of {self!r} are not known yet: `await plane.open()`, or `async with plane:`")
        return self._catalogue.specs

    def validate(self, name: str, args_text: str) -> Validated:
        """Check a call's arguments by the tool's own schema; never raises (base.py)."""
        if self._catalogue is None:
            return Err("unknown_tool", f"there is no tool {name[:100]!r}; the server was not asked for its tools yet")
        return self._catalogue.check(name, args_text)

    async def execute(self, invocation: Invocation) -> ToolResult:
        """Call the tool; every failure is a result (base.py).

        A lost connection, a server's refusal and a time-out are error results, too. Cancelling tells the server, and
        waits for nothing.
        """
        try:
            if self._catalogue is None:
                await self.open()
            offered = None if self._catalogue is None else self._catalogue.get(invocation.name)
            if offered is None:
                verdict = self.validate(invocation.name, "{}")
                return failure("unknown_tool", verdict.message if isinstance(verdict, Err) else "")
            return await self._call(offered, invocation)
        except DeepStrikeError as error:
            return failure("exception", error.message)

    async def _call(self, offered: Offered, invocation: Invocation) -> ToolResult:
        from deepstrike.execution.mcp.calling import tool_call  # the client is loaded: there is a catalogue

        contact = self._contact()
        flight = contact.flights.begin(self._timeout_ms / 1000, invocation.suspend)
        work = tool_call(offered, invocation.args_text, flight.notes, invocation.context.emit)
        try:
            return await contact.do(work, flight)
        except Expired:
            return failure("timeout", self._late(invocation.name, flight))
        except Refused as refused:
            return failure("tool_error", "\n".join((str(refused), *flight.notes)))
        except Broken as broken:
            effect = _MAYBE if broken.begun else "the server has not seen the call"
            return failure("exception", f"the call's request failed: {broken}; {effect}")
        except Malformed as malformed:
            return failure("exception", f"{malformed}; {_MAYBE}")
        finally:
            contact.flights.end(flight)

    def _late(self, name: str, flight: Flight) -> str:
        late = f"{name} did not finish within {self._timeout_ms} ms and was cancelled; it may have taken effect"
        return "\n".join((late, *flight.notes))

    def _contact(self) -> Contact:
        """The running loop's, of this process: a fork leaves the parent's connection alone."""
        loop = asyncio.get_running_loop()
        with self._lock:
            contact = self._contacts.get(loop)
            if contact is None or contact.pid != os.getpid():
                self._contacts = {it: other for it, other in self._contacts.items() if not it.is_closed()}
                contact = Contact(self._endpoint, self._revision, self._connect_seconds, self._on_elicitation)
                self._contacts[loop] = contact
        return contact


mcp = McpExecutionPlane
"""The same, named for the tools of an agent: `Agent(tools=[mcp("python server.py")])`."""


def _checked_prefix(prefix: str | None) -> str:
    if prefix is None:
        return ""
    if not isinstance(prefix, str) or not prefix.replace("-", "_").isidentifier() or not prefix.isascii():
        raise ConfigError('prefix is a short word of letters, digits, "_" and "-", as in prefix="web"')
    if len(prefix) > _LONGEST_PREFIX:
        raise ConfigError(f"prefix has at most {_LONGEST_PREFIX} characters; a tool's name has {LONGEST}")
    return prefix


def _checked_allow(allow: Iterable[str] | None) -> tuple[str, ...] | None:
    if allow is None:
        return None
    found = tuple(allow) if isinstance(allow, Iterable) else ()
    if isinstance(allow, str) or not isinstance(allow, Iterable) or not all(isinstance(each, str) for each in found):
        raise ConfigError('allow is a list of names, as in allow=["search", "read_*"]')
    return found


def _checked_trust(trust: object) -> bool:
    """A word such as "no" would count as trust."""
    if not isinstance(trust, bool):
        raise ConfigError("trust_hints is True or False")
    return trust


def _milliseconds(field: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**31:
        raise ConfigError(f"{field} is a positive number of milliseconds")
    return value
