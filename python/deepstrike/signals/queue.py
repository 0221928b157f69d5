"""The queue between whoever signals and the runs: bounded, ordered by urgency, safe from any thread."""

from __future__ import annotations

import secrets
from collections import OrderedDict, deque
from dataclasses import dataclass, replace
from hashlib import sha256
from threading import RLock
from typing import TYPE_CHECKING, Final, NamedTuple
from unicodedata import normalize

from deepstrike.errors import ConfigError, DeepStrikeError, QueueFull
from deepstrike.secrets import bound
from deepstrike.signals.signal import URGENCIES, USER, RuntimeSignal, is_scheduled, payload_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from deepstrike.signals.store import Kept, Row, SignalStore

MAX_BYTES: Final = 32 * 1024 * 1024
"""The payloads of the signals of one sort (low and normal, high, critical) in memory are at most so large."""

KEYS: Final = 10_000
"""So many dedupe keys, and so many prompts that had their one time, are remembered."""

_BATCH: Final = 256
_LOW, _NORMAL, _HIGH, _CRITICAL = range(len(URGENCIES))


class Address(NamedTuple):
    """Whom a signal is for: a session, None for any; and whether it is a prompt, which `listen` may take."""

    session: str | None
    prompt: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """A signal in the queue. `number` orders it; `id` names the delivery where a store keeps it; `address` is the
    session that it is for now; `from_user`: it is what `runner.send` was given; `copies`: to so many
    runs it was handed."""

    number: int
    signal: RuntimeSignal
    address: str | None
    id: str | None = None
    from_user: bool = False
    copies: int = 1

    @property
    def urgency(self) -> int:
        """Its place in `URGENCIES`."""
        return URGENCIES.index(self.signal.urgency)


@dataclass(slots=True)
class _Room:
    """What one sort of signals takes up in memory."""

    count: int = 0
    size: int = 0

    def add(self, entry: Entry, sign: int) -> None:
        self.count += sign
        self.size += sign * len(payload_text(entry.signal))

    def is_full(self, capacity: int) -> bool:
        return self.count >= capacity or self.size >= MAX_BYTES


class SignalQueue:
    """Signals on their way to runs, the most urgent first, those of one urgency in the order in which they came.

    `capacity` low and normal ones are held together; one more is refused with `QueueFull`. High and critical ones are
    never refused: above `capacity` of each sort they wait on disk, in the store or in a temporary file.
    """

    def __init__(self, capacity: int, store: SignalStore | None = None) -> None:
        self._capacity = capacity
        self._store = store
        self._overflow = store
        self._lanes: tuple[dict[Address, deque[Entry]], ...] = tuple({} for _ in URGENCIES)
        plain = _Room()
        self._rooms = (plain, plain, _Room(), _Room())
        self._outside = [0] * len(URGENCIES)
        self.is_empty = True
        """Whether nothing waits; a plain attribute, since every turn looks at it."""
        self._keys: OrderedDict[str, None] = OrderedDict()
        self._number = 0
        self._front = 0
        self._lock = RLock()
        self._closed = False
        self._heard: list[Callable[[], None]] = []
        if store is not None:
            self._load(store)
            self.is_empty = not len(self)

    def __len__(self) -> int:
        return sum(self._outside) + sum(room.count for room in self._rooms[_NORMAL:])

    @property
    def closed(self) -> bool:
        """Whether nothing more will come."""
        return self._closed

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` whenever something came, went, or will come no more, in the thread where it happened. Gives
        what ends that."""
        with self._lock:
            self._heard.append(callback)

        def forget() -> None:
            with self._lock:
                if callback in self._heard:
                    self._heard.remove(callback)

        return forget

    def put(self, signal: RuntimeSignal) -> bool:
        """Queue a signal; False for one whose key was heard before.

        Raises `QueueFull` for a low or normal one above the capacity, `ConfigError` for what is no signal or calls
        itself the user, `DeepStrikeError` with code `gateway_destroyed` after `close`.
        """
        _require_signal(signal)
        key = _key(signal)
        with self._lock:
            if key is not None and key in self._keys:
                return False
            self._put([signal], key, None)
            if key is not None:
                self._remember(key)
        self._tell()
        return True

    def put_due(self, signals: Sequence[RuntimeSignal], passed: Kept) -> None:
        """Queue what a schedule comes to, in one with how far the schedule is. Raises `QueueFull` as `put`."""
        with self._lock:
            self._put(signals, None, passed)
        self._tell()

    def take(self, addresses: Collection[Address] | None, least: int = _LOW) -> Entry | None:
        """The first that is for one of `addresses` (None: for anybody), of at least the urgency `least`."""
        with self._lock:
            for urgency in range(len(URGENCIES) - 1, least - 1, -1):
                entry = self._first(urgency, addresses)
                if entry is not None:
                    self.is_empty = not len(self)
                    return entry
        return None

    def take_prompt(self, but: Collection[str]) -> Entry | None:
        """The first prompt that is for none of the sessions `but`."""
        with self._lock:
            for urgency in range(len(URGENCIES) - 1, _LOW - 1, -1):
                if self._outside[urgency]:
                    self._fetch(urgency, None)
                wanted = [to for to in self._lanes[urgency] if to.prompt and to.session not in but]
                entry = self._first(urgency, wanted) if wanted else None
                if entry is not None:
                    self.is_empty = not len(self)
                    return entry
        return None

    def assign(self, entry: Entry, sessions: Sequence[str]) -> list[Entry]:
        """The entry in the hands of a run of each of these sessions."""
        numbers = [entry.number] * len(sessions)
        if self._store is not None and entry.id is not None:
            numbers = self._store.take(entry.number, sessions)
        return [
            replace(entry, number=number, address=session, copies=len(sessions))
            for number, session in zip(numbers, sessions, strict=True)
        ]

    def give_back(self, entries: Sequence[Entry], *, to_any: bool = True) -> None:
        """They were not delivered: they are the first again, for whom they were when they came; without `to_any` only
        for the session that had them."""
        with self._lock:
            for entry in reversed(entries):
                address = entry.signal.session_id if to_any else entry.address
                back = replace(entry, address=address, copies=1)
                if self._store is not None and entry.id is not None:
                    self._store.give_back(entry.number, address)
                self._lane(back).appendleft(back)
                self._rooms[back.urgency].add(back, 1)
        if entries:
            self._tell()

    def delivered(self, entries: Iterable[Entry]) -> None:
        """They are in a session's log."""
        if self._store is not None:
            self._store.delivered([entry.number for entry in entries if entry.id is not None])

    def close(self) -> None:
        """Nothing more comes. What a store holds stays there; the rest is dropped."""
        with self._lock:
            self._closed = True
            for lanes in self._lanes:
                lanes.clear()
            for room in self._rooms:
                room.count = room.size = 0
            self._outside = [0] * len(URGENCIES)
            if self._overflow is not None:
                self._overflow.close()
        self._tell()

    # ---- within the lock

    def _put(self, signals: Sequence[RuntimeSignal], key: str | None, passed: Kept | None) -> None:
        if self._closed:
            raise DeepStrikeError("the gateway was destroyed and takes nothing more", code="gateway_destroyed")
        urgency = URGENCIES.index(signals[0].urgency) if signals else _LOW
        full = self._rooms[urgency].is_full(self._capacity) or self._outside[urgency] > 0
        if full and urgency < _HIGH and signals:
            raise QueueFull(
                f"{self._capacity} signals wait already (or {MAX_BYTES} bytes of them), so low and normal ones are "
                "refused; try again later, or start a run that hears them"
            )
        entries = self._kept(signals, key, waits=full, passed=passed)
        if full:
            self._outside[urgency] += len(entries)
            return
        for entry in entries:
            self._lane(entry).append(entry)
            self._rooms[urgency].add(entry, 1)

    def _kept(
        self, signals: Sequence[RuntimeSignal], key: str | None, *, waits: bool, passed: Kept | None
    ) -> list[Entry]:
        if waits and self._overflow is None:
            from deepstrike.signals.store import SignalStore

            self._overflow = SignalStore.temporary()
        store = self._overflow if waits else self._store
        if store is None:
            self._number += len(signals)
            first = self._number - len(signals)
            return [Entry(first + at, signal, signal.session_id) for at, signal in enumerate(signals)]
        named = [(secrets.token_hex(8), signal) for signal in signals]
        numbers = store.add(named, key, waits, passed)
        return [
            Entry(number, signal, signal.session_id, name)
            for number, (name, signal) in zip(numbers, named, strict=True)
        ]

    def _first(self, urgency: int, addresses: Collection[Address] | None) -> Entry | None:
        lanes = self._lanes[urgency]
        found = [lane for to in (list(lanes) if addresses is None else addresses) if (lane := lanes.get(to))]
        if not found and self._outside[urgency]:
            self._fetch(urgency, addresses)
            found = [lane for to in (list(lanes) if addresses is None else addresses) if (lane := lanes.get(to))]
        if not found:
            return None
        lane = min(found, key=lambda lane: lane[0].number)
        entry = lane.popleft()
        if not lane:
            del lanes[_address(entry)]
        self._rooms[urgency].add(entry, -1)
        return entry

    def _fetch(self, urgency: int, addresses: Collection[Address] | None) -> None:
        """Bring what waits on disk into memory; a temporary file then forgets it."""
        store = self._overflow
        if store is None:
            return
        rows = store.fetch(urgency, addresses, _BATCH)
        self._outside[urgency] -= len(rows)
        if store is not self._store:
            store.delivered([row.number for row in rows])
        for row in rows:
            entry = self._entry(row)
            self._lane(entry).append(entry)
            self._rooms[urgency].add(entry, 1)

    def _entry(self, row: Row) -> Entry:
        if self._store is not None:
            return Entry(row.number, row.signal, row.address, row.id)
        self._number += 1
        return Entry(self._number, row.signal, row.address)

    def _lane(self, entry: Entry) -> deque[Entry]:
        return self._lanes[entry.urgency].setdefault(_address(entry), deque())

    def _remember(self, key: str) -> None:
        self._keys[key] = None
        if len(self._keys) > KEYS:
            self._keys.popitem(last=False)

    def _load(self, store: SignalStore) -> None:
        for row in store.rows():
            entry = self._entry(row)
            self._lane(entry).append(entry)
            self._rooms[entry.urgency].add(entry, 1)
        for urgency, count in store.waiting().items():
            self._outside[urgency] = count
        for key in store.known():
            self._remember(key)

    def _tell(self) -> None:
        with self._lock:
            self.is_empty = not len(self)
            heard = list(self._heard)
        for callback in heard:
            callback()


def _address(entry: Entry) -> Address:
    return Address(entry.address, is_scheduled(entry.signal))


def _key(signal: RuntimeSignal) -> str | None:
    """Keys count for each session by itself. Of one with a secret in it only the digest is kept."""
    if signal.dedupe_key is None:
        return None
    key = f"{signal.session_id or ''}\0{signal.dedupe_key}"
    return key if bound().hidden(key) == key else f"sha256 {sha256(key.encode()).hexdigest()}"


def _require_signal(signal: object) -> None:
    if not isinstance(signal, RuntimeSignal):
        raise ConfigError(f"a signal is a RuntimeSignal(…), not a {type(signal).__name__}")
    if normalize("NFKC", signal.source).strip().casefold() == USER:
        raise ConfigError("a signal's source cannot be 'user': what the user says goes through runner.send(…)")
