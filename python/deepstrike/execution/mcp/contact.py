"""What one event loop has to do with a server: a link, made when it is needed, and made again after its death."""

from __future__ import annotations

import asyncio
import importlib
import importlib.metadata
import os
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from deepstrike.clock import current_clock
from deepstrike.execution.mcp.elicitation import Desk
from deepstrike.execution.mcp.faults import Broken, Lost, Malformed, Refused, Unavailable, lacking
from deepstrike.execution.mcp.flight import Expired, Flight, Flights
from deepstrike.tools.threads import run_in_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp import Client

    from deepstrike.execution.mcp.catalogue import Listed
    from deepstrike.execution.mcp.elicitation import OnElicitation
    from deepstrike.execution.mcp.endpoint import Endpoint
    from deepstrike.execution.mcp.link import Link

T = TypeVar("T")

TRIES: Final = 3
"""So often a connection is tried before whoever needs it hears that there is none."""
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0
PROBE_SECONDS: Final = 5.0
MAJOR: Final = 2
"""The version of the official client."""


_loaded: list[type[Link]] = []


class Contact:
    """See above. Used on one loop, in one process; closed once."""

    def __init__(
        self, endpoint: Endpoint, revision: str | None, connect_seconds: float, answer: OnElicitation | None
    ) -> None:
        self._endpoint = endpoint
        self._revision = revision
        self._connect_seconds = connect_seconds
        self._failures = 0
        self._closed = False
        self._link: Link | None = None
        self._dialing: asyncio.Task[Link] | None = None
        self._doubts: dict[Link, asyncio.Task[None]] = {}
        self.flights = Flights()
        self._desk = Desk(answer, self.flights, asyncio.Lock())
        self.pid = os.getpid()

    async def tools(self) -> tuple[Listed, ...]:
        """The server's tools as it lists them now. Raises `Unavailable` or `ConfigError`."""
        for _ in range(TRIES):
            link = await self._connected()
            if not link.stale:
                return link.tools
            try:
                await link.refresh()
            except Lost as lost:
                failure = f"{lost}: {await link.epitaph()}"
            except Broken as broken:
                failure = str(broken)
            except Exception as error:
                raise Unavailable(f"the tools of {self._endpoint.label!r} cannot be listed: {error}") from error
            else:
                return link.tools
        raise Unavailable(f"the tools of {self._endpoint.label!r} cannot be listed: {failure}")

    async def do(self, work: Callable[[Client], Awaitable[T]], flight: Flight) -> T:
        """Do something at the server; once again if it failed before the server could see it.

        The flight's time runs while the server works, not while it is started. Raises `Expired`, `Unavailable` (also
        where the connection ended under it), `ConfigError`, `Broken`, `Refused`, `Malformed`.
        """
        for last in (False, True):
            link = await self._connected()
            mark = link.mark()
            try:
                value = await flight.watch(link.do(work))
            except Lost as lost:
                why = await link.epitaph()
                if lost.begun or last:
                    raise Unavailable(f"the server ended before it answered: {why}") from None
            except Broken as broken:
                if broken.begun or last:
                    raise
                if not link.over:
                    await current_clock().sleep(FIRST_PAUSE)
            except Expired:
                if link.silent_since(mark):
                    self._doubt(link, mark)
                raise
            else:
                self._failures = 0
                return value
        raise AssertionError("unreachable")

    def _doubt(self, link: Link, mark: int) -> None:
        """No answer came while a call took too long: ask for something that every server answers at once."""
        if link not in self._doubts:
            task = self._doubts[link] = asyncio.get_running_loop().create_task(self._probe(link, mark))
            task.add_done_callback(lambda _: self._doubts.pop(link, None))

    async def _probe(self, link: Link, mark: int) -> None:
        """End a connection that answers nothing, so that the next call gets a new server."""
        try:
            await Flight(PROBE_SECONDS).watch(link.refresh())
        except (Expired, Lost, Broken, Refused, Malformed):
            if link.silent_since(mark):
                link.depart("it did not answer any more")

    async def close(self) -> None:
        """End the connection, and one in the making; calls in flight are lost, and none is made from now on."""
        self._closed = True
        for doubt in self._doubts.values():
            doubt.cancel()
        dialing, self._dialing = self._dialing, None
        if dialing is not None:
            dialing.cancel()
            await asyncio.wait({dialing})
        link, self._link = self._link, None
        if link is not None:
            await link.leave("it was closed")

    async def _connected(self) -> Link:
        if self._closed:
            raise Unavailable(f"the MCP server {self._endpoint.label!r} was closed")
        if self._link is not None and not self._link.over:
            return self._link
        if self._dialing is None:
            self._dialing = asyncio.get_running_loop().create_task(self._dial())
            self._dialing.add_done_callback(self._dialed)
        return await asyncio.shield(self._dialing)

    def _dialed(self, task: asyncio.Task[Link]) -> None:
        if self._dialing is task:
            self._dialing = None
        if not task.cancelled():
            task.exception()  # seen, though whoever asked may not wait any more

    async def _dial(self) -> Link:
        try:
            self._link = await self._new_link()
        except asyncio.CancelledError:  # by `close`; whoever waits for it is not cancelled
            raise Unavailable(f"the MCP server {self._endpoint.label!r} was closed") from None
        return self._link

    async def _new_link(self) -> Link:
        """A link that is up. After failures it waits a little, longer each time, before it tries."""
        old, self._link = self._link, None
        if old is not None:
            self._failures += 1
            await old.epitaph()
        make = await _link_class()
        for attempt in range(1, TRIES + 1):
            if self._failures:
                await current_clock().sleep(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (self._failures - 1)))
            link = make(self._endpoint, self._revision, self._desk)
            try:
                await link.up(self._connect_seconds)
            except Unavailable:
                self._failures += 1
                if attempt == TRIES or link.slow:
                    raise
            else:
                return link
        raise AssertionError("unreachable")


async def _link_class() -> type[Link]:
    """The first import takes a second or two, which is no time for a loop to stand still. Raises `ConfigError`."""
    if not _loaded:
        check_client()
        module = await run_in_thread(partial(importlib.import_module, "deepstrike.execution.mcp.link"))
        _loaded.append(module.Link)
    return _loaded[0]


def check_client() -> None:
    """Raises `ConfigError` unless the official client is there in a version that we can use."""
    try:
        version = importlib.metadata.version("mcp")
    except importlib.metadata.PackageNotFoundError:
        raise lacking("the package mcp is not installed") from None
    if version.partition(".")[0] != str(MAJOR):
        raise lacking(f"the package mcp is there in version {version}, not {MAJOR}")
