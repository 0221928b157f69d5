"""MCP planes against servers that say far too much: neither memory nor time goes to it without a bound."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from mcp_calls import HERE, call, children, text_of, until
from mcp_raw_web import fine, raw_web

from deepstrike.errors import DeepStrikeError
from deepstrike.execution.mcp.flight import MOST_QUESTIONS, Flights
from deepstrike.wire.message import Text, ToolResult

pytest.importorskip("mcp", reason="the official client is not installed")
from deepstrike.execution.mcp.plane import McpExecutionPlane

if TYPE_CHECKING:
    from mcp_raw_web import Exchange

    from deepstrike.execution.mcp.elicitation import Elicitation

FLOOD = [sys.executable, "-I", "-S", str(HERE / "mcp_flood_server.py")]
FINE = ToolResult((Text("fine"),))
UNREAD = "over 128 answers to what it asked wait until it reads them"


@pytest.mark.parametrize("tool", ["asks", "pings"])
async def test_given_a_server_that_asks_and_does_not_read_when_called_then_it_is_ended_and_a_new_one_serves(
    tool: str,
) -> None:
    before = children()
    async with McpExecutionPlane(FLOOD, revision="2025-11-25") as plane:
        started = children() - before
        flooded = await call(plane, tool)
        after = await call(plane, "ok")
        await until(lambda: not started & children())

    assert text_of(flooded).partition("\n")[0] == f"the server ended before it answered: {UNREAD}"
    assert (len(started), flooded.error_kind, after) == (1, "exception", FINE)


async def test_given_a_server_that_asks_before_it_answers_when_opened_then_the_error_says_so() -> None:
    with pytest.raises(DeepStrikeError, match=UNREAD):
        await McpExecutionPlane([*FLOOD, "at once"], revision="2025-11-25").open()


async def test_given_an_address_that_asks_faster_than_it_takes_answers_when_called_then_it_is_an_error() -> None:
    async def asks(exchange: Exchange) -> None:
        question = json.dumps({"jsonrpc": "2.0", "id": "r", "method": "roots/list"}).encode()
        await exchange.begin()
        await exchange.flood(b"data: %s\n\n" % question * 100)

    async with raw_web(asks=asks) as web, McpExecutionPlane(web.url, revision="2025-11-25") as plane:
        flooded = await call(plane, "asks")
        after = await call(plane, "ok")

    assert (flooded.error_kind, UNREAD in text_of(flooded), after) == ("exception", True, FINE)


async def test_given_a_question_that_is_far_too_long_when_called_then_it_is_refused_and_nobody_is_asked() -> None:
    asked: list[Elicitation] = []
    async with McpExecutionPlane(FLOOD, revision="2025-11-25", on_elicitation=asked.append) as plane:
        refused = await call(plane, "vast")

    words = text_of(refused)
    assert ('"code": -32602' in words, words[-5:], asked) == (True, "}next", [])


async def test_given_a_server_that_asks_without_end_when_it_is_answered_then_the_user_is_asked_so_often_only() -> None:
    asked: list[str] = []

    def agree(question: Elicitation) -> bool:
        asked.append(question.message)
        return True

    async with McpExecutionPlane(FLOOD, revision="2025-11-25", on_elicitation=agree) as plane:
        first, second = await call(plane, "nags"), await call(plane, "nags")

    note = "[The server asked more than 32 questions. The others were declined.]"
    answers = " ".join(["accept"] * 32 + ["decline"] * 8)
    assert (first, second) == ((ToolResult((Text(answers), Text(note))),) * 2)
    assert len(asked) == 2 * MOST_QUESTIONS


async def test_given_nobody_to_answer_when_a_server_asks_without_end_then_the_notes_are_bounded() -> None:
    async with McpExecutionPlane(FLOOD, revision="2025-11-25") as plane:
        nagged = await call(plane, "nags")

    assert len(nagged.parts) == 1 + MOST_QUESTIONS + 1


async def test_given_calls_in_flight_when_a_server_asks_then_each_pays_and_one_that_may_be_asked_is_enough() -> None:
    flights = Flights()
    between = [flights.admit() for _ in range(MOST_QUESTIONS + 1)]
    first = flights.begin(60)
    alone = [flights.admit() for _ in range(MOST_QUESTIONS + 1)]
    second = flights.begin(60)
    both = [flights.admit() for _ in range(MOST_QUESTIONS + 1)]
    flights.end(first)
    flights.end(second)

    assert between == alone == both == [True] * MOST_QUESTIONS + [False]
    assert flights.admit()


@pytest.mark.parametrize(("many", "kind"), [(MOST_QUESTIONS, ""), (MOST_QUESTIONS + 1, "tool_error")])
async def test_given_an_answer_that_is_many_questions_when_called_then_too_many_are_an_error(
    many: int, kind: str
) -> None:
    asked: list[Elicitation] = []

    def agree(question: Elicitation) -> bool:
        asked.append(question)
        return True

    async def asks(exchange: Exchange) -> None:
        fields = {"mode": "form", "message": "Really?", "requestedSchema": {"type": "object", "properties": {}}}
        questions = {f"q{each}": {"method": "elicitation/create", "params": fields} for each in range(many)}
        if "inputResponses" in exchange.message["params"]:
            await fine(exchange)
        else:
            await exchange.result({"resultType": "input_required", "inputRequests": questions})

    async with raw_web(asks=asks) as web:
        plane = McpExecutionPlane(web.url, revision="2026-07-28", on_elicitation=agree)
        done = await call(plane, "asks")
        await plane.aclose()

    assert (done.error_kind, len(asked)) == (kind, 0 if kind else many)
    assert text_of(done) == ("the server reports: it asks over 32 questions at once (code -32600)" if kind else "fine")
