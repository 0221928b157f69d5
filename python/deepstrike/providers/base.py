"""What a model service looks like to a run.

A provider of one's own needs one method:

    class Echo:
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            yield TextDelta("hello")
            yield Usage(input=3, output=1)
            yield Finish("stop")
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NoReturn, Protocol

import msgspec

from deepstrike.errors import ConfigError
from deepstrike.stream import RetryEvent, TextDelta, ThinkingDelta
from deepstrike.wire.message import Notice as Notice
from deepstrike.wire.message import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from deepstrike.wire.message import ToolSpec, Turn
    from deepstrike.wire.policy import Price


class ToolCall(msgspec.Struct, frozen=True):
    """A whole tool call; `arguments_text` is JSON as the model wrote it. `id` may be empty or repeat."""

    id: str
    name: str
    arguments_text: str


class Artefact(msgspec.Struct, frozen=True):
    """Something that must be replayed byte-exact to the same dialect; `text` is JSON text."""

    dialect: str
    text: str


class Finish(msgspec.Struct, frozen=True):
    """Why the model stopped: `stop`, `tool_calls`, `length`, `content_filter` or `other`.

    Under `length` the last tool call counts as cut and is never run.
    """

    reason: str


class Source(msgspec.Struct, frozen=True):
    """Who answers, where that is not the provider's own `dialect` and `info`: yielded before any output."""

    dialect: str
    model: str
    price: Price | None = None


ModelEvent = TextDelta | ThinkingDelta | ToolCall | Artefact | Usage | Finish | RetryEvent | Notice | Source


class OutputSchema(msgspec.Struct, frozen=True):
    """The form that the answer must have: a JSON schema as text, and a name for it of letters, digits, `_` and `-`."""

    name: str
    schema: str


class Memo:
    """What an encoder keeps between the requests of one epoch, so that a request costs O(new bytes).

    A run owns one for each provider and epoch; it is empty at first. `turns` counts the turns whose encoding is in
    `body`; `head` is whatever the dialect encoded of slots 1 and 2 and the tools. `marks` are offsets into `body` that
    the dialect wants to find again (the ends of its messages, for cache breakpoints). `notices` are what the encoder
    has to tell of these turns (an artefact left out, and why); whoever sends the request takes them out. `strict` says
    that tools stand in `head` in strict mode.
    """

    __slots__ = ("body", "head", "marks", "notices", "strict", "turns")

    def __init__(self) -> None:
        self.turns = 0
        self.head = b""
        self.body = bytearray()
        self.marks: list[int] = []
        self.notices: list[Notice] = []
        self.strict = False


class ModelRequest(msgspec.Struct, frozen=True, eq=False):
    """One model call: the four slots, the tools, the sampling and provider fields of this run.

    `turns[0]` is the task state, the rest is history; within an epoch the sequence only grows. `max_output` is the
    output limit in tokens, None where none must be sent; `reserve` is the part of `window` kept for the answer, which
    services that demand a limit get instead. `output` is the form that the final answer must have. `epoch` changes when
    the prefix was rewritten. `cache_key` is the same for all requests of a session: services that ask for one find the
    session's prompts in their caches by it.
    """

    system_stable: str
    system_knowledge: str
    turns: Sequence[Turn]
    tools: tuple[ToolSpec, ...]
    extensions: Mapping[str, object]
    max_output: int | None = None
    epoch: int = 0
    memo: Memo = msgspec.field(default_factory=Memo)
    output: OutputSchema | None = None
    window: int = 32_000
    reserve: int = 8_000
    cache_key: str = ""


class LLMProvider(Protocol):
    """The protocol for a model service: one method.

    `stream` is an async generator. It raises a `ProviderError` when the call fails; ending without `Finish` counts as
    `Truncated`. It is closed or cancelled when the run stops and must then let go of its connection.
    """

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask the model and yield its answer as it comes."""


CACHE_MS: Final = 300_000
"""How long a prompt stays in the caches of services that do not say."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What the model table knows: window and output limit in tokens, price, what the model refuses.

    `refuses` names extensions that the service answers with an error, or passes over; they are dropped with a warning.
    `defaults` are extensions sent to this model unless others are given. `traits` are words that its dialect knows;
    each dialect says which. `cache_ms` is how long its service keeps a prompt in its cache that is not asked again,
    in milliseconds.
    """

    id: str
    window: int = 32_000
    max_output: int | None = None
    price: Price | None = None
    reasoning: bool = False
    refuses: frozenset[str] = frozenset()
    defaults: Mapping[str, object] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    cache_ms: int = CACHE_MS


class Provider(ABC):
    """Base of the providers that know their model: `info` and `dialect` fill in what options leave open.

    Both must be set, on the class or when it is built; one that is not raises `ConfigError` where it is asked for.
    `structured` says that `ModelRequest.output` reaches the service, also beside tools; to any other provider the form
    of an answer is given in another way.
    """

    dialect: str
    info: ModelInfo
    structured: bool = False

    @abstractmethod
    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """See `LLMProvider.stream`."""

    def admit(self, extensions: Mapping[str, object]) -> Mapping[str, object]:
        """The extensions that may be sent; one that the model refuses is dropped with a warning.

        Raises `ConfigError` for one that the provider does not know.
        """
        return extensions

    def sends_form(self) -> bool:
        """Whether `ModelRequest.output` goes out at all, be it taken or not."""
        return True

    def window(self, extensions: Mapping[str, object]) -> int | None:
        """The context window in tokens that these extensions ask the service for; None where they do not say."""
        return None

    def cache_ms(self, extensions: Mapping[str, object]) -> int:
        """How long its cache keeps a prompt that is not asked again, by these extensions, in milliseconds; 0 for none.

        A prompt that has left the cache is compressed for free.
        """
        return self.info.cache_ms

    if not TYPE_CHECKING:  # else every wrong name would pass the type check

        def __getattr__(self, name: str) -> NoReturn:
            """Only asked for what was never set."""
            owner = type(self).__name__
            if name not in ("dialect", "info"):
                raise AttributeError(f"{owner!r} object has no attribute {name!r}")
            example = "ModelInfo('my-model')" if name == "info" else "'my-service'"
            raise ConfigError(f"{owner} is a Provider and must set {name}, such as {name} = {example}")

    async def aclose(self) -> None:
        """Close what this provider opened on the running loop. It may be used again afterwards."""
        return
