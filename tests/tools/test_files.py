"""`read_file`: confined, bounded, never blocking."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
from toolcalls import called, error_of, schema_of, text_of

from deepstrike.errors import ConfigError
from deepstrike.tools.files import MAX_PAGE_BYTES, PAGE_BYTES, read_file, read_file_in

if TYPE_CHECKING:
    from pathlib import Path

    from deepstrike.tools.definition import Tool

import json

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX files")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with a neighbour whose name begins alike."""
    inside = tmp_path / "ws"
    inside.mkdir()
    (inside / "a").mkdir()
    (inside / "real.txt").write_text("real")
    (tmp_path / "ws-secret").mkdir()
    (tmp_path / "ws-secret" / "key.txt").write_text("secret")
    return inside


async def read(made: Tool[..., str], path: str, **more: int) -> str:
    return text_of(await called(made, json.dumps({"path": path, **more})))


async def refusal(root: Path, path: str) -> str:
    kind, text = error_of(await called(read_file_in(root), json.dumps({"path": path})))
    assert kind == "tool_error"
    assert "secret" not in text.replace("ws-secret", "")
    return text


async def test_given_a_file_below_the_root_when_read_then_its_text_is_the_result(root: Path) -> None:
    made = read_file_in(root)

    assert await read(made, "real.txt") == "real"
    assert await read(made, "./a/../real.txt") == "real"
    assert await read(made, str(root / "real.txt")) == "real"
    assert await read(read_file_in(str(root)), "real.txt") == "real"


async def test_given_the_ready_tool_when_the_working_directory_changes_then_it_is_the_root_at_the_call(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    assert await read(read_file, "real.txt") == "real"
    monkeypatch.chdir(root / "a")

    kind, text = error_of(await called(read_file, '{"path":"../real.txt"}'))

    assert (kind, f"its root {root / 'a'} and follows no link out of it" in text) == ("tool_error", True)


@pytest.mark.parametrize(
    "path",
    [
        "../ws-secret/key.txt",
        "a/../../ws-secret/key.txt",
        "/etc/passwd",
        "a/../../etc/passwd",
        "~/.ssh/id_rsa",
        "~",
        "..",
    ],
)
async def test_given_a_path_out_of_the_root_when_read_then_the_rule_is_told(root: Path, path: str) -> None:
    assert "reads only files below its root" in await refusal(root, path)


async def test_given_the_absolute_path_of_a_neighbour_with_the_same_prefix_when_read_then_it_is_refused(
    root: Path,
) -> None:
    assert "it is outside" in await refusal(root, f"{root}-secret/key.txt")
    assert "it is outside" in await refusal(root, f"{root}/../ws-secret/key.txt")


@posix
async def test_given_links_when_read_then_those_that_lead_out_are_refused_and_those_inside_work(root: Path) -> None:
    outside = root.parent / "ws-secret"
    (root / "link").symlink_to(outside)
    (root / "file_link").symlink_to(outside / "key.txt")
    (root / "up").symlink_to("../ws-secret/key.txt")
    (root / "twice").symlink_to("up")
    (root / "in").symlink_to("real.txt")
    (root / "in_absolute").symlink_to(root / "real.txt")
    (root / "a" / "back").symlink_to("../in")
    (root / "round").symlink_to("round")

    for path in ("link/key.txt", "file_link", "up", "twice"):
        assert "it is outside" in await refusal(root, path)
    for path in ("in", "in_absolute", "a/back"):
        assert await read(read_file_in(root), path) == "real"
    assert "more than 40 links" in await refusal(root, "round")


@posix
async def test_given_what_is_no_file_when_read_then_it_is_refused_without_waiting(root: Path) -> None:
    os.mkfifo(root / "pipe")

    assert "it is a device, a pipe or a socket" in await refusal(root, "pipe")
    assert "it is a directory" in await refusal(root, "a")
    assert "it is a directory" in await refusal(root, ".")
    assert "it is a directory" in await refusal(root, "a/..")
    kind, text = error_of(await called(read_file_in("/dev"), '{"path":"zero"}'))
    assert (kind, "it is a device" in text) == ("tool_error", True)


async def test_given_odd_paths_when_read_then_the_reason_is_plain_and_short(root: Path) -> None:
    assert "the path is empty" in await refusal(root, "")
    assert "NUL character" in await refusal(root, "x\0.txt")
    assert "there is no such file" in await refusal(root, "missing.txt")
    assert "there is no such file" in await refusal(root, "MISSING/real.txt")
    assert "not a directory" in await refusal(root, "real.txt/x")
    long = await refusal(root, "x" * 5000)
    assert ("5000 characters, more than 4096" in long, len(long) < 400) == (True, True)
    assert "file name too long" in await refusal(root, "x" * 3000)


async def test_given_names_of_any_script_when_read_then_they_are_found(root: Path) -> None:
    (root / "naïve ✅ 你好.txt").write_text("naïve ✅ 你好", encoding="utf-8")

    assert await read(read_file_in(root), "naïve ✅ 你好.txt") == "naïve ✅ 你好"


@posix
async def test_given_a_file_without_permission_when_read_then_the_systems_reason_is_told(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "closed.txt").write_text("x")

    def refuse(*_args: object, **_more: object) -> int:
        raise PermissionError(13, "Permission denied")

    made = read_file_in(root)
    monkeypatch.setattr("deepstrike.tools.files.open_below", refuse)

    kind, text = error_of(await called(made, '{"path":"closed.txt"}'))

    assert (kind, "permission denied" in text) == ("tool_error", True)


@pytest.mark.parametrize("sign", ["a", "é", "中", "🛡"])
async def test_given_a_long_file_when_read_in_pages_then_the_pages_join_to_the_whole(root: Path, sign: str) -> None:
    whole = "x" + sign * 50
    (root / "long.txt").write_text(whole, encoding="utf-8")
    made = read_file_in(root)
    pages: list[str] = []
    offset = 0

    for _ in range(200):
        page, _, note = (await read(made, "long.txt", offset=offset, limit=7)).partition("\n")
        pages.append(page)
        if not note:
            break
        offset = int(note.rpartition("offset=")[2].removesuffix("]"))

    assert "".join(pages) == whole
    assert all(len(page.encode()) <= 7 for page in pages)


async def test_given_pages_at_odd_places_when_read_then_each_says_what_it_is(root: Path) -> None:
    (root / "t.txt").write_text("äöü", encoding="utf-8")
    (root / "big.txt").write_text("x" * (MAX_PAGE_BYTES + 1))
    (root / "empty.txt").write_text("")
    made = read_file_in(root)

    assert await read(made, "t.txt", offset=1) == "öü"
    assert await read(made, "t.txt", offset=6) == "[the file ends at byte 6]"
    assert await read(made, "t.txt", limit=1) == "ä\n[bytes 0 to 2 of 6; go on with offset=2]"
    assert await read(made, "empty.txt") == ""
    page = await read(made, "big.txt", limit=10**9)
    assert page.endswith(f"\n[bytes 0 to {MAX_PAGE_BYTES} of {MAX_PAGE_BYTES + 1}; go on with offset={MAX_PAGE_BYTES}]")
    assert len(await read(made, "big.txt")) < PAGE_BYTES + 100
    for wrong in ('{"path":"t.txt","offset":-1}', '{"path":"t.txt","limit":0}'):
        assert error_of(await called(made, wrong))[0] == "tool_error"


async def test_given_bytes_that_are_no_utf8_text_when_read_then_the_error_says_which_kind(root: Path) -> None:
    (root / "b.bin").write_bytes(b"ab\0c")
    (root / "l.txt").write_bytes(b"caf\xe9")
    (root / "u.txt").write_bytes("text".encode("utf-16"))
    (root / "bom.txt").write_bytes(b"\xef\xbb\xbftext")
    (root / "crlf.txt").write_bytes(b"a\r\nb")

    assert "is a binary file" in await refusal(root, "b.bin")
    assert "is not UTF-8 text (byte 0xe9)" in await refusal(root, "l.txt")
    assert "is UTF-16 text" in await refusal(root, "u.txt")
    assert await read(read_file_in(root), "bom.txt") == "text"
    assert await read(read_file_in(root), "crlf.txt") == "a\r\nb"


def test_given_the_tool_when_its_spec_is_asked_for_then_it_may_be_run_again_after_a_crash() -> None:
    assert (read_file.name, read_file.effect, schema_of(read_file)["required"]) == ("read_file", "read", ["path"])
    assert read_file.spec == read_file_in(".").spec


def test_given_a_root_that_is_no_directory_when_the_tool_is_made_then_it_is_refused(root: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such directory"):
        read_file_in(root / "nowhere")


@posix
def test_given_a_directory_that_becomes_a_link_in_the_walk_when_opened_then_it_is_not_followed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deepstrike.tools.rooted import open_below

    (root / "a" / "key.txt").write_text("inside")
    readlink = os.readlink

    def exchange_after_look(name: bytes, *, dir_fd: int) -> bytes:
        try:
            return readlink(name, dir_fd=dir_fd)
        finally:
            if name == b"a":
                os.rename(root / "a", root / "moved")
                (root / "a").symlink_to(root.parent / "ws-secret")

    monkeypatch.setattr(os, "readlink", exchange_after_look)

    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        open_below(root, "a/key.txt")


@posix
async def test_given_many_reads_when_done_then_no_descriptor_stays_open(root: Path) -> None:
    (root / "in").symlink_to("a/../real.txt")
    made = read_file_in(root)
    await read(made, "in")
    before = sorted(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else []

    for path in ("in", "a/../real.txt", "../x", "missing", "a", str(root / "in")):
        await called(made, json.dumps({"path": path}))

    assert (sorted(os.listdir("/proc/self/fd")) if before else []) == before
