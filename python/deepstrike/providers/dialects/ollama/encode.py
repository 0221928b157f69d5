"""`ModelRequest` → the bytes of an Ollama chat request.

What was encoded once is kept in `request.memo` and never looked at again: a request costs what is new in it, and the
messages of one request are a byte-exact beginning of the next one's. The options stand behind the messages, because
the output limit among them may change from call to call; `memo.head` keeps both halves, parted by a NUL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from deepstrike.providers.dialects.json_text import canonical, canonical_text, quote
from deepstrike.providers.dialects.names import wire_name
from deepstrike.providers.dialects.ollama.options import think, window
from deepstrike.providers.dialects.ollama.turns import append_turns

if TYPE_CHECKING:
    from deepstrike.providers.base import ModelRequest, OutputSchema
    from deepstrike.providers.dialects.base import Asked
    from deepstrike.wire.message import ToolSpec

_PART = b"\0"  # no JSON text holds one


def encode_request(asked: Asked) -> bytes:
    """The request body."""
    request = asked.request
    memo = request.memo
    if not memo.head:
        memo.head = _head(asked)
    if memo.turns < len(request.turns):
        append_turns(memo, request.turns[memo.turns :], asked.source)
        memo.turns = len(request.turns)
    start, _, options = memo.head.partition(_PART)
    limit = b"" if asked.limit is None or b'"num_predict"' in options else b',"num_predict":%d' % asked.limit
    comma = b"," if memo.body and not start.endswith(b"[") else b""
    return b"".join((start, comma, memo.body, b'],"options":', options, limit, b"}}"))


def _head(asked: Asked) -> bytes:
    request = asked.request
    fields = dict(asked.fields)
    wish, options = _table(fields.pop("thinking", None)), _table(fields.pop("options", None))
    plain: dict[str, object] = {"model": asked.info.id, "stream": True}
    if (thinking := think(wish, asked.info.id)) is not None:
        plain["think"] = thinking
    start = canonical({**plain, **fields})[:-1]
    if request.output is not None and not request.tools and "format" not in fields:
        start += b',"format":%b' % canonical_text(request.output.schema)
    tools = b',"tools":[%b]' % b",".join(map(_tool, request.tools)) if request.tools else b""
    end = canonical({**options, "num_ctx": window(asked)})[:-1]
    return b'%b%b,"messages":[%b%b%b' % (start, tools, _system(request), _PART, end)


def _system(request: ModelRequest) -> bytes:
    """One message: templates of many models render the first system message only."""
    texts = [request.system_stable, request.system_knowledge]
    if request.output is not None and request.tools:
        texts.append(_form(request.output))
    text = "\n\n".join(filter(None, texts))
    return b'{"role":"system","content":%b}' % quote(text) if text else b""


def _form(output: OutputSchema) -> str:
    return f"Give your final answer as JSON only, without any other words, in the form of this schema: {output.schema}"


def _tool(tool: ToolSpec) -> bytes:
    return b'{"type":"function","function":{"name":%b,"description":%b,"parameters":%b}}' % (
        quote(wire_name(tool.name)),
        quote(tool.description),
        canonical_text(tool.parameters),
    )


def _table(value: object) -> dict[str, object]:
    return {str(name): each for name, each in value.items()} if isinstance(value, Mapping) else {}
