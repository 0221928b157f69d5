"""What a runner is built from. Wrong values raise `ConfigError` here, never in mid-run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NoReturn, Protocol, runtime_checkable

from deepstrike.errors import ConfigError
from deepstrike.execution.local import LocalExecutionPlane
from deepstrike.host.library import Library
from deepstrike.output.way import MODES, require_native
from deepstrike.providers.base import ModelInfo, Provider
from deepstrike.roles import sub_agents_of
from deepstrike.sessions.memory import InMemorySessionLog
from deepstrike.wire.policy import Limits, Model, Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deepstrike.execution.base import ExecutionPlane
    from deepstrike.governance.policy import Governance
    from deepstrike.knowledge.base import KnowledgeSource
    from deepstrike.knowledge.once import Once
    from deepstrike.memory.base import DreamStore
    from deepstrike.output.form import Form
    from deepstrike.output.way import OutputMode
    from deepstrike.providers.base import LLMProvider
    from deepstrike.roles import AgentRunSpec, SubAgents
    from deepstrike.sessions.base import SessionLog
    from deepstrike.signals.source import SignalSource
    from deepstrike.skills.registry import SkillRegistry
    from deepstrike.stream import PermissionRequestEvent, ToolSuspendEvent
    from deepstrike.tries import TriesHarness


@runtime_checkable
class _Durable(Protocol):
    """A session log that can be had with another durability."""

    def with_durability(self, durability: Literal["os", "disk"]) -> SessionLog:
        """The same sessions, appended to with this durability from now on."""


_ONE_OF_A_KIND = (
    "RuntimeOptions hold keys, connections and locks, so they are neither pickled nor copied in depth: change some by "
    "dataclasses.replace(options, …), and build them anew in another process"
)
_UNKNOWN_MODEL = ModelInfo(id="")
_MICRO = 1_000_000
_OF_A_STORE = ("load_sessions", "load_memories", "commit", "search", "save_session")


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
    system_prompt, initial_memory: slots 1 and 2 of the context. The memories stand in one block, which none of them can
        close.
    agent_id: a name for this agent, seen by tools as `ToolContext.agent_id`; whose memory it is in `dream_store`.
    skill_dir: a folder of skills (docs/skills.md), read anew for each run. A line for each stands in slot 2, behind
        `initial_memory`, in at most a twentieth of the window; the model loads one by the meta-tool `skill`.
    knowledge_source: what the model looks things up in by the meta-tool `knowledge`; prepared before its first query.
    dream_store: what is remembered over sessions; the model searches it by the meta-tool `memory`. Each run that ends
        is saved in it under its session's id. Needs `agent_id`.
    max_parallel_tools: how many tools of one run may run at once.
    state_placement: where changes of the task state reach the model: "frozen" puts them behind the history, so that the
        prompt only grows and the provider's cache holds; "live" rewrites `turns[0]`, the literal layout.
    on_tool_suspend: answers a tool's `Suspend`: called with the `ToolSuspendEvent`, gives the answer, a value that JSON
        can hold. A coroutine function runs on the loop, any other function in a thread. What it raises becomes the
        error result of the call. The goal's time goes on meanwhile. None means that a suspended run parks.
    on_tool_error: what becomes of the other calls of a reply when one of them fails: "continue", they go on;
        "cancel_siblings", those that run are cancelled (a sync tool is fenced off), those that wait for their turn are
        not run, and each gets a result that says so; one that waits for an answer goes on waiting. Calls that were
        refused or unknown have not failed in this sense.
    on_permission_request: says whether a call may run that governance asks about: called with the
        `PermissionRequestEvent`, gives True, False, `Deny("why")` or `Approve(arguments)`; anything else, or raising,
        denies. Functions and the goal's time are as for `on_tool_suspend`. None means that a run that asks parks.
    governance: what calls may run, how often and with which arguments; may be changed and shared at any time. None
        means that every call may run.
    output_type: the form of the final answer: a pydantic model, a dataclass, a TypedDict, any other type that pydantic
        knows (`list[int]`, `Literal["yes", "no"]`), or a JSON schema as a dict. The answer is validated; one that does
        not fit goes back to the model, at most twice in a goal, then the run ends `error` with code `invalid_output`.
        `RunResult.output` and `DoneEvent.output` hold the value, for a schema what JSON decodes to. None means text.
    output_mode: how the model is asked for that form: `native`, by the field of its service; `tool`, it calls a tool
        with its answer; `prompted`, the schema stands in the system prompt; `auto`, whatever suits service and tools.
    signal_source: where signals come from while runs are active, a `SignalGateway` or anything with `next_signal`. None
        means that only `runner.send` and `interrupt` reach a run.
    durability: how far an append has come before anybody acts on it: `os`, handed to the operating system, so that it
        outlives this process; `disk`, flushed, so that it outlives the machine. Needs a session log that offers
        `with_durability`. None means what the log was built with.
    sub_agents: the sub-agents that the model may delegate to: True for any, a list of `AgentRunSpec` for those, or
        `SubAgents` with bounds of depth and number. None means none, unless there is a `sub_agent_harness`.
    sub_agent_harness: `SubAgentHarnessConfig(eval_provider, max_attempts=3)` has the work of each sub-agent judged,
        and done again until it is good enough. Alone it means sub_agents=True.
    summarizer: a model service that writes a summary of the turns that leave the prompt when it is compressed, beside
        what is kept of them word for word. It has a minute for it, and what it uses counts in usage and budgets. None
        means no such summary.

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
    on_permission_request: Callable[[PermissionRequestEvent], object] | None = None
    governance: Governance | None = None
    on_tool_error: Literal["continue", "cancel_siblings"] = "continue"
    output_type: object | None = None
    output_mode: OutputMode = "auto"
    durability: Literal["os", "disk"] | None = None
    sub_agents: bool | Sequence[AgentRunSpec] | SubAgents | None = None
    sub_agent_harness: TriesHarness | None = None
    skill_dir: str | os.PathLike[str] | None = None
    knowledge_source: KnowledgeSource | None = None
    dream_store: DreamStore | None = None
    signal_source: SignalSource | None = None
    summarizer: LLMProvider | None = None

    def __post_init__(self) -> None:
        _require_methods("provider", self.provider, "stream")
        if self.summarizer is not None:
            _require_methods("summarizer", self.summarizer, "stream")
        if self.session_log is not None:
            _require_methods("session_log", self.session_log, "acquire", "append", "read", "release")
        if self.execution_plane is not None:
            _require_methods("execution_plane", self.execution_plane, "specs", "validate", "execute")
        self._require_limits()
        _require_word("state_placement", self.state_placement, ("frozen", "live"))
        _require_word("output_mode", self.output_mode, MODES)
        _require_word("on_tool_error", self.on_tool_error, ("continue", "cancel_siblings"))
        _require_text("system_prompt", self.system_prompt)
        _require_texts("initial_memory", self.initial_memory)
        if self.agent_id is not None:
            _require_text("agent_id", self.agent_id)
        self._require_sources()
        _require_callback("on_tool_suspend", self.on_tool_suspend, "ToolSuspendEvent")
        _require_callback("on_permission_request", self.on_permission_request, "PermissionRequestEvent")
        if self.governance is not None:
            _require_governance(self.governance)
        if self.signal_source is not None:
            _require_methods("signal_source", self.signal_source, "next_signal")
        if self.durability is not None:
            _require_durable(self.durability, self.session_log)
        self.roster()
        if self.sub_agent_harness is not None:
            _require_methods("sub_agent_harness", self.sub_agent_harness, "trying", "require_payable")
            self.sub_agent_harness.require_payable(self.max_cost_usd)
        if self.form() is not None and self.output_mode == "native":
            require_native(self.provider)
        self.limits(self.admit({}))

    def _require_sources(self) -> None:
        if self.skill_dir is not None and not isinstance(self.skill_dir, str | os.PathLike):
            raise ConfigError(f'skill_dir must be the path of a folder, as in "./skills", not {self.skill_dir!r}')
        if self.knowledge_source is not None:
            _require_methods("knowledge_source", self.knowledge_source, "init", "retrieve")
        if self.dream_store is not None:
            _require_methods("dream_store", self.dream_store, *_OF_A_STORE)
            if not self.agent_id:
                raise ConfigError('dream_store needs agent_id, which says whose memory it is: give agent_id="my-agent"')

    def __copy__(self) -> RuntimeOptions:
        """The same objects in other options, as by `dataclasses.replace`."""
        return replace(self)

    def __deepcopy__(self, _memo: object) -> NoReturn:
        """Raises `ConfigError`: options hold keys, connections and locks."""
        raise ConfigError(_ONE_OF_A_KIND)

    def __reduce__(self) -> NoReturn:
        """Raises `ConfigError`, as `__deepcopy__` does."""
        raise ConfigError(_ONE_OF_A_KIND)

    def _require_limits(self) -> None:
        for name, value in (("max_turns", self.max_turns), ("max_parallel_tools", self.max_parallel_tools)):
            _require_positive(name, value)
        for name, limit in (
            ("max_tokens", self.max_tokens),
            ("timeout_ms", self.timeout_ms),
            ("max_total_tokens", self.max_total_tokens),
        ):
            if limit is not None:
                _require_positive(name, limit)

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

    def library(self) -> Library:
        """What runs can read beside their tools."""
        return Library(
            None if self.skill_dir is None else _registry(self.skill_dir),
            None if self.knowledge_source is None else _once(self.knowledge_source),
            self.dream_store,
            self.agent_id or "",
        )

    def form(self) -> Form | None:
        """The form that answers must have, None where any text will do."""
        if self.output_type is None:
            return None
        from deepstrike.output.form import form_of

        return form_of(self.output_type)

    def roster(self) -> SubAgents | None:
        """The sub-agents that the model may delegate to, None where there are none."""
        wanted = self.sub_agents
        return sub_agents_of(True if wanted is None and self.sub_agent_harness is not None else wanted)

    def policy(self) -> Policy:
        """What governance decides by at this moment; an empty policy, which allows every call, without one."""
        return Policy() if self.governance is None else self.governance.policy()

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

    def model(self, extensions: Mapping[str, object]) -> Model:
        """The model as the kernel sees it, with the life of its provider's cache by these extensions."""
        info = self.model_info()
        cache_ms = self.provider.cache_ms(extensions) if isinstance(self.provider, Provider) else info.cache_ms
        return Model(id=info.id, price=info.price, cache_ms=cache_ms)

    def _window(self, extensions: Mapping[str, object]) -> int:
        """The smaller of `max_tokens` and the window that the extensions ask the service for; else the model's own."""
        asked = self.provider.window(extensions) if isinstance(self.provider, Provider) else None
        given = [window for window in (self.max_tokens, asked) if window is not None]
        return min(given, default=self.model_info().window)

    def limits(self, extensions: Mapping[str, object]) -> Limits:
        """The limits as the kernel sees them, with the output reserve by these extensions."""
        info = self.model_info()
        window = self._window(extensions)
        return Limits(
            max_turns=self.max_turns,
            window=window,
            reserve=_reserve(extensions.get("max_output_tokens"), info.max_output, window),
            parallel=self.max_parallel_tools,
            max_total_tokens=self.max_total_tokens,
            max_cost=_micro_dollars(self.max_cost_usd, info),
            timeout_ms=self.timeout_ms,
        )


def _registry(skill_dir: str | os.PathLike[str]) -> SkillRegistry:
    from deepstrike.skills.registry import SkillRegistry

    return SkillRegistry(skill_dir)


def _once(source: KnowledgeSource) -> Once:
    from deepstrike.knowledge.once import Once

    return Once(source)


def _require_fields(extensions: object) -> None:
    if not isinstance(extensions, Mapping) or not all(isinstance(name, str) for name in extensions):
        raise ConfigError('extensions must be a dict of fields by name, as in extensions={"temperature": 0.1}')


def _require_methods(field: str, value: object, *methods: str) -> None:
    if isinstance(value, type):
        raise ConfigError(f"{field} must be an object, not a class: write {field}={value.__name__}(…)")
    missing = [method for method in methods if not callable(getattr(value, method, None))]
    if missing:
        raise ConfigError(f"{field} must have the method {missing[0]}(…); {type(value).__name__} has none")


def _require_callback(field: str, value: object, event: str) -> None:
    if value is not None and not callable(value):
        raise ConfigError(f"{field} must be a function of a {event}, or None")


def _require_governance(governance: object) -> None:
    from deepstrike.governance import Governance, PermissionManager

    if isinstance(governance, PermissionManager):
        raise ConfigError("governance takes a Governance; a PermissionManager takes part in one: Governance().use(…)")
    if not isinstance(governance, Governance):
        raise ConfigError(f"governance must be a Governance(…), or None, not {type(governance).__name__}")


def _require_durable(durability: str, log: object) -> None:
    if durability not in ("os", "disk"):
        raise ConfigError(f'durability must be "os", "disk" or None, not {durability!r}')
    if not isinstance(log, _Durable):
        kept = "sessions in memory" if log is None else type(log).__name__
        raise ConfigError(
            f"durability={durability!r} needs a session log on disk, and {kept} cannot promise it: give "
            "session_log=FileSessionLog(…) or SqliteSessionLog(…), or leave durability out"
        )


def _require_word(field: str, value: object, words: tuple[str, ...]) -> None:
    if value not in words:
        raise ConfigError(f"{field} must be one of {', '.join(map(repr, words))}, not {value!r}")


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
