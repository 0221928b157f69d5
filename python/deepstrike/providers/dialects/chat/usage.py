"""Token counts of a chat completion, in our sense: input includes the cached part, output the reasoning."""

from __future__ import annotations

import msgspec

from deepstrike.providers.dialects.chat.wire import InputDetails, OutputDetails, UsageObject, decode_usage
from deepstrike.wire.message import Usage


def read_usage(raw: bytes, reasoning_in_output: bool) -> Usage | None:
    """The usage object as `Usage`; None when it counts nothing or cannot be read.

    Services repeat running totals, so the last object that counts something is the right one and none are added up.
    `reasoning_in_output` is false for services whose `completion_tokens` leave the reasoning out (xAI).
    """
    try:
        usage = decode_usage(raw)
    except msgspec.DecodeError:
        return None
    reasoning = _count((usage.completion_tokens_details or OutputDetails()).reasoning_tokens)
    given, output = _count(usage.prompt_tokens), _count(usage.completion_tokens)
    if not given and not output:
        return None
    details = usage.prompt_tokens_details or InputDetails()
    return Usage(
        input=given,
        output=output if reasoning_in_output else output + reasoning,
        cached=min(_cached(usage, details), given),
        cache_write=_count(details.cache_write_tokens or details.cache_creation_input_tokens),
        reasoning=reasoning,
    )


def _cached(usage: UsageObject, details: InputDetails) -> int:
    return _count(details.cached_tokens or usage.prompt_cache_hit_tokens or usage.cached_tokens)


def _count(tokens: float | None) -> int:
    return max(0, int(tokens)) if tokens else 0
