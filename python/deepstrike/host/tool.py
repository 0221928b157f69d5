"""RunTool: run one tool and hand its result to the kernel, large ones by reference."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from deepstrike.errors import ToolError
from deepstrike.execution.base import Invocation
from deepstrike.host.agents import AgentCall, child_name, child_session, questions_text, spent_by, told_to_parent
from deepstrike.host.exchange import question_text
from deepstrike.host.narrate import json_value
from deepstrike.host.outbox import Nested
from deepstrike.host.parts import checked_part
from deepstrike.host.requests import answers_in
from deepstrike.host.secrecy import veiled
from deepstrike.host.steady import told
from deepstrike.kernel import clip
from deepstrike.secrets import Veil, bound
from deepstrike.stream import RetryEvent, ToolDeltaEvent
from deepstrike.text import well_formed
from deepstrike.tools.context import Flag, ToolContext
from deepstrike.tools.suspension import Parked
from deepstrike.wire.input import Result, Suspend
from deepstrike.wire.message import BlobRef, Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepstrike.execution.base import ExecutionPlane
    from deepstrike.host.agents import Agent, Child, Household
    from deepstrike.host.outbox import Outbox
    from deepstrike.host.session import Session
    from deepstrike.wire.agents import Spent
    from deepstrike.wire.effect import RunTool

    Ask = Callable[[Suspend], None]

_log = logging.getLogger("deepstrike")

# A token of a byte-level vocabulary is at least one byte, a character at most four; unknown vocabularies are counted
# with a factor of 1.35 over it. Texts below this need no count to be known to fit.
_BYTES_A_CHARACTER = 4 * 1.35
_UNSEEN = 256

_CUT = "cancelled; it may have taken effect"
_WITHHELD = (
    "not run: a secret was withheld from what it was to be called with, and only the process that was given it knows "
    "it; call it again"
)

# The kernel's words for calls that it closes itself.
_MAY_HAVE = "cancelled; it may have taken effect"
_SUPERSEDED = "not run: superseded"

# Tokens of the line that says where the whole result is; a reference has about 50 characters.
_POINTER = 64


class ToolRun:
    """One tool run in flight."""

    __slots__ = (
        "_answer",
        "_ask",
        "_asked",
        "_cancelled",
        "_child",
        "_deltas",
        "_effect",
        "_emitted",
        "_household",
        "_loop",
        "_outbox",
        "_progress",
        "_session",
        "_stopped",
        "_under_way",
        "_withdrawn",
    )

    def __init__(
        self,
        effect: RunTool,
        session: Session,
        outbox: Outbox,
        ask: Ask | None,
        household: Household | None = None,
    ) -> None:
        """`ask` hands in a question that somebody in this process answers; None where nobody does.

        `household` is what a sub-agent is handed down that the call puts to work.
        """
        self._effect = effect
        self._session = session
        self._outbox = outbox
        self._ask = ask
        self._household = household
        self._child: Child | None = None
        self._loop = asyncio.get_running_loop()
        self._asked = 0
        self._answer: asyncio.Future[str | None] | None = None
        self._cancelled = Flag()
        self._progress: deque[str] | None = None
        self._deltas = Veil()
        # What is emitted stands for itself, so it is not cut for one or two letters.
        self._emitted = Veil(patience=4)
        self._stopped = False
        self._under_way = False
        self._withdrawn: str | None = None

    @property
    def waits(self) -> bool:
        """Whether it waits for an answer that somebody in this process gives."""
        return self._answer is not None and not self._answer.done()

    def stopped(self) -> Result:
        """What a run comes to that was stopped and gave nothing itself."""
        kind, text = ("cancelled", _MAY_HAVE) if self._under_way else ("not_run", _SUPERSEDED)
        return Result(self._effect.id, ToolResult((Text(text),), kind))

    def stop(self, task: asyncio.Task[None]) -> None:
        """Stop the tool: an async one is cancelled, a sync one fenced off and told by `ToolContext.cancelled`."""
        self._stopped = True
        self._cancelled.set()
        task.cancel()

    def withdraw(self, failed: str, task: asyncio.Task[None] | None) -> None:
        """End it with a result of its own, because the tool `failed`, of the same reply, has failed.

        One that waits for an answer goes on waiting: the question is asked.
        """
        if self._answer is not None:
            return
        self._withdrawn = failed
        if self._under_way and task is not None:
            self._cancelled.set()
            task.cancel()

    @property
    def name(self) -> str:
        """The tool's."""
        return self._effect.name

    @property
    def call_id(self) -> str:
        """The call that it serves."""
        return self._effect.call_id

    def hear(self, answer: str | None) -> None:
        """The recorded answer to the open question, as JSON text; None for a refusal, which has settled the call."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)

    async def run(self, plane: ExecutionPlane, agent_id: str | None, deps: object) -> Result | Suspend | None:
        """The result, or the question that the tool was closed at; None when the run was stopped, or a refusal has
        settled the call."""
        secrecy, owed = self._session.secrecy, self._effect
        if (early := self._superseded("not_run", "not run")) is not None:
            return early
        self._under_way = True
        effect = secrecy.opened(owed)
        if effect is None:
            return Result(owed.id, ToolResult((Text(_WITHHELD),), "not_run"))
        self._effect = effect
        context = ToolContext(
            self._session.id, effect.call_id, effect.key, agent_id, deps, self._cancelled, self._emit, self._hire
        )
        try:
            result = await self._executed(plane, context)
        except Parked as parked:
            self._quieten()
            if self._stopped:
                return self._cut()
            secrecy.again(owed, effect)
            return None if self._answer is not None else Suspend(effect.id, parked.payload)
        except asyncio.CancelledError:
            return self._cancelled_tool()
        except Exception as error:
            result = ToolResult((Text(well_formed(told(error))),), "exception")
        self._quieten()
        return Result(effect.id, result, self._spent)

    async def _executed(self, plane: ExecutionPlane, context: ToolContext) -> ToolResult:
        """What the plane gives, checked; large text by reference."""
        effect = self._effect
        invocation = Invocation(effect.name, effect.args, context, self._show, self._suspend, self._again)
        result = await plane.execute(invocation)
        if len(result.parts) != 1 or type(result.parts[0]) is not Text:
            result = ToolResult(tuple(map(checked_part, result.parts)), result.error_kind, result.blob)
        return await self._preview(result) if self._exceeds_share(result) else result

    def _cancelled_tool(self) -> Result | None:
        """What a cancelled call comes to, whoever cancelled it."""
        if self._stopped:
            return self._cut()
        self._quieten()
        ended = self._superseded("cancelled", "cancelled while it ran; it may have taken effect")
        inside = ToolResult((Text("the tool was cancelled from inside"),), "exception")
        return Result(self._effect.id, inside, self._spent) if ended is None else ended

    @property
    def _spent(self) -> Spent | None:
        result = None if self._child is None else self._child.result
        return None if result is None else spent_by(result)

    def _cut(self) -> Result | None:
        """What a stopped call has come to: nothing, but for what the sub-agent has used that it put to work."""
        spent = self._spent
        return None if spent is None else Result(self._effect.id, ToolResult((Text(_CUT),), "cancelled"), spent)

    async def _hire(self, agent: Agent, role: str, task: str, tools: tuple[str, ...] | None = None) -> str:
        """See `ToolContext`: put the sub-agent to work, or go on with it, and give what it says in the end."""
        effect, household = self._effect, self._household
        if household is None or effect.grant is None:
            raise ToolError("a sub-agent can only be put to work by a call that its run knows to do so")
        name, session_id = child_name(role, effect.id), child_session(self._session.id, effect.id)
        call = AgentCall(session_id, (name,), task, tools, effect.grant, answers_in(effect.answers))
        self._child = child = agent.child(household, call)
        result = await household.perform(child, Nested(self._outbox, (*household.path, name)))
        if result.status == "suspended":
            raise Parked(questions_text(result.pending))
        return told_to_parent(result)

    def _superseded(self, kind: str, what: str) -> Result | None:
        """The result of a call that was withdrawn; None for one that was not."""
        if self._withdrawn is None:
            return None
        why = f"{what}: {self._withdrawn}, called in the same reply, failed"
        return Result(self._effect.id, ToolResult((Text(why),), kind), self._spent)

    def broken(self, error: BaseException) -> Result:
        """What the call comes to where even telling its failure failed."""
        return Result(self._effect.id, ToolResult((Text(well_formed(told(error))),), "exception"))

    @property
    def _repeats(self) -> bool:
        """Whether it does again what was seen of it before, up to the last question that has its answer."""
        return self._asked < len(self._effect.answers)

    async def _suspend(self, payload: object) -> object:
        """The answer to the tool's next question: a recorded one at once, else once somebody has given it."""
        answers, number = self._effect.answers, self._asked
        self._asked += 1
        if number < len(answers):
            return json_value(answers[number])
        text = question_text(payload)
        if self._ask is None:
            raise Parked(text)
        self._answer = self._loop.create_future()
        self._ask(Suspend(self._effect.id, text))
        answer = await self._answer
        if answer is None:
            raise Parked(text)
        self._answer = None
        return json_value(answer)

    def _quieten(self) -> None:
        """The tool is over: what it emitted is handed on, and nothing that comes later."""
        if self._progress is not None:
            self._flush()
        for veil in (self._deltas, self._emitted):
            if rest := veil.rest():
                self._outbox.put(ToolDeltaEvent(self._effect.call_id, self._effect.name, rest))
        self._cancelled.set()

    def _emit(self, text: str) -> None:
        """See `ToolContext.emit`. From any thread; bounded, the oldest is dropped."""
        if self._cancelled.is_set() or self._repeats:
            return
        if self._progress is None:
            self._progress = deque(maxlen=_UNSEEN)
        self._progress.append(text)
        if len(self._progress) == 1 or self._outbox.full:
            # The loop may be closed under a tool that was abandoned: then nobody listens.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._flush)

    def _flush(self) -> None:
        """Hand on what was emitted, while the caller keeps up. On the loop's thread only."""
        progress = self._progress
        while progress and not self._outbox.full:
            if text := self._emitted.passed(progress.popleft()):
                self._outbox.put(ToolDeltaEvent(self._effect.call_id, self._effect.name, text))

    async def _show(self, delta: str, chunk: object | None) -> None:
        if self._stopped:
            raise asyncio.CancelledError  # the tool swallowed the first one
        if self._repeats:
            return
        shown = self._deltas.passed(delta)
        if not (shown or chunk is not None or not delta):
            return
        event = ToolDeltaEvent(self._effect.call_id, self._effect.name, shown, veiled(chunk))
        if self._outbox.put(event):
            await self._outbox.room()

    def _again(self, tried: int, delay_ms: int, reason: str) -> None:
        """See `Invocation.again`."""
        if not self._stopped:
            effect = self._effect
            self._outbox.put(RetryEvent(tried, delay_ms, bound().hidden(reason), effect.call_id, effect.name))

    def _exceeds_share(self, result: ToolResult) -> bool:
        """Whether the text could be more tokens than its share of the window."""
        length = 0
        for part in result.parts:
            if isinstance(part, Text):
                length += len(part.text)
        return length * _BYTES_A_CHARACTER > self._session.result_share

    async def _preview(self, result: ToolResult) -> ToolResult:
        """A result larger than its share goes to the blob store; its preview stays in the context."""
        text = bound().hidden("\n".join(part.text for part in result.parts if isinstance(part, Text)))
        data = text.encode()
        share = self._session.result_share
        room = max(1, share - _POINTER)
        cut = await self._session.off_loop(len(data), clip, text, self._session.model, room)
        if cut is None or cut[1] <= share:
            return result
        preview, tokens = cut
        blob: BlobRef | None = None
        try:
            blob = BlobRef(await self._session.put_blob(data), len(data), tokens)
            preview += f"\n[the whole has {tokens} tokens; recall({json.dumps(blob.ref)}) reads it in parts]"
        except (Exception, GeneratorExit):
            # The tool has run and its preview is worth more than an error; the log's own failure shows at the append.
            _log.exception("the full result of %r could not be stored, only its preview is kept", self._effect.name)
        kept = tuple(part for part in result.parts if not isinstance(part, Text))
        return ToolResult((Text(preview), *kept), result.error_kind, blob)
