"""The first bytes of an answer, looked at and put back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deepstrike.errors import Truncated

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepstrike.providers.transport.base import Answer

_FRAMES = (b"data:", b"event:", b":", b"id:", b"retry:")
_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class PutBack:
    """An answer whose first bytes were read and come once more. If it broke off behind them, it does so again."""

    answer: Answer
    status: int
    headers: Mapping[str, str]
    _first: bytes
    _broke: Truncated | None = field(default=None)

    async def read(self) -> bytes:
        """See `Answer.read`."""
        if self._first:
            first, self._first = self._first, b""
            return first
        if self._broke is not None:
            raise self._broke
        return await self.answer.read()

    async def settle(self, limit: float) -> None:
        """See `Answer.settle`."""
        await self.answer.settle(limit)

    def close(self) -> None:
        """See `Answer.close`."""
        self.answer.close()


async def begins_as_stream(answer: Answer) -> tuple[bool, PutBack]:
    """Whether the body begins like server-sent events, and the answer to read on from its beginning."""
    first, broke = b"", None
    try:
        while _may_yet_be(first) and (data := await answer.read()):
            first += data
    except Truncated as fault:
        broke = fault
    return _text(first).startswith(_FRAMES), PutBack(answer, answer.status, answer.headers, first, broke)


def _may_yet_be(first: bytes) -> bool:
    text = _text(first)
    undecided = not text or _BOM.startswith(first) or any(frame.startswith(text) for frame in _FRAMES)
    return undecided and not text.startswith(_FRAMES) and len(first) < 1024


def _text(first: bytes) -> bytes:
    return first.removeprefix(_BOM).lstrip()
