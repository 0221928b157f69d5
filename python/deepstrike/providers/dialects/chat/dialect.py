"""The chat completions dialect: what services of this wire differ in, and the way to its codec."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from deepstrike.providers.dialects.strict import USUAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.providers.dialects.base import Asked, Decoder, Reader
    from deepstrike.providers.dialects.strict import StrictRules

Turns = Literal["none", "tools", "all"]
"""Which assistant messages: none, those with tool calls, all."""

NO_TOOLS = "no_tools"
NO_IMAGES = "no_images"
FORGETS_REASONING = "forgets_reasoning"
TAKES_REQUIRED = "takes_required"
"""Traits of models in this dialect: no tools are offered to it; it takes no images; it refuses its own reasoning; it
can be made to call some tool although it thinks."""


@dataclass(frozen=True, slots=True)
class Replay:
    """How a service wants the reasoning of earlier replies back.

    `name` is the field of the assistant message that takes it as text ("" for none), `turns` the messages that get it.
    In `demanded` messages the field stands also without any reasoning, as an empty text. With `details` the service's
    `reasoning_details` are kept as an artefact and go back instead of the text; with `inline` the text goes back in
    `<think>` tags before the answer. `asked_by` names the extension without which nothing goes back. `same_model` says
    that only the model that wrote it can read it.
    """

    name: str = ""
    turns: Turns = "none"
    demanded: Turns = "none"
    details: bool = False
    inline: bool = False
    asked_by: str = ""
    same_model: bool = False


@dataclass(frozen=True, slots=True)
class IdForm:
    """The form of a tool call's id that a service takes.

    `fits` is a pattern for the whole id. One that does not fit is `made` anew, of the tool's `{name}` and a `{hash}` of
    `length` of these `signs`. With `kept` an id goes back as it came to a server elsewhere that made it: a gateway
    may have put something into it.
    """

    fits: str
    made: str
    signs: str
    length: int = 9
    kept: bool = False


NEVER = Replay()


@dataclass(frozen=True, slots=True)
class ChatDialect:
    """Chat completions.

    `limit_field` is the service's name for the output limit and `reasoning_limit_field` the one that reasoning models
    want. `reasoning_in_output` says whether its output count includes the reasoning. `usage_asked` says that token
    counts must be asked for. `always` are fields sent unless the user gives them. `empty_content` says that the content
    of a message with calls only is an empty text, not null. `images` and `files` say what user messages may hold. With
    `forced_calls` off a model that thinks may not be made to call a tool (`tool_choice`). `structured` says that the
    service takes the schema of the answer; to one that does not, none is sent. With `split_think` the service may write
    reasoning in `<think>` tags at the start of the text. `breakpoint` is what a part of a message gets to be a cache
    breakpoint, a comma and a JSON field, for models that cache by marked places (`places`). `ids` is the form of tool
    call ids, None for any. `strict` are the rules of tools in strict mode.
    """

    limit_field: str = "max_tokens"
    reasoning_limit_field: str = "max_completion_tokens"
    reasoning_in_output: bool = True
    usage_asked: bool = True
    always: Mapping[str, object] = field(default_factory=dict)
    empty_content: bool = False
    images: bool = True
    files: bool = True
    forced_calls: bool = True
    structured: bool = True
    replay: Replay = NEVER
    split_think: bool = False
    breakpoint: bytes = b""
    ids: IdForm | None = None
    strict: StrictRules = USUAL
    content_type: str = "text/event-stream"

    def path(self, model: str) -> str:
        """The same for every model."""
        return "/chat/completions"

    def encode(self, asked: Asked) -> bytes:
        """See `Dialect.encode`."""
        from deepstrike.providers.dialects.chat.encode import encode_request

        return encode_request(asked, self)

    def reader(self) -> Reader:
        """Server-sent events."""
        from deepstrike.providers.dialects.sse import SseReader

        return SseReader()

    def decoder(self, asked: Asked) -> Decoder:
        """See `Dialect.decoder`."""
        from deepstrike.providers.dialects.chat.decode import ChatDecoder
        from deepstrike.providers.dialects.names import names_back

        extensions = asked.request.extensions
        split = extensions.get("split_think")
        return ChatDecoder(
            names_back(asked.request.tools),
            asked.faults,
            reasoning_in_output=self.reasoning_in_output,
            expose_reasoning=extensions.get("expose_reasoning") is not False,
            split_think=split if isinstance(split, bool) else self.split_think,
            replay=self.replay,
            source=asked.source,
        )

    def replay_for(self, asked: Asked) -> Replay:
        """How reasoning goes back in this call."""
        replay = self.replay
        wanted = not replay.asked_by or asked.request.extensions.get(replay.asked_by) is True
        return replay if wanted and FORGETS_REASONING not in asked.info.traits else NEVER
