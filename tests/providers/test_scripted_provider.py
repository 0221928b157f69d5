"""The model that says what a test tells it to."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from wires import ask, collect, listen

from deepstrike.errors import ConfigError, Overloaded, ProviderError
from deepstrike.providers.base import Finish, ModelEvent, ModelRequest, ToolCall
from deepstrike.providers.scripted import ScriptedProvider
from deepstrike.stream import TextDelta
from deepstrike.testing.clock import ManualClock
from deepstrike.wire.message import Usage


async def test_given_a_text_when_asked_then_it_is_an_answer_with_usage_and_finish() -> None:
    model = ScriptedProvider(["hello"])
    expected: list[ModelEvent] = [TextDelta("hello"), Usage(0, 0), Finish("stop")]
    assert await collect(model.stream(ask())) == expected


async def test_given_events_when_asked_then_only_what_is_missing_is_added() -> None:
    call = ToolCall("a", "add", "{}")
    model = ScriptedProvider([[call], [Usage(1, 2), Finish("length")], [TextDelta("x"), Usage(3, 4)]])
    assert [await collect(model.stream(ask())) for _ in range(3)] == [
        [call, Usage(0, 0), Finish("tool_calls")],
        [Usage(1, 2), Finish("length")],
        [TextDelta("x"), Usage(3, 4), Finish("stop")],
    ]


async def test_given_an_incomplete_script_when_wanted_then_nothing_is_added() -> None:
    assert await collect(ScriptedProvider([[TextDelta("x")]], complete=False).stream(ask())) == [TextDelta("x")]


async def test_given_an_exception_or_a_function_when_asked_then_it_is_raised_or_called_with_the_request() -> None:
    def answer(request: ModelRequest) -> str:
        return request.system_stable

    model = ScriptedProvider([Overloaded("busy"), answer, lambda _request: Overloaded("again")])
    with pytest.raises(Overloaded, match="busy"):
        await collect(model.stream(ask()))
    assert (await collect(model.stream(ask())))[0] == TextDelta("Be brief.")
    with pytest.raises(Overloaded, match="again"):
        await collect(model.stream(ask()))


async def test_given_a_script_when_it_is_used_up_then_the_error_says_so_and_requests_are_kept() -> None:
    model = ScriptedProvider(["one"])
    requests = [ask("1"), ask("2")]
    await collect(model.stream(requests[0]))
    with pytest.raises(ProviderError, match="1 replies and this is request 2") as caught:
        await collect(model.stream(requests[1]))
    assert (caught.value.code, model.requests) == ("script_exhausted", requests)


async def test_given_that_the_last_reply_repeats_when_asked_again_then_it_comes_again() -> None:
    model = ScriptedProvider(["one", "two"], repeat_last=True)
    texts = [(await collect(model.stream(ask())))[0] for _ in range(4)]
    assert texts == [TextDelta("one"), TextDelta("two"), TextDelta("two"), TextDelta("two")]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"replies": None}, "replies must be a list of replies"),
        ({"replies": 5}, "replies must be a list of replies"),
        ({"replies": "hello"}, "replies must be a list of replies"),
        ({"replies": ["a", 5]}, "reply 2 must be a text, a list of model events or an exception, not 5"),
        ({"replies": [None]}, "reply 1 must be a text, a list of model events or an exception, not None"),
        ({"replies": [b"a"]}, "reply 1 must be a text"),
        ({"replies": [["a"]]}, "reply 1 holds 'a', which is no model event"),
        ({"delay": float("nan")}, "delay must be a number of seconds from 0 to 1e9, not nan"),
        ({"delay": -1}, "delay must be"),
        ({"delay": 10**5000}, "delay must be"),
        ({"info": 5}, "info must be a ModelInfo(…) or None, not 5"),
    ],
)
def test_given_a_wrong_value_when_made_then_the_error_names_it(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        ScriptedProvider(**{"replies": ["a"], **wrong})


async def test_given_a_function_that_gives_no_reply_when_asked_then_the_error_says_so() -> None:
    wrong: Any = lambda _request: 5  # noqa: E731
    with pytest.raises(ConfigError, match="what a reply's function gave must be a text"):
        await collect(ScriptedProvider([wrong]).stream(ask()))


async def test_given_a_delay_when_the_clock_moves_then_each_event_comes_at_its_time() -> None:
    with ManualClock() as clock:
        seen: list[ModelEvent] = []
        task = asyncio.ensure_future(listen(ScriptedProvider(["hello"], delay=2).stream(ask()), seen))
        lengths = []
        for _ in range(3):
            await clock.advance(2)
            lengths.append(len(seen))
        await task
    assert lengths == [1, 2, 3]
