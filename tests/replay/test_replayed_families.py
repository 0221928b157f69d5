"""A recorded session and those of its sub-agents stand in for the model together."""

from __future__ import annotations

import json

import pytest
from samples import calls

from deepstrike import (
    InMemorySessionLog,
    LocalExecutionPlane,
    RunFailed,
    RunResult,
    RuntimeOptions,
    RuntimeRunner,
    tool,
)
from deepstrike.providers.base import LLMProvider, ModelRequest, ToolCall
from deepstrike.providers.replayed import ReplayProvider
from deepstrike.providers.scripted import ScriptedProvider, Spoken
from deepstrike.replay.comparison import compare
from deepstrike.wire.message import AssistantBlock, ResultBlock, Text

WORDS = ("whales", "wolves", "worms")


@tool(effect="read")
async def search(words: str) -> str:
    """Search the archive."""
    return f"3 letters about {words}"


def said(request: ModelRequest) -> Spoken:
    """What a model says that puts a sub-agent to each of its words, and one of these another one below it."""
    answers = [turn for turn in request.turns if isinstance(turn, ResultBlock)]
    results = [part.text for turn in answers for part in turn.parts if isinstance(part, Text)]
    texts = [part.text for turn in request.turns for part in turn.parts if isinstance(part, Text)]
    if any("Read the archive." in text for text in texts):
        if results:
            return f"Read: {results}"
        asked = (ToolCall(f"d{word}", "delegate", json.dumps({"task": word, "role": "searcher"})) for word in WORDS)
        return calls(*asked)
    word = next(word for word in (*WORDS, "below") if any(word in text for text in texts))
    if any(isinstance(turn, AssistantBlock) for turn in request.turns):
        return f"Found: {results}"
    if word == "worms":
        return calls(ToolCall("b", "delegate", json.dumps({"task": "below", "role": "reader"})))
    return calls(ToolCall(f"s{word}", "search", json.dumps({"words": word})))


async def read(log: InMemorySessionLog, session: str, provider: LLMProvider, *, looked: object = search) -> RunResult:
    plane = LocalExecutionPlane()
    plane.register(looked)  # type: ignore[arg-type]  # one of two tools
    options = RuntimeOptions(provider=provider, session_log=log, execution_plane=plane, sub_agents=True)
    return await RuntimeRunner(options).run("Read the archive.", session_id=session)


async def recorded() -> InMemorySessionLog:
    log = InMemorySessionLog()
    assert (await read(log, "monday", ScriptedProvider([said] * 20))).status == "completed"
    return log


async def test_given_a_recorded_family_when_run_again_then_every_session_of_it_is_the_same() -> None:
    log = await recorded()
    # Called like one of the family, and none of it.
    await RuntimeRunner(RuntimeOptions(provider=ScriptedProvider(["Hello."]), session_log=log)).run(
        "Hi.", session_id="monday/notes"
    )
    provider = await ReplayProvider.from_log(log, "monday")
    assert provider.remaining == 2 + 3 * 2 + 2
    again = InMemorySessionLog()
    assert (await read(again, "another", provider)).status == "completed"
    assert provider.remaining == 0
    family = [name for name in await log.sessions() if name != "monday/notes"]
    assert len(family) == len(await again.sessions()) == 5
    for name in family:
        other = name.replace("monday", "another")
        assert compare(await log.read(name), await again.read(other)).parting is None, name


async def test_given_another_tool_of_a_sub_agent_when_run_again_then_the_difference_is_named() -> None:
    log = await recorded()

    @tool(name="search", effect="read")
    async def another(words: str) -> str:
        """Search the archive."""
        return f"4 letters about {words}"

    provider = await ReplayProvider.from_log(log, "monday")
    again = InMemorySessionLog()
    with pytest.raises(RunFailed) as caught:
        await read(again, "another", provider, looked=another)
    assert caught.value.code == "replay_mismatch"
    assert "the result of delegate" in caught.value.message
    (searcher,) = [name for name in await again.sessions() if b'"whales"}' in (await again.read(name))[0]]
    assert b"the result of search" in b"".join(await again.read(searcher))


async def test_given_the_lines_of_a_family_when_run_again_without_a_check_then_each_gets_its_own_answers() -> None:
    log = await recorded()
    records = await log.read("monday")
    others = [await log.read(name) for name in await log.sessions() if name != "monday"]
    provider = ReplayProvider(records, strict=False, sub_agents=others[::-1])
    done = await read(InMemorySessionLog(), "another", provider)
    assert (done.status, provider.remaining) == ("completed", 0)
