"""Where sessions are kept when nobody says so, and which log a path means."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stores import FILES, SQLITE, Kind, write

from deepstrike.errors import ConfigError
from deepstrike.sessions.file import FileSessionLog
from deepstrike.sessions.names import file_stem
from deepstrike.sessions.places import default_path, home, open_log
from deepstrike.sessions.sqlite import SqliteSessionLog


def test_given_a_home_in_the_environment_when_asked_then_it_is_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPSTRIKE_HOME", str(tmp_path / "mine"))
    assert (home(), default_path()) == (tmp_path / "mine", tmp_path / "mine" / "sessions.db")
    assert not (tmp_path / "mine").exists()


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="the folders of XDG")
def test_given_no_home_when_asked_then_it_is_in_the_users_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Path] = []
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("DEEPSTRIKE_HOME", "")
    for data in ("/srv/data", "", "not/absolute"):
        monkeypatch.setenv("XDG_DATA_HOME", data)
        found.append(home())
    usual = Path("/home/ada/.local/share/deepstrike")
    assert found == [Path("/srv/data/deepstrike"), usual, usual]


async def test_given_a_path_when_opened_then_what_is_there_decides(tmp_path: Path) -> None:
    (tmp_path / "folder.db").mkdir()
    await write(SqliteSessionLog(tmp_path / "database"), "s", [b"a"])
    (tmp_path / "empty").write_bytes(b"")
    opened = {path.name: type(open_log(path)) for path in sorted(tmp_path.iterdir()) if "-" not in path.name}
    assert opened == {"database": SqliteSessionLog, "empty": SqliteSessionLog, "folder.db": FileSessionLog}
    assert await open_log(str(tmp_path / "database")).read("s") == [b"a"]


def test_given_a_path_where_nothing_is_when_opened_then_its_name_decides_and_nothing_is_made(tmp_path: Path) -> None:
    names = ("a.db", "b.SQLITE", "c.sqlite3", "d", "e.log")
    opened = [type(open_log(tmp_path / name)) for name in names]
    assert opened == [SqliteSessionLog, SqliteSessionLog, SqliteSessionLog, FileSessionLog, FileSessionLog]
    assert list(tmp_path.iterdir()) == []


def test_given_a_file_that_is_no_database_when_opened_then_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("dear diary", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"notes\.txt' is a file: name a folder"):
        open_log(tmp_path / "notes.txt")


@pytest.mark.parametrize("path", ["", None, 7, b"bytes", "a\0b", "x" * 300, "d/" * 3000, "~nobody-is-called-this/x"])
@pytest.mark.parametrize("make", [FileSessionLog, SqliteSessionLog])
def test_given_what_is_no_path_when_a_log_is_built_then_it_is_refused(
    make: Callable[[Any], object], path: object
) -> None:
    with pytest.raises(ConfigError, match=r"(dir|path)="):
        make(path)


async def test_given_a_tilde_when_a_log_is_built_then_it_is_the_users_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for log in (FileSessionLog("~/folder"), SqliteSessionLog("~/file.db")):
        await log.release("s", await log.acquire("s"))
    assert {path.name for path in tmp_path.iterdir()} >= {"folder", "file.db-locks"}


@pytest.mark.parametrize("kind", [FILES, SQLITE], ids=str)
@pytest.mark.parametrize("session_id", [None, 7, b"s", ["s"]])
async def test_given_a_session_id_that_is_no_text_when_used_then_it_is_refused(
    kind: Kind, session_id: Any, tmp_path: Path
) -> None:
    log = kind.open(tmp_path / "log")
    for use in (log.acquire, log.read, log.latest_seq, log.delete):
        with pytest.raises(ConfigError, match="is no text"):
            await use(session_id)


def test_file_names_of_sessions_are_short_plain_and_their_own() -> None:
    ids = [
        "",
        "A",
        "a",
        "é",
        "e\u0301",
        "nul",
        "NUL",
        "com1",
        "..",
        "a/b",
        "a\\b",
        "a:b",
        "\0",
        "-",
        "x" * 5_000,
        "\ud800",
    ]
    stems = [file_stem(session_id) for session_id in ids]
    assert len({stem.casefold() for stem in stems}) == len(ids)
    assert [stem for stem in stems if len(stem) > 57 or stem.strip("abcdefghijklmnopqrstuvwxyz0123456789-")] == []
    assert [file_stem(session_id)[:-33] for session_id in ("Nightly Report/7", "nul", "x" * 99)] == [
        "nightly-report-7",
        "nul",
        "x" * 24,
    ]
