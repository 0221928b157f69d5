"""A source that is prepared exactly once, whoever asks first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Final
from weakref import finalize

from deepstrike.errors import ToolError

if TYPE_CHECKING:
    from deepstrike.knowledge.base import KnowledgeSource

_SHOWN: Final = 300


class _Prepared:
    """Whether a source is prepared."""

    __slots__ = ("lock", "ready")

    def __init__(self) -> None:
        self.lock = Lock()
        self.ready: Future[bool] | None = None


_known: dict[int, _Prepared] = {}
_knowing = Lock()


def _prepared(source: KnowledgeSource) -> _Prepared:
    """The one of this object, which may have no hash; of one that takes no weak references, one for each who asks."""
    with _knowing:
        found = _known.get(id(source)) or _Prepared()
        with suppress(TypeError):
            if id(source) not in _known:
                finalize(source, _known.pop, id(source), None).atexit = False
                _known[id(source)] = found
        return found


class Once:
    """Prepares a `KnowledgeSource` before the first query, and asks it.

    A source is prepared once in its life, also where several of these ask it. However many ask at the same time, on
    whatever threads and event loops, one awaits `init` and the others wait for it. If it fails, whoever waited is told
    why, and the next who asks tries again. If the one who awaits it is cancelled, one of those who wait takes over.
    """

    __slots__ = ("_prepared", "source")

    def __init__(self, source: KnowledgeSource) -> None:
        self.source = source
        self._prepared = _prepared(source)

    async def retrieve(self, query: str, top_k: int = 5) -> list[str]:
        """The passages of the source. Raises what `init` or `retrieve` raise, `TypeError` for no list of texts."""
        await self._prepare()
        found: object = await self.source.retrieve(query, top_k)
        if isinstance(found, str) or not isinstance(found, Sequence) or not all(isinstance(one, str) for one in found):
            raise TypeError(f"retrieve gave {type(found).__name__}, not a list of texts")
        return list(found)

    async def look_up(self, query: str, top_k: int = 5) -> str:
        """The passages as one text for the model, or that nothing was found.

        Raises `ToolError` with a short reason if the source fails: a failure must not look like an empty answer.
        """
        try:
            found = await self.retrieve(query, top_k)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise ToolError(
                f"the knowledge source failed: {reason[:_SHOWN]}",
                hint="nothing is known about what it holds; try again later or go on without it",
            ) from error
        return "\n\n".join(f"[{place}] {text}" for place, text in enumerate(found, 1)) or "Nothing was found."

    async def _prepare(self) -> None:
        while True:
            prepared = self._prepared
            with prepared.lock:
                first = prepared.ready is None
                ready = prepared.ready = prepared.ready or Future()
            if first:
                return await self._init(ready)
            if await asyncio.shield(asyncio.wrap_future(ready)):
                return None

    async def _init(self, ready: Future[bool]) -> None:
        """Await `init` for all. The outcome is set behind the lock's change, so whoever tries again finds a new one."""
        try:
            await self.source.init()
        except Exception as error:
            self._prepared.ready = None
            ready.set_exception(error)
            ready.exception()  # it is raised here; nobody else may have waited for it
            raise
        except BaseException:
            self._prepared.ready = None
            ready.set_result(False)
            raise
        ready.set_result(True)
