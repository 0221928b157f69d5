"""CallModel: ask the provider, show its answer as it comes, hand the whole reply to the kernel."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import TYPE_CHECKING

from deepstrike.errors import ProviderError, Truncated
from deepstrike.host.outbox import LIMIT
from deepstrike.host.steady import forget_cancels, has_cancels, told
from deepstrike.kernel import META_TOOLS
from deepstrike.output.nulls import without_nulls
from deepstrike.providers.base import Artefact, Finish, Source, ToolCall
from deepstrike.secrets import Veil, bound
from deepstrike.stream import NoticeEvent, RetryEvent, TextDelta, ThinkingDelta
from deepstrike.text import well_formed, well_formed_json
from deepstrike.tools.arguments import INVALID
from deepstrike.wire.input import Failure, Fault, Reply
from deepstrike.wire.message import CallPart, Err, Notice, Ok, Opaque, Text, Thinking, Usage

if TYPE_CHECKING:
    from deepstrike.execution.base import ExecutionPlane
    from deepstrike.host.outbox import Outbox
    from deepstrike.output.way import Way
    from deepstrike.providers.base import LLMProvider, ModelEvent, ModelRequest
    from deepstrike.wire.effect import CallModel
    from deepstrike.wire.message import ReplyPart, Validated

_CANCELLED_INSIDE = Fault("provider_error", "the provider's stream was cancelled from inside")
_log = logging.getLogger("deepstrike")
_MOST_TOKENS = 2**40
_DELTAS = (TextDelta, ThinkingDelta)
_FINISHES = frozenset({"stop", "tool_calls", "length", "content_filter", "other"})


class ModelCall:
    """One model call in flight."""

    __slots__ = (
        "_effect",
        "_finish",
        "_kind",
        "_notices",
        "_outbox",
        "_parts",
        "_pieces",
        "_plane",
        "_source",
        "_stopping",
        "_strict",
        "_usage",
        "_veil",
        "_way",
    )

    def __init__(
        self,
        effect: CallModel,
        plane: ExecutionPlane,
        outbox: Outbox,
        dialect: str,
        model: str,
        way: Way | None = None,
        *,
        strict: bool = False,
    ) -> None:
        """`strict` says that the tools went out in strict mode."""
        self._effect = effect.id
        self._plane = plane
        self._outbox = outbox
        self._source = Source(dialect, model)
        self._notices: list[Notice] = []
        self._parts: list[ReplyPart] = []
        self._kind: type[TextDelta | ThinkingDelta] | None = None
        self._pieces: list[str] = []
        self._usage: Usage | None = None
        self._finish: str | None = None
        self._stopping = False
        self._veil = Veil() if bound() else None
        self._way = way
        self._strict = strict

    def stop(self, task: asyncio.Task[Reply | Failure | None]) -> None:
        """Stop the call; its task then gives what was shown so far."""
        self._stopping = True
        task.cancel()

    @property
    def waits(self) -> bool:
        """A model call waits for nobody's answer."""
        return False

    def stopped(self) -> Reply:
        """What a call comes to that was stopped before it had shown anything: it was made, so it counts."""
        return self._reply((), "interrupted", complete=False)

    async def run(self, provider: LLMProvider, request: ModelRequest) -> Reply | Failure | None:
        """The finished reply, what was shown of a failed or stopped one, or a failure."""
        try:
            await self._stream(provider, request)
            return self._whole()
        except asyncio.CancelledError:
            if self._is_stray():
                return await self.run(provider, request)
            # Only `stop` cancels this task; any other one was born inside the provider and is its failure.
            return self._cut(None if self._stopping else _CANCELLED_INSIDE)
        except ProviderError as error:
            return self._cut(fault_of(error))
        except Exception as error:
            return self._cut(Fault("provider_error", well_formed(told(error))))

    def broken(self, error: BaseException) -> Failure:
        """What the call comes to where even telling its failure failed."""
        return Failure(self._effect, Fault("provider_error", well_formed(told(error))))

    def _is_stray(self) -> bool:
        """Whether a timer that a tool left behind, which ran in this task before, cancelled this call, and nothing was
        shown yet. That strikes once, not the run."""
        task = asyncio.current_task()
        if self._stopping or task is None or not has_cancels(task) or self._parts or self._kind is not None:
            return False
        forget_cancels(task)
        return True

    async def _stream(self, provider: LLMProvider, request: ModelRequest) -> None:
        events = provider.stream(request)
        outbox = self._outbox
        try:
            async for event in events:
                if self._stopping:
                    break  # the provider swallowed the cancellation
                if isinstance(event, _DELTAS):
                    if event.delta and self._said(event):
                        await outbox.room()
                else:
                    self._other(event)
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()
        if self._stopping:
            raise asyncio.CancelledError
        if self._finish is None:
            raise Truncated("the model's stream ended without a finish reason: the answer is cut; try again")

    def _said(self, event: TextDelta | ThinkingDelta) -> bool:
        """The hot path: a delta goes to the list of its run and to the caller, nothing else. True when to wait."""
        pieces = self._pieces if self._kind is type(event) else self._begin_run(type(event))
        pieces.append(event.delta)
        if self._veil is not None:
            shown = self._veil.passed(event.delta)
            if not shown:
                return False
            if shown != event.delta:
                event = type(event)(shown)
        outbox = self._outbox
        if outbox.quiet and len(outbox.events) < LIMIT:
            outbox.events.append(event)
            return False
        return outbox.put(event)

    def _begin_run(self, kind: type[TextDelta | ThinkingDelta]) -> list[str]:
        self._flush()
        self._kind, self._pieces = kind, []
        return self._pieces

    def _other(self, event: ModelEvent) -> None:
        if isinstance(event, Usage):
            self._usage = plausible(event)
        elif isinstance(event, Finish):
            self._finish = event.reason if event.reason in _FINISHES else "other"
        elif isinstance(event, RetryEvent):
            self._forget()
            self._outbox.put(replace(event, reason=bound().hidden(event.reason)))
        elif isinstance(event, Notice):
            notice = Notice(well_formed(event.code), well_formed(event.message))
            self._notices.append(notice)
            self._outbox.put(NoticeEvent(notice.code, bound().hidden(notice.message)))
        elif isinstance(event, Source):
            self._source = Source(well_formed(event.dialect), well_formed(event.model), event.price)
        elif isinstance(event, ToolCall):
            self._flush()
            self._called(event)
        elif isinstance(event, Artefact):
            self._flush()
            self._parts.append(Opaque(well_formed(event.dialect), well_formed(event.text)))
        else:
            raise TypeError(f"a provider yielded {type(event).__name__}, which is no ModelEvent")

    def _called(self, call: ToolCall) -> None:
        text, name = well_formed_json(call.arguments_text), well_formed(call.name)
        if self._way is None or not self._way.is_answer(name):
            self._parts.append(CallPart(well_formed(call.id), name, text, self._validated(name, text)))
        elif text:
            # The answer is a text for everybody from here on. An artefact may belong to the call, which is no more.
            self._outbox.put(TextDelta(bound().hidden(text)))
            self._parts = [part for part in self._parts if not isinstance(part, Opaque)]
            self._parts.append(Text(text))

    def _validated(self, name: str, text: str) -> Validated:
        """In strict mode a model can only say null for what it leaves out: then the null is taken for that."""
        found = self._plane.validate(name, text)
        if not self._strict or not isinstance(found, Err) or found.kind != INVALID:
            return found
        spec = next((spec for spec in (*self._plane.specs(), *META_TOOLS.values()) if spec.name == name), None)
        meant = None if spec is None else without_nulls(text, spec.parameters)
        if meant is None:
            return found
        again = self._plane.validate(name, meant)
        return Ok(meant) if isinstance(again, Ok) and again.text is None else again

    def _forget(self) -> None:
        """A retry begins the answer anew; only thinking can have been shown before one."""
        if self._kind is not None:
            self._unveil(self._kind)
        self._kind, self._usage, self._finish = None, None, None
        self._parts.clear()

    def _flush(self) -> None:
        if self._kind is not None:
            self._unveil(self._kind)
            text = well_formed("".join(self._pieces))
            self._parts.append(Text(text) if self._kind is TextDelta else Thinking(text))
            self._kind = None

    def _unveil(self, kind: type[TextDelta | ThinkingDelta]) -> None:
        """Show what was held back for its likeness to a bound value."""
        rest = "" if self._veil is None else self._veil.rest()
        if rest:
            self._outbox.put(kind(rest))

    def _whole(self) -> Reply:
        self._flush()
        if self._finish == "length":
            self._drop_cut_call()
        return self._reply(tuple(self._parts), self._finish or "other")

    def _reply(
        self, parts: tuple[ReplyPart, ...], finish: str, *, complete: bool = True, fault: Fault | None = None
    ) -> Reply:
        source, notices = self._source, tuple(self._notices)
        return Reply(
            self._effect,
            parts,
            finish,
            source.dialect,
            source.model,
            self._usage,
            complete,
            self._judged() if complete else None,
            fault,
            notices,
            source.price,
        )

    def _judged(self) -> Validated | None:
        """Whether the text has the form that was asked for; None where it is not the answer yet, or none was asked."""
        if self._way is None or any(isinstance(part, CallPart) for part in self._parts):
            return None
        return self._way.check("".join(part.text for part in self._parts if isinstance(part, Text)))

    def _drop_cut_call(self) -> None:
        """Under `length` the call written last is cut, even when it parses (wire sheet 0.3)."""
        for index in reversed(range(len(self._parts))):
            if isinstance(self._parts[index], CallPart):
                del self._parts[index]
                return

    def _cut(self, fault: Fault | None) -> Reply | Failure | None:
        self._flush()
        shown = tuple(part for part in self._parts if isinstance(part, Text))
        if shown:
            return self._reply(shown, "interrupted", complete=False, fault=fault)
        return None if fault is None else Failure(self._effect, fault)


def fault_of(error: ProviderError) -> Fault:
    """A provider's failure as the kernel hears of it; also of a subclass that never called its base's `__init__`."""
    message = error.__dict__.get("message")
    text = message if isinstance(message, str) else told(error)
    code = error.__dict__.get("code", error.default_code)
    retryable = error.__dict__.get("retryable", error.default_retryable)
    return Fault(well_formed(str(code)), well_formed(text), bool(retryable))


def plausible(usage: Usage) -> Usage | None:
    """Itself; None for counts that no model call has: they would spoil every budget, so it is estimated instead."""
    try:
        counts = (usage.input, usage.output, usage.cached, usage.cache_write, usage.reasoning)
        if min(counts) >= 0 and max(counts) < _MOST_TOKENS and {int}.issuperset(map(type, counts)):
            return usage
    except TypeError:
        pass  # not even numbers
    _log.warning("the model service reported an impossible usage, which is estimated instead: %r", usage)
    return None
