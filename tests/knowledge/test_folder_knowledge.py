"""A folder as a knowledge source: what is found, where it says it is from, and how the index follows the files."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepstrike.errors import ConfigError
from deepstrike.knowledge import FolderKnowledge
from deepstrike.knowledge import folder as module
from deepstrike.knowledge.extract import MAX_BYTES, Unreadable, text_of
from deepstrike.knowledge.passages import OVERLAP, SIZE, passages

SOURCES = Path(__file__).parents[2] / "python"

GUIDE = """# Guide

Welcome to the machine.

## Install

Turn the crank twice.

```
# not a heading
crank --twice
```

## Repair

Replace the sprocket.
"""
PAGE = """<html><head><title>Old &amp; new</title><style>p { color: sprocket }</style></head>
<body><h1>Pears</h1><p>A pear is a <b>fruit</b>.<script>var sprocket = 1</script></p>
<ul><li>Conference<li>Williams&nbsp;Christ</ul></body></html>"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with a guide in Markdown and a page in HTML."""
    folder = tmp_path / "files"
    (folder / "deep").mkdir(parents=True)
    (folder / "guide.md").write_text(GUIDE)
    (folder / "deep/page.html").write_text(PAGE)
    return folder


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the files whose text is extracted from here on."""
    found: list[str] = []

    def watched(path: str, data: bytes) -> str:
        found.append(path)
        return text_of(path, data)

    monkeypatch.setattr(module, "text_of", watched)
    return found


def source(files: Path) -> FolderKnowledge:
    return FolderKnowledge(files, index=files.parent / "index.db")


async def test_given_files_when_asked_then_passages_come_with_their_source(files: Path) -> None:
    knowledge = source(files)
    await knowledge.init()

    assert await knowledge.retrieve("how to repair a SPROCKET?") == [
        "guide.md#Repair, lines 14-16:\n## Repair\n\nReplace the sprocket."
    ]
    assert await knowledge.retrieve("cranks", 1) == [
        "guide.md#Install, lines 5-12:\n## Install\n\nTurn the crank twice.\n\n```\n# not a heading\ncrank --twice\n```"
    ]
    assert await knowledge.retrieve("pear") == [
        "deep/page.html#Pears:\n# Pears\n\nA pear is a fruit.\n\nConference\n\nWilliams Christ"
    ]
    assert await knowledge.retrieve("nonsense") == []
    assert await knowledge.retrieve("pear", 0) == []


async def test_given_changes_when_asked_again_then_only_what_changed_is_read(files: Path, read: list[str]) -> None:
    knowledge = source(files)
    await knowledge.init()
    assert sorted(read) == ["deep/page.html", "guide.md"]
    read.clear()

    (files / "new.txt").write_text("A walnut is a nut.")
    assert await knowledge.retrieve("walnut") == ["new.txt, lines 1-1:\nA walnut is a nut."]
    (files / "new.txt").write_text("A hazelnut is one too.")
    assert await knowledge.retrieve("walnut hazelnut") == ["new.txt, lines 1-1:\nA hazelnut is one too."]
    (files / "new.txt").unlink()
    assert await knowledge.retrieve("hazelnut") == []
    assert read == ["new.txt", "new.txt"]
    assert await source(files).retrieve("sprocket") == await knowledge.retrieve("sprocket")
    assert read == ["new.txt", "new.txt"]


async def test_given_a_file_that_moved_or_was_touched_when_asked_then_its_passages_stay(files: Path) -> None:
    knowledge = source(files)
    await knowledge.init()
    connection = sqlite3.connect(files.parent / "index.db")
    before = connection.execute("SELECT number FROM passages ORDER BY number").fetchall()

    (files / "guide.md").rename(files / "deep/manual.md")
    os.utime(files / "deep/page.html", (1, 1))
    found = await knowledge.retrieve("sprocket")

    assert found == ["deep/manual.md#Repair, lines 14-16:\n## Repair\n\nReplace the sprocket."]
    assert connection.execute("SELECT number FROM passages ORDER BY number").fetchall() == before
    assert connection.execute("SELECT path FROM files ORDER BY path").fetchall() == [
        ("deep/manual.md",),
        ("deep/page.html",),
    ]
    (files / "copy.md").write_text((files / "deep/manual.md").read_text())
    assert len(await knowledge.retrieve("sprocket")) == 2
    connection.close()


async def test_given_what_has_no_text_when_indexed_then_it_is_left_out_with_one_warning(
    files: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (files / "image.png").write_bytes(b"\x89PNG\0\0sprocket")
    (files / "latin.txt").write_bytes(b"caf\xe9 sprocket")
    (files / "utf16.txt").write_bytes("a sprocket in UTF-16".encode("utf-16"))
    (files / "broken.pdf").write_bytes(b"%PDF-1.4 sprocket")
    (files / ".hidden.md").write_text("sprocket")
    (files / "link.md").symlink_to(files / "guide.md")
    (files.parent / "secret.txt").write_text("secret sprocket")
    (files / "out").symlink_to(files.parent)
    os.mkfifo(files / "pipe.txt")
    (files / "large.txt").write_bytes(b"sprocket" * (MAX_BYTES // 8) + b"x")
    knowledge = source(files)

    first, second = await knowledge.retrieve("sprocket", 9), await knowledge.retrieve("sprocket", 9)

    assert first == second
    assert {passage.split("\n")[0] for passage in first} == {"guide.md#Repair, lines 14-16:", "utf16.txt, lines 1-1:"}
    left_out = {record.getMessage().removeprefix(f"{files}/").split(" ")[0] for record in caplog.records}
    assert left_out == {"image.png", "latin.txt", "broken.pdf", "large.txt"}
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 4


@pytest.mark.parametrize(
    "query", ["", '"', "sprocket AND", "NEAR(a b)", "body:x", "*", "-x", "\0", "\ud800", "(" * 2000, "a " * 9000, "'--"]
)
async def test_given_any_text_as_a_query_when_asked_then_it_is_only_words(files: Path, query: str) -> None:
    found = await source(files).retrieve(query)

    assert all("sprocket" in passage for passage in found) or "a" in query


async def test_given_text_without_spaces_between_words_when_asked_then_it_is_found(files: Path) -> None:
    (files / "zh.md").write_text("# 手册\n\n请更换机器的链轮。\n")
    (files / "accents.md").write_text("Le café était très bon.")
    knowledge = source(files)

    assert await knowledge.retrieve("怎么更换链轮？") == ["zh.md#手册, lines 1-3:\n# 手册\n\n请更换机器的链轮。"]
    assert await knowledge.retrieve("CAFE etait") == ["accents.md, lines 1-1:\nLe café était très bon."]


async def test_given_a_damaged_or_older_index_when_opened_then_it_is_made_anew(files: Path) -> None:
    index = files.parent / "index.db"
    index.write_bytes(b"no database at all, only text" * 100)
    assert len(await source(files).retrieve("sprocket")) == 1
    connection = sqlite3.connect(index)
    connection.execute("PRAGMA user_version = 99")
    connection.close()

    assert len(await source(files).retrieve("sprocket")) == 1


async def test_given_a_file_that_could_not_be_opened_when_it_can_then_it_is_found(
    files: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (files / "note.txt").write_text("a marmalade note")
    knowledge = source(files)

    def refused(root: Path, path: str) -> int:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(module, "open_below", refused)
        assert [await knowledge.retrieve("marmalade") for _ in range(2)] == [[], []]
    told = [record.getMessage() for record in caplog.records if "note.txt" in record.getMessage()]

    assert told == [f"{files / 'note.txt'} is left out of the index: it cannot be opened: Too many open files"]
    assert await knowledge.retrieve("marmalade") == ["note.txt, lines 1-1:\na marmalade note"]


async def test_given_a_file_that_changed_and_cannot_be_opened_when_asked_then_its_old_text_is_not_found(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (files / "note.txt").write_text("a marmalade note")
    knowledge = source(files)
    assert len(await knowledge.retrieve("marmalade")) == 1
    (files / "note.txt").write_text("no longer")

    def refused(root: Path, path: str) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(module, "open_below", refused)
    assert await knowledge.retrieve("marmalade") == []


async def test_given_a_pdf_when_its_library_comes_later_then_it_is_read(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (files / "paper.pdf").write_bytes(b"%PDF")
    knowledge = source(files)
    assert await knowledge.retrieve("marmalade") == []

    monkeypatch.setattr(module, "text_of", lambda path, data: "a marmalade paper")

    assert await knowledge.retrieve("marmalade") == ["paper.pdf:\na marmalade paper"]


async def test_given_names_that_are_no_text_or_forge_a_source_when_indexed_then_no_question_fails(files: Path) -> None:
    strange = os.fsencode(files) + b"/d\xff"
    os.mkdir(strange)
    for name in (strange + b"/a.md", os.fsencode(files) + b"/b\xff.md"):
        with open(name, "w") as file:
            file.write("marmalade")
    (files / "c\nguide.md, lines 1-2:.md").write_text("marmalade")

    assert await source(files).retrieve("marmalade") == ["c\\nguide.md, lines 1-2:.md, lines 1-1:\nmarmalade"]


@pytest.mark.parametrize("path", [None, 5, "", "a\0b", b"bytes", "\ud800"])
def test_given_what_is_no_path_when_built_then_the_error_names_it(path: Any, files: Path) -> None:
    with pytest.raises(ConfigError, match="is no path"):
        FolderKnowledge(path)
    with pytest.raises(ConfigError, match=r"is no path|names no file"):
        FolderKnowledge(files, index="" if path is None else path)


async def test_given_no_folder_or_a_foreign_file_when_built_then_it_is_refused(files: Path) -> None:
    connection = sqlite3.connect(files.parent / "mine.db")
    connection.execute("CREATE TABLE mine (x)")
    connection.close()

    with pytest.raises(ConfigError, match="there is no such folder"):
        FolderKnowledge(files / "nowhere")
    with pytest.raises(ConfigError, match="is a folder"):
        FolderKnowledge(files, index=files)
    with pytest.raises(ConfigError, match="name another file"):
        await FolderKnowledge(files, index=files.parent / "mine.db").init()


async def test_given_no_index_when_built_then_it_lies_in_the_users_cache_and_two_folders_have_two(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DEEPSTRIKE_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(files.parent / "cache"))
    await FolderKnowledge(files).init()
    await FolderKnowledge(files / "deep").init()
    assert len(list((files.parent / "cache/deepstrike/knowledge").glob("*.db"))) == 2
    monkeypatch.setenv("DEEPSTRIKE_HOME", str(files.parent / "home"))
    await FolderKnowledge(files).init()
    assert len(list((files.parent / "home/knowledge").glob("*.db"))) == 1


async def test_given_two_folders_in_one_index_when_asked_then_each_has_its_own(files: Path) -> None:
    index = files / "index.db"  # also where it lies in the folder itself
    both = FolderKnowledge(files, index=index), FolderKnowledge(files / "deep", index=index)

    assert [len(await knowledge.retrieve("pear")) for knowledge in both] == [1, 1]
    assert [len(await knowledge.retrieve("sprocket")) for knowledge in both] == [1, 0]


async def test_given_two_processes_when_they_index_at_once_then_both_find_everything(files: Path) -> None:
    for number in range(80):
        (files / f"{number}.txt").write_text(f"plum number {number}")
    program = (
        "import asyncio, sys\nfrom deepstrike.knowledge import FolderKnowledge\n"
        "print(len(asyncio.run(FolderKnowledge(sys.argv[1], index=sys.argv[2]).retrieve('plum', 100))))"
    )
    command = [sys.executable, "-c", program, str(files), str(files.parent / "index.db")]
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(2)]

    assert [process.communicate()[0] for process in processes] == ["50\n", "50\n"]
    connection = sqlite3.connect(files.parent / "index.db")
    assert connection.execute("SELECT count(*) FROM passages").fetchall() == [(80 + 5,)]
    connection.close()


async def test_given_threads_that_ask_at_once_when_files_change_then_all_are_answered(files: Path) -> None:
    knowledge = source(files)

    answers = await asyncio.gather(*(knowledge.retrieve("sprocket") for _ in range(10)))

    assert answers == [answers[0]] * 10
    assert len(answers[0]) == 1


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(["# Head", "## Sub", "", "word " * 30, "w" * 3000, "```", "- item", "text"]), max_size=30)
)
def test_given_any_text_when_cut_then_every_line_is_in_a_passage_of_bounded_size(lines: list[str]) -> None:
    text = "\n".join(lines)

    cut = passages(text)

    assert all(0 < len(piece.text) <= SIZE + OVERLAP + 8 for piece in cut)
    assert all(1 <= piece.first <= piece.last <= len(lines) for piece in cut)
    covered = {number for piece in cut for number in range(piece.first, piece.last + 1)}
    assert {number for number, line in enumerate(lines, 1) if line.strip()} <= covered
    assert [piece.first for piece in cut] == sorted(piece.first for piece in cut)
    assert set(text.split()) - {"w" * 3000} <= {word for piece in cut for word in piece.text.split()}


@pytest.mark.parametrize(
    ("line", "heading"),
    [
        ("# a", "a"), ("### a b ##", "a b"), ("# a#", "a"), ("# #", "#"), ("#a", ""), ("####### a", ""), ("#  ", ""),
        ("# a ##  ", "a ##"), ("# a" + " " * 50_000 + "b", "a" + " " * 50_000 + "b"),
    ],
)  # fmt: skip
def test_given_a_line_when_cut_then_it_is_a_heading_as_markdown_has_them(line: str, heading: str) -> None:
    assert {piece.heading for piece in passages(f"{line}\n\ntext")} == {heading}


def test_given_a_long_section_when_cut_then_passages_overlap_by_whole_paragraphs() -> None:
    text = "\n\n".join(f"paragraph {number} " + "x" * 180 for number in range(12))

    cut = passages(text)

    assert [piece.text.split("\n\n")[0] for piece in cut[1:]] == [piece.text.split("\n\n")[-1] for piece in cut[:-1]]
    assert len(cut) == 3


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a<", "a<"), (b"a&#x110000;&bogus;", "a\ufffd&bogus;"),
        (b"a<script>x", "a"), (b"a</p></div>b", "a\n\nb"), (b"<svg><svg></svg>x</svg>a", "a"), (b"", ""),
        (b"a<![foo[bar]]><![if x", "a"), (b"a <b title='x>y' c=\">\">b</b >c", "a bc"), (b"<!-- <p>x --> a", "a"),
        (b"1 < 2 and 2 <b", "1 < 2 and 2 <b"), (b"<script>'</b>'</SCRIPT >a", "a"), (b"<?php x ?>a</>b", "ab"),
        (b"<H2 id=x>One</h2>two", "## One\n\ntwo"), (b"a<br/>b", "a\n\nb"), (b"<!doctype html><p>&lt;b&gt;", "<b>"),
        # What was read by the square of its length, minutes for each of these.
        (b"<a " * 20_000, "<a " * 19_999 + "<a"), (b"a" + b"<!--" * 100_000, "a"), (b"a" + b"</" * 100_000, "a"),
    ],
)  # fmt: skip
def test_given_broken_html_when_read_then_it_has_the_text_that_a_reader_would_see(data: bytes, text: str) -> None:
    assert text_of("x.html", data) == text


def test_given_bytes_that_are_no_text_when_read_then_the_reason_is_told() -> None:
    for path, data, reason in (("x.html", b"<b\0>", "is binary"), ("x", b"a\xff", "is no UTF-8 text (byte 1)")):
        with pytest.raises(Unreadable) as refused:
            text_of(path, data)
        assert str(refused.value) == reason
