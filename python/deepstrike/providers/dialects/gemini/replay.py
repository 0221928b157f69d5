"""A reply of the model as it goes back, with its thought signatures on the parts they came on.

Rules, from the vendor's page on thought signatures: a signature returns on the very part; a signed part is not merged
with an unsigned one; of parallel calls only the first has one. From Gemini 3 on the first call of every reply must have
one, so a reply that has none (it came from elsewhere, or was shortened) gets the value that switches the check off.
Signatures are bound to the model that made them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from deepstrike.providers.dialects.gemini.wire import Mark, decode_mark
from deepstrike.providers.dialects.json_text import quote
from deepstrike.providers.dialects.names import wire_name
from deepstrike.providers.tables.gemini import family
from deepstrike.wire.message import CallBlock, Opaque, Thinking

if TYPE_CHECKING:
    from deepstrike.providers.dialects.base import Asked
    from deepstrike.wire.message import AssistantBlock

_UNCHECKED = b'"skip_thought_signature_validator"'


def foreign_parts(block: AssistantBlock, asked: Asked) -> bool:
    """Whether thinking or artefacts of `block` must stay behind."""
    return not _is_own(block, asked) and any(isinstance(part, Thinking | Opaque) for part in block.parts)


def model_parts(block: AssistantBlock, asked: Asked) -> list[bytes]:
    """The parts of the reply; none if it has neither text nor calls, which the service refuses."""
    writer = _Writer(
        own=_is_own(block, asked),
        source=asked.source,
        must_sign=family(asked.info.id).signed,
        whole=not block.rebased,
    )
    for part in block.parts:
        if isinstance(part, CallBlock):
            writer.call(part)
        elif isinstance(part, Opaque):
            writer.artefact(part)
        else:
            writer.words("thought" if isinstance(part, Thinking) else "text", part.text)
    return writer.done()


def _is_own(block: AssistantBlock, asked: Asked) -> bool:
    return block.dialect == asked.source and block.model == asked.info.id


class _Writer:
    """Writes the parts of one reply. `_words` is the text or thought that a signature behind it may still split."""

    __slots__ = ("_called", "_kind", "_must_sign", "_out", "_own", "_said", "_signature", "_source", "_whole", "_words")

    def __init__(self, *, own: bool, source: str, must_sign: bool, whole: bool) -> None:
        self._own = own
        self._source = source
        self._must_sign = must_sign
        self._whole = whole
        self._called = False
        self._said = False
        self._kind = "text"
        self._words = ""
        self._signature = b""
        self._out: list[bytes] = []

    def words(self, kind: str, text: str) -> None:
        """Text, or a thought of our own."""
        if text and (kind == "text" or self._own):
            self._flush()
            self._kind, self._words = kind, text
            self._said = self._said or kind == "text"

    def artefact(self, part: Opaque) -> None:
        """A signature of our own; any other artefact is passed over."""
        mark = _mark(part.text) if self._own and part.dialect == self._source else None
        if mark is None:
            return
        if mark.on == "call":
            self._flush()
            self._signature = bytes(mark.signature)
        elif not self._whole:
            return  # the words may have been shortened since, and only a call's signature is demanded
        elif mark.chars == 0:
            self._flush()
            self._out.append(_words(mark.on, "", bytes(mark.signature)))
        elif mark.on == self._kind and mark.chars <= len(self._words):
            signed = self._words[-mark.chars :]
            self._words = self._words[: -mark.chars]
            self._flush()
            self._out.append(_words(mark.on, signed, bytes(mark.signature)))

    def call(self, call: CallBlock) -> None:
        """A call, with its signature."""
        self._flush()
        signature = self._signature
        if not signature and not self._called and self._must_sign:
            signature = _UNCHECKED
        self._called, self._signature = True, b""
        signed = b',"thoughtSignature":%b' % signature if signature else b""
        self._out.append(
            b'{"functionCall":{"id":%b,"name":%b,"args":%b}%b}'
            % (quote(call.id), quote(wire_name(call.name)), call.args_text.encode(), signed)
        )

    def done(self) -> list[bytes]:
        """All parts."""
        self._flush()
        return self._out if self._said or self._called else []

    def _flush(self) -> None:
        if self._words:
            self._out.append(_words(self._kind, self._words))
            self._words = ""


def _words(kind: str, text: str, signature: bytes = b"") -> bytes:
    thought = b',"thought":true' if kind == "thought" else b""
    signed = b',"thoughtSignature":%b' % signature if signature else b""
    return b'{"text":%b%b%b}' % (quote(text), thought, signed)


def _mark(text: str) -> Mark | None:
    try:
        return decode_mark(text)
    except msgspec.DecodeError:
        return None
