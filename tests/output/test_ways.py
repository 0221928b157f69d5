"""How a model is asked for a form, by what its service and the run offer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from deepstrike import (
    AnthropicProvider,
    ConfigError,
    DeepSeekProvider,
    FallbackProvider,
    GeminiProvider,
    KimiProvider,
    LLMProvider,
    LocalExecutionPlane,
    MiniMaxProvider,
    OllamaProvider,
    OpenAICompatibleProvider,
    OpenAIProvider,
    QwenProvider,
    RuntimeOptions,
    RuntimeRunner,
    ScriptedProvider,
    tool,
)
from deepstrike.output.form import form_of
from deepstrike.output.way import OutputMode, Way, way_of
from deepstrike.providers.base import Finish, ModelEvent, ModelRequest, OutputSchema
from deepstrike.wire.message import Err, Ok, ToolSpec

FORM = form_of({"type": "object", "title": "sum", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]})
ADD = ToolSpec("add", "adds", "{}")
OWN = "http://127.0.0.1:9/v1"


class Own:
    """A provider of a user's own, of which nothing is known."""

    async def stream(self, _request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield Finish("stop")


def kind(way: Way) -> str:
    """What it is, by what goes out."""
    if way.native is not None:
        return "native"
    return "prompted" if way.tool is None else "tool"


OPENAI = OpenAIProvider("k")
DEEPSEEK = DeepSeekProvider("k")


@pytest.mark.parametrize(
    ("provider", "with_tools", "alone"),
    [
        (OPENAI, "native", "native"),
        (OpenAIProvider("k", api="chat"), "native", "native"),
        (OpenAIProvider("k", base_url=OWN), "tool", "prompted"),
        (OpenAIProvider("k", base_url=OWN, api="responses"), "native", "native"),
        (AnthropicProvider("k"), "native", "native"),
        (AnthropicProvider("k", base_url=OWN), "tool", "prompted"),
        (GeminiProvider("k"), "native", "native"),
        (OllamaProvider("llama3.2"), "native", "native"),
        (OllamaProvider("llama3.2", base_url="http://10.0.0.1:11434"), "native", "native"),
        (OpenAICompatibleProvider("https://api.x.ai/v1", "grok-4", "k"), "native", "native"),
        (OpenAICompatibleProvider("https://mine.openai.azure.com/openai/v1", "m", "k"), "native", "native"),
        (OpenAICompatibleProvider(OWN, "m", profile="openai"), "native", "native"),
        (QwenProvider("k"), "tool", "prompted"),
        (DEEPSEEK, "tool", "prompted"),
        (DeepSeekProvider("k", "deepseek-reasoner"), "prompted", "prompted"),
        (KimiProvider("k"), "tool", "prompted"),
        (MiniMaxProvider("k"), "tool", "prompted"),
        (OpenAICompatibleProvider(OWN, "m"), "tool", "prompted"),
        (FallbackProvider(OPENAI, AnthropicProvider("k")), "native", "native"),
        (FallbackProvider(OPENAI, DEEPSEEK), "tool", "prompted"),
        (FallbackProvider(OPENAI, Own()), "tool", "prompted"),
        (ScriptedProvider([]), "tool", "prompted"),
        (Own(), "tool", "prompted"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_given_a_provider_when_the_way_is_left_to_us_then_it_is_one_that_its_service_takes(
    provider: LLMProvider, with_tools: str, alone: str
) -> None:
    assert kind(way_of(FORM, "auto", provider, (ADD,))) == with_tools
    assert kind(way_of(FORM, "auto", provider, ())) == alone


@pytest.mark.parametrize("mode", ["native", "tool", "prompted"])
@pytest.mark.parametrize("provider", [OPENAI, Own()])
def test_given_a_mode_when_it_is_asked_for_then_it_is_taken(mode: OutputMode, provider: LLMProvider) -> None:
    assert kind(way_of(FORM, mode, provider, ())) == mode


def test_given_each_way_when_made_then_the_form_goes_out_once() -> None:
    native, by_tool, prompted = (way_of(FORM, mode, OPENAI, ()) for mode in ("native", "tool", "prompted"))
    assert (native.native, native.tools, native.system("Be brief.")) == (
        OutputSchema("sum", FORM.schema),
        (),
        "Be brief.",
    )
    (offered,) = by_tool.tools
    assert (offered.name, offered.parameters, offered.effect) == ("final_answer", FORM.schema, "read")
    assert by_tool.system("Be brief.") == (
        "Be brief.\n\nGive your final answer by calling the tool final_answer, not as text."
    )
    assert prompted.tools == ()
    words, _, schema = prompted.system("").partition(": ")
    assert words == "Give your final answer as JSON only, without any other words, in the form of this JSON schema"
    assert json.loads(schema) == json.loads(FORM.schema)


def test_given_an_answer_when_judged_by_a_way_then_the_objection_says_how_to_answer() -> None:
    native, by_tool = (way_of(FORM, mode, OPENAI, ()) for mode in ("native", "tool"))
    assert native.check('{"sum":1}') == by_tool.check('{"sum":1}') == Ok()
    assert native.check("no") == Err("invalid_output", "there is no JSON in it")
    assert by_tool.check("no") == Err("invalid_output", "there is no JSON in it; answer by calling final_answer")
    assert [way.is_answer("final_answer") for way in (native, by_tool)] == [False, True]


def test_given_a_tool_with_the_answers_name_when_the_answer_is_a_call_then_the_error_names_the_remedy() -> None:
    @tool
    def final_answer() -> str:
        """Not that one."""
        return ""

    plane = LocalExecutionPlane().register(final_answer)
    options = RuntimeOptions(provider=ScriptedProvider([]), execution_plane=plane, output_type=int)
    with pytest.raises(ConfigError, match=r"rename it, or set output_mode=\"prompted\""):
        RuntimeRunner(options).run_streaming("go")


@pytest.mark.parametrize("fields", [{"output_type": "int"}, {"output_type": int, "output_mode": "json"}])
def test_given_a_wrong_form_or_mode_when_the_options_are_built_then_the_error_names_the_field(
    fields: dict[str, object],
) -> None:
    with pytest.raises(ConfigError, match=next(reversed(fields))):
        RuntimeOptions(provider=ScriptedProvider([]), **fields)  # type: ignore[arg-type]
