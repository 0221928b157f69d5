"""Processes that live through the session and die, each in a fresh place, as the tests ask for them."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from telling import Fate, Life

from deepstrike.sessions.file import FileSessionLog
from deepstrike.sessions.sqlite import SqliteSessionLog

FULL = os.environ.get("DEEPSTRIKE_FULL") == "1"
KINDS = ["file", "sqlite"]


class Nursery:
    """The process that forks the others; `live` waits until the one it asked for has ended or stopped."""

    def __init__(self) -> None:
        command = [sys.executable, str(Path(__file__).with_name("nursery.py"))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def begin(self, fate: Fate) -> None:
        """Have a process begin to live, and wait for nothing."""
        self._write(msgspec.json.encode(fate))

    def end(self) -> Life:
        """How the process that was begun has lived."""
        return msgspec.json.decode(self._read(), type=Life)

    def live(self, fate: Fate) -> Life:
        """Have a process live, to its end or to the place where it stops."""
        self.begin(fate)
        return self.end()

    def kill_the_stopped(self) -> None:
        """`kill -9` for those that stopped and stayed."""
        self._write(b"")
        assert self._read() == b"null\n"

    def close(self) -> None:
        """Let it end."""
        self._process.communicate(timeout=60)
        assert self._process.returncode == 0

    def _write(self, line: bytes) -> None:
        assert self._process.stdin
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()

    def _read(self) -> bytes:
        assert self._process.stdout
        return self._process.stdout.readline()


@contextmanager
def nursery() -> Iterator[Nursery]:
    """A nursery, closed at the end."""
    opened = Nursery()
    try:
        yield opened
    finally:
        opened.close()


def found_in(fate: Fate, folder: Path) -> FileSessionLog | SqliteSessionLog:
    """The log as a dead process has left it: a copy, so that looking at it changes nothing for the next one."""
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    try:
        shutil.copytree(fate.place, copy)
    except shutil.Error:  # a log of this process that was just collected has put its files in order meanwhile
        shutil.copytree(fate.place, copy, dirs_exist_ok=True)
    if fate.kind == "sqlite":
        return SqliteSessionLog(copy / "sessions.db")
    return FileSessionLog(copy / "sessions")


def seeded() -> tuple[int, random.Random]:
    """The seed of this run, to be named when a test fails, and its dice."""
    seed = int(os.environ.get("DEEPSTRIKE_SEED", "20261130"))
    return seed, random.Random(seed)
