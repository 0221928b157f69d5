"""When a prompt counts as cut by the server, and when not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from gemini_ollama_wires import asked, events_of

from deepstrike.providers.base import Finish
from deepstrike.providers.dialects.ollama.dialect import OllamaDialect
from deepstrike.wire.message import AssistantBlock, Notice, Text, ToolSpec, Usage, UserBlock

if TYPE_CHECKING:
    from deepstrike.providers.base import ModelEvent

DIALECT = OllamaDialect()
SENTENCE = "The lighthouse keeper wrote the weather down every evening. "  # ten tokens
CALL = {"function": {"index": 0, "name": "f", "arguments": {}}, "id": "call_1"}


def tell(
    tokens: int, counted: int | None, *, window: int, newer: bool = False, **extensions: object
) -> list[ModelEvent]:
    """What an answer ends with, after a prompt of about so many tokens."""
    half = Text(SENTENCE * (tokens // 20))
    turns = (UserBlock((half,)), AssistantBlock((Text("yes"),), "ollama"), UserBlock((half,)))
    tools = (ToolSpec("f", "", '{"type":"object"}'),)
    call = asked(turns, model="m", source="ollama", window=window, extensions=extensions, tools=tools)
    DIALECT.encode(call)
    message = {"role": "assistant", "content": "", **({"tool_calls": [CALL]} if newer else {})}
    last = {"message": message, "done": True, "done_reason": "stop", "eval_count": 3}
    if counted is not None:
        last["prompt_eval_count"] = counted
    return events_of(DIALECT, call, [json.dumps(last).encode() + b"\n"])


def notices(
    tokens: int, counted: int | None, *, window: int, newer: bool = False, **extensions: object
) -> list[Notice]:
    told = tell(tokens, counted, window=window, newer=newer, **extensions)
    return [event for event in told if isinstance(event, Notice)]


def test_given_a_prompt_above_the_window_when_half_of_it_was_kept_then_a_notice_gives_both_numbers() -> None:
    usage, notice, finish = tell(11_000, 2050, window=4096)
    assert usage == Usage(2050, 3)
    assert isinstance(notice, Notice)
    assert notice.code == "prompt_truncated"
    assert notice.message.startswith(
        "Ollama evidently cut the prompt: it has about 11003 tokens, the server evaluated 2050 tokens (num_ctx 4096 "
        "was asked for, it seems to run with a window of 4096 tokens)."
    )
    assert finish == Finish("stop")


@pytest.mark.parametrize(
    ("tokens", "counted", "window", "newer"),
    [
        (11_000, 4098, 32_000, False),  # half of 8192: the model's own window is smaller than the one asked for
        (40_000, 16_002, 32_000, False),  # half of the window asked for, which is no power of two
        (11_000, 4_000, 4096, False),  # the oldest messages were dropped until the rest fitted
        (11_000, None, 4096, False),  # whatever was cached, it cannot have fitted
        (11_000, 3_900, 32_000, True),  # far too few, from a server that counts what was cached
    ],
)
def test_given_counts_that_only_a_cut_explains_when_the_answer_ends_then_it_is_told(
    tokens: int, counted: int | None, window: int, newer: bool
) -> None:
    assert [notice.code for notice in notices(tokens, counted, window=window, newer=newer)] == ["prompt_truncated"]


@pytest.mark.parametrize(
    ("tokens", "counted", "window", "newer"),
    [
        (11_000, 11_400, 32_000, False),  # all of it was evaluated
        (11_000, 9_000, 32_000, True),  # another vocabulary
        (11_000, None, 32_000, False),  # an old server that had all of it cached
        (11_000, 1, 32_000, False),
        (11_000, 900, 32_000, False),  # an old server that had most of it cached
        (11_000, 11_400, 4096, False),  # a server that does as it likes with the window: the cloud
        (1_000, 1_026, 32_000, False),  # half of a power of two by chance
        (44, None, 4096, False),
    ],
)
def test_given_counts_that_a_cache_or_another_vocabulary_explains_when_the_answer_ends_then_nothing_is_told(
    tokens: int, counted: int | None, window: int, newer: bool
) -> None:
    assert notices(tokens, counted, window=window, newer=newer) == []


def test_given_an_explicit_window_when_the_answer_ends_then_that_one_counts() -> None:
    assert notices(11_000, 4_000, window=32_000, num_ctx=4096) != []
    assert notices(11_000, 4_000, window=32_000, options={"num_ctx": 4096}) != []
