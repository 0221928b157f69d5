"""A record: one line of the session log."""

from __future__ import annotations

from deepstrike.wire.event import AnyEvent, Event


class Record(Event, frozen=True):
    """`seq` counts from 0 without gaps; `at` is milliseconds since 1970; an unknown `optional` event is skipped."""

    seq: int
    at: int
    event: AnyEvent
    optional: bool = False
