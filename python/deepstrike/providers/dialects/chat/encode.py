"""`ModelRequest` → the bytes of a chat completion request.

What was encoded once is kept in `request.memo` and never looked at again: a request costs what is new in it, and the
messages of one request are a byte-exact beginning of the next one's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from deepstrike.providers.dialects.chat.dialect import NO_IMAGES
from deepstrike.providers.dialects.chat.ids import wire_id
from deepstrike.providers.dialects.chat.parts import Carries, readable, result_text, text_part, user_message
from deepstrike.providers.dialects.chat.reasoning import Reasoning
from deepstrike.providers.dialects.chat.schema import response_format
from deepstrike.providers.dialects.chat.tools import tools_part, without_refused
from deepstrike.providers.dialects.json_text import canonical, quote
from deepstrike.providers.dialects.names import wire_name
from deepstrike.providers.dialects.places import are_marked, no_places, note_end, note_reply, spliced
from deepstrike.wire.message import AssistantBlock, CallBlock, Notice, ResultBlock, Text, UserBlock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.providers.dialects.base import Asked
    from deepstrike.providers.dialects.chat.dialect import ChatDialect, IdForm
    from deepstrike.wire.message import Part, Turn

# How content of one part ends.
_CLOSING: Final = len(b"}]")


def encode_request(asked: Asked, dialect: ChatDialect) -> bytes:
    """The request body. `asked.fields` stand in it as they are, the same on every call with one memo."""
    request = asked.request
    memo = request.memo
    mark = dialect.breakpoint if are_marked(asked) else b""
    if not memo.head:
        memo.head = _head(asked, dialect, mark)
        memo.marks = no_places()
    turns = request.turns
    if memo.turns < len(turns):
        _append(asked, dialect, turns[memo.turns :] if memo.turns else turns, marked=bool(mark))
        memo.turns = len(turns)
    if asked.limit is None:
        tail = b"]}"
    else:
        reasons = asked.own_address or asked.info.reasoning
        name = dialect.reasoning_limit_field if reasons else dialect.limit_field
        tail = b"],%b:%d}" % (quote(name), asked.limit)
    return b"".join((memo.head, *spliced(memo.body, memo.marks, mark), tail))


def _head(asked: Asked, dialect: ChatDialect, mark: bytes) -> bytes:
    """Everything up to the first turn: fields, tools, system messages, the last of which is a breakpoint."""
    request = asked.request
    fields: dict[str, object] = {"model": asked.info.id, "stream": True}
    if dialect.usage_asked:
        fields["stream_options"] = {"include_usage": True}
    if request.output is not None and dialect.structured:
        fields["response_format"] = response_format(request.output, request.memo)
    fields.update({**dialect.always, **asked.fields})
    tools = tools_part(asked, dialect)
    start = canonical(without_refused(fields, asked, dialect, tools=bool(tools)))[:-1]
    systems = [text for text in (request.system_stable, request.system_knowledge) if text]
    contents = [text_part(text) if mark else quote(text) for text in systems]
    if mark and contents:
        contents[-1] = contents[-1][:-_CLOSING] + mark + contents[-1][-_CLOSING:]
    messages = b",".join(b'{"role":"system","content":%b}' % content for content in contents)
    return b'%b%b,"messages":[%b' % (start, tools, messages + b"," if messages and request.turns else messages)


def _append(asked: Asked, dialect: ChatDialect, turns: Sequence[Turn], *, marked: bool) -> None:
    """Add the messages of `turns` to the memo, and what is to be told of them."""
    memo = asked.request.memo
    writer = _Writer(asked, dialect, listed=marked)
    for message in writer.messages(turns):
        if message.is_reply:
            note_reply(memo.marks)
        if message.json:
            memo.body += b",%b" % message.json if memo.body else message.json
            if marked and not message.is_reply:
                note_end(memo.marks, len(memo.body) - len(b"}]}"))
    memo.notices += writer.notices()


class _Message(NamedTuple):
    """A message; empty for a reply of which nothing can be sent."""

    json: bytes
    is_reply: bool = False


class _Writer:
    """Turns → messages. Results of one reply always come together, so a group never spans two requests."""

    def __init__(self, asked: Asked, dialect: ChatDialect, *, listed: bool) -> None:
        self._dialect = dialect
        self._listed = listed
        self._model = asked.info.id
        self._carries = Carries(dialect.images and NO_IMAGES not in asked.info.traits, dialect.files)
        self._ids: dict[str, str] = {}
        # Whose ids go back as they came.
        self._keeps = asked.source if dialect.ids and dialect.ids.kept and not asked.own_address else None
        self._reasoning = Reasoning(asked, dialect.replay_for(asked))
        self._left_out = 0

    def messages(self, turns: Sequence[Turn]) -> list[_Message]:
        messages: list[_Message] = []
        attached: list[Part] = []
        for turn in turns:
            if isinstance(turn, ResultBlock):
                messages.append(_Message(self._result(turn)))
                attached.extend(part for part in self._readable(turn.parts) if not isinstance(part, Text))
                continue
            if attached:
                messages.append(self._user(attached))
                attached = []
            if isinstance(turn, UserBlock):
                self._count(turn.parts)
                messages.append(self._user(self._readable(turn.parts)))
            else:
                messages.append(_Message(self._assistant(turn), is_reply=True))
        if attached:
            messages.append(self._user(attached))
        return messages

    def notices(self) -> list[Notice]:
        """What was left out of these turns."""
        found = self._reasoning.notices()
        if self._left_out:
            found.append(
                Notice(
                    "attachment_dropped", f"{self._left_out} images or files were not sent: {self._model} takes none"
                )
            )
        return found

    def _user(self, parts: Sequence[Part]) -> _Message:
        return _Message(user_message(parts, listed=self._listed))

    def _readable(self, parts: Sequence[Part]) -> list[Part]:
        return readable(parts, self._carries)

    def _count(self, parts: Sequence[Part]) -> None:
        self._left_out += sum(not self._carries.takes(part) for part in parts)

    def _result(self, block: ResultBlock) -> bytes:
        self._count(block.parts)
        call_id = quote(
            self._ids.get(block.call_id) or wire_id(block.call_id, wire_name(block.name), self._dialect.ids)
        )
        content = result_text(block.name, self._readable(block.parts), listed=self._listed)
        return b'{"role":"tool","tool_call_id":%b,"content":%b}' % (call_id, content)

    def _assistant(self, block: AssistantBlock) -> bytes:
        """Text, reasoning where the service wants it back, and calls. Nothing for neither text nor calls: services
        refuse such a message."""
        self._reasoning.check(block)
        text = "".join(part.text for part in block.parts if isinstance(part, Text))
        form = None if block.dialect == self._keeps else self._dialect.ids
        calls = [self._call(part, form) for part in block.parts if isinstance(part, CallBlock)]
        if not text and not calls:
            return b""
        text = self._reasoning.opening(block) + text
        content = quote(text) if text or self._dialect.empty_content else b"null"
        called = b',"tool_calls":[%b]' % b",".join(calls) if calls else b""
        return b'{"role":"assistant","content":%b%b%b}' % (content, self._reasoning.fields(block), called)

    def _call(self, call: CallBlock, form: IdForm | None) -> bytes:
        name = wire_name(call.name)
        self._ids[call.id] = wire_id(call.id, name, form)
        return b'{"id":%b,"type":"function","function":{"name":%b,"arguments":%b}}' % (
            quote(self._ids[call.id]),
            quote(name),
            quote(call.args_text),
        )
