"""Tools that a server lists wrongly are taken out of its answer, before the client refuses the whole list for them."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final

import anyio
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

from deepstrike.execution.mcp.flight import MOST_QUESTIONS
from deepstrike.execution.mcp.trimming import LEFT_OUT, LISTING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from mcp.client._transport import ReadStream, TransportStreams, WriteStream
    from typing_extensions import Self

    from deepstrike.execution.mcp.carrier import Carrier
    from deepstrike.tools.documents import Json

    Item = SessionMessage | Exception

MOST_ANSWERS: Final = 128
"""To what a server asks, that wait until it reads them."""
LARGEST_REQUEST: Final = 256 * 1024
"""Bytes of what a server asks."""

_CANCELLED: Final = "notifications/cancelled"


class Flaws:
    """What is wrong with the tools of the listing under way, by their names; `revision` is the one that both speak.

    `outputs` are the schemas of their structured results. The client does not get to see them: it would check results
    by them without a bound, and a pattern can hold the loop for ever.
    """

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self.outputs: dict[str, Mapping[str, Json]] = {}
        self.revision = ""

    def sift(self, item: Item) -> Item:
        """The message, without the tools that do not fit where it is a list of tools."""
        message = item.message if isinstance(item, SessionMessage) else None
        if not isinstance(message, JSONRPCResponse) or not self.revision:
            return item
        listed = message.result.get("tools")
        if not isinstance(listed, list) or "content" in message.result:
            return item
        listed = message.result["tools"] = [each for each in listed if not self._is_note(each)]
        if self._flaw(message.result) is not None:
            listed = message.result["tools"] = [each for each in listed if self._fits(each, message.result)]
        for tool in listed:
            if isinstance(tool, dict) and isinstance(schema := tool.pop("outputSchema", None), dict):
                self.outputs[str(tool.get("name"))] = schema
        return item

    def _is_note(self, tool: object) -> bool:
        """Whether it stands for an entry that was too much; then it is found."""
        why = tool["_meta"].get(LEFT_OUT) if isinstance(tool, dict) and isinstance(tool.get("_meta"), dict) else None
        if isinstance(why, str) and isinstance(tool, dict):
            self.found[str(tool.get("name"))] = why
        return isinstance(why, str)

    def _fits(self, tool: object, result: Mapping[str, object]) -> bool:
        flaw = self._flaw({**result, "tools": [tool]})
        if flaw is not None:
            name = tool.get("name") if isinstance(tool, dict) else None
            self.found[name if isinstance(name, str) else "(a tool without a name)"] = flaw
        return flaw is None

    def _flaw(self, result: Mapping[str, object]) -> str | None:
        try:
            validate_server_result(LISTING, self.revision, result)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            place = ".".join(str(key) for key in first["loc"] if key != "tools" and not isinstance(key, int))
            return f"the server lists it wrongly: {place}: {first['msg']}"
        except (KeyError, ValueError):  # a revision that this client does not know: it will say so itself
            return None
        return None


class Sifting(AbstractAsyncContextManager["TransportStreams"]):
    """A carrier whose incoming messages are sifted, and that hears which of ours are cancelled.

    A server that asks without reading our answers is broken: each of them waits in memory. `broken` is told, once, and
    nothing more is read.
    """

    def __init__(self, carrier: Carrier, flaws: Flaws, broken: Callable[[str], None]) -> None:
        self._carrier = carrier
        self._flaws = flaws
        self._broken = broken
        self._over = False

    async def __aenter__(self) -> TransportStreams:
        incoming, outgoing = await self._carrier.__aenter__()
        return _Sifted(incoming, self.sift), _Outgoing(outgoing, self._carrier, self._choke)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._carrier.__aexit__(kind, error, trace)

    def sift(self, item: Item) -> Item:
        """What is left of a message that came."""
        if self._over:
            raise anyio.ClosedResourceError
        return self._flaws.sift(_bounded(item))

    def _choke(self) -> None:
        if not self._over:
            self._over = True
            self._broken(f"over {MOST_ANSWERS} answers to what it asked wait until it reads them")


def _bounded(item: Item) -> Item:
    """The message, where it asks no more than we can hold; what it asks too much of is refused, or, where its very name
    or number is too long, left out."""
    message = item.message if isinstance(item, SessionMessage) else None
    if isinstance(message, JSONRPCRequest) and len(message.model_dump_json()) > LARGEST_REQUEST:
        message.params = None
        if len(message.model_dump_json()) > LARGEST_REQUEST:
            return ValueError("a request without an end")
    elif isinstance(message, JSONRPCResponse):
        asked = message.result.get("inputRequests")
        if isinstance(asked, dict) and len(asked) > MOST_QUESTIONS:
            error = ErrorData(code=INVALID_REQUEST, message=f"it asks over {MOST_QUESTIONS} questions at once")
            return SessionMessage(JSONRPCError(jsonrpc="2.0", id=message.id, error=error))
    return item


class _Sifted:
    """A stream of messages, each sifted on its way."""

    def __init__(self, inner: ReadStream[Item], sift: Callable[[Item], Item]) -> None:
        self._inner = inner
        self._sift = sift

    @property
    def last_context(self) -> object:
        """Not in the client's protocol of a stream; it looks for it where the stream carries its sender's context."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Item:
        return self._sift(await self._inner.receive())

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        return self._sift(await self._inner.__anext__())

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)


class _Outgoing:
    """A stream of messages to the server. The carrier hears of a cancellation before it can carry word of it; `choke`
    is called where too many answers wait."""

    def __init__(self, inner: WriteStream[SessionMessage], carrier: Carrier, choke: Callable[[], None]) -> None:
        self._inner = inner
        self._carrier = carrier
        self._choke = choke
        self._answers = 0

    async def send(self, item: SessionMessage) -> None:
        message = item.message
        if isinstance(message, (JSONRPCResponse, JSONRPCError)):
            await self._answer(item)
            return
        if isinstance(message, JSONRPCNotification) and message.method == _CANCELLED:
            await self._cancel(item, cancelled_request_id_from_params(message.params))
            return
        await self._inner.send(item)

    async def _cancel(self, item: SessionMessage, number: int | str | None) -> None:
        """Word of a cancellation may have to wait, and the request may be just on its way to the carrier."""
        if number is not None:
            self._carrier.forget(number)
        await self._inner.send(item)
        if number is not None:
            self._carrier.forget(number)

    async def _answer(self, item: SessionMessage) -> None:
        self._answers += 1
        try:
            if self._answers > MOST_ANSWERS:
                self._choke()
            await self._inner.send(item)
        finally:
            self._answers -= 1

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)
