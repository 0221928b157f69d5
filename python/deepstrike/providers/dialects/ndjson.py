"""Newline-delimited JSON: one payload a line.

Works on bytes: a character or a line may be cut anywhere. LF ends a line, with or without a CR before it, and nothing
else does. Blank lines, a mark in front and a last line without its end are all met in the wild.
"""

from __future__ import annotations

from deepstrike.errors import ProviderError

MAX_LINE_BYTES = 32 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class LineReader:
    """Push bytes in, get whole lines out. The work is linear in the bytes, however they are cut.

    A line larger than `limit` bytes raises a `ProviderError` with the code `event_too_large`.
    """

    __slots__ = ("_limit", "_started", "_tail")

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self._limit = limit
        self._tail = bytearray()
        self._started = False

    def push(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes, without the blank ones."""
        end = data.rfind(b"\n")
        if end < 0:
            self._keep(data)
            return []
        block = data[:end]
        if self._tail:
            block = bytes(self._tail) + block
            self._tail.clear()
        if end + 1 < len(data):
            self._keep(data[end + 1 :])
        return self._lines(block)

    def close(self) -> list[bytes]:
        """The line that nothing ended. Whether it is whole is for the decoder to say."""
        block = bytes(self._tail)
        self._tail.clear()
        return self._lines(block)

    def _lines(self, block: bytes) -> list[bytes]:
        if not self._started and block:
            self._started = True
            block = block.removeprefix(_BOM)
        lines = [stripped for line in block.split(b"\n") if (stripped := line.strip())]
        if len(block) > self._limit:
            self._check(max(map(len, lines), default=0))
        return lines

    def _keep(self, data: bytes) -> None:
        self._tail += data
        self._check(len(self._tail))

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise ProviderError(
                f"the service sent one line of more than {self._limit:,} bytes; the stream is broken or not a model's "
                "answer",
                code="event_too_large",
            )
