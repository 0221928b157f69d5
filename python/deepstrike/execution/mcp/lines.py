"""JSON lines on a pipe: cutting, reading, writing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import mcp_types
import msgspec
from pydantic import ValidationError

from deepstrike.execution.mcp.carrier import LARGEST_MESSAGE
from deepstrike.text import well_formed_json

if TYPE_CHECKING:
    from collections.abc import Iterator

MALFORMED: Final = "the server's answer is no message of the protocol"


class TooLong(Exception):
    """A line has no end."""

    def __init__(self) -> None:
        super().__init__(f"it sent a message of more than {LARGEST_MESSAGE} bytes")


class Lines:
    """Cuts chunks into lines; what is kept of an unfinished one is bounded, and looked at once."""

    __slots__ = ("_kept", "_size")

    def __init__(self) -> None:
        self._kept: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that `chunk` completes, without blank ones. Raises `TooLong`."""
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            line = b"".join((*self._kept, piece))
            self._kept.clear()
            self._size = 0
            if line.strip():
                yield line
        self._size += len(rest)
        if self._size > LARGEST_MESSAGE:
            raise TooLong
        if rest:
            self._kept.append(rest)


class _Answer(msgspec.Struct):
    """As much of a broken answer as tells whose it is."""

    id: int | str
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


_answer = msgspec.json.Decoder(_Answer).decode


def read_message(line: bytes) -> mcp_types.JSONRPCMessage | None:
    """The message, or None for what is none. A broken answer becomes an error to the same request, if it names one."""
    try:
        return mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        pass
    text = well_formed_json(line.decode("utf-8", "replace"))
    try:
        return mcp_types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError:
        return _broken(text)


def _broken(text: str) -> mcp_types.JSONRPCError | None:
    try:
        answer = _answer(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not bytes(answer.result) and not bytes(answer.error):
        return None
    error = mcp_types.ErrorData(code=mcp_types.PARSE_ERROR, message=MALFORMED)
    return mcp_types.JSONRPCError(jsonrpc="2.0", id=answer.id, error=error)


def encoded(message: mcp_types.JSONRPCMessage) -> bytes:
    """The message as one line."""
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
