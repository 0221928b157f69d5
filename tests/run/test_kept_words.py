"""What leaves the prompt: the user's words stay, what goes is named, and no goal is stuck behind another."""

from __future__ import annotations

import json

import pytest
from doubles import Reply, Script, calls, done_of, events_of, only, runner_of, say
from doubles import call as called

from deepstrike import ContextCompressedEvent, InMemorySessionLog, tool
from deepstrike.errors import ProviderError
from deepstrike.wire.message import Text, UserBlock

SAID = (
    "I am allergic to peanuts.",
    "Window seats are out of the question for me.",
    "Я не ем мясо.",
    "别订早上的航班。",
    "Never book with Dr. Smith on Mondays.",
    "لا تحجز رحلات ليلية.",
    "I would like, " + "if it can be arranged, " * 30 + "to sit alone.",
)


@tool(effect="read")
def look(what: str) -> str:
    """Look something up."""
    return f"{what} is there. " * 120


def visits(script_of_visit: int) -> Script:
    """Four looks, then an answer."""
    looks = [calls(called("look", json.dumps({"what": f"item-{script_of_visit}-{n}"}))) for n in range(4)]
    return Script(*looks, say(f"That was {script_of_visit}."))


@pytest.mark.parametrize("window", [4_000, 8_000])
async def test_given_ten_compressions_when_the_user_said_things_in_between_then_all_of_it_is_there_word_for_word(
    window: int,
) -> None:
    log = InMemorySessionLog()
    rewrites: list[ContextCompressedEvent] = []
    number = 0
    while number < len(SAID) or len(rewrites) < 10:
        script = visits(number)
        goal = f"Visit {number}. {SAID[number] if number < len(SAID) else 'Hello again.'} Thank you!"
        events = await events_of(
            runner_of(script, look, log=log, max_tokens=window).run_streaming(goal, session_id="s")
        )
        rewrites += only(ContextCompressedEvent, events)
        number += 1

    shown = "\n".join(
        part.text
        for turn in script.turns[-1]
        if isinstance(turn, UserBlock)
        for part in turn.parts
        if isinstance(part, Text)
    )
    assert [said for said in SAID if said not in shown] == []
    assert all(rewrite.stages[-1] == rewrite.stage and (rewrite.gone or rewrite.shortened) for rewrite in rewrites)


async def test_given_goals_that_failed_or_were_too_large_when_a_small_one_follows_then_it_runs() -> None:
    log = InMemorySessionLog()
    statuses = []
    goals: list[tuple[str, Reply | BaseException]] = [
        ("word " * 3_000, say("no")),
        *[(f"goal {n}: " + "some words here " * 10, ProviderError("down")) for n in range(30)],
        ("hi", say("hello")),
    ]
    for goal, reply in goals:
        script = Script(reply)
        events = await events_of(runner_of(script, look, log=log, max_tokens=2_500).run_streaming(goal, session_id="s"))
        statuses.append((done_of(events).status, len(script.turns)))

    assert statuses == [("error", 0), *[("error", 1)] * 30, ("completed", 1)]
