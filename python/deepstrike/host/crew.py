"""The effects in flight: one task each, stopped together."""

from __future__ import annotations

import asyncio
import logging
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING

from deepstrike.host.model import ModelCall
from deepstrike.host.tool import ToolRun
from deepstrike.wire.effect import CallModel, RunTool

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from deepstrike.execution.base import ExecutionPlane
    from deepstrike.host.outbox import Outbox
    from deepstrike.host.prompt import Prompt
    from deepstrike.host.session import Session
    from deepstrike.providers.base import LLMProvider
    from deepstrike.wire.effect import Effect
    from deepstrike.wire.input import Input

    Take = Callable[[Input], Coroutine[None, None, None]]
    Begin = Callable[[], Coroutine[None, None, Input | None]]

_log = logging.getLogger("deepstrike")

# How long a stopped effect may take to clean up before it is left behind.
GRACE_SECONDS = 1.0

# Tasks that did not stop within the grace: held so that they are not collected while they run.
_left_behind: set[asyncio.Task[None]] = set()


class Crew:
    """Starts what the kernel is owed and hands in what comes of it."""

    __slots__ = (
        "_agent_id",
        "_context",
        "_deps",
        "_extensions",
        "_loop",
        "_outbox",
        "_plane",
        "_prompt",
        "_provider",
        "_session",
        "_source",
        "_spawned",
        "_started",
    )

    def __init__(
        self,
        session: Session,
        outbox: Outbox,
        provider: LLMProvider,
        plane: ExecutionPlane,
        *,
        prompt: Prompt,
        extensions: Mapping[str, object],
        source: tuple[str, str],
        agent_id: str | None,
        deps: object,
    ) -> None:
        self._session = session
        self._outbox = outbox
        self._provider = provider
        self._plane = plane
        self._prompt = prompt
        self._extensions = extensions
        self._source = source
        self._agent_id = agent_id
        self._deps = deps
        self._loop = asyncio.get_running_loop()
        # Every effect begins in the caller's context, not in that of the effect before it.
        self._context = copy_context()
        self._started: dict[int, _Effort] = {}
        self._spawned: set[asyncio.Task[None]] = set()

    def launch(self, effects: list[Effect], take: Take) -> None:
        """Start every effect that was not started yet. Questions wait for whoever answers them.

        An effect stays known until the kernel no longer owes it: one that is done, but whose result is still on its
        way in, must not begin again.
        """
        started = self._started
        self._started = {}
        for effect in effects:
            known = started.get(effect.id)
            if known is not None:
                self._started[effect.id] = known
            elif isinstance(effect, CallModel):
                dialect, model = self._source
                call = ModelCall(effect, self._plane, self._outbox, dialect, model)
                request = self._prompt.request(self._session.kernel, effect, self._extensions)
                self._start(effect.id, _Effort(call), partial(call.run, self._provider, request), take)
            elif isinstance(effect, RunTool):
                run = ToolRun(effect, self._session, self._outbox, self._loop)
                self._start(effect.id, _Effort(run), partial(run.run, self._plane, self._agent_id, self._deps), take)

    async def halt(self) -> list[Input]:
        """Stop everything in flight and wait, at most the grace, until it has let go.

        Gives what came of it after all: what a stopped model call had shown, a tool's result at the last moment.
        """
        efforts = [effort for effort in self._started.values() if not effort.over]
        tasks = [task for effort in efforts if (task := effort.stop()) is not None]
        if tasks:
            _, stuck = await asyncio.wait(tasks, timeout=GRACE_SECONDS)
            for task in stuck:
                _left_behind.add(task)
                task.add_done_callback(_left_behind.discard)
                _log.warning(
                    "a cancelled tool or model call did not stop within %s s, it is left behind", GRACE_SECONDS
                )
        return [effort.late for effort in efforts if effort.late is not None]

    def spawn(self, take: Take, item: Input) -> None:
        """Hand in an input from where nothing can be awaited."""
        task = self._loop.create_task(take(item))
        self._spawned.add(task)
        task.add_done_callback(self._spawned.discard)

    def _start(self, effect: int, effort: _Effort, begin: Begin, take: Take) -> None:
        self._started[effect] = effort
        effort.task = self._context.run(self._loop.create_task, effort.run(begin, take))


class _Effort:
    """One effect in flight. `late` is what it came to although it was stopped."""

    __slots__ = ("_stopping", "_work", "late", "over", "task")

    def __init__(self, work: ModelCall | ToolRun) -> None:
        self._work = work
        self._stopping = False
        self.over = False
        self.late: Input | None = None
        self.task: asyncio.Task[None] | None = None

    async def run(self, begin: Begin, take: Take) -> None:
        item = await begin()
        self.over = True
        if self._stopping:
            self.late = item
        elif item is not None:
            await take(item)

    def stop(self) -> asyncio.Task[None] | None:
        self._stopping = True
        if self.task is not None:
            self._work.stop(self.task)
        return self.task
