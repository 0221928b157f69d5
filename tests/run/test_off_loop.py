"""Steps that may take long leave the event loop; those of small sessions stay on it."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest
from doubles import Script, call, calls, done_of, events_of, only, runner_of, say

from deepstrike import ContextCompressedEvent, InMemorySessionLog, tool
from deepstrike.host.folding import OFF_LOOP_TOKENS
from deepstrike.kernel import Kernel

if TYPE_CHECKING:
    from deepstrike.kernel import Judge
    from deepstrike.wire.effect import Effect, Outcome

    Stand = tuple[list[bytes], list[Effect], int | None, Outcome | None]

SMALL = 100_000
LARGE = 40 * OFF_LOOP_TOKENS


@tool(effect="read")
async def page(number: int) -> str:
    """A page of so many words."""
    return f"page {number} " + " ".join(f"w{number}_{at}" for at in range(6_000))


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, bool]]:
    """For each step of a kernel: whether it rewrote the prompt, whether it held the event loop's thread."""
    seen: list[tuple[bool, bool]] = []
    advance = Kernel.advance

    def watched(self: Kernel, input: bytes, now: int, judge: Judge | None = None, *, aside: bool = False) -> Stand:  # noqa: A002
        on_loop = threading.current_thread() is threading.main_thread()
        assert aside is not on_loop
        step = advance(self, input, now, judge, aside=aside)
        seen.append((any(b'"type":"compressed"' in line for line in step[0]), on_loop))
        return step

    monkeypatch.setattr(Kernel, "advance", watched)
    return seen


async def test_given_a_long_history_when_a_small_input_rewrites_the_prompt_then_that_leaves_the_event_loop(
    places: list[tuple[bool, bool]],
) -> None:
    log = InMemorySessionLog()
    pages = [calls(call("page", json.dumps({"number": number}), f"c{number}")) for number in range(20)]
    built = runner_of(Script(*pages, say("ok")), page, log=log, max_turns=30, max_tokens=LARGE)
    assert done_of(await events_of(built.run_streaming("go", session_id="s"))).status == "completed"
    places.clear()

    events = await events_of(
        runner_of(Script(say("ok")), page, log=log, max_tokens=SMALL).run_streaming("hi", session_id="s")
    )

    assert len(only(ContextCompressedEvent, events)) == 1
    assert [on_loop for rewrote, on_loop in places if rewrote] == [False]


async def test_given_a_small_session_when_run_then_no_step_leaves_the_event_loop(
    places: list[tuple[bool, bool]],
) -> None:
    script = Script(calls(call("page", '{"number":1}')), say("ok"))

    await events_of(runner_of(script, page, max_tokens=SMALL).run_streaming("go"))

    assert set(places) == {(False, True)}


async def test_given_a_long_prompt_when_steps_cannot_rewrite_it_then_they_stay_on_the_loop(
    places: list[tuple[bool, bool]],
) -> None:
    log = InMemorySessionLog()
    pages = [calls(call("page", json.dumps({"number": number}), f"c{number}")) for number in range(20)]
    built = runner_of(Script(*pages, say("ok")), page, log=log, max_turns=30, max_tokens=LARGE)

    assert done_of(await events_of(built.run_streaming("go", session_id="s"))).status == "completed"
    assert Kernel.replay(await log.read("s")).prompt_tokens > 4 * OFF_LOOP_TOKENS
    assert [rewrote for rewrote, _ in places] == [False] * len(places)
    assert [on_loop for _, on_loop in places] == [True] * len(places)

    places.clear()
    await built.run("more", session_id="s")
    assert next(on_loop for _, on_loop in places) is False  # a goal may bring another head


async def test_given_a_prompt_that_fills_up_when_steps_rewrite_it_then_each_of_those_left_the_loop(
    places: list[tuple[bool, bool]],
) -> None:
    pages = [calls(call("page", json.dumps({"number": number}), f"c{number}")) for number in range(24)]
    built = runner_of(Script(*pages, say("ok")), page, max_turns=30, max_tokens=4 * OFF_LOOP_TOKENS)

    assert done_of(await events_of(built.run_streaming("go", session_id="s"))).status == "completed"
    assert sum(rewrote for rewrote, _ in places) > 1
    assert [on_loop for rewrote, on_loop in places if rewrote] == [False] * sum(rewrote for rewrote, _ in places)
