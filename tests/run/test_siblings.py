"""What becomes of the other calls of a reply when one of them fails."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from doubles import Script, assert_paired, call, calls, done_of, events_of, only, runner_of, say

from deepstrike import ConfigError, RuntimeOptions, ScriptedProvider, Suspend, ToolContext, ToolResultEvent, tool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Crowd:
    """Tools that run until they are told to end, and one that fails once the others run."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.ended: set[str] = set()
        self.begun = asyncio.Event()
        self.loop = asyncio.get_running_loop()

    def _enter(self, name: str) -> None:
        self.running.add(name)
        if {"waits", "blocks"} <= self.running:
            self.loop.call_soon_threadsafe(self.begun.set)

    async def waits(self) -> str:
        self._enter("waits")
        try:
            await asyncio.sleep(600)
        finally:
            self.ended.add("waits")
        return "never"

    def blocks(self, context: ToolContext) -> str:
        self._enter("blocks")
        while not context.cancelled:
            threading.Event().wait(0.005)
        self.ended.add("blocks")
        return "late"

    async def fails(self) -> str:
        await self.begun.wait()
        raise OSError("the disk is full")

    async def late(self) -> str:
        raise AssertionError("it had no turn")


WANTED = [call(name, call_id=name) for name in ("waits", "blocks", "fails", "late")]


async def test_given_a_call_that_fails_when_siblings_are_to_be_cancelled_then_each_gets_a_result_that_says_so() -> None:
    crowd = Crowd()
    script = Script(calls(*WANTED), say("I see."))
    runner = runner_of(
        script,
        crowd.waits,
        crowd.blocks,
        crowd.fails,
        crowd.late,
        max_parallel_tools=3,
        on_tool_error="cancel_siblings",
    )
    events = await events_of(runner.run_streaming("go"))

    why = "fails, called in the same reply, failed"
    assert {event.call_id: (event.error_kind, event.content) for event in only(ToolResultEvent, events)} == {
        "waits": ("cancelled", f"cancelled while it ran; it may have taken effect: {why}"),
        "blocks": ("cancelled", f"cancelled while it ran; it may have taken effect: {why}"),
        "fails": ("exception", "OSError: the disk is full"),
        "late": ("not_run", f"not run: {why}"),
    }
    assert done_of(events).status == "completed"
    assert_paired(script.turns[1])
    assert "waits" in crowd.ended


async def test_given_a_call_that_fails_when_nothing_is_said_then_its_siblings_go_on() -> None:
    other = asyncio.Event()

    async def fails() -> str:
        try:
            raise OSError("no")
        finally:
            other.set()

    async def works() -> str:
        await other.wait()
        return "fine"

    events = await events_of(
        runner_of(Script(calls(call("works", call_id="a"), call("fails", call_id="b")), say("ok")), works, fails).run(
            "x"
        )
    )

    results = {event.call_id: event.error_kind for event in only(ToolResultEvent, events)}
    assert results == {"a": None, "b": "exception"}


async def test_given_calls_of_the_next_reply_when_one_failed_before_then_they_run() -> None:
    async def fails() -> str:
        raise OSError("no")

    async def works() -> str:
        return "fine"

    script = Script(calls(call("fails")), calls(call("works", call_id="c2")), say("ok"))
    events = await events_of(runner_of(script, fails, works, on_tool_error="cancel_siblings").run_streaming("go"))

    assert [event.error_kind for event in only(ToolResultEvent, events)] == ["exception", None]


async def test_given_a_sibling_that_waits_for_an_answer_when_one_fails_then_the_question_is_still_answered() -> None:
    asked = asyncio.Event()

    @tool
    async def asks() -> AsyncIterator[str | Suspend]:
        """Ask."""
        answer = yield Suspend("sure?")
        yield f"answered {answer}"

    async def fails() -> str:
        await asked.wait()
        raise OSError("no")

    async def answer(_event: Any) -> str:
        asked.set()
        await asyncio.sleep(0)
        return "yes"

    wanted = calls(call("asks", call_id="a"), call("fails", call_id="b"))
    runner = runner_of(Script(wanted, say("ok")), asks, fails, on_tool_suspend=answer, on_tool_error="cancel_siblings")
    events = await events_of(runner.run_streaming("go"))

    results = {event.call_id: event.content for event in only(ToolResultEvent, events)}
    assert (results, done_of(events).status) == ({"a": "answered yes", "b": "OSError: no"}, "completed")


def test_given_another_word_when_options_are_made_then_the_error_lists_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match="on_tool_error must be one of 'continue', 'cancel_siblings'"):
        RuntimeOptions(provider=ScriptedProvider(["x"]), on_tool_error="stop")  # type: ignore[arg-type]
