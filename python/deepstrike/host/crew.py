"""The effects in flight: one task each, stopped together."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from deepstrike.host.model import ModelCall
from deepstrike.host.tool import ToolRun
from deepstrike.wire.effect import AskUser, CallModel, RunTool

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from deepstrike.execution.base import ExecutionPlane
    from deepstrike.host.inbox import Inbox
    from deepstrike.host.outbox import Outbox
    from deepstrike.host.prompt import Prompt
    from deepstrike.host.session import Session
    from deepstrike.providers.base import LLMProvider
    from deepstrike.wire.effect import Effect
    from deepstrike.wire.input import Failure, Reply, Result

    Begin = Callable[[], Coroutine[None, None, Reply | Failure | Result | None]]

_log = logging.getLogger("deepstrike")

# How long a stopped effect may take to clean up before it is left behind.
GRACE_SECONDS = 1.0

# Tasks that did not stop within the grace: held so that they are not collected while they run.
_left_behind: set[asyncio.Task[None]] = set()


class Crew:
    """Starts what the kernel is owed and pushes what comes of it into the inbox."""

    __slots__ = (
        "_agent_id",
        "_deps",
        "_extensions",
        "_inbox",
        "_outbox",
        "_plane",
        "_prompt",
        "_provider",
        "_session",
        "_source",
        "_started",
    )

    def __init__(
        self,
        session: Session,
        inbox: Inbox,
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
        self._inbox = inbox
        self._outbox = outbox
        self._provider = provider
        self._plane = plane
        self._prompt = prompt
        self._extensions = extensions
        self._source = source
        self._agent_id = agent_id
        self._deps = deps
        self._started: dict[int, tuple[ModelCall | ToolRun, asyncio.Task[None]]] = {}

    def launch(self, effects: list[Effect]) -> None:
        """Start every effect that was not started yet. Questions wait for whoever answers them.

        An effect stays known until the kernel no longer owes it: one that is done, but whose result still waits in the
        inbox, must not begin again.
        """
        owed = {effect.id for effect in effects}
        for settled in [known for known in self._started if known not in owed]:
            del self._started[settled]
        for effect in effects:
            if effect.id in self._started:
                continue
            if isinstance(effect, CallModel):
                self._call_model(effect)
            elif isinstance(effect, RunTool):
                self._run_tool(effect)
            else:
                assert isinstance(effect, AskUser)  # noqa: S101

    async def halt(self) -> None:
        """Stop everything in flight and wait, at most the grace, until it has let go.

        What a stopped model call had shown, and results that came in meanwhile, are then in the inbox.
        """
        running = [(work, task) for work, task in self._started.values() if not task.done()]
        if not running:
            return
        for work, task in running:
            work.stop(task)
        _, stuck = await asyncio.wait([task for _, task in running], timeout=GRACE_SECONDS)
        for task in stuck:
            _left_behind.add(task)
            task.add_done_callback(_left_behind.discard)
            _log.warning("a cancelled tool or model call did not stop within %s s and is left behind", GRACE_SECONDS)

    def _call_model(self, effect: CallModel) -> None:
        dialect, model = self._source
        call = ModelCall(effect, self._plane, self._outbox, dialect, model)
        request = self._prompt.request(self._session.kernel, effect, self._extensions)
        self._start(effect.id, call, lambda: call.run(self._provider, request))

    def _run_tool(self, effect: RunTool) -> None:
        run = ToolRun(effect, self._session, self._outbox)
        self._start(effect.id, run, lambda: run.run(self._plane, self._agent_id, self._deps))

    def _start(self, effect: int, work: ModelCall | ToolRun, begin: Begin) -> None:
        self._started[effect] = (work, asyncio.create_task(self._finish(begin)))

    async def _finish(self, begin: Begin) -> None:
        item = await begin()
        if item is not None:
            self._inbox.push(item)
