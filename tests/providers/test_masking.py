"""Keys in what services send back: none of them, and no part of one, is told."""

from __future__ import annotations

import base64
import html
import json
import logging
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wires import decode_pieces, event, stream

from deepstrike.errors import RateLimited
from deepstrike.providers.dialects.chat.decode import ChatDecoder
from deepstrike.providers.faults import Faults
from deepstrike.providers.ollama import OllamaProvider
from deepstrike.providers.redact import Mask
from deepstrike.secrets.binding import Bound

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY = "tok_aB3/dE+f5&H<7>jkLmNoPq=="
WRITTEN = {
    "plain": KEY,
    "url": quote(KEY, safe=""),
    "path": quote(KEY),
    "form": quote_plus(KEY),
    "html": html.escape(KEY),
    "json": json.dumps(KEY)[1:-1],
    "json with slashes": KEY.replace("/", "\\/"),
}


def pieces_of(key: str, text: str) -> list[str]:
    """The parts of six characters of `key` that stand in `text`."""
    return [key[at : at + 6] for at in range(len(key) - 5) if key[at : at + 6] in text]


def lowered(form: str) -> str:
    """Percent signs with lower-case digits, as some servers write them."""
    first, *others = form.split("%")
    return "%".join([first, *(other[:2].lower() + other[2:] for other in others)])


@pytest.mark.parametrize("form", [*WRITTEN.values(), lowered(quote(KEY, safe="")), lowered(quote(KEY))])
def test_given_a_key_however_escaped_when_masked_then_nothing_of_it_is_left(form: str) -> None:
    assert Mask([KEY])(f"the key {form} is wrong") == "the key *** is wrong"
    assert Bound(frozenset({KEY})).hidden(f"the key {form} is wrong") == "the key [secret] is wrong"


@given(st.binary(max_size=7), st.binary(max_size=7), st.booleans())
def test_given_a_key_within_base64_when_masked_then_only_its_neighbours_are_left(
    before: bytes, behind: bytes, url: bool
) -> None:
    encode = base64.urlsafe_b64encode if url else base64.b64encode
    whole = encode(before + KEY.encode() + behind).decode()
    front, hidden, back = Mask([KEY])(whole).partition("***")
    assert (hidden, len(front) <= (len(before) * 8 + 5) // 6, whole.startswith(front)) == ("***", True, True)
    assert len(back) <= len(encode(behind)) + 4


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (f"Bearer {KEY}", KEY),
        (f"Basic {base64.b64encode(b'user:pass-word-1').decode()}", "pass-word-1"),
        ("session=abcdef123456; path=/", "abcdef123456"),
        ('Token token="abcdef123456"', "abcdef123456"),
    ],
)
def test_given_a_header_in_pieces_when_the_bare_value_is_told_then_it_is_masked(value: str, key: str) -> None:
    assert Mask([value])(f"for {key} it is") == "for *** it is"


@pytest.mark.parametrize("missing", [1, 5, 20])
def test_given_a_page_longer_than_what_is_shown_when_a_key_lies_across_the_cut_then_no_part_is_left(
    missing: int,
) -> None:
    for size in (400, 1600, 64 * 1024):
        many = KEY * (size // len(KEY))
        body = "z" * (size - len(KEY) + missing) + KEY * 2
        for page in (body, many + KEY, body[:size]):
            told, _ = Faults(Mask([KEY])).http(502, "text/plain", page.encode(), None)
            assert pieces_of(KEY, str(told)) == []


def test_given_a_line_that_cannot_be_read_when_a_key_lies_across_the_cut_then_the_log_has_no_part(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    for missing in range(1, len(KEY)):
        line = b'{"x":"' + b"y" * (194 - len(KEY) + missing) + KEY.encode() + b" broken"
        body = b"data: " + line + b"\n\n" + stream(event({"content": "a"}))
        decode_pieces([body], ChatDecoder({}, Faults(Mask([KEY]))))
    assert len(caplog.records) == len(KEY) - 1
    assert pieces_of(KEY, caplog.text) == []


def test_given_a_key_in_a_header_when_the_service_repeats_it_then_no_error_tells_it() -> None:
    headers: Mapping[str, str] = {"authorization": f"Bearer {KEY}"}
    provider = OllamaProvider("m", base_url="http://127.0.0.1:1", headers=headers)
    body = json.dumps({"error": f"too many for {KEY}"}).encode()
    fault, _ = provider._faults.http(429, "application/json", body, None)
    assert type(fault) is RateLimited
    assert str(fault).startswith("HTTP 429: too many for *** (")


@pytest.mark.parametrize("body", [b"<h>", b'{"error":{"message":"no"}}'])
def test_given_a_key_in_the_content_type_when_the_error_shows_it_then_it_is_masked(body: bytes) -> None:
    told, _ = Faults(Mask([KEY])).http(200, f"text/html; x={KEY}", body, None)
    assert "text/html; x=***" in str(told)
