"""Token counts of a messages answer, in our sense: input includes the cached part, output the reasoning.

The vendor counts otherwise: `input_tokens` are only those neither read from the cache nor written to it. Its numbers
are running totals: a later field replaces an earlier one. `iterations` lists the model calls behind an answer; those
that are not of type `message` (a compaction, an adviser) are not in the totals and are added.
"""

from __future__ import annotations

import msgspec

from deepstrike.providers.dialects.messages.wire import Iteration, OutputDetails, UsageObject, decode_usage, is_given
from deepstrike.wire.message import Usage

_IN_TOTALS = frozenset({"message", ""})


class UsageSoFar:
    """Takes the usage objects of one answer as they come."""

    __slots__ = ("_iterations", "_latest")

    def __init__(self) -> None:
        self._latest: dict[str, float] = {}
        self._iterations: list[Iteration] = []

    def take(self, raw: msgspec.Raw) -> None:
        """The next object. One that is absent or cannot be read changes nothing."""
        if not is_given(raw):
            return
        try:
            usage = decode_usage(raw)
        except msgspec.DecodeError:
            return
        for name, count in _counts(usage).items():
            if count is not None:
                self._latest[name] = count
        self._iterations = usage.iterations or self._iterations

    def total(self) -> Usage | None:
        """What was used in all; None if nothing was counted."""
        latest = self._latest
        own = Iteration(
            "message",
            latest.get("input"),
            latest.get("output"),
            latest.get("cache_write"),
            latest.get("cached"),
        )
        calls = [own, *(call for call in self._iterations if call.type not in _IN_TOTALS)]
        cached = sum(_whole(call.cache_read_input_tokens) for call in calls)
        written = sum(_whole(call.cache_creation_input_tokens) for call in calls)
        given = sum(_whole(call.input_tokens) for call in calls) + cached + written
        output = sum(_whole(call.output_tokens) for call in calls)
        if not given and not output:
            return None
        return Usage(given, output, cached, written, min(_whole(latest.get("reasoning")), output))


def _counts(usage: UsageObject) -> dict[str, float | None]:
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cached": usage.cache_read_input_tokens,
        "cache_write": usage.cache_creation_input_tokens,
        "reasoning": (usage.output_tokens_details or OutputDetails()).thinking_tokens,
    }


def _whole(tokens: float | None) -> int:
    return max(0, int(tokens)) if tokens else 0
