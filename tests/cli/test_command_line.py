"""The `deepstrike` command as its users see it: real processes, in a pipe."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

import deepstrike
from deepstrike.providers.base import Finish, ModelEvent, ToolCall
from deepstrike.testing.server import ModelServer, Raw, chat_stream, refusal

LIMIT = 60
TOOLS = '''
import asyncio, sys, time
from deepstrike import tool

@tool
def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y

def shout(text: str) -> str:
    """Shout a text."""
    return text.upper() + "\\x1b[31m!"

@tool
async def wait() -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return "never"

async def block() -> str:
    """Block the event loop."""
    print("blocking", file=sys.stderr, flush=True)
    time.sleep(600)
    return "late"

@tool
async def stay() -> str:
    """Swallow every cancellation."""
    while True:
        try:
            await asyncio.sleep(600)
        except BaseException:
            print("staying", file=sys.stderr, flush=True)

async def doze() -> str:
    """Sleep in a thread of the event loop's own."""
    print("dozing", file=sys.stderr, flush=True)
    await asyncio.to_thread(time.sleep, 600)
    return "late"

number = 5
'''
SLOW = """
import sys, time
print("importing", file=sys.stderr, flush=True)
time.sleep(600)
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A working directory with a module of tools in it."""
    (tmp_path / "my_tools.py").write_text(TOOLS)
    (tmp_path / "broken.py").write_text("raise ValueError('on purpose\\nin two lines')")
    (tmp_path / "needy.py").write_text("import no_such_package_anywhere")
    (tmp_path / "leaving.py").write_text("raise SystemExit(0)")
    (tmp_path / "slow.py").write_text(SLOW)
    return tmp_path


def environment(**more: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("OPENAI_") and not name.endswith("_API_KEY")
    }
    return {**kept, "PYTHONPATH": str(Path(deepstrike.__file__).parents[1]), **more}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "deepstrike.cli", *arguments]


def call(here: Path, *arguments: str, stdin: str = "", **env: str) -> tuple[int, str, str]:
    done = subprocess.run(
        command(*arguments),
        cwd=here,
        input=stdin,
        env=environment(**env),
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def settled(text: str) -> str:
    """The text with what differs from run to run, times and token counts, made the same."""
    return re.sub(r"\d+ tokens · \d+\.\d\d s", "N tokens · T s", text)


@contextmanager
def start(here: Path, *arguments: str, **env: str) -> Iterator[subprocess.Popen[str]]:
    """A command in the background; one that a failed test leaves behind is ended."""
    with subprocess.Popen(
        command(*arguments),
        cwd=here,
        env=environment(**env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_to(stream: IO[str] | None, wanted: str) -> None:
    assert stream is not None
    for line in stream:
        if wanted in line:
            return
    raise AssertionError(f"the output ended before {wanted!r}")


def messages(server: ModelServer, request: int) -> list[dict[str, object]]:
    body = json.loads(server.requests[request].raw)
    return list(body["messages"])


# ---- demo


def test_given_no_key_when_demo_then_a_tool_call_gives_the_answer_and_one_line_sums_up(here: Path) -> None:
    code, out, err = call(here, "demo")
    assert (code, err) == (0, "")
    assert settled(out) == (
        "goal   What is 17 + 28?\n"
        "model  the built-in demo model: fixed rules, no language model\n"
        "\n"
        "→ add(x=17, y=28)\n"
        "← 45\n"
        "The answer is 45, by the tool add.\n"
        "2 turns · N tokens · T s\n"
    )


def test_given_json_when_demo_then_every_line_is_an_event(here: Path) -> None:
    code, out, _ = call(here, "demo", "--json")
    events = [json.loads(line) for line in out.splitlines()]
    assert (code, events[1]["type"], events[1]["arguments"]) == (0, "tool_call", {"x": 17, "y": 28})
    assert (events[-1]["type"], events[-1]["status"]) == ("done", "completed")


def test_given_another_goal_when_demo_then_several_tools_run_in_one_turn(here: Path) -> None:
    code, out, _ = call(here, "demo", "add 2 and 3 and multiply 4 by 5")
    assert code == 0
    assert settled(out).splitlines()[3:] == [
        "→ add(x=2, y=3)",
        "→ multiply(x=4, y=5)",
        "← 5",
        "← 20",
        "add: 5",
        "multiply: 20",
        "2 turns · N tokens · T s",
    ]


# ---- run


def test_given_tools_of_the_working_directory_when_run_then_only_the_answer_is_on_stdout(here: Path) -> None:
    code, out, err = call(here, "run", "What is 17 + 28?", "--model", "demo", "--tools", "my_tools:add")
    assert (code, out) == (0, "The answer is 45, by the tool add.\n")
    assert settled(err).splitlines() == [
        "the demo model is no language model; set OPENAI_API_KEY or use --model for a real one",
        "→ add(x=17, y=28)",
        "← 45",
        "2 turns · N tokens · T s",
    ]


def test_given_json_when_run_then_each_line_is_an_event_and_the_last_is_done(here: Path) -> None:
    code, out, _ = call(here, "run", "What is 17 + 28?", "--model", "demo", "--tools", "my_tools:add", "--json")
    events = [json.loads(line) for line in out.splitlines()]
    kinds = [event["type"] for event in events]
    assert code == 0
    assert [kind for n, kind in enumerate(kinds) if kinds[n - 1 : n] != [kind]] == [
        "usage",
        "tool_call",
        "tool_result",
        "text_delta",
        "usage",
        "done",
    ]
    assert events[1]["arguments"] == {"x": 17, "y": 28}
    assert (events[2]["content"], events[2]["is_error"]) == ("45", False)
    assert (events[-1]["status"], events[-1]["iterations"]) == ("completed", 2)


def test_given_escapes_in_a_result_when_run_then_they_are_shown_not_sent(here: Path) -> None:
    code, out, err = call(here, "run", "shout 'hey'", "--model", "demo", "--tools", "my_tools:shout")
    assert (code, out) == (0, "The answer is HEY\\x1b[31m!, by the tool shout.\n")
    assert "\x1b" not in err


def test_given_one_turn_when_it_is_not_enough_then_the_exit_code_is_3(here: Path) -> None:
    code, out, err = call(here, "run", "add 1 and 2", "--model", "demo", "--tools", "my_tools:add", "--max-turns", "1")
    assert (code, out) == (3, "")
    assert settled(err).splitlines()[-1] == "1 turn · N tokens · T s · max_turns"


def test_given_a_timeout_when_a_tool_takes_longer_then_the_exit_code_is_5(here: Path) -> None:
    code, _, err = call(here, "run", "wait", "--model", "demo", "--tools", "my_tools:wait", "--timeout", "0.2")
    assert code == 5
    assert settled(err).splitlines()[-1] == "1 turn · N tokens · T s · timeout"


def test_given_a_refused_key_when_run_then_it_says_so_without_the_key_and_ends_with_1(here: Path) -> None:
    key = "sk-secret-value-0123456789"
    with ModelServer([refusal(401, f"Incorrect API key provided: {key}")]) as server:
        code, out, err = call(here, "run", "hello", "--base-url", server.base_url, OPENAI_API_KEY=key)
    assert (code, out) == (1, "")
    assert [line for line in err.splitlines() if line.startswith("error: ") and line.endswith("[unauthorized]")]
    assert settled(err).splitlines()[-1].endswith("tokens · T s · error")
    assert key not in err


def test_given_a_compatible_server_when_run_then_the_tool_call_and_the_answer_cross_the_socket(here: Path) -> None:
    question: list[ModelEvent] = [ToolCall("call_1", "add", '{"x": 17, "y": 28}'), Finish("tool_calls")]
    with ModelServer([question, "It is 45."]) as server:
        code, out, err = call(
            here,
            "run",
            "What is 17 + 28?",
            "--model",
            "openai:any",
            "--base-url",
            server.base_url,
            "--system",
            "Be brief.",
            "--tools",
            "my_tools:add",
        )
    assert (code, out) == (0, "It is 45.\n")
    assert settled(err).splitlines() == ["→ add(x=17, y=28)", "← 45", "2 turns · N tokens · T s"]
    assert [message["role"] for message in messages(server, 1)] == ["system", "user", "assistant", "tool"]


def test_given_a_folder_of_skills_when_run_then_the_model_is_offered_them_and_can_load_one(here: Path) -> None:
    (here / "skills").mkdir()
    (here / "skills" / "sum.md").write_text("---\nname: sum\ndescription: adds up\n---\nAdd.\n")
    loads: list[ModelEvent] = [ToolCall("call_1", "skill", '{"name": "sum"}'), Finish("tool_calls")]
    with ModelServer([loads, "Done."]) as server:
        code, out, err = call(
            here, "run", "go", "--model", "openai:any", "--base-url", server.base_url, "--skills", "skills"
        )
    assert (code, out) == (0, "Done.\n")
    assert settled(err).splitlines()[:2] == ['→ skill(name="sum")', "← Add."]
    assert "- sum: adds up" in str(messages(server, 0)[0]["content"])


def test_given_a_folder_of_skills_that_is_not_there_when_run_then_it_is_wrong_usage(here: Path) -> None:
    code, _, err = call(here, "run", "go", "--model", "demo", "--skills", "nowhere")
    assert (code, "Directory 'nowhere' does not exist" in err) == (2, True)


def test_given_an_address_in_the_environment_when_run_then_it_is_used_and_named(here: Path) -> None:
    with ModelServer(["hello"]) as server:
        code, out, err = call(here, "run", "hi", OPENAI_BASE_URL=server.base_url)
    assert (code, out) == (0, "hello\n")
    assert err.splitlines()[0] == f"model: the default model at {server.base_url} (OPENAI_BASE_URL is set)"


def test_given_ctrl_c_when_the_answer_streams_then_what_was_shown_stays_and_the_exit_code_is_130(here: Path) -> None:
    writes = chat_stream("one two three")
    begun = Raw(writes[: next(n for n, write in enumerate(writes) if b"one" in write) + 1], end="stall")
    with ModelServer([begun]) as server, start(here, "run", "go", "--base-url", server.base_url) as process:
        assert process.stdout is not None
        shown = process.stdout.read(4)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    assert (process.returncode, shown + out) == (130, "one \n")
    assert settled(err).splitlines()[-1] == "1 turn · N tokens · T s · user_abort"


def test_given_ctrl_c_when_a_tool_runs_then_the_run_is_interrupted_and_the_exit_code_is_130(here: Path) -> None:
    with start(here, "run", "wait", "--model", "demo", "--tools", "my_tools:wait") as process:
        read_to(process.stderr, "→ wait()")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    assert (process.returncode, out) == (130, "")
    assert settled(err).splitlines()[-1] == "1 turn · N tokens · T s · user_abort"


def test_given_a_blocked_event_loop_when_ctrl_c_is_pressed_again_then_the_command_leaves(here: Path) -> None:
    with start(here, "run", "block", "--model", "demo", "--tools", "my_tools:block") as process:
        read_to(process.stderr, "blocking")
        for _ in range(LIMIT):
            process.send_signal(signal.SIGINT)
            try:
                _, err = process.communicate(timeout=1)
                break
            except subprocess.TimeoutExpired:
                continue
    assert process.returncode == 130
    assert "Traceback" not in err


def test_given_a_tool_that_swallows_its_cancellation_when_ctrl_c_is_pressed_then_the_command_still_ends_quietly(
    here: Path,
) -> None:
    with start(here, "run", "stay", "--model", "demo", "--tools", "my_tools:stay") as process:
        read_to(process.stderr, "→ stay()")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert settled(err).splitlines()[-1] in ("staying", "1 turn · N tokens · T s · user_abort")
    assert [line for line in ("Traceback", "destroyed", "ignored") if line in err] == []


def test_given_an_interrupted_run_that_does_not_end_when_ctrl_c_is_pressed_again_then_the_command_leaves_at_once(
    here: Path,
) -> None:
    with start(here, "run", "stay", "--model", "demo", "--tools", "my_tools:stay") as process:
        read_to(process.stderr, "→ stay()")
        process.send_signal(signal.SIGINT)
        read_to(process.stderr, "staying")  # the first one has arrived; signals that come together are one
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT)
    assert (process.returncode, err) in [(130, ""), (130, "staying\n")]


def test_given_a_tool_that_waits_for_a_thread_when_ctrl_c_is_pressed_then_nobody_waits_for_the_thread(
    here: Path,
) -> None:
    with start(here, "run", "doze", "--model", "demo", "--tools", "my_tools:doze") as process:
        read_to(process.stderr, "dozing")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert settled(err).splitlines()[-1] == "1 turn · N tokens · T s · user_abort"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("name", ["wait", "stay", "block"])
def test_given_a_signal_to_end_when_a_tool_runs_then_the_command_ends_with_its_code(
    here: Path, name: str, number: signal.Signals, code: int
) -> None:
    with start(here, "run", name, "--model", "demo", "--tools", f"my_tools:{name}") as process:
        read_to(process.stderr, "blocking" if name == "block" else f"→ {name}()")
        process.send_signal(number)
        _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == code
    assert "Traceback" not in err


def test_given_a_signal_to_end_when_chatting_then_the_next_line_is_not_begun(here: Path) -> None:
    with start(here, "chat", "--model", "demo", "--tools", "my_tools:wait", "--tools", "my_tools:add") as process:
        assert process.stdin is not None
        process.stdin.write("wait\nadd 2 and 3\n")
        process.stdin.flush()
        read_to(process.stderr, "→ wait()")
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=LIMIT)
    assert (process.returncode, out) == (143, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_given_imports_when_a_signal_comes_then_the_command_leaves_quietly(here: Path, number: signal.Signals) -> None:
    early = here / "early"
    early.mkdir()
    (early / "click.py").write_text(SLOW)
    path = f"{early}{os.pathsep}{environment()['PYTHONPATH']}"
    for arguments, env in ((("--help",), {"PYTHONPATH": path}), (("run", "hi", "--tools", "slow:x"), {})):
        with start(here, *arguments, **env) as process:
            read_to(process.stderr, "importing")
            process.send_signal(number)
            out, err = process.communicate(timeout=LIMIT)
        assert (process.returncode, out) == (128 + number, "")
        assert "Traceback" not in err


# ---- streams that fail


def in_shell(here: Path, redirection: str, *arguments: str) -> tuple[int, list[str]]:
    """Exit code and what is on standard error."""
    script = f'exec "$@" {redirection}'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *command(*arguments)],
        cwd=here,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT,
        check=False,
    )
    return done.returncode, done.stderr.splitlines()


COMMANDS = [("run", "hi", "--model", "demo"), ("run", "hi", "--model", "demo", "--json"), ("doctor",), ("--help",)]


@pytest.mark.parametrize("arguments", COMMANDS)
def test_given_a_closed_output_when_called_then_one_line_tells_it(here: Path, arguments: tuple[str, ...]) -> None:
    code, err = in_shell(here, ">&-", *arguments)
    assert (code, err) == (
        1,
        ["error: standard output is closed: leave it open, or send it to a file or to /dev/null"],
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", COMMANDS)
def test_given_a_full_disk_when_called_then_one_line_tells_it(here: Path, arguments: tuple[str, ...]) -> None:
    code, err = in_shell(here, ">/dev/full", *arguments)
    errors = [line for line in err if not line.startswith("the demo model is")]
    assert (code, errors) == (1, ["error: reading or writing failed: No space left on device"])


def test_given_a_closed_input_when_chatting_then_one_line_tells_it(here: Path) -> None:
    assert in_shell(here, "<&-", "chat", "--model", "demo") == (
        2,
        ["error: standard input is closed: chat reads its goals there, one a line"],
    )


@pytest.mark.parametrize("redirection", ["2>&-", "<&-"])
def test_given_another_closed_stream_when_run_then_it_is_not_missed(here: Path, redirection: str) -> None:
    assert in_shell(here, redirection, "run", "hi", "--model", "demo")[0] == 0


def test_given_input_that_is_no_utf_8_when_chatting_then_it_is_answered_all_the_same(here: Path) -> None:
    done = subprocess.run(
        command("chat", "--model", "demo"),
        cwd=here,
        env=environment(),
        input=b"\xff\n",
        capture_output=True,
        check=False,
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)


@pytest.mark.parametrize("arguments", [("run", "add 1 and 2", "--json"), ("run", "hello")])
def test_given_a_reader_that_went_away_when_run_then_it_ends_quietly(here: Path, arguments: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as gone:
        done = subprocess.run(
            command(*arguments, "--model", "demo", "--tools", "my_tools:add"),
            cwd=here,
            env=environment(),
            stdout=gone,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            timeout=LIMIT,
            check=False,
        )
    assert done.returncode == 141
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


# ---- wrong usage


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--tools", "no_such_module:add"), "--tools no_such_module:add: there is no module 'no_such_module'"),
        (("--tools", "my_tools.sub:add"), "--tools my_tools.sub:add: there is no module 'my_tools.sub'"),
        (("--tools", "my_tools:nothing"), "--tools my_tools:nothing: the module my_tools has no 'nothing'"),
        (("--tools", "my_tools:number"), "--tools my_tools:number: number is int, neither a tool nor a function"),
        (("--tools", "my_tools"), "--tools takes module:name"),
        (("--tools", "broken:x"), "--tools broken:x: importing broken failed: ValueError: on purpose in two lines"),
        (("--tools", "leaving:x"), "--tools leaving:x: importing leaving failed: SystemExit: 0"),
        (("--tools", "needy:x"), "--tools needy:x: importing needy failed: No module named 'no_such_package_anywhere'"),
        (("--tools", "my_tools:add", "--tools", "my_tools:add"), ""),
        (("--model", "nobody:x"), "unknown model 'nobody:x'"),
        (("--model", "openai:gpt-5-mini"), "OPENAI_API_KEY"),
    ],
)
def test_given_a_mistake_when_run_then_one_line_tells_it_and_the_exit_code_is_2(
    here: Path, arguments: tuple[str, ...], said: str
) -> None:
    model = () if "--model" in arguments else ("--model", "demo")
    code, out, err = call(here, "run", "hello", *model, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("error: ")
    assert said in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("run",),
        ("nothing",),
        *(("run", "x", "--max-turns", turns) for turns in ("0", "10000000000")),
        *(("run", "x", "--timeout", seconds) for seconds in ("0", "-1", "nan", "inf", "1e300", "soon")),
    ],
)
def test_given_wrong_options_when_called_then_the_exit_code_is_2(here: Path, arguments: tuple[str, ...]) -> None:
    code, out, err = call(here, *arguments)
    assert (code, out) == (2, "")
    assert "Usage: deepstrike" in err


def test_given_an_empty_goal_when_run_then_the_exit_code_is_2(here: Path) -> None:
    code, out, err = call(here, "run", "  ", "--model", "demo")
    assert (code, out) == (2, "")
    assert "the goal is empty" in err


# ---- help


@pytest.mark.parametrize(
    "arguments", [("--help",), ("run", "--help"), ("chat", "-h"), ("demo", "--help"), ("doctor", "-h")]
)
def test_given_help_when_called_then_the_exit_codes_are_told(here: Path, arguments: tuple[str, ...]) -> None:
    code, out, err = call(here, *arguments)
    assert (code, err) == (0, "")
    for line in ("0  completed", "3  max_turns", "4  token_budget", "5  timeout", "6  suspended", "130  user_abort"):
        assert line in out


def test_given_help_when_called_then_nothing_heavy_is_imported(here: Path) -> None:
    script = (
        "import sys\n"
        "from deepstrike.cli.app import cli\n"
        "cli.main(['--help'], standalone_mode=False)\n"
        "print(sorted({'rich', 'aiohttp', 'pydantic', 'msgspec', 'asyncio'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=here, env=environment(), capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_given_version_when_called_then_it_is_the_packages(here: Path) -> None:
    assert call(here, "--version") == (0, f"deepstrike, version {deepstrike.__version__}\n", "")


# ---- chat


def test_given_lines_when_chatting_in_a_pipe_then_each_is_a_goal_of_one_session(here: Path) -> None:
    code, out, _ = call(
        here,
        "chat",
        "--model",
        "demo",
        "--tools",
        "my_tools:add",
        "--json",
        stdin="add 1 and 2\n\n   \nadd 3 and 4",
    )
    events = [json.loads(line) for line in out.splitlines()]
    done = [event for event in events if event["type"] == "done"]
    calls = [event for event in events if event["type"] == "tool_call"]
    assert code == 0
    assert [event["status"] for event in done] == ["completed", "completed"]
    assert len({event["session_id"] for event in done}) == 1
    assert [(event["id"], event["arguments"]) for event in calls] == [
        ("demo_0", {"x": 1, "y": 2}),
        ("demo_1", {"x": 3, "y": 4}),
    ]


def test_given_no_lines_when_chatting_then_it_ends_with_0(here: Path) -> None:
    assert call(here, "chat", "--model", "demo", stdin="")[:2] == (0, "")


def test_given_ctrl_c_when_chatting_then_the_answer_stops_and_the_next_line_is_answered(here: Path) -> None:
    with start(here, "chat", "--model", "demo", "--tools", "my_tools:add", "--tools", "my_tools:wait") as process:
        assert process.stdin is not None
        process.stdin.write("wait\n")
        process.stdin.flush()
        read_to(process.stderr, "→ wait()")
        process.send_signal(signal.SIGINT)
        read_to(process.stderr, "user_abort")
        out, _ = process.communicate("add 2 and 3\n", timeout=LIMIT)
    assert (process.returncode, out) == (0, "The answer is 5, by the tool add.\n")


# ---- doctor


def test_given_keys_when_the_doctor_looks_then_it_names_them_and_never_shows_them(here: Path) -> None:
    code, out, err = call(here, "doctor", "--json", OPENAI_API_KEY="sk-secret-value")
    report = json.loads(out)
    found = {finding["name"]: (finding["state"], finding["detail"]) for finding in report["findings"]}
    assert (code, err, report["ok"]) == (0, "", True)
    assert found["OPENAI_API_KEY"] == ("ok", "set")
    assert found["deepstrike"] == ("ok", deepstrike.__version__)
    assert found["model"] == ("ok", "openai's default model (OPENAI_API_KEY is set)")
    assert re.fullmatch(rf"{re.escape(deepstrike.__version__)}, log format \d+, renderer \d+", found["kernel"][1])
    assert "sk-secret-value" not in out


def test_given_an_unreachable_address_when_the_doctor_looks_then_it_says_so_and_ends_with_1(here: Path) -> None:
    code, out, _ = call(here, "doctor", OPENAI_BASE_URL="http://user:pass@127.0.0.1:1/v1", no_proxy="*")
    line = next(line for line in out.splitlines() if "OPENAI_BASE_URL " in line)
    assert code == 1
    assert re.match("✗ OPENAI_BASE_URL +http://127.0.0.1:1/v1 cannot be reached: ", line)
    assert "pass" not in out
