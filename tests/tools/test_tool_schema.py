"""Schemas from signatures."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import dataclass
from enum import Enum
from functools import partial, wraps
from importlib import util
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Optional, Union

import pytest
from pydantic import BaseModel, Field
from toolcalls import CONTEXT, called, error_of, schema_of, text_of
from typing_extensions import TypedDict

from deepstrike.errors import ConfigError
from deepstrike.tools.context import ToolContext
from deepstrike.tools.decorator import tool
from deepstrike.wire.message import Err, Ok

if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Decimal
    from pathlib import Path
    from types import ModuleType


class Color(Enum):
    RED = "r"
    GREEN = "g"


class Item(BaseModel):
    qty: int


@dataclass
class Point:
    x: int
    y: int = 0


class Address(TypedDict, total=False):
    city: str


class Size(NamedTuple):
    width: int
    height: int


def test_given_an_optional_parameter_with_a_default_when_the_schema_is_made_then_only_the_other_is_required() -> None:
    def modern(city: str, unit: str | None = None) -> str:
        return city

    def optional(city: str, unit: Optional[str] = None) -> str:  # noqa: UP045
        return city

    def union(city: str, unit: Union[None, str] = None) -> str:  # noqa: UP007, RUF036
        return city

    def old(city: str, unit: str = None) -> str:  # type: ignore[assignment]  # noqa: RUF013
        return city

    for function in (modern, optional, old):
        assert schema_of(function) == {
            "additionalProperties": False,
            "properties": {"city": {"type": "string"}, "unit": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
            "required": ["city"],
            "type": "object",
        }
    assert schema_of(union)["required"] == ["city"]


async def test_given_an_optional_parameter_when_it_is_left_out_then_the_function_gets_its_own_default() -> None:
    def f(city: str, unit: str | None = None) -> str:
        return repr((city, unit))

    assert text_of(await called(f, '{"city":"x"}')) == "('x', None)"
    assert text_of(await called(f, '{"city":"x","unit":null}')) == "('x', None)"


def test_given_optional_without_default_when_the_schema_is_made_then_it_is_required_and_may_be_null() -> None:
    def g(x: int | None) -> str:
        return repr(x)

    assert schema_of(g)["required"] == ["x"]
    assert tool(g).check('{"x":null}') == Ok()


async def test_given_literal_and_enum_when_called_then_choices_are_shown_and_the_member_arrives() -> None:
    def f(mode: Literal["fast", "slow"], color: Color) -> str:
        return f"{mode} {color!r}"

    assert schema_of(f)["properties"] == {
        "mode": {"enum": ["fast", "slow"], "type": "string"},
        "color": {"enum": ["r", "g"], "type": "string"},
    }
    assert text_of(await called(f, '{"mode":"fast","color":"r"}')) == "fast <Color.RED: 'r'>"
    assert tool(f).check('{"mode":"fast","color":"blue"}') == Err(
        "invalid_arguments", "color: should be 'r' or 'g', not 'blue'"
    )


MODULE = """
from dataclasses import dataclass
from typing import Literal, Optional
@dataclass
class Place:
    name: str
def f(a: int, b: Optional[int], c: Literal["x", "y"], d: list[str], e: Place) -> str:
    return repr((a, b, c, d, e))
"""


def loaded(folder: Path, name: str, source: str) -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_given_postponed_annotations_when_the_schema_is_made_then_it_is_the_same_as_without(tmp_path: Path) -> None:
    now = loaded(tmp_path, "annotated_now", MODULE)
    later = loaded(tmp_path, "annotated_later", "from __future__ import annotations\n" + MODULE)

    assert tool(later.f).spec == tool(now.f).spec


def test_given_a_class_made_inside_a_function_when_annotations_are_postponed_then_it_is_found() -> None:
    @dataclass
    class Local:
        n: int

    @tool
    def direct(p: Local) -> int:
        return p.n

    @tool(name="with_options")
    def with_options(p: Local) -> int:
        return p.n

    assert schema_of(direct)["properties"] == schema_of(with_options)["properties"]
    assert direct.check('{"p":{"n":1}}') == Ok()


def test_given_a_name_for_type_checkers_only_when_the_schema_is_asked_for_then_the_error_names_it() -> None:
    @tool
    def pay(amount: Decimal) -> str:
        return str(amount)

    with pytest.raises(
        ConfigError, match=r"tool 'pay': the annotation of 'amount' \(Decimal\) uses 'Decimal'.*TYPE_CHECKING"
    ):
        _ = pay.spec


async def test_given_pydantic_dataclass_typeddict_and_namedtuple_when_called_then_instances_arrive() -> None:
    def f(p: Item, more: list[Item], at: Point, to: Address, size: Size) -> str:
        return repr((p, more, at, to, size))

    text = '{"p":{"qty":2},"more":[{"qty":3}],"at":{"x":1},"to":{"city":"Rome"},"size":[1,2]}'

    assert text_of(await called(f, text)) == repr((Item(qty=2), [Item(qty=3)], Point(1), {"city": "Rome"}, Size(1, 2)))
    bad = text.replace('"qty":3', '"qty":"many"')
    assert tool(f).check(bad) == Err(
        "invalid_arguments",
        "more[0].qty: should be a valid integer, unable to parse string as an integer, not 'many'",
    )


def test_given_a_definition_used_once_when_the_schema_is_made_then_it_stands_in_place_else_in_defs() -> None:
    def once(p: Item) -> None: ...

    def twice(p: Item, q: Item) -> None: ...

    item = {"properties": {"qty": {"type": "integer"}}, "required": ["qty"], "type": "object"}
    assert schema_of(once)["properties"] == {"p": item}
    assert schema_of(twice)["$defs"] == {"Item": item}
    assert schema_of(twice)["properties"] == {"p": {"$ref": "#/$defs/Item"}, "q": {"$ref": "#/$defs/Item"}}


class Node(BaseModel):
    title: str = "none"
    below: list[Node] = []


def test_given_a_recursive_model_with_a_field_named_title_when_the_schema_is_made_then_both_stay() -> None:
    def f(node: Node) -> None: ...

    schema = schema_of(f)

    assert schema["properties"] == {"node": {"$ref": "#/$defs/Node"}}
    assert schema["$defs"] == {
        "Node": {
            "properties": {
                "title": {"default": "none", "type": "string"},
                "below": {"default": [], "items": {"$ref": "#/$defs/Node"}, "type": "array"},
            },
            "type": "object",
        }
    }


async def test_given_stars_when_the_schema_is_made_then_they_are_left_out_and_the_call_works() -> None:
    def f(x: int, *args: str, **kwargs: str) -> str:
        return repr((x, args, kwargs))

    def g(kwargs: str) -> str:
        return kwargs

    assert schema_of(f)["properties"] == {"x": {"type": "integer"}}
    assert schema_of(f)["required"] == ["x"]
    assert text_of(await called(f, '{"x":1}')) == "(1, (), {})"
    assert schema_of(g)["properties"] == {"kwargs": {"type": "string"}}


async def test_given_bare_containers_when_called_then_items_are_described_and_nothing_is_lost() -> None:
    def f(items: list, opts: dict) -> str:  # type: ignore[type-arg]
        return repr((items, opts))

    assert schema_of(f)["properties"] == {
        "items": {"items": {}, "type": "array"},
        "opts": {"additionalProperties": True, "type": "object"},
    }
    text = '{"items":[1,"a"],"opts":{"k":{"z":1}}}'
    assert text_of(await called(f, text)) == "([1, 'a'], {'k': {'z': 1}})"


async def test_given_field_constraints_when_called_then_they_are_shown_and_hold() -> None:
    def f(
        age: Annotated[int, Field(gt=0, description="in years")],
        note: Annotated[str, "as said"] = "",
        n: int = Field(default=3, gt=0),
        tags: list[str] = Field(default_factory=list),  # noqa: B008
    ) -> str:
        return repr((age, note, n, tags))

    assert schema_of(f) == {
        "additionalProperties": False,
        "properties": {
            "age": {"description": "in years", "exclusiveMinimum": 0, "type": "integer"},
            "note": {"default": "", "description": "as said", "type": "string"},
            "n": {"default": 3, "exclusiveMinimum": 0, "type": "integer"},
            "tags": {"items": {"type": "string"}, "type": "array"},
        },
        "required": ["age"],
        "type": "object",
    }
    assert text_of(await called(f, '{"age":1}')) == "(1, '', 3, [])"
    assert tool(f).check('{"age":-1}') == Err("invalid_arguments", "age: should be greater than 0, not -1")


async def test_given_a_field_as_the_only_default_when_called_without_it_then_it_is_missing_not_a_field_info() -> None:
    def f(age: int = Field(gt=0)) -> str:
        return repr(age)

    assert schema_of(f)["required"] == ["age"]
    assert tool(f).check("{}") == Err("invalid_arguments", "age: missing, but required")
    assert text_of(await called(f, '{"age":2}')) == "2"


async def test_given_an_alias_when_called_then_the_model_uses_it_and_the_function_its_own_name() -> None:
    def f(from_: Annotated[str, Field(alias="from")]) -> str:
        return from_

    assert schema_of(f)["properties"] == {"from": {"type": "string"}}
    assert text_of(await called(f, '{"from":"Oslo"}')) == "Oslo"


async def test_given_positional_only_and_keyword_only_when_called_then_each_is_passed_its_way() -> None:
    def f(a: int, /, b: int, *, key: str) -> str:
        return repr((a, b, key))

    def g(a: int = 7, c: int = 8, /) -> str:
        return repr((a, c))

    assert text_of(await called(f, '{"key":"k","b":2,"a":1}')) == "(1, 2, 'k')"
    assert text_of(await called(g, '{"c":2}')) == "(7, 2)"


async def test_given_a_tool_context_when_called_then_it_is_injected_and_not_in_the_schema() -> None:
    def f(x: int, ctx: ToolContext) -> str:
        return f"{x} {ctx.idempotency_key} {ctx.deps}"

    def optional(ctx: ToolContext | None, /, x: int) -> str:
        assert ctx is not None
        return f"{x} {ctx.call_id}"

    def two(a: ToolContext, b: ToolContext) -> None: ...

    assert schema_of(f)["properties"] == {"x": {"type": "integer"}}
    assert text_of(await called(f, '{"x":1}')) == "1 key-1 {'db': 1}"
    assert text_of(await called(optional, '{"x":1}')) == "1 call-1"
    with pytest.raises(ConfigError, match="only one parameter may be a ToolContext, not a, b"):
        tool(two)


async def test_given_methods_partials_and_callable_objects_when_made_tools_then_only_what_is_open_is_asked_for() -> (
    None
):
    class Shop:
        def __init__(self, name: str) -> None:
            self.name = name

        def buy(self, n: int) -> str:
            """Buy things."""
            return f"{n} from {self.name}"

        @tool
        def sell(self, n: int) -> str:
            """Sell things."""
            return f"{n} to {self.name}"

        @classmethod
        def kind(cls, n: int) -> str:
            return f"{n} {cls.__name__}"

        async def __call__(self, n: int) -> str:
            """Ask."""
            return f"{n}? {self.name}"

    def send(to: str, text: str, *, secret: str) -> str:
        """Send a text."""
        return f"{to} {text} {secret}"

    shop = Shop("S")
    number = {"n": {"type": "integer"}}
    cases: list[tuple[Callable[..., object], dict[str, Any], str, str, str]] = [
        (shop.buy, number, '{"n":1}', "buy", "1 from S"),
        (shop.sell, number, '{"n":1}', "sell", "1 to S"),
        (Shop.kind, number, '{"n":1}', "kind", "1 Shop"),
        (shop, number, '{"n":1}', "Shop", "1? S"),
        (partial(send, "me", secret="s"), {"text": {"type": "string"}}, '{"text":"t"}', "send", "me t s"),
    ]
    for function, properties, args_text, name, result in cases:
        made = tool(function)
        assert (made.name, schema_of(made)["properties"]) == (name, properties)
        assert text_of(await called(made, args_text)) == result
    assert [tool(shop.buy).description, shop.sell.description, tool(shop).description] == [
        "Buy things.",
        "Sell things.",
        "Ask.",
    ]
    with pytest.raises(ConfigError, match=r"tool 'sell' takes 'self': make the tool of the bound method"):
        _ = Shop.__dict__["sell"].spec


async def test_given_a_wrapped_function_when_made_a_tool_then_the_schema_is_the_inner_and_the_call_the_outer() -> None:
    def loud(inner: Callable[..., str]) -> Callable[..., str]:
        @wraps(inner)
        def outer(*args: object, **kwargs: object) -> str:
            return inner(*args, **kwargs) + "!"

        return outer

    @loud
    def greet(name: str) -> str:
        """Greet."""
        return f"hello {name}"

    made = tool(greet)

    assert (made.name, made.description) == ("greet", "Greet.")
    assert text_of(await called(made, '{"name":"x"}')) == "hello x!"


def test_given_a_type_without_json_form_when_the_schema_is_asked_for_then_the_error_names_the_parameter() -> None:
    class Socket: ...

    @tool
    def f(a: int, s: Socket) -> None: ...

    with pytest.raises(ConfigError, match=r"tool 'f': the type of parameter 's' has no JSON form"):
        _ = f.spec


def test_given_the_same_signature_when_compiled_twice_then_the_schema_text_is_the_same_bytes() -> None:
    def f(b: int, a: set[str], m: dict[str, Item], c: Color = Color.RED) -> None: ...

    assert tool(f).spec.parameters == (
        '{"additionalProperties":false,"properties":{"b":{"type":"integer"},'
        '"a":{"items":{"type":"string"},"type":"array","uniqueItems":true},'
        '"m":{"additionalProperties":{"properties":{"qty":{"type":"integer"}},"required":["qty"],"type":"object"},'
        '"type":"object"},"c":{"default":"r","enum":["r","g"],"type":"string"}},"required":["b","a","m"],"type":"object"}'
    )
    assert tool(f).spec == tool(f).spec


def test_given_decorated_functions_when_the_module_is_imported_then_pydantic_is_not_until_the_schema_is_asked_for() -> (
    None
):
    source = """
        import sys
        from deepstrike.tools.decorator import tool
        from deepstrike.tools.files import read_file
        @tool
        def f(x: int) -> int: return x
        assert "pydantic" not in sys.modules
        f.spec
        assert "pydantic" in sys.modules
    """

    done = subprocess.run([sys.executable, "-c", textwrap.dedent(source)], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")


async def test_given_a_bad_payload_when_executed_unchecked_then_it_is_an_error_result() -> None:
    from toolcalls import invocation

    from deepstrike.tools.running import run_tool

    @tool
    def f(p: Item) -> str:
        raise AssertionError("the body must not run")

    result = await run_tool(f, invocation('{"p":{"qty":[]}}', context=CONTEXT))

    assert error_of(result) == ("invalid_arguments", "p: should be a valid integer, not list")
