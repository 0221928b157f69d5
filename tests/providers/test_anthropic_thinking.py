"""How each generation of models is told to think."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from anthropic_wire import SOURCE, ask_for, body_of

from deepstrike.errors import ConfigError
from deepstrike.providers.anthropic import ANTHROPIC, AnthropicProvider
from deepstrike.providers.dialects.messages.dialect import MessagesDialect
from deepstrike.providers.dialects.names import wire_name
from deepstrike.providers.extensions import wire_fields
from deepstrike.providers.models import lookup
from deepstrike.wire.message import AssistantBlock, CallBlock, Opaque, ResultBlock, Text, ToolSpec, UserBlock
from deepstrike.wire.policy import Price

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepstrike.wire.message import Turn

ADD = ToolSpec("add", "Add.", '{"type":"object"}')
BINDING = {"prefix_mismatch_behavior": "drop_block"}
SHOWN = {"type": "adaptive", "display": "summarized"}
HI = UserBlock((Text("hi"),))


def thinking_of(
    model: str, extensions: Mapping[str, object], limit: int = 4_000, turns: Sequence[Turn] = (HI,)
) -> object:
    asked = ask_for(turns, info=lookup(model, ANTHROPIC.models), limit=limit, extensions=extensions)
    return body_of(asked).get("thinking")


@pytest.mark.parametrize(
    ("model", "extensions", "field"),
    [
        # A budget only.
        ("claude-haiku-4-5-20251001", {}, None),
        ("claude-haiku-4-5", {"enable_thinking": True}, {"type": "enabled", "budget_tokens": 2_000}),
        ("claude-haiku-4-5", {"thinking_budget": 1_500}, {"type": "enabled", "budget_tokens": 1_500}),
        ("claude-haiku-4-5", {"thinking_budget": 9_000}, {"type": "enabled", "budget_tokens": 3_999}),
        ("claude-haiku-4-5", {"thinking_budget": 5}, {"type": "enabled", "budget_tokens": 1_024}),
        ("claude-haiku-4-5", {"enable_thinking": False, "thinking_budget": 2_000}, None),
        # Either.
        ("claude-sonnet-4-6", {}, None),
        ("claude-sonnet-4-6", {"enable_thinking": True}, {"type": "adaptive"}),
        ("claude-sonnet-4-6", {"thinking_budget": 2_000}, {"type": "enabled", "budget_tokens": 2_000}),
        # As the model sees fit, off by itself.
        ("claude-opus-4-8", {}, None),
        ("claude-opus-4-8", {"enable_thinking": True}, SHOWN),
        ("claude-opus-4-8", {"enable_thinking": True, "expose_reasoning": False}, {"type": "adaptive"}),
        # On by itself.
        ("claude-opus-5", {}, SHOWN),
        ("claude-opus-5", {"enable_thinking": False}, {"type": "disabled"}),
        ("claude-opus-5", {"reasoning_effort": "none"}, {"type": "disabled"}),
        ("claude-haiku-5-5", {}, {**SHOWN, "block_binding": BINDING}),
        ("claude-haiku-5-5", {"expose_reasoning": False}, {"type": "adaptive", "block_binding": BINDING}),
        ("claude-haiku-5-5", {"enable_thinking": False}, {"type": "disabled"}),
        ("claude-sonnet-5-5", {}, {**SHOWN, "block_binding": BINDING}),
        ("claude-sonnet-5-5", {"enable_thinking": False}, {"type": "between_tools"}),
        # Always on.
        ("claude-opus-5-5", {"enable_thinking": False}, {**SHOWN, "block_binding": BINDING}),
        ("claude-fable-5", {}, SHOWN),
        # Not in the table.
        ("claude-new", {}, None),
        ("claude-new", {"enable_thinking": True}, {"type": "adaptive"}),
        ("claude-new", {"enable_thinking": False}, {"type": "disabled"}),
        ("claude-new", {"thinking_budget": 2_000}, {"type": "enabled", "budget_tokens": 2_000}),
    ],
)
def test_given_a_model_and_extensions_when_encoded_then_it_is_told_to_think_so(
    model: str, extensions: dict[str, object], field: object
) -> None:
    assert thinking_of(model, extensions) == field


def test_given_a_limit_too_low_for_a_budget_when_encoded_then_the_model_does_not_think() -> None:
    assert thinking_of("claude-haiku-4-5", {"enable_thinking": True}, limit=1_024) is None
    assert thinking_of("claude-haiku-4-5", {"enable_thinking": True}, limit=1_025) == {
        "type": "enabled",
        "budget_tokens": 1_024,
    }


def test_given_a_field_in_extra_body_when_encoded_then_it_has_the_last_word() -> None:
    own = {"thinking": {"type": "adaptive", "display": "full"}, "max_tokens": 77}
    extensions = {"extra_body": own, "enable_thinking": False}
    fields = wire_fields(extensions, ANTHROPIC.fields)
    body = body_of(ask_for([HI], extensions=extensions, fields=fields, info=lookup("claude-opus-5", ANTHROPIC.models)))
    assert (body["thinking"], body["max_tokens"]) == (own["thinking"], 77)


def test_given_a_tool_loop_of_another_service_when_thinking_goes_by_a_budget_then_it_waits_for_a_new_turn() -> None:
    kept = Opaque(SOURCE, '{"type":"thinking","thinking":"hm","signature":"s"}')
    foreign = AssistantBlock((CallBlock("c1", "add", "{}"),), "gemini", "g")
    own = AssistantBlock((kept, CallBlock("c2", "add", "{}")), SOURCE, "m")
    results = [ResultBlock(f"c{n}", "add", (Text("r"),)) for n in (1, 2)]
    budget = {"type": "enabled", "budget_tokens": 2_000}

    def field(*turns: Turn) -> object:
        return thinking_of("claude-haiku-4-5", {"enable_thinking": True}, turns=(HI, *turns))

    assert field(foreign, results[0]) is None
    assert field(foreign, results[0], HI) is None
    assert field(foreign, results[0], AssistantBlock((Text("done"),), SOURCE, "m"), HI) == budget
    assert field(own, results[1]) == budget
    assert field(own, results[1], foreign, results[0]) == budget


def admitted(model: str, **extensions: object) -> dict[str, object]:
    return dict(AnthropicProvider("sk-ant-test", model).admit(extensions))


@pytest.mark.parametrize(
    ("model", "extensions", "dropped"),
    [
        ("claude-opus-5", {"temperature": 0.1, "stop": "x"}, "temperature"),
        ("claude-opus-5", {"thinking_budget": 2_000, "stop": "x"}, "thinking_budget"),
        ("claude-haiku-4-5", {"reasoning_effort": "low", "stop": "x"}, "reasoning_effort"),
        ("claude-opus-5-5", {"enable_thinking": False, "stop": "x"}, "enable_thinking"),
        ("claude-sonnet-5-5", {"tool_choice": "required", "stop": "x"}, "tool_choice"),
        ("claude-opus-5-5", {"tool_choice": {"type": "tool", "name": "add"}, "stop": "x"}, "tool_choice"),
        ("claude-haiku-4-5", {"enable_thinking": True, "temperature": 0.1}, "temperature"),
        ("claude-haiku-4-5", {"enable_thinking": True, "top_k": 5}, "top_k"),
        ("claude-haiku-4-5", {"enable_thinking": True, "top_p": 0.5}, "top_p"),
        ("claude-haiku-4-5", {"enable_thinking": True, "tool_choice": "add"}, "tool_choice"),
    ],
)
def test_given_what_the_model_refuses_when_admitted_then_it_is_dropped_with_a_warning_that_names_it(
    model: str, extensions: dict[str, object], dropped: str
) -> None:
    with pytest.warns(UserWarning, match=dropped) as told:
        kept = admitted(model, **extensions)
    assert kept == {name: value for name, value in extensions.items() if name != dropped}
    assert [model in str(one.message) for one in told] == [True]


@pytest.mark.parametrize(
    "extensions",
    [
        {"temperature": 0.1, "top_k": 5, "tool_choice": "required"},
        {"enable_thinking": True, "temperature": 1, "top_p": 0.96, "tool_choice": "auto"},
    ],
)
def test_given_what_the_model_takes_when_admitted_then_all_of_it_stays(extensions: dict[str, object]) -> None:
    assert admitted("claude-haiku-4-5", **extensions) == extensions


@pytest.mark.parametrize(
    ("extensions", "word"),
    [
        ({"cache_ttl": "2h"}, "cache_ttl"),
        ({"betas": ["a", 5]}, "betas"),
        ({"max_token": 5}, "max_output_tokens"),
        ({"enable_thinkin": True}, "enable_thinking"),
    ],
)
def test_given_a_wrong_extension_when_admitted_then_the_error_names_it(
    extensions: dict[str, object], word: str
) -> None:
    with pytest.raises(ConfigError, match=word):
        admitted("claude-haiku-4-5", **extensions)


def test_given_all_fields_when_sent_then_each_stands_where_the_wire_has_it() -> None:
    extensions: dict[str, object] = {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 5,
        "stop": "END",
        "tool_choice": "files.read",
        "parallel_tool_calls": False,
        "user": "u1",
        "service_tier": "standard_only",
        "reasoning_effort": "minimal",
        "cache_ttl": "1h",
        "betas": ["b"],
        "max_output_tokens": 5,
        "expose_reasoning": True,
        "extra_body": {"inference_geo": "eu"},
    }
    fields = wire_fields(extensions, ANTHROPIC.fields)
    body = json.loads(MessagesDialect(cache=False).encode(ask_for([HI], fields=fields, tools=(ADD,))))
    assert {name: value for name, value in body.items() if name not in ("tools", "messages", "model", "stream")} == {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 5,
        "stop_sequences": ["END"],
        "tool_choice": {"type": "tool", "name": wire_name("files.read"), "disable_parallel_tool_use": True},
        "metadata": {"user_id": "u1"},
        "service_tier": "standard_only",
        "output_config": {"effort": "low"},
        "inference_geo": "eu",
        "max_tokens": 1_000,
    }


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("auto", {"type": "auto"}),
        ("none", {"type": "none"}),
        ("required", {"type": "any"}),
        ("any", {"type": "any"}),
        ("add", {"type": "tool", "name": "add"}),
        ({"type": "function", "function": {"name": "add"}}, {"type": "tool", "name": "add"}),
        ({"type": "any", "disable_parallel_tool_use": True}, {"type": "any", "disable_parallel_tool_use": True}),
    ],
)
def test_given_a_tool_choice_in_any_form_when_sent_then_it_has_the_form_of_this_wire(
    given: object, sent: object
) -> None:
    assert wire_fields({"tool_choice": given}, ANTHROPIC.fields) == {"tool_choice": sent}


def test_given_that_parallel_calls_are_fine_when_sent_then_nothing_is_said_about_them() -> None:
    assert wire_fields({"parallel_tool_calls": True, "reasoning_effort": "none"}, ANTHROPIC.fields) == {}


def test_given_a_dated_snapshot_when_made_then_its_row_is_that_of_the_model() -> None:
    info = AnthropicProvider("sk-ant-test", "claude-haiku-4-5-20251001").info
    assert (info.id, info.window, info.max_output, info.price) == (
        "claude-haiku-4-5-20251001",
        200_000,
        64_000,
        Price(1_000_000, 5_000_000, 100_000, 1_250_000),
    )
