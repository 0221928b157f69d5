"""Names of tools and ids of calls as services take them."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepstrike.providers.base import ModelRequest
from deepstrike.providers.compatible import OpenAICompatibleProvider
from deepstrike.providers.dialects.names import names_back, wire_name
from deepstrike.providers.openai import OpenAIProvider
from deepstrike.providers.service import ServiceProvider
from deepstrike.wire.message import AssistantBlock, CallBlock, ResultBlock, Text, ToolSpec, UserBlock

KEY = "sk-test-key-1"
LONG = "toolu_" + "x" * 50


@pytest.mark.parametrize(
    ("name", "front"),
    [
        ("add", "add"),
        ("math.add", "math_add_"),
        ("21st_magic", "tool_21st_magic_"),
        ("-x", "tool_-x_"),
        ("_x", "tool__x_"),
        ("ünïcode", "tool__n_code_"),
    ],
)
def test_given_a_name_when_it_goes_out_then_it_begins_with_a_letter_and_can_be_read(name: str, front: str) -> None:
    assert wire_name(name).startswith(front)


@given(st.text(min_size=1))
def test_given_any_name_when_it_goes_out_then_every_service_takes_it_and_it_comes_back(name: str) -> None:
    wire = wire_name(name)
    assert re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_-]{0,63}", wire)
    assert names_back([ToolSpec(name, "", "{}")]).get(wire, wire) == name


def ids(provider: ServiceProvider, call_id: str, dialect: str = "kimi") -> tuple[str, str]:
    """The id in the call and in its result, as they go out."""
    reply = AssistantBlock((CallBlock(call_id, "add", "{}"),), dialect, "m")
    turns = (UserBlock((Text("a"),)), reply, ResultBlock(call_id, "add", (Text("3"),)))
    messages = json.loads(provider._question(ModelRequest("", "", turns, (), {})).body)["messages"]
    return messages[1]["tool_calls"][0]["id"], messages[2]["tool_call_id"]


def at_openai(profile: str) -> ServiceProvider:
    if profile == "chat":
        return OpenAIProvider(KEY, "gpt-4.1", api="chat")
    url = "https://mine.openai.azure.com/openai/v1" if profile == "azure" else "https://api.openai.com/v1"
    return OpenAICompatibleProvider(url, "m", KEY, profile=profile)


@pytest.mark.parametrize("profile", ["chat", "openai", "azure"])
def test_given_a_long_id_of_another_service_when_it_goes_to_openai_then_it_is_shortened_on_both_sides(
    profile: str,
) -> None:
    called, answered = ids(at_openai(profile), LONG)
    assert called == answered
    assert re.fullmatch(r"call_[0-9a-zA-Z]{24}", called)
    assert ids(at_openai(profile), LONG + "y")[0] != called
    assert ids(at_openai(profile), "x" * 40) == ("x" * 40, "x" * 40)


def test_given_a_long_id_of_a_gateways_own_when_it_goes_back_then_it_is_as_it_came() -> None:
    gateway = OpenAIProvider(KEY, "m", base_url="http://127.0.0.1:1/v1")
    assert ids(gateway, LONG, "openai-chat") == (LONG, LONG)
    assert len(ids(gateway, LONG)[0]) == 29
