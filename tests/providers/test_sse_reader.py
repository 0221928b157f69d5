"""Server-sent events, cut and ended in every way."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepstrike.errors import ProviderError
from deepstrike.providers.dialects.sse import SseReader


def read(pieces: list[bytes]) -> list[bytes]:
    reader = SseReader()
    out = [payload for piece in pieces for payload in reader.push(piece)]
    return out + reader.close()


CASES = {
    "one space after the colon is dropped, a second is not": (
        b"data: a\n\ndata:b\n\ndata:  c\n\n",
        [b"a", b"b", b" c"],
    ),
    "CRLF ends lines": (b"data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", [b"a\nb", b"c"]),
    "a lone CR ends lines": (b"data: a\rdata: b\r\rdata: c\r\r", [b"a\nb", b"c"]),
    "line ends may be mixed": (b"data: a\r\n\ndata: b\r\r\ndata: c\n\r\n", [b"a", b"b", b"c"]),
    "comments and other fields make no event": (
        b": connected\n\nid: 7\nevent: x\nretry: 3\n\n:\n\nid: 8\ndata: a\n\n: bye\n\n",
        [b"a"],
    ),
    "several data lines are one event": (b'data: {\ndata: "a": 1\ndata: }\n\n', [b'{\n"a": 1\n}']),
    "an event without its blank line still counts": (b"data: a\n\ndata: b", [b"a", b"b"]),
    "a byte order mark may lead": (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
    "a mark further on belongs to its line": (b"data: a\n\ndata: \xef\xbb\xbfb\n\n", [b"a", b"\xef\xbb\xbfb"]),
    "unicode separators end no line": (
        "data: a\u2028b\u2029c\u0085d\x0be\x0cf\n\n".encode(),
        ["a\u2028b\u2029c\u0085d\x0be\x0cf".encode()],
    ),
    "an empty body holds nothing": (b"", []),
    "blank lines hold nothing": (b"\n\n\r\n\r\n", []),
}


@pytest.mark.parametrize(("body", "events"), CASES.values(), ids=CASES)
def test_given_a_stream_when_it_is_cut_anywhere_then_its_events_are_the_same(body: bytes, events: list[bytes]) -> None:
    assert read([body]) == events
    assert read([body[i : i + 1] for i in range(len(body))]) == events
    for cut in range(len(body) + 1):
        assert read([body[:cut], body[cut:]]) == events, f"cut at {cut}"


@settings(max_examples=200, deadline=None)
@given(st.text("ad:t \r\n\ufeff\u2028", max_size=60), st.lists(st.integers(0, 80), max_size=6))
def test_given_any_bytes_when_cut_in_pieces_then_nothing_changes(text: str, cuts: list[int]) -> None:
    body = text.encode()
    edges = sorted({0, len(body), *(min(cut, len(body)) for cut in cuts)})
    pieces = [body[a:b] for a, b in pairwise(edges)]
    assert read(pieces) == read([body])


def test_given_an_event_when_its_blank_line_has_come_then_it_is_out_at_once() -> None:
    reader = SseReader()
    assert reader.push(b"data: a\r\n\r") == [b"a"]
    assert reader.push(b"\ndata: b\r\n") == []
    assert reader.push(b"\r\n") == [b"b"]


@pytest.mark.parametrize("form", [b"data: %b", b"%b", b"data: x\ndata: %b"])
def test_given_an_event_without_end_when_it_passes_the_limit_then_it_is_refused(form: bytes) -> None:
    reader = SseReader(limit=1000)
    line = form % b"abc" + (b"\n" if b"x" in form else b"")

    def push_for_ever() -> None:
        while True:
            reader.push(line)

    with pytest.raises(ProviderError, match="more than 1,000 bytes") as caught:
        push_for_ever()
    assert caught.value.code == "event_too_large"


def test_given_many_small_events_when_their_sum_passes_the_limit_then_nothing_is_refused() -> None:
    reader = SseReader(limit=1000)
    assert reader.push(b"data: abc\n\n" * 5000) == [b"abc"] * 5000


def test_given_ten_megabytes_in_one_line_when_they_come_in_small_pieces_then_the_event_is_whole() -> None:
    reader = SseReader()
    body = b"data: " + b"x" * 10_000_000 + b"\n\n"
    # Work that grows with the square of the size would copy 800 GB here.
    found = [payload for start in range(0, len(body), 64) for payload in reader.push(body[start : start + 64])]
    assert [len(payload) for payload in found] == [10_000_000]


def test_given_an_event_of_many_data_lines_when_they_come_one_by_one_then_all_are_joined() -> None:
    reader = SseReader()
    for _ in range(20_000):
        assert reader.push(b"data: x\n") == []
    assert reader.push(b"\n") == [b"\n".join([b"x"] * 20_000)]


PARTS = ["data: a", "data:b", "data:  c", "data: ", "event: x", "event", ": note", "id: 7", "", "a"]
ENDS = ["\n", "\r\n", "\r", "\n\n", "\r\n\r\n", "\r\r", "\n\r\n"]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PARTS), st.sampled_from(ENDS)), max_size=12), st.integers(0, 2**12 - 1))
def test_given_whole_events_a_read_when_joined_otherwise_then_nothing_changes(
    lines: list[tuple[str, str]], joined: int
) -> None:
    pieces = [f"{part}{end}".encode() for part, end in lines]
    groups: list[bytes] = []
    for at, piece in enumerate(pieces):
        if groups and joined >> at & 1:
            groups[-1] += piece
        else:
            groups.append(piece)
    whole = b"".join(pieces)
    single = read([whole[i : i + 1] for i in range(len(whole))])
    assert read(pieces) == single
    assert read(groups) == single
