"""The snippets people meet first, run as they are printed, over a real loopback socket."""

from __future__ import annotations

import ast
import asyncio
import re
from pathlib import Path

import pytest

from deepstrike import (
    DoneEvent,
    InMemorySessionLog,
    LocalExecutionPlane,
    OpenAIProvider,
    RuntimeOptions,
    RuntimeRunner,
    TextDelta,
    ToolCallEvent,
    read_file,
)
from deepstrike.providers.base import Finish, ModelEvent, ToolCall
from deepstrike.testing import ModelServer
from deepstrike.wire.message import Usage

QUICK_START = '''
import asyncio
from deepstrike import (
    InMemorySessionLog,
    LocalExecutionPlane,
    OpenAIProvider,
    RuntimeOptions,
    RuntimeRunner,
    collect_text,
    tool,
)

@tool
async def add(x: int, y: int) -> str:
    """Add two numbers."""
    return str(x + y)

plane = LocalExecutionPlane().register(add)
runner = RuntimeRunner(RuntimeOptions(
    provider=OpenAIProvider(api_key="sk-...", model="gpt-5-mini"),
    session_log=InMemorySessionLog(),
    execution_plane=plane,
    max_tokens=4096,
    max_turns=25,
))

asyncio.run(collect_text(runner.run_streaming("What is 17 + 28?")))
'''

CONTRACT = Path(__file__).parents[2] / "../shared/spec/package-description.txt"


def value_of(source: str) -> object:
    """Run a script and give the value of its last line, which must be an expression."""
    script = ast.parse(source)
    last = script.body.pop()
    assert isinstance(last, ast.Expr)
    names: dict[str, object] = {"__name__": "__main__"}
    exec(compile(script, "<snippet>", "exec"), names)
    return eval(compile(ast.Expression(last.value), "<snippet>", "eval"), names)


def adding_server() -> ModelServer:
    return ModelServer(
        [
            [ToolCall("call_1", "add", '{"x": 17, "y": 28}'), Usage(60, 20), Finish("tool_calls")],
            [TextDelta("4"), TextDelta("5"), Usage(90, 2), Finish("stop")],
        ]
    )


def test_the_quick_start_gives_45_through_one_tool_call(monkeypatch: pytest.MonkeyPatch) -> None:
    with adding_server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        assert value_of(QUICK_START) == "45"
        assert server.refused == []
        first, second = (request.body for request in server.requests)
    messages = second["messages"]
    assert isinstance(messages, list)
    assert [message["role"] for message in messages] == ["user", "assistant", "tool"]
    assert messages[0]["content"] == "What is 17 + 28?"
    assert messages[2] == {"role": "tool", "tool_call_id": "call_1", "content": "45"}
    assert first["model"] == "gpt-5-mini"
    assert "max_tokens" not in first, "the context window is never sent as an output limit"


@pytest.mark.skipif(not CONTRACT.exists(), reason="the description is not beside this checkout")
def test_the_quick_start_is_the_descriptions_own(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = re.search(
        r"^import asyncio\nfrom deepstrike import \(.*?^asyncio\.run\([^\n]*\n", CONTRACT.read_text(), re.M | re.S
    )
    assert printed is not None
    assert printed.group() == QUICK_START.lstrip()
    with adding_server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        assert value_of(printed.group()) == "45"


async def test_the_streaming_loop_prints_text_calls_and_the_end(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("Deepstrike runs agents.")
    replies: list[list[ModelEvent]] = [
        [ToolCall("call_1", "read_file", '{"path": "README.md"}'), Finish("tool_calls")],
        [TextDelta("It runs "), TextDelta("agents."), Finish("stop")],
    ]
    async with ModelServer(replies) as server:
        runner = RuntimeRunner(
            RuntimeOptions(
                provider=OpenAIProvider(api_key="sk-...", model="gpt-5-mini", base_url=server.base_url),
                session_log=InMemorySessionLog(),
                execution_plane=LocalExecutionPlane().register(read_file),
                max_tokens=4096,
                max_turns=25,
            )
        )
        async for event in runner.run_streaming("Summarize README.md"):
            if isinstance(event, TextDelta):
                print(event.delta, end="", flush=True)
            elif isinstance(event, ToolCallEvent):
                print(f"\n[→ {event.name}]")
            elif isinstance(event, DoneEvent):
                print(f"\ndone in {event.iterations} turns ({event.status})")
        await runner.aclose()
        messages = server.requests[1].body["messages"]
    assert isinstance(messages, list)
    assert "Deepstrike runs agents." in messages[2]["content"]
    assert capsys.readouterr().out == "\n[→ read_file]\nIt runs agents.\ndone in 2 turns (completed)\n"


def test_the_same_runner_serves_two_loops_over_http() -> None:
    with ModelServer(otherwise="45") as server:
        provider = OpenAIProvider(api_key="sk-...", model="gpt-5-mini", base_url=server.base_url)
        runner = RuntimeRunner(RuntimeOptions(provider=provider))
        assert [asyncio.run(runner.run("again").result()).text for _ in range(2)] == ["45", "45"]
