"""What tools return, as content."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum

import pytest
from pydantic import BaseModel
from toolcalls import called, error_of, text_of

from deepstrike.tools.results import KEPT_BYTES, Kept, as_text, to_parts
from deepstrike.wire.message import File, Image, Text


class Color(Enum):
    RED = "r"


class Item(BaseModel):
    qty: int


@dataclass
class Point:
    x: int


class Odd:
    def __str__(self) -> str:
        return "odd"


class Broken:
    def __str__(self) -> str:
        raise ValueError("no")


async def test_given_dicts_and_lists_when_returned_then_the_content_is_valid_json() -> None:
    def status() -> dict[str, object]:
        return {"status": "ok", "n": 1}

    assert json.loads(text_of(await called(status))) == {"status": "ok", "n": 1}
    assert to_parts(["é"]) == (Text('["é"]'),)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        ("", ""),
        (None, "null"),
        (45, "45"),
        (True, "true"),
        (0.1, "0.1"),
        (float("nan"), "null"),
        (10**30, "1" + "0" * 30),
        ([], "[]"),
        ({"a": Item(qty=1), "b": Point(2)}, '{"a":{"qty":1},"b":{"x":2}}'),
        ([date(2026, 11, 30), Decimal("1.50"), Color.RED], '["2026-11-30","1.50","r"]'),
        ((1, 2), "[1,2]"),
        ({3}, "[3]"),
        ({1: "a"}, '{"1":"a"}'),
        ({(1, 2): "a"}, '{"1,2":"a"}'),
        (b"caf\xc3\xa9 \xff", "café �"),
        (Odd(), '"odd"'),
        ([Odd()], '["odd"]'),
    ],
)
def test_given_a_value_when_returned_then_it_is_text_that_a_model_can_read(value: object, text: str) -> None:
    assert to_parts(value) == (Text(text),)


def nested(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (Broken(), "a Broken in what it returned cannot be turned into text (ValueError)"),
        ({"a": [1, Broken()]}, "a Broken in what it returned cannot be turned into text (ValueError)"),
        (nested(100_000), "a list in what it returned cannot be turned into text (RecursionError)"),
    ],
    ids=["__str__ fails", "inside a dict", "too deep"],
)
async def test_given_a_value_that_has_no_text_when_returned_or_yielded_then_the_result_is_an_error_that_says_so(
    value: object, what: str
) -> None:
    def give() -> object:
        return value

    def yield_it() -> Iterator[object]:
        yield value

    expected = ("exception", f"NoText: the tool ran, but {what}; return a string, or values that JSON can hold")
    assert error_of(await called(give)) == expected
    assert error_of(await called(yield_it)) == expected


def test_given_a_value_that_holds_itself_when_returned_then_it_is_still_text() -> None:
    loop: list[object] = []
    loop.append(loop)

    assert as_text(loop) == "[[...]]"


def test_given_lone_surrogates_when_returned_then_they_are_replaced_and_the_rest_is_intact() -> None:
    assert to_parts("ok \ud83d end") == (Text("ok � end"),)
    assert to_parts({"name": "caf\udce9", "n": 1}) == (Text('{"name":"caf�","n":1}'),)
    assert to_parts([Text("a\ud83d"), "b"]) == (Text("a�"), Text("b"))


def test_given_content_parts_when_returned_then_they_pass() -> None:
    image = Image(media_type="image/png", data="aGk=")
    file = File("text/plain", "aGk=", "a.txt")

    assert to_parts(image) == (image,)
    assert to_parts(Text("x")) == (Text("x"),)
    assert to_parts([image, "seen", file]) == (image, Text("seen"), file)
    assert to_parts(["only", "strings"]) == (Text('["only","strings"]'),)


@pytest.mark.parametrize("sign", ["a", "é", "中", "🛡"])
def test_given_a_huge_text_when_returned_then_it_is_cut_between_characters_and_the_marker_counts(sign: str) -> None:
    width = len(sign.encode())
    count = KEPT_BYTES // width + 10

    (part,) = to_parts("x" + sign * count)

    assert isinstance(part, Text)
    kept, _, marker = part.text.rpartition("\n")
    inside = (KEPT_BYTES - 1) // width
    assert kept == "x" + sign * inside
    assert marker == (
        f"[cut here: {(count - inside) * width} more bytes; of one result at most {KEPT_BYTES} bytes are kept]"
    )


def test_given_a_text_at_the_bound_when_returned_then_nothing_is_cut() -> None:
    text = "é" * (KEPT_BYTES // 2)

    assert to_parts(text) == (Text(text),)


def test_given_ever_more_text_when_kept_then_memory_does_not_grow() -> None:
    kept = Kept()
    piece = "中" * 1_000_000

    for _ in range(40):
        kept.add_text(piece)

    assert len(kept._pieces) == 6
    cut = 40 * 3_000_000 - KEPT_BYTES // 3 * 3
    assert kept.text().endswith(f"[cut here: {cut} more bytes; of one result at most {KEPT_BYTES} bytes are kept]")


BOUND = f"of one result at most {KEPT_BYTES} bytes are kept]"
QUARTER = "A" * (KEPT_BYTES // 4)


async def test_given_ever_more_images_when_yielded_then_the_first_are_kept_and_a_marker_counts_the_rest() -> None:
    image = Image("image/png", QUARTER)

    async def draw() -> AsyncIterator[object]:
        for _ in range(10):
            yield image
        yield "drawn"

    result = await called(draw)

    size = 7 * (len(QUARTER) + len("image/png"))
    assert result.error_kind == ""
    assert result.parts == (*[image] * 3, Text(f"drawn\n[left out: 7 images or files of {size} bytes; {BOUND}"))


@pytest.mark.parametrize(
    ("part", "size"),
    [
        (Image("image/png", "A" * KEPT_BYTES), KEPT_BYTES + 9),
        (Image(url="é" * KEPT_BYTES), 2 * KEPT_BYTES),
        (File("", "", "n" * (KEPT_BYTES + 1)), KEPT_BYTES + 1),
        (File("m" * (KEPT_BYTES + 1), ""), KEPT_BYTES + 1),
        (File("", "\ud800" * KEPT_BYTES), 3 * KEPT_BYTES),
    ],
    ids=["data", "url", "name", "media type", "half a pair"],
)
def test_given_an_image_or_file_above_the_bound_when_returned_then_the_result_says_so(
    part: Image | File, size: int
) -> None:
    said = f"[left out: 1 image or file of {size} bytes; {BOUND}"

    assert to_parts(part) == (Text(said),)
    assert to_parts(["seen", part, File("a/b", "aGk=")])[0] == Text("seen")


def test_given_an_image_that_just_fits_when_returned_then_it_is_kept_and_text_after_it_is_cut() -> None:
    image = Image("image/png", "A" * (KEPT_BYTES - len("image/png")))

    assert to_parts(image) == (image,)
    assert to_parts([image, "ab", image]) == (
        image,
        Text(f"[cut here: 2 more bytes; left out: 1 image or file of {KEPT_BYTES} bytes; {BOUND}"),
    )


def test_given_text_that_fills_the_bound_when_an_image_follows_then_it_is_left_out() -> None:
    text, image = "x" * (KEPT_BYTES - 5), Image("image/png", "aGk=")

    assert to_parts([text, image]) == (Text(text), Text(f"[left out: 1 image or file of 13 bytes; {BOUND}"))
    assert to_parts([Text(text), "more than that"]) == (Text(text), Text(f"[cut here: 14 more bytes; {BOUND}"))


@pytest.mark.parametrize("part", [Image(), File("", ""), Text("a")], ids=["image", "file", "text"])
def test_given_parts_without_end_that_hold_nothing_when_kept_then_their_number_is_bounded(
    part: Image | File | Text,
) -> None:
    kept = Kept()

    for _ in range(KEPT_BYTES // 50):
        kept.add(part)

    assert len(kept.parts()) < KEPT_BYTES // 60
    assert kept.parts()[-1] != part
