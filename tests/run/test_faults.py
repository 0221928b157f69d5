"""What goes wrong around a run has words, and nothing is lost by it."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from doubles import Script, add, assert_paired, call, calls, done_of, events_of, only, result_texts, runner_of, say

from deepstrike import (
    ConfigError,
    DoneEvent,
    ErrorEvent,
    InMemorySessionLog,
    RunFailed,
    RuntimeOptions,
    RuntimeRunner,
    TextDelta,
    ToolCallEvent,
    ToolResultEvent,
    collect_text,
)
from deepstrike.errors import RateLimited
from deepstrike.providers.base import Finish
from deepstrike.text import well_formed_json
from deepstrike.wire.message import AssistantBlock, CallBlock


class FailingLog(InMemorySessionLog):
    """A log that fails at the `n`-th append, or at one of its other methods."""

    def __init__(self, append: int = -1, *, fails: str = "") -> None:
        super().__init__()
        self.left = append
        self.fails = fails

    async def append(self, session_id: str, records: Sequence[bytes], expected_seq: int, *, owner: str) -> int:
        self.left -= 1
        if self.left == -1:
            raise OSError(28, "No space left on device")
        return await super().append(session_id, records, expected_seq, owner=owner)

    async def release(self, session_id: str, owner: str) -> None:
        await super().release(session_id, owner)
        if self.fails == "release":
            raise OSError("the lock file is gone")

    async def put_blob(self, session_id: str, data: bytes) -> str:
        if self.fails == "put_blob":
            raise OSError("no blobs today")
        return await super().put_blob(session_id, data)


@pytest.mark.parametrize("position", [0, 1, 2])
async def test_a_log_that_fails_ends_the_run_with_words_and_keeps_what_it_has(position: int) -> None:
    log = FailingLog(position)
    runner = runner_of(Script(calls(call("add", '{"x":1,"y":2}')), say("3")), add, log=log)
    events = await events_of(runner.run_streaming("1 + 2?", session_id="s"))
    assert [type(event) for event in events[-2:]] == [ErrorEvent, DoneEvent]
    assert "No space left on device" in only(ErrorEvent, events)[0].message
    assert done_of(events).status == "error"
    after = Script(say("fine"))
    assert (await runner_of(after, add, log=log).run("next", session_id="s")).status == "completed"
    assert_paired(after.turns[0])


async def test_a_log_that_fails_to_release_does_not_take_the_result() -> None:
    result = await runner_of(Script(say("hi")), log=FailingLog(fails="release")).run("hello")
    assert (result.status, result.text) == ("completed", "hi")


async def test_a_result_that_cannot_be_stored_keeps_its_preview() -> None:
    async def huge() -> str:
        return "line\n" * 100_000

    script = Script(calls(call("huge")), say("ok"))
    runner = runner_of(script, huge, log=FailingLog(fails="put_blob"), max_tokens=8_000)
    events = await events_of(runner.run_streaming("go"))
    assert [event.error_kind for event in only(ToolResultEvent, events)] == [None]
    assert result_texts(script.turns[1])[0].startswith("line\nline\n")


@pytest.mark.parametrize("text", ['{"y":' + "[" * 3_000 + "]" * 3_000 + "}", "[" * 3_000, '{"a":' * 3_000])
async def test_arguments_nested_beyond_reason_are_refused_and_not_sent_back(text: str) -> None:
    script = Script(calls(call("add", text)), say("ok"))
    events = await events_of(runner_of(script, add).run_streaming("go"))
    # How deep a Python reads what the model wrote depends on its version: `{}` where it does not.
    assert [(event.id, event.name) for event in only(ToolCallEvent, events)] == [("c1", "add")]
    assert [event.error_kind for event in only(ToolResultEvent, events)] == ["invalid_arguments"]
    assert done_of(events).status == "completed"
    block = script.turns[1][1]
    assert isinstance(block, AssistantBlock)
    (sent,) = block.parts
    assert isinstance(sent, CallBlock)
    assert json.loads(sent.args_text) == {"invalid_arguments": text}


async def test_a_lone_surrogate_in_arguments_is_replaced_before_it_is_sent_back() -> None:
    seen: list[str] = []

    async def note(text: str) -> str:
        seen.append(text)
        return "ok"

    script = Script(calls(call("note", '{"text": "a\\ud83d \\ud83d\\ude00 \\\\ud83d"}')), say("ok"))
    await runner_of(script, note).run("go")
    assert seen == ["a\ufffd 😀 \\ud83d"]
    block = script.turns[1][1]
    assert isinstance(block, AssistantBlock)
    assert block.parts == (CallBlock("c1", "note", '{"text": "a\ufffd \\ud83d\\ude00 \\\\ud83d"}'),)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (r'"\ud83d"', '"\ufffd"'),
        (r'"\ude00\ud83d\ude00"', '"\ufffd' + r'\ud83d\ude00"'),
        (r'"\\ud83d"', r'"\\ud83d"'),
        (r'"\\\ud83d"', r'"\\' + '\ufffd"'),
        (r'"\n\u00e9"', r'"\n\u00e9"'),
    ],
)
def test_only_lone_surrogate_escapes_are_replaced(text: str, right: str) -> None:
    assert well_formed_json(text) == right


async def test_run_failed_says_whether_trying_again_may_help() -> None:
    runner = runner_of(Script(RateLimited("slow down", status=429)))
    for attempt in (runner.run("x").result(), collect_text(runner.run_streaming("x"))):
        with pytest.raises(RunFailed) as failed:
            await attempt
        assert (failed.value.code, failed.value.retryable, failed.value.result.retryable) == (
            "rate_limited",
            True,
            True,
        )


async def test_a_provider_that_is_no_generator_fails_with_words() -> None:
    class Wrong:
        async def stream(self, _request: object) -> str:
            return "hello"

    runner = RuntimeRunner(RuntimeOptions(provider=Wrong()))  # type: ignore[arg-type]
    with pytest.warns(RuntimeWarning, match="never awaited"):
        events = await events_of(runner.run_streaming("x"))
    assert only(ErrorEvent, events)[0].code == "provider_error"


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"provider": object()}, "provider"),
        ({"session_log": object()}, "session_log"),
        ({"execution_plane": object()}, "execution_plane"),
        ({"system_prompt": 5}, "system_prompt"),
        ({"initial_memory": [5]}, "initial_memory"),
        ({"initial_memory": "one text"}, "initial_memory"),
        ({"agent_id": 5}, "agent_id"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_turns": True}, "max_turns"),
        ({"timeout_ms": 1.5}, "timeout_ms"),
        ({"max_total_tokens": -1}, "max_total_tokens"),
        ({"max_cost_usd": 1.0}, "max_cost_usd needs a price"),
        ({"max_cost_usd": float("nan")}, "max_cost_usd"),
        ({"max_parallel_tools": 0}, "max_parallel_tools"),
        ({"on_tool_suspend": "yes"}, "on_tool_suspend"),
        ({"durability": "tape"}, "durability"),
        ({"durability": "disk"}, "sessions in memory cannot promise it"),
        ({"durability": "os", "session_log": InMemorySessionLog()}, "InMemorySessionLog cannot promise it"),
        ({"extensions": {"max_output_tokens": "many"}}, "max_output_tokens"),
    ],
)
def test_wrong_options_raise_when_they_are_built(options: dict[str, object], names: str) -> None:
    with pytest.raises(ConfigError, match=names):
        RuntimeOptions(**{"provider": Script(say("x")), **options})  # type: ignore[arg-type]


async def test_a_log_on_disk_is_had_with_the_durability_that_is_asked_for() -> None:
    class OnDisk(InMemorySessionLog):
        """As a log on disk looks to the options."""

        def __init__(self) -> None:
            super().__init__()
            self.flushed = InMemorySessionLog()

        def with_durability(self, durability: str) -> InMemorySessionLog:
            return {"disk": self.flushed}[durability]

    log = OnDisk()
    options = RuntimeOptions(provider=Script(say("hi")), session_log=log, durability="disk")
    await RuntimeRunner(options).run("hello", session_id="s")
    assert (await log.flushed.sessions(), await log.sessions()) == (["s"], [])


@pytest.mark.parametrize(
    ("field", "value"), [("goal", None), ("goal", 5), ("goal", [5]), ("criteria", "one"), ("criteria", [5])]
)
def test_wrong_arguments_of_a_run_raise_at_once(field: str, value: object) -> None:
    arguments: dict[str, object] = {"goal": "x", field: value}
    with pytest.raises(ConfigError, match=field.rstrip("a").rstrip("i")):
        runner_of(Script(say("x"))).run_streaming(**arguments)  # type: ignore[arg-type]


async def test_an_answer_that_stops_for_an_unknown_reason_is_an_answer() -> None:
    result = await runner_of(Script([TextDelta("so be it"), Finish("moonlight")])).run("x")
    assert (result.status, result.text) == ("completed", "so be it")
