"""Fields that stand in front of the turns follow the goal that brings them."""

from __future__ import annotations

from doubles import Script, say

from deepstrike import InMemorySessionLog, OpenAICompatibleProvider, RuntimeOptions, RuntimeRunner
from deepstrike.testing import ModelServer


async def test_given_other_extensions_for_a_further_goal_when_asked_then_they_are_sent() -> None:
    async with ModelServer(["one", "two", "three"]) as server:
        provider = OpenAICompatibleProvider(server.base_url, "m")
        runner = RuntimeRunner(RuntimeOptions(provider=provider, session_log=InMemorySessionLog()))
        for temperature in (0.1, 0.1, 0.9):
            await runner.run("go", session_id="s", extensions={"temperature": temperature})
        await provider.aclose()

    assert [request.body["temperature"] for request in server.requests] == [0.1, 0.1, 0.9]


async def test_given_two_sessions_when_asked_then_each_has_a_cache_key_of_its_own_that_does_not_tell_its_name() -> None:
    script = Script(say("one"))
    runner = RuntimeRunner(RuntimeOptions(provider=script, session_log=InMemorySessionLog()))

    for session in ("ada", "ada", "bob"):
        await runner.run("go", session_id=session)

    first, again, other = (request.cache_key for request in script.requests)
    assert first == again != other
    assert "ada" not in first
