"""The log that a command works on, and one session of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deepstrike.cli.pursue import Loop
from deepstrike.errors import CorruptLog, SessionError, UnknownSession
from deepstrike.kernel import Corrupt, Kernel
from deepstrike.sessions.places import default_path, open_log

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import TypeVar

    from deepstrike.sessions.file import FileSessionLog
    from deepstrike.sessions.sqlite import SqliteSessionLog

    Log = FileSessionLog | SqliteSessionLog
    T = TypeVar("T")


def with_log(path: str | None, work: Callable[[Log], Coroutine[object, object, T]]) -> T:
    """Do `work` on the log at `path`, None being the default one, which need not be there yet.

    Raises `ConfigError` for a file that is no log, `UnknownSession` where nothing is at a path that was named.
    """
    log = open_log(path)
    if path is not None and not Path(path).expanduser().exists():
        raise UnknownSession(f"there is no session log at {path}: check --log; leave it out for {default_path()}")
    with Loop() as loop:
        return loop.run(work(log))


async def records_of(log: Log, session_id: str, path: str | None) -> list[bytes]:
    """All records of a session. Raises `UnknownSession`, which names the log, and what reading raises."""
    records = await log.read(session_id)
    if not records:
        raise unknown(session_id, path)
    return records


def unknown(session_id: str, path: str | None) -> UnknownSession:
    """What is said of a session that is not there."""
    return UnknownSession(
        f"there is no session {session_id!r} in {path or default_path()}: `deepstrike sessions list` shows those there "
        "are, --log names another place"
    )


def fold(session_id: str, records: list[bytes]) -> Kernel:
    """The kernel of a session. Raises `CorruptLog`, or `SessionError` with code `newer_format`; both name it."""
    try:
        return Kernel.replay(records)
    except Corrupt as error:
        raise CorruptLog(f"session {session_id!r}: {error}") from error
    except ValueError as error:
        raise SessionError(
            f"session {session_id!r}: {error}; nothing was changed, use the release of deepstrike that wrote it",
            code="newer_format",
        ) from error
