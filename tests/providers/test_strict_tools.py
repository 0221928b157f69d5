"""Tools in strict mode, from the options to the call, and what is told of those that cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deepstrike import (
    ConfigError,
    LocalExecutionPlane,
    OpenAICompatibleProvider,
    OpenAIProvider,
    RuntimeOptions,
    RuntimeRunner,
    ToolResultEvent,
    tool,
)
from deepstrike.providers.base import Finish, ToolCall
from deepstrike.providers.strictness import strict_report
from deepstrike.stream import NoticeEvent
from deepstrike.testing.server import ModelServer

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@tool(effect="read")
def weather(city: str, days: int = 1) -> str:
    """The weather."""
    return f"{city}, {days}"


@tool(effect="read")
def anything(fields: dict[str, str]) -> str:
    """Anything."""
    return "ok"


PLANE = LocalExecutionPlane().register(weather, anything)


def test_given_tools_when_reported_then_each_says_what_strict_mode_cannot() -> None:
    assert strict_report(PLANE.specs()) == {"anything": "it has an object with free names", "weather": ""}


async def test_given_strict_tools_when_run_then_schemas_are_closed_nulls_mean_left_out_and_the_rest_is_told() -> None:
    arguments = json.dumps({"city": "Ulm", "days": None})
    async with ModelServer([[ToolCall("c1", "weather", arguments), Finish("tool_calls")], "done"]) as server:
        provider = OpenAIProvider(api_key="k", model="gpt-5-mini", api="chat", base_url=server.base_url)
        options = RuntimeOptions(provider=provider, execution_plane=PLANE, extensions={"strict_tools": True})
        events = [event async for event in RuntimeRunner(options).run_streaming("go")]
        tools: Any = server.requests[0].body["tools"]
        sent = {each["function"]["name"]: each["function"] for each in tools}

    notice, *_ = [event for event in events if isinstance(event, NoticeEvent)]
    (result,) = [event for event in events if isinstance(event, ToolResultEvent)]
    assert (notice.code, notice.message) == (
        "loose_tool",
        "the tool 'anything' is not sent in strict mode: it has an object with free names",
    )
    assert (result.error_kind, result.content) == (None, "Ulm, 1")
    assert ("strict" in sent["anything"], sent["weather"]["strict"]) == (False, True)
    assert sent["weather"]["parameters"]["required"] == ["city", "days"]


def test_given_a_server_that_gets_no_form_when_the_native_way_is_wanted_then_the_options_are_refused() -> None:
    options: dict[str, Any] = {"output_type": SCHEMA, "output_mode": "native"}

    with pytest.raises(ConfigError, match='output_mode="native" needs a service that takes the schema of an answer'):
        RuntimeOptions(provider=OpenAICompatibleProvider("http://127.0.0.1:9/v1", "m"), **options)
    RuntimeOptions(provider=OpenAICompatibleProvider("http://127.0.0.1:9/v1", "m", profile="openai"), **options)
    RuntimeOptions(provider=OpenAIProvider(api_key="k", base_url="http://127.0.0.1:9/v1"), **options)
