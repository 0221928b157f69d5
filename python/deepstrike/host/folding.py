"""From a session's log to its kernel, and looking at a session without holding it."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import msgspec

from deepstrike.errors import CorruptLog, DeepStrikeError, SessionError, UnknownSession
from deepstrike.host.steady import LOG_SECONDS, NoAnswer, told, within
from deepstrike.kernel import Corrupt, Kernel, Newer, decode_record

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from deepstrike.kernel import Judge
    from deepstrike.sessions.base import SessionLog

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger("deepstrike")

# How a record says that it may be skipped. Quotes within texts are escaped, so no text of a user's can look like it.
_OPTIONAL = b'"optional":true'

# Above this many bytes, counting and folding leave the event loop (kernel.md, Loops and threads).
OFF_LOOP_BYTES = 256 * 1024

# And so do the steps of a session whose prompt has more tokens, where they may rewrite it.
OFF_LOOP_TOKENS = 64 * 1024


async def asked(session_id: str, work: Coroutine[object, object, T]) -> T:
    """`work` of a log before any run depends on it, within the limit, its own errors told as ours."""
    try:
        return await within(LOG_SECONDS, work)
    except DeepStrikeError:
        raise
    except NoAnswer as error:
        raise SessionError(f"session {session_id!r}: the log did not answer within {LOG_SECONDS:g} s") from error
    except Exception as error:
        raise SessionError(f"session {session_id!r}: the log failed: {told(error)}") from error


async def off_loop(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`work(*args)`, in a thread where `size` bytes would hold the loop too long."""
    if size <= OFF_LOOP_BYTES:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)


async def folded(session_id: str, records: list[bytes], judge: Judge | None = None) -> Kernel:
    """The kernel that has lived through `records`; the rate windows of `judge` hear of the calls that were allowed.

    Raises `CorruptLog`, or `SessionError` with code `newer_format`, which names what is newer.
    """
    return await off_loop(sum(map(len, records)), _fold, session_id, records, judge)


async def look(session_id: str, log: SessionLog) -> Kernel:
    """The kernel of a session as its log stands, without becoming its writer: also while a run is live on it.

    Raises `UnknownSession`, `CorruptLog`, or another `SessionError` that says how the log failed.
    """
    return await folded(session_id, await read(session_id, log))


async def read(session_id: str, log: SessionLog) -> list[bytes]:
    """All records of a session. Raises `UnknownSession` where there are none, or as `look` does."""
    records = await asked(session_id, log.read(session_id))
    if not records:
        raise unknown(session_id)
    return records


def unknown(session_id: str) -> UnknownSession:
    """What is said of a session without records."""
    return UnknownSession(f"there is no session {session_id!r} in this log; sessions() lists those there are")


def _fold(session_id: str, records: list[bytes], judge: Judge | None) -> Kernel:
    if not records:
        return Kernel()
    try:
        kernel = Kernel.replay(records, judge)
    except Corrupt as error:
        raise CorruptLog(f"session {session_id!r}: {error}") from error
    except Newer as error:
        raise SessionError(
            f"session {session_id!r}: {error}; nothing was changed, go on with the release of deepstrike that wrote it",
            code="newer_format",
        ) from error
    except ValueError as error:
        raise SessionError(f"session {session_id!r}: {error}") from error
    _tell_of_unknown(session_id, records)
    return kernel


def _tell_of_unknown(session_id: str, records: list[bytes]) -> None:
    """Say which records were passed over: of a kind that only a newer version knows, and that may be skipped."""
    for seq, line in enumerate(records):
        if _OPTIONAL in line:
            try:
                decode_record(line)
            except msgspec.ValidationError:
                _log.warning(
                    "session %r: record %s is of a kind that this version does not know, it is skipped", session_id, seq
                )
