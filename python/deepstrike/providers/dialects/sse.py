"""Server-sent events, as model services really send them.

Works on bytes: a character, a line end or a field name may be cut anywhere. LF, CRLF and a lone CR end a line, and
nothing else does (JSON may hold U+2028 and U+0085 unescaped). One space after the colon is optional. Comments, unknown
fields and event names are passed over: every dialect repeats the kind of an event in its JSON. Source: the WHATWG event
stream format, and recorded traffic.
"""

from __future__ import annotations

from deepstrike.errors import ProviderError

MAX_EVENT_BYTES = 32 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class SseReader:
    """Push bytes in, get the payloads of whole events out. The work is linear in the bytes, however they are cut.

    An event larger than `limit` bytes raises a `ProviderError` with the code `event_too_large`.
    """

    __slots__ = ("_after_cr", "_between", "_data", "_limit", "_size", "_started", "_tail")

    def __init__(self, limit: int = MAX_EVENT_BYTES) -> None:
        self._limit = limit
        self._tail = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._started = False
        self._between = False  # nothing is open: the next byte begins an event

    def push(self, data: bytes) -> list[bytes]:
        """The payloads of the events that `data` completes."""
        # Nearly all events come whole, one a read: these are cut out as they stand.
        if self._between and data[-1:] == b"\n" and len(data) <= self._limit:
            ends, returns = data.count(b"\n"), data.count(b"\r")
            if ends == 2 and data[:6] == b"data: ":
                if not returns and data[-2:] == b"\n\n":
                    return [data[6:-2]]
                if returns == 2 and data[-4:] == b"\r\n\r\n":
                    return [data[6:-4]]
            elif ends == 3 and not returns and data[-2:] == b"\n\n" and data[:6] == b"event:":
                line = data.find(b"\n") + 1
                if data[line : line + 6] == b"data: ":
                    return [data[line + 6 : -2]]
        out = self._pieces(data)
        self._between = self._started and not (self._tail or self._data or self._after_cr)
        return out

    def _pieces(self, data: bytes) -> list[bytes]:
        if self._after_cr or b"\r" in data:
            data = self._plain_ends(data)
        end = data.rfind(b"\n")
        if end < 0:
            self._tail += data
            self._check(len(self._tail))
            return []
        block = data[:end]
        if self._tail:
            block = bytes(self._tail) + block
            self._tail.clear()
        self._tail += data[end + 1 :]
        return self._lines(block.split(b"\n"))

    def close(self) -> list[bytes]:
        """The event that no blank line ended. Whether it is whole is for the decoder to say."""
        out = self._lines([bytes(self._tail), b""])
        self._tail.clear()
        return out

    def _plain_ends(self, data: bytes) -> bytes:
        """Every line end as LF. A CR ends its line at once; the LF that may follow in the next piece is dropped."""
        if self._after_cr and data[:1] == b"\n":
            data = data[1:]
            self._after_cr = False
        if data:
            self._after_cr = data[-1:] == b"\r"
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _lines(self, lines: list[bytes]) -> list[bytes]:
        if not self._started and lines[0]:
            self._started = True
            lines[0] = lines[0].removeprefix(_BOM)
        out: list[bytes] = []
        data, size = self._data, self._size
        for line in lines:
            if line[:5] == b"data:":
                data.append(line[6:] if line[5:6] == b" " else line[5:])
                size += len(line)
            elif not line and data:
                out.append(data[0] if len(data) == 1 else b"\n".join(data))
                data.clear()
                size = 0
        self._size = size
        self._check(size)
        return out

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise ProviderError(
                f"the service sent one event of more than {self._limit:,} bytes; the stream is broken or not a "
                "model's answer",
                code="event_too_large",
            )
