"""Puts tool calls together from their pieces.

Rules, from recorded traffic: the index says which call a piece belongs to, not the id; a piece without an index belongs
to the call opened last; a new id together with a name opens a call, also at an index already used; the first id and the
first name that are not empty count, and neither is ever joined from pieces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from deepstrike.providers.base import ToolCall
from deepstrike.providers.dialects.chat.mend import mend_text
from deepstrike.providers.dialects.chat.wire import NULL, CallDelta, Function, decode_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NO_FUNCTION = Function()
_NO_ARGUMENTS = ("", "null")


class _Call:
    __slots__ = ("id", "name", "pieces")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.pieces: list[str] = []


class CallPieces:
    """The calls of one answer, in the order in which they were opened."""

    __slots__ = ("_by_index", "_calls")

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, deltas: Sequence[CallDelta]) -> None:
        """Take the pieces of one chunk."""
        opened_here = len(self._calls)
        for delta in deltas:
            function = delta.function or _NO_FUNCTION
            call_id = "" if delta.id is None else str(delta.id)
            # Two named entries of one list are two calls, also where neither index nor id tells them apart.
            apart = delta.index is None and len(self._calls) > opened_here
            call = self._call(delta.index, call_id, function.name or "", apart)
            _extend(call, function.arguments)

    def add_legacy(self, function: Function) -> None:
        """Take a piece of the old `function_call`, of which an answer has one at most."""
        _extend(self._call(None, "", function.name or "", apart=False), function.arguments)

    def finish(self, cut: bool, names: Mapping[str, str]) -> list[ToolCall]:
        """The whole calls, under the tools' own names. Without arguments means `{}`, unless the answer was `cut`."""
        return [ToolCall(call.id, names.get(call.name, call.name), _arguments(call, cut)) for call in self._calls]

    def _call(self, index: int | None, call_id: str, name: str, apart: bool) -> _Call:
        call = self._find(index, call_id, name)
        if call is None or (name and (apart or (call_id and call.id and call_id != call.id))):
            call = _Call()
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        call.id = call.id or call_id
        call.name = call.name or name
        return call

    def _find(self, index: int | None, call_id: str, name: str) -> _Call | None:
        last = self._calls[-1] if self._calls else None
        if index is None:
            return last
        # A bare piece of arguments cannot open a call, so an index not seen before is a miscounted one.
        return self._by_index.get(index, None if call_id or name else last)


def _extend(call: _Call, arguments: msgspec.Raw) -> None:
    raw = bytes(arguments)
    if not raw or raw == NULL:
        return
    if raw[:1] == b'"':
        call.pieces.append(_string(raw))
    else:  # the object itself: whole by nature
        call.pieces = [raw.decode("utf-8", "replace")]


def _string(raw: bytes) -> str:
    try:
        return decode_text(raw)
    except msgspec.DecodeError:
        return mend_text(raw)


def _arguments(call: _Call, cut: bool) -> str:
    text = "".join(call.pieces)
    return "{}" if not cut and text.strip() in _NO_ARGUMENTS else text
