"""The error for a tool that is not there names first the one that was meant."""

from __future__ import annotations

import difflib

import pytest

from deepstrike.execution.unknown import nearest_first, unknown_tool

THERE = ["alpha", "get", "read_file", "search", "zeta"]
MANY = [f"tool_{number}_of_{word}" for number in range(2_000) for word in ("mail", "files")]


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("SEARCH", "search"),
        ("Search", "search"),
        ("functions.search", "search"),
        ("default_api.get", "get"),
        ("default_api:GET", "get"),
        ("tools/get", "get"),
        ("mcp__web__get", "get"),
        ("read-file", "read_file"),
        ("ReadFile", "read_file"),
        ("readFile", "read_file"),
        ("Read File", "read_file"),
        ("functions.readFile", "read_file"),
        ("serch", "search"),
        ("functions.serch", "search"),
    ],
)
@pytest.mark.parametrize("others", [[], MANY], ids=["few", "many"])
def test_given_a_name_that_is_almost_right_when_unknown_then_the_one_that_was_meant_stands_first(
    asked: str, meant: str, others: list[str]
) -> None:
    assert nearest_first(asked, [*others, *THERE])[0] == meant
    assert f"; available: {meant}, " in unknown_tool(asked, [*others, *THERE])


@pytest.mark.parametrize(("asked", "meant"), [("file_read", "read_file"), ("get.", "get"), ("zeat", "zeta")])
def test_given_few_tools_when_a_name_is_unknown_then_all_are_compared(asked: str, meant: str) -> None:
    assert nearest_first(asked, THERE)[0] == meant


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("tool_1234_fo_mail", "tool_1234_of_mail"),
        ("tol_1234_of_mail", "tool_1234_of_mail"),
        ("tool_1234_of_mial", "tool_1234_of_mail"),
        ("x_1234_of_files", "tool_1234_of_files"),
        ("TOOL-1234-OF-FILES", "tool_1234_of_files"),
        ("api.tool_1999_of_files", "tool_1999_of_files"),
    ],
)
def test_given_thousands_of_like_names_when_one_is_mistyped_then_it_is_found(asked: str, meant: str) -> None:
    assert nearest_first(asked, MANY)[0] == meant


def test_given_a_name_without_its_prefix_when_unknown_then_those_behind_a_prefix_stand_first() -> None:
    there = ["a_fetch", "fetching", "mail.fetch", "web__fetch"]

    assert nearest_first("fetch", there)[:2] == ["mail.fetch", "web__fetch"]
    assert nearest_first("Net:Fetch", there)[:2] == ["mail.fetch", "web__fetch"]


def test_given_several_that_differ_in_case_only_when_unknown_then_they_stand_first() -> None:
    assert nearest_first("get", ["GET", "a", "Get", "gets"]) == ["GET", "Get", "a", "gets"]


@pytest.mark.parametrize(
    "asked", ["", "_", "__", "functions.", "\n", "a\nb", "\ud800", "x" * 10_000_000, "." * 10_000, "😀"]
)
def test_given_any_name_when_unknown_then_all_that_there_is_is_listed_once(asked: str) -> None:
    there = ["\ud800a", "line\nbreak", "é", "_", *THERE]

    assert sorted(nearest_first(asked, there)) == sorted(there)
    assert len(unknown_tool(asked, there)) < 2_000
    assert unknown_tool(asked, MANY).endswith(f" and {len(MANY) - 50} more")


def test_given_thousands_of_like_names_when_one_is_unknown_then_few_are_compared_letter_by_letter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[str] = []

    class Counting(difflib.SequenceMatcher[str]):
        def set_seq1(self, a: object) -> None:
            compared.append(str(a))
            super().set_seq1(str(a))

    monkeypatch.setattr(difflib, "SequenceMatcher", Counting)

    assert nearest_first("tool_77_of_files_and_more", MANY)[0] == "tool_77_of_files"
    assert 0 < len(compared) <= 33  # one is the empty text that a matcher begins with
