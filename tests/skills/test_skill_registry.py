"""Skills: what is found, what is left out and why, what the model is offered and what it can read."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepstrike.errors import ConfigError, ToolError
from deepstrike.skills import Skill, SkillMetadata, SkillProblem, SkillRegistry
from deepstrike.skills.catalogue import catalogue
from deepstrike.skills.front_matter import Broken, read
from deepstrike.skills.metadata import estimated_tokens, metadata_of

PIECES = [
    b"---\n", b"---", b"\n", b"\r\n", b"\r", b"name: a\n", b"description: b: c\n", b"name:", b" ", b": ", b"- ", b"{",
    b"[", b"&a ", b"*a", b"!!python/object:os.system ", b"'", b'"', b"|", b">", b"#", b"?", b"\t", b"\xef\xbb\xbf",
    b"\x00", b"%YAML 1.1\n", b"allowed-tools: A(b c) D\n", b"effort: 3\n", b"\\", b"<<: ", b"\xe2\x80\xa8", b"\xc2\x85",
]  # fmt: skip
CHAOS = st.lists(st.sampled_from(PIECES) | st.binary(max_size=6), max_size=24).map(b"".join)
GOOD = "---\nname: {name}\ndescription: does {name}\n---\nDo {name}.\n"
DOCUMENTED = """---
name: summarize
description: Summarize text into 2-3 concise bullet points
when_to_use: When you need to condense long text
effort: 1
---
1. Identify the 2-3 most important points
2. Express each as a concise bullet
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty skill folder beside a secret."""
    (tmp_path / "secret.md").write_text(GOOD.format(name="secret"))
    root = tmp_path / "skills"
    root.mkdir()
    return root


def put(folder: Path, path: str, text: str | bytes) -> Path:
    """Write a file below the folder."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are opened from here on."""
    found: list[str] = []
    plain = os.open

    def watched(path: str | bytes, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if not flags & os.O_DIRECTORY:
            found.append(os.fsdecode(path))
        return plain(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", watched)
    return found


def names(registry: SkillRegistry) -> list[str]:
    return [skill.name for skill in registry.scan()]


def test_given_the_documented_skill_when_it_is_scanned_and_loaded_then_every_field_is_there(folder: Path) -> None:
    put(folder, "summarize.md", DOCUMENTED)
    registry = SkillRegistry(folder)
    body = "1. Identify the 2-3 most important points\n2. Express each as a concise bullet"
    metadata = SkillMetadata(
        "summarize",
        "Summarize text into 2-3 concise bullet points",
        "When you need to condense long text",
        None,
        1,
        estimated_tokens(body),
    )

    assert registry.scan() == [metadata]
    assert registry.load("summarize") == Skill(metadata, body, ())
    assert registry.problems == ()


def test_given_flat_files_and_folders_when_scanned_then_they_stand_side_by_side_by_name(folder: Path) -> None:
    put(folder, "z.md", GOOD.format(name="apple"))
    put(folder, "pear/SKILL.md", GOOD.format(name="pear"))
    put(folder, "pear/references/long.md", "# Long")
    put(folder, "pear/scripts/run.py", "print()")
    put(folder, "pear/.hidden", "x")
    put(folder, "notes/readme.txt", "no skill")
    put(folder, ".trash/SKILL.md", GOOD.format(name="trash"))
    registry = SkillRegistry(folder)

    assert names(registry) == ["apple", "pear"]
    pear = registry.load("pear")
    assert pear.files == ("references/long.md", "scripts/run.py")
    assert pear.text == (
        "Do pear.\n\n[Files of this skill, to be read by these paths:]\n- references/long.md\n- scripts/run.py"
    )
    assert registry.read("pear", "references/long.md") == "# Long"
    assert registry.problems == ()


def test_given_a_folder_that_is_not_there_when_scanned_then_it_is_empty(tmp_path: Path) -> None:
    registry = SkillRegistry(tmp_path / "nowhere")

    assert registry.scan() == []
    assert registry.catalogue(1000) == ""


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        ("allowed-tools: Bash(git:*) Read", ("Bash(git:*)", "Read")),
        ("allowed_tools: read_file, web.*", ("read_file", "web.*")),
        ("allowed-tools:\n  - Bash(jq:*)\n  - Read\n  - Read", ("Bash(jq:*)", "Read")),
        ("allowed_tools: []", ()),
        ("allowed_tools:", ()),
        ("license: MIT", None),
    ],
)
def test_given_allowed_tools_in_either_spelling_when_scanned_then_they_are_names(
    folder: Path, tools: str, expected: tuple[str, ...] | None
) -> None:
    put(folder, "a.md", f"---\nname: a\ndescription: d\n{tools}\n---\nx")

    assert [skill.allowed_tools for skill in SkillRegistry(folder).scan()] == [expected]


@pytest.mark.parametrize(
    ("head", "description"),
    [
        ("name: axes\ndescription: Two axes: speed and size", "Two axes: speed and size"),
        ("name: axes\ndescription: it's: 'odd'", "it's: 'odd'"),
        ("name: axes\ndescription: on", "on"),
        ("name: axes\ndescription: >\n  folded\n  text", "folded text"),
        ("name: axes\ndescription: a # comment", "a"),
        ("name: axes\ndescription: say \\x1b[31m not", "say \\x1b[31m not"),
        ('name: axes\ndescription: "a\\x1b[31mb\\u202ec\\nd"', "a[31mbc d"),
    ],
)
def test_given_text_as_people_write_it_when_scanned_then_the_whole_description_is_offered(
    folder: Path, head: str, description: str
) -> None:
    put(folder, "a.md", f"---\n{head}\n---\nBody\n")

    assert [skill.description for skill in SkillRegistry(folder).scan()] == [description]


def test_given_a_file_saved_on_windows_when_loaded_then_marks_and_blanks_are_gone(folder: Path) -> None:
    put(
        folder,
        "win.md",
        b"\xef\xbb\xbf---  \r\nname: win\r\ndescription: made on Windows\r\n--- \r\nStep 1\r\nStep 2\r\n",
    )

    skill = SkillRegistry(folder).load("win")

    assert (skill.metadata.description, skill.body) == ("made on Windows", "Step 1\nStep 2")


BROKEN: list[tuple[str | bytes, int, str]] = [
    (
        "---\nname: open\ndescription: d\n\nText\ndanger: yes\n",
        1,
        "has front matter that is never closed by a line ---",
    ),
    ("", 1, "begins with no front matter: its first line must be ---"),
    ("# Just text\n", 1, "begins with no front matter: its first line must be ---"),
    (b"\xff\xfe\x00", 1, "is not UTF-8 text"),
    (b"---\nname: a\ndescription: \xe9\n---\n", 3, "is not UTF-8 text"),
    ("---\nname: a\n---\nx", 1, "has no description"),
    ("---\nname: a\u2028b\x85c\ndescription: b\nname: c\n---\nx", 4, "has 'name' twice"),
    ("---\ndescription: a\n---\nx", 1, "has no name"),
    ("---\ndescription: a\nname:\n---\nx", 3, "has no name"),
    ("---\nname: a\ndescription: [b]\n---\nx", 3, "has a description that is no text"),
    ("---\nname: a\ndescription: b\nname: c\n---\nx", 4, "has 'name' twice"),
    ("---\n- a\n- b\n---\nx", 2, "has front matter that is no mapping of names to values"),
    ("---\nname: a\ndescription: b\nx: &x 1\ny: *x\n---\nx", 5, "uses a YAML alias, which front matter may not"),
    (
        f"---\nname: a\ndescription: b\nx: {'[' * 20}{']' * 20}\n---\nx",
        4,
        "nests deeper than 16 or has more than 2000 values",
    ),
    (
        f"---\nname: {'n' * 65}\ndescription: b\n---\nx",
        2,
        "has a name that is longer than 64 characters or not printable",
    ),
    (f"---\nname: a\ndescription: {'b' * 70_000}\n---\nx", 1, "has more than 65536 bytes of front matter"),
    (
        "---\nname: a\ndescription: b\nallowed_tools: {a: b}\n---\nx",
        4,
        "has allowed_tools that are neither a text nor a list",
    ),
    (b"---\nname: a\ndescription: b\n---\n" + b"x" * 2**20, 1, "cannot be read: it has more than 1048576 bytes"),
]


@pytest.mark.parametrize(("content", "line", "message"), BROKEN)
def test_given_one_broken_file_when_scanned_then_one_warning_names_it_and_the_rest_load(
    folder: Path, caplog: pytest.LogCaptureFixture, content: str | bytes, line: int, message: str
) -> None:
    put(folder, "a.md", GOOD.format(name="first"))
    put(folder, "b.md", content)
    put(folder, "c.md", GOOD.format(name="last"))
    registry = SkillRegistry(folder)

    assert names(registry) == ["first", "last"]
    assert names(registry) == ["first", "last"]
    assert registry.problems == (SkillProblem("b.md", line, message),)
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.WARNING, f"skill left out: {folder / 'b.md'}:{line}: {message}")
    ]


def test_given_what_is_no_file_when_scanned_then_each_is_warned_of_and_nothing_hangs(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(folder, "good.md", GOOD.format(name="good"))
    (folder / "folder.md").mkdir()
    (folder / "dangling.md").symlink_to(folder / "gone")
    os.mkfifo(folder / "pipe.md")
    (folder / "device.md").symlink_to("/dev/zero")
    (folder / "out.md").symlink_to(folder.parent / "secret.md")
    (folder / "linked").symlink_to(folder.parent)
    registry = SkillRegistry(folder)

    assert names(registry) == ["good"]
    assert {str(problem) for problem in registry.problems} == {
        "dangling.md:1: cannot be read: there is no such file",
        "device.md:1: cannot be read: it is outside",
        "folder.md:1: cannot be read: it is a directory",
        "out.md:1: cannot be read: it is outside",
        "pipe.md:1: cannot be read: it is a device, a pipe or a socket, not a file",
    }
    assert len(caplog.records) == 5


def test_given_two_skills_of_one_name_when_scanned_then_the_first_stays_and_the_other_is_named(folder: Path) -> None:
    put(folder, "a.md", GOOD.format(name="twin"))
    put(folder, "b/SKILL.md", GOOD.format(name="Twin"))
    registry = SkillRegistry(folder)

    assert names(registry) == ["twin"]
    assert registry.problems == (SkillProblem("b/SKILL.md", 1, "has the name 'Twin', which a.md has already"),)


def test_given_changes_on_the_disk_when_scanned_again_then_only_what_changed_is_read(
    folder: Path, caplog: pytest.LogCaptureFixture, opened: list[str]
) -> None:
    put(folder, "a.md", GOOD.format(name="a"))
    changing = put(folder, "b.md", "broken")
    registry = SkillRegistry(folder)
    assert names(registry) == ["a"]
    opened.clear()

    changing.write_text(GOOD.format(name="b, now whole"))
    put(folder, "c/SKILL.md", GOOD.format(name="c"))
    assert names(registry) == ["a", "b, now whole", "c"]
    assert opened == ["b.md", "SKILL.md"]
    changing.unlink()
    assert names(registry) == ["a", "c"]
    assert opened == ["b.md", "SKILL.md"]
    assert (registry.problems, len(caplog.records)) == ((), 1)


NAMES = [
    "../secret",
    "/etc/passwd",
    "..",
    "",
    "a/../../b",
    "..\\secret",
    "x\0",
    "~/x",
    "secret",
    "secret.md",
    "x" * 5_000,
]


@pytest.mark.parametrize("name", NAMES)
def test_given_a_name_that_leads_elsewhere_when_loaded_then_the_known_ones_are_listed_and_nothing_is_opened(
    folder: Path, opened: list[str], name: str
) -> None:
    put(folder, "good.md", GOOD.format(name="good"))
    registry = SkillRegistry(folder)
    registry.scan()
    opened.clear()

    with pytest.raises(ToolError) as refused:
        registry.load(name)

    assert refused.value.hint == "known skills: good"
    assert len(str(refused.value)) < 300
    assert opened == []


PATHS = [
    "../secret.md", "../../secret.md", "/etc/passwd", "..", ".", "", "/", "a/../../../secret.md", "..\\secret.md",
    "references\\..\\..\\x", "x\0", "~/x", "~", "link/secret.md", "file_link", "C:\\x", "C:x", "//server/share", "con",
    "NUL.txt", "references/aux", "refs.", "a" * 5_000, "/".join("a" * 3_000), "pipe", "zero", "references", "\ud800",
    "..\u2215secret.md", "\uff0e\uff0e/secret.md", "SKILL.md/../../../secret.md", "././../../secret.md",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_given_a_path_that_leads_elsewhere_when_read_then_it_is_refused(folder: Path, path: str) -> None:
    put(folder, "good/SKILL.md", GOOD.format(name="good"))
    put(folder, "good/references/in.md", "inside")
    (folder / "good/link").symlink_to(folder.parent)
    (folder / "good/file_link").symlink_to(folder.parent / "secret.md")
    (folder / "good/zero").symlink_to("/dev/zero")
    os.mkfifo(folder / "good/pipe")
    registry = SkillRegistry(folder)
    assert registry.read("good", "references/in.md") == "inside"

    with pytest.raises(ToolError) as refused:
        registry.read("good", path)

    assert len(str(refused.value)) < 400
    assert "secret: does" not in str(refused.value)


def test_given_bytes_that_are_no_text_when_read_then_it_says_so(folder: Path) -> None:
    put(folder, "good/SKILL.md", GOOD.format(name="good"))
    put(folder, "good/image.png", b"\x89PNG\0\0")
    put(folder, "good/latin.txt", b"caf\xe9")
    registry = SkillRegistry(folder)

    for path, reason in (("image.png", "it is no text"), ("latin.txt", "it is no UTF-8 text")):
        with pytest.raises(ToolError) as refused:
            registry.read("good", path)
        assert str(refused.value) == f"{path!r} of the skill 'good' cannot be read: {reason}"
        assert refused.value.hint == "its files: image.png, latin.txt"


def test_given_a_budget_when_the_catalogue_is_made_then_it_fits_and_tells_what_is_left_out() -> None:
    skills = [SkillMetadata(f"skill-{at:02}", f"does thing {at} " * 20, "on call", None, 2) for at in range(40, 0, -1)]
    head = "Skills (instructions for a kind of task; read one with the tool `skill` before you begin such a task):"

    sizes = {budget: catalogue(skills, budget) for budget in (100_000, 2_000, 600, 100, 20)}

    for budget, text in sizes.items():
        assert estimated_tokens(text) <= budget
        assert text == catalogue(skills[::-1], budget)
    assert sizes[100_000].split("\n")[:2] == [
        head,
        "- skill-01: " + ("does thing 1 " * 20).strip() + " (use when: on call; effort: 2)",
    ]
    assert sizes[600].count("…") == 0
    assert sizes[600].split("\n") == [head, *(f"- skill-{at:02}" for at in range(1, 41))]
    assert sizes[100].split("\n")[-1] == "(19 more skills are not listed here; they can be read by name too)"
    assert sizes[20] == ""


@settings(max_examples=400, deadline=None)
@given(CHAOS | CHAOS.map(lambda head: b"---\nname: n\ndescription: d\n" + head + b"\n---\nbody"))
def test_given_any_bytes_when_read_as_a_skill_then_it_is_one_or_it_is_told_why(data: bytes) -> None:
    try:
        document = read(data)
        metadata = metadata_of(document)
    except Broken as broken:
        assert 1 <= broken.line <= data.count(b"\n") + data.count(b"\r") + 1  # noqa: PT017  (either outcome is right)
    else:
        assert metadata.name
        assert metadata.description
        assert "\n" not in metadata.name + metadata.description


def test_given_files_that_cannot_be_read_by_their_path_when_a_skill_is_loaded_then_they_are_not_listed(
    folder: Path,
) -> None:
    put(folder, "pear/SKILL.md", GOOD.format(name="pear"))
    for name in ("good.txt", "a:b.txt", "con.txt", "x\n- forged.txt", ".hidden"):
        put(folder, f"pear/{name}", "x")
    os.mkfifo(folder / "pear/pipe")
    (folder / "pear/out.md").symlink_to(folder.parent / "secret.md")
    (folder / "pear/in.txt").symlink_to(folder / "pear/good.txt")
    registry = SkillRegistry(folder)

    files = registry.load("pear").files

    assert files == ("good.txt", "in.txt")
    assert [registry.read("pear", path) for path in files] == ["x", "x"]


def test_given_a_name_with_control_characters_when_left_out_then_the_warning_is_one_plain_line(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open(os.fsencode(folder) + b"/a\n\x1b[31m\xff.md", "w") as file:
        file.write("no skill")

    assert SkillRegistry(folder).scan() == []

    (message,) = [record.getMessage() for record in caplog.records]
    assert message.isprintable()
    assert r"a\n\x1b[31m\udcff.md:1: begins with no front matter" in message


def test_given_brackets_that_are_never_closed_when_read_then_they_are_one_word(folder: Path) -> None:
    # Looked at by the square of its length this takes minutes.
    put(folder, "a.md", f"---\nname: a\ndescription: d\nallowed-tools: y z(b c) {'x(' * 30_000}\n---\n")

    (found,) = SkillRegistry(folder).scan()

    assert found.allowed_tools == ("y", "z(b c)", "x(" * 30_000)


@pytest.mark.parametrize("path", [None, 5, "", "a\0b", b"bytes"])
def test_given_what_is_no_path_when_built_then_the_error_says_so(path: Any) -> None:
    with pytest.raises(ConfigError, match=r"skill_dir=.* is no path"):
        SkillRegistry(path)
