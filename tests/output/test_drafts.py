"""Partial values while an answer is written, then the value."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from pydantic import BaseModel

from deepstrike import Agent, ConfigError, ModelRequest, RunFailed, ScriptedProvider, TextDelta
from deepstrike.providers.base import Finish, ModelEvent, ToolCall


class Invoice(BaseModel):
    number: str
    total: float


def pieces(*texts: str) -> list[ModelEvent]:
    return [*map(TextDelta, texts), Finish("stop")]


def clerk(*replies: list[ModelEvent]) -> Agent:
    return Agent(ScriptedProvider(replies), output_type=Invoice)


async def test_given_an_answer_in_pieces_when_its_drafts_are_read_then_it_grows_and_ends_validated() -> None:
    run = clerk(pieces("Of course: ", '{"num', 'ber": "A-', '7", "tot', 'al": 12.', "5}")).run_streaming("Read it.")

    drafts = [draft async for draft in run.drafts()]

    assert drafts == [
        {},
        {"number": "A-"},
        {"number": "A-7"},
        {"number": "A-7", "total": 12.5},
        Invoice(number="A-7", total=12.5),
    ]
    assert (await run).output == drafts[-1]


async def test_given_an_answer_that_must_be_mended_when_its_drafts_are_read_then_the_second_begins_anew() -> None:
    run = clerk(pieces('{"number": "A"', "}"), pieces('{"total": 1, ', '"number": "B"}')).run_streaming("Read it.")

    assert [draft async for draft in run.drafts()] == [
        {"number": "A"},
        {"total": 1},
        {"total": 1, "number": "B"},
        Invoice(number="B", total=1),
    ]


async def test_given_words_before_a_tool_call_when_drafts_are_read_then_they_are_not_of_the_answer() -> None:
    def look() -> str:
        return "ok"

    first: list[ModelEvent] = [TextDelta('{"number": "no"'), ToolCall("c1", "look", "{}"), Finish("tool_calls")]
    answer = pieces('{"number": "B", "total": 1}')
    agent = Agent(ScriptedProvider([first, answer]), tools=[look], output_type=Invoice, output_mode="prompted")

    assert [draft async for draft in agent.run_streaming("go").drafts()] == [
        {"number": "no"},
        {"number": "B", "total": 1},
        Invoice(number="B", total=1),
    ]


async def test_given_an_answer_that_never_fits_when_its_drafts_are_read_then_the_failure_is_raised() -> None:
    run = clerk(*[pieces('{"number": "A"}')] * 3).run_streaming("Read it.")

    with pytest.raises(RunFailed) as raised:
        async for _ in run.drafts():
            pass

    assert raised.value.code == "invalid_output"


async def test_given_a_run_that_reaches_a_limit_when_its_drafts_are_read_then_there_is_no_value() -> None:
    run = Agent(ScriptedProvider([pieces('{"number": "A"}')]), output_type=Invoice, max_turns=1).run_streaming("go")

    assert [draft async for draft in run.drafts()] == [{"number": "A"}]
    assert (await run).status == "max_turns"


async def test_given_drafts_when_they_are_left_then_the_model_is_let_go() -> None:
    left = asyncio.Event()

    class Endless:
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            try:
                yield TextDelta('{"number": "A')
                await asyncio.Event().wait()
                yield Finish("stop")
            finally:
                left.set()

    drafts = Agent(Endless(), output_type=Invoice).run_streaming("go").drafts()
    async for draft in drafts:
        assert draft == {"number": "A"}
        break
    await drafts.aclose()

    assert left.is_set()


async def test_given_a_long_answer_in_many_pieces_when_its_drafts_are_read_then_it_is_not_read_at_each() -> None:
    text = '{"total": 1, "number": "' + "x" * 20_000 + '"}'
    run = clerk(pieces(*text)).run_streaming("go")

    drafts = [draft async for draft in run.drafts()]

    assert drafts[-1] == Invoice(number="x" * 20_000, total=1)
    assert 256 < len(drafts) < 256 * 8


def test_given_no_output_type_when_drafts_are_asked_for_then_it_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match="give the runner an output_type"):
        Agent("demo").run_streaming("go").drafts()
