"""`ModelRequest` → the bytes of a Gemini request.

What was encoded once is kept in `request.memo` and never looked at again: a request costs what is new in it, and the
contents of one request are a byte-exact beginning of the next one's. The generation settings stand behind the contents,
because the output limit among them may change from call to call; `memo.head` keeps both halves, parted by a NUL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from deepstrike.providers.dialects.gemini.thinking import thinking_config
from deepstrike.providers.dialects.gemini.turns import append_turns
from deepstrike.providers.dialects.json_text import canonical, canonical_text, quote
from deepstrike.providers.dialects.names import wire_name
from deepstrike.providers.extensions import merged
from deepstrike.providers.tables.gemini import family

if TYPE_CHECKING:
    from deepstrike.providers.base import ModelRequest
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
        append_turns(memo, request.turns[memo.turns :], asked)
        memo.turns = len(request.turns)
    start, _, settings = memo.head.partition(_PART)
    tail = [settings]
    if asked.limit is not None and b'"maxOutputTokens"' not in settings:
        tail.append(b'%b"maxOutputTokens":%d' % (b"" if settings.endswith(b"{") else b",", asked.limit))
    return b"".join((start, memo.body, b'],"generationConfig":', *tail, b"}}"))


def _head(asked: Asked) -> bytes:
    request = asked.request
    fields = dict(asked.fields)
    settings = _settings(asked, _table(fields.pop("thinking", None)), _table(fields.pop("generationConfig", None)))
    start = canonical(fields)[:-1]
    members = [start[1:]] if len(start) > 1 else []
    if texts := _system(asked):
        members.append(
            b'"systemInstruction":{"parts":[%b]}' % b",".join(b'{"text":%b}' % quote(text) for text in texts)
        )
    if request.tools:
        members.append(b'"tools":[{"functionDeclarations":[%b]}]' % b",".join(map(_tool, request.tools)))
    members.append(b'"contents":[')
    return b"{%b%b%b" % (b",".join(members), _PART, canonical(settings)[:-1])


def _settings(asked: Asked, wish: Mapping[str, object], given: Mapping[str, object]) -> Mapping[str, object]:
    request = asked.request
    settings: dict[str, object] = {}
    shown = request.extensions.get("expose_reasoning") is not False
    if config := thinking_config(wish, family(asked.info.id), shown=shown):
        settings["thinkingConfig"] = config
    if request.output is not None and _takes_schema(asked):
        settings["responseMimeType"] = "application/json"
        settings["responseJsonSchema"] = _parsed(request.output.schema)
    return merged(settings, given)


def _takes_schema(asked: Asked) -> bool:
    """Models before Gemini 3 refuse a wanted form beside function declarations."""
    return not asked.request.tools or family(asked.info.id).signed


def _system(asked: Asked) -> list[str]:
    request: ModelRequest = asked.request
    texts = [text for text in (request.system_stable, request.system_knowledge) if text]
    if request.output is not None and not _takes_schema(asked):
        texts.append(
            "Give your final answer as JSON only, without any other words, in the form of this schema: "
            f"{request.output.schema}"
        )
    return texts


def _tool(tool: ToolSpec) -> bytes:
    """`parametersJsonSchema` takes JSON Schema; `parameters` only a subset without references and alternatives."""
    return b'{"name":%b,"description":%b,"parametersJsonSchema":%b}' % (
        quote(wire_name(tool.name)),
        quote(tool.description),
        canonical_text(tool.parameters),
    )


def _parsed(schema: str) -> object:
    import msgspec

    return msgspec.json.decode(schema)


def _table(value: object) -> dict[str, object]:
    return {str(name): each for name, each in value.items()} if isinstance(value, Mapping) else {}
