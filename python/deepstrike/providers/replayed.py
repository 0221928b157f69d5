"""A model that answers as it did in a recorded session."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from deepstrike.errors import ConfigError, ProviderError, UnknownSession
from deepstrike.providers.answers import BY_WORDS, FINAL_TOOL
from deepstrike.providers.base import (
    Artefact,
    Finish,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    Provider,
    Source,
    ToolCall,
)
from deepstrike.providers.dialects.chat.dialect import NO_TOOLS
from deepstrike.replay.differences import differences
from deepstrike.replay.refs import ownerless, renamed
from deepstrike.replay.retrace import Retrace, read_records
from deepstrike.stream import TextDelta, ThinkingDelta
from deepstrike.wire.event import Failed, Replied, Started
from deepstrike.wire.message import (
    AssistantBlock,
    CallBlock,
    HeadBlock,
    Opaque,
    RecordedCall,
    ResultBlock,
    Text,
    Thinking,
    UserBlock,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from deepstrike.sessions.base import SessionLog
    from deepstrike.wire.event import AnyEvent
    from deepstrike.wire.input import Fault
    from deepstrike.wire.message import Block, RecordedPart, Turn

P = TypeVar("P")

_PIECE = re.compile(r".{1,24}(?:\s+|$)|.{1,24}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the model answered at record `seq`, or why it failed (both, where it broke off)."""

    seq: int
    reply: Replied | None
    fault: Fault | None


class _Recording:
    """One recorded session, from one answer to the next. Raises `ConfigError` for what holds no goal."""

    __slots__ = ("_answers", "_at", "_trace", "dialect", "started")

    def __init__(self, records: Sequence[bytes]) -> None:
        self._trace = Retrace(_lines(records))
        events = [None if record is None else record.event for record in self._trace.records]
        started = next((event for event in events if isinstance(event, Started)), None)
        if started is None:
            raise ConfigError("the records hold no goal: give all lines of a session's log, from its first one on")
        self.started = started
        self.dialect = next((event.dialect for event in events if isinstance(event, Replied)), "")
        self._answers = tuple(_answers(events))
        self._at = 0

    def __len__(self) -> int:
        return len(self._answers)

    @property
    def remaining(self) -> int:
        return len(self._answers) - self._at

    def take(self) -> _Answer:
        """The next answer, of which there must be one."""
        self._at += 1
        return self._answers[self._at - 1]

    def mismatch(self, request: ModelRequest) -> str:
        """In what the request is not the one that the next answer was recorded for ("" if it is)."""
        if not self.remaining:
            return "there are no more replies"
        while self._trace.at < self._answers[self._at].seq:
            self._trace.step()
        kernel = self._trace.kernel
        return _mismatch(request, kernel.blocks(kernel.epoch, 0))


class ReplayProvider(Provider):
    """Answers the n-th request with the n-th reply of a recorded session; needs no key and no network.

    `records` are the lines of a session log, as `SessionLog.read` gives them or `deepstrike sessions export` writes
    them; `from_log` reads them. Text and thinking come in pieces of a few words (the log does not hold the pieces of
    the day), then calls and artefacts in their order, usage and finish as recorded. Failures are raised again as the
    error class of their code. Model, price, window and dialect are those of the recording, so a run of the same goal
    with the same options and tools makes the same records but for their times and the session id.

    Each request must be the one that was recorded: system text, memory, tools, goal, and all that was said and came
    back since; call ids may differ. `strict=False` answers without looking. `requests` holds every request as it came,
    `remaining` says how many replies are left. Safe for several loops and threads: each call takes the next reply.

    `sub_agents` are the records of the sessions of its sub-agents, which `from_log` finds itself: a session that asks
    for the first time, behind that of the first request, is answered from the one whose first request it repeats.

    Calls fail with a `ProviderError` whose code is `replay_mismatch` (it names the first difference and the turn),
    `replay_exhausted` (there are no more replies) or `replay_interrupted` (the recorded reply was stopped here by its
    caller). Building one raises `ConfigError` for what are no records, `CorruptLog` for a log that does not fold,
    `SessionError` for one that a newer version wrote.
    """

    def __init__(
        self, records: Sequence[bytes], *, strict: bool = True, sub_agents: Sequence[Sequence[bytes]] = ()
    ) -> None:
        self._root = root = _Recording(records)
        self._waiting = [_Recording(lines) for lines in sub_agents]
        self._all = (root, *self._waiting)
        config = root.started.config
        self.dialect = root.dialect
        traits = frozenset({NO_TOOLS}) if BY_WORDS in config.system else frozenset[str]()
        self.info = ModelInfo(
            config.model.id,
            window=config.limits.window,
            max_output=config.limits.reserve,
            price=config.model.price,
            traits=traits,
        )
        # An answer in a form is asked for as it was then: nothing in the log tells of a field of the service.
        self.structured = not traits and all(tool.name != FINAL_TOOL for tool in config.tools)
        self.requests: list[ModelRequest] = []
        self._asking: dict[str, _Recording] = {}
        self._strict = strict
        self._lock = threading.Lock()

    @classmethod
    async def from_log(cls, log: SessionLog, session_id: str, *, strict: bool = True) -> ReplayProvider:
        """One that answers from the session `session_id` of `log`, and its sub-agents. Raises `UnknownSession` too."""
        records = await log.read(session_id)
        if not records:
            raise UnknownSession(f"there is no session {session_id!r} in this log; sessions() lists those there are")
        below = [name for name in await log.sessions() if name.startswith(f"{session_id}/")]
        others = [lines for name in below if _is_sub_agent(lines := await log.read(name))]
        return cls(records, strict=strict, sub_agents=others)

    @property
    def remaining(self) -> int:
        """How many recorded replies, failed calls and those of sub-agents included, were not asked for yet."""
        return sum(recording.remaining for recording in self._all)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield the next recorded reply."""
        answer, mismatch = self._next(request)
        if mismatch:
            raise ProviderError(
                f"request {len(self.requests)} is not the one that was recorded: {mismatch}. Record the session again, "
                "or use ReplayProvider(…, strict=False)",
                code="replay_mismatch",
            )
        if answer.reply is not None:
            for event in self._events(answer.reply, request):
                yield event
        if answer.fault is not None:
            raise _error(answer.fault)
        if answer.reply is None or not answer.reply.complete:
            raise ProviderError("the recorded reply was stopped here by its caller", code="replay_interrupted")

    def _next(self, request: ModelRequest) -> tuple[_Answer, str]:
        """The answer whose turn it is, and in what the request is not the recorded one ("" if it is)."""
        with self._lock:
            self.requests.append(request)
            recording = self._recording(request)
            if not recording.remaining:
                raise ProviderError(
                    f"the recorded session has {len(recording)} replies and this is request {len(self.requests)}: the "
                    "run goes on where the recorded one ended",
                    code="replay_exhausted",
                )
            mismatch = recording.mismatch(request) if self._strict else ""
            return recording.take(), mismatch

    def _recording(self, request: ModelRequest) -> _Recording:
        """The one that the session which asks repeats."""
        found = self._asking.get(request.cache_key)
        if found is None:
            if self._asking and self._waiting:
                fitting = (waiting for waiting in self._waiting if not waiting.mismatch(request))
                found = next(fitting, self._waiting[0])
                self._waiting.remove(found)
            self._asking[request.cache_key] = found = self._root if found is None else found
        return found

    def _events(self, reply: Replied, request: ModelRequest) -> Iterator[ModelEvent]:
        yield from reply.notices
        if (reply.dialect, reply.model, reply.price) != (self.dialect, self.info.id, None):
            yield Source(reply.dialect, reply.model, reply.price)
        for part in reply.parts:
            yield from _spoken(part, request)
        if not reply.estimated:
            yield reply.usage
        if not reply.complete:
            return
        if reply.finish == "length" and any(isinstance(part, RecordedCall) for part in reply.parts):
            # Under this reason the host drops the call that came last as cut: it was dropped before it was recorded.
            yield ToolCall("", "cut", "")
        yield Finish(reply.finish)


def _lines(records: Sequence[bytes]) -> list[bytes]:
    given: object = records
    if isinstance(given, str | bytes) or not all(isinstance(line, bytes) for line in records):
        raise ConfigError(
            "records must be the lines of a session log as bytes: await log.read(session_id), or "
            "Path('session.jsonl').read_bytes().splitlines()"
        )
    return list(records)


def _is_sub_agent(records: Sequence[bytes]) -> bool:
    """Whether a session is somebody's; another may be called as if it were."""
    first = next(iter(read_records(records[:1])), None)
    return first is not None and isinstance(first.event, Started) and first.event.config.agents.parent is not None


def _answers(events: Sequence[AnyEvent | None]) -> Iterator[_Answer]:
    """One for each call of the model."""
    for seq, event in enumerate(events):
        if isinstance(event, Replied):
            yield _Answer(seq, event, _fault_of(event, events[seq + 1] if seq + 1 < len(events) else None))
        elif isinstance(event, Failed) and _fault_of(events[seq - 1], event) is None:
            yield _Answer(seq, None, event.fault)


def _fault_of(event: AnyEvent | None, behind: AnyEvent | None) -> Fault | None:
    """Why a reply broke off, which stands directly behind it."""
    if isinstance(event, Replied) and isinstance(behind, Failed) and event.effect == behind.effect:
        return behind.fault
    return None


def _spoken(part: RecordedPart, request: ModelRequest) -> Iterator[ModelEvent]:
    def said(text: str) -> str:
        """What is kept in a blob has another name in this session."""
        return renamed(text, _texts(request.turns))

    match part:
        case Text():
            yield from map(TextDelta, _PIECE.findall(said(part.text)))
        case Thinking():
            yield from map(ThinkingDelta, _PIECE.findall(said(part.text)))
        case Opaque():
            yield Artefact(part.dialect, part.text)
        case RecordedCall():
            yield ToolCall(part.id if part.wire_id is None else part.wire_id, part.name, said(part.args_text))


def _texts(turns: Sequence[Turn]) -> Iterator[str]:
    for turn in turns:
        yield from (part.text for part in turn.parts if isinstance(part, Text))


def _error(fault: Fault) -> ProviderError:
    """The failure of the day as the class that its code belongs to."""
    classes: list[type[ProviderError]] = [ProviderError, *ProviderError.__subclasses__()]
    kind = next((kind for kind in classes if kind.default_code == fault.code), ProviderError)
    return kind(fault.message, code=fault.code, retryable=fault.retryable)


def _mismatch(request: ModelRequest, prompt: Sequence[Block]) -> str:
    """The first thing in which a request is not the recorded one; "" if it is."""
    head = prompt[0]
    asked = HeadBlock(request.system_stable, request.system_knowledge, request.tools)
    if head != asked:
        return _told(head, asked)
    for index, (turn, recorded) in enumerate(zip(request.turns, prompt[1:], strict=False)):
        if turn != recorded and _bare(turn) != _bare(recorded):
            return f"{_name(recorded, index)}: {_told(_bare(recorded), _bare(turn))}"
    if len(request.turns) != len(prompt) - 1:
        return f"it has {len(request.turns)} turns, recorded were {len(prompt) - 1}"
    return ""


def _told(recorded: Block, asked: Block) -> str:
    first = next(iter(differences(_by_name(recorded), _by_name(asked))), None)
    if first is None:
        return "the tools stand in another order"
    return f"{first.path} is {first.right or 'missing'}, recorded was {first.left or 'nothing'}"


def _by_name(block: Block) -> object:
    """The head with its tools under their names; other blocks as they are."""
    if not isinstance(block, HeadBlock):
        return block
    tools = {tool.name: tool for tool in block.tools}
    return {"system prompt": block.system_stable, "memory": block.system_knowledge, "tools": tools}


def _bare(turn: Turn | Block) -> Block:
    """A turn without what differs from one recording to the next: ids of calls, and the session in names of blobs."""
    match turn:
        case ResultBlock():
            return replace(turn, call_id="", parts=tuple(map(_ownerless, turn.parts)))
        case AssistantBlock():
            return replace(turn, parts=tuple(map(_ownerless, turn.parts)))
        case UserBlock():
            return replace(turn, parts=tuple(map(_ownerless, turn.parts)))
    return turn


def _ownerless(part: P) -> P:
    match part:
        case Text() | Thinking():
            return replace(part, text=ownerless(part.text))
        case CallBlock():
            return replace(part, id="", args_text=ownerless(part.args_text))
    return part


def _name(turn: Block, index: int) -> str:
    if isinstance(turn, ResultBlock):
        return f"the result of {turn.name} (turns[{index}])"
    if isinstance(turn, AssistantBlock):
        return f"what the model said (turns[{index}])"
    return "the goal" if index == 0 else f"the user's side (turns[{index}])"
