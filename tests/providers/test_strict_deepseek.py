"""DeepSeek's tools in strict mode: the address, the form of their schemas, all or none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deepstrike import (
    DeepSeekProvider,
    FolderKnowledge,
    InMemoryDreamStore,
    LocalExecutionPlane,
    RuntimeOptions,
    RuntimeRunner,
    ToolResultEvent,
    tool,
)
from deepstrike.providers.base import Finish, ToolCall
from deepstrike.providers.deepseek import DEEPSEEK
from deepstrike.providers.service import ServiceProvider
from deepstrike.providers.strictness import strict_report
from deepstrike.stream import NoticeEvent
from deepstrike.testing.server import ModelServer, Received

TEXT: dict[str, Any] = {"type": "string"}


def schema(properties: dict[str, Any], required: list[str], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, **more}


def take(**arguments: object) -> str:
    return json.dumps(arguments, sort_keys=True)


def plane_of(*schemas: dict[str, Any]) -> LocalExecutionPlane:
    plane = LocalExecutionPlane()
    for number, parameters in enumerate(schemas):
        plane.register(tool(name=f"t{number}", description="A tool.", parameters=parameters)(take))
    return plane


def at_home(server: ModelServer, base: str = "/v1") -> ServiceProvider:
    """The service as it is at its own address, which here is the test's server."""
    profile = replace(DEEPSEEK, hosts=("127.0.0.1",))
    return ServiceProvider(profile, "k", "deepseek-flash", base_url=server.base_url.removesuffix("/v1") + base)


def sent_tools(request: Received) -> dict[str, dict[str, Any]]:
    tools: Any = request.body["tools"]
    return {each["function"]["name"]: each["function"] for each in tools}


async def told(provider: ServiceProvider, plane: LocalExecutionPlane, *, strict: bool = True, **more: Any) -> list[str]:
    extensions = {"strict_tools": True} if strict else {}
    options = RuntimeOptions(provider=provider, execution_plane=plane, extensions=extensions, **more)
    events = [event async for event in RuntimeRunner(options).run_streaming("go")]
    return [event.message for event in events if isinstance(event, NoticeEvent)]


@pytest.mark.parametrize("base", ["", "/v1", "/beta"])
async def test_given_tools_that_fit_when_sent_to_the_vendor_then_all_are_strict_on_its_beta_path(base: str) -> None:
    async with ModelServer() as server:
        notices = await told(at_home(server, base), plane_of(schema({"city": TEXT}, ["city"])))
    assert (server.requests[0].path, notices) == ("/beta/chat/completions", [])
    assert all(each["strict"] is True for each in sent_tools(server.requests[0]).values())


async def test_given_every_tool_of_the_runtimes_own_when_sent_then_all_are_strict(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\nname: a\ndescription: A.\n---\nDo it.\n")
    more: dict[str, Any] = {"skill_dir": tmp_path, "sub_agents": True, "dream_store": InMemoryDreamStore()}
    more |= {"knowledge_source": FolderKnowledge(tmp_path), "agent_id": "a"}
    async with ModelServer() as server:
        assert await told(at_home(server), plane_of(schema({"city": TEXT}, ["city"])), **more) == []
    own = {name for name, each in sent_tools(server.requests[0]).items() if each["strict"]} - {"t0"}
    assert own >= {"delegate", "knowledge", "memory", "recall", "skill", "update_plan"}


async def test_given_no_wish_for_it_when_sent_to_the_vendor_then_the_path_is_as_given() -> None:
    async with ModelServer() as server:
        await told(at_home(server), plane_of(schema({"city": TEXT}, ["city"])), strict=False)
    assert server.requests[0].path == "/v1/chat/completions"
    assert not any("strict" in each for each in sent_tools(server.requests[0]).values())


async def test_given_a_server_elsewhere_when_strict_tools_are_sent_then_its_path_stays() -> None:
    async with ModelServer() as server:
        provider = DeepSeekProvider(api_key="k", base_url=server.base_url)
        assert await told(provider, plane_of(schema({"city": TEXT}, ["city"]))) == []
    assert server.requests[0].path == "/v1/chat/completions"
    assert sent_tools(server.requests[0])["t0"]["strict"] is True


async def test_given_one_tool_that_does_not_fit_when_sent_then_none_is_strict_and_it_is_named() -> None:
    free = {"type": "object", "additionalProperties": TEXT}
    async with ModelServer() as server:
        notices = await told(at_home(server), plane_of(schema({"city": TEXT}, ["city"]), free))
    assert server.requests[0].path == "/v1/chat/completions"
    assert not any("strict" in each for each in sent_tools(server.requests[0]).values())
    assert notices == [
        "the tool 't1' is not sent in strict mode: it has an object with free names",
        "no tool is sent in strict mode, for the service takes all tools of a request so, or none: leave out 't1', or "
        "change what they take",
    ]


async def test_given_schemas_of_all_kinds_when_sent_then_they_are_plain_and_limits_stand_in_the_text() -> None:
    given = schema(
        {
            "day": {"$ref": "#/$defs/day"},
            "tags": {"type": ["array", "null"], "items": TEXT, "maxItems": 3},
            "kind": {"const": "a", "title": "Kind"},
            "when": {"type": "string", "format": "date", "minLength": 10},
            "host": {"type": "string", "format": "hostname", "pattern": "^a"},
            "count": {"type": ["integer", "null"], "minimum": 1},
        },
        ["day", "tags", "kind", "when", "host"],
        title="All",
        **{"$defs": {"day": schema({"n": {"anyOf": [{"$ref": "#/$defs/number"}, TEXT]}}, ["n"]), "number": NUMBER}},
    )
    async with ModelServer() as server:
        await told(at_home(server), plane_of(given))
    made = sent_tools(server.requests[0])["t0"]["parameters"]
    assert made == {
        "type": "object",
        "properties": {
            "day": {
                "type": "object",
                "properties": {"n": {"anyOf": [NUMBER, TEXT]}},
                "required": ["n"],
                "additionalProperties": False,
            },
            "tags": {
                "anyOf": [{"type": "array", "items": TEXT, "description": '{"maxItems": 3}'}, {"type": "null"}],
            },
            "kind": {"type": "string", "enum": ["a"]},
            "when": {"type": "string", "description": '{"format": "date", "minLength": 10}'},
            "host": {"type": "string", "format": "hostname", "pattern": "^a"},
            "count": {"type": ["integer", "null"], "minimum": 1},
        },
        "required": ["day", "tags", "kind", "when", "host", "count"],
        "additionalProperties": False,
    }


NUMBER: dict[str, Any] = {"type": "integer", "minimum": 0}
TREE = {"$defs": {"node": schema({"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}, ["next"])}}
DOUBLING = {
    f"d{at}": schema({"a": {"$ref": f"#/$defs/d{at + 1}"}, "b": {"$ref": f"#/$defs/d{at + 1}"}}, ["a", "b"])
    for at in range(12)
} | {"d12": TEXT}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (schema({"n": {"$ref": "#/$defs/node"}}, ["n"], **TREE), "it refers to itself"),
        (schema({"n": {"$ref": "#"}}, ["n"]), "it refers to '#'"),
        (schema({"n": {"$ref": "#/properties/m"}, "m": TEXT}, ["n"]), "it refers to '#/properties/m'"),
        (schema({"n": schema({}, [])}, ["n"]), "it has an object without properties"),
        (
            schema({"n": {"$ref": "#/$defs/d0"}}, ["n"], **{"$defs": DOUBLING}),
            "it has more than 2,000 parts once its references are written out",
        ),
        (
            schema({"n": {"$ref": "#/$defs/t", "minLength": 2}}, ["n"], **{"$defs": {"t": {**TEXT, "minLength": 1}}}),
            "it has 'minLength' beside a reference to what has it too",
        ),
        (
            schema({"n": {"type": ["object", "null"], "enum": [None]}}, ["n"]),
            "it has 'enum' beside types of which one is an object or an array",
        ),
    ],
)
def test_given_what_its_strict_mode_cannot_say_when_reported_then_the_reason_is_told(
    given: dict[str, Any], why: str
) -> None:
    assert strict_report(plane_of(given).specs(), DeepSeekProvider(api_key="k")) == {"t0": why}


def test_given_a_tree_when_reported_then_only_the_service_that_cannot_say_it_objects() -> None:
    given = plane_of(schema({"n": {"$ref": "#/$defs/node"}}, ["n"], **TREE)).specs()
    assert strict_report(given) == {"t0": ""}


async def test_given_a_null_for_a_parameter_left_out_when_called_then_the_tool_gets_its_default() -> None:
    call = ToolCall("c1", "t0", json.dumps({"city": "Ulm", "days": None}))
    async with ModelServer([[call, Finish("tool_calls")], "done"]) as server:
        options = RuntimeOptions(
            provider=at_home(server),
            execution_plane=plane_of(schema({"city": TEXT, "days": NUMBER}, ["city"])),
            extensions={"strict_tools": True},
        )
        events = [event async for event in RuntimeRunner(options).run_streaming("go")]
    (result,) = [event for event in events if isinstance(event, ToolResultEvent)]
    assert (result.error_kind, result.content) == (None, '{"city": "Ulm"}')
    assert {request.path for request in server.requests} == {"/beta/chat/completions"}
