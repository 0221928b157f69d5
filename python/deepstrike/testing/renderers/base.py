"""What a renderer is: the service's half of a dialect."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from deepstrike.wire.message import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.providers.base import ToolCall

Trouble = Literal["rate_limited", "overloaded", "failing", "unauthorized", "quota_exhausted"]
"""How a service may refuse a request."""

_PIECE = 3


@dataclass(frozen=True, slots=True)
class Spoken:
    """What an answer says, in our terms: `usage.input` includes what was cached, `usage.output` the reasoning."""

    text: str = ""
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=lambda: Usage(120, 40))
    finish: str = "stop"


@dataclass(frozen=True, slots=True)
class Rendered:
    """The bytes of an answer, event by event: `opening` says all there is to say, `ending` that it is whole."""

    opening: tuple[bytes, ...]
    ending: tuple[bytes, ...]


class Renderer(Protocol):
    """Writes answers of one dialect.

    `content_type` is that of a good answer. `counts` names the fields of `Usage` that this dialect can tell. `comment`
    is what keeps a stream alive without being an event, None where there is nothing of the kind.
    """

    @property
    def content_type(self) -> str:
        """The content type of a stream."""

    @property
    def counts(self) -> frozenset[str]:
        """The fields of `Usage` that answers tell."""

    @property
    def comment(self) -> bytes | None:
        """Bytes between events that say nothing."""

    def answer(self, spoken: Spoken) -> Rendered:
        """A whole stream."""

    def failure(self, message: str) -> bytes:
        """An error as it stands inside a stream that began well."""

    def refusal(self, trouble: Trouble, message: str) -> tuple[int, bytes] | None:
        """Status and body of an error answer; None where services of this dialect have no such answer."""


def pieces(text: str) -> list[str]:
    """The text in pieces of three characters, as a model would send it."""
    return [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]


def compact(value: object) -> bytes:
    """JSON without blanks, other scripts as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def sse(payload: Mapping[str, object], event: str = "") -> bytes:
    """One server-sent event."""
    named = f"event: {event}\n".encode() if event else b""
    return b"%bdata: %b\n\n" % (named, compact(payload))
