"""The `deepstrike` command on a terminal: a real pseudo-terminal, its keys and its colours."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from select import select
from typing import TYPE_CHECKING

import pytest

import deepstrike

if TYPE_CHECKING:
    from types import TracebackType

termios = pytest.importorskip("termios", reason="this system has no terminals")
pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")

LIMIT = 60
TOOLS = '''
import asyncio

def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y

async def wait() -> None:
    """Wait for ever."""
    await asyncio.Event().wait()

async def stay() -> None:
    """Swallow every cancellation."""
    while True:
        try:
            await asyncio.sleep(600)
        except BaseException:
            pass
'''
COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A command on a terminal of its own. `read_to` waits for what it writes, `type` sends keys."""

    def __init__(self, here: Path, *arguments: str) -> None:
        (here / "my_tools.py").write_text(TOOLS)
        self._keys, side = pty.openpty()
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
        for unwanted in ("NO_COLOR", "CI"):
            kept.pop(unwanted, None)
        self.process = subprocess.Popen(
            [sys.executable, "-c", _LEAD_THE_TERMINAL, *arguments],
            cwd=here,
            env={**kept, "PYTHONPATH": str(Path(deepstrike.__file__).parents[1]), "TERM": "xterm", "COLUMNS": "120"},
            stdin=side,
            stdout=side,
            stderr=side,
            start_new_session=True,
        )
        os.close(side)
        self.written = ""
        self._seen = 0

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._keys)

    def type(self, keys: str) -> None:
        with suppress(OSError):  # the command has ended
            os.write(self._keys, keys.encode())

    def modes(self) -> list[object]:
        """How the terminal is set."""
        return list(termios.tcgetattr(self._keys))

    def read_to(self, wanted: str) -> None:
        """Read until `wanted` was written behind what was waited for before."""
        while (at := COLOURS.sub("", self.written).find(wanted, self._seen)) < 0:
            assert self._read(), f"the output ended before {wanted!r}: {self.written!r}"
        self._seen = at + len(wanted)

    def end(self, pressing: str = "") -> tuple[int, str]:
        """The exit code, and all that was written, without colours; `pressing` a key until it ends.

        Again after each silent second, because input() may still be on its way from its prompt to its wait for keys.
        """
        self.type(pressing)
        while True:
            if pressing and not self._ready(1):
                self.type(pressing)
            elif not self._read():
                return self.process.wait(LIMIT), COLOURS.sub("", self.written)

    def _ready(self, seconds: float) -> bool:
        return bool(select([self._keys], [], [], seconds)[0])

    def _read(self) -> str:
        assert self._ready(LIMIT), f"nothing more was written: {self.written!r}"
        try:
            piece = os.read(self._keys, 4096).decode("utf-8", "replace")
        except OSError:
            return ""
        self.written += piece
        return piece


_LEAD_THE_TERMINAL = """
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C reaches this process
from deepstrike.cli import main
main()
"""


def test_given_a_terminal_when_demo_then_text_tools_and_sum_are_shown_in_order(tmp_path: Path) -> None:
    with Terminal(tmp_path, "demo") as terminal:
        code, text = terminal.end()
    lines = [line.strip() for line in text.replace("\r", "\n").split("\n")]
    shown = [line for line in lines if line.startswith(("goal", "→", "←", "The answer", "2 turns"))]
    assert code == 0
    assert shown[:4] == ["goal   What is 17 + 28?", "→ add(x=17, y=28)", "← 45", "The answer is 45, by the tool add."]
    assert re.fullmatch(r"2 turns · \d+ tokens · \d+\.\d\d s", shown[4])
    assert "\x1b[" in terminal.written


def test_given_a_running_tool_when_shown_then_a_status_line_says_so_and_is_taken_down(tmp_path: Path) -> None:
    with Terminal(tmp_path, "run", "wait", "--model", "demo", "--tools", "my_tools:wait") as terminal:
        terminal.read_to("running wait")
        terminal.type("\x03")
        code, text = terminal.end()
    assert code == 130
    assert text.rstrip().endswith("user_abort")
    assert terminal.written.rindex("\x1b[?25h") > terminal.written.rindex("\x1b[?25l"), "the cursor is shown again"


def test_given_a_chat_when_ctrl_c_is_pressed_twice_then_the_first_interrupts_and_the_second_leaves(
    tmp_path: Path,
) -> None:
    tools = ("--tools", "my_tools:wait", "--tools", "my_tools:add")
    with Terminal(tmp_path, "chat", "--model", "demo", *tools) as terminal:
        terminal.read_to("> ")
        terminal.type("wait\n")
        terminal.read_to("running wait")
        terminal.type("\x03")
        terminal.read_to("user_abort")
        terminal.read_to("> ")
        terminal.type("add 2 and 3\n")
        terminal.read_to("The answer is 5, by the tool add.")
        terminal.read_to("> ")
        code, text = terminal.end(pressing="\x03")
    assert code == 130
    assert "Traceback" not in text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_given_a_running_tool_when_a_signal_ends_the_command_then_the_cursor_is_shown_again(
    tmp_path: Path, number: signal.Signals
) -> None:
    with Terminal(tmp_path, "run", "stay", "--model", "demo", "--tools", "my_tools:stay") as terminal:
        terminal.read_to("running stay")
        terminal.process.send_signal(number)
        code, text = terminal.end()
    assert (code, "Traceback" in text) == (128 + number, False)
    assert terminal.written.rindex("\x1b[?25h") > terminal.written.rindex("\x1b[?25l"), "the cursor is shown again"


def test_given_a_tool_that_stays_when_ctrl_c_is_pressed_again_then_the_chat_leaves_and_the_cursor_is_shown(
    tmp_path: Path,
) -> None:
    with Terminal(tmp_path, "chat", "--model", "demo", "--tools", "my_tools:stay") as terminal:
        terminal.read_to("> ")
        terminal.type("stay\n")
        terminal.read_to("running stay")
        terminal.type("\x03\x03\x03")
        code, text = terminal.end(pressing="\x03")
    assert code == 130
    assert [word for word in ("Traceback", "Exception", "destroyed") if word in text] == []
    assert terminal.written.rindex("\x1b[?25h") > terminal.written.rindex("\x1b[?25l"), "the cursor is shown again"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_given_a_prompt_when_a_signal_comes_then_the_terminal_is_as_it_was(
    tmp_path: Path, number: signal.Signals
) -> None:
    with Terminal(tmp_path, "chat", "--model", "demo") as terminal:
        before = terminal.modes()
        terminal.read_to("> ")
        while terminal.modes() == before:  # line editing is on its way to its own modes
            assert terminal.process.poll() is None
        code = None
        for _ in range(LIMIT):  # input() may still be on its way to its wait for keys
            terminal.process.send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                code = terminal.process.wait(1)
                break
        assert (code, terminal.modes()) == (128 + number, before)


def test_given_a_chat_when_the_input_ends_then_it_leaves_with_the_last_answers_code(tmp_path: Path) -> None:
    with Terminal(tmp_path, "chat", "--model", "demo") as terminal:
        terminal.read_to("> ")
        terminal.type("\x04")
        code, text = terminal.end()
    assert (code, "Traceback" in text) == (0, False)
