"""How the logs that ship word what they refuse: one place, so that all of them say the same."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from deepstrike.errors import CorruptLog, SessionBusy, SessionError, StaleWriter, UnknownSession

if TYPE_CHECKING:
    from pathlib import Path

_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


def busy(session_id: str) -> SessionBusy:
    """Somebody else holds the session."""
    return SessionBusy(
        f"session {session_id!r} has a run in progress; wait for it, interrupt it or use another session id"
    )


def live(session_id: str) -> SessionBusy:
    """The session cannot be deleted now."""
    return SessionBusy(f"session {session_id!r} has a run in progress; interrupt it before deleting it")


def not_the_owner(session_id: str, owner: str) -> StaleWriter:
    """The token is not, or no longer, that of the session's owner."""
    return StaleWriter(
        f"{owner!r} does not hold session {session_id!r} (any more), so nothing was written; "
        "acquire() the session and read its log again before appending"
    )


def other_seq(session_id: str, expected: int, actual: int) -> StaleWriter:
    """The batch was made for another end of the log."""
    return StaleWriter(
        f"session {session_id!r} goes on at seq {actual}, not at {expected}, so nothing was written; "
        "read its log again and append from there"
    )


def moved_on(session_id: str) -> StaleWriter:
    """The store itself has changed under the owner, which the lock should have prevented."""
    return StaleWriter(
        f"session {session_id!r} was written to by somebody who does not hold it, so nothing was written; "
        "acquire() the session and read its log again before appending"
    )


def removed(session_id: str, path: Path) -> SessionError:
    """What was appended to is not there any more."""
    return SessionError(
        f"{path}, which holds session {session_id!r}, was removed while a run was live on it; "
        "nothing more can be kept of this run",
        code="log_io",
    )


def still_read(session_id: str, path: Path) -> SessionError:
    """The session is deleted, but its bytes could not be overwritten."""
    return SessionError(
        f"session {session_id!r} is deleted, but its bytes are still in the write-ahead log of {path}, which somebody "
        "has been reading all the time; find who it is, and delete() it again when that is over",
        code="log_busy",
        retryable=True,
    )


def damaged(session_id: str, seq: int, reason: str, place: str = "") -> CorruptLog:
    """Record `seq` does not fit; `place` says where it stands."""
    where = f" ({place})" if place else ""
    return CorruptLog(
        f"record {seq} of session {session_id!r}{where} is damaged: {reason}; the records before it are intact, "
        "delete() the session to use its id again"
    )


def unknown_session(session_id: str) -> UnknownSession:
    """There is nothing to delete or to verify."""
    return UnknownSession(f"there is no session {session_id!r} in this log; sessions() lists those there are")


def unknown_blob(ref: str) -> SessionError:
    """No such blob."""
    return SessionError(
        f"there is no blob {ref!r} in this log; it was never put here or its session was deleted",
        code="unknown_blob",
    )


def damaged_blob(ref: str) -> CorruptLog:
    """The bytes of a blob are not those that its reference was made from."""
    return CorruptLog(f"blob {ref!r} is damaged: its bytes do not give its reference; delete() its session")


def newer(path: Path, found: int, known: int) -> SessionError:
    """A later release has written this."""
    return SessionError(
        f"{path} has layout {found} and this release reads up to {known}; nothing was changed, "
        "open it with the newer release of deepstrike that wrote it",
        code="newer_format",
    )


def failed(doing: str, path: Path, error: OSError) -> SessionError:
    """The operating system refused: code `disk_full` where there was no room (`retryable`), else `log_io`."""
    told = f"{doing} {path} failed: {error.strerror or error}"
    if error.errno in _FULL:
        return SessionError(
            f"{told}; what was acknowledged before is safe, make room and try again", code="disk_full", retryable=True
        )
    return SessionError(f"{told}; check the file and its folder", code="log_io")
