"""Token counts of a Gemini answer, in our sense: input includes the cached part, output the thoughts."""

from __future__ import annotations

import msgspec

from deepstrike.providers.dialects.gemini.wire import decode_counts
from deepstrike.wire.message import Usage


def read_usage(raw: bytes) -> Usage | None:
    """The counts as `Usage`; None when they count nothing or cannot be read.

    A missing count of the answer is what the total leaves.
    """
    try:
        counts = decode_counts(raw)
    except msgspec.DecodeError:
        return None
    given = _whole(counts.prompt_token_count) + _whole(counts.tool_use_prompt_token_count)
    thoughts, said = _whole(counts.thoughts_token_count), _whole(counts.candidates_token_count)
    if counts.candidates_token_count is None:
        said = max(0, _whole(counts.total_token_count) - given - thoughts)
    if not given and not said and not thoughts:
        return None
    cached = min(_whole(counts.cached_content_token_count), given)
    return Usage(input=given, output=said + thoughts, cached=cached, reasoning=thoughts)


def _whole(tokens: float | None) -> int:
    return max(0, int(tokens)) if tokens else 0
