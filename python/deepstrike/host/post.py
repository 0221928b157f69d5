"""Signals to the runs that they are for: one post for each source, shared by every run that hears it."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from deepstrike.errors import QueueFull
from deepstrike.host.pump import Pump
from deepstrike.signals.queue import Address, Entry, SignalQueue
from deepstrike.signals.signal import URGENCIES, USER, RuntimeSignal

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepstrike.signals.source import SignalSource

MAX_WORDS: Final = 100
"""So many words of the user's wait for one session at most."""

MAX_TAKEN: Final = 1_000
"""At most so many signals are taken into a run at once."""

_CAPACITY: Final = 1_000
_MOST_WORDS: Final = 10_000
_HIGH = URGENCIES.index("high")
_CRITICAL = URGENCIES.index("critical")


class Knock:
    """Stands among a run's inputs for what its mailbox holds."""


class Mailbox:
    """What one run has to hear. `wake` is called on the run's loop when there may be something new."""

    __slots__ = ("_post", "_taken", "_urgent", "_wake", "_waking", "loop", "session_id")

    def __init__(self, post: Post, session_id: str, loop: asyncio.AbstractEventLoop) -> None:
        self._post = post
        self.session_id = session_id
        self.loop = loop
        self._urgent: deque[Entry] = deque()
        self._taken: list[Entry] = []
        self._wake: Callable[[], None] | None = None
        self._waking = False

    def attach(self, wake: Callable[[], None]) -> None:
        """From here on `wake` tells of what comes."""
        self._wake = wake
        if self._urgent:
            self.call()

    def call(self) -> None:
        """Wake the run, once for all that comes until it looks. From any thread."""
        if self._wake is not None and not self._waking:
            self._waking = True
            with suppress(RuntimeError):  # the loop was closed under the run
                self.loop.call_soon_threadsafe(self._ring)

    def _ring(self) -> None:
        self._waking = False
        if self._wake is not None:
            self._wake()

    def push(self, entry: Entry) -> None:
        """Something that has to be heard before anything else."""
        self._urgent.append(entry)

    @property
    def presses(self) -> bool:
        """Whether something urgent waits that does not stop the run."""
        return bool(self._urgent) and not any(entry.signal.stops for entry in self._urgent)

    @property
    def words(self) -> int:
        """How many words of the user's wait here."""
        return sum(1 for entry in self._urgent if entry.from_user)

    def may_have(self) -> bool:
        """Whether it is worth taking. Cheap."""
        return bool(self._urgent) or not self._post.queue.is_empty or self._post.is_to_be_asked()

    async def look(self) -> None:
        """Ask a source that rests, and let it say what it has at hand."""
        await self._post.ask()

    def take(self, *, plain: bool) -> list[Entry]:
        """What there is to hear, the most urgent first; `plain`: also what need not be heard at once."""
        taken: list[Entry] = []
        while self._urgent and len(taken) < MAX_TAKEN:
            taken.append(self._urgent.popleft())
        taken.sort(key=lambda entry: -entry.urgency)
        while plain and len(taken) < MAX_TAKEN and (entry := self._post.plain(self)) is not None:
            taken.append(entry)
        self._taken += taken
        return taken

    def delivered(self, entries: list[Entry]) -> None:
        """They are in the session's log."""
        gone = set(map(id, entries))
        self._taken = [entry for entry in self._taken if id(entry) not in gone]
        self._post.queue.delivered(entries)

    def left(self) -> list[Entry]:
        """What was for this run and did not reach it."""
        self._wake = None
        left = [*self._taken, *self._urgent]
        self._taken.clear()
        self._urgent.clear()
        return left


class Post:
    """Hands the signals of one source to runs, each once. Safe over threads and loops.

    Critical ones go to every active run, others to the oldest; one for a session goes to that session's run. What is
    for nobody who runs now waits. While somebody listens for prompts, they are left to the listener.
    """

    def __init__(self, source: SignalSource | None) -> None:
        self.source = source
        own = None if source is None else _queue_of(source)
        self.queue = SignalQueue(_CAPACITY) if own is None else own
        self._pump = Pump(source, self.queue) if source is not None and own is None else None
        self._boxes: list[Mailbox] = []
        self._listeners: list[asyncio.AbstractEventLoop] = []
        self._words: dict[str, deque[Entry]] = {}
        self._lock = threading.RLock()
        self._spoken = 0
        if source is not None:
            self.queue.on_change(self._route)

    async def open(self, session_id: str) -> Mailbox:
        """A run of this session hears from here on. What waits for it is there already."""
        box = Mailbox(self, session_id, asyncio.get_running_loop())
        with self._lock:
            for entry in self._words.pop(session_id, ()):
                box.push(entry)
            self._boxes.append(box)
        await self.ask()
        self._route()
        return box

    async def close(self, box: Mailbox) -> None:
        """The run hears no more; what did not reach it waits for another, or for its session's next."""
        with self._lock:
            self._boxes.remove(box)
            left = box.left()
            words = [entry for entry in left if entry.from_user]
            if words:
                self._words.setdefault(box.session_id, deque()).extendleft(reversed(words))
            # What stops runs was for those that were active when it came, and this one has ended.
            done = [entry for entry in left if entry.signal.stops or entry.copies > 1]
            self.queue.delivered(done)
            self.queue.give_back([entry for entry in left if not entry.from_user and entry not in done])
        await self._leave(box.loop)

    async def listen(self) -> None:
        """Prompts that fall due are for `next_prompt` from here on."""
        with self._lock:
            self._listeners.append(asyncio.get_running_loop())
        await self.ask()

    async def hush(self) -> None:
        """The end of `listen`."""
        loop = asyncio.get_running_loop()
        with self._lock:
            self._listeners.remove(loop)
        await self._leave(loop)

    def next_prompt(self) -> Entry | None:
        """The next prompt that is for no run that is active."""
        with self._lock:
            return self.queue.take_prompt({box.session_id for box in self._boxes})

    def say(self, session_id: str, text: str) -> bool:
        """What the user says to a run of this session. False where there is none.

        Raises `QueueFull` where 100 such words wait for it.
        """
        with self._lock:
            box = next((box for box in self._boxes if box.session_id == session_id), None)
            if box is None:
                return False
            _require_room(box.words, session_id)
            box.push(self._word(text))
        box.call()
        return True

    def keep(self, session_id: str, text: str) -> bool:
        """What the user says to a session: to its run, else to its next one; False for the latter. Raises as `say`."""
        with self._lock:
            if self.say(session_id, text):
                return True
            if sum(map(len, self._words.values())) >= _MOST_WORDS:
                raise QueueFull(f"{_MOST_WORDS} messages wait for sessions that have no run; let some run first")
            words = self._words.setdefault(session_id, deque())
            _require_room(len(words), session_id)
            words.append(self._word(text))
            return False

    async def ask(self) -> None:
        """Ask a source of somebody's own that rests, and give it one turn of the loop to say what it has at hand."""
        if self._pump is not None and self.is_to_be_asked():
            self._pump.ask()
            await asyncio.sleep(0)

    def is_to_be_asked(self) -> bool:
        """Whether the source is one of somebody's own and rests."""
        return self._pump is not None and self._pump.rests

    def plain(self, box: Mailbox) -> Entry | None:
        """The next low or normal signal for this run."""
        with self._lock:
            if box not in self._boxes:
                return None
            entry = self.queue.take(self._addresses(box))
            if entry is None:
                return None
            (assigned,) = self.queue.assign(entry, [box.session_id])
            return assigned

    def _addresses(self, box: Mailbox) -> list[Address]:
        """Whom a run may hear for: its session, and nobody in particular if it is the oldest."""
        addresses = [Address(box.session_id, False), Address(box.session_id, True)]
        if box is self._boxes[0]:
            addresses.append(Address(None, False))
            if not self._listeners:
                addresses.append(Address(None, True))
        return addresses

    def _word(self, text: str) -> Entry:
        self._spoken += 1
        signal = RuntimeSignal("message", {"text": text}, USER, "message", "high")
        return Entry(self._spoken, signal, None, None, True)

    def _route(self) -> None:
        """Something came: what is urgent goes to its runs at once, of the rest they are told."""
        with self._lock:
            boxes = list(self._boxes)
            for box in boxes:
                addresses = self._addresses(box)
                while (entry := self.queue.take(addresses, _HIGH)) is not None:
                    self._deliver(entry, box)
        for box in boxes:
            if box.may_have():
                box.call()

    def _deliver(self, entry: Entry, box: Mailbox) -> None:
        to_all = entry.address is None and entry.urgency == _CRITICAL
        targets = list(self._boxes) if to_all else [box]
        for target, assigned in zip(
            targets, self.queue.assign(entry, [target.session_id for target in targets]), strict=True
        ):
            target.push(assigned)

    async def _leave(self, loop: asyncio.AbstractEventLoop) -> None:
        """Nobody hears on this loop any more: the source is asked on another one where somebody does, or not at all."""
        pump = self._pump
        if pump is None or pump.loop is not loop:
            return
        with self._lock:
            others = [*(box.loop for box in self._boxes), *self._listeners]
        if loop in others:
            return
        await pump.stop()
        for other in others:
            with suppress(RuntimeError):
                other.call_soon_threadsafe(pump.ask)
                return


_posts: WeakValueDictionary[int, Post] = WeakValueDictionary()
_posts_lock = threading.Lock()


def post_of(source: SignalSource | None) -> Post:
    """The post of a source, the same for every runner that has it; without one, a post for what the user says."""
    if source is None:
        return Post(None)
    with _posts_lock:
        post = _posts.get(id(source))
        if post is None:
            post = _posts[id(source)] = Post(source)
        return post


def _queue_of(source: SignalSource) -> SignalQueue | None:
    """A gateway's own queue; None for a source that has to be asked."""
    from deepstrike.signals.gateway import SignalGateway  # brings a database and timers, for those who have one

    return source.queue if isinstance(source, SignalGateway) else None


def _require_room(waiting: int, session_id: str) -> None:
    if waiting >= MAX_WORDS:
        raise QueueFull(f"{MAX_WORDS} messages wait for session {session_id!r} already; let a run hear them first")
