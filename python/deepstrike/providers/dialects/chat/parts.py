"""Content of user messages and tool results: texts, images, files, and what stands for those that a service refuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepstrike.providers.dialects.json_text import quote
from deepstrike.wire.message import Image, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.wire.message import File, Part


@dataclass(frozen=True, slots=True)
class Carries:
    """What a service's user messages may hold besides text."""

    images: bool = True
    files: bool = True

    def takes(self, part: Part) -> bool:
        """Whether the part can be sent as it is."""
        return isinstance(part, Text) or (self.images if isinstance(part, Image) else self.files)


def readable(parts: Sequence[Part], carries: Carries) -> list[Part]:
    """The parts, with words in the place of those that cannot be sent."""
    return [part if carries.takes(part) else Text(_left_out(part)) for part in parts]


def user_message(parts: Sequence[Part], *, listed: bool = False) -> bytes:
    """A user message; texts alone are lines of one string, which every server takes, or one part if `listed`."""
    texts = [part.text for part in parts if isinstance(part, Text)]
    if len(texts) == len(parts):
        if listed:
            return b'{"role":"user","content":%b}' % text_part("\n".join(texts))
        return b'{"role":"user","content":%b}' % quote("\n".join(texts))
    return b'{"role":"user","content":[%b]}' % b",".join(map(_part, parts))


def text_part(text: str) -> bytes:
    """Content that is one part, which can carry a mark."""
    return b"[%b]" % _part(Text(text))


def result_text(name: str, parts: Sequence[Part], *, listed: bool = False) -> bytes:
    """The content of a tool message. The role takes text only: images and files follow behind the group."""
    texts = [part.text for part in parts if isinstance(part, Text)]
    if len(texts) < len(parts):
        texts.append(f"[the attachments of {name} follow]")
    return text_part("\n".join(texts)) if listed else quote("\n".join(texts))


def _part(part: Part) -> bytes:
    if isinstance(part, Text):
        return b'{"type":"text","text":%b}' % quote(part.text)
    if isinstance(part, Image):
        return b'{"type":"image_url","image_url":{"url":%b}}' % quote(part.url or _data_url(part))
    name = quote(part.name or "file")
    return b'{"type":"file","file":{"filename":%b,"file_data":%b}}' % (name, quote(_data_url(part)))


def _data_url(part: Image | File) -> str:
    return f"data:{part.media_type};base64,{part.data}"


def _left_out(part: Part) -> str:
    """Says that something was here which the model cannot be shown."""
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Image):
        return f"[an image ({part.url or part.media_type}) was left out: this model takes none]"
    return f"[the file {part.name or 'without a name'} ({part.media_type}) was left out: this service takes none]"
