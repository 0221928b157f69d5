"""What a runner is built from. Wrong values raise `ConfigError` here, never in mid-run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from deepstrike.errors import ConfigError
from deepstrike.execution.local import LocalExecutionPlane
from deepstrike.providers.base import ModelInfo, Provider
from deepstrike.sessions.memory import InMemorySessionLog
from deepstrike.wire.policy import Limits, Model

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deepstrike.execution.base import ExecutionPlane
    from deepstrike.providers.base import LLMProvider
    from deepstrike.sessions.base import SessionLog
    from deepstrike.stream import ToolSuspendEvent


@runtime_checkable
class _Durable(Protocol):
    """A session log that can be had with another durability."""

    def with_durability(self, durability: Literal["os", "disk"]) -> SessionLog:
        """The same sessions, appended to with this durability from now on."""


_UNKNOWN_MODEL = ModelInfo(id="")
_MICRO = 1_000_000


@dataclass(kw_only=True)
class RuntimeOptions:
    """Options of a `RuntimeRunner`.

    provider: the model service, any object with `stream(request)`.
    session_log: where sessions are kept; None means in memory.
    execution_plane: the tools; None means an empty local plane.
    max_tokens: the context window in tokens, never sent as an output limit; None means the model's window from the
        model table, 32 000 where that is unknown.
    max_turns: how many model calls one goal may take.
    max_total_tokens, max_cost_usd: budgets of one goal (status `token_budget`); the cost needs a price in the model
        table. None means no limit.
    timeout_ms: active time of one goal in milliseconds (status `timeout`); None means no limit.
    extensions: sampling and provider fields. One that the provider does not know raises, one that the model refuses is
        dropped with a warning. `max_output_tokens` is the output limit.
    system_prompt, initial_memory: slots 1 and 2 of the context.
    agent_id: a name for this agent, seen by tools as `ToolContext.agent_id`.
    max_parallel_tools: how many tools of one run may run at once.
    state_placement: where changes of the task state reach the model: "frozen" puts them behind the history, so that the
        prompt only grows and the provider's cache holds; "live" rewrites `turns[0]`, the literal layout.
    on_tool_suspend: answers a tool's `Suspend`: called with the `ToolSuspendEvent`, gives the answer, a value that JSON
        can hold. A coroutine function runs on the loop, any other function in a thread. What it raises becomes the
        error result of the call. The goal's time goes on meanwhile. None means that a suspended run parks.
    durability: how far an append has come before anybody acts on it: `os`, handed to the operating system, so that it
        outlives this process; `disk`, flushed, so that it outlives the machine. Needs a session log that offers
        `with_durability`. None means what the log was built with.

    Raises `ConfigError` (a `ValueError`) that names the field and the remedy.
    """

    provider: LLMProvider
    session_log: SessionLog | None = None
    execution_plane: ExecutionPlane | None = None
    max_tokens: int | None = None
    max_turns: int = 25
    timeout_ms: int | None = None
    extensions: Mapping[str, object] = field(default_factory=dict)
    system_prompt: str = ""
    initial_memory: Sequence[str] = ()
    agent_id: str | None = None
    max_total_tokens: int | None = None
    max_cost_usd: float | None = None
    max_parallel_tools: int = 8
    state_placement: Literal["frozen", "live"] = "frozen"
    on_tool_suspend: Callable[[ToolSuspendEvent], object] | None = None
    durability: Literal["os", "disk"] | None = None

    def __post_init__(self) -> None:
        _require_methods("provider", self.provider, "stream")
        if self.session_log is not None:
            _require_methods("session_log", self.session_log, "acquire", "append", "read", "release")
        if self.execution_plane is not None:
            _require_methods("execution_plane", self.execution_plane, "specs", "validate", "execute")
        for name, value in (("max_turns", self.max_turns), ("max_parallel_tools", self.max_parallel_tools)):
            _require_positive(name, value)
        for name, limit in (
            ("max_tokens", self.max_tokens),
            ("timeout_ms", self.timeout_ms),
            ("max_total_tokens", self.max_total_tokens),
        ):
            if limit is not None:
                _require_positive(name, limit)
        if self.state_placement not in ("frozen", "live"):
            raise ConfigError(f'state_placement must be "frozen" or "live", not {self.state_placement!r}')
        _require_text("system_prompt", self.system_prompt)
        _require_texts("initial_memory", self.initial_memory)
        if self.agent_id is not None:
            _require_text("agent_id", self.agent_id)
        if self.on_tool_suspend is not None and not callable(self.on_tool_suspend):
            raise ConfigError("on_tool_suspend must be a function of a ToolSuspendEvent, or None")
        if self.durability is not None:
            _require_durable(self.durability, self.session_log)
        self.limits(self.admit({}))

    def log(self) -> SessionLog:
        """The session log, a fresh one in memory where none was given, with the durability that was asked for."""
        if self.session_log is None:
            return InMemorySessionLog()
        if self.durability is None or not isinstance(self.session_log, _Durable):
            return self.session_log
        return self.session_log.with_durability(self.durability)

    def plane(self) -> ExecutionPlane:
        """The execution plane, an empty local one where none was given."""
        return LocalExecutionPlane() if self.execution_plane is None else self.execution_plane

    def model_info(self) -> ModelInfo:
        """What is known of the provider's model."""
        return self.provider.info if isinstance(self.provider, Provider) else _UNKNOWN_MODEL

    def admit(self, extensions: Mapping[str, object]) -> Mapping[str, object]:
        """The extensions of one run: the options' own with `extensions` over them, as the provider admits them."""
        _require_fields(self.extensions)
        _require_fields(extensions)
        merged = {**self.extensions, **extensions}
        if isinstance(self.provider, Provider):
            return self.provider.admit(merged)
        return merged

    def model(self) -> Model:
        """The model as the kernel sees it."""
        info = self.model_info()
        return Model(id=info.id, price=info.price)

    def limits(self, extensions: Mapping[str, object]) -> Limits:
        """The limits as the kernel sees them, with the output reserve by these extensions."""
        info = self.model_info()
        window = self.max_tokens if self.max_tokens is not None else info.window
        return Limits(
            max_turns=self.max_turns,
            window=window,
            reserve=_reserve(extensions.get("max_output_tokens"), info.max_output, window),
            parallel=self.max_parallel_tools,
            max_total_tokens=self.max_total_tokens,
            max_cost=_micro_dollars(self.max_cost_usd, info),
            timeout_ms=self.timeout_ms,
        )


def _require_fields(extensions: object) -> None:
    if not isinstance(extensions, Mapping) or not all(isinstance(name, str) for name in extensions):
        raise ConfigError('extensions must be a dict of fields by name, as in extensions={"temperature": 0.1}')


def _require_methods(field: str, value: object, *methods: str) -> None:
    if isinstance(value, type):
        raise ConfigError(f"{field} must be an object, not a class: write {field}={value.__name__}(…)")
    missing = [method for method in methods if not callable(getattr(value, method, None))]
    if missing:
        raise ConfigError(f"{field} must have the method {missing[0]}(…); {type(value).__name__} has none")


def _require_durable(durability: str, log: object) -> None:
    if durability not in ("os", "disk"):
        raise ConfigError(f'durability must be "os", "disk" or None, not {durability!r}')
    if not isinstance(log, _Durable):
        kept = "sessions in memory" if log is None else type(log).__name__
        raise ConfigError(
            f"durability={durability!r} needs a session log on disk, and {kept} cannot promise it: give "
            "session_log=FileSessionLog(…) or SqliteSessionLog(…), or leave durability out"
        )


def _require_text(field: str, value: object) -> None:
    if not isinstance(value, str):
        raise ConfigError(f"{field} must be a text, not {type(value).__name__}")


def _require_texts(field: str, value: object) -> None:
    if (
        isinstance(value, Iterable)
        and not isinstance(value, str | bytes)
        and all(isinstance(text, str) for text in value)
    ):
        return
    raise ConfigError(f"{field} must be a list of texts: write {field}=[…]")


def _require_positive(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"{name} must be a whole number, not {type(value).__name__}")
    if value < 1:
        raise ConfigError(f"{name} must be at least 1, not {value}")
    if value >= 2**53:
        raise ConfigError(f"{name} is larger than any limit makes sense: use None for no limit")


def _reserve(asked: object, known: int | None, window: int) -> int:
    if asked is not None:
        _require_positive("extensions['max_output_tokens']", asked)
    quarter = max(1, window // 4)
    if isinstance(asked, int):
        return min(asked, quarter)
    return quarter if known is None else min(known, quarter)


def _micro_dollars(limit: float | None, info: ModelInfo) -> int | None:
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit < 1e9:
        raise ConfigError(f"max_cost_usd must be a positive number of dollars, not {limit!r}")
    if info.price is None:
        name = f"model {info.id!r}" if info.id else "this provider's model"
        raise ConfigError(
            f"max_cost_usd needs a price, and the model table has none for {name}: register one "
            "(deepstrike.providers.models.register) or use max_total_tokens"
        )
    return max(1, round(limit * _MICRO))
