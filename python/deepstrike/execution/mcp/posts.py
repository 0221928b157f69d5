"""Requests under way at a web server: they can be given up.

Below the revision 2026-07-28 the client tells a server that a call is cancelled and goes on waiting for its answer: a
task and a connection each, as long as the server likes.
"""

from __future__ import annotations

import asyncio
import math
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
import httpx2
import msgspec

from deepstrike.execution.mcp.trimming import LISTING
from deepstrike.execution.mcp.unasked import LISTEN, TOO_MUCH, Unasked

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")
Id = int | str

NOTE_SECONDS: Final = 5.0
"""For a server to take what needs no answer. All that is to be sent waits for it."""

LISTENING: Final = 256 * 1024
"""As much as so many bytes it counts when a stream is opened for what nobody asks."""


class _Message(msgspec.Struct):
    """What matters here of a message that we send."""

    id: Id | None = None
    method: str = ""


class Post:
    """One message to the server, with all the requests that are made for it: a redirect's, and a resumption's."""

    def __init__(self, seconds: float = math.inf, unasked: Unasked | None = None, lists: bool = False) -> None:
        """It is given up by itself after `seconds`. `unasked` bounds what it brings, where nothing is asked; `lists`
        says that it may bring a list of tools."""
        self._unasked = unasked
        self.lists = lists
        self._deadline = anyio.current_time() + seconds
        self._scope: anyio.CancelScope | None = None
        self.given_up = False

    @property
    def listens(self) -> bool:
        """Whether it is there for what nobody asks."""
        return self._unasked is not None

    def give_up(self) -> None:
        """Nobody wants its answer any more."""
        self.given_up = True
        if self._scope is not None:
            self._scope.cancel()

    def take(self, chunk: bytes) -> None:
        """Read this of an answer. Raises an error of this request only where it is too much."""
        if self._unasked is not None and not self._unasked.take(chunk):
            raise httpx2.SSEError(TOO_MUCH)

    async def wait(self, work: Callable[[], Awaitable[T]]) -> T | None:
        """What `work` gives; None, where it is cancelled or not begun, once this is given up."""
        if not self.given_up:
            with anyio.CancelScope(deadline=self._deadline) as self._scope:
                return await work()
            self.given_up = True
        return None


class Posts:
    """All of them, by the numbers of their messages and by the tasks that wait for their answers."""

    def __init__(self) -> None:
        self._by_number: dict[Id, Post] = {}
        self._by_task: dict[asyncio.Task[object] | None, Post] = {}
        self._unasked = Unasked()

    def begin(self, request: httpx2.Request) -> Post:
        """The post of a request that is about to be sent. Raises an error of this request only where the server makes
        us listen anew too often."""
        message, task = _read(request), asyncio.current_task()
        if message.id is not None and message.method and task is not None:
            unasked = self._unasked if message.method == LISTEN else None
            post = Post(unasked=unasked, lists=message.method in (LISTEN, LISTING))
            self._by_number[message.id] = self._by_task[task] = post
            if message.method != LISTEN:
                self._unasked.ask(message.id)
            task.add_done_callback(partial(self._end, message.id, post))
            return post
        if (begun := self._by_task.get(task)) is not None:
            return begun
        return self._listening() if request.method == "GET" else Post(NOTE_SECONDS)

    def _listening(self) -> Post:
        if not self._unasked.pay(LISTENING):
            raise httpx2.SSEError(TOO_MUCH)
        return Post(unasked=self._unasked, lists=True)

    def alone(self, post: Post) -> bool:
        """Whether nothing else is asked of the server."""
        return all(each is post or each.listens for each in self._by_number.values())

    def give_up(self, number: Id) -> None:
        """Nobody wants the answer to the message with this number."""
        if (post := self._by_number.get(number)) is not None:
            post.give_up()

    def _end(self, number: Id, post: Post, task: asyncio.Task[object]) -> None:
        self._by_task.pop(task, None)
        if self._by_number.get(number) is post:
            del self._by_number[number]
            self._unasked.settle(number)


def _read(request: httpx2.Request) -> _Message:
    try:
        return msgspec.json.decode(request.content, type=_Message)
    except (msgspec.DecodeError, httpx2.RequestNotRead):  # the latter where a redirect is followed
        return _Message()
