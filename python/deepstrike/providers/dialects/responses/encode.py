"""`ModelRequest` → the bytes of a Responses request.

What was encoded once is kept in `request.memo` and never looked at again: a request costs what is new in it, and the
input items of one request are a byte-exact beginning of the next one's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from deepstrike.providers.dialects.json_text import canonical, canonical_text, quote
from deepstrike.providers.dialects.names import wire_name
from deepstrike.providers.dialects.places import are_marked, no_places, note_end, note_reply, spliced
from deepstrike.providers.dialects.responses.replay import Origin, assistant_items, wire_id
from deepstrike.providers.dialects.strict_form import sent_schema
from deepstrike.providers.dialects.strict_tools import strict_schemas
from deepstrike.providers.extensions import merged
from deepstrike.wire.message import Image, ResultBlock, Text, UserBlock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.providers.base import Memo, ModelRequest, OutputSchema
    from deepstrike.providers.dialects.base import Asked
    from deepstrike.wire.message import File, Part, ToolSpec, Turn

_MARK: Final = b',"prompt_cache_breakpoint":{"mode":"explicit"}'
_TOOL_FIELDS: Final = ("parallel_tool_calls", "tool_choice")


def encode_request(asked: Asked, limit: int | None) -> bytes:
    """The request body. `asked.fields` are the same on every call with one memo."""
    memo, turns, marked = asked.request.memo, asked.request.turns, are_marked(asked)
    if not memo.head:
        memo.head = _head(asked, marked=marked)
    if memo.turns < len(turns):
        origin = Origin(asked.source, asked.info.id)
        append_turns(memo, turns[memo.turns :] if memo.turns else turns, origin, marked=marked)
    start = memo.head + b"," if memo.body and memo.head[-1:] != b"[" else memo.head
    tail = b"]}" if limit is None else b'],"max_output_tokens":%d}' % limit
    return b"".join((start, *spliced(memo.body, memo.marks, _MARK if marked else b""), tail))


def append_turns(memo: Memo, turns: Sequence[Turn], origin: Origin | None, *, marked: bool) -> None:
    """Add the items of `turns`. Reasoning and ids go back to their `origin` only; None: to nobody.

    Where places are `marked`, the user's side is lists of parts: a text alone cannot carry a mark.
    """
    if not memo.turns:
        memo.marks = no_places()
    for turn in turns:
        if isinstance(turn, UserBlock):
            _add(memo, b'{"role":"user","content":%b' % _content(turn.parts, listed=marked), markable=marked)
        elif isinstance(turn, ResultBlock):
            _add(memo, _result(turn, listed=marked), markable=marked)
        else:
            note_reply(memo.marks)
            items, notice = assistant_items(turn, origin)
            memo.body += b"".join(b",%b" % item if at or memo.body else item for at, item in enumerate(items))
            if notice is not None:
                memo.notices.append(notice)
    memo.turns += len(turns)


def _add(memo: Memo, unclosed: bytes, *, markable: bool) -> None:
    """An item of the user's side; a mark stands inside the last part of its content."""
    memo.body += b",%b" % unclosed if memo.body else unclosed
    if markable:
        note_end(memo.marks, len(memo.body) - len(b"}]"))
    memo.body += b"}"


def _head(asked: Asked, *, marked: bool) -> bytes:
    """Everything up to the first turn: fields, tools, slots 1 and 2."""
    request = asked.request
    plain: dict[str, object] = {"model": asked.info.id, "stream": True, "store": False}
    if asked.info.reasoning:  # models that do not reason refuse it
        plain["include"] = ["reasoning.encrypted_content"]
    fields = {**plain, **asked.fields}
    if request.output is not None:
        fields = merged(fields, {"text": {"format": _form(request.output, request.memo)}})
    if not request.tools:  # the service refuses them then
        fields = {name: value for name, value in fields.items() if name not in _TOOL_FIELDS}
    strict = strict_schemas(request)
    tools = b",".join(_tool(tool, strict.get(tool.name)) for tool in request.tools)
    return b"".join(
        (
            canonical(fields)[:-1],
            b',"tools":[%b]' % tools if tools else b"",
            _slots(request, marked=marked),
        )
    )


def _slots(request: ModelRequest, *, marked: bool) -> bytes:
    """Slots 1 and 2 and the beginning of the input. `instructions` cannot be marked, a developer message can."""
    slots = (request.system_stable, request.system_knowledge)
    if not marked:
        start = b',"instructions":%b' % quote(slots[0]) if slots[0] else b""
        return b'%b,"input":[%b' % (start, b"".join(map(_developer, filter(None, slots[1:]))))
    texts = [text for text in slots if text]
    return b',"input":[%b' % b",".join([*map(_developer, texts[:-1]), *map(_marked, texts[-1:])])


def _developer(text: str) -> bytes:
    return b'{"role":"developer","content":%b}' % quote(text)


def _marked(text: str) -> bytes:
    part = b'{"type":"input_text","text":%b%b}' % (quote(text), _MARK)
    return b'{"role":"developer","content":[%b]}' % part


def _form(output: OutputSchema, memo: Memo) -> dict[str, object]:
    """`text.format`: in strict mode where the schema can be made to fit it, else a notice says why not."""
    schema, strict = sent_schema(output, memo)
    return {"type": "json_schema", "name": output.name, "schema": msgspec.Raw(schema), "strict": strict}


def _tool(tool: ToolSpec, strict: bytes | None) -> bytes:
    """The service's default is strict, so `strict` always stands there; true only for a schema that can be made fit."""
    return b'{"type":"function","name":%b,"description":%b,"parameters":%b,"strict":%b}' % (
        quote(wire_name(tool.name)),
        quote(tool.description),
        canonical_text(tool.parameters) if strict is None else strict,
        b"false" if strict is None else b"true",
    )


def _result(block: ResultBlock, *, listed: bool) -> bytes:
    return b'{"type":"function_call_output","call_id":%b,"output":%b' % (
        quote(wire_id(block.call_id)),
        _content(block.parts, listed=listed),
    )


def _content(parts: Sequence[Part], *, listed: bool) -> bytes:
    """A list of parts if `listed`; else a text where there is nothing else."""
    texts = [part.text for part in parts if isinstance(part, Text)]
    if len(texts) == len(parts) and not listed:
        return quote("\n".join(texts))
    return b"[%b]" % b",".join(map(_part, parts or (Text(""),)))


def _part(part: Part) -> bytes:
    if isinstance(part, Text):
        return b'{"type":"input_text","text":%b}' % quote(part.text)
    if isinstance(part, Image):
        return b'{"type":"input_image","image_url":%b}' % quote(part.url or _data_url(part))
    name = quote(part.name or "file")
    return b'{"type":"input_file","filename":%b,"file_data":%b}' % (name, quote(_data_url(part)))


def _data_url(part: Image | File) -> str:
    return f"data:{part.media_type};base64,{part.data}"
