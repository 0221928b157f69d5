"""Content, replies and rendered blocks: what the prompt is made of.

Every struct here has a twin in `crates/kernel/src/wire/message.rs`; `contract/` holds an example of each
that both sides decode and encode to the same bytes. Optional fields are left out when they have their default.
"""

from __future__ import annotations

import msgspec


class Wire(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """Base of everything that crosses the boundary. Unknown fields are refused.

    Frozen and made of texts and numbers, so it cannot be part of a cycle and the garbage collector need not look at it.
    """


class Text(Wire, frozen=True, tag="text"):
    """Plain text."""

    text: str


class Image(Wire, frozen=True, tag="image"):
    """An image: `data` (base64) with its `media_type`, or a `url`."""

    media_type: str = ""
    data: str = ""
    url: str = ""


class File(Wire, frozen=True, tag="file"):
    """A document: `data` (base64) with its `media_type` and a `name`."""

    media_type: str
    data: str
    name: str = ""


Part = Text | Image | File


class Ok(Wire, frozen=True, tag="ok"):
    """Validation passed. `text` is the validated JSON; None means the text as it was given."""

    text: str | None = None


class Err(Wire, frozen=True, tag="err"):
    """Validation failed. `kind` is an error kind (`unknown_tool`, `invalid_arguments`, `invalid_output`)."""

    kind: str
    message: str


Validated = Ok | Err


class Thinking(Wire, frozen=True, tag="thinking"):
    """Visible reasoning of the model."""

    text: str


class Opaque(Wire, frozen=True, tag="opaque"):
    """A provider's artefact that must be replayed byte-exact. `text` is JSON text of that dialect."""

    dialect: str
    text: str


class CallPart(Wire, frozen=True, tag="call"):
    """A tool call as the host hands it in: the model's own argument text and its validation."""

    wire_id: str
    name: str
    args_text: str
    validated: Validated


ReplyPart = Text | Thinking | CallPart | Opaque


class RecordedCall(Wire, frozen=True, tag="call"):
    """A tool call as it is recorded. `id` is unique in the session; `wire_id` is there only if it differs."""

    id: str
    name: str
    args_text: str
    validated: Validated
    wire_id: str | None = None


RecordedPart = Text | Thinking | RecordedCall | Opaque


class Usage(Wire, frozen=True):
    """Tokens of one model call. `input` includes `cached`, `output` includes `reasoning`."""

    input: int
    output: int
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0


class Notice(Wire, frozen=True):
    """Something a provider has to tell that is no output: a stable `code` and a text for people."""

    code: str
    message: str


class ToolSpec(Wire, frozen=True):
    """A tool as the model sees it. `parameters` is JSON schema text; `effect` rules what a crash means.

    `agent`: calling it puts a sub-agent to work.
    """

    name: str
    description: str
    parameters: str
    effect: str = "once"
    agent: bool = False


class BlobRef(Wire, frozen=True):
    """The full result, kept outside the context: reference, size in bytes, size in tokens."""

    ref: str
    bytes: int
    tokens: int


class ToolResult(Wire, frozen=True):
    """What a tool call came to. `error_kind` is empty for a good result."""

    parts: tuple[Part, ...]
    error_kind: str = ""
    blob: BlobRef | None = None


# Rendered blocks, as `kernel.blocks(epoch, from)` gives them. Block 0 is always the head.


class CallBlock(Wire, frozen=True, tag="call"):
    """A call inside an assistant block. `args_text` is always a valid JSON object."""

    id: str
    name: str
    args_text: str


AssistantPart = Text | Thinking | CallBlock | Opaque


class HeadBlock(Wire, frozen=True, tag="head"):
    """Slots 1 and 2 and the tools, sorted by name; fixed for the epoch."""

    system_stable: str
    system_knowledge: str
    tools: tuple[ToolSpec, ...]


class UserBlock(Wire, frozen=True, tag="user"):
    """User-side content: `turns[0]`, a later goal, or a delta."""

    parts: tuple[Part, ...]


class AssistantBlock(Wire, frozen=True, tag="assistant"):
    """What the model said, in wire order.

    `rebased` where what stood before it was rewritten since: artefacts that are bound to it hold no longer.
    """

    parts: tuple[AssistantPart, ...]
    dialect: str = ""
    model: str = ""
    rebased: bool = False


class ResultBlock(Wire, frozen=True, tag="result"):
    """One tool result. Results stand directly behind their assistant block, in call order."""

    call_id: str
    name: str
    parts: tuple[Part, ...]
    is_error: bool = False


Block = HeadBlock | UserBlock | AssistantBlock | ResultBlock
Turn = UserBlock | AssistantBlock | ResultBlock
