"""A recorded session answers in the place of the model."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from samples import SESSIONS, SUM, add, calls, fail, hang, late, recorded, run, runner_of

from deepstrike import (
    ConfigError,
    InMemorySessionLog,
    LocalExecutionPlane,
    ModelRequest,
    ProviderError,
    RunFailed,
    RuntimeOptions,
    RuntimeRunner,
    StreamEvent,
    tool,
)
from deepstrike.errors import UnknownSession
from deepstrike.providers.base import Artefact, Finish, ModelEvent, ToolCall
from deepstrike.providers.replayed import ReplayProvider
from deepstrike.providers.scripted import ScriptedProvider
from deepstrike.replay.comparison import compare
from deepstrike.stream import TextDelta, ThinkingDelta
from deepstrike.wire.message import Notice, Usage

LONG = "It is 45, and here is why: " + "seventeen and twenty-eight are forty-five. " * 5


def runner(provider: ReplayProvider | ScriptedProvider, log: InMemorySessionLog | None = None) -> RuntimeRunner:
    plane = LocalExecutionPlane().register(add, late, hang, fail)
    return RuntimeRunner(RuntimeOptions(provider=provider, session_log=log, execution_plane=plane, max_turns=5))


async def events(runner: RuntimeRunner, goal: str = "What is 17 + 28?") -> list[StreamEvent]:
    """The events of a run with the text in one piece; the pieces of the day are not recorded."""
    told: list[StreamEvent] = []
    async for event in runner.run_streaming(goal, session_id="s"):
        last = told[-1] if told else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            told[-1] = TextDelta(last.delta + event.delta)
        elif isinstance(event, ThinkingDelta) and isinstance(last, ThinkingDelta):
            told[-1] = ThinkingDelta(last.delta + event.delta)
        else:
            told.append(event)
    return told


REPLIES: list[list[ModelEvent]] = [
    [
        ThinkingDelta("I add "),
        ThinkingDelta("them, one by one, as everybody does."),
        Artefact("scripted", '{"signature":"x"}'),
        TextDelta("Adding."),
        ToolCall("c1", "add", '{"x": "17", "y": 28}'),
        ToolCall("c1", "late", ""),
        ToolCall("", "nowhere", "{"),
        Usage(100, 10, 40, 5, 3),
        Notice("dropped_field", "the model takes no temperature"),
        Finish("tool_calls"),
    ],
    [TextDelta(LONG), Usage(200, 50), Finish("stop")],
]


async def test_given_a_recorded_run_when_it_is_run_again_then_the_events_and_the_records_are_the_same() -> None:
    log, again = InMemorySessionLog(), InMemorySessionLog()
    told = await events(runner(ScriptedProvider(REPLIES), log))
    provider = await ReplayProvider.from_log(log, "s")

    retold = await events(runner(provider, again))

    def order(event: StreamEvent) -> str:
        return "" if event.type == "notice" else "told"

    assert [event for event in retold if order(event)] == [event for event in told if order(event)]
    assert sorted(map(repr, retold)) == sorted(map(repr, told))
    assert [json.loads(line)["event"] for line in await again.read("s")] == [
        json.loads(line)["event"] for line in await log.read("s")
    ]
    assert provider.remaining == 0


async def test_given_a_long_text_when_replayed_then_it_comes_in_pieces() -> None:
    log = InMemorySessionLog()
    await run(runner(ScriptedProvider(REPLIES), log))
    provider = await ReplayProvider.from_log(log, "s")

    pieces = [
        event.delta
        async for event in runner(provider).run_streaming("What is 17 + 28?")
        if isinstance(event, TextDelta)
    ]

    assert "".join(pieces) == "Adding." + LONG
    assert len(pieces) > 5
    assert max(map(len, pieces)) < 60


@pytest.mark.parametrize("name", ["plain", "tools", "parallel", "endings"])
async def test_given_a_session_when_all_its_goals_are_run_again_then_it_goes_the_same_way(name: str) -> None:
    records = await recorded(name)
    goals = [
        event["goal"][0]["text"]
        for event in (json.loads(line)["event"] for line in records)
        if event["type"] == "started"
    ]
    log, provider = InMemorySessionLog(), ReplayProvider(records)

    for goal in goals:
        await run(runner(provider, log), goal)

    assert compare(records, await log.read("s")).parting is None
    assert provider.remaining == 0


@pytest.mark.parametrize("name", SESSIONS)
async def test_given_any_session_when_its_replies_are_asked_for_then_each_comes_once(name: str) -> None:
    records = await recorded(name)
    provider = ReplayProvider(records, strict=False)
    expected = sum(b'"type":"replied"' in line for line in records) + (name == "cut")
    request = ModelRequest("", "", (), (), {})

    assert provider.remaining == expected
    for left in reversed(range(expected)):
        with suppress(ProviderError):
            assert [event async for event in provider.stream(request)]
        assert provider.remaining == left
    with pytest.raises(ProviderError, match=f"has {expected} replies and this is request {expected + 1}"):
        await provider.stream(request).__anext__()


async def test_given_replies_that_failed_when_replayed_then_they_fail_the_same_way() -> None:
    records = await recorded("cut")
    provider = ReplayProvider(records)
    log = InMemorySessionLog()
    broken = RuntimeRunner(RuntimeOptions(provider=provider, session_log=log))

    with pytest.raises(RunFailed) as first:
        await broken.run("What is 17 + 28?", session_id="s")
    with pytest.raises(RunFailed) as second:
        await broken.run("And now?", session_id="s")

    assert (first.value.code, first.value.retryable, first.value.result.text) == ("truncated", True, "It is")
    assert (second.value.code, second.value.result.text) == ("provider", "")


async def test_given_another_goal_when_replayed_then_the_difference_is_named() -> None:
    failure = await failure_of(ReplayProvider(await recorded("plain")), "What is 1 + 2?")

    assert failure == (
        "replay_mismatch",
        'request 1 is not the one that was recorded: the goal: parts[0].text is "What is 1 + 2?", recorded was '
        '"What is 17 + 28?". Record the session again, or use ReplayProvider(…, strict=False)',
    )


async def failure_of(
    provider: ReplayProvider, goal: str = "What is 17 + 28?", plane: LocalExecutionPlane | None = None
) -> tuple[str | None, str]:
    tools = plane or LocalExecutionPlane().register(add, late, hang, fail)
    with pytest.raises(RunFailed) as failed:
        await RuntimeRunner(RuntimeOptions(provider=provider, execution_plane=tools)).run(goal)
    return failed.value.code, failed.value.message


async def test_given_other_tools_when_replayed_then_the_tool_is_named() -> None:
    plane = LocalExecutionPlane().register(add, late, hang)

    code, message = await failure_of(ReplayProvider(await recorded("plain")), plane=plane)

    assert code == "replay_mismatch"
    assert message.startswith('request 1 is not the one that was recorded: tools.fail is missing, recorded was {"name"')


async def test_given_a_tool_that_returns_something_else_when_replayed_then_the_turn_and_the_result_are_named() -> None:
    @tool(name="add")
    async def wrong(x: int, y: int) -> str:
        """Add two numbers."""
        return str(x + y + 1)

    log = InMemorySessionLog()
    await run(runner_of(log, calls(SUM), "It is 45."))
    provider = await ReplayProvider.from_log(log, "s")

    _, message = await failure_of(provider, plane=LocalExecutionPlane().register(wrong, late, hang, fail))

    assert message.startswith(
        "request 2 is not the one that was recorded: the result of add (turns[2]): parts[0].text is "
        '"46", recorded was "45".'
    )


async def test_given_no_check_when_another_goal_is_run_then_it_is_answered() -> None:
    provider = ReplayProvider(await recorded("plain"), strict=False)

    assert (await runner(provider).run("Anything else?")).text == "It is 45."


async def test_given_a_recording_whose_texts_were_masked_when_replayed_without_a_check_then_it_answers() -> None:
    masked = [line.replace(b"17 + 28", b"***") for line in await recorded("tools")]
    provider = ReplayProvider(masked, strict=False)

    assert (await runner(provider).run("What is 17 + 28?")).text == "It is 45."


async def test_given_more_requests_than_replies_when_replayed_then_that_is_said() -> None:
    provider = ReplayProvider(await recorded("plain"))
    await run(runner(provider))

    code, message = await failure_of(provider)

    assert code == "replay_exhausted"
    assert message == (
        "the recorded session has 1 replies and this is request 2: the run goes on where the recorded one ended"
    )


async def test_given_lines_of_a_file_when_replayed_then_they_will_do(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"\n".join(await recorded("plain")) + b"\n")

    provider = ReplayProvider(path.read_bytes().splitlines())

    assert (await runner(provider).run("What is 17 + 28?")).text == "It is 45."


async def test_given_what_is_no_session_when_a_provider_is_made_then_it_is_refused() -> None:
    records = await recorded("plain")

    with pytest.raises(ConfigError, match="lines of a session log as bytes"):
        ReplayProvider(b"".join(records))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="hold no goal"):
        ReplayProvider([])
    with pytest.raises(UnknownSession, match="'nope'"):
        await ReplayProvider.from_log(InMemorySessionLog(), "nope")
