"""Long runs through the runner: every request fits, nothing is lost, the caller is told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from doubles import Script, add, assert_paired, call, calls, done_of, events_of, only, runner_of, say, user_texts

from deepstrike import ConfigError, ContextCompressedEvent, ErrorEvent, RuntimeOptions, RuntimeRunner, tool
from deepstrike.errors import ContextOverflow
from deepstrike.execution.local import LocalExecutionPlane
from deepstrike.providers.base import Finish, ModelEvent, ModelRequest, ToolCall
from deepstrike.stream import TextDelta
from deepstrike.wire.message import Turn

PLAN = json.dumps({"steps": [{"text": "look", "status": "done"}, {"text": "say", "status": "doing"}]})
TOLD = "Plan:\n[done] look\n[doing] say"


@tool(effect="read")
async def page(number: int) -> str:
    """A page of some text."""
    return f"page {number} " + "字 and words " * 150


def size(turns: list[Turn]) -> int:
    """The characters of what is sent."""
    return sum(len(repr(turn)) for turn in turns)


class Reader:
    """Reads page after page, then says that it is done. Refuses what is longer than `most` characters."""

    def __init__(self, pages: int, most: int = 10**9) -> None:
        self._pages = pages
        self._most = most
        self.turns: list[list[Turn]] = []
        self.requests: list[ModelRequest] = []
        self._read = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.turns.append(list(request.turns))
        self.requests.append(request)
        if size(self.turns[-1]) > self._most:
            raise ContextOverflow("too long")
        if self._read < self._pages:
            self._read += 1
            yield ToolCall(f"c{self._read}", "page", f'{{"number":{self._read}}}')
            yield Finish("tool_calls")
        else:
            yield TextDelta("done")
            yield Finish("stop")


async def test_given_more_results_than_the_window_holds_when_run_then_every_request_fits_and_the_goal_stays() -> None:
    reader = Reader(30)

    events = await events_of(runner_of(reader, page, max_tokens=4_000, max_turns=50).run_streaming("Read all pages."))

    assert done_of(events).status == "completed"
    assert all(size(turns) < 4_000 * 4 for turns in reader.turns)
    for turns in reader.turns:
        assert_paired(turns)
        assert user_texts(turns)[0] == "Read all pages."
    heads = {(request.system_stable, request.tools) for request in reader.requests}
    assert len(heads) == 1


async def test_given_a_compression_when_run_then_its_event_says_what_left() -> None:
    events = await events_of(runner_of(Reader(30), page, max_tokens=4_000, max_turns=50).run_streaming("Read."))

    for event in only(ContextCompressedEvent, events):
        assert event.stage in {"snip", "elide", "collapse", "renew"}
        assert event.tokens_after < event.tokens_before <= 4_000 + 1_000
        assert event.records > 0
    assert only(ContextCompressedEvent, events)


async def test_given_a_service_that_refuses_the_length_when_asked_then_a_shorter_prompt_is_sent_once() -> None:
    reader = Reader(12, most=20_000)

    events = await events_of(runner_of(reader, page, max_turns=50).run_streaming("Read all pages."))

    assert done_of(events).status == "completed"
    refused = [at for at, turns in enumerate(reader.turns) if size(turns) > 20_000]
    assert refused
    assert all(size(reader.turns[at + 1]) < size(reader.turns[at]) for at in refused)


async def test_given_a_service_that_refuses_twice_when_asked_then_the_run_ends_with_what_fills_the_prompt() -> None:
    script = Script(calls(call("page", '{"number":1}')), ContextOverflow("too long"), ContextOverflow("too long"))

    events = await events_of(runner_of(script, page).run_streaming("Read."))

    assert [event.code for event in only(ErrorEvent, events)] == ["context_overflow"]
    assert len(script.turns) in (2, 3)


async def test_given_a_prompt_that_cannot_fit_when_run_then_no_call_is_made_and_the_error_names_the_largest() -> None:
    script = Script(say("never"))

    runner = runner_of(script, add, max_tokens=1_000, system_prompt="x " * 3_000)
    events = await events_of(runner.run_streaming("hi"))

    (error,) = only(ErrorEvent, events)
    assert (script.turns, error.code) == ([], "context_overflow")
    assert "system prompt" in error.message
    assert "tools" in error.message


async def test_given_a_plan_when_the_model_sets_it_then_the_next_request_ends_with_it() -> None:
    script = Script(calls(call("update_plan", PLAN)), say("ok"))

    await events_of(runner_of(script, add).run_streaming("go"))

    assert user_texts(script.turns[1]) == ["go", TOLD]


async def test_given_live_placement_when_the_plan_changes_then_the_first_turn_tells_it() -> None:
    script = Script(calls(call("update_plan", PLAN)), say("ok"))
    options = RuntimeOptions(
        provider=script, execution_plane=LocalExecutionPlane().register(add), state_placement="live"
    )

    await events_of(RuntimeRunner(options).run_streaming("go"))

    assert user_texts(script.turns[1]) == ["go", TOLD]
    assert len(script.turns[1]) == 3


def test_given_another_placement_when_options_are_built_then_they_are_refused() -> None:
    with pytest.raises(ConfigError, match="state_placement must be one of 'frozen', 'live'"):
        RuntimeOptions(provider=Script(say("x")), state_placement="warm")  # type: ignore[arg-type]


async def test_given_a_model_that_goes_in_circles_when_run_then_it_is_told_once_and_the_run_ends_stuck() -> None:
    script = Script(calls(call("add", '{"x":1,"y":2}')))

    events = await events_of(runner_of(script, add, max_turns=50).run_streaming("go"))

    assert [event.code for event in only(ErrorEvent, events)] == ["stuck"]
    assert len(script.turns) == 16
    assert sum("times now" in text for text in user_texts(script.turns[-1])) == 1
