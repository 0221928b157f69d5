"""Splits reasoning in `<think>` tags from the answer behind it, whatever the pieces they arrive in.

Reasoning stands only at the start of the text: a tag further on is text that speaks of tags. White space around the
tags belongs to them. A model whose template writes the opening tag itself sends the closing one alone: that tag is
taken out, and what came before it, already shown, stays text.
"""

from __future__ import annotations

from typing import Literal

_OPEN, _CLOSE = "<think>", "</think>"
_Where = Literal["start", "opened", "thinking", "behind", "text", "plain"]


class ThinkSplitter:
    """Push text in, get thinking and answer out. The result does not depend on how the text was cut."""

    __slots__ = ("_held", "_where")

    def __init__(self) -> None:
        self._where: _Where = "start"
        self._held = ""

    def push(self, text: str) -> tuple[str, str]:
        """The thinking and the answer that `text` adds."""
        if self._where == "plain":
            return "", text
        thinking = ""
        text, self._held = self._held + text, ""
        if self._where == "start":
            text = self._begin(text)
        if self._where == "opened":
            text = text.lstrip()
            self._where = "thinking" if text else "opened"
        if self._where == "thinking":
            thinking, text = self._think(text)
        if self._where == "behind":
            text = text.lstrip()
            self._where = "plain" if text else "behind"
        if self._where == "text":
            text = self._strip_lone_end(text)
        return thinking, text

    def close(self) -> tuple[str, str]:
        """What was held back because it might have become a tag."""
        held, self._held = self._held, ""
        if self._where == "thinking":
            return held.rstrip(), ""
        return "", held

    def _begin(self, text: str) -> str:
        start = text.lstrip()
        if start.startswith(_OPEN):
            self._where = "opened"
            return start[len(_OPEN) :]
        if _OPEN.startswith(start):
            self._held = text
            return ""
        self._where = "text"
        return text

    def _think(self, text: str) -> tuple[str, str]:
        thinking, tag, rest = text.partition(_CLOSE)
        if tag:
            self._where = "behind"
            return thinking.rstrip(), rest
        kept = thinking.removesuffix(_beginning(thinking)).rstrip()
        self._held = thinking[len(kept) :]
        return kept, ""

    def _strip_lone_end(self, text: str) -> str:
        before, tag, behind = text.partition(_CLOSE)
        if tag:
            self._where = "plain"
            return before + behind
        self._held = _beginning(text)
        return text.removesuffix(self._held)


def _beginning(text: str) -> str:
    """The end of `text` that may be the beginning of a closing tag."""
    at = text.rfind("<", -len(_CLOSE) + 1)
    return text[at:] if at >= 0 and _CLOSE.startswith(text[at:]) else ""
