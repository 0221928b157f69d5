"""Two sessions are compared by what happened in them; what differs by nature is no difference."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace
from samples import CONFIG, SESSIONS, TWO_CALLS, Hand, calls, recorded

from deepstrike import AgentRunSpec, InMemorySessionLog, LocalExecutionPlane, RuntimeOptions, RuntimeRunner, tool
from deepstrike.providers.base import LLMProvider, ToolCall
from deepstrike.providers.replayed import ReplayProvider
from deepstrike.providers.scripted import Reply as Spoken
from deepstrike.providers.scripted import ScriptedProvider
from deepstrike.replay.comparison import Comparison, Parting, compare
from deepstrike.replay.differences import Difference, differences
from deepstrike.sessions.blob import blob_ref, blob_shelf
from deepstrike.wire.input import Answer, Fault, Interrupt, Notify, Result, Resume, Start, Suspend, Value
from deepstrike.wire.message import CallPart, Ok, Text, ToolResult, ToolSpec
from deepstrike.wire.policy import Limits
from deepstrike.wire.signal import Signal

Played = Callable[[Hand], None]


def played(*steps: Played, session: str = "s", pause: int = 0) -> list[bytes]:
    """A session: a goal, a reply with two calls, then these steps."""
    hand = Hand()
    hand.now += pause
    hand.take(Start((Text("Do it."),), replace(CONFIG, session=session)))
    hand.reply(*TWO_CALLS)
    for step in steps:
        hand.now += pause
        step(hand)
    return hand.records


def done(hand: Hand) -> None:
    hand.result("wrote")
    hand.result("seen")
    hand.reply(Text("Done."))


def parting_of(left: Sequence[bytes], right: Sequence[bytes]) -> Parting:
    parting = compare(left, right).parting
    assert parting is not None
    return parting


@pytest.mark.parametrize("name", SESSIONS)
async def test_given_the_same_session_twice_when_compared_then_nothing_differs(name: str) -> None:
    records = await recorded(name)
    turns = sum(b'"type":"replied"' in line for line in records)

    assert compare(records, records) == Comparison("s", "s", turns, None, ())


def test_given_other_ids_and_times_when_compared_then_only_the_time_is_noted() -> None:
    def other_ids(hand: Hand) -> None:
        hand.reply(CallPart("x", "write", "{}", Ok()), CallPart("", "look", "{}", Ok()))
        done(hand)

    right = Hand()
    right.take(Start((Text("Do it."),), replace(CONFIG, session="t")))
    right.now += 1500
    other_ids(right)

    assert compare(played(done), right.records) == Comparison(
        "s", "t", 2, None, ("the time differs: 0.004 s and 1.504 s",)
    )


def test_given_parallel_calls_that_come_back_in_another_order_when_compared_then_it_is_noted() -> None:
    def session(*order: int) -> list[bytes]:
        hand = Hand()
        limits = replace(CONFIG.limits, parallel=2)
        hand.take(Start((Text("Do it."),), replace(CONFIG, limits=limits)))
        hand.reply(*TWO_CALLS)
        owed = [effect.id for effect in hand.kernel.pending()]
        for index in order:
            hand.take(Result(owed[index], ToolResult((Text(f"result {index}"),))))
        hand.reply(Text("Done."))
        return hand.records

    assert compare(session(0, 1), session(1, 0)) == Comparison(
        "s", "s", 2, None, ("parallel calls came back in another order, from turn 1 on",)
    )


def test_given_other_options_when_compared_then_each_field_is_named() -> None:
    left, right = Hand(), Hand()
    left.start()
    tools = (*CONFIG.tools[:1], ToolSpec("look", "looks twice", "{}", "read"))
    limits = Limits(max_turns=3, window=100_000, reserve=1000, parallel=1)
    right.take(Start((Text("Do it."),), replace(CONFIG, tools=tools, limits=limits)))

    assert parting_of(left.records, right.records) == Parting(
        "config",
        0,
        0,
        0,
        "the options differ: tools.look.description, limits.max_turns",
        (
            Difference("tools.look.description", '"looks"', '"looks twice"'),
            Difference("limits.max_turns", "25", "3"),
        ),
    )


def test_given_another_goal_when_compared_then_it_is_the_goal() -> None:
    left, right = Hand(), Hand()
    left.start("Do it.")
    right.start("Do that.")

    assert parting_of(left.records, right.records) == Parting(
        "goal", 0, 0, 0, "the goals differ", (Difference("[0].text", '"Do it."', '"Do that."'),)
    )


def test_given_the_same_request_and_another_reply_when_compared_then_the_model_is_the_cause() -> None:
    other = Hand()
    other.start()
    other.reply(Text("No."))

    parting = parting_of(played(done), other.records)

    assert (parting.kind, parting.turn, parting.left, parting.right) == ("reply", 0, 1, 1)
    assert parting.cause == "the same request, another reply of the model"
    assert [difference.path for difference in parting.differences] == ["parts[0]", "parts[1]"]


def test_given_the_same_call_with_another_result_when_compared_then_the_call_is_named() -> None:
    def other(hand: Hand) -> None:
        hand.result("failed to write", "exception")
        hand.result("seen")
        hand.reply(Text("Done."))

    assert parting_of(played(done), played(other)) == Parting(
        "result",
        0,
        5,
        5,
        "the same call, another result: write({})",
        (
            Difference("parts[0].text", '"wrote"', '"failed to write"'),
            Difference("error_kind", "", '"exception"'),
        ),
    )


def suspend(hand: Hand) -> None:
    hand.take(Suspend(hand.running(), '{"which":1}'))


def answered_with(value: str) -> Played:
    def answer(hand: Hand) -> None:
        hand.take(Answer(hand.asked(), Value(value)))
        hand.result("wrote")
        hand.reply(Text("Done."))

    return answer


def notified(hand: Hand) -> None:
    hand.take(Notify(Signal("news", "{}", urgency="low")))


def failed_by(code: str) -> Played:
    def fail(hand: Hand) -> None:
        hand.result("wrote")
        hand.result("seen")
        hand.reply(Text("Half"), fault=Fault(code, "why"))

    return fail


@pytest.mark.parametrize(
    ("left", "right", "kind", "cause"),
    [
        (
            [suspend, lambda hand: hand.result(), answered_with("1")],
            [suspend, lambda hand: hand.result(), answered_with("2")],
            "answer",
            "the same question, another answer: write({})",
        ),
        ([suspend], [], "suspension", "the same call asks otherwise: write({})"),
        ([notified], [], "length", "the right session stops here, the left one goes on in this goal"),
        ([], [done], "length", "the left session stops while this call is open: write({})"),
        ([failed_by("stalled")], [failed_by("overloaded")], "failure", "the model call failed otherwise"),
        (
            [done, lambda hand: hand.start("More.")],
            [done],
            "length",
            "the right session stops here, the left one goes on with another goal",
        ),
        (
            [lambda hand: hand.take(Resume(CONFIG))],
            [notified],
            "length",
            "the right session stops while this call is open: write({})",
        ),
        (
            [lambda hand: hand.take(Interrupt("enough"))],
            [lambda hand: hand.take(Interrupt("too late"))],
            "end",
            "the goal ends user_abort for another reason",
        ),
    ],
)
def test_given_two_sessions_that_part_when_compared_then_the_cause_is_told(
    left: list[Played], right: list[Played], kind: str, cause: str
) -> None:
    parting = parting_of(played(*left), played(*right))

    assert (parting.kind, parting.cause) == (kind, cause)


def test_given_other_tokens_when_compared_then_they_are_noted_with_the_turn() -> None:
    records = played(done)
    dearer = [line.replace(b'"input":100', b'"input":90') if b"Done." in line else line for line in records]

    assert compare(records, dearer).notes == ("tokens or cost differ, from turn 2 on",)


def test_given_no_records_when_compared_then_they_are_the_same() -> None:
    assert compare([], []) == Comparison("", "", 0, None, ())
    assert parting_of([], played()).cause == "the left session stops here, the right one goes on with another goal"


def test_given_long_texts_when_they_differ_then_the_place_is_shown() -> None:
    left, right = "a" * 1000 + "left" + "b" * 1000, "a" * 1000 + "right" + "b" * 1000

    (difference,) = differences({"text": left}, {"text": right})

    assert difference.path == "text"
    assert "aleftb" in difference.left
    assert "arightb" in difference.right
    assert max(len(difference.left), len(difference.right)) < 170


def test_given_more_differences_than_are_asked_for_when_listed_then_the_first_are_told() -> None:
    assert differences(list(range(50)), [0, *range(2, 51)], most=2) == (
        Difference("[1]", json.dumps(1), json.dumps(2)),
        Difference("[2]", json.dumps(2), json.dumps(3)),
    )


async def kept_apart(session: str, text: str) -> list[bytes]:
    """A session whose first result is kept in a blob, which the model then recalls."""
    log = InMemorySessionLog()

    async def book() -> str:
        return text

    ref = blob_ref(blob_shelf(session), text.encode())
    replies: list[Spoken] = [
        calls(ToolCall("c1", "book", "")),
        calls(ToolCall("c2", "recall", json.dumps({"ref": ref, "offset": 10}))),
        f"It is in {ref}.",
    ]
    plane = LocalExecutionPlane().register(tool(effect="read")(book))
    provider = ScriptedProvider(replies)
    await RuntimeRunner(
        RuntimeOptions(provider=provider, session_log=log, execution_plane=plane, max_tokens=20_000)
    ).run("Read it.", session_id=session)
    return await log.read(session)


BOOK = "\n".join(f"line {number} of the book" for number in range(6_000))


async def test_given_results_that_are_kept_in_blobs_when_two_sessions_have_the_same_then_they_are_equal() -> None:
    left, right = await kept_apart("monday", BOOK), await kept_apart("tuesday", BOOK)
    assert any(b'"blob":{' in line for line in left)
    found = compare(left, right)
    assert (found.parting, found.turns) == (None, 3)
    parting = parting_of(left, await kept_apart("wednesday", BOOK + "!"))
    assert (parting.kind, parting.turn) == ("result", 0)


async def test_given_a_recording_with_blobs_when_it_is_replayed_under_another_id_then_it_is_the_same() -> None:
    records = await kept_apart("monday", BOOK)

    @tool(effect="read")
    async def book() -> str:
        return BOOK

    log, provider = InMemorySessionLog(), ReplayProvider(records)
    runner = RuntimeRunner(
        RuntimeOptions(
            provider=provider,
            session_log=log,
            execution_plane=LocalExecutionPlane().register(book),
            max_tokens=20_000,
        )
    )
    await runner.run("Read it.", session_id="another")
    again = await log.read("another")
    assert compare(records, again).parting is None
    assert [json.loads(line)["event"]["type"] for line in again] == [
        json.loads(line)["event"]["type"] for line in records
    ]
    settled = [event for event in (json.loads(line)["event"] for line in again) if event["type"] == "settled"]
    assert ["error_kind" in event["result"] for event in settled] == [False, False]


LEFT_OUT = re.compile(rb"\[result left out, (\d+) tokens")


async def read_on(session: str, provider: LLMProvider) -> list[bytes]:
    """A session whose first results were left out of the prompt, each of them kept in a blob."""
    log = InMemorySessionLog()

    @tool(effect="read")
    async def book(number: int) -> str:
        return f"{number}\n{BOOK}"

    plane = LocalExecutionPlane().register(book)
    options = RuntimeOptions(provider=provider, session_log=log, execution_plane=plane, max_tokens=8_000)
    assert (await RuntimeRunner(options).run("Read.", session_id=session)).status == "completed"
    return await log.read(session)


def reader() -> ScriptedProvider:
    asks: list[Spoken] = [calls(ToolCall(f"c{number}", "book", json.dumps({"number": number}))) for number in range(8)]
    return ScriptedProvider([*asks, "It is read."])


async def test_given_results_in_blobs_that_left_the_prompt_when_run_again_under_another_id_then_it_is_the_same() -> (
    None
):
    left, right = await read_on("monday", reader()), await read_on("tuesday", reader())
    weights = [LEFT_OUT.findall(b"".join(records)) for records in (left, right)]
    assert weights[0] != weights[1] != []  # the name of a blob weighs otherwise in another session
    assert compare(left, right).parting is None
    provider = ReplayProvider(left)
    assert compare(left, await read_on("tuesday", provider)).parting is None
    assert provider.remaining == 0


@tool(effect="read")
async def look() -> str:
    """Look."""
    return "a whale"


async def delegated(session: str, log: InMemorySessionLog) -> None:
    plane = LocalExecutionPlane().register(look)
    chief = ScriptedProvider(
        [
            calls(ToolCall("c1", "delegate", json.dumps({"task": "Look.", "role": "searcher"}))),
            calls(ToolCall("c2", "look", "{}")),
            "It is there.",
            "Found.",
        ]
    )
    spec = AgentRunSpec("searcher", description="finds things", tools=["look"])
    options = RuntimeOptions(provider=chief, session_log=log, execution_plane=plane, sub_agents=[spec])
    assert (await RuntimeRunner(options).run("What is there?", session_id=session)).text == "Found."


async def test_given_sub_agents_of_two_sessions_when_compared_then_whose_they_are_is_no_difference() -> None:
    log = InMemorySessionLog()
    await delegated("monday", log)
    await delegated("tuesday", log)
    for of in ("", "/2"):
        assert compare(await log.read(f"monday{of}"), await log.read(f"tuesday{of}")).parting is None
    parting = parting_of(await log.read("monday"), await log.read("monday/2"))
    assert "agents.parent" in parting.cause
