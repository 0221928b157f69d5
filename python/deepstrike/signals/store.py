"""Signals and schedules in a SQLite file, so that they outlive the process."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import finalize

from deepstrike.errors import DeepStrikeError
from deepstrike.search.database import Database, Layout
from deepstrike.secrets import bound
from deepstrike.signals.queue import KEYS
from deepstrike.signals.schedule import ScheduledPrompt
from deepstrike.signals.signal import URGENCIES, RuntimeSignal, is_scheduled, payload_text
from deepstrike.write_ahead import transaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from deepstrike.signals.queue import Address

_LAYOUT = Layout(
    "a store of signals",
    0x64537347,
    1,
    (
        # `address` is whom it is for now; `taken`: a run has it in its hands.
        "CREATE TABLE signals (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, urgency INTEGER NOT NULL, "
        "address TEXT, prompt INTEGER NOT NULL, taken INTEGER NOT NULL DEFAULT 0, "
        "waits INTEGER NOT NULL DEFAULT 0, body TEXT NOT NULL)",
        "CREATE INDEX waiting ON signals (urgency, number) WHERE waits",
        "CREATE TABLE keys (number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE)",
        "CREATE TABLE schedules (id TEXT PRIMARY KEY, body TEXT NOT NULL, passed INTEGER NOT NULL)",
        "CREATE TABLE over (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE)",
    ),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A signal as it is kept: under this number, as this delivery, for the session `address` (None: for any)."""

    number: int
    id: str
    address: str | None
    signal: RuntimeSignal


@dataclass(frozen=True, slots=True)
class Kept:
    """A schedule as it is kept, under the id that the prompt was given; its times up to `passed` are dealt with."""

    id: str
    prompt: ScheduledPrompt
    passed: int


class SignalStore:
    """One file. Safe to use from any thread; one process at a time serves it, see `serve`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._database = Database(path, _LAYOUT)
        self._served: list[sqlite3.Connection] = []

    @classmethod
    def temporary(cls) -> SignalStore:
        """One whose file goes with it."""
        folder = tempfile.mkdtemp(prefix="deepstrike-signals-")
        store = cls(Path(folder) / "signals.db")
        finalize(store, shutil.rmtree, folder, ignore_errors=True)
        return store

    def serve(self) -> None:
        """Keep others from serving the file, until `close` or the end of the process.

        Raises `DeepStrikeError` with code `store_busy` where one does already, here or elsewhere.
        """
        path = os.path.realpath(self._database.path)  # by whatever links it is named
        with self._database.work():
            # A lock of the system's, which SQLite has for every system; beside the file, which stays open to readers.
            held = sqlite3.connect(f"{path}-serving", timeout=0, isolation_level=None, check_same_thread=False)
            try:
                held.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                held.close()
                if "locked" not in str(error):
                    raise
                raise DeepStrikeError(
                    f"{path} is served by another SignalGateway, in this process or another: share that one, destroy "
                    "it first, or name another file",
                    code="store_busy",
                    retryable=True,
                ) from error
        self._served.append(held)

    def close(self) -> None:
        """Close the file, and let others serve it."""
        self._database.close()
        while self._served:
            self._served.pop().close()

    # ---- signals

    def rows(self) -> list[Row]:
        """All that is undelivered and belongs in memory, the oldest first; not what was to stop a run that is gone."""
        with self._database.work() as connection, transaction(connection):
            for number, body in connection.execute("SELECT number, body FROM signals WHERE taken").fetchall():
                if _signal(body).stops:
                    connection.execute("DELETE FROM signals WHERE number = ?", (number,))
            connection.execute("UPDATE signals SET taken = 0")
            found = connection.execute(
                "SELECT number, id, address, body FROM signals WHERE NOT waits ORDER BY number"
            ).fetchall()
        return [_row(row) for row in found]

    def waiting(self) -> dict[int, int]:
        """How many of each urgency are here and not in memory."""
        with self._database.work() as connection:
            return dict(connection.execute("SELECT urgency, count(*) FROM signals WHERE waits GROUP BY urgency"))

    def add(
        self, signals: Sequence[tuple[str, RuntimeSignal]], key: str | None, waits: bool, passed: Kept | None = None
    ) -> list[int]:
        """Keep signals under their delivery ids, with the key that they are known by; and, in one with that, how far
        the schedule is that they come from. Gives their numbers."""
        with self._database.work() as connection, transaction(connection):
            numbers = [_insert(connection, name, signal, waits) for name, signal in signals]
            if key is not None:
                connection.execute("INSERT OR IGNORE INTO keys (name) VALUES (?)", (key,))
                connection.execute("DELETE FROM keys WHERE number <= (SELECT max(number) FROM keys) - ?", (KEYS,))
            if passed is not None:
                _pass(connection, passed)
        return numbers

    def fetch(self, urgency: int, addresses: Iterable[Address] | None, most: int) -> list[Row]:
        """Bring the oldest that wait here into memory, of those for these addresses (None: for anybody)."""
        wanted = [] if addresses is None else list(addresses)
        where = " OR ".join("(address IS ? AND prompt = ?)" for _ in wanted) or ("1" if addresses is None else "0")
        given = [value for address in wanted for value in (address.session, int(address.prompt))]
        with self._database.work() as connection, transaction(connection):
            found = connection.execute(
                f"SELECT number, id, address, body FROM signals WHERE waits AND urgency = ? AND ({where}) "  # noqa: S608
                "ORDER BY number LIMIT ?",
                (urgency, *given, most),
            ).fetchall()
            connection.executemany("UPDATE signals SET waits = 0 WHERE number = ?", [(row[0],) for row in found])
        return [_row(row) for row in found]

    def take(self, number: int, sessions: Sequence[str]) -> list[int]:
        """A run of each of these sessions has it in its hands. Gives the number of each copy."""
        with self._database.work() as connection, transaction(connection):
            connection.execute("UPDATE signals SET address = ?, taken = 1 WHERE number = ?", (sessions[0], number))
            copies = [
                connection.execute(
                    "INSERT INTO signals (id, urgency, address, prompt, taken, body) SELECT id, urgency, ?, prompt, 1, "
                    "body FROM signals WHERE number = ?",
                    (session, number),
                ).lastrowid
                for session in sessions[1:]
            ]
        return [number, *(copy for copy in copies if copy is not None)]

    def give_back(self, number: int, address: str | None) -> None:
        """It was not delivered, and is for `address` again."""
        with self._database.work() as connection:
            connection.execute("UPDATE signals SET address = ?, taken = 0 WHERE number = ?", (address, number))

    def delivered(self, numbers: Iterable[int]) -> None:
        """They are in a session's log."""
        with self._database.work() as connection, transaction(connection):
            connection.executemany("DELETE FROM signals WHERE number = ?", [(number,) for number in numbers])

    def known(self) -> list[str]:
        """The dedupe keys, the oldest first."""
        with self._database.work() as connection:
            return [name for (name,) in connection.execute("SELECT name FROM keys ORDER BY number")]

    # ---- schedules

    def schedules(self) -> list[Kept]:
        """All schedules that have times to come."""
        with self._database.work() as connection:
            found = connection.execute("SELECT id, body, passed FROM schedules ORDER BY id").fetchall()
        return [Kept(name, ScheduledPrompt(**json.loads(body)), passed) for name, body, passed in found]

    def schedule(self, kept: Kept) -> None:
        """Keep a schedule, without what is secret in its goal."""
        told = fields_of(kept.prompt)
        body = json.dumps({**told, "goal": bound().hidden(kept.prompt.goal)})
        with self._database.work() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO schedules (id, body, passed) VALUES (?, ?, ?)",
                (kept.id, body, kept.passed),
            )

    def cancel(self, name: str) -> None:
        """Forget a schedule."""
        with self._database.work() as connection:
            connection.execute("DELETE FROM schedules WHERE id = ?", (name,))

    def over(self) -> list[str]:
        """The prompts that had their one time, the oldest first."""
        with self._database.work() as connection:
            return [name for (name,) in connection.execute("SELECT id FROM over ORDER BY number")]


def fields_of(prompt: ScheduledPrompt) -> dict[str, object]:
    """The prompt as keyword arguments that make it again."""
    return {name: getattr(prompt, name) for name in ScheduledPrompt.__slots__}


def _pass(connection: sqlite3.Connection, kept: Kept) -> None:
    if kept.prompt.cron is not None:
        connection.execute("UPDATE schedules SET passed = ? WHERE id = ?", (kept.passed, kept.id))
        return
    connection.execute("DELETE FROM schedules WHERE id = ?", (kept.id,))
    connection.execute("INSERT OR IGNORE INTO over (id) VALUES (?)", (kept.id,))
    connection.execute("DELETE FROM over WHERE number <= (SELECT max(number) FROM over) - ?", (KEYS,))


def _insert(connection: sqlite3.Connection, name: str, signal: RuntimeSignal, waits: bool) -> int:
    body = {
        "kind": signal.kind,
        "payload": payload_text(signal),
        "source": signal.source,
        "signal_type": signal.signal_type,
        "urgency": signal.urgency,
        "dedupe_key": signal.dedupe_key,
        "session_id": signal.session_id,
    }
    urgency, prompt = URGENCIES.index(signal.urgency), int(is_scheduled(signal))
    done = connection.execute(
        "INSERT INTO signals (id, urgency, address, prompt, waits, body) VALUES (?, ?, ?, ?, ?, ?)",
        (name, urgency, signal.session_id, prompt, int(waits), bound().hidden(json.dumps(body))),
    )
    return done.lastrowid or 0


def _row(row: tuple[int, str, str | None, str]) -> Row:
    number, name, address, body = row
    return Row(number, name, address, _signal(body))


def _signal(body: str) -> RuntimeSignal:
    said = json.loads(body)
    return RuntimeSignal(**{**said, "payload": json.loads(said["payload"])})
