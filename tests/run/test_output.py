"""Runs whose answer has a form: judged, repaired, given as a value, the same after a crash."""

from __future__ import annotations

import json

import pytest
from doubles import Script, add, call, calls, copied, done_of, events_of, kinds_of, only, say, user_texts
from pydantic import BaseModel, field_validator

from deepstrike import (
    AnthropicProvider,
    ErrorEvent,
    InMemorySessionLog,
    LocalExecutionPlane,
    NoticeEvent,
    OpenAIProvider,
    ReplayProvider,
    RunFailed,
    RunResult,
    RuntimeOptions,
    RuntimeRunner,
    ScriptedProvider,
    SessionLog,
    TextDelta,
    ToolCallEvent,
    collect_text,
)
from deepstrike.output.way import OutputMode
from deepstrike.providers.base import Artefact, Finish, LLMProvider, OutputSchema
from deepstrike.replay.proof import replay
from deepstrike.stream import ThinkingDelta
from deepstrike.testing import ModelServer
from deepstrike.testing.server import Raw
from deepstrike.wire.message import AssistantBlock, CallBlock, Text, Thinking


class Sum(BaseModel):
    terms: list[int]
    total: int


GOOD = '{"terms":[17,28],"total":45}'
VALUE = Sum(terms=[17, 28], total=45)
BAD = '{"terms":[17,28],"total":"much"}'
OBJECTION = (
    "The answer is not valid: total: should be a valid integer, unable to parse string as an integer, not 'much'\n"
    "Answer again, with nothing but the answer in the form asked for."
)


def runner_of(
    provider: LLMProvider,
    *tools: object,
    log: SessionLog | None = None,
    output_type: object = Sum,
    output_mode: OutputMode = "auto",
    max_turns: int = 8,
) -> RuntimeRunner:
    """A runner whose answers are sums, with the tool `add` if any tool is named."""
    plane = LocalExecutionPlane()
    if tools:
        plane.register(add)
    return RuntimeRunner(
        RuntimeOptions(
            provider=provider,
            session_log=log if log is not None else InMemorySessionLog(),
            execution_plane=plane,
            output_type=output_type,
            output_mode=output_mode,
            max_turns=max_turns,
        )
    )


async def failure_of(runner: RuntimeRunner, session_id: str | None = None) -> RunResult:
    """The result of a run that fails."""
    with pytest.raises(RunFailed) as failed:
        await runner.run("Add.", session_id=session_id)
    assert isinstance(failed.value.result, RunResult)
    return failed.value.result


async def test_given_an_answer_of_the_form_when_the_run_ends_then_result_and_last_event_hold_the_value() -> None:
    runner = runner_of(Script(say(GOOD)))
    events = await events_of(runner.run_streaming("Add."))
    assert only(TextDelta, events) == [TextDelta(GOOD)]
    assert done_of(events).output == VALUE
    result = await runner.run("Add.")
    assert (result.status, result.text, result.output, result.iterations) == ("completed", GOOD, VALUE, 1)


async def test_given_no_output_type_when_the_run_ends_then_there_is_no_output() -> None:
    log = InMemorySessionLog()
    result = await runner_of(Script(say(GOOD)), log=log, output_type=None).run("Add.", session_id="s")
    assert (result.output, "output" in json.loads((await log.read("s"))[1])["event"]) == (None, False)


async def test_given_an_answer_that_does_not_fit_when_repaired_then_the_model_read_why() -> None:
    model = Script(say(BAD), say("I am sorry."), say(GOOD))
    result = await runner_of(model).run("Add.")
    assert (result.status, result.output, result.iterations) == ("completed", VALUE, 3)
    assert user_texts(model.turns[1])[1:] == [OBJECTION]
    assert user_texts(model.turns[2])[2].startswith("The answer is not valid: there is no JSON in it\n")


async def test_given_three_answers_that_do_not_fit_when_the_run_ends_then_it_failed_with_the_last_text() -> None:
    model = Script(say(BAD))
    events = await events_of(runner_of(model).run_streaming("Add."))
    (error,) = only(ErrorEvent, events)
    assert (error.code, error.retryable) == ("invalid_output", False)
    assert error.message.startswith("the answer is not valid, 2 repairs included: total: should be a valid integer")
    assert (done_of(events).status, done_of(events).output, done_of(events).iterations) == ("error", None, 3)
    result = await failure_of(runner_of(Script(say(BAD))))
    assert (result.text, result.output, result.code) == (BAD, None, "invalid_output")


async def test_given_too_few_turns_when_an_answer_does_not_fit_then_the_limit_ends_the_run() -> None:
    result = await runner_of(Script(say(BAD)), max_turns=1).run("Add.")
    assert (result.status, result.text, result.output) == ("max_turns", BAD, None)


async def test_given_words_around_the_answer_when_it_is_recorded_then_the_json_stands_beside_the_text() -> None:
    log, text = InMemorySessionLog(), f"Here you are:\n```json\n{GOOD}\n```"
    result = await runner_of(Script(say(text)), log=log).run("Add.", session_id="s")
    assert (result.text, result.output) == (text, VALUE)
    assert json.loads((await log.read("s"))[1])["event"]["output"] == {"type": "ok", "text": GOOD}


async def test_given_text_beside_tool_calls_when_judged_then_it_is_not_the_answer_yet() -> None:
    model = Script([TextDelta("I add."), call("add", '{"x":17,"y":28}'), Finish("tool_calls")], say(GOOD))
    result = await runner_of(model, add).run("Add.")
    assert (result.output, result.iterations) == (VALUE, 2)


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_given_a_cut_answer_when_judged_then_the_cut_is_the_failure_and_nothing_is_repaired(reason: str) -> None:
    result = await failure_of(runner_of(Script([TextDelta('{"terms":[17'), Finish(reason)])))
    assert (result.code, result.iterations) == ({"length": "output_limit"}.get(reason, reason), 1)


async def test_given_a_validator_of_the_users_that_breaks_when_judged_then_the_model_is_told_and_the_run_ends() -> None:
    class Broken(BaseModel):
        total: int

        @field_validator("total")
        @classmethod
        def breaks(cls, _total: int) -> int:
            raise ZeroDivisionError("no")

    result = await failure_of(runner_of(Script(say('{"total":1}')), output_type=Broken))
    assert result.code == "invalid_output"
    assert "it cannot be checked: ZeroDivisionError: no" in (result.error or "")


# The answer as a call of a tool.


async def test_given_tools_when_the_answer_is_a_call_then_it_is_shown_and_kept_as_text_and_ends_the_run() -> None:
    log = InMemorySessionLog()
    model = Script(
        calls(call("add", '{"x":17,"y":28}')),
        [
            ThinkingDelta("Now."),
            Artefact("d", '{"call":"c2"}'),
            call("final_answer", GOOD, "c2"),
            Finish("tool_calls"),
        ],
        say(GOOD),
    )
    runner = runner_of(model, add, log=log)
    events = await events_of(runner.run_streaming("Add.", session_id="s"))
    assert [spec.name for spec in model.requests[0].tools] == ["add", "final_answer", "recall", "update_plan"]
    assert [event.name for event in only(ToolCallEvent, events)] == ["add"]
    assert only(TextDelta, events) == [TextDelta(GOOD)]
    assert (done_of(events).status, done_of(events).output, done_of(events).iterations) == ("completed", VALUE, 2)
    await runner.run("Again.", session_id="s")
    (said,) = [turn for turn in model.turns[2] if isinstance(turn, AssistantBlock)][1:]
    assert said.parts == (Thinking("Now."), Text(GOOD))


async def test_given_repairs_when_the_text_is_collected_then_it_is_the_answer_alone() -> None:
    model = Script(say("About 45."), calls(call("final_answer", BAD)), calls(call("final_answer", GOOD)))
    assert await collect_text(runner_of(model, add).run_streaming("Add.")) == GOOD


async def test_given_an_answer_beside_other_calls_when_they_have_run_then_the_model_answers_again() -> None:
    model = Script(calls(call("final_answer", BAD), call("add", '{"x":17,"y":28}', "c2")), say(GOOD))
    result = await runner_of(model, add).run("Add.")
    assert (result.output, result.iterations) == (VALUE, 2)
    (said,) = [turn for turn in model.turns[1] if isinstance(turn, AssistantBlock)]
    assert said.parts == (Text(BAD), CallBlock("c2", "add", '{"x":17,"y":28}'))


async def test_given_an_answer_by_call_that_does_not_fit_when_repaired_then_the_model_reads_how_to_answer() -> None:
    model = Script(calls(call("final_answer", BAD)), say("45"), calls(call("final_answer", GOOD)))
    result = await runner_of(model, add).run("Add.")
    assert (result.output, result.iterations) == (VALUE, 3)
    assert "not 'much'; answer by calling final_answer\n" in user_texts(model.turns[1])[1]


async def test_given_a_call_without_arguments_when_it_was_to_be_the_answer_then_the_model_is_asked_again() -> None:
    model = Script(calls(call("final_answer", "")), calls(call("final_answer", GOOD)))
    assert (await runner_of(model, output_mode="tool").run("Add.")).output == VALUE


async def test_given_another_way_when_the_model_calls_a_tool_of_that_name_then_it_is_an_unknown_tool() -> None:
    model = Script(calls(call("final_answer", GOOD)), say(GOOD))
    runner = runner_of(model, output_mode="prompted")
    events = await events_of(runner.run_streaming("Add."))
    assert [event.name for event in only(ToolCallEvent, events)] == ["final_answer"]
    assert done_of(events).output == VALUE


# From the log.


async def test_given_a_completed_session_when_resumed_then_the_value_comes_from_the_recorded_text() -> None:
    log = InMemorySessionLog()
    await runner_of(Script(say(GOOD)), log=log).run("Add.", session_id="s")
    untouched = Script(RuntimeError("nothing is asked"))
    assert (await runner_of(untouched, log=log).resume("s")).output == VALUE
    events = await events_of(runner_of(untouched, log=log).resume("s"))
    assert (len(events), done_of(events).output) == (1, VALUE)
    assert (await runner_of(untouched, log=log, output_type=None).resume("s")).output is None


async def test_given_another_output_type_when_a_completed_session_is_resumed_then_there_is_no_value(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = InMemorySessionLog()
    await runner_of(Script(say(GOOD)), log=log).run("Add.", session_id="s")
    result = await runner_of(Script(say(GOOD)), log=log, output_type=list[int]).resume("s")
    assert (result.status, result.text, result.output) == ("completed", GOOD, None)
    assert "its answer is not of this output_type" in caplog.text


async def test_given_a_crash_between_repairs_when_resumed_then_they_go_on_where_they_were() -> None:
    log = InMemorySessionLog()
    await failure_of(runner_of(Script(say(BAD)), log=log), "s")
    assert await kinds_of(log, "s") == ["started", "replied", "replied", "replied", "ended"]
    for replies, again in ((2, Script(say(BAD), say(GOOD))), (3, Script(say(BAD)))):
        crashed = await copied(log, "s", replies)
        events = await events_of(runner_of(again, log=crashed).resume("s"))
        assert OBJECTION in user_texts(again.turns[0])
        fits = replies == 2
        assert done_of(events).output == (VALUE if fits else None)
        assert done_of(events).iterations == 3


async def test_given_a_failed_answer_when_resumed_then_it_may_be_repaired_anew() -> None:
    log = InMemorySessionLog()
    await failure_of(runner_of(Script(say(BAD)), log=log), "s")
    assert (await runner_of(Script(say(BAD), say(BAD), say(GOOD)), log=log).resume("s")).output == VALUE


async def test_given_a_session_with_repairs_when_replayed_then_every_record_comes_out_as_recorded() -> None:
    log = InMemorySessionLog()
    runner = runner_of(Script(calls(call("final_answer", BAD)), say("no"), say(GOOD)), add, log=log)
    await runner.run("Add.", session_id="s")
    assert replay(await log.read("s")).divergence is None


# What goes out.


async def test_given_a_native_way_when_asked_then_the_form_reaches_the_provider_and_nothing_else_changes() -> None:
    model = ScriptedProvider([GOOD])
    await runner_of(model, add, output_mode="native").run("Add.")
    (request,) = model.requests
    assert isinstance(request.output, OutputSchema)
    assert (request.output.name, list(json.loads(request.output.schema)["properties"])) == ("Sum", ["terms", "total"])
    assert (request.system_stable, [spec.name for spec in request.tools]) == ("", ["add", "recall", "update_plan"])


async def test_given_openai_when_asked_then_the_schema_is_strict_on_the_wire_and_repairs_keep_the_prefix() -> None:
    with ModelServer([BAD, GOOD]) as server:
        provider = OpenAIProvider(api_key="k", model="gpt-5-mini", base_url=server.base_url)
        result = await runner_of(provider, output_mode="native").run("Add.")
        await provider.aclose()
    first, second = (request.body for request in server.requests)
    form = first["response_format"]
    assert isinstance(form, dict)
    schema = {
        "properties": {"terms": {"items": {"type": "integer"}, "type": "array"}, "total": {"type": "integer"}},
        "required": ["terms", "total"],
        "title": "Sum",
        "type": "object",
        "additionalProperties": False,
    }
    assert form == {"type": "json_schema", "json_schema": {"name": "Sum", "schema": schema, "strict": True}}
    assert second["response_format"] == form
    assert isinstance(second["messages"], list)
    assert second["messages"][:1] == first["messages"]
    assert second["messages"][1:] == [
        {"role": "assistant", "content": BAD},
        {"role": "user", "content": OBJECTION},
    ]
    assert (result.output, server.refused) == (VALUE, [])


async def test_given_a_compatible_server_when_asked_with_tools_then_the_answer_is_a_call_on_the_wire() -> None:
    with ModelServer([[call("add", '{"x":17,"y":28}')], [call("final_answer", GOOD, "c2")]]) as server:
        provider = OpenAIProvider(api_key="k", model="m", base_url=server.base_url)
        result = await runner_of(provider, add).run("Add.")
        await provider.aclose()
    assert "response_format" not in server.requests[0].body
    tools = server.requests[0].body["tools"]
    assert isinstance(tools, list)
    assert [each["function"]["name"] for each in tools] == ["add", "final_answer", "recall", "update_plan"]
    assert (result.output, result.iterations, server.refused) == (VALUE, 2, [])


def claude_says(said: str) -> Raw:
    """An answer on Anthropic's wire."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "content": [], "usage": usage}
    events: list[dict[str, object]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": said}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
        {"type": "message_stop"},
    ]
    return Raw([f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events])


async def test_given_anthropic_when_asked_then_the_form_stands_in_its_own_field() -> None:
    with ModelServer([claude_says(BAD), claude_says(GOOD)]) as server:
        provider = AnthropicProvider("k", "claude-haiku-4-5", base_url=server.base_url)
        result = await runner_of(provider, output_mode="native").run("Add.")
        await provider.aclose()
    first, second = (request.body for request in server.requests)
    config = first["output_config"]
    assert isinstance(config, dict)
    assert (config["format"]["type"], config["format"]["schema"]["additionalProperties"]) == ("json_schema", False)
    assert second["output_config"] == config
    assert result.output == VALUE


async def test_given_a_form_that_cannot_be_strict_when_asked_then_a_notice_says_why_and_it_is_still_checked() -> None:
    with ModelServer(['{"a":"x"}', '{"a":1}']) as server:
        provider = OpenAIProvider(api_key="k", model="gpt-5-mini", base_url=server.base_url)
        runner = runner_of(provider, output_type=dict[str, int], output_mode="native")
        events = await events_of(runner.run_streaming("Count."))
        await provider.aclose()
    assert [notice.code for notice in only(NoticeEvent, events)] == ["loose_schema"]
    form = server.requests[0].body["response_format"]
    assert isinstance(form, dict)
    assert form["json_schema"]["strict"] is False
    assert done_of(events).output == {"a": 1}


@pytest.mark.parametrize(
    ("mode", "tools"),
    [
        ("auto", ()),
        ("auto", (add,)),
        ("native", ()),
        ("native", (add,)),
        ("tool", (add,)),
        ("prompted", ()),
        ("prompted", (add,)),
    ],
)
async def test_given_a_recorded_session_when_its_answers_are_replayed_then_they_are_asked_for_in_the_same_way(
    mode: OutputMode, tools: tuple[object, ...]
) -> None:
    log = InMemorySessionLog()
    await runner_of(ScriptedProvider([BAD, GOOD]), *tools, log=log, output_mode=mode).run("Add.", session_id="s")
    recorded = await ReplayProvider.from_log(log, "s")
    result = await runner_of(recorded, *tools).run("Add.", session_id="s")
    assert (result.output, recorded.remaining) == (VALUE, 0)
