"""A dream's calls of a store: bounded in time, checked, and failing with a word on what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from deepstrike.dream.marks import is_dreamed
from deepstrike.errors import DeepStrikeError
from deepstrike.host.steady import LOG_SECONDS, NoAnswer, see_through, told
from deepstrike.memory.base import KeepsDreams
from deepstrike.memory.checks import is_entry, wrong_in

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from deepstrike.memory.base import Dreamed, DreamStore, MemoryEntry, SessionData

T = TypeVar("T")


async def undreamed(store: DreamStore, agent_id: str) -> list[SessionData]:
    """The sessions of the agent that were not dreamed of as they stand, in the order of the store; None is none."""
    loaded = await _asked("load_sessions", store.load_sessions(agent_id)) or []
    if not isinstance(loaded, list | tuple):
        raise _wrong("load_sessions", "a list of SessionData")
    if (wrong := next(filter(None, map(wrong_in, loaded)), None)) is not None:
        raise _wrong("load_sessions", f"a list of SessionData; {wrong}")
    return [session for session in loaded if not is_dreamed(session)]


async def memories(store: DreamStore, agent_id: str) -> list[MemoryEntry]:
    """All memories of the agent; None is none."""
    loaded = await _asked("load_memories", store.load_memories(agent_id)) or []
    if not isinstance(loaded, list | tuple) or not all(map(is_entry, loaded)):
        raise _wrong("load_memories", "a list of MemoryEntry with a text and metadata each")
    return list(loaded)


async def keep(store: DreamStore, agent_id: str, dreamed: Dreamed) -> bool:
    """Keep what dreaming of a session came to; False where the session has changed meanwhile.

    In one step where the store can, else the memories first: a crash in between leaves the session to be dreamed of
    again, which adds nothing twice. A cancellation waits for it.
    """
    if isinstance(store, KeepsDreams):
        return await _asked("keep_dream", store.keep_dream(agent_id, dreamed))
    await _seen_through("commit and save_session", _kept(store, agent_id, dreamed))
    return True


async def _kept(store: DreamStore, agent_id: str, dreamed: Dreamed) -> None:
    if dreamed.result.to_add or dreamed.result.to_remove_indices:
        await _told("commit", store.commit(agent_id, dreamed.result, dreamed.existing))
    await _told("save_session", store.save_session(dreamed.after))


async def _asked(method: str, work: Coroutine[object, object, T]) -> T:
    return await _seen_through(method, _told(method, work))


async def _seen_through(what: str, work: Coroutine[object, object, T]) -> T:
    try:
        value, cancelled = await see_through(work)
    except NoAnswer:
        raise DeepStrikeError(
            f"the dream store did not answer {what} within {LOG_SECONDS:.0f} s; what was dreamed before is kept, dream "
            "again when it answers",
            code="dream_store",
            retryable=True,
        ) from None
    if cancelled is not None:
        raise cancelled
    return value


async def _told(method: str, work: Coroutine[object, object, T]) -> T:
    try:
        return await work
    except DeepStrikeError:
        raise
    except Exception as error:
        raise DeepStrikeError(
            f"the dream store failed at {method}: {told(error)}; what was dreamed before is kept, dream again when the "
            "store is mended",
            code="dream_store",
        ) from error


def _wrong(method: str, wanted: str) -> DeepStrikeError:
    return DeepStrikeError(f"the dream store's {method} must give {wanted}", code="dream_store")
