"""The demo model picks tools and arguments by the words of the goal, calls each once and answers from the results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepstrike.providers.base import Finish, ModelEvent, ModelRequest, ToolCall
from deepstrike.providers.demo import DemoProvider
from deepstrike.stream import TextDelta
from deepstrike.wire.message import AssistantBlock, CallBlock, ResultBlock, Text, ToolSpec, Turn, Usage, UserBlock

if TYPE_CHECKING:
    from collections.abc import Sequence

INTEGER, NUMBER, STRING, BOOLEAN = ({"type": kind} for kind in ("integer", "number", "string", "boolean"))


def spec(name: str, description: str, parameters: dict[str, object], required: list[str] | None = None) -> ToolSpec:
    schema = {
        "type": "object",
        "properties": parameters,
        "required": list(parameters) if required is None else required,
    }
    return ToolSpec(name, description, json.dumps(schema))


ADD = spec("add", "Add two numbers.", {"x": INTEGER, "y": INTEGER})
MULTIPLY = spec("multiply", "Multiply two numbers.", {"a": NUMBER, "b": NUMBER})
NOW = spec("now", "Tell the date and time.", {})
WEATHER = spec("get_weather", "The weather in a city.", {"city": STRING})
READ = spec(
    "read_file",
    "Read a text file.",
    {"path": STRING, "offset": INTEGER, "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
    ["path"],
)
TRANSLATE = spec("translate", "Translate a text.", {"text": STRING, "language": STRING})
LIGHT = ToolSpec(
    "switchLight",
    "Switch a light.",
    '{"type":"object","properties":{"room":{"$ref":"#/$defs/Room"},"on":{"type":"boolean"}},'
    '"required":["room","on"],"$defs":{"Room":{"enum":["hall","attic"]}}}',
)
AVERAGE = spec("average", "The mean of numbers.", {"numbers": {"type": "array", "items": NUMBER}})
TOOLS = (ADD, AVERAGE, WEATHER, MULTIPLY, NOW, READ, LIGHT, TRANSLATE)


async def ask(turns: Sequence[Turn], tools: tuple[ToolSpec, ...] = TOOLS) -> list[ModelEvent]:
    request = ModelRequest("", "", turns, tools, {})
    return [event async for event in DemoProvider().stream(request)]


def goal(text: str) -> UserBlock:
    return UserBlock((Text(text),))


def calls(events: list[ModelEvent]) -> list[tuple[str, object]]:
    return [(event.name, json.loads(event.arguments_text)) for event in events if isinstance(event, ToolCall)]


def said(events: list[ModelEvent]) -> str:
    return "".join(event.delta for event in events if isinstance(event, TextDelta))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("What is 17 + 28?", [("add", {"x": 17, "y": 28})]),
        ("Adding -3 and 1,000, please", [("add", {"x": -3, "y": 1000})]),
        ("add 99999999999999999999 and 1", [("add", {"x": 99999999999999999999, "y": 1})]),
        ("take 5 and 6, then add them", [("add", {"x": 5, "y": 6})]),
        ("add 2 and 3 and tell the time", [("add", {"x": 2, "y": 3}), ("now", {})]),
        ("add 2 and 3 and add 4 and 5", [("add", {"x": 2, "y": 3}), ("add", {"x": 4, "y": 5})]),
        ("add 2 and 3. Add 2 and 3!", [("add", {"x": 2, "y": 3})]),
        ("2.5 × 3", [("multiply", {"a": 2.5, "b": 3})]),
        ("What's the weather in New York?", [("get_weather", {"city": "New York"})]),
        ("Summarize docs/README.md", [("read_file", {"path": "docs/README.md"})]),
        ("read README.md with limit 5", [("read_file", {"path": "README.md", "limit": 5})]),
        ("translate 'good and bad' to French", [("translate", {"text": "good and bad", "language": "French"})]),
        ("translate good morning to French", [("translate", {"text": "good morning", "language": "French"})]),
        ("switch the light in the attic off", [("switchLight", {"room": "attic", "on": False})]),
        ("the average of 1, 2 and 6.5", [("average", {"numbers": [1, 2, 6.5]})]),
    ],
)
async def test_given_a_goal_that_names_tools_when_asked_then_it_calls_them(
    text: str, wanted: list[tuple[str, object]]
) -> None:
    events = await ask([goal(text)])
    assert (calls(events), events[-1]) == (wanted, Finish("tool_calls"))


async def test_given_a_result_when_asked_again_then_it_answers_from_it_in_a_few_pieces() -> None:
    asked = AssistantBlock((CallBlock("demo_0", "add", '{"x": 17, "y": 28}'),))
    events = await ask([goal("What is 17 + 28?"), asked, ResultBlock("demo_0", "add", (Text("45"),))])
    assert events == [
        TextDelta("The answer "),
        TextDelta("is 45, "),
        TextDelta("by the "),
        TextDelta("tool add."),
        Usage(input=11, output=8),
        Finish("stop"),
    ]


async def test_given_several_results_when_asked_again_then_each_is_told_with_its_failure() -> None:
    events = await ask(
        [
            goal("add 2 and 3 and tell the time"),
            AssistantBlock((CallBlock("a", "add", "{}"), CallBlock("b", "now", "{}"))),
            ResultBlock("a", "add", (Text("5"),)),
            ResultBlock("b", "now", (Text("no clock"),), is_error=True),
        ]
    )
    assert said(events) == "add: 5\nThe tool now failed: no clock"


async def test_given_a_second_goal_when_asked_then_the_first_ones_results_do_not_count() -> None:
    first: list[Turn] = [
        goal("add 1 and 2"),
        AssistantBlock((CallBlock("demo_0", "add", "{}"),)),
        ResultBlock("demo_0", "add", ()),
    ]
    events = await ask([*first, AssistantBlock((Text("3"),)), goal("add 3 and 4")])
    assert [event for event in events if isinstance(event, ToolCall)] == [ToolCall("demo_1", "add", '{"x": 3, "y": 4}')]


async def test_given_an_interrupted_answer_when_it_goes_on_then_the_goal_is_still_the_users() -> None:
    events = await ask(
        [goal("add 1 and 2"), AssistantBlock((Text("The"),)), goal("The previous reply was interrupted; go on.")]
    )
    assert calls(events) == [("add", {"x": 1, "y": 2})]


async def test_given_no_matching_tool_when_asked_then_it_says_what_it_is_and_sees() -> None:
    assert said(await ask([goal("Write me a poem")], (ADD, NOW))) == (
        "I am the demo model built into deepstrike: a few fixed rules, no language model, so all I can do is call a "
        "tool that your words name. I see the tools add, now. Choose a real model for anything else."
    )


async def test_given_no_tools_when_asked_then_it_says_so() -> None:
    events = await ask([goal("What is 17 + 28?")], ())
    assert "no language model" in said(events)
    assert "I see no tools." in said(events)


async def test_given_too_few_values_when_asked_then_it_names_what_is_missing() -> None:
    events = await ask([goal("add 5")])
    assert (calls(events), said(events)) == (
        [],
        "Your words name the tool add, but I find no value for its parameter 'y' in them.",
    )


@given(st.text(max_size=300))
async def test_given_any_text_when_asked_then_it_ends_and_writes_valid_json(text: str) -> None:
    events = await ask([goal(text)])
    assert isinstance(events[-1], Finish)
    assert all(isinstance(arguments, dict) for _name, arguments in calls(events))


@pytest.mark.parametrize("text", ["." * 50_000, "a" * 50_000, "1" * 50_000, "'" * 50_000, "add 1e999 and 2"])
async def test_given_a_hostile_text_when_asked_then_it_ends(text: str) -> None:
    assert isinstance((await ask([goal(text)]))[-1], Finish)


@pytest.mark.parametrize(
    "parameters",
    [
        '{"type":"object"}',
        '{"type":"object","properties":{"x":true},"required":["x","gone"]}',
        '{"properties":{"x":{"$ref":"#/$defs/x"}},"$defs":{"x":{"$ref":"#/$defs/x"}},"required":["x"]}',
    ],
)
async def test_given_an_odd_schema_when_asked_then_it_ends(parameters: str) -> None:
    assert isinstance((await ask([goal("use odd 5")], (ToolSpec("odd", "", parameters),)))[-1], Finish)
