"""The words of `allowed_tools` as globs."""

from __future__ import annotations

import pytest

from deepstrike.skills.allowed import globs, unknown


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (None, ()),
        ((), ()),
        (("search", "git_*"), ("search", "git_*")),
        (("Bash(git:*)", "Bash(jq *)", "Read"), ("Bash", "run_command", "Read", "read_file")),
        (("Bash(git", "(x)", " "), ("Bash", "run_command")),
        (("mcp__db__query", "t[12]"), ("mcp__db__query", "t[12]")),
    ],
)
def test_given_words_when_read_then_each_is_a_glob_on_names(
    words: tuple[str, ...] | None, expected: tuple[str, ...]
) -> None:
    assert globs(words) == expected


def test_given_the_tools_of_a_run_when_compared_then_the_words_that_fit_none_are_told_as_written() -> None:
    tools = ["read_file", "git_log"]
    assert unknown(("Read", "git_*", "Bash(git:*)", "search"), tools) == ("Bash(git:*)", "search")
    assert unknown(None, tools) == ()
