"""The effects in flight, stopped together."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from deepstrike.host.ask import Question, permission_question, tool_question
from deepstrike.host.context import InContext
from deepstrike.host.model import ModelCall
from deepstrike.host.steady import forget_cancels, has_cancels
from deepstrike.host.tool import ToolRun
from deepstrike.providers.dialects.strict_tools import STRICT_TOOLS
from deepstrike.wire.effect import AskUser, CallModel, RunTool
from deepstrike.wire.input import Result, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from contextvars import Context

    from deepstrike.execution.base import ExecutionPlane
    from deepstrike.host.agents import Delegates, Household
    from deepstrike.host.ask import OnPermissionRequest, OnToolSuspend
    from deepstrike.host.outbox import Outbox
    from deepstrike.host.post import Knock
    from deepstrike.host.session import Session
    from deepstrike.output.way import Way
    from deepstrike.providers.base import LLMProvider
    from deepstrike.wire.effect import Effect
    from deepstrike.wire.input import Answer, Input

    Take = Callable[["Input | Knock", "Effort | None"], Coroutine[None, None, None]]
    Begin = Callable[[], Coroutine[object, object, "Input | None"]]

_log = logging.getLogger("deepstrike")

# How a call ends that was not to run, or was ended for another one's failure.
_NO_FAILURES = frozenset({"", "not_run", "cancelled"})

# How long a stopped effect may take to clean up before it is left behind.
GRACE_SECONDS = 1.0

# After so many effects the loop gets its turn, in case none of them had to wait.
STREAK = 32

# Tasks that did not stop within the grace: held so that they are not collected while they run.
_left_behind: set[asyncio.Task[None]] = set()


@dataclass(frozen=True, slots=True)
class Means:
    """What the effects of a run are carried out with.

    `delegates` are the sub-agents of `delegate`, None where it is not there; `household` is what any sub-agent is
    handed down, set when the run begins.
    """

    provider: LLMProvider
    plane: ExecutionPlane
    extensions: Mapping[str, object]
    dialect: str
    model: str
    agent_id: str | None
    deps: object
    on_tool_suspend: OnToolSuspend | None = None
    on_permission_request: OnPermissionRequest | None = None
    way: Way | None = None
    delegates: Delegates | None = None
    household: Household | None = None
    cancel_siblings: bool = False


class Effort:
    """One effect in flight. `late` is what it came to although it was stopped, `next` what its task goes on with."""

    __slots__ = ("begin", "context", "late", "next", "over", "stopped", "task", "work")

    def __init__(self, work: ModelCall | ToolRun | Question, begin: Begin, context: Context | None = None) -> None:
        self.work = work
        self.begin = begin
        self.context = context
        self.stopped = False
        self.over = False
        self.late: Input | None = None
        self.next: Effort | None = None
        self.task: asyncio.Task[None] | None = None

    async def outcome(self) -> Input | None:
        """Carry it out; None when nothing is to be handed in, because there is nothing or because it was stopped."""
        work = self.begin()
        try:
            item = await (work if self.context is None else InContext(self.context, work))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            if isinstance(error, GeneratorExit) and not self._is_running():
                raise  # this coroutine is closed, nothing was raised inside it
            # A net under `ModelCall.run`, `ToolRun.run` and `Question.run`: an effect always comes to something.
            item = None if self.stopped else self.work.broken(error)
        self.over = True
        if not self.stopped:
            return item
        self.late = item
        return None

    def _is_running(self) -> bool:
        try:
            return asyncio.current_task() is self.task
        except RuntimeError:
            return False

    def stop(self) -> asyncio.Task[None] | None:
        """Stop it; the task to wait for, None where it had not begun."""
        self.stopped = True
        if self.task is not None:
            self.work.stop(self.task)
        return self.task


class Crew:
    """Starts what the kernel is owed and hands in what comes of it.

    An effect goes on in the task that handed in the last result, where that task is free: while nothing happens in
    parallel, a whole run is one task. Every tool runs in a copy of the caller's context all the same.
    """

    __slots__ = (
        "_closing",
        "_context",
        "_failed",
        "_loop",
        "_means",
        "_outbox",
        "_session",
        "_spawned",
        "_started",
        "_streak",
        "_take",
        "_waiting",
    )

    def __init__(self, session: Session, outbox: Outbox, means: Means, take: Take) -> None:
        self._session = session
        self._outbox = outbox
        self._means = means
        self._take = take
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self._started: dict[int, Effort] = {}
        self._spawned: set[asyncio.Task[None]] = set()
        self._streak = 0
        self._closing: list[Effort] = []
        # The tools that are still there while they wait, by the AskUser that they wait for.
        self._waiting: dict[int, ToolRun] = {}
        # The tool of the newest reply whose failure ends the reply's other calls.
        self._failed: str | None = None

    def launch(self, effects: list[Effect], by: Effort | None) -> None:
        """Start every effect that was not started yet; `by` is the effort whose task is free to go on.

        A question that nobody here answers waits for a later process. An effect stays known until the kernel no longer
        owes it: one that is done, but whose result is still on its way in, must not begin again.
        """
        started = self._started
        self._started = {}
        for effect in effects:
            effort = started.pop(effect.id, None)
            if effort is None:
                effort = self._effort(effect)
                if effort is None:
                    continue
                if by is not None and by.next is None:
                    by.next = effort
                else:
                    effort.task = self._context.run(self._loop.create_task, self._work(effort))
            self._started[effect.id] = effort
        # What is no longer owed is over, but for a tool that is just being closed because its question got no answer.
        gone = [effort for effort in started.values() if not effort.over]
        for effort in gone:
            if isinstance(effort.work, Question):
                effort.stop()  # a signal went before the call that it is about
        self._closing += gone

    def answered(self, answer: Answer) -> None:
        """An answer is in the log: the tool that waits for it, if it is still there, goes on."""
        tool = self._waiting.pop(answer.effect, None)
        if tool is not None:
            tool.hear(answer.answer.json if isinstance(answer.answer, Value) else None)

    async def halt(self) -> list[Input]:
        """Stop everything in flight and wait, at most the grace, until it has let go.

        Gives what came of it after all: what a stopped model call had shown, a tool's result at the last moment.
        """
        efforts = [effort for effort in (*self._started.values(), *self._closing) if not effort.over]
        await self._stop(efforts)
        return [effort.late for effort in efforts if effort.late is not None]

    async def _stop(self, efforts: list[Effort]) -> None:
        tasks = [task for effort in efforts if (task := effort.stop()) is not None]
        if tasks:
            # A sub-agent's effects get less time than it has itself, so that it can still tell what it has spent.
            grace = GRACE_SECONDS * 0.75 ** len(self._session.path)
            _, stuck = await asyncio.wait(tasks, timeout=grace)
            for task in stuck:
                _left_behind.add(task)
                task.add_done_callback(_left_behind.discard)
                _log.warning("a stopped tool or model call did not end within %s s, it is left behind", grace)
        for effort in efforts:
            effort.over = True

    async def cut(self) -> list[Input]:
        """Stop the model call and the tools that run, but for one that waits for an answer; the run goes on.

        Gives what came of each, also of one that came to nothing or did not let go within the grace.
        """
        efforts = [effort for effort in self._started.values() if not effort.over and not effort.work.waits]
        late: list[Input] = []
        if efforts:
            await self._stop(efforts)
        for effort in efforts:
            item = effort.late if effort.late is not None else effort.work.stopped()
            if item is not None:
                late.append(item)
        return late

    def is_new_call(self, effects: list[Effect]) -> bool:
        """Whether a model call is owed that was not started yet."""
        return any(isinstance(effect, CallModel) and effect.id not in self._started for effect in effects)

    def spawn(self, item: Input | Knock) -> None:
        """Hand in an input from where nothing can be awaited."""
        task = self._loop.create_task(self._take(item, None))
        self._spawned.add(task)
        task.add_done_callback(self._spawned.discard)

    async def _work(self, effort: Effort | None) -> None:
        task = asyncio.current_task()
        while effort is not None and not effort.stopped:
            self._streak += 1
            if self._streak % STREAK == 0:
                await asyncio.sleep(0)
            effort.task = task
            item = await effort.outcome()
            if task is not None and has_cancels(task):
                await self._shake_off(effort)
            if item is None:
                return
            if self._means.cancel_siblings:
                self._cancel_siblings(effort, item)
            await self._take(item, effort)
            effort = effort.next

    def _cancel_siblings(self, effort: Effort, item: Input) -> None:
        """One call of a reply has failed: the others of it end, also those that have not had their turn yet."""
        failed = isinstance(item, Result) and item.result.error_kind not in _NO_FAILURES
        if self._failed is not None or not failed or not isinstance(effort.work, ToolRun):
            return
        self._failed = effort.work.name
        for other in self._started.values():
            if other is not effort and not other.over and isinstance(other.work, ToolRun):
                other.work.withdraw(self._failed, other.task)

    async def _shake_off(self, effort: Effort) -> None:
        """Requests to cancel the task that the effect left behind must not strike what its task goes on with."""
        if effort.stopped or effort.task is None:
            return
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        forget_cancels(effort.task)

    def _effort(self, effect: Effect) -> Effort | None:
        """None for a question that nobody in this process answers."""
        match effect:
            case CallModel():
                return self._model_call(effect)
            case RunTool():
                return self._tool_run(effect)
            case AskUser():
                return self._question(effect)

    def _question(self, ask: AskUser) -> Effort | None:
        means = self._means
        if ask.kind == "agent":
            return None
        if ask.kind == "suspension":
            if means.on_tool_suspend is None:
                return None
            self._await_answer(ask)
            question = tool_question(ask, means.on_tool_suspend, self._session.path)
        elif means.on_permission_request is None:
            return None
        else:
            validate, path = self._session.secrecy.validating(means.plane.validate), self._session.path
            question = permission_question(ask, means.on_permission_request, validate, path)
        return Effort(question, question.run, self._context.copy())

    def _await_answer(self, ask: AskUser) -> None:
        """Remember which tool goes on with the answer, if it is still there."""
        for effort in self._started.values():
            if isinstance(effort.work, ToolRun) and effort.work.call_id == ask.call_id:
                self._waiting[ask.id] = effort.work

    def _model_call(self, effect: CallModel) -> Effort:
        means = self._means
        self._failed = None
        strict = means.extensions.get(STRICT_TOOLS) is True
        call = ModelCall(effect, means.plane, self._outbox, means.dialect, means.model, means.way, strict=strict)
        session = self._session
        output = None if means.way is None else means.way.native
        request = session.prompt.request(session.kernel, effect, means.extensions, session.limits, output)
        return Effort(call, partial(call.run, means.provider, request))

    def _tool_run(self, effect: RunTool) -> Effort:
        means = self._means
        attended = means.on_tool_suspend is not None
        run = ToolRun(effect, self._session, self._outbox, self.spawn if attended else None, means.household)
        if self._failed is not None:
            run.withdraw(self._failed, None)
        return Effort(run, partial(run.run, means.plane, means.agent_id, means.deps), self._context.copy())
