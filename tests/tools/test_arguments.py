"""Checking arguments: what models really send."""

from __future__ import annotations

import json
import math
from datetime import date
from decimal import Decimal
from enum import IntEnum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr
from toolcalls import CONTEXT, called, text_of
from typing_extensions import TypedDict

from deepstrike.tools.decorator import tool
from deepstrike.tools.definition import Tool
from deepstrike.wire.message import Err, Ok


def refused(message: str) -> Err:
    return Err("invalid_arguments", message)


@tool
def add(x: int, y: int) -> str:
    return str(x + y)


@tool
def text_tool(x: str) -> str:
    return x


@tool
def now() -> str:
    return "now"


@tool
def anything(value: Any) -> str:
    return repr(value)


async def test_given_containers_sent_as_json_strings_when_checked_then_they_are_parsed() -> None:
    @tool
    def f(opts: dict[str, int], ids: list[int]) -> str:
        return repr((opts, ids))

    text = '{"opts":"{\\"k\\":1}","ids":"[1,2]"}'

    assert f.check(text) == Ok('{"opts":{"k":1},"ids":[1,2]}')
    assert text_of(await called(f, text)) == "({'k': 1}, [1, 2])"
    assert f.check('{"opts":"{k","ids":[]}') == refused("opts: should be an object, not '{k'")


def test_given_a_container_encoded_inside_a_container_when_checked_then_both_are_parsed() -> None:
    class Query(BaseModel):
        where: dict[str, list[int]]

    @tool
    def f(queries: list[Query] | None) -> None: ...

    inner = json.dumps({"where": json.dumps({"a": json.dumps([1])})})

    assert f.check(json.dumps({"queries": [inner]})) == Ok('{"queries":[{"where":{"a":[1]}}]}')


def test_given_a_string_parameter_when_it_holds_json_then_it_stays_a_string() -> None:
    @tool
    def f(text: str, either: str | list[int]) -> None: ...

    assert f.check('{"text":"[1]","either":"[1]"}') == Ok()


@pytest.mark.parametrize("word", ["false", "False", "0", "no"])
async def test_given_a_word_for_false_when_a_bool_is_due_then_it_is_false_never_true(word: str) -> None:
    @tool
    def set_admin(on: bool) -> str:
        return repr(on)

    assert set_admin.check(json.dumps({"on": word})) == Ok('{"on":false}')
    assert text_of(await called(set_admin, json.dumps({"on": word}))) == "False"
    assert set_admin.check('{"on":"true"}') == Ok('{"on":true}')
    assert set_admin.check('{"on":"maybe"}') == refused(
        "on: should be a valid boolean, unable to interpret input, not 'maybe'"
    )


class Flagged(BaseModel):
    flag: bool
    n: int


class Counted(BaseModel):
    flag: int
    n: str


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize(
    ("due", "said"),
    [
        (int, "should be a valid integer"),
        (float, "should be a valid number"),
        (int | None, "should be a valid integer"),
        (int | str, "should be a valid integer, not {0} or should be a valid string"),
        (Annotated[int, Field(ge=0)], "should be a valid integer"),
        (Decimal, "Decimal input should be an integer"),
    ],
    ids=str,
)
def test_given_a_boolean_when_another_value_is_due_then_it_is_refused(value: bool, due: Any, said: str) -> None:
    def f(n: Any, word: int = 0) -> None: ...

    f.__annotations__["n"] = due
    made = tool(f)

    for text in ({"n": value}, {"n": value, "word": "3"}):
        checked = made.check(json.dumps(text))
        assert isinstance(checked, Err)
        assert checked.message.startswith(f"n: {said.format(value)}"), checked.message


def test_given_a_boolean_inside_a_container_when_a_number_is_due_then_its_place_is_told() -> None:
    @tool
    def f(ids: list[int], table: dict[str, float]) -> None: ...

    assert f.check('{"ids":[1,true],"table":"{\\"k\\":false}"}') == refused(
        "ids[1]: should be a valid integer, not True; table.k: should be a valid number, not False"
    )


def test_given_a_boolean_that_may_be_one_when_something_else_is_coerced_then_it_stays_one() -> None:
    @tool
    def f(what: Flagged | Counted, anything: Any = None, either: int | bool = 0) -> None: ...

    text = '{"what":{"flag":true,"n":"3"},"anything":[true],"either":false}'

    assert f.check(text) == Ok('{"what":{"flag":true,"n":3},"anything":[true],"either":false}')


class Level(IntEnum):
    LOW = 1
    NONE = 0


class Sized(BaseModel):
    size: Literal[1, 0]


class Keyed(TypedDict):
    level: Level


@pytest.mark.parametrize("given", ["true", "false"])
@pytest.mark.parametrize(
    ("due", "form", "place"),
    [
        (Level, "@", "n"),
        (Literal[1, 0], "@", "n"),
        (Level | None, "@", "n"),
        (Literal[1, 0] | str, "@", "n"),
        (list[Literal[1, 0]], "[1,@]", "n[1]"),
        (dict[str, Level], '{"a":@}', "n.a"),
        (Sized, '{"size":@}', "n.size"),
        (Keyed, '{"level":@}', "n.level"),
        (list[Sized], '[{"size":@}]', "n[0].size"),
    ],
    ids=str,
)
def test_given_a_boolean_when_one_of_some_numbers_is_due_then_it_is_refused(
    due: Any, form: str, place: str, given: str
) -> None:
    def f(n: Any, word: int = 0) -> None: ...

    f.__annotations__["n"] = due
    made = tool(f)
    value = given.title()
    for more in ("", ',"word":"3"'):
        checked = made.check(f'{{"n":{form.replace("@", given)}{more}}}')
        assert checked == refused(f"{place}: should be a number, not {value}")
    assert isinstance(made.check(f'{{"n":{form.replace("@", "1")},"word":0}}'), Ok)


@pytest.mark.parametrize("due", [bool, Any, Level | bool, Literal[True, 2], dict[str, Any] | bool], ids=str)
def test_given_a_boolean_when_one_may_be_due_then_it_stays_one(due: Any) -> None:
    def f(n: Any) -> None: ...

    f.__annotations__["n"] = due
    assert tool(f).check('{"n":true}') == Ok()


def test_given_missing_and_surplus_arguments_when_checked_then_each_is_named() -> None:
    @tool
    def f(city: str) -> None: ...

    assert f.check("{}") == refused("city: missing, but required")
    assert f.check('{"city":"x","foo":1}') == refused("foo: unexpected, there is no such parameter")


def test_given_numbers_in_other_clothes_when_checked_then_they_are_coerced_and_the_text_shows_it() -> None:
    assert add.check('{"x":1,"y":2}') == Ok()
    assert add.check('{ "x" : 1,\n\t"y" : 2 }') == Ok()
    assert add.check('{"x":"1","y":2.0}') == Ok('{"x":1,"y":2}')
    assert add.check('{"x":"one","y":[]}') == refused(
        "x: should be a valid integer, unable to parse string as an integer, not 'one'; "
        "y: should be a valid integer, not list"
    )


def test_given_no_arguments_in_any_spelling_when_checked_then_they_are_an_empty_object() -> None:
    assert [now.check(text) for text in ("", "null", " \n", " null ", "{}")] == [Ok("{}")] * 4 + [Ok()]
    assert add.check("") == refused("x: missing, but required; y: missing, but required")


def test_given_text_that_is_no_object_when_checked_then_the_reason_is_told() -> None:
    assert add.check('{"x":1,') == refused(
        "the arguments are unreadable: not valid JSON: Expecting property name enclosed in double quotes at character 7"
    )
    assert add.check("[1]") == refused("the arguments must be a JSON object, not an array")
    assert add.check("3") == refused("the arguments must be a JSON object, not a number")
    assert add.check('{"x":1,"y":2}{"x":1}') == refused(
        "the arguments are unreadable: not valid JSON: Extra data at character 13"
    )
    assert add.check('"{\\"x\\":1,\\"y\\":2}"') == Ok('{"x":1,"y":2}')


def test_given_a_key_twice_when_checked_then_it_is_refused_at_any_depth() -> None:
    said = "the arguments are unreadable: the key 'x' stands twice in one object"

    assert add.check('{"x":1,"y":1,"x":2}') == refused(said)
    assert text_tool.check('{"x":"http://a","x":"b"}') == refused(said)
    assert text_tool.check('{"x" : "a:b","x":"c"}') == refused(said)
    assert text_tool.check('{"x":"http://a \\":\\" b"}') == Ok()
    assert text_tool.check('{"x" : "a : b"}') == Ok()
    assert anything.check('{"value":[{"x":1,"x":2}]}') == refused(said)


def test_given_numbers_that_json_has_not_when_checked_then_they_are_refused_everywhere() -> None:
    @tool
    def f(value: float) -> None: ...

    for made in (f, anything):
        for number in ("NaN", "Infinity", "-Infinity"):
            assert made.check(f'{{"value":{number}}}') == refused(
                f"the arguments are unreadable: {number} is not valid JSON"
            )
        assert made.check('{"value":1e400}') == refused(
            "the arguments are unreadable: the number 1e400 is out of range"
        )
        assert made.check('{"value":0.1}') == Ok()


async def test_given_a_big_integer_when_called_then_it_arrives_exactly_and_keys_keep_their_order() -> None:
    text = '{"value":{"z":123456789012345678901234567890,"a":0.1}}'

    assert text_of(await called(anything, text)) == "{'z': 123456789012345678901234567890, 'a': 0.1}"
    assert add.check('{"x":123456789012345678901234567890,"y":0}') == Ok()
    assert add.check('{"x":"123456789012345678901234567890","y":0}') == Ok('{"x":123456789012345678901234567890,"y":0}')
    assert add.check('{"x":1' + "0" * 5000 + ',"y":0}') == refused(
        "the arguments are unreadable: not valid JSON: a number has too many digits"
    )


@pytest.mark.parametrize("text", ["[" * 10_000, '{"value":' * 10_000, '{"value":' + "[" * 101 + "]" * 101 + "}"])
def test_given_deep_nesting_when_checked_then_it_is_refused(text: str) -> None:
    assert anything.check(text) == refused("the arguments are unreadable: nested deeper than 100 levels")


def test_given_brackets_inside_strings_when_checked_then_they_are_no_nesting() -> None:
    assert anything.check(json.dumps({"value": '[{\\"' * 1000})) == Ok()


async def test_given_lone_surrogates_when_checked_then_they_are_replaced_and_pairs_stay() -> None:
    for text in ('{"value":"a \ud83d b"}', '{"value":"a \\ud83d b"}'):
        assert anything.check(text) == Ok('{"value":"a � b"}')
        assert text_of(await called(anything, text)) == "'a � b'"
    assert anything.check('{"value":"\\ud83d\\ude00"}') == Ok('{"value":"😀"}')
    assert anything.check('{"value":"\\u00e9"}') == Ok()
    assert anything.check('{"\\ud83d":1}') == refused(
        "value: missing, but required; �: unexpected, there is no such parameter"
    )


def test_given_raw_line_breaks_inside_a_string_when_checked_then_the_text_is_made_strict() -> None:
    assert anything.check('{"value":"a\nb\x01"}') == Ok('{"value":"a\\nb\\u0001"}')
    assert anything.check('{\n"value": "ab"\n}') == Ok()


def test_given_text_that_is_a_date_when_checked_then_it_may_stand() -> None:
    @tool
    def f(day: date, mode: Literal["a"] = "a") -> None: ...

    assert f.check('{"day":"2026-11-30","mode":"a"}') == Ok()
    assert f.check('{"day":"30.11."}') == refused(
        "day: should be a valid date or datetime, input is too short, not '30.11.'"
    )


def test_given_a_validator_that_changes_values_when_checked_then_the_text_shows_what_the_function_gets() -> None:
    @tool
    def f(name: Annotated[str, BeforeValidator(str.strip)]) -> None: ...

    @tool
    def g(n: Annotated[int, AfterValidator(lambda n: n + 1)]) -> None: ...

    assert f.check('{"name":" root "}') == Ok('{"name":"root"}')
    assert f.check('{"name": "root"}') == Ok()
    assert g.check('{"n":1}') == Ok()  # it would not be the same a second time


async def test_given_a_secret_when_checked_then_its_mask_does_not_replace_it() -> None:
    @tool
    def f(key: SecretStr, n: int) -> str:
        return key.get_secret_value()

    assert f.check('{"key":"abc","n":"1"}') == Ok()
    assert text_of(await called(f, '{"key":"abc","n":"1"}')) == "abc"


def test_given_a_validator_that_fails_when_checked_then_its_words_are_the_error() -> None:
    def small(n: int) -> int:
        if n > 9:
            raise ValueError("at most 9")
        return 1 // n * n

    @tool
    def f(n: Annotated[int, AfterValidator(small)]) -> None: ...

    assert f.check('{"n":10}') == refused("n: at most 9")
    assert f.check('{"n":0}') == refused(
        "the arguments cannot be checked: ZeroDivisionError: integer division or modulo by zero"
    )


def test_given_many_mistakes_when_checked_then_the_first_are_told_and_the_rest_counted() -> None:
    @tool
    def f(ids: list[int]) -> None: ...

    checked = f.check(json.dumps({"ids": ["x"] * 100}))

    assert isinstance(checked, Err)
    assert checked.message.endswith("; and 95 more")
    assert len(checked.message) < 500


@tool
def wide(
    n: int,
    f: float,
    s: str | None = None,
    b: bool = False,
    items: list[int | str] | None = None,
    table: dict[str, Any] | None = None,
    mode: Literal["a", "b"] = "a",
) -> None: ...


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["n", "f", "s", "b", "items", "table", "mode", "value", "other"])
TEXTS = st.text() | st.dictionaries(NAMES, JSON | JSON.map(json.dumps), max_size=7).map(json.dumps)


@settings(max_examples=150, deadline=None)
@given(text=TEXTS, made=st.sampled_from([wide, anything, add]))
def test_given_any_text_when_checked_then_nothing_raises_and_validated_text_validates_to_itself(
    text: str, made: Tool[..., object]
) -> None:
    checked = made.check(text)

    if isinstance(checked, Ok):
        validated = text if checked.text is None else checked.text
        assert made.check(validated) == Ok()
        document = json.loads(validated, parse_constant=lambda word: pytest.fail(word))
        assert isinstance(document, dict)
        validated.encode()
        positional, named = made.bind(validated, CONTEXT)
        assert (positional, set(document) <= set(named)) == ([], True)
    else:
        assert (checked.kind, bool(checked.message)) == ("invalid_arguments", True)
        checked.message.encode()


class Named(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    amount: Annotated[float, Field(alias="amt")] = 5.0
    note: str | None = None


@pytest.mark.parametrize(
    ("given_text", "validated"),
    [
        ('{"to":"a"}', '{"to":"a","amount":1000.0,"tags":["x"]}'),
        ('{"to":"a","amount":7}', '{"to":"a","amount":7,"tags":["x"]}'),
        ('{"amount":7, "to":"a", "tags":[]}', None),
        ('{"to":"a","amount":"7"}', '{"to":"a","amount":7.0,"tags":["x"]}'),
        ('{"to":"a","note":null}', '{"to":"a","note":null,"amount":1000.0,"tags":["x"]}'),
    ],
)
def test_given_arguments_that_are_left_out_when_checked_then_the_text_shows_what_the_function_gets(
    given_text: str, validated: str | None
) -> None:
    made: Any = Field(default_factory=lambda: ["x"])

    @tool
    def pay(to: str, amount: float = 1000.0, note: str | None = None, tags: list[str] = made) -> None: ...

    assert pay.check(given_text) == Ok(validated)


def test_given_another_name_of_a_field_when_checked_then_the_text_has_the_name_of_the_schema() -> None:
    @tool
    def order(what: Named) -> None: ...

    assert order.check('{"what":{"amount":500}}') == Ok('{"what":{"amt":500.0}}')
    assert order.check('{"what":{"amt":500}}') == Ok()
    assert order.check('{"what":{}}') == Ok('{"what":{"amt":5.0}}')


def test_given_a_default_without_a_json_form_when_checked_then_the_others_are_shown() -> None:
    sentinel: Any = object()
    hidden = SecretStr("hush")

    @tool
    def seek(word: str, where: str = sentinel, limit: int = 3, key: SecretStr = hidden) -> None: ...

    for _ in range(2):
        assert seek.check('{"word":"a"}') == Ok('{"word":"a","limit":3}')


@settings(max_examples=60, deadline=None)
@given(value=JSON)
def test_given_any_json_value_when_checked_then_the_function_gets_that_value(value: object) -> None:
    text = json.dumps({"value": value}, ensure_ascii=False)

    checked = anything.check(text)

    if "NaN" in text or "Infinity" in text:
        assert isinstance(checked, Err) or any(word in json.dumps(value) for word in ('"',))
    else:
        assert checked == Ok()
        _, named = anything.bind(text, CONTEXT)
        got = named["value"]
        assert got == value or (isinstance(value, float) and math.isnan(value))
