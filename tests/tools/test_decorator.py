"""The three forms of `tool`."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from typing import Any

import pytest
from toolcalls import called, error_of, text_of

from deepstrike.errors import ConfigError
from deepstrike.tools.decorator import tool
from deepstrike.tools.definition import Tool
from deepstrike.wire.message import Err, Ok, ToolSpec

SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "k": {"type": "integer"}},
    "required": ["query"],
}
SCHEMA_TEXT = '{"type":"object","properties":{"query":{"type":"string"},"k":{"type":"integer"}},"required":["query"]}'


def judge(schema: str, document: str) -> list[str]:
    """Stands for the kernel's judge: `query` must be a string and `k` an integer."""
    values: dict[str, object] = json.loads(document)
    wrong = [] if isinstance(values.get("query"), str) else ["/query: is not a string"]
    return wrong + ([] if isinstance(values.get("k", 0), int) else ["/k: is not an integer"])


def test_given_the_bare_form_when_decorated_then_it_is_a_tool_and_still_the_function() -> None:
    @tool
    def add(x: int, y: int) -> int:
        """Add two numbers."""
        return x + y

    assert add(17, 28) == 45
    assert (add.name, add.description, add.effect, add.timeout_ms) == ("add", "Add two numbers.", "once", None)
    assert (vars(add)["__name__"], add.__doc__) == ("add", "Add two numbers.")
    assert str(inspect.signature(add)) == "(x: 'int', y: 'int') -> 'int'"
    assert repr(add).startswith("<Tool add(")


def test_given_the_form_with_options_when_decorated_then_the_options_hold() -> None:
    @tool(name="fs.read file", description="Reads.", timeout_ms=1500, effect="read")
    async def f(path: str) -> str:
        """Not this."""
        return path

    assert f.spec == ToolSpec(
        "fs.read file",
        "Reads.",
        '{"additionalProperties":false,"properties":{"path":{"type":"string"}},"required":["path"],"type":"object"}',
        "read",
    )
    assert f.timeout_ms == 1500


async def test_given_explicit_parameters_when_called_then_they_are_the_schema_and_judge_the_arguments() -> None:
    def my_fn(query: str, k: int = 3) -> str:
        return repr((query, k))

    for given in (SCHEMA, SCHEMA_TEXT):
        search = tool(name="search", description="Search.", parameters=given, validate=judge)(my_fn)

        assert search.spec == ToolSpec("search", "Search.", SCHEMA_TEXT)
        assert text_of(await called(search, '{"query":"x"}')) == "('x', 3)"
        assert search.check('{"query":"x","k":"4"}') == Ok('{"query":"x","k":4}')
        assert search.check('{"query":"x","k":"four"}') == Err("invalid_arguments", "/k: is not an integer")
        assert search.check("") == Err("invalid_arguments", "/query: is not a string")


def test_given_explicit_parameters_when_the_kernel_judges_then_its_words_reach_the_model() -> None:
    pytest.importorskip("deepstrike._kernel", reason="the native module is not built")

    @tool(parameters=SCHEMA)
    def search(query: str, k: int = 3) -> str:
        return query

    checked = search.check('{"query":1}')

    assert isinstance(checked, Err)
    assert (checked.kind, "query" in checked.message) == ("invalid_arguments", True)
    assert search.check('{"query":"x","k":1}') == Ok()


async def test_given_a_schema_with_containers_when_the_model_encodes_them_twice_then_they_are_unpacked() -> None:
    def only_objects(schema: str, document: str) -> list[str]:
        return [] if isinstance(json.loads(document).get("where"), dict) else ["/where: is not an object"]

    @tool(parameters={"properties": {"where": {"type": "object"}}}, validate=only_objects)
    def find(**arguments: object) -> str:
        return repr(arguments)

    assert text_of(await called(find, '{"where":"{\\"a\\":1}"}')) == "{'where': {'a': 1}}"
    assert find.check('{"where":"{a"}') == Err("invalid_arguments", "/where: is not an object")


def refuse(schema: str, document: str) -> list[str]:
    raise ValueError("'sting' is no type")


def break_down(schema: str, document: str) -> list[str]:
    raise KeyError("x")


def count_complaints(schema: str, document: str) -> int:
    return 0


@pytest.mark.parametrize(
    ("validate", "said"),
    [
        (refuse, "parameters= is no valid JSON schema: 'sting' is no type"),
        (break_down, "validate= failed: KeyError: 'x'"),
        (count_complaints, "validate= must return a list of complaints, not 0"),
    ],
)
def test_given_a_judge_that_refuses_or_breaks_when_decorated_then_it_is_an_error_at_once(
    validate: Any, said: str
) -> None:
    for given in (fine, tool(fine)):
        with pytest.raises(ConfigError, match=re.escape(f"tool 'fine': {said}")):
            tool(parameters=WRONG_INSIDE, validate=validate)(given)


def test_given_a_schema_that_is_wrong_inside_when_decorated_then_the_kernels_word_is_the_error() -> None:
    pytest.importorskip("deepstrike._kernel", reason="the native module is not built")

    with pytest.raises(ConfigError, match=r"tool 'fine': parameters= is no valid JSON schema: .*sting"):
        tool(parameters=WRONG_INSIDE)(fine)


WRONG_INSIDE = {"type": "object", "properties": {"x": {"type": "sting"}}}


def fine(x: int = 0) -> int:
    return x


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"effect": "twice"}, "effect='twice': use one of 'once', 'idempotent', 'read'"),
        ({"timeout_ms": 0}, "timeout_ms=0: give whole milliseconds above 0"),
        ({"timeout_ms": 1.5}, "timeout_ms=1.5"),
        ({"timeout_ms": True}, "timeout_ms=True"),
        ({"timeout_ms": 2**53}, "timeout_ms is out of range: give 1 to 2**53 - 1 milliseconds"),
        ({"timeout_ms": 10**5000}, "timeout_ms is out of range"),
        ({"timeout_ms": -(10**5000)}, "timeout_ms is out of range"),
        ({"validate": 5}, "validate=5: give a function of schema and document"),
        ({"name": ""}, "tool name ''"),
        ({"name": "a\nb"}, "printable name"),
        ({"name": "\ud800"}, "printable name"),
        ({"name": 5}, "name=5: give a string"),
        ({"description": 5}, "description=5: give a string"),
        ({"name": "a" * 257}, "at most 256 characters, this one has 257"),
        ({"parameters": 5}, "must be a JSON schema as a dict or as text"),
        ({"parameters": "{"}, "is no JSON schema"),
        ({"parameters": "[]"}, 'must be a schema with "type": "object"'),
        ({"parameters": {"type": "array"}}, 'must be a schema with "type": "object"'),
        ({"parameters": {"properties": []}}, '"properties" must be an object'),
        ({"parameters": {"type": "object", "x": {1, 2}}}, "is no JSON schema"),
        ({"parameters": {"properties": {"y": {}}}}, "offers 'y', which the function does not take"),
    ],
)
def test_given_bad_options_when_decorated_then_the_error_says_what_to_give(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        tool(**options)(fine)

    assert said in str(raised.value)


def of_class(owner: type) -> str:
    return owner.__name__


def test_given_what_is_no_function_when_decorated_then_the_error_says_so() -> None:
    class Thing: ...

    cases: list[tuple[Any, str]] = [
        ("search", r"options go by name, as in @tool\(name='search'\)"),
        (5, "not of 5"),
        (Thing, "Thing is a class"),
        (classmethod(of_class), "put @classmethod above @tool"),
        (staticmethod(fine), "put @staticmethod above @tool"),
        (lambda: 1, "a lambda has no name"),
    ]
    for given, said in cases:
        with pytest.raises(ConfigError, match=said):
            tool(given)


def test_given_a_function_that_needs_more_than_the_schema_when_decorated_then_it_is_refused() -> None:
    def f(query: str, other: int) -> str:
        return query

    with pytest.raises(ConfigError, match="the function needs 'other', which parameters= does not offer"):
        tool(parameters={"type": "object", "properties": {"query": {}}})(f)


def test_given_a_tool_when_made_a_tool_again_then_only_the_options_change() -> None:
    @tool(effect="read", timeout_ms=10)
    def f(x: int) -> int:
        """F."""
        return x

    renamed = tool(name="g")(f)

    assert tool(f) is f
    assert (renamed.name, renamed.description, renamed.effect, renamed.timeout_ms) == ("g", "F.", "read", 10)
    assert renamed(3) == 3


def test_given_a_tool_when_a_field_is_set_then_it_is_frozen() -> None:
    made = tool(fine)

    with pytest.raises(dataclasses.FrozenInstanceError):
        made.name = "other"  # type: ignore[misc]
    assert isinstance(made, Tool)
    assert made == tool(fine)


async def test_given_a_tool_that_a_checker_sees_when_called_then_types_are_those_of_the_function() -> None:
    @tool
    async def double(x: int) -> int:
        return 2 * x

    result: int = await double(2)

    assert result == 4
    assert error_of(await called(tool(name="b")(broken))) == ("exception", "ZeroDivisionError: division by zero")


def broken() -> float:
    return 1 / 0


@pytest.mark.parametrize(
    ("given", "checked"),
    [
        ('{"query":"x","k":1.0}', Ok('{"query":"x","k":1}')),
        ('{"query":"x","k":1e3}', Ok('{"query":"x","k":1000}')),
        ('{"query":"x","k":1}', Ok()),
    ],
)
def test_given_a_whole_number_with_a_point_when_an_integer_is_due_then_it_is_one(given: str, checked: object) -> None:
    pytest.importorskip("deepstrike._kernel", reason="the native module is not built")

    search = tool(name="search", description="Search.", parameters=SCHEMA)(lambda query, k=3: (query, k))

    assert search.check(given) == checked
