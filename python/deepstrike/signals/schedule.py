"""Prompts for a time, or again and again by the clock of a place."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from hashlib import sha256
from itertools import takewhile
from typing import TYPE_CHECKING, Final, Literal, get_args

from deepstrike.errors import ConfigError
from deepstrike.signals.signal import URGENCIES, RuntimeSignal, Urgency

if TYPE_CHECKING:
    from collections.abc import Iterator

Missed = Literal["once", "skip", "all"]

LATE_MS: Final = 60_000
"""What is later than this was missed."""

MOST: Final = 100
"""Of `missed="all"` at most so many, the newest."""

_DAY_MS: Final = 86_400_000
_SPANS: Final = (1, 30, 1_000)


@dataclass(frozen=True, slots=True)
class ScheduledPrompt:
    """A goal for a time, or for many.

    goal: what is to be done; the payload of the signal that comes is `{"goal": goal}`.
    run_at_ms: when, in milliseconds since 1970; one in the past is due at once. A fraction is rounded.
    cron: or when again and again: five fields (minute, hour, day of month, month, day of week), six with seconds first.
    timezone: the place whose clock `cron` goes by, an IANA name. Where its clock is put back, a time that stands there
        twice comes once; where it is put forward, one that is left out comes right behind the gap.
    missed: what becomes of times that passed while nobody looked (later than a minute): `once`, one for all of them;
        `skip`, none; `all`, each, at most the newest 100.
    urgency, session_id: as of `RuntimeSignal`.

    Two that are equal are one. Raises `ConfigError` (a `ValueError`) that names the field.
    """

    goal: str
    run_at_ms: int | None = None
    cron: str | None = None
    timezone: str = "UTC"
    missed: Missed = "once"
    urgency: Urgency = "normal"
    session_id: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.goal, str) or not self.goal.strip():
            raise ConfigError(f"a scheduled prompt needs a goal, a text that is not empty, not {self.goal!r}")
        if (self.run_at_ms is None) == (self.cron is None):
            raise ConfigError("a scheduled prompt needs one of run_at_ms=… and cron=…")
        if self.run_at_ms is not None:
            object.__setattr__(self, "run_at_ms", _whole(self.run_at_ms))
        if self.missed not in get_args(Missed):
            raise ConfigError(f"missed must be one of {', '.join(map(repr, get_args(Missed)))}, not {self.missed!r}")
        if self.urgency not in URGENCIES:
            raise ConfigError(f"urgency must be one of {', '.join(map(repr, URGENCIES))}, not {self.urgency!r}")
        self.signal()
        if self.cron is not None:
            from deepstrike.signals.cron import require

            require(self.cron, self.timezone)

    @property
    def id(self) -> str:
        """A name made of all that it says: equal ones have the same, in every process."""
        said = (self.goal, self.run_at_ms, self.cron, self.timezone, self.missed, self.urgency, self.session_id)
        return sha256(json.dumps(said).encode()).hexdigest()[:16]

    def signal(self) -> RuntimeSignal:
        """What arrives when it is due."""
        return RuntimeSignal("scheduled", {"goal": self.goal}, "cron", "job", self.urgency, session_id=self.session_id)


def times_after(prompt: ScheduledPrompt, after_ms: int) -> Iterator[int]:
    """When it is due after `after_ms`, in milliseconds since 1970, the earliest first."""
    if prompt.cron is None:
        if prompt.run_at_ms is not None and prompt.run_at_ms > after_ms:
            yield prompt.run_at_ms
        return
    from deepstrike.signals.cron import times

    yield from times(prompt.cron, prompt.timezone, after_ms)


def due_times(prompt: ScheduledPrompt, after_ms: int, now_ms: int) -> list[int]:
    """Its times after `after_ms` up to `now_ms`: all of them, or the newest where they are more than `missed="all"`
    asks for. A process may have been away for years."""
    for days in _SPANS:
        since = max(after_ms, now_ms - days * _DAY_MS)
        found = list(takewhile(lambda time: time <= now_ms, times_after(prompt, since)))
        if len(found) >= MOST or since == after_ms:
            return found
    return list(takewhile(lambda time: time <= now_ms, times_after(prompt, after_ms)))


def fired(missed: Missed, due: list[int], now_ms: int) -> int:
    """How often a prompt fires whose times `due` have passed by `now_ms`."""
    on_time = sum(1 for time in due if now_ms - time <= LATE_MS)
    if missed == "skip":
        return on_time
    return min(1, len(due)) if missed == "once" else min(MOST, len(due))


def _whole(time: object) -> int:
    if isinstance(time, bool) or not isinstance(time, int | float) or not math.isfinite(time) or not 0 <= time < 2**53:
        raise ConfigError(f"run_at_ms must be a time in milliseconds since 1970, not {time!r}")
    return round(time)
