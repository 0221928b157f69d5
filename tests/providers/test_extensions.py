"""Sampling and provider fields."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING

import pytest

from deepstrike.errors import ConfigError
from deepstrike.providers.base import ModelInfo
from deepstrike.providers.extensions import CHAT_FIELDS, Field, admit, switch, wire_fields
from deepstrike.providers.models import DEFAULT_WINDOW, lookup, register
from deepstrike.providers.openai import OpenAIProvider
from deepstrike.providers.tables.openai import ROWS as OPENAI
from deepstrike.wire.policy import Price

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

PLAIN = ModelInfo("plain")


def sent(model: str, extensions: Mapping[str, object], base_url: str | None = None, limit: int | None = None) -> object:
    """The request's fields beyond the ones that are always there."""
    from deepstrike.providers.base import ModelRequest
    from deepstrike.wire.message import Text, UserBlock

    provider = OpenAIProvider("sk-test-key", model, base_url=base_url)
    request = ModelRequest("", "", (UserBlock((Text("a"),)),), (), extensions, limit)
    body = json.loads(provider._question(request).body)
    return {key: value for key, value in body.items() if key not in ("model", "messages", "stream", "stream_options")}


def test_given_known_fields_when_sent_then_they_go_out_under_their_own_names() -> None:
    given = {
        "temperature": 0.2,
        "seed": 1,
        "stop": ["x"],
        "response_format": {"type": "json_object"},
        "max_output_tokens": 50,
        "expose_reasoning": False,
        "extra_body": {"top_k": 4, "seed": 2},
        "user": None,
    }
    assert sent("gpt-4.1", given) == {
        "temperature": 0.2,
        "seed": 2,
        "stop": ["x"],
        "response_format": {"type": "json_object"},
        "max_completion_tokens": 50,
        "top_k": 4,
    }


def test_given_fields_of_tools_when_no_tools_are_offered_then_they_are_not_sent() -> None:
    assert sent("gpt-4.1", {"tool_choice": "auto", "parallel_tool_calls": False, "seed": 1}) == {"seed": 1}


def test_given_an_extension_of_another_vendor_when_admitted_then_it_is_dropped_with_a_warning_not_an_error() -> None:
    with pytest.warns(UserWarning, match="'reasoning_split' was dropped: the service of 'plain' has no such field"):
        assert admit({"reasoning_split": True, "seed": 3}, CHAT_FIELDS, PLAIN) == {"seed": 3}


def test_given_a_field_with_a_place_and_a_wire_form_when_sent_then_it_stands_there_in_that_form() -> None:
    fields = {
        "enable_thinking": Field((bool,), "", at=("thinking", "type"), wire=switch("enabled", "disabled")),
        "preserve_thinking": Field((bool,), "", at=("thinking", "keep"), wire=switch("all", None)),
    }
    assert wire_fields({"enable_thinking": False, "preserve_thinking": True}, fields) == {
        "thinking": {"type": "disabled", "keep": "all"}
    }
    assert wire_fields({"enable_thinking": True, "preserve_thinking": False}, fields) == {
        "thinking": {"type": "enabled"}
    }


@pytest.mark.parametrize(
    ("model", "base_url", "name"),
    [
        ("gpt-4.1", None, "max_completion_tokens"),
        ("gpt-5-mini", None, "max_completion_tokens"),
        ("gpt-5-mini", "http://127.0.0.1:1/v1", "max_completion_tokens"),
        ("llama-3", "http://127.0.0.1:1/v1", "max_tokens"),
    ],
)
def test_given_an_output_limit_when_sent_then_its_name_is_the_one_that_the_service_takes(
    model: str, base_url: str | None, name: str
) -> None:
    assert sent(model, {}, base_url, limit=9) == {name: 9}
    assert sent(model, {"max_output_tokens": 7}, base_url) == {name: 7}
    assert sent(model, {"max_output_tokens": 7}, base_url, limit=5) == {name: 5}


def test_given_an_unknown_field_when_admitted_then_the_error_names_the_near_miss() -> None:
    with pytest.raises(ConfigError, match="unknown extension 'temprature'; did you mean 'temperature'"):
        admit({"temprature": 1}, CHAT_FIELDS, PLAIN)
    with pytest.raises(ConfigError, match="did you mean 'max_output_tokens'"):
        admit({"max_tokens": 1}, CHAT_FIELDS, PLAIN)
    with pytest.raises(ConfigError, match=r"unknown extension 'zzz'.*extra_body"):
        admit({"zzz": 1}, CHAT_FIELDS, PLAIN)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", "hot"),
        ("temperature", True),
        ("temperature", float("nan")),
        ("seed", 1.5),
        ("max_output_tokens", 0),
        ("parallel_tool_calls", 1),
        ("extra_body", {"messages": []}),
        ("extra_body", {"x": object()}),
        ("metadata", {"x": {1, 2}, 3: object()}),
        ("user", 5),
    ],
)
def test_given_a_value_of_the_wrong_kind_when_admitted_then_the_error_names_the_field(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        admit({name: value}, CHAT_FIELDS, PLAIN)


def test_given_a_field_that_the_model_refuses_when_admitted_then_it_is_dropped_with_one_warning() -> None:
    info = lookup("gpt-5-mini", OPENAI)
    with pytest.warns(UserWarning, match="'temperature' was dropped: the model 'gpt-5-mini'") as caught:
        assert admit({"temperature": 0.1, "seed": 3}, CHAT_FIELDS, info) == {"seed": 3}
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert admit({"seed": 3}, CHAT_FIELDS, info) == {"seed": 3}


def test_given_a_reasoning_model_that_does_not_reason_when_admitted_then_sampling_fields_pass() -> None:
    given = {"temperature": 0.1, "reasoning_effort": "none"}
    assert admit(given, CHAT_FIELDS, lookup("gpt-5.2", OPENAI)) == given


def test_given_admitted_fields_when_made_wire_fields_then_those_for_us_stay_here() -> None:
    assert wire_fields({"expose_reasoning": True, "seed": 1, "extra_body": {"k": 1}}, CHAT_FIELDS) == {
        "seed": 1,
        "k": 1,
    }


def test_given_the_model_table_when_looked_up_then_rows_and_dated_snapshots_are_found() -> None:
    mini = lookup("gpt-5-mini", OPENAI)
    assert (mini.window, mini.max_output, mini.reasoning) == (400_000, 128_000, True)
    assert mini.price == Price(250_000, 2_000_000, 25_000, 250_000)
    assert lookup("gpt-5-mini-2025-08-07", OPENAI).price == mini.price
    assert lookup("gpt-6.1-sol", OPENAI).price == Price(2_000_000, 10_000_000, 100_000, 2_500_000)
    assert "temperature" not in lookup("gpt-4.1", OPENAI).refuses
    assert lookup("nobody-knows", OPENAI) == ModelInfo("nobody-knows", DEFAULT_WINDOW)


def test_given_a_row_of_the_users_own_when_registered_then_it_counts_for_new_providers() -> None:
    info = ModelInfo("test-own-model", window=9_000, price=Price(1, 2, 3, 4))
    register(info)
    assert OpenAIProvider("sk-test-key", "test-own-model").info == info
    with pytest.raises(ConfigError, match="above zero"):
        register(ModelInfo("test-own-model", window=0))


def test_given_a_model_that_thinks_unsampled_when_thinking_is_on_then_sampling_is_dropped_with_a_warning() -> None:
    from deepstrike.providers.deepseek import DeepSeekProvider

    sampling = {"temperature": 0.1, "top_p": 0.5, "presence_penalty": 0.1, "frequency_penalty": 0.1}
    provider = DeepSeekProvider("sk-test-key")
    for more in ({}, {"enable_thinking": True}):
        with pytest.warns(UserWarning, match="'deepseek-flash' refuses it while it thinks"):
            assert provider.admit({**sampling, **more, "seed": 1}) == {**more, "seed": 1}
    unthinking = {**sampling, "enable_thinking": False}
    assert provider.admit(unthinking) == unthinking


def test_given_an_extension_of_any_vendor_when_another_is_asked_then_it_is_dropped_with_a_warning() -> None:
    from deepstrike.providers.anthropic import ANTHROPIC
    from deepstrike.providers.extensions import _ELSEWHERE
    from deepstrike.providers.gemini import GEMINI
    from deepstrike.providers.ollama import LOCAL
    from deepstrike.providers.openai import OPENAI_RESPONSES
    from deepstrike.providers.tables.servers import SERVERS

    profiles = (ANTHROPIC, GEMINI, LOCAL, OPENAI_RESPONSES, *SERVERS.values())
    assert {name for profile in profiles for name in profile.fields} == _ELSEWHERE
    with pytest.warns(UserWarning, match="'think' was dropped: the service of 'plain' has no such field"):
        assert admit({"think": True}, CHAT_FIELDS, PLAIN) == {}


def test_given_a_provider_of_ones_own_without_info_when_a_run_is_made_then_the_error_says_what_to_set() -> None:
    from deepstrike import RuntimeOptions, RuntimeRunner
    from deepstrike.providers.base import Finish, ModelEvent, ModelRequest, Provider

    class Nameless(Provider):
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            yield Finish("stop")

    with pytest.raises(ConfigError, match=r"Nameless is a Provider and must set info, such as info = ModelInfo"):
        RuntimeRunner(RuntimeOptions(provider=Nameless())).run_sync("x")
