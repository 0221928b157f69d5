"""Stream events: what a run yields to its caller.

Frozen dataclasses whose fields stand in the documented order; `type` is a class constant. A run ends with exactly one
`DoneEvent`, the last event; a failure is an `ErrorEvent` before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.signals.signal import RuntimeSignal

Status = Literal["completed", "max_turns", "token_budget", "timeout", "user_abort", "error", "suspended"]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text."""

    delta: str
    type: ClassVar[Literal["text_delta"]] = "text_delta"


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """A piece of the model's visible reasoning."""

    delta: str
    type: ClassVar[Literal["thinking_delta"]] = "thinking_delta"


@dataclass(frozen=True, slots=True)
class ToolCallEvent:
    """The model asked for a tool; emitted once its reply is in the log.

    `arguments` are the validated ones; where validation failed, the model's object as it parsed, `{}` if it did not
    parse. Every call of a complete reply gets this event, also one that is then refused or not run.
    """

    id: str
    name: str
    arguments: Mapping[str, object]
    type: ClassVar[Literal["tool_call"]] = "tool_call"


@dataclass(frozen=True, slots=True)
class ToolDeltaEvent:
    """Progress of a running tool: a yielded string, or `chunk` where a tool yielded something else."""

    call_id: str
    name: str
    delta: str
    chunk: object | None = None
    type: ClassVar[Literal["tool_delta"]] = "tool_delta"


@dataclass(frozen=True, slots=True)
class ToolSuspendEvent:
    """A tool waits for an answer under `suspension_id`; `payload` is what it asked with."""

    call_id: str
    name: str
    suspension_id: str
    payload: object | None = None
    type: ClassVar[Literal["tool_suspend"]] = "tool_suspend"


@dataclass(frozen=True, slots=True)
class ToolResultEvent:
    """A call has its result; `content` is the text the model gets.

    `error_kind` is None for a good result, else one of unknown_tool, invalid_arguments, exception, tool_error, timeout,
    denied, rate_limited, cancelled, not_run, outcome_unknown, withdrawn; in the sandbox also exit_code, limit and
    confinement.
    """

    call_id: str
    content: str
    is_error: bool
    name: str | None = None
    error_kind: str | None = None
    type: ClassVar[Literal["tool_result"]] = "tool_result"


@dataclass(frozen=True, slots=True)
class ToolDeniedEvent:
    """A call was refused; its error result follows.

    `stage` is the stage of governance that refused it (permission, veto, rate_limit, constraint, audit), or `approval`
    where a person did, who was asked.
    """

    call_id: str
    name: str
    stage: str
    reason: str
    type: ClassVar[Literal["tool_denied"]] = "tool_denied"


@dataclass(frozen=True, slots=True)
class PermissionRequestEvent:
    """Governance wants a person to say whether a call may run; `request_id` is the key of the answer.

    `arguments` are the validated ones. Answered by `RuntimeOptions.on_permission_request`, or by
    `runner.resume(session_id, answers={request_id: …})`: True, False, `Deny("why")` or `Approve(arguments)`.
    """

    request_id: str
    call_id: str
    name: str
    arguments: Mapping[str, object]
    reason: str
    type: ClassVar[Literal["permission_request"]] = "permission_request"


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A question that a session waits with; `request_id` is the key of its answer in `runner.resume(…, answers=…)`.

    A `suspension` is a tool's own question: `payload` is what it asked with. An `approval` asks whether the call may
    run: `reason` says why. `arguments` are the validated ones. The id is the same in every process.
    """

    request_id: str
    kind: Literal["approval", "suspension"]
    call_id: str
    name: str
    arguments: Mapping[str, object]
    payload: object | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class UsageEvent:
    """Tokens and cost of one model call, or the sums of a goal (`DoneEvent.usage`).

    `input_tokens` include the cached ones, `output_tokens` the reasoning ones, whatever the vendor's habit.
    `cost_usd` is None where the model table knows no price.
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None
    type: ClassVar[Literal["usage"]] = "usage"


@dataclass(frozen=True, slots=True)
class ContextCompressedEvent:
    """The context was rewritten; `records` counts what left it or was shortened in it, `stage` says how far it went."""

    stage: str
    tokens_before: int
    tokens_after: int
    records: int
    type: ClassVar[Literal["context_compressed"]] = "context_compressed"


@dataclass(frozen=True, slots=True)
class SignalEvent:
    """A signal was taken into the run; it is in the log. What `runner.send` said has the source `user`."""

    signal: RuntimeSignal
    type: ClassVar[Literal["signal"]] = "signal"


@dataclass(frozen=True, slots=True)
class RetryEvent:
    """A model call failed before anything was shown and is tried again after `delay_ms`.

    Or a tool's call failed, `call_id` and `name` say which, and its `retries` are not used up.
    """

    attempt: int
    delay_ms: int
    reason: str
    call_id: str | None = None
    name: str | None = None
    type: ClassVar[Literal["retry"]] = "retry"


@dataclass(frozen=True, slots=True)
class NoticeEvent:
    """Something about a model call that is neither output nor failure: a field that was dropped, another model answers.

    `code` is a stable word, `message` a text for people. It is recorded with the reply, if one comes.
    """

    code: str
    message: str
    type: ClassVar[Literal["notice"]] = "notice"


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """The run failed; `code` is a stable word, `retryable` says whether trying again may help."""

    message: str
    code: str | None = None
    retryable: bool | None = None
    type: ClassVar[Literal["error"]] = "error"


@dataclass(frozen=True, slots=True)
class DoneEvent:
    """The last event. `iterations` counts model calls, `total_tokens` their input and output, of this goal.

    `output` is the validated structured output where one was asked for; `pending` lists the open requests of a
    suspended run.
    """

    iterations: int
    total_tokens: int
    status: Status
    usage: UsageEvent | None = None
    session_id: str | None = None
    output: object | None = None
    pending: tuple[PendingRequest, ...] | None = None
    type: ClassVar[Literal["done"]] = "done"


@dataclass(frozen=True, slots=True)
class AgentEvent:
    """An event of a sub-agent; `path` names the agents from the root down.

    Of one whose work is judged it may also be an `AttemptDoneEvent` or a `VerdictEvent` of `deepstrike.harness`.
    """

    path: tuple[str, ...]
    event: StreamEvent
    type: ClassVar[Literal["agent"]] = "agent"


StreamEvent: TypeAlias = (
    TextDelta
    | ThinkingDelta
    | ToolCallEvent
    | ToolDeltaEvent
    | ToolSuspendEvent
    | ToolResultEvent
    | PermissionRequestEvent
    | ToolDeniedEvent
    | UsageEvent
    | ContextCompressedEvent
    | SignalEvent
    | RetryEvent
    | NoticeEvent
    | ErrorEvent
    | DoneEvent
    | AgentEvent
)


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run came to.

    `text` is the text of the last turn; `output` the validated structured output where one was asked for; `pending`
    the open requests of a suspended run; `error` the reason for every status but `completed`, None there, and `code`
    its stable word, and `retryable` says whether trying again may help. `iterations`, `usage` and `total_tokens` are of
    this goal.
    """

    text: str
    output: object | None
    status: Status
    pending: tuple[PendingRequest, ...]
    iterations: int
    usage: UsageEvent
    total_tokens: int
    session_id: str
    error: str | None = None
    code: str | None = None
    retryable: bool = False
