"""Times by the clock of a place. Nothing here reads the machine's clock."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import islice
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from deepstrike.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_ANY = datetime(2024, 1, 1)


def require(cron: str, zone: str) -> None:
    """Raises `ConfigError` for what is no cron expression, never comes, or is for no place that is known here."""
    if not isinstance(cron, str) or not isinstance(zone, str):
        raise ConfigError("cron and timezone must be texts, as in cron='0 9 * * 1-5', timezone='Europe/Berlin'")
    _zone(zone)
    try:
        comes = list(islice(CronSim(_settled(cron), _ANY), 1))
    except CronSimError as error:
        raise ConfigError(
            f"cron {cron!r} is not understood ({error}); write minute, hour, day, month, weekday: '0 9 * * 1-5'"
        ) from error
    if not comes:
        raise ConfigError(f"cron {cron!r} never comes: there is no such day")


def times(cron: str, zone: str, after_ms: int) -> Iterator[int]:
    """The times of `cron` after `after_ms`, in milliseconds since 1970, each later than the one before."""
    last = after_ms
    for moment in CronSim(_settled(cron), _local(after_ms, zone)):
        found = (moment - _EPOCH) // timedelta(milliseconds=1)
        if found > last:
            last = found
            yield found


def _settled(cron: str) -> str:
    """The same times, so worded that those at set hours come once and are not lost where a clock is changed.

    `cronsim` takes a star in the minutes for "all through the day", which such a change neither doubles nor loses.
    """
    fields = cron.split()
    hour = len(fields) - 4
    if hour < 1 or fields[hour].startswith("*"):
        return cron
    return " ".join(["0-59" + field[1:] if field.startswith("*") else field for field in fields[:hour]] + fields[hour:])


def _local(ms: int, zone: str) -> datetime:
    return (_EPOCH + timedelta(milliseconds=ms)).astimezone(_zone(zone))


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            f"timezone {name!r} is not known here: give an IANA name such as 'Europe/Berlin' (pip install tzdata where "
            "the system has none)"
        ) from error
