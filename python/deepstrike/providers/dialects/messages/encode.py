"""`ModelRequest` → the bytes of a messages request.

What was encoded once is kept in `request.memo` and never looked at again: a request costs what is new in it. Cache
breakpoints are spliced in when the body is written and never kept, so that without them the messages of one request are
a byte-exact beginning of the next one's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.providers.dialects.json_text import canonical, canonical_text, quote
from deepstrike.providers.dialects.messages.content import (
    assistant_content,
    holds_foreign_thinking,
    result_content,
    user_content,
)
from deepstrike.providers.dialects.messages.schema import accepted_schema
from deepstrike.providers.dialects.messages.strict import bounded_schemas
from deepstrike.providers.dialects.messages.thinking import thinking_field
from deepstrike.providers.dialects.names import wire_name
from deepstrike.providers.dialects.places import no_places, note_end, note_reply, spliced
from deepstrike.wire.message import AssistantBlock, CallBlock, Notice, Opaque, ResultBlock, UserBlock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepstrike.providers.base import Memo, ModelRequest
    from deepstrike.providers.dialects.base import Asked
    from deepstrike.wire.message import ToolSpec, Turn

# Behind the places in `memo.marks`: how the tool loop in progress began.
_LOOP = 3
# A loop of tool calls that began without thinking of our own is refused where thinking goes by a budget.
_NONE, _SIGNED, _UNSIGNED = 0, 1, 2


def encode_request(asked: Asked, *, cache: bool, structured: bool) -> bytes:
    """The request body. `cache` sets breakpoints, `structured` sends the form that the answer must have."""
    request, memo = asked.request, asked.request.memo
    mark = _mark(request.extensions) if cache else b""
    if not memo.head:
        memo.head = _head(asked, mark, structured)
        memo.marks = [*no_places(), _NONE]
    turns = request.turns
    if memo.turns < len(turns):
        behind_result = memo.turns > 0 and isinstance(turns[memo.turns - 1], ResultBlock)
        _append(memo, turns[memo.turns :] if memo.turns else turns, asked, behind_result=behind_result)
        memo.turns = len(turns)
    return b"".join((memo.head, *spliced(memo.body, memo.marks, mark), _tail(asked)))


def _mark(extensions: Mapping[str, object]) -> bytes:
    """What makes a block a breakpoint; nothing where caching is off or the caller asks for the automatic one."""
    ttl, extra = extensions.get("cache_ttl"), extensions.get("extra_body")
    if ttl == "off" or (isinstance(extra, dict) and "cache_control" in extra):
        return b""
    return b',"cache_control":{"type":"ephemeral"%b}' % (b',"ttl":"1h"' if ttl == "1h" else b"")


def _head(asked: Asked, mark: bytes, structured: bool) -> bytes:
    """Everything up to the first turn: fields, tools, system texts, the last of which is a breakpoint."""
    request = asked.request
    plain: dict[str, object] = {"model": asked.info.id, "stream": True}
    start = canonical({**plain, **_fields(asked, structured)})[:-1]
    texts = [text for text in (request.system_stable, request.system_knowledge) if text.strip()]
    systems = [b'{"type":"text","text":%b' % quote(text) for text in texts]
    strict = bounded_schemas(request, structured=structured)
    tools = [_tool(tool, strict.get(tool.name)) for tool in request.tools]
    last = systems or tools
    if last:
        last[-1] += mark
    return b"".join((start, _list(b"tools", tools), _list(b"system", systems), b',"messages":['))


def _list(name: bytes, unclosed: Sequence[bytes]) -> bytes:
    return b',"%b":[%b}]' % (name, b"},".join(unclosed)) if unclosed else b""


def _tool(tool: ToolSpec, strict: bytes | None) -> bytes:
    return b'{"name":%b,"description":%b,"input_schema":%b%b' % (
        quote(wire_name(tool.name)),
        quote(tool.description),
        canonical_text(tool.parameters) if strict is None else strict,
        b"" if strict is None else b',"strict":true',
    )


def _fields(asked: Asked, structured: bool) -> dict[str, object]:
    request, fields = asked.request, dict(asked.fields)
    fields.pop("max_tokens", None)
    choice = fields.pop("tool_choice", None)
    if isinstance(choice, dict) and request.tools:
        fields["tool_choice"] = _choice(choice)
    if structured and request.output is not None:
        given = fields.get("output_config")
        form = {"type": "json_schema", "schema": accepted_schema(request.output.schema)}
        fields["output_config"] = {**(given if isinstance(given, dict) else {}), "format": form}
    return fields


def _choice(choice: Mapping[str, object]) -> dict[str, object]:
    """`disable_parallel_tool_use` alone needs a type to stand in, and has no meaning beside `none`."""
    whole = {"type": "auto", **choice}
    if whole["type"] == "none":
        return {"type": "none"}
    return whole


def _append(memo: Memo, turns: Sequence[Turn], asked: Asked, *, behind_result: bool) -> None:
    """Add the messages of `turns`. Results of one reply come together, so a group never spans two requests."""
    results: list[bytes] = []
    foreign: set[str] = set()
    for turn in turns:
        if isinstance(turn, ResultBlock):
            results.append(result_content(turn))
            behind_result = True
            continue
        if results:
            _message(memo, b"user", results)
            results = []
        if isinstance(turn, UserBlock):
            _message(memo, b"user", user_content(turn.parts))
            if not behind_result:  # what a user says behind results belongs to their loop
                memo.marks[_LOOP] = _NONE
        else:
            _assistant(memo, turn, asked, foreign)
        behind_result = False
    if results:
        _message(memo, b"user", results)
    for dialect in sorted(foreign):
        told = f"thinking of earlier answers by {dialect or 'another provider'} is not sent: only it can read it"
        memo.notices.append(Notice("artefact_dropped", told))


def _assistant(memo: Memo, block: AssistantBlock, asked: Asked, foreign: set[str]) -> None:
    source, bound = asked.source, "prefix_bound" in asked.info.traits
    if holds_foreign_thinking(block, source):
        foreign.add(block.dialect)
    content = assistant_content(block, source, prefix_bound=bound)
    note_reply(memo.marks)
    if not content:
        return
    _message(memo, b"assistant", content)
    if memo.marks[_LOOP] == _NONE and any(isinstance(part, CallBlock) for part in block.parts):
        signed = block.dialect == source and any(isinstance(part, Opaque) for part in block.parts)
        memo.marks[_LOOP] = _SIGNED if signed else _UNSIGNED


def _message(memo: Memo, role: bytes, content: Sequence[bytes]) -> None:
    body = memo.body
    body += b'%b{"role":"%b","content":[%b' % (b"," if body else b"", role, b",".join(content))
    if role == b"user":
        note_end(memo.marks, len(body) - 1)
    body += b"]}"


def _tail(asked: Asked) -> bytes:
    """What may change from call to call, behind the messages so that it costs nothing in front of them."""
    given = {name: value for name, value in asked.request.extensions.items() if name not in asked.info.refuses}
    extra = given.get("extra_body")
    own = extra if isinstance(extra, dict) else {}
    limit = own.get("max_tokens")
    max_tokens = limit if isinstance(limit, int) else _max_tokens(asked)
    end = b'],"max_tokens":%d' % max_tokens
    if "thinking" in own:
        return end + b"}"
    unsigned = asked.request.memo.marks[_LOOP] == _UNSIGNED
    thinking = thinking_field(given, asked.info, max_tokens, budget_allowed=not unsigned)
    return end + (b"}" if thinking is None else b',"thinking":%b}' % canonical(thinking))


def _max_tokens(asked: Asked) -> int:
    """The service demands a limit: that of the caller, else the reserve of the window, and never above the model's."""
    request: ModelRequest = asked.request
    wanted = request.reserve if asked.limit is None else asked.limit
    return max(1, wanted if asked.info.max_output is None else min(wanted, asked.info.max_output))
