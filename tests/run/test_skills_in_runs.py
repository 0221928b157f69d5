"""Skills in runs: offered in slot 2, loaded on demand, narrowing what may be called."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import pytest
from doubles import Script, call, calls, copied, events_of, only, result_texts, say

from deepstrike import (
    Approve,
    ConfigError,
    DeepStrikeError,
    Governance,
    InMemorySessionLog,
    LocalExecutionPlane,
    RuntimeOptions,
    RuntimeRunner,
    SessionLog,
    StreamEvent,
    ToolDeniedEvent,
    ToolResultEvent,
)
from deepstrike.host import library
from deepstrike.providers.base import ToolCall

HEAD = "Skills (instructions for a kind of task; read one with the tool `skill` before you begin such a task):\n"


def look() -> str:
    """Look."""
    return "seen"


def write() -> str:
    """Write."""
    return "written"


def skill_of(name: str, *, file: str | None = None, call_id: str = "s") -> ToolCall:
    """A call of the meta-tool."""
    return call("skill", json.dumps({"name": name} | ({} if file is None else {"file": file})), call_id)


def put(folder: Path, name: str, fields: str = "", body: str = "Do it.") -> None:
    """A skill folder of the open format."""
    (folder / name).mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: does {name}\n{fields}---\n{body}\n")


def runner(
    model: Script,
    folder: Path,
    *,
    log: SessionLog | None = None,
    governance: Governance | None = None,
    **options: object,
) -> RuntimeRunner:
    """A runner with two tools and the skills of a folder."""
    return RuntimeRunner(
        RuntimeOptions(
            provider=model,
            execution_plane=LocalExecutionPlane().register(look, write),
            skill_dir=folder,
            session_log=log,
            governance=governance,
            **options,  # type: ignore[arg-type]  # of the options' own types
        )
    )


async def test_given_skills_when_a_run_begins_then_slot_2_offers_them_behind_the_initial_memory(tmp_path: Path) -> None:
    put(tmp_path, "summarize", "when_to_use: when a text is long\neffort: 1\n")
    put(tmp_path, "axes")
    model = Script(say("ok"))
    made = runner(model, tmp_path, initial_memory=["User prefers chartreuse."])

    await made.run("go", session_id="s")

    offered = "- axes: does axes\n- summarize: does summarize (use when: when a text is long; effort: 1)"
    knowledge = f"<memory>\nUser prefers chartreuse.\n</memory>\n\n{HEAD}{offered}"
    assert model.requests[0].system_knowledge == knowledge
    assert [tool.name for tool in model.requests[0].tools] == ["look", "recall", "skill", "update_plan", "write"]
    shown = await made.context("s")
    assert (shown.system_knowledge.text, shown.system_knowledge.tokens > 0) == (knowledge, True)


async def test_given_no_skills_when_a_run_begins_then_nothing_is_offered(tmp_path: Path) -> None:
    model = Script(calls(skill_of("any")), say("ok"))

    await runner(model, tmp_path / "missing").run("go")

    assert model.requests[0].system_knowledge == ""
    assert [tool.name for tool in model.requests[0].tools] == ["look", "recall", "update_plan", "write"]
    assert result_texts(model.turns[1])[0].startswith("there is no tool")


async def test_given_files_that_change_when_the_next_run_begins_then_it_offers_what_is_there(tmp_path: Path) -> None:
    model = Script(calls(skill_of("late")), say("ok"))
    made = runner(model, tmp_path)
    put(tmp_path, "early")

    events: list[StreamEvent] = []
    async for event in made.run_streaming("go", session_id="s"):
        if not events:
            put(tmp_path, "late")
        events.append(event)
    await made.run("again", session_id="s")

    assert "late" not in model.requests[0].system_knowledge
    assert [event.is_error for event in only(ToolResultEvent, events)] == [True]
    assert model.requests[-1].system_knowledge == f"{HEAD}- early: does early\n- late: does late"


async def test_given_a_small_window_when_a_run_begins_then_the_catalogue_keeps_to_a_twentieth_of_it(
    tmp_path: Path,
) -> None:
    for number in range(60):
        put(tmp_path, f"skill-{number:02}", f"when_to_use: {'often ' * 40}\n")
    model = Script(say("ok"))
    made = runner(model, tmp_path, max_tokens=8_000)

    await made.run("go", session_id="s")

    slot = (await made.context("s")).system_knowledge
    assert 300 < slot.tokens <= 400
    assert slot.text.startswith(HEAD + "- skill-00")


async def test_given_a_skill_when_loaded_then_its_body_its_files_and_its_tools_are_the_result(tmp_path: Path) -> None:
    put(tmp_path, "git", "allowed-tools: look Bash(git:*)\n", "Use git.")
    (tmp_path / "git" / "references").mkdir()
    (tmp_path / "git" / "references" / "a.md").write_text("A file.\n")
    load, read = calls(skill_of("git")), calls(skill_of("git", file="references/a.md", call_id="t"))
    model = Script(load, read, say("ok"))

    await runner(model, tmp_path).run("go")

    files = "[Files of this skill, to be read by these paths:]\n- references/a.md"
    tools = "[Until another skill is loaded only these tools may be used: look, Bash, run_command]"
    assert result_texts(model.turns[2]) == [f"Use git.\n\n{files}\n\n{tools}", "A file.\n"]


async def test_given_an_unknown_skill_when_asked_for_then_the_error_names_the_nearest_and_the_known(
    tmp_path: Path,
) -> None:
    put(tmp_path, "summarize")
    put(tmp_path, "translate")
    model = Script(calls(skill_of("sumarise")), say("ok"))

    result = await runner(model, tmp_path).run("go")

    text = "there is no skill 'sumarise'\nHint: did you mean summarize? known skills: summarize, translate"
    assert (result.status, result_texts(model.turns[1])) == ("completed", [text])


NAMES = [
    "../secret",
    "/etc/passwd",
    "..",
    "",
    "a/../../b",
    "..\\secret",
    "x\0",
    "~/x",
    "x" * 5_000,
    "Ordinary",
    "Ordinary/",
]


@pytest.mark.parametrize("name", NAMES)
async def test_given_a_name_that_leads_out_when_asked_for_then_nothing_outside_is_opened(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret.md").write_text("---\nname: secret\ndescription: d\n---\nsecret\n")
    put(tmp_path / "skills", "ordinary")
    opened: list[str] = []
    real = os.open

    def noting(path: str, flags: int, *rest: int, **more: int) -> int:
        opened.append(os.fsdecode(path))
        return real(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", noting)
    model = Script(calls(skill_of(name)), say("ok"))

    events = await events_of(runner(model, tmp_path / "skills").run_streaming("go"))

    (told,) = only(ToolResultEvent, events)
    assert (told.is_error, told.content.endswith("known skills: ordinary")) == (True, True)
    assert not [path for path in opened if "secret" in path or path.startswith("/etc/")]


@pytest.mark.parametrize("file", ["../../secret.md", "/etc/passwd", "..", "link.md", "x\0", "~/x", "missing.md"])
async def test_given_a_file_that_is_not_of_the_folder_when_asked_for_then_it_is_an_error(
    file: str, tmp_path: Path
) -> None:
    (tmp_path / "secret.md").write_text("secret")
    put(tmp_path / "skills", "one")
    (tmp_path / "skills" / "one" / "link.md").symlink_to(tmp_path / "secret.md")
    model = Script(calls(skill_of("one", file=file)), say("ok"))

    events = await events_of(runner(model, tmp_path / "skills").run_streaming("go"))

    (told,) = only(ToolResultEvent, events)
    assert (told.is_error, "secret\n" in str(told.content)) == (True, False)


async def test_given_broken_files_when_runs_begin_then_each_is_told_once_with_its_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(tmp_path, "good")
    (tmp_path / "open.md").write_text("---\nname: open\ndescription: d\n\nText\ndanger: yes\n")
    (tmp_path / "bytes.md").write_bytes(b"\xff\xfe\x00")
    model = Script(say("ok"))
    made = runner(model, tmp_path)

    with caplog.at_level(logging.WARNING, "deepstrike"):
        await made.run("go")
        await made.run("again")

    assert [record.getMessage().split(":")[1:3] for record in caplog.records] == [
        [f" {tmp_path}/bytes.md", "1"],
        [f" {tmp_path}/open.md", "1"],
    ]
    assert model.requests[1].system_knowledge == f"{HEAD}- good: does good"


async def test_given_a_loaded_skill_when_another_tool_is_called_then_it_is_denied_until_the_next_goal(
    tmp_path: Path,
) -> None:
    put(tmp_path, "reader", "allowed_tools: [look]\n")
    model = Script(
        calls(skill_of("reader")), calls(call("write"), call("look", call_id="l")), say("ok"), calls(call("write"))
    )
    log = InMemorySessionLog()
    made = runner(model, tmp_path, log=log, max_turns=3)

    events = await events_of(made.run_streaming("go", session_id="s"))
    await made.run("again", session_id="s")

    reason = 'the skill "reader" is active and allows only look, not "write"'
    assert [(event.name, event.stage, event.reason) for event in only(ToolDeniedEvent, events)] == [
        ("write", "permission", reason)
    ]
    assert result_texts(model.turns[2])[1:] == [f"denied by permission: {reason}", "seen"]
    assert result_texts(model.turns[-1])[-1] == "written"


async def test_given_a_loaded_skill_when_another_process_resumes_then_it_still_narrows(tmp_path: Path) -> None:
    put(tmp_path, "reader", "allowed_tools: look\n")
    log = InMemorySessionLog()
    await runner(Script(calls(skill_of("reader")), calls(call("look"))), tmp_path, log=log, max_turns=2).run(
        "go", session_id="s"
    )
    model = Script(calls(call("write")), say("ok"))

    await runner(model, tmp_path, log=await copied(log, "s"), max_turns=5).resume("s")

    assert result_texts(model.turns[1])[-1].startswith('denied by permission: the skill "reader" is active')


async def test_given_governance_when_a_skill_is_active_then_deny_is_the_default_only_for_what_is_not_the_runs_own(
    tmp_path: Path,
) -> None:
    put(tmp_path, "reader", "allowed_tools: '*'\n")
    model = Script(calls(skill_of("reader")), calls(call("look")), say("ok"))

    events = await events_of(runner(model, tmp_path, governance=Governance("deny")).run_streaming("go"))

    assert [event.reason for event in only(ToolDeniedEvent, events)] == ['the policy denies "look"']


async def test_given_a_word_that_fits_no_tool_when_runs_begin_then_it_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(tmp_path, "reader", "allowed_tools: look WebFetch\n")
    made = runner(Script(say("ok")), tmp_path)

    with caplog.at_level(logging.WARNING, "deepstrike"):
        await made.run("go")
        await made.run("again")

    told = "skill reader: its allowed_tools name WebFetch, which fits no tool: it allows nothing"
    assert [record.getMessage() for record in caplog.records] == [told]


async def test_given_an_approval_with_other_arguments_when_a_skill_is_asked_about_then_that_one_is_loaded(
    tmp_path: Path,
) -> None:
    put(tmp_path, "one", body="First.")
    put(tmp_path, "two", body="Second.")
    governance = Governance().add_permission_rule("skill", "ask")
    log = InMemorySessionLog()
    parked = await runner(Script(calls(skill_of("one"))), tmp_path, log=log, governance=governance).run(
        "go", session_id="s"
    )
    model = Script(say("ok"))
    answers = {parked.pending[0].request_id: Approve({"name": "two"})}

    await runner(model, tmp_path, log=log, governance=governance).resume("s", answers=answers)

    assert result_texts(model.turns[0]) == ["Second."]


async def test_given_a_folder_that_does_not_answer_when_a_run_begins_then_it_is_told_and_nothing_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "one")
    made = runner(Script(say("ok")), tmp_path)
    monkeypatch.setattr(library, "FILES_SECONDS", 0.0)

    with pytest.raises(DeepStrikeError, match="could not be read within 0 s") as failed:
        await made.run("go")
    assert failed.value.code == "skill_dir"


@pytest.mark.parametrize("wrong", [3, ["./skills"], b"skills"])
def test_given_no_path_when_options_are_built_then_it_is_a_config_error(wrong: object) -> None:
    with pytest.raises(ConfigError, match="skill_dir must be the path of a folder"):
        RuntimeOptions(provider=Script(), skill_dir=wrong)  # type: ignore[arg-type]  # it is what is tested
