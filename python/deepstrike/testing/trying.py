"""How the conformance kits say what they found, and run all their checks at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from deepstrike.errors import DeepStrikeError

_SHOWN = 500
"""Characters of a value that a failure shows."""


def same(found: object, wanted: object, what: str) -> None:
    """Raises `AssertionError` unless both are equal."""
    if found != wanted:
        raise AssertionError(f"{what}: {_short(found)} instead of {_short(wanted)}")


def true(found: bool, what: str) -> None:
    """Raises `AssertionError` with what should have been so."""
    if not found:
        raise AssertionError(what)


async def raises(kind: type[DeepStrikeError], attempt: Awaitable[object], what: str) -> None:
    """Raises `AssertionError` unless `attempt` raises an error of this kind."""
    try:
        found = await attempt
    except kind:
        return
    raise AssertionError(f"{what}: no {kind.__name__} was raised, it returned {_short(found)}")


async def require_all(attempts: Iterable[tuple[str, Awaitable[None]]]) -> None:
    """Await every attempt, one after the other. Raises one `AssertionError` that lists by name all that failed."""
    outcomes = [await _outcome(name, attempt) for name, attempt in attempts]
    failed = [outcome for outcome in outcomes if outcome is not None]
    if failed:
        raise AssertionError(f"{len(failed)} of {len(outcomes)} checks failed\n  " + "\n  ".join(failed))


async def _outcome(name: str, attempt: Awaitable[None]) -> str | None:
    try:
        await attempt
    except Exception as error:
        return f"{name}: {error!r}"
    return None


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
