"""A run that has ended is kept in the dream store: the conversation of its session, read from the log."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from deepstrike.host.steady import NoAnswer, apart, see_through, told
from deepstrike.host.transcript import content
from deepstrike.kernel import META_TOOLS
from deepstrike.memory.messages import OUTSIDE
from deepstrike.memory.shown import not_the_users
from deepstrike.records import decode_record
from deepstrike.search.words import pieces
from deepstrike.signals.signal import from_wire
from deepstrike.wire.event import Replied, Settled, SignalledEvent, Started
from deepstrike.wire.message import RecordedCall, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.host.library import Library
    from deepstrike.host.session import Session
    from deepstrike.memory.base import SessionData
    from deepstrike.wire.record import Record
    from deepstrike.wire.signal import Signal

    Message = dict[str, object]

_log = logging.getLogger("deepstrike")

# How long a store may take to keep a session.
SAVE_SECONDS = 10.0

# Characters of a tool's result that are remembered: what matters of it is in what the agent said.
_RESULT: Final = 2_000

# What these give is the developer's, or nothing.
_OF_NOBODY_ELSE: Final = ("skill", "update_plan")


async def remember(session: Session, library: Library, status: str) -> None:
    """Save the session as its log stands. A store that fails or hangs is reported in the log `deepstrike`, no more.

    To its end even when cancelled, within `LEAVE_SECONDS` then; the cancellation is raised afterwards.
    """
    if library.memory is None:
        return
    cancelled = None
    try:
        _, cancelled = await see_through(apart(_save(session, library, status), SAVE_SECONDS), SAVE_SECONDS + 1)
    except NoAnswer:
        _log.warning("session %r is not remembered: the dream store did not answer in time", session.id)
    except Exception as error:
        _log.warning("session %r is not remembered: the dream store failed: %s", session.id, told(error))
    if cancelled is not None:
        raise cancelled


async def _save(session: Session, library: Library, status: str) -> None:
    records = await session.records()
    if records and library.memory is not None:
        size = sum(map(len, records))
        data = await session.off_loop(size, session_data, session.id, library.agent_id, records, status)
        await library.memory.save_session(data)


def session_data(session_id: str, agent_id: str, records: Sequence[bytes], status: str) -> SessionData:
    """A session as a dream store keeps it: what the user said, what the agent said, what its tools found.

    A message has `role` (user, assistant, tool), `content`, `at_ms`, and a tool's also `name`. What signals, the
    meta-tools and calls that failed said, the feedback on an earlier attempt, and what of a tool's result is cut off is
    no message; but its words are the `outside` of the message that comes next (of the cut one itself), so that what the
    agent repeats of them is not taken for the user's.
    `metadata["status"]` is how the newest goal ended.
    """
    from deepstrike.memory.base import SessionData

    heard = _Heard()
    for line in records:
        # What is no record known here may be skipped: the kernel has folded this log.
        with suppress(msgspec.ValidationError):
            heard.hear(decode_record(line))
    return SessionData(session_id, agent_id, heard.messages, {"status": status}, heard.first_at, heard.last_at)


class _Heard:
    """A conversation as its records tell it."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.first_at = 0
        self.last_at = 0
        self._names: dict[tuple[int, int], str] = {}
        self._outside: dict[str, None] = {}

    def hear(self, record: Record) -> None:
        self.first_at = self.first_at or record.at
        self.last_at = record.at
        event = record.event
        if isinstance(event, Replied):
            calls = (part.name for part in event.parts if isinstance(part, RecordedCall))
            self._names.update(((record.seq, index), name) for index, name in enumerate(calls))
            self._add("assistant", "".join(part.text for part in event.parts if isinstance(part, Text)))
        elif isinstance(event, Started):
            self._add("user", "\n".join((content(event.goal), *event.criteria)))
            self._note("\n".join(said.text for said in event.feedback))
        elif isinstance(event, Settled):
            found = content(event.result.parts)
            if event.result.error_kind:
                self._note(found)
            else:
                self._settled(self._names.get((event.call.reply, event.call.index), ""), found)
        elif isinstance(event, SignalledEvent):
            self._signalled(event.signal)

    def _settled(self, name: str, found: str) -> None:
        if name not in META_TOOLS:
            self._note(found[_RESULT:])
            self._add("tool", found[:_RESULT], name=name)
        elif name not in _OF_NOBODY_ELSE:
            self._note(not_the_users(found) if name == "memory" else found)

    def _signalled(self, signal: Signal) -> None:
        if signal.from_user:
            self._add("user", str(from_wire(signal).payload.get("text", "")))
        else:
            self._note(signal.payload)

    def _note(self, text: str) -> None:
        """The agent has read this, and nobody remembers it as said."""
        self._outside.update(dict.fromkeys(pieces(text)))

    def _add(self, role: str, said: str, **more: str) -> None:
        if not said.strip():
            return
        message: Message = {"role": role, "content": said, "at_ms": self.last_at, **more}
        if self._outside:
            message[OUTSIDE] = list(self._outside)
            self._outside.clear()
        self.messages.append(message)
