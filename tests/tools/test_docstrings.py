"""What docstrings say of parameters."""

from __future__ import annotations

from typing import Annotated

from toolcalls import schema_of

from deepstrike.tools.decorator import tool
from deepstrike.tools.docstrings import Described, describe

NAMES = ("query", "k")


def test_given_google_style_with_continuations_and_colons_when_read_then_nothing_is_lost_or_made_up() -> None:
    def search(query: str, k: int) -> str:
        """Search the docs.

        Args:
            query: What to look for,
                note: case matters
            k: How many

        Returns:
            text
        """
        return query * k

    made = tool(search)

    assert made.description == "Search the docs."
    assert schema_of(made)["properties"] == {
        "query": {"description": "What to look for, note: case matters", "type": "string"},
        "k": {"description": "How many", "type": "integer"},
    }


def test_given_google_style_with_types_and_other_sections_when_read_then_the_prose_stays() -> None:
    text = """Search.

    It takes long.

    Args:
        query (str, optional): What.
        **more: ignored
            and this too
        k (int): How many.
    Raises:
        ValueError: never

    Example:
        search("x", k=1)
    """

    assert describe(text, NAMES) == Described(
        'Search.\n\nIt takes long.\n\nExample:\n    search("x", k=1)', {"query": "What.", "k": "How many."}
    )


def test_given_numpy_style_when_read_then_each_parameter_has_its_text() -> None:
    text = """Search.

    Parameters
    ----------
    query : str
        What to look for:
        anything.
    k : int, optional
        How many.

    Returns
    -------
    str
        The text.

    Notes
    -----
    Be quick.
    """

    assert describe(text, NAMES) == Described(
        "Search.\n\nNotes\n-----\nBe quick.", {"query": "What to look for: anything.", "k": "How many."}
    )


def test_given_sphinx_style_when_read_then_each_parameter_has_its_text() -> None:
    text = """Search.

    :param str query: What to
        look for
    :param k: How many
    :type k: int
    :returns: text
    :raises ValueError: never

    And more.
    """

    assert describe(text, NAMES) == Described("Search.\n\nAnd more.", {"query": "What to look for", "k": "How many"})


def test_given_no_docstring_or_an_odd_one_when_read_then_it_is_only_text() -> None:
    assert describe(None, NAMES) == Described("", {})
    assert describe("", NAMES) == Described("", {})
    assert describe("Args:", NAMES) == Described("", {})
    assert describe("Note: k: is a letter\nquery: too", NAMES) == Described("Note: k: is a letter\nquery: too", {})
    assert describe("---\n:::\n\n    x", NAMES) == Described("---\n:::\n\n    x", {})


def test_given_a_field_description_when_the_docstring_says_another_then_the_field_wins() -> None:
    def f(x: Annotated[int, "from the annotation"]) -> None:
        """F.

        Args:
            x: from the docstring
        """

    assert schema_of(f)["properties"] == {"x": {"description": "from the annotation", "type": "integer"}}
