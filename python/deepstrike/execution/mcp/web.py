"""A server behind an address, by the official client's streamable HTTP: statuses watched, answers bounded."""

from __future__ import annotations

import math
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp_types import JSONRPCError

from deepstrike.execution.mcp.carrier import LARGEST_MESSAGE
from deepstrike.execution.mcp.lines import read_message
from deepstrike.execution.mcp.posts import Posts
from deepstrike.execution.mcp.standins import GIVEN_UP, StandIns, unsent, unwanted
from deepstrike.execution.mcp.trimming import trimmed
from deepstrike.execution.mcp.words import told

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from types import TracebackType

    from httpx2._client import UseClientDefault
    from httpx2._types import AuthTypes
    from mcp.client._transport import TransportStreams

    from deepstrike.execution.mcp.endpoint import Address
    from deepstrike.execution.mcp.faults import Broken
    from deepstrike.execution.mcp.posts import Post

CONNECT_SECONDS: Final = 30.0
LONGEST_REASON: Final = 500

_LIMITS: Final = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
"""A connection for each call in flight, as many as there are: the runner bounds calls already, and one that waited here
could be what another waits for, or the answer to a server's question behind the calls that ask."""
_FORGOTTEN: Final = "it no longer knows the session"
_OF_BYTES: Final = ("content-length", "transfer-encoding")
_SESSION: Final = "mcp-session-id"


class Web:
    """See `carrier.Carrier`. Nothing is held between requests, so one that fails ends no other.

    The connection is over where its session is forgotten, and where the server cannot be reached while nothing else is
    asked of it. While it is made, any failure ends it: an outage says nothing of the revision that a server speaks.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._made = False
        self._stack = AsyncExitStack()
        self._posts = Posts()
        self._standins = StandIns()
        self._status = 0
        self.over: str | None = None

    async def __aenter__(self) -> TransportStreams:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(_Watching(self, self._address, self._posts))
            streams = await stack.enter_async_context(
                streamable_http_client(self._address.url, http_client=client, max_sse_event_size=LARGEST_MESSAGE)
            )
            self._stack = stack.pop_all()
        return streams

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, trace)

    def watch(self, ended: Callable[[], None]) -> None:
        self._made = True
        if self.over is not None:
            ended()

    def mark(self) -> int:
        return 0

    def silent_since(self, mark: int) -> bool:
        return False

    def forget(self, number: int | str) -> None:
        self._posts.give_up(number)

    def broken(self, message: str, data: object) -> Broken | None:
        return self._standins.read(message, data)

    def account(self) -> str:
        if self._status in (401, 403):
            return f"it refused us (HTTP {self._status}); check the credentials in headers="
        why = self.over or (f"it answered HTTP {self._status}" if self._status >= 400 else "")
        return told(why, LONGEST_REASON, self._address.secrets)

    def failed(self, request: httpx2.Request, post: Post, error: Exception) -> httpx2.Response:
        """A message to the server failed: what the client reads in place of an answer. Raises the error where there is
        no connection yet."""
        why = f"{type(error).__name__}: {error}"
        if not self._made:
            self.over = self.over or why
            raise error
        if unsent(error) and self._posts.alone(post):
            self.over = self.over or why  # whoever asked hears it, and makes a new connection
        return self._standins.failed(request, error)

    def answered(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response | None:
        """A message to the server has an answer that is still to be read: what the client reads in its place, if its
        status says enough."""
        status = self._status = response.status_code
        forgotten = status == 404 and _SESSION in request.headers
        if forgotten:
            self.over = self.over or _FORGOTTEN
        if request.method != "POST" or not self._made:
            return None
        if forgotten:
            return self._standins.broken(request, _FORGOTTEN, begun=False)  # a server does nothing for a stranger
        return self._failed(request, status) if status >= 500 and _streams(response) else None

    def read(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """It is read: it, or what the client reads in its place."""
        failed = self._made and response.status_code >= 500
        if not failed or isinstance(read_message(response.content), JSONRPCError):
            return response
        return self._failed(request, response.status_code)

    def _failed(self, request: httpx2.Request, status: int) -> httpx2.Response:
        return self._standins.broken(request, f"it answered HTTP {status}", begun=True)


class _Watching(httpx2.AsyncClient):
    """Tells the carrier how requests end, and lets them be given up."""

    def __init__(self, web: Web, address: Address, posts: Posts) -> None:
        headers = httpx2.Headers(dict(address.headers))
        headers["Accept-Encoding"] = "identity"
        super().__init__(headers=headers, timeout=httpx2.Timeout(CONNECT_SECONDS, read=None, pool=None), limits=_LIMITS)
        self._web = web
        self._posts = posts

    async def send(
        self,
        request: httpx2.Request,
        *,
        stream: bool = False,
        auth: AuthTypes | UseClientDefault | None = httpx2.USE_CLIENT_DEFAULT,
        follow_redirects: bool | UseClientDefault = httpx2.USE_CLIENT_DEFAULT,
    ) -> httpx2.Response:
        send = partial(super().send, request, stream=stream, auth=auth, follow_redirects=follow_redirects)
        post = self._posts.begin(request)
        try:
            response = await post.wait(send)
            if response is None:
                return unwanted(request)
            response.stream = _Body(response, post)
            return await self._heard(request, response, post)
        except Exception as error:
            if request.method != "POST":  # what listens for notifications: the client opens it again
                raise
            return unwanted(request) if post.given_up else self._web.failed(request, post, error)

    async def _heard(self, request: httpx2.Request, response: httpx2.Response, post: Post) -> httpx2.Response:
        """The answer, or what stands for it. It is read here unless it is a stream: an error in its midst would end the
        client."""
        instead = self._web.answered(request, response)
        if instead is None and (request.method != "POST" or _streams(response)):
            return _trimming(request, response) if post.lists and _streams(response) else response
        try:
            if instead is None:
                await response.aread()
        finally:
            await response.aclose()
        if post.lists and instead is None:
            response = _answered(request, response, content=await trimmed(response.content))
        return self._web.read(request, response) if instead is None else instead


class _Trimmed(httpx2.AsyncByteStream):
    """A stream of events, with the lists of tools in it cut to size."""

    def __init__(self, inner: httpx2.Response) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for event in httpx2.EventSource(self._inner, max_event_size=LARGEST_MESSAGE):
            data = (await trimmed(event.data.encode())).decode()
            lines = [f"event: {event.event}", *(f"data: {line}" for line in data.split("\n"))]
            if event.id:
                lines.append(f"id: {event.id}")
            if event.retry is not None:
                lines.append(f"retry: {event.retry}")
            yield "\n".join([*lines, "", ""]).encode()

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Body(httpx2.AsyncByteStream):
    """The body of an answer, read while somebody wants it. One that is too long is an error of its request only, and so
    is one that is compressed: we ask for none, and what it holds shows only when memory is full of it."""

    def __init__(self, response: httpx2.Response, post: Post) -> None:
        # The client bounds each event of a stream, and would resume a stream that ends with another error.
        streaming = _streams(response)
        self._error = httpx2.SSEError if streaming else httpx2.StreamError
        self._limit = math.inf if streaming else LARGEST_MESSAGE
        self._coding = response.headers.get("Content-Encoding", "").strip().lower()
        self._inner = response.stream
        self._post = post

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._coding not in ("", "identity"):
            raise self._error(f"the answer is compressed ({self._coding[:50]!r}), and we asked for one that is not")
        chunks, size = aiter(self._inner), 0  # type: ignore[arg-type]
        while (chunk := await self._post.wait(lambda: anext(chunks, None))) is not None:
            self._post.take(chunk)
            size += len(chunk)
            if size > self._limit:
                raise self._error(f"the answer is longer than {LARGEST_MESSAGE} bytes")
            yield chunk
        if self._post.given_up:
            raise self._error(GIVEN_UP)

    async def aclose(self) -> None:
        await self._inner.aclose()  # type: ignore[union-attr]


def _streams(response: httpx2.Response) -> bool:
    return bool(response.headers.get("Content-Type", "").lower().startswith("text/event-stream"))


def _trimming(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    return httpx2.Response(
        response.status_code, headers={"Content-Type": "text/event-stream"}, stream=_Trimmed(response), request=request
    )


def _answered(request: httpx2.Request, response: httpx2.Response, content: bytes) -> httpx2.Response:
    """The same with other content. Its headers are kept, as one of them may name the session."""
    headers = {name: value for name, value in response.headers.items() if name.lower() not in _OF_BYTES}
    return httpx2.Response(response.status_code, headers=headers, content=content, request=request)
