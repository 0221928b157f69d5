"""The gateway: signals and scheduled prompts in, from any thread; runs hear them."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Final

from deepstrike.clock import current_clock
from deepstrike.errors import ConfigError, DeepStrikeError, QueueFull
from deepstrike.signals.queue import KEYS, SignalQueue
from deepstrike.signals.schedule import ScheduledPrompt, due_times, fired, times_after
from deepstrike.signals.store import Kept, SignalStore

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from deepstrike.clock import Timer
    from deepstrike.signals.signal import RuntimeSignal

    Listener = Callable[[RuntimeSignal], object]

MAX_SCHEDULES: Final = 10_000
"""At most so many schedules have times to come."""

LOOK_SECONDS: Final = 2.0
"""The machine's clock is looked at so often while something is scheduled: it may be set, or have slept."""

_log = logging.getLogger("deepstrike")


@dataclass(slots=True)
class _Plan:
    """A schedule with times to come. Times up to `passed` are dealt with; `next` is the next one.

    `steady` is when that is by a clock that nobody sets: a single time is not put off by setting the machine's back.
    """

    id: str
    prompt: ScheduledPrompt
    passed: int
    next: int
    steady: int

    def left(self, wall: int, steady: int) -> int:
        """Milliseconds until it is due; 0 or less where it is."""
        left = self.next - wall
        return min(left, self.steady - steady) if self.prompt.cron is None else left


class SignalGateway:
    """Takes signals from any thread, with or without an event loop, and hands each to one hearer.

    `RuntimeOptions(signal_source=gateway)` makes runs hear it; `next_signal` is for whoever hears it by hand.

    store: a file in which schedules and undelivered signals outlive the process (SQLite); None keeps them in memory.
        One gateway at a time serves it, until it is destroyed, collected, or its process has ended.
    capacity: how many low and normal signals wait at most, 1,000 or more; one more is refused with `QueueFull`. High
        and critical ones are never refused: above so many of each they wait on disk.

    Raises `ConfigError`, `DeepStrikeError` with code `store_busy` where another gateway serves the store, and with
    `store_damaged`, `store_unusable` or `store_io` where it cannot be used. Nothing here needs an event loop but
    `next_signal`.
    """

    def __init__(self, store: str | os.PathLike[str] | None = None, *, capacity: int = 10_000) -> None:
        if isinstance(capacity, bool) or not isinstance(capacity, int) or capacity < 1_000:
            raise ConfigError(f"capacity must be a whole number of at least 1000, not {capacity!r}")
        self._clock = current_clock()
        self._store = None if store is None else _served(store)
        self._lock = RLock()
        self._plans: dict[str, _Plan] = {}
        self._over: OrderedDict[str, None] = OrderedDict()
        # From the id of a prompt as a store gave it back, without its secrets, to the one that it was kept under.
        self._masked: dict[str, str] = {}
        self._listeners: list[Listener] = []
        self._alarm: Timer | None = None
        try:
            self.queue = SignalQueue(capacity, self._store)
            self._load()
        except BaseException:
            if self._store is not None:
                self._store.close()  # others may serve what cannot be read here
            raise

    def schedule(self, prompt: ScheduledPrompt) -> str:
        """Let a prompt come when it is due. Gives its id, for `cancel`.

        One that is equal to one that is scheduled, or that had its one time already, is the same one and changes
        nothing. Raises `ConfigError` for what is no prompt, `QueueFull` above 10,000 schedules.
        """
        if not isinstance(prompt, ScheduledPrompt):
            raise ConfigError(f"schedule takes a ScheduledPrompt(…), not a {type(prompt).__name__}")
        with self._lock:
            self._require_open()
            name = self._id(prompt)
            if name in self._plans or name in self._over:
                return name
            if len(self._plans) >= MAX_SCHEDULES:
                raise QueueFull(f"{MAX_SCHEDULES} prompts are scheduled already; cancel some")
            kept = Kept(name, prompt, -1 if prompt.cron is None else self._clock.wall_ms())
            if self._plan(kept) and self._store is not None:
                self._store.schedule(kept)
        self._ring()
        return name

    def cancel(self, prompt: ScheduledPrompt | str) -> bool:
        """Forget a schedule, by itself or its id. False where there is none. What came of it already stays."""
        with self._lock:
            name = self._id(prompt) if isinstance(prompt, ScheduledPrompt) else prompt
            if self._plans.pop(name, None) is None:
                return False
            if self._store is not None:
                self._store.cancel(name)
            self._set_alarm()
        return True

    def scheduled(self) -> tuple[ScheduledPrompt, ...]:
        """The prompts that have times to come, the next first."""
        with self._lock:
            return tuple(plan.prompt for plan in sorted(self._plans.values(), key=lambda plan: plan.next))

    def ingest(self, signal: RuntimeSignal) -> bool:
        """Take a signal, from any thread, without waiting. False for one whose `dedupe_key` was heard before.

        Raises `QueueFull` for a low or normal one above the capacity, `ConfigError` for what is no signal or calls
        itself the user, `DeepStrikeError` with code `gateway_destroyed` after `destroy`.
        """
        taken = self.queue.put(signal)
        if taken:
            self._announce(signal)
        return taken

    def on_signal(self, callback: Listener) -> Callable[[], None]:
        """Call a function with each signal that comes, also with prompts that fall due; gives what ends that.

        It is called in the thread that brings the signal, so it must be quick. What it raises is logged and changes
        nothing, nor does hearing a signal take it from the runs.
        """
        if not callable(callback) or inspect.iscoroutinefunction(callback):
            raise ConfigError("on_signal takes a plain function of a signal; a coroutine can await next_signal()")
        with self._lock:
            self._listeners.append(callback)

        def forget() -> None:
            with self._lock, suppress(ValueError):
                self._listeners.remove(callback)

        return forget

    async def next_signal(self) -> RuntimeSignal | None:
        """Wait for the next signal and take it, the most urgent first; None once the gateway is destroyed.

        Any number of tasks on any loops may wait; each signal goes to one. Cancelling loses nothing.
        """
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop was closed: nobody waits there any more
                loop.call_soon_threadsafe(changed.set)

        forget = self.queue.on_change(tell)
        try:
            while True:
                changed.clear()
                entry = self.queue.take(None)
                if entry is not None:
                    self.queue.delivered([entry])
                    return entry.signal
                if self.queue.closed:
                    return None
                await changed.wait()
        finally:
            forget()

    def destroy(self) -> None:
        """Nothing fires and nothing is taken from here on. What a store holds stays there. Twice does nothing."""
        with self._lock:
            self._plans.clear()
            self._listeners.clear()
            self._set_alarm()
            self.queue.close()

    def _require_open(self) -> None:
        if self.queue.closed:
            raise DeepStrikeError("the gateway was destroyed and takes nothing more", code="gateway_destroyed")

    def _id(self, prompt: ScheduledPrompt) -> str:
        return self._masked.get(prompt.id, prompt.id)

    def _load(self) -> None:
        if self._store is None:
            return
        for name in self._store.over():
            self._over[name] = None
        for kept in self._store.schedules():
            self._masked[kept.prompt.id] = kept.id
            self._plan(kept)
        self._ring()

    def _plan(self, kept: Kept) -> bool:
        """Look when a schedule is due next; False where it is never again."""
        coming = next(times_after(kept.prompt, kept.passed), None)
        if coming is None:
            return False
        steady = self._clock.now_ms() + max(0, coming - self._clock.wall_ms())
        self._plans[kept.id] = _Plan(kept.id, kept.prompt, kept.passed, coming, steady)
        return True

    def _ring(self) -> None:
        """What is due comes; what was refused for want of room comes later."""
        came: list[RuntimeSignal] = []
        with self._lock:
            if self.queue.closed:
                return
            wall, steady = self._clock.wall_ms(), self._clock.now_ms()
            for plan in [plan for plan in self._plans.values() if plan.left(wall, steady) <= 0]:
                came += self._fired(plan, max(wall, plan.next))
            self._set_alarm()
        for signal in came:
            self._announce(signal)

    def _fired(self, plan: _Plan, now: int) -> list[RuntimeSignal]:
        """What refuses it now, a full queue or disk, may take it at the next look."""
        try:
            return self._fire(plan, now)
        except QueueFull:
            return []
        except DeepStrikeError:
            _log.exception("a scheduled prompt is due and cannot be kept; it is tried again")
            return []

    def _fire(self, plan: _Plan, now: int) -> list[RuntimeSignal]:
        prompt = plan.prompt
        due = due_times(prompt, plan.passed, now)
        signals = [prompt.signal()] * fired(prompt.missed, due, now)
        kept = Kept(plan.id, prompt, due[-1])
        self.queue.put_due(signals, kept)
        del self._plans[plan.id]
        if prompt.cron is None:
            self._over[plan.id] = None
            if len(self._over) > KEYS:
                self._over.popitem(last=False)
        else:
            self._plan(kept)
        return signals

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._plans:
            wall, steady = self._clock.wall_ms(), self._clock.now_ms()
            left = min(plan.left(wall, steady) for plan in self._plans.values()) / 1000
            # One that is due and still here was refused: look again after the whole pause.
            delay = min(LOOK_SECONDS, left) if left > 0 else LOOK_SECONDS
            self._alarm = self._clock.alarm(delay, self._ring)

    def _announce(self, signal: RuntimeSignal) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            _call(listener, signal)


def _served(path: str | os.PathLike[str]) -> SignalStore:
    store = SignalStore(path)
    store.serve()
    return store


def _call(listener: Listener, signal: RuntimeSignal) -> None:
    try:
        listener(signal)
    except Exception:
        _log.exception("a listener of signals failed on one of kind %r", signal.kind)
