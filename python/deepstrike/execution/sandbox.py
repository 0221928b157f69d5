"""Commands and Python code in a subprocess that the operating system confines."""

from __future__ import annotations

import asyncio
import codecs
import json
import os
import sys
from typing import TYPE_CHECKING, Final

from deepstrike.errors import ConfigError, ToolError
from deepstrike.execution.confine.landlock import landlock_abi
from deepstrike.execution.confine.policy import Policy
from deepstrike.execution.sandbox_access import SYSTEM, SandboxLimits, check_access, python_paths
from deepstrike.execution.sandbox_places import Places, sweep
from deepstrike.execution.sandbox_run import Launched, signal_name
from deepstrike.execution.unknown import unknown_tool
from deepstrike.tools.allowance import Allowance
from deepstrike.tools.arguments import INVALID, InvalidArguments
from deepstrike.tools.decorator import tool
from deepstrike.tools.failures import failure, failure_of
from deepstrike.tools.results import KEPT_BYTES, Kept
from deepstrike.tools.threads import run_in_thread
from deepstrike.wire.message import Err, Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from deepstrike.execution.base import Invocation
    from deepstrike.execution.confine.policy import Report
    from deepstrike.execution.sandbox_access import Network, Paths
    from deepstrike.tools.definition import Tool
    from deepstrike.wire.message import ToolSpec, Validated

MAX_SOURCE: Final = 100_000
"""Bytes of one command or one piece of code: it is handed over as an argument, which the system bounds."""

_Argv = tuple[str, ...]

_STOPPED: Final = {
    "memory": "it used more memory than allowed and was killed",
    "processes": "it started more processes than allowed and was killed",
    "left": "it ended, but something that it started could not be killed",
}


class SandboxExecutionPlane:
    """Two tools, `run_command` (a shell command) and `run_python` (code), each call in processes of its own.

    By default a program may write in a temporary directory that belongs to the session, read the system's programs and
    libraries, and nothing else: no network, no home, no variable of the host, no other process. Landlock and a seccomp
    filter confine it, and namespaces where the system lets us make them, or bubblewrap where it works. What was applied
    stands in the last line of every result, a JSON object:
    `{"exit_code": 0, "confinement": "landlock abi 7 + seccomp + namespaces + no capabilities + rlimits"}`, with
    `signal` or `stopped` where there was no exit code. If it cannot be confined, nothing runs.

    Both outputs come as one stream, shown as it arrives; of more than 16 MiB the beginning is kept. The input is empty.
    When the program ends, at the timeout and when the call is cancelled, everything that it has started is killed,
    background jobs too.
    """

    def __init__(
        self,
        *,
        read: Paths = (),
        write: Paths = (),
        network: Network = False,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        limits: SandboxLimits | None = None,
        timeout_ms: int | None = 60_000,
        layers: tuple[str, ...] | list[str] | None = None,
        unconfined: bool = False,
    ) -> None:
        """`read` and `write` are files and folders that exist; who may write may also read, and who may read may run.

        `network` is False, True, or a list of TCP ports that may be connected to (names are then not resolved: that
        takes UDP). Unix sockets are never reachable. `env` is all the environment beside PATH, HOME, TMPDIR and LANG.
        `cwd` is where programs start, by default the session's own directory, which is writable in any case.
        `timeout_ms` bounds a call, None for no limit. `layers` demands exactly these of `landlock`, `seccomp`,
        `namespaces`, `bubblewrap`; by default all that work are applied, at least the first two. `unconfined=True` runs
        programs with none of them, and the result says so.

        Raises `ConfigError` for a wrong argument, and where this system can confine nothing.
        """
        if not isinstance(unconfined, bool):
            raise ConfigError(f"unconfined={unconfined!r}: give True or False")
        if limits is not None and not isinstance(limits, SandboxLimits):
            raise ConfigError(f"limits={limits!r}: give SandboxLimits(…), or None for the usual ones")
        _check_system(confined=not unconfined)
        self._access = check_access(read, write, cwd, network, env, layers)
        self._limits = (limits or SandboxLimits()).in_units()
        self._confined = not unconfined
        if unconfined and layers is not None:
            raise ConfigError("unconfined=True applies no layers; leave out layers=, or unconfined=")
        self._timeout_ms = timeout_ms
        said = self._access.told() if self._confined else "It is not confined."
        self._tools: dict[str, Tool[..., _Argv]] = {
            made.name: made
            for made in (
                tool(timeout_ms=timeout_ms, description=f"Run a command with {_SHELL} and get its output. {said}")(
                    run_command
                ),
                tool(timeout_ms=timeout_ms, description=f"Run Python code and get what it prints. {said}")(run_python),
            )
        }
        self._specs = tuple(self._tools[name].spec for name in sorted(self._tools))
        self._places = Places()
        self._running: set[Launched] = set()

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model sees them; always the same."""
        return self._specs

    def validate(self, name: str, args_text: str) -> Validated:
        """Check a call's arguments; never raises (base.py)."""
        made = self._tools.get(name)
        return made.check(args_text) if made is not None else Err("unknown_tool", unknown_tool(name, self._tools))

    async def execute(self, invocation: Invocation) -> ToolResult:
        """Run the program; every failure is a result (base.py).

        Its kind is `exit_code` for a code other than 0 or an end by a signal, `timeout`, `limit` where the run was
        ended for its processes or memory, and `confinement` where nothing ran because it could not be confined.
        """
        made = self._tools.get(invocation.name)
        if made is None:
            return failure("unknown_tool", unknown_tool(invocation.name, self._tools))
        try:
            positional, named = made.bind(invocation.args_text, invocation.context)
            if self._places.fresh():
                await run_in_thread(sweep)
            policy = self._policy(made.function(*positional, **named), invocation.context.session_id)
            return await self._run(policy, invocation)
        except InvalidArguments as refused:
            return failure(INVALID, str(refused))
        except Exception as error:
            return failure_of(error)

    async def aclose(self) -> None:
        """End the runs of this event loop and remove the working directories.

        The plane may be used again; then it makes new ones. Runs of other loops are theirs to end.
        """
        loop = asyncio.get_running_loop()
        for launched in [each for each in list(self._running) if each.loop is loop]:
            await launched.close()
        await run_in_thread(self._places.remove)

    async def __aenter__(self) -> SandboxExecutionPlane:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _policy(self, argv: _Argv, session_id: str) -> Policy:
        access, home = self._access, self._places.of(session_id)
        path = f"{os.path.dirname(sys.executable)}:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
        env = {"PATH": path, "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8"}
        return Policy(
            argv=argv,
            env={**env, **access.env},
            cwd=access.cwd or home,
            system=(*SYSTEM, *python_paths()),
            read=access.read,
            write=(home, *access.write),
            network=access.network,
            limits=self._limits,
            layers=access.layers,
            confined=self._confined,
        )

    async def _run(self, policy: Policy, invocation: Invocation) -> ToolResult:
        launched = await Launched.start(policy)
        self._running.add(launched)
        late = False

        def expire() -> None:
            nonlocal late
            late = True
            launched.stop()

        allowance = Allowance(None if self._timeout_ms is None else self._timeout_ms / 1000, expire)
        kept = Kept()
        try:
            await _stream(launched, invocation, kept)
        finally:
            allowance.stop()
            report = await launched.close()
            self._running.discard(launched)
        return _result(kept, report, self._timeout_ms if late else None)


_SHELL: Final = "bash" if os.access("/bin/bash", os.X_OK) else "sh"


def run_command(command: str) -> _Argv:
    """The program that runs a shell command."""
    return (f"/bin/{_SHELL}", "-c", _checked(command))


def run_python(code: str) -> _Argv:
    """The program that runs Python code; modules in the working directory can be imported."""
    return (sys.executable, "-u", "-X", "utf8", "-c", _checked(code))


def _checked(source: str) -> str:
    if "\0" in source:
        raise ToolError("there is a NUL character in it", hint="leave it out")
    size = len(source.encode())
    if size > MAX_SOURCE:
        raise ToolError(f"it has {size} bytes, more than {MAX_SOURCE}", hint="write it to a file in several calls")
    return source


def _check_system(*, confined: bool) -> None:
    if sys.platform != "linux":
        raise ConfigError("SandboxExecutionPlane needs Linux; use LocalExecutionPlane for tools that need no sandbox")
    if not sys.executable:
        raise ConfigError("SandboxExecutionPlane needs sys.executable, which this program does not set")
    if confined and landlock_abi() < 1:
        raise ConfigError(
            "this kernel cannot confine a program: Landlock is missing or switched off (it needs Linux 5.13 and "
            "lsm=landlock,…); unconfined=True runs programs without any confinement"
        )


async def _stream(launched: Launched, invocation: Invocation, kept: Kept) -> None:
    """Show and keep what comes, up to the bound of a result; the rest is let go, so that the program can end."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    size = 0
    while (piece := await launched.read()) is not None:
        text = decoder.decode(piece)
        kept.add_text(text)
        if size <= KEPT_BYTES and text:
            await invocation.show(text, None)
        size += len(piece)
    kept.add_text(decoder.decode(b"", final=True))


def _result(kept: Kept, report: Report | None, expired_after: int | None) -> ToolResult:
    if report is None:
        kind, said = "exception", "the sandbox's launcher was killed; the program may have taken effect"
        return ToolResult((Text(_with_line(kept, said)),), kind)
    if report.refused:
        return failure("confinement", report.refused)
    ending: dict[str, object] = {}
    kind = ""
    if expired_after is not None and report.stopped:
        kind, ending["stopped"] = "timeout", f"it did not finish within {expired_after} ms and was killed"
    elif report.stopped == "closed":
        kind, ending["stopped"] = "cancelled", "the plane was closed, and it was killed"
    elif report.stopped:
        kind, ending["stopped"] = "limit", _STOPPED[report.stopped]
    elif report.signal is not None:
        kind, ending["signal"] = "exit_code", signal_name(report.signal)
    else:
        kind = "exit_code" if report.exit_code else ""
        ending["exit_code"] = report.exit_code
    ending["confinement"] = report.confinement
    return ToolResult((Text(_with_line(kept, json.dumps(ending))),), kind)


def _with_line(kept: Kept, line: str) -> str:
    return kept.text() + ("" if kept.at_line_start else "\n") + line
