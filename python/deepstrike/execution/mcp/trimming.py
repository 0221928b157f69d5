"""A list of tools is cut to size before it becomes objects, which take forty times its memory and the loop's time.

An entry that is too much is replaced by a note of that, which `sifting` reads. It works on the bytes alone, so nesting
and numbers of values do not matter to it.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Final

from deepstrike.tools.threads import TooManyHungThreads, run_in_thread

if TYPE_CHECKING:
    from collections.abc import Iterator

LISTING: Final = "tools/list"
LARGEST_TOOL: Final = 256 * 1024
"""Bytes of one entry."""
LARGEST_LIST: Final = 1024 * 1024
"""Bytes of all entries together; a model could not read more of them."""
MOST_TOOLS: Final = 4096
LONGEST_NAME: Final = 1024
DEEPEST: Final = 128
"""Levels of one entry."""
MORE: Final = "(further tools)"
LEFT_OUT: Final = "deepstrike/left_out"
"""In the `_meta` of an entry: why it is not there. A server that writes it leaves out a tool of its own."""

_SMALL: Final = 64 * 1024
"""Bytes that take no time worth a thread."""
_SHOWN_NAME: Final = 100
_TOKENS: Final = re.compile(rb'"[^"]*"\s*(:?)|[\[{]|[\]}]')
_QUOTE: Final = ord('"')
_OPENING: Final = b"[{"
_MESSAGE, _RESULT, _LIST, _ENTRY = 1, 2, 3, 4
"""Depths: inside of the message, its result, the list, an entry of it."""


async def trimmed(data: bytes) -> bytes:
    """A message, with what is too much in its list of tools replaced; the same where there is none."""
    if len(data) <= _SMALL:
        return trim(data)
    try:
        return await run_in_thread(partial(trim, data))
    except TooManyHungThreads:
        return trim(data)


def trim(data: bytes) -> bytes:
    """The same, at once."""
    pieces: list[bytes] = []
    done, budget = 0, _Budget()
    for start, end, entries in _Lists(data, budget).read():
        pieces += [data[done:start], b",".join(entries)]
        done = end
    return b"".join([*pieces, data[done:]]) if budget.cut else data


class _Budget:
    """What there may still be."""

    def __init__(self) -> None:
        self.cut = False
        self._room = LARGEST_LIST
        self._tools = 0

    def judge(self, size: int, depth: int, name_size: int) -> str:
        """Why an entry is too much; nothing where it is not."""
        self._tools += 1
        why = ""
        if size > LARGEST_TOOL:
            why = f"its entry in the server's list is longer than {LARGEST_TOOL} bytes"
        elif depth > DEEPEST:
            why = f"its entry in the server's list is nested deeper than {DEEPEST} levels"
        elif name_size > LONGEST_NAME:
            why = f"its name is longer than {LONGEST_NAME} bytes"
        elif size > self._room:
            why = f"the server's list of tools is longer than {LARGEST_LIST} bytes"
        else:
            self._room -= size
        self.cut = self.cut or bool(why)
        return why

    @property
    def full(self) -> bool:
        """Whether no entry more is looked at."""
        return self._tools >= MOST_TOOLS


class _Lists:
    """The lists of tools in a message, as places of the bytes."""

    def __init__(self, data: bytes, budget: _Budget) -> None:
        self._data = data
        self._budget = budget
        self._depth = self._deepest = self._start = 0
        self._keys = {_MESSAGE: "", _RESULT: ""}
        self._inside = self._named = False
        self._name = (0, 0)
        self._further = 0
        self._entries: list[bytes] = []

    def read(self) -> Iterator[tuple[int, int, list[bytes]]]:
        """Where the entries of each list begin and end, and what is left of them."""
        begun = 0
        plain = self._data.replace(b"\\\\", b"__").replace(b'\\"', b"__")  # quotes inside strings are none
        for token in _TOKENS.finditer(plain):
            at = token.start()
            if plain[at] == _QUOTE:
                self._string(token)
            elif plain[at] in _OPENING:
                if self._open(at):
                    begun = at + 1
            elif self._close(at):
                yield begun, at, self._taken()

    def _string(self, token: re.Match[bytes]) -> None:
        if self._inside:
            if self._depth == _ENTRY and token.end(1) > token.start(1):
                self._named = self._text(token) == "name"
            elif self._depth == _ENTRY and self._named:
                self._name, self._named = (
                    (token.start() + 1, self._data.rindex(b'"', token.start(), token.end())),
                    False,
                )
        elif self._depth in self._keys and token.end(1) > token.start(1):
            self._keys[self._depth] = self._text(token)

    def _text(self, token: re.Match[bytes]) -> str:
        """A key; a long one is none of ours."""
        raw = (
            self._data[token.start() : token.end()].rstrip(b": \t\r\n") if token.end() - token.start() < 256 else b'""'
        )
        try:
            return str(json.loads(raw))
        except ValueError:
            return ""

    def _open(self, at: int) -> bool:
        """Whether a list of tools begins here."""
        self._depth += 1
        if self._inside:
            if self._depth == _ENTRY:
                self._start, self._deepest, self._name, self._named = at, _ENTRY, (0, 0), False
            self._deepest = max(self._deepest, self._depth)
            return False
        self._inside = self._depth == _LIST and (self._keys[_MESSAGE], self._keys[_RESULT]) == ("result", "tools")
        return self._inside

    def _close(self, at: int) -> bool:
        """Whether a list of tools ends here."""
        self._depth -= 1
        if self._inside and self._depth == _LIST:
            self._entry(at + 1)
        ended = self._inside and self._depth < _LIST
        self._inside = self._inside and not ended
        return ended

    def _entry(self, end: int) -> None:
        if self._budget.full:
            self._budget.cut = True
            self._further += 1
            return
        first, last = self._name
        why = self._budget.judge(end - self._start, self._deepest - _LIST, last - first)
        name = self._data[first : min(last, first + _SHOWN_NAME)].decode("utf-8", "replace")
        self._entries.append(_note(name, why) if why else self._data[self._start : end])

    def _taken(self) -> list[bytes]:
        entries, self._entries = self._entries, []
        if self._further:
            entries.append(_note(MORE, f"the server lists over {MOST_TOOLS} tools, and {self._further} more"))
            self._further = 0
        return entries


def _note(name: str, why: str) -> bytes:
    return json.dumps({"name": name, "inputSchema": {"type": "object"}, "_meta": {LEFT_OUT: why}}).encode()
