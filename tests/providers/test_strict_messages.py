"""Claude's tools in strict mode: the form of their schemas, and the service's bounds over a whole request."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from anthropic_wire import answer, text

from deepstrike import AnthropicProvider, LocalExecutionPlane, RuntimeOptions, RuntimeRunner, tool
from deepstrike.stream import NoticeEvent
from deepstrike.testing.server import ModelServer, Raw

NUMBER: dict[str, Any] = {"type": "integer"}


def schema(properties: dict[str, Any], required: list[str], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, **more}


def take(**arguments: object) -> str:
    return str(arguments)


@dataclass
class Answer:
    """A structured answer with an optional part that may be null."""

    city: str
    note: str | None = None


async def sent(
    *schemas: dict[str, Any], strict: bool = True, output_type: type | None = None
) -> tuple[list[dict[str, Any]], list[str]]:
    """The tools `t00`, `t01`, … as they are sent, behind `recall`, which is strict too, and what is told of them."""
    plane = LocalExecutionPlane()
    for number, parameters in enumerate(schemas):
        plane.register(tool(name=f"t{number:02}", description="A tool.", parameters=parameters)(take))
    async with ModelServer([Raw([answer(text(0, "done" if output_type is None else '{"city": "Rome"}'))])]) as server:
        provider = AnthropicProvider(api_key="k", model="claude-sonnet-5-5", base_url=server.base_url)
        extensions = {"strict_tools": True} if strict else {}
        options = RuntimeOptions(
            provider=provider, execution_plane=plane, extensions=extensions, output_type=output_type
        )
        events = [event async for event in RuntimeRunner(options).run_streaming("go")]
        tools: Any = server.requests[0].body["tools"]
    own = [each for each in tools if each["name"].startswith("t")]
    return own, [event.message for event in events if isinstance(event, NoticeEvent)]


async def test_given_strict_tools_when_sent_then_objects_are_closed_and_optional_ones_stay_optional() -> None:
    deep = schema({"n": {**NUMBER, "minimum": 1}}, [])
    (made,), told = await sent(schema({"city": {"type": "string"}, "deep": deep}, ["city"]))
    assert (made["strict"], told) == (True, [])
    inner = made["input_schema"]["properties"]["deep"]
    assert made["input_schema"]["additionalProperties"] is inner["additionalProperties"] is False
    assert made["input_schema"]["required"] == ["city"]
    assert inner["properties"]["n"] == {"type": "integer", "description": '{"minimum":1}'}


async def test_given_no_wish_for_it_when_sent_then_schemas_are_as_they_were() -> None:
    given = schema({"n": {**NUMBER, "minimum": 1}}, [])
    (made,), told = await sent(given, strict=False)
    assert (made["input_schema"], "strict" in made, told) == (given, False, [])


TREE = {"$defs": {"node": schema({"next": {"$ref": "#/$defs/node"}}, ["next"])}}
CIRCLE = {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": schema({"a": {"$ref": "#/$defs/a"}}, ["a"])}}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (schema({}, [], additionalProperties={"type": "string"}), "it has an object with free names"),
        (schema({"n": {"$ref": "#/$defs/node"}}, ["n"], **TREE), "it refers to itself"),
        (schema({"n": {"$ref": "#/$defs/a"}}, ["n"], **CIRCLE), "it refers to itself"),
        (schema({"n": {"$ref": "#"}}, ["n"]), "it refers to '#'"),
        (schema({f"n{at}": NUMBER for at in range(25)}, []), "a request has at most 24 optional parameters"),
        (
            schema(
                {f"n{at}": {"anyOf": [NUMBER, {"type": "null"}]} for at in range(17)}, [f"n{at}" for at in range(17)]
            ),
            "a request has at most 16 parameters of several types",
        ),
    ],
)
async def test_given_what_strict_mode_cannot_say_when_sent_then_it_is_loose_and_told(
    given: dict[str, Any], why: str
) -> None:
    before = json.dumps(given)
    (loose, strict), told = await sent(given, schema({"n": NUMBER}, ["n"]))
    assert told == [f"the tool 't00' is not sent in strict mode: {why}"]
    assert ("strict" in loose, strict["strict"], json.dumps(given)) == (False, True, before)


async def test_given_more_tools_than_may_be_strict_when_sent_then_the_first_ones_are() -> None:
    tools, told = await sent(*[schema({"n": NUMBER}, ["n"])] * 21)
    assert [each.get("strict", False) for each in tools] == [True] * 19 + [False] * 2
    assert "the tool 't20' is not sent in strict mode: a request has at most 20 strict tools" in told


async def test_given_optional_parameters_when_they_are_many_in_all_then_what_still_fits_is_strict() -> None:
    def optional(count: int) -> dict[str, Any]:
        return schema({f"n{at}": NUMBER for at in range(count)}, [])

    tools, _ = await sent(optional(20), optional(4), optional(3))
    assert [each.get("strict", False) for each in tools] == [True, False, True]


async def test_given_a_structured_answer_when_tools_are_strict_then_its_optional_parts_count_too() -> None:
    full = schema({f"n{at}": NUMBER for at in range(23)}, [])  # `recall` has the 24th

    [alone], _ = await sent(full)
    [beside], told = await sent(full, output_type=Answer)

    assert (alone.get("strict"), beside.get("strict")) == (True, None)
    assert told == ["the tool 't00' is not sent in strict mode: a request has at most 24 optional parameters"]
