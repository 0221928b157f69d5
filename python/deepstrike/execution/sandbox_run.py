"""One run of the launcher: bytes as they come, a report at the end, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from deepstrike.execution.confine.policy import decode_report, encode_policy

if TYPE_CHECKING:
    from deepstrike.execution.confine.policy import Policy, Report

HELD_BYTES: Final = 256 * 1024
"""Output that waits to be read; beyond it the program waits."""
GRACE_SECONDS: Final = 10.0
"""How long the launcher may take to end what it started; it needs milliseconds."""
AFTERWARDS_SECONDS: Final = 1.0
"""How long output may still come when the launcher has gone: there is nobody left to write it."""

_LAUNCH: Final = (
    "import sys; sys.path.append(sys.argv[1]); from deepstrike.execution.confine.launch import main; main()"
)
_ROOT: Final = str(Path(__file__).resolve().parents[2])


class _Pipes(asyncio.SubprocessProtocol):
    """Keeps what comes, up to a bound; `gone` holds the report when all is over."""

    def __init__(self, hears: int) -> None:
        """`hears` is where the report will stand; it is closed in the end."""
        self._loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[Report | None] = self._loop.create_future()
        self._hears: int | None = hears
        self._transport: asyncio.SubprocessTransport | None = None
        self._held: deque[bytes] = deque()
        self._size = 0
        self._paused = False
        self._discards = False
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        if isinstance(data, bytes) and not self._discards:
            self._held.append(data)
            self._size += len(data)
            if self._size > HELD_BYTES:
                self._pause(True)
            self._wake()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._wake()

    def process_exited(self) -> None:
        self.expect_end(AFTERWARDS_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.close()
        if not self.gone.done():
            self.gone.set_result(_read_report(self._hears) if self._hears is not None else None)
        self._wake()

    def abandon(self) -> None:
        """The process was not started, or its start was cancelled: nobody will ask for the report."""
        if self._hears is not None:
            os.close(self._hears)
            self._hears = None

    async def read(self) -> bytes | None:
        """The next piece of output, None when there will be no more."""
        while not self._held:
            if self.gone.done():
                return None
            self._waiter = self._loop.create_future()
            await self._waiter
        piece = b"".join(self._held)
        self._held.clear()
        self._size = 0
        self._pause(False)
        return piece

    def discard(self) -> None:
        """What still comes is let go."""
        self._discards = True
        self._held.clear()
        self._pause(False)

    def expect_end(self, seconds: float) -> None:
        """Close everything, and kill the launcher, if it is not over in so many seconds."""
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None and not self.gone.done():
            self._timer = self._loop.call_later(seconds, self._transport.close)

    def _pause(self, wanted: bool) -> None:
        if wanted != self._paused and self._transport is not None:
            self._paused = wanted
            output = cast("asyncio.ReadTransport | None", self._transport.get_pipe_transport(1))
            if output is not None and not output.is_closing():
                output.pause_reading() if wanted else output.resume_reading()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Launched:
    """A launcher at work, bound to its event loop. `close` must be awaited; a cancelled `close` goes on by itself."""

    def __init__(self, transport: asyncio.SubprocessTransport, pipes: _Pipes) -> None:
        self.loop = asyncio.get_running_loop()
        self._transport = transport
        self._pipes = pipes

    @classmethod
    async def start(cls, policy: Policy) -> Launched:
        """Start it and hand it the policy. Raises `OSError` if no process can be started."""
        hears, tells = os.pipe()
        command = (sys.executable, "-I", "-S", "-c", _LAUNCH, _ROOT, str(tells))
        pipes = _Pipes(hears)
        try:
            transport, _ = await asyncio.get_running_loop().subprocess_exec(
                lambda: pipes,
                *command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=_launcher_environment(),
                cwd="/",
                pass_fds=(tells,),
                start_new_session=True,
            )
        except BaseException:
            pipes.abandon()
            raise
        finally:
            os.close(tells)
        launched = cls(transport, pipes)
        launched._lifeline.write(encode_policy(policy))
        return launched

    async def read(self) -> bytes | None:
        """The next piece of what the program writes, to either output; None at the end."""
        return await self._pipes.read()

    def stop(self) -> None:
        """End the program and all that it started; `read` soon comes to its end."""
        if not self._lifeline.is_closing():
            self._lifeline.close()
            self._pipes.expect_end(GRACE_SECONDS)

    async def close(self) -> Report | None:
        """Wait until all is over, ending it if it is not; None if the launcher was killed and left no report."""
        self.stop()
        self._pipes.discard()
        return await asyncio.shield(self._pipes.gone)

    @property
    def _lifeline(self) -> asyncio.WriteTransport:
        return cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))


def signal_name(number: int) -> str:
    """`SIGKILL`, or `SIGRTMIN+1` for a real-time one; its digits where the system has no name for it."""
    try:
        return signal.Signals(number).name
    except ValueError:
        if sys.platform == "linux" and signal.SIGRTMIN < number < signal.SIGRTMAX:
            return f"SIGRTMIN+{number - signal.SIGRTMIN}"
        return str(number)


def _read_report(hears: int) -> Report | None:
    os.set_blocking(hears, False)
    try:
        return decode_report(os.read(hears, 1 << 16))
    except BlockingIOError:  # somebody still holds the other end, and will not write
        return None
    finally:
        os.close(hears)


def _launcher_environment() -> dict[str, str]:
    """What Python itself may need to start; the program gets none of it."""
    return {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
