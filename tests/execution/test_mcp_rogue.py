"""MCP planes against a server that does what servers should not: no hang, no leak, and an error that says why."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from mcp_calls import alive, call, children, rogue, text_of, until

from deepstrike import (
    CompositePlane,
    DoneEvent,
    ErrorEvent,
    InMemorySessionLog,
    RuntimeOptions,
    RuntimeRunner,
    ScriptedProvider,
    ToolResultEvent,
    UsageEvent,
)
from deepstrike.errors import ConfigError, DeepStrikeError, RunFailed
from deepstrike.execution.mcp.elicitation import Elicitation
from deepstrike.providers.base import Finish, ModelEvent, ToolCall
from deepstrike.stream import NoticeEvent
from deepstrike.wire.message import Text, ToolResult

pytest.importorskip("mcp", reason="the official client is not installed")
from deepstrike.execution.mcp.plane import McpExecutionPlane

FINE = ToolResult((Text("fine"),))


def plane_of(mode: str = "plain", journal: Path | None = None, *, timeout_ms: int = 10_000) -> McpExecutionPlane:
    """The older revision, so that no probing is waited for."""
    return McpExecutionPlane(rogue(mode, journal), timeout_ms=timeout_ms, revision="2025-11-25")


@pytest.mark.parametrize(
    ("tool", "kind", "words"),
    [
        ("noise", "", "fine, too"),
        ("bytes", "", "after it"),
        ("surrogate", "", "a\ufffd"),
        ("big", "", "y" * 1_100_000),
        ("asks_roots", "", '{"code": -32600, "message": "List roots not supported"}'),
        (
            "broken",
            "exception",
            "the server reports: the server's answer is no message of the protocol (code -32700); "
            "the call may have taken effect",
        ),
        (
            "minus",
            "exception",
            "the server reports: the disk is full (code -32000); the call may have taken effect",
        ),
        (
            "endless",
            "exception",
            "the server ended before it answered: it sent a message of more than 16777216 bytes",
        ),
        ("closed", "exception", "the server ended before it answered: it closed its output"),
    ],
)
async def test_given_an_answer_that_is_none_when_called_then_it_is_a_result_and_the_next_call_is_served(
    tool: str, kind: str, words: str
) -> None:
    async with plane_of() as plane:
        odd = await call(plane, tool)
        after = await call(plane, "ok")

    assert (odd.error_kind, text_of(odd)[: len(words) + 20], after) == (kind, words, FINE)


async def test_given_half_an_answer_when_called_then_the_call_times_out_and_the_next_is_served() -> None:
    async with plane_of(timeout_ms=1000) as plane:
        odd = await call(plane, "half")
        after = await call(plane, "ok")

    assert (odd.error_kind, after) == ("timeout", FINE)


async def test_given_an_answer_nested_too_deeply_when_called_then_it_is_an_error_and_the_next_call_is_served() -> None:
    async with plane_of(timeout_ms=1000) as plane:
        odd = await call(plane, "deep")
        after = await call(plane, "ok")

    assert odd.error_kind in ("timeout", "tool_error")  # some Pythons read deep enough to see whose answer it is
    assert after == FINE


async def test_given_a_server_that_hangs_when_it_stays_silent_then_the_call_after_next_gets_a_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("deepstrike.execution.mcp.contact.PROBE_SECONDS", 0.1)
    async with plane_of(timeout_ms=500) as plane:
        before = children()
        late = await call(plane, "mute")
        await until(lambda: not any(alive(pid) for pid in before))
        after = await call(plane, "ok")

    assert (late.error_kind, after) == ("timeout", FINE)


@pytest.mark.parametrize("tool", ["deaf_notes", "deaf_pings", "deaf_progress", "deaf_answers"])
async def test_given_a_server_that_talks_and_reads_nothing_any_more_when_a_call_times_out_then_there_is_a_new_one(
    tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deepstrike.execution.mcp.contact.PROBE_SECONDS", 0.1)
    before = children()
    async with plane_of(timeout_ms=500) as plane:
        started = children() - before
        late = await call(plane, tool)
        if tool == "deaf_progress":  # a sign of life while somebody waits for it; nobody waits for that of the first
            late = await call(plane, "ok")
        await until(lambda: not any(alive(pid) for pid in started))
        after = await call(plane, "ok")

    assert (late.error_kind, after) == ("timeout", FINE)


async def test_given_more_calls_than_a_pipe_holds_when_the_server_reads_nothing_any_more_then_there_is_a_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("deepstrike.execution.mcp.contact.PROBE_SECONDS", 0.1)
    before = children()
    async with plane_of(timeout_ms=500) as plane:
        started = children() - before
        large = json.dumps({"x": "y" * 300_000})
        deaf = asyncio.ensure_future(call(plane, "deaf_notes"))
        late = await asyncio.gather(deaf, *(call(plane, "ok", large) for _ in range(3)))
        await until(lambda: not any(alive(pid) for pid in started))
        after = await call(plane, "ok")

    assert ({each.error_kind for each in late}, after) == ({"timeout"}, FINE)


async def test_given_a_server_that_talks_while_it_works_when_a_call_times_out_then_it_is_kept() -> None:
    before = children()
    async with plane_of(timeout_ms=500) as plane:
        started = children() - before
        late = await call(plane, "tells")
        after = await call(plane, "ok")

        assert (late.error_kind, after, children() - before) == ("timeout", FINE, started)


async def test_given_questions_nobody_answers_when_the_server_asks_then_it_is_declined_with_a_clear_text() -> None:
    async with plane_of() as plane:
        done = await call(plane, "ask")

    note = "[The server asked the user: 'Sure?'. It was declined, because nobody is there to answer.]"
    assert done == ToolResult((Text('{"action": "decline"}'), Text(note)))


async def test_given_a_list_in_pages_when_opened_then_every_page_is_read() -> None:
    async with plane_of("pages") as plane:
        assert [spec.name for spec in plane.specs()] == ["a", "b"]


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("half_list", "MCPError: page two is lost"),
        ("endless_list", "the server's list of tools has no end: over 256 pages"),
        ("usage", "its last words: no such option; the key is ***"),
        ("usage", "it printed what is no message of the protocol: 'usage: nothing of the kind'"),
        ("usage", "it ended with exit code 2"),
        ("wordy", "it ended with exit code 1; its last words: ***zzz"),
    ],
)
async def test_given_a_server_that_cannot_list_its_tools_when_opened_then_the_error_says_what_it_did(
    mode: str, words: str
) -> None:
    before = children()
    plane = McpExecutionPlane(rogue(mode), env={"KEY": "topsecretvalue"}, revision="2025-11-25")

    with pytest.raises(DeepStrikeError) as caught:
        await plane.open()

    assert words in caught.value.message
    assert (caught.value.code, caught.value.retryable) == ("mcp_unavailable", True)
    assert children() == before


async def test_given_a_server_that_never_speaks_when_opened_then_it_is_given_up_after_the_time() -> None:
    before = children()
    plane = McpExecutionPlane(rogue("silent"), connect_timeout_ms=500)

    with pytest.raises(DeepStrikeError, match="it did not answer within 500 ms"):
        await plane.open()

    assert children() == before


async def test_given_a_banner_on_its_output_when_opened_then_it_serves_all_the_same() -> None:
    async with plane_of("chatty") as plane:
        assert await call(plane, "ok") == FINE


async def test_given_an_older_server_when_no_revision_is_asked_for_then_the_older_one_is_spoken(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    async with McpExecutionPlane(rogue("plain", journal)) as plane:
        assert await call(plane, "ok") == FINE

    heard = [json.loads(line) for line in journal.read_text().splitlines()]
    methods = [message["method"] for message in heard]
    assert methods == ["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call"]
    assert (heard[1]["params"]["protocolVersion"], heard[1]["params"]["capabilities"]) == (
        "2025-11-25",
        {"elicitation": {"form": {}, "url": {}}},
    )


async def test_given_a_call_that_is_cancelled_when_the_server_listens_then_it_reads_that(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    async with plane_of("plain", journal) as plane:
        waiting = asyncio.ensure_future(call(plane, "half"))
        await until(lambda: '"tools/call"' in journal.read_text())
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await until(lambda: "notifications/cancelled" in journal.read_text())

    heard = [json.loads(line) for line in journal.read_text().splitlines()]
    called = next(message for message in heard if message["method"] == "tools/call")
    assert heard[-1]["params"]["requestId"] == called["id"]


async def test_given_names_and_schemas_that_cannot_be_offered_when_opened_then_the_rest_is_and_the_plane_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with plane_of("odd_names") as plane:
        names = [spec.name for spec in plane.specs()]
        omitted = plane.omitted

    assert names == [f"{'n' * 57}_feed93", "x_y", "x_y_b24ca9", "x_y_bd3c90"]
    assert sorted(omitted) == ["bad", "vast"]
    assert ["'bad' is not offered" in caplog.text, "'vast' is not offered" in caplog.text] == [True, True]


async def test_given_tools_that_are_listed_wrongly_when_opened_then_only_they_are_left_out() -> None:
    async with plane_of("misfits") as plane:
        names = [spec.name for spec in plane.specs()]
        served = await call(plane, "ok")

    assert names == ["mcp_recall", "ok"]
    assert served == FINE
    wrongly = "the server lists it wrongly: inputSchema"
    assert plane.omitted == {
        "empty": f"{wrongly}.type: Field required",
        "word": f"{wrongly}: Input should be a valid dictionary or instance of InputSchema",
        "(a tool without a name)": f"{wrongly}: Field required",
    }
    assert [notice.code for notice in plane.notices()] == [*["tool_omitted"] * 3, "tool_renamed"]
    assert plane.notices()[-1].message == (
        "McpExecutionPlane('python'): the tool 'recall' is offered as 'mcp_recall'; 'recall' is the runtime's own"
    ).replace("'python'", repr(Path(sys.executable).name))


async def test_given_a_server_that_is_down_when_a_run_begins_then_its_stream_ends_with_an_error_and_done() -> None:
    log = InMemorySessionLog()
    options = RuntimeOptions(provider=ScriptedProvider(["x"]), execution_plane=plane_of("usage"), session_log=log)
    async with RuntimeRunner(options) as runner:
        error, done = [event async for event in runner.run_streaming("go", session_id="s")]

    assert isinstance(error, ErrorEvent)
    assert isinstance(done, DoneEvent)
    assert (error.code, error.retryable) == ("mcp_unavailable", True)
    assert error.message.endswith("nothing is recorded: run it again when that is mended")
    assert done == DoneEvent(0, 0, "error", UsageEvent(0, 0), "s")
    assert await log.sessions() == []


async def test_given_one_server_of_several_that_is_down_when_a_run_begins_then_it_goes_on_and_says_so() -> None:
    calls: list[ModelEvent] = [ToolCall("1", "ok", "{}"), ToolCall("2", "gone", "{}"), Finish("tool_calls")]
    plane = CompositePlane(plane_of(), plane_of("usage"))
    async with RuntimeRunner(
        RuntimeOptions(provider=ScriptedProvider([calls, "done"]), execution_plane=plane)
    ) as runner:
        events = [event async for event in runner.run_streaming("go")]

    notice, results = events[0], [event for event in events if isinstance(event, ToolResultEvent)]
    why = f"the tools of McpExecutionPlane({Path(sys.executable).name!r}) are missing: the MCP server "
    assert isinstance(notice, NoticeEvent)
    assert (notice.code, notice.message[: len(why)]) == ("plane_unavailable", why)
    told = {event.call_id: (event.error_kind, why in event.content) for event in results}
    assert told == {"1": (None, False), "2": ("unknown_tool", True)}
    assert isinstance(events[-1], DoneEvent)
    assert events[-1].status == "completed"


async def test_given_a_required_server_that_is_down_when_a_run_begins_then_there_is_none() -> None:
    down = plane_of("usage")
    for plane in (CompositePlane(plane_of(), down, required=[down]), CompositePlane(plane_of("wordy"), required=True)):
        async with RuntimeRunner(RuntimeOptions(provider=ScriptedProvider(["x"]), execution_plane=plane)) as runner:
            with pytest.raises(RunFailed) as failed:
                await runner.run("go")

        assert failed.value.code == "mcp_unavailable"


async def test_given_a_server_that_will_not_end_when_closed_then_it_is_killed() -> None:
    before = children()
    async with plane_of("stubborn"):
        started = children() - before

    assert [alive(pid) for pid in started] == [False]


async def test_given_fifty_cycles_when_all_are_closed_then_no_task_process_thread_or_file_is_left() -> None:
    async def cycle() -> None:
        async with plane_of() as plane:
            assert await call(plane, "ok") == FINE

    def held() -> tuple[int, int, int]:
        gc.collect()
        return len(asyncio.all_tasks()), len(children()), len(os.listdir("/proc/self/fd"))

    await cycle()
    before, threads = held(), threading.active_count()
    for _ in range(5):
        await asyncio.gather(*(cycle() for _ in range(10)))

    assert held() == before
    assert threading.active_count() <= threads


async def test_given_a_command_that_is_not_there_when_opened_then_the_error_says_so_at_once() -> None:
    with pytest.raises(ConfigError, match="'no-such-program' cannot be started: No such file or directory"):
        await McpExecutionPlane("no-such-program --flag").open()


async def test_given_many_who_need_it_when_it_is_not_open_then_one_server_is_started() -> None:
    before = children()
    plane = plane_of()

    results = await asyncio.gather(*(call(plane, "ok") for _ in range(8)))
    started = children() - before
    await plane.aclose()

    assert (results, len(started)) == ([FINE] * 8, 1)


async def test_given_an_open_in_the_making_when_the_plane_is_closed_then_whoever_waits_hears_it() -> None:
    before = children()
    plane = McpExecutionPlane(rogue("silent"))
    opening = asyncio.ensure_future(plane.open())
    await until(lambda: children() != before)
    await plane.aclose()

    with pytest.raises(DeepStrikeError, match="was closed"):
        await opening
    assert children() == before


def test_given_a_loop_that_ends_without_a_close_when_it_is_gone_then_so_is_the_server() -> None:
    code = f"""
import asyncio, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from mcp_calls import call, children, rogue, text_of
from deepstrike.execution.mcp.plane import McpExecutionPlane
async def main():
    print(text_of(await call(McpExecutionPlane(rogue("plain")), "ok")), len(children()))
asyncio.run(main())
print(len(children()))
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (0, "fine 1\n0\n", "")


def test_given_a_server_of_another_loop_when_the_plane_is_closed_then_its_calls_end_there_too(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    plane = plane_of("plain", journal)
    in_flight = threading.Event()
    results: list[ToolResult] = []

    async def use() -> None:
        waiting = asyncio.ensure_future(call(plane, "half"))
        await until(lambda: journal.exists() and '"half"' in journal.read_text())
        in_flight.set()
        results.append(await waiting)

    before = children()
    thread = threading.Thread(target=lambda: asyncio.run(use()))
    thread.start()
    assert in_flight.wait(20)
    asyncio.run(plane.aclose())
    thread.join(20)

    assert results == [ToolResult((Text("the server ended before it answered: it was closed"),), "exception")]
    assert children() == before


async def test_given_a_server_that_died_while_nobody_called_when_called_then_a_new_one_serves_the_call() -> None:
    before, tasks = children(), asyncio.all_tasks()
    async with plane_of() as plane:
        (pid,) = children() - before
        os.kill(pid, signal.SIGKILL)
        await until(lambda: asyncio.all_tasks() == tasks)
        assert await call(plane, "ok") == FINE


async def test_given_calls_that_wait_for_their_turn_when_the_plane_is_closed_then_no_server_is_started_for_them() -> (
    None
):
    before = children()
    plane = plane_of()
    await plane.open()
    waiting = [asyncio.ensure_future(call(plane, "half")) for _ in range(20)]
    await asyncio.sleep(0)
    await plane.aclose()
    results = await asyncio.gather(*waiting)

    assert {result.error_kind for result in results} == {"exception"}
    assert children() == before


async def test_given_an_answer_of_the_user_that_is_no_text_when_the_server_asks_then_it_hears_that_nobody_decided(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def answer(_: Elicitation) -> dict[str, bool | str]:
        return {"sure": True, "why": "\ud800"}

    async with McpExecutionPlane(rogue("plain"), revision="2025-11-25", on_elicitation=answer) as plane:
        done = await call(plane, "ask")

    assert done == ToolResult((Text('{"action": "cancel"}'),))
    assert [record.levelname for record in caplog.records] == ["ERROR"]
