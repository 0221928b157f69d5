"""A host with things worth reaching, in which one attempt is made and looked at afterwards."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import resource
import signal
import socket
import subprocess
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from deepstrike.execution.base import Invocation
from deepstrike.execution.sandbox import SandboxExecutionPlane
from deepstrike.execution.sandbox_access import SandboxLimits
from deepstrike.tools.context import ToolContext
from deepstrike.wire.message import Text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from sandbox_attempts import Attempt

    from deepstrike.wire.message import ToolResult

SECRET = "SECRET-2f9c"
LIMITS = SandboxLimits(cpu_seconds=2, memory_mb=200, file_mb=1, open_files=128, processes=20)
NO_LIMITS = SandboxLimits(cpu_seconds=None, memory_mb=None, file_mb=None, open_files=4096, processes=None)


async def discard(_delta: str, _chunk: object | None) -> None:
    return


async def run(
    plane: SandboxExecutionPlane, *, session: str = "s", **arguments: str
) -> tuple[ToolResult, str, dict[str, Any]]:
    """Call the one tool that takes these arguments: result, output and last line."""
    name = "run_command" if "command" in arguments else "run_python"
    result = await plane.execute(Invocation(name, json.dumps(arguments), ToolContext(session, "c", "k"), discard))
    (part,) = result.parts
    assert isinstance(part, Text)
    output, _, last = part.text.rpartition("\n")
    return result, output, json.loads(last) if last.startswith("{") else {"said": part.text}


class World:
    """Servers that remember what they hear, and shared memory, for all attempts."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.heard: set[bytes] = set()
        self._servers: list[tuple[int, int, Any]] = []
        self._open = ExitStack()
        self.places = {
            "port": str(self._serve(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))[1]),
            "port6": str(self._serve(socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0))[1]),
            "udp": str(self._serve(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))[1]),
            "abstract": f"deepstrike-test-{os.getpid()}",
            "shared": f"deepstrike-test-{os.getpid()}",
            "key": str(0x44530000 + os.getpid() % 65536),
            "home": str(Path.home()),
        }
        self._serve(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.places['abstract']}")
        self._share()

    def close(self) -> None:
        self._open.close()

    def serve_at(self, path: Path) -> None:
        """A Unix socket in a folder."""
        self._serve(socket.AF_UNIX, socket.SOCK_STREAM, str(path))

    def _serve(self, family: int, kind: int, address: object) -> Any:
        server = self._open.enter_context(socket.socket(family, kind))
        server.bind(address)  # type: ignore[arg-type]
        if kind == socket.SOCK_STREAM:
            server.listen(100)
        self._servers.append((family, kind, server.getsockname()))
        threading.Thread(target=self._listen, args=(server, kind), daemon=True).start()
        self._open.callback(lambda: server.shutdown(socket.SHUT_RDWR) if kind == socket.SOCK_STREAM else None)
        return server.getsockname()

    def hear_out(self) -> None:
        """Wait until all that was sent so far is heard: a server takes callers in their order, ours the last."""
        for number, (family, kind, address) in enumerate(self._servers):
            ours = f"last-{os.getpid()}-{number}".encode()
            with suppress(OSError), socket.socket(family, kind) as caller:  # a folder's socket may be gone
                caller.connect(address)
                caller.send(ours)
                ends = time.monotonic() + 20
                while ours not in self.heard and time.monotonic() < ends:
                    time.sleep(0.005)

    def _listen(self, server: socket.socket, kind: int) -> None:
        with suppress(OSError):
            while True:
                if kind == socket.SOCK_DGRAM:
                    self.heard.add(server.recv(100))
                    continue
                caller, _ = server.accept()
                with caller:
                    caller.settimeout(10)
                    self.heard.add(caller.recv(100))

    def _share(self) -> None:
        """System V and POSIX shared memory with the secret in it."""
        library = ctypes.CDLL(None)
        library.shmat.restype = ctypes.c_void_p
        segment = library.shmget(int(self.places["key"]), 100, 0o1666)
        self._open.callback(library.shmctl, segment, 0, None)
        at = library.shmat(segment, None, 0)
        ctypes.memmove(at, SECRET.encode(), len(SECRET))
        shared = Path("/dev/shm", self.places["shared"])
        shared.write_text(SECRET)
        self._open.callback(shared.unlink)


def mark_of(number: int) -> bytes:
    """What the attempt of this number sends to be known by."""
    return f"mark-{os.getpid()}-{number}-x".encode()


class Place:
    """The folders and the victim of one attempt."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.mark = mark_of(number).decode()
        self.folder = world.root / str(number)
        for name in ("outside/empty", "readable", "writable", "writable-not"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "secret").write_text(SECRET)
        (self.folder / "outside/file").write_text("kept")
        (self.folder / "readable/public").write_text("public")
        (self.folder / "readable/to_secret").symlink_to(self.folder / "secret")
        (self.folder / "writable/way_out").symlink_to(self.folder / "outside")
        world.serve_at(self.folder / "readable/socket")
        self.victim = subprocess.Popen(
            ["cat", "-", SECRET],
            env={"SECRET": SECRET},
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def close(self) -> None:
        self.victim.send_signal(signal.SIGKILL)
        self.victim.communicate()

    def filled(self, text: str) -> str:
        """The attempt's text with the names of this place; the word is spelt so that no traceback shows it."""
        folders = {name: str(self.folder / name) for name in ("secret", "outside", "readable", "writable")}
        mine = {"socket": str(self.folder / "readable/socket"), "victim": str(self.victim.pid), "mark": self.mark}
        for name, value in {**self.world.places, **folders, **mine}.items():
            text = text.replace(f"<{name}>", value)
        return text.replace("ESCAPED", "ESC''APED")

    def seen(self) -> Mapping[str, object]:
        """Everything outside of what may be written, and how the victim is."""
        paths = [
            self.folder / "secret",
            self.folder / "writable-not",
            self.folder / "outside",
            self.folder / "readable",
        ]
        files = [path for top in paths for path in (top, *sorted(top.rglob("*")))]
        found: dict[str, object] = {str(path): _looks(path) for path in files}
        found["victim"] = _state(self.victim.pid)
        return found

    def left(self) -> list[str]:
        """Processes of the attempt that are still there."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                line = (folder / "cmdline").read_bytes()
                if self.mark.encode() in line:
                    found.append(f"left {line.decode()}")
        return found


def _looks(path: Path) -> object:
    found = path.lstat()
    content = path.read_bytes() if path.is_file() else None
    attributes = os.listxattr(path, follow_symlinks=False)
    return content, attributes, found.st_mode, found.st_uid, found.st_nlink, found.st_mtime_ns


def _state(process: int) -> object:
    try:
        _heeded(process)
        (letter,) = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:1]
        limits = resource.prlimit(process, resource.RLIMIT_NOFILE)
        return (
            "gone" if letter == "Z" else "stopped" if letter in "tT" else "alive",
            limits,
            os.getpriority(os.PRIO_PROCESS, process),
            os.sched_getaffinity(process),
            os.sched_getscheduler(process),
            ctypes.CDLL(None).syscall(252, 1, process),  # how it waits for the disk
        )
    except OSError:
        return "gone"


def _heeded(process: int) -> None:
    """Return when the process has acted on the signals that it was sent: a killed one runs on until its turn comes."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        told = dict(line.split(":\t", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
        waiting = int(told["SigPnd"], 16) or int(told["ShdPnd"], 16)
        if not waiting or told["State"][0] in "ZTt":
            return
        time.sleep(0.01)


async def attempt(world: World, number: int, wanted: Attempt, layers: list[str] | None) -> list[str]:
    """Make the attempt; what it reached, and empty where it reached nothing. `layers` None: unconfined."""
    place = Place(world, number)
    try:
        before = place.seen()
        async with SandboxExecutionPlane(
            read=[place.folder / "readable"],
            write=[place.folder / "writable"],
            limits=LIMITS if layers is not None else NO_LIMITS,
            timeout_ms=wanted.timeout_ms,
            layers=layers,
            unconfined=layers is None,
        ) as plane:
            code = place.filled(wanted.code)
            result, output, _ = await run(plane, **{"command" if wanted.shell else "code": code})
            assert result.error_kind != "confinement", result
            # Only a program that was given the mark can be known by it.
            return _reached(place, before, output) + (place.left() if "<mark>" in wanted.code else [])
    finally:
        place.close()


def _reached(place: Place, before: Mapping[str, object], output: str) -> list[str]:
    after = place.seen()
    found = [f"changed {name}" for name in {**before, **after} if before.get(name) != after.get(name)]
    found += ["said that it escaped"] if "ESCAPED" in output else []
    found += ["got the secret"] if SECRET in output else []
    return found + (["was heard"] if place.mark.encode() in place.world.heard else [])


async def all_attempts(root: Path, wanted: list[Attempt], layers: list[str] | None) -> dict[str, list[str]]:
    """Sentence → what the attempt reached; a few at a time."""
    world, turn = World(root), asyncio.Semaphore(4)

    async def one(number: int, each: Attempt) -> list[str]:
        async with turn:
            return await attempt(world, number, each, layers)

    try:
        found = await asyncio.gather(*(one(number, each) for number, each in enumerate(wanted)))
        world.hear_out()
        for number, reached in enumerate(found):
            if "was heard" not in reached and mark_of(number) in world.heard:
                reached.append("was heard")
        return dict(zip((each.sentence for each in wanted), found, strict=True))
    finally:
        world.close()
