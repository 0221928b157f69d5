"""The plane that runs commands and code: what it gives, what it refuses, and that it leaves nothing."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sandbox_world import LIMITS, discard, run

from deepstrike import RuntimeOptions, RuntimeRunner, ScriptedProvider
from deepstrike.errors import ConfigError
from deepstrike.execution.base import Invocation
from deepstrike.execution.confine.fence import raise_fence
from deepstrike.execution.confine.landlock import landlock_abi
from deepstrike.execution.sandbox import MAX_SOURCE, SandboxExecutionPlane
from deepstrike.execution.sandbox_access import SandboxLimits
from deepstrike.execution.sandbox_places import Places, remove
from deepstrike.providers.base import Finish, ToolCall
from deepstrike.testing import ManualClock
from deepstrike.tools.context import ToolContext
from deepstrike.wire.message import Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or landlock_abi() < 3, reason="this kernel has no Landlock, so nothing would run"
)

TWO_LAYERS = ["landlock", "seccomp"]


def _group() -> str:
    """What is said of the control groups, where such can be made."""
    fence = raise_fence(10, 2**30)
    if fence is None:
        return " + memory watch"
    fence.take_down()
    processes = " + pids group" if fence.counts_processes else ""
    return processes + (" + memory group" if fence.counts_memory else " + memory watch")


GROUP = _group()


def with_mark(mark: str) -> list[int]:
    """Processes whose command line has the word."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


async def gone(mark: str) -> list[int]:
    """Those that are left when they had ten seconds to go."""
    for _ in range(500):
        if not (left := with_mark(mark)):
            return left
        await asyncio.sleep(0.02)
    return with_mark(mark)


class Shown:
    def __init__(self) -> None:
        self.text = ""
        self.changed = asyncio.Event()

    async def show(self, delta: str, _chunk: object | None) -> None:
        self.text += delta
        self.changed.set()


def begin(plane: SandboxExecutionPlane, command: str) -> tuple[asyncio.Task[ToolResult], Shown]:
    """Start a command whose output can be waited for."""
    shown = Shown()
    call = Invocation("run_command", json.dumps({"command": command}), ToolContext("s", "c", "k"), shown.show)
    return asyncio.ensure_future(plane.execute(call)), shown


# ---- results


async def test_given_a_command_that_works_when_run_then_its_output_and_the_level_are_the_result() -> None:
    async with SandboxExecutionPlane(layers=TWO_LAYERS) as plane:
        result, output, last = await run(plane, command="echo one; echo two >&2; echo three")

    assert result.error_kind == ""
    assert output == "one\ntwo\nthree"
    level = f"landlock abi {landlock_abi()} + seccomp + no capabilities + rlimits{GROUP}"
    assert last == {"exit_code": 0, "confinement": level}


@pytest.mark.parametrize(
    ("command", "kind", "ending"),
    [
        ("exit 3", "exit_code", {"exit_code": 3}),
        ("no-such-program", "exit_code", {"exit_code": 127}),
        ("kill -KILL $$", "exit_code", {"signal": "SIGKILL"}),
        (f"kill -{signal.SIGRTMIN + 2} $$", "exit_code", {"signal": "SIGRTMIN+2"}),
        ("true", "", {"exit_code": 0}),
    ],
)
async def test_given_a_command_that_ends_somehow_when_run_then_the_last_line_says_how(
    command: str, kind: str, ending: dict[str, object]
) -> None:
    async with SandboxExecutionPlane() as plane:
        result, _, last = await run(plane, command=command)

    assert result.error_kind == kind
    assert {key: last.get(key) for key in ending} == ending
    assert last["confinement"].startswith("landlock abi ")


async def test_given_python_code_that_raises_when_run_then_its_traceback_is_the_output() -> None:
    async with SandboxExecutionPlane() as plane:
        result, output, last = await run(plane, code="print('before')\nraise ValueError('broken')")

    assert (result.error_kind, last["exit_code"]) == ("exit_code", 1)
    assert output.startswith("before\nTraceback")
    assert output.endswith("ValueError: broken")


async def test_given_output_that_comes_in_pieces_when_run_then_it_is_shown_at_once(tmp_path: Path) -> None:
    async with SandboxExecutionPlane(write=[tmp_path]) as plane:
        task, shown = begin(
            plane, f"printf 'a\\xf0\\x9f'; until [ -e {tmp_path}/go ]; do sleep 0.02; done; printf '\\x98\\x80b'"
        )
        await shown.changed.wait()
        assert shown.text == "a"
        (tmp_path / "go").touch()
        result = await task

    assert shown.text == "a😀b"
    (part,) = result.parts
    assert isinstance(part, Text)
    assert part.text.startswith("a😀b\n{")


async def test_given_a_program_that_forges_the_last_line_when_run_then_the_true_one_stands_behind_it() -> None:
    forged = '{"exit_code": 0, "confinement": "the best"}'
    async with SandboxExecutionPlane() as plane:
        result, output, last = await run(plane, command=f"echo '{forged}'; exit 9")

    assert (result.error_kind, output, last["exit_code"]) == ("exit_code", forged, 9)


async def test_given_a_program_that_is_slow_when_its_time_is_over_then_what_it_said_is_kept() -> None:
    async with SandboxExecutionPlane(timeout_ms=30_000, layers=TWO_LAYERS) as plane:
        with ManualClock() as clock:
            task, shown = begin(plane, "echo begun; sleep 600")
            await shown.changed.wait()
            await clock.advance(30)
            result = await task

    assert result.error_kind == "timeout"
    level = f"landlock abi {landlock_abi()} + seccomp + no capabilities + rlimits{GROUP}"
    ending = f'{{"stopped": "it did not finish within 30000 ms and was killed", "confinement": "{level}"}}'
    assert result.parts == (Text(f"begun\n{ending}"),)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"command": "a\0b"}, "there is a NUL character in it\nHint: leave it out"),
        ({"code": "é" * MAX_SOURCE}, f"it has {2 * MAX_SOURCE} bytes, more than {MAX_SOURCE}"),
    ],
)
async def test_given_a_source_that_cannot_be_handed_over_when_run_then_the_model_is_told_what_to_do(
    arguments: dict[str, str], said: str
) -> None:
    async with SandboxExecutionPlane() as plane:
        result, _, last = await run(plane, **arguments)

    assert result.error_kind == "tool_error"
    assert last["said"].startswith(said)


async def test_given_no_confinement_by_choice_when_run_then_the_result_says_so() -> None:
    async with SandboxExecutionPlane(unconfined=True) as plane:
        result, output, last = await run(plane, command="ls -d /")
        (command, _) = plane.specs()

    assert (result.error_kind, output) == ("", "/")
    assert last == {"exit_code": 0, "confinement": "unconfined"}
    assert command.description.endswith("It is not confined.")


# ---- what is granted


async def test_given_no_wishes_when_a_program_looks_round_then_it_finds_a_place_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOST_TOKEN", "secret")
    code = (
        "import json, os\nhome = os.environ['HOME']\n"
        "print(json.dumps([os.getcwd() == home, os.environ['TMPDIR'] == home, sorted(os.environ), os.listdir('.')]))"
    )
    async with SandboxExecutionPlane(env={"DECLARED": "é=1"}) as plane:
        _, output, _ = await run(plane, code=code)
        _, declared, _ = await run(plane, command='echo "$DECLARED"')

    assert json.loads(output) == [True, True, ["DECLARED", "HOME", "LANG", "PATH", "TMPDIR"], []]
    assert declared == "é=1"


async def test_given_two_sessions_when_one_writes_a_file_then_it_finds_it_again_and_the_other_does_not() -> None:
    async with SandboxExecutionPlane() as plane:
        _, place, _ = await run(plane, session="one", command="echo 'word = 5' > mine.py; pwd")
        _, again, _ = await run(plane, session="one", code="import mine; print(mine.word)")
        _, listed, _ = await run(plane, session="two", command="ls")
        other, _, _ = await run(plane, session="two", command=f"cat {place}/mine.py")

    assert (again, listed, other.error_kind) == ("5", "", "exit_code")


@pytest.mark.parametrize("layers", [None, TWO_LAYERS])
async def test_given_declared_paths_when_a_program_uses_them_then_it_can(
    tmp_path: Path, layers: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in ü").mkdir()
    (tmp_path / "in ü/data").write_text("given")
    (tmp_path / "out").mkdir()
    (tmp_path / "one_file").write_text("")
    monkeypatch.chdir(tmp_path)
    plane = SandboxExecutionPlane(read=["in ü"], write=[Path("out"), "one_file"], cwd="out", layers=layers)
    monkeypatch.chdir("/")
    async with plane:
        command = f"cat '../in ü/data' > copy && mv copy moved && echo x > {tmp_path}/one_file && pwd"
        result, output, _ = await run(plane, command=command)

    assert (result.error_kind, output) == ("", str(tmp_path / "out"))
    assert (tmp_path / "out/moved").read_text() == "given"
    assert (tmp_path / "one_file").read_text() == "x\n"


@pytest.fixture
def echo_ports() -> Iterator[tuple[int, int]]:
    """Two ports of this machine at which somebody answers."""
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]

    def answer(server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                caller, _ = server.accept()
                with caller:
                    caller.sendall(b"heard")

    for server in servers:
        threading.Thread(target=answer, args=(server,), daemon=True).start()
    yield servers[0].getsockname()[1], servers[1].getsockname()[1]
    for server in servers:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


CONNECT = (
    "import socket\nfor port in ({}, {}):\n    try:\n"
    "        print(socket.create_connection(('127.0.0.1', port), 5).recv(9))\n"
    "    except OSError as error:\n        print(type(error).__name__)"
)


@pytest.mark.parametrize("layers", [None, TWO_LAYERS])
@pytest.mark.parametrize(
    ("grant", "found"),
    [
        ("all", ["b'heard'", "b'heard'"]),
        ("first", ["b'heard'", "PermissionError"]),
    ],
)
async def test_given_a_network_that_is_granted_when_a_program_connects_then_it_reaches_what_was_named(
    echo_ports: tuple[int, int], grant: str, found: list[str], layers: list[str] | None
) -> None:
    if landlock_abi() < 4 and grant == "first":
        pytest.skip("single ports need Landlock abi 4")
    network = True if grant == "all" else [echo_ports[0]]
    async with SandboxExecutionPlane(network=network, layers=layers) as plane:
        _, output, _ = await run(plane, code=CONNECT.format(*echo_ports))

    assert output.splitlines() == found


async def test_given_single_ports_when_a_program_takes_another_way_then_it_does_not_get_through(
    echo_ports: tuple[int, int],
) -> None:
    if landlock_abi() < 4:
        pytest.skip("single ports need Landlock abi 4")
    code = (
        "import socket\n"
        "def attempt(work):\n    try:\n        work(); print('ESCAPED')\n    except OSError as error:\n"
        "        print(type(error).__name__)\n"
        "attempt(lambda: socket.socket().bind(('127.0.0.1', 0)))\n"
        "attempt(lambda: socket.socket().listen())\n"
        "attempt(lambda: socket.socket(2, socket.SOCK_DGRAM))\n"
        "attempt(lambda: socket.socket(2, 1, 262))\n"
        "attempt(lambda: socket.socket(socket.AF_UNIX))\n"
        f"attempt(lambda: socket.socket().sendto(b'x', 0x20000000, ('127.0.0.1', {echo_ports[1]})))"
    )
    async with SandboxExecutionPlane(network=[echo_ports[0]]) as plane:
        _, output, _ = await run(plane, code=code)

    assert output.splitlines() == ["PermissionError"] * 6


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("x = bytearray(400_000_000)", {"exit_code": 1}),
        ("f = open('f', 'wb'); f.write(b'x' * 3_000_000); f.flush()", {"exit_code": 1}),
        ("while True:\n    pass", {"signal": "SIGXCPU"}),
    ],
)
async def test_given_limits_when_a_process_goes_beyond_then_it_ends(code: str, found: dict[str, object]) -> None:
    limits = SandboxLimits(cpu_seconds=1, memory_mb=200, file_mb=1)
    async with SandboxExecutionPlane(limits=limits) as plane:
        result, _, last = await run(plane, code=code)

    assert result.error_kind == "exit_code"
    assert {key: last.get(key) for key in found} in (found, {"signal": "SIGKILL"})


async def test_given_limits_when_a_whole_run_goes_beyond_its_memory_then_all_of_it_is_ended() -> None:
    code = "import os, time\nfor _ in range(4):\n    os.fork()\nx = b'x' * 30_000_000\ntime.sleep(600)"
    async with SandboxExecutionPlane(limits=LIMITS) as plane:
        result, _, last = await run(plane, code=code)

    assert (result.error_kind, last["stopped"]) == ("limit", "it used more memory than allowed and was killed")


@pytest.mark.parametrize("layers", [None, TWO_LAYERS])
@pytest.mark.parametrize(
    "code",
    [
        "import os, time\nheld = [os.memfd_create(str(n)) for n in range(4)]\n"
        "for each in held:\n    for _ in range(90):\n        os.write(each, b'x' * 1_000_000)\n",
        "import mmap, os, time\nfor _ in range(8):\n    held = mmap.mmap(-1, 50_000_000)\n"
        "    held.write(b'x' * 50_000_000)\n    os.fork() or time.sleep(600)\n    held.close()\n",
    ],
    ids=["memfds", "shared mappings"],
)
async def test_given_memory_that_is_shared_when_it_goes_beyond_the_limit_then_the_run_ends(
    code: str, layers: list[str] | None
) -> None:
    limits = SandboxLimits(memory_mb=150, processes=20)
    async with SandboxExecutionPlane(limits=limits, layers=layers, timeout_ms=20_000) as plane:
        result, _, last = await run(plane, code=code + "print('HELD', flush=True)\ntime.sleep(600)")

    held = "it used more memory than allowed and was killed"
    assert (result.error_kind, last.get("stopped")) in [("limit", held), ("exit_code", None)]
    assert "memory group" not in last["confinement"] or last["stopped"] == held
    assert "HELD" not in str(result.parts)


@pytest.mark.parametrize("layers", [None, TWO_LAYERS])
async def test_given_runs_that_are_over_when_looked_at_then_no_control_group_is_left(
    layers: list[str] | None,
) -> None:
    async with SandboxExecutionPlane(layers=layers) as plane:
        task, shown = begin(plane, "echo begun; sleep 600")
        await shown.changed.wait()
        (launcher,) = [process for process in with_mark("confine.launch") if _parent(process) == os.getpid()]
        during = _groups(launcher)
        task.cancel()
        await asyncio.wait({task})

    assert bool(during) == ("group" in GROUP)
    assert _groups(launcher) == []


def _groups(launcher: int) -> list[str]:
    return [folder for folder, _, _ in os.walk("/sys/fs/cgroup") if f"/deepstrike-{launcher}-" in folder]


# ---- what is refused


async def test_given_a_folder_that_a_run_exchanged_for_a_link_when_the_next_one_begins_then_it_does_not_run(
    tmp_path: Path,
) -> None:
    (tmp_path / "w/inner").mkdir(parents=True)
    (tmp_path / "secret").write_text("SECRET")
    async with SandboxExecutionPlane(read=[tmp_path / "w/inner"], write=[tmp_path / "w"]) as plane:
        first, _, _ = await run(plane, command=f"cd {tmp_path}/w && mv inner old && ln -s .. inner")
        second, _, last = await run(plane, command=f"cat {tmp_path}/w/inner/secret {tmp_path}/secret; touch ran")

    assert (first.error_kind, second.error_kind) == ("", "confinement")
    assert last["said"].startswith("the program was not started: OSError: ")


async def test_given_a_folder_that_is_gone_when_a_program_is_run_then_it_is_refused_and_nothing_ran(
    tmp_path: Path,
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "gone").mkdir()
    async with SandboxExecutionPlane(read=[tmp_path / "gone"], write=[tmp_path / "out"], layers=TWO_LAYERS) as plane:
        (tmp_path / "gone").rmdir()
        result, _, last = await run(plane, command=f"touch {tmp_path}/out/ran")

    assert result.error_kind == "confinement"
    assert str(tmp_path / "gone") in last["said"]
    assert list((tmp_path / "out").iterdir()) == []


def test_given_a_kernel_without_landlock_when_the_plane_is_made_then_it_is_refused_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("deepstrike.execution.sandbox.landlock_abi", lambda: 0)

    with pytest.raises(ConfigError, match="this kernel cannot confine a program: Landlock is missing"):
        SandboxExecutionPlane()
    assert len(SandboxExecutionPlane(unconfined=True).specs()) == 2


def test_given_another_system_when_the_plane_is_made_then_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")

    with pytest.raises(ConfigError, match="needs Linux"):
        SandboxExecutionPlane(unconfined=True)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"read": "/usr"}, "read='/usr': give a list of paths"),
        ({"write": ["/no/such/place"]}, "write: there is no '/no/such/place'"),
        ({"read": [5]}, "read: 5 is no path"),
        ({"read": ["a\0b"]}, "is no path"),
        ({"read": ["\ud800"]}, "read: '\\ud800' is no path"),
        ({"write": [""]}, "write: '' is no path"),
        ({"read": [b"a"]}, "read: b'a' is no path"),
        ({"cwd": 3}, "cwd: 3 is no path"),
        ({"env": {"A": "\ud800"}}, "env: the value of 'A' must be a string"),
        ({"env": []}, "env: give a dict"),
        ({"env": 0}, "env: give a dict"),
        ({"layers": [[]]}, "layers=[[]]"),
        ({"limits": 3}, "limits=3: give SandboxLimits(…)"),
        ({"limits": {}}, "limits={}: give SandboxLimits(…)"),
        ({"unconfined": "no"}, "unconfined='no': give True or False"),
        ({"unconfined": None}, "unconfined=None: give True or False"),
        ({"cwd": "/usr"}, "neither below a path of read= nor of write="),
        ({"cwd": "/etc/passwd", "read": ["/etc/passwd"]}, "is no directory"),
        ({"network": "yes"}, "network='yes': give False, True or a list of TCP ports"),
        ({"network": []}, "give False, True or a list of TCP ports"),
        ({"network": [0]}, "give False, True or a list of TCP ports"),
        ({"network": [70_000]}, "give False, True or a list of TCP ports"),
        ({"network": [True]}, "give False, True or a list of TCP ports"),
        ({"env": {"A=B": "x"}}, "env: 'A=B' is no name of a variable"),
        ({"env": {"A": 5}}, "env: the value of 'A' must be a string"),
        ({"env": ["A"]}, "env: give a dict"),
        ({"layers": ["seccomp"]}, "landlock and seccomp are always needed"),
        ({"layers": ["landlock", "seccomp", "namespaces", "bubblewrap"]}, "at most one"),
        ({"layers": ["landlock", "seccomp", "hope"]}, "layers="),
        ({"layers": TWO_LAYERS, "unconfined": True}, "unconfined=True"),
        ({"timeout_ms": 0}, "timeout_ms=0"),
        ({"write": [sys.prefix]}, "where the Python lives that starts the sandbox"),
        ({"write": ["/"]}, "where the Python lives that starts the sandbox"),
        ({"write": [Path(sys.modules["deepstrike"].__file__ or "").parent]}, "overlap"),
    ],
)
def test_given_a_wrong_argument_when_the_plane_is_made_then_the_error_names_it(
    wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError) as found:
        SandboxExecutionPlane(**wrong)

    assert said in str(found.value)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "1", 2**31])
@pytest.mark.parametrize("name", ["cpu_seconds", "memory_mb", "file_mb", "open_files", "processes"])
def test_given_a_limit_that_is_no_number_when_made_then_the_error_names_it(name: str, wrong: Any) -> None:
    with pytest.raises(ConfigError, match=rf"SandboxLimits\({name}="):
        SandboxLimits(**{name: wrong})


# ---- nothing stays


@pytest.mark.parametrize("layers", [None, TWO_LAYERS])
async def test_given_a_program_with_children_when_the_call_is_cancelled_then_all_are_gone(
    layers: list[str] | None,
) -> None:
    mark = f"mark-cancel-{os.getpid()}"
    plane = SandboxExecutionPlane(layers=layers)
    task, shown = begin(plane, f"(setsid sh -c 'trap : TERM; sleep 600; : {mark}' &); echo begun; sleep 600; : {mark}")
    await shown.changed.wait()
    assert with_mark(mark) != []
    task.cancel()
    await asyncio.wait({task})

    assert task.cancelled()
    assert with_mark(mark) == []
    await plane.aclose()


@pytest.mark.parametrize("layers", [None, TWO_LAYERS])
async def test_given_a_host_that_is_killed_when_a_program_runs_then_it_ends_too(
    layers: list[str] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = f"mark-host-{os.getpid()}"
    code = (
        "import asyncio, json, sys\n"
        "from deepstrike.execution.base import Invocation\n"
        "from deepstrike.execution.sandbox import SandboxExecutionPlane\n"
        "from deepstrike.tools.context import ToolContext\n"
        "async def show(delta, chunk):\n    print(delta, end='', flush=True)\n"
        f"command = \"(setsid sh -c 'echo begun; sleep 600; : {mark}' &); sleep 600; : {mark}\"\n"
        "call = Invocation('run_command', json.dumps({'command': command}), ToolContext('s', 'c', 'k'), show)\n"
        f"asyncio.run(SandboxExecutionPlane(layers={layers!r}).execute(call))\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=env) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == b"begun\n"
        assert len(with_mark(mark)) > 1
        host.send_signal(signal.SIGKILL)

    assert await gone(mark) == []
    (left,) = tmp_path.glob("deepstrike-sandbox-*")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    async with SandboxExecutionPlane(layers=layers) as plane:
        await run(plane, command="true")
        assert not left.exists()
        (mine,) = tmp_path.glob("deepstrike-sandbox-*")
        async with SandboxExecutionPlane(layers=layers) as other:
            await run(other, command="true")
            assert mine.exists()


async def test_given_a_launcher_that_is_killed_when_a_program_runs_then_the_result_says_so() -> None:
    mark = f"mark-launcher-{os.getpid()}"
    async with SandboxExecutionPlane() as plane:
        task, shown = begin(plane, f"echo begun; sleep 600; : {mark}")
        await shown.changed.wait()
        launchers = [process for process in with_mark("confine.launch") if _parent(process) == os.getpid()]
        for process in launchers:
            os.kill(process, signal.SIGKILL)
        result = await task

    assert result.error_kind == "exception"
    assert result.parts == (Text("begun\nthe sandbox's launcher was killed; the program may have taken effect"),)
    assert await gone(mark) == []


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize("layers", [None, TWO_LAYERS])
async def test_given_many_runs_at_once_when_they_are_over_then_nothing_is_left(layers: list[str] | None) -> None:
    mark = f"mark-many-{os.getpid()}"
    async with SandboxExecutionPlane(layers=layers) as plane:
        await run(plane, command="true")
        tasks, descriptors = asyncio.all_tasks(), len(os.listdir("/proc/self/fd"))
        threads = threading.active_count()
        found = await asyncio.gather(*(run(plane, command=f"sleep 0 {n} & echo {n} # {mark}") for n in range(50)))

        assert [output for _, output, _ in found] == [str(n) for n in range(50)]
        assert asyncio.all_tasks() == tasks
        assert len(os.listdir("/proc/self/fd")) == descriptors
        assert with_mark(mark) == []
        assert _children() == []
    for thread in threading.enumerate()[threads:]:
        await asyncio.to_thread(thread.join, 5)  # Python before 3.12 waits for each process in a thread


def _children() -> list[int]:
    return [int(each) for each in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


async def test_given_a_plane_that_is_closed_when_it_is_used_again_then_it_makes_a_new_place() -> None:
    plane = SandboxExecutionPlane()
    _, first, _ = await run(plane, command="echo x > kept; pwd")
    assert Path(first, "kept").exists()
    await plane.aclose()
    assert not Path(first).parent.exists()
    _, second, _ = await run(plane, command="ls; pwd")
    await plane.aclose()

    assert second != first
    assert not Path(second).parent.exists()


async def test_given_a_tree_that_is_hard_to_remove_when_closed_then_it_is_gone_and_nothing_outside_is_touched(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine").mkdir(mode=0o750)
    (tmp_path / "mine/file").touch()
    plane = SandboxExecutionPlane()
    code = (
        f"import os\nprint(os.getcwd())\nos.symlink('{tmp_path}/mine', 'out')\nos.makedirs('a/b')\n"
        f"os.symlink('{tmp_path}/mine', 'a/b/out')\nopen('a/b/c', 'w').close()\n"
        "for mode, name in ((0, 'a/b'), (0, 'a')):\n    try:\n        os.chmod(name, mode)\n"
        "    except PermissionError:\n        pass\n"
        "for _ in range(40):\n    os.mkdir('d' * 200)\n    os.chdir('d' * 200)\n"
    )
    _, output, _ = await run(plane, code=code)
    place = Path(output)
    assert place.exists()
    await plane.aclose()

    assert not place.parent.exists()
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "mine/file").exists()


def test_given_a_process_that_was_forked_when_it_ends_then_its_parents_places_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places = Places()
    mine = Path(places.of("s"))
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: -1)
        places.remove()
        again = Path(places.of("s"))
        places.remove()
        assert (mine.exists(), again.exists()) == (True, False)
    remove(str(mine.parent))

    assert not mine.exists()


# ---- in a run


async def test_given_a_model_that_asks_for_a_command_when_run_then_it_reads_output_and_level() -> None:
    model = ScriptedProvider(
        [
            [ToolCall("call_1", "run_command", '{"command": "echo $((6 * 7))"}'), Finish("tool_calls")],
            lambda request: request.turns[-1].parts[0].text,  # type: ignore[union-attr]
        ]
    )
    async with SandboxExecutionPlane() as plane:
        result = await RuntimeRunner(RuntimeOptions(provider=model, execution_plane=plane)).run("What is 6 times 7?")

    output, last = result.text.splitlines()
    assert (output, json.loads(last)["exit_code"]) == ("42", 0)


def test_given_the_plane_when_a_model_looks_at_its_tools_then_they_say_what_is_granted(tmp_path: Path) -> None:
    plane = SandboxExecutionPlane(read=[tmp_path], network=[443, 80])
    granted = (
        f"It may write in its working directory; read the system's programs, {tmp_path}; network: TCP ports 443, 80."
    )

    assert [(spec.name, spec.effect) for spec in plane.specs()] == [("run_command", "once"), ("run_python", "once")]
    assert [spec.description for spec in plane.specs()] == [
        f"Run a command with bash and get its output. {granted}",
        f"Run Python code and get what it prints. {granted}",
    ]


async def test_given_a_caller_that_is_slow_when_a_program_writes_much_then_it_waits_for_it() -> None:
    room = asyncio.Event()
    first = asyncio.Event()

    async def show(_delta: str, _chunk: object | None) -> None:
        first.set()
        await room.wait()

    async with SandboxExecutionPlane() as plane:
        command = {"command": "head -c 5000000 /dev/zero | tr '\\0' x; touch finished"}
        call = Invocation("run_command", json.dumps(command), ToolContext("s", "c", "k"), show)
        task = asyncio.ensure_future(plane.execute(call))
        await first.wait()
        listed = await plane.execute(Invocation("run_command", '{"command":"ls"}', ToolContext("s", "c", "k"), discard))
        room.set()
        result = await task

    (part, seen) = (*result.parts, *listed.parts)
    assert isinstance(part, Text)
    assert isinstance(seen, Text)
    assert "finished" not in seen.text
    assert part.text.startswith("x" * 5_000_000 + "\n{")
