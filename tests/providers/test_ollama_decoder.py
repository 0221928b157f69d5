"""Answers of Ollama: what their lines mean."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import pytest
from gemini_ollama_wires import asked, events_of, read
from hypothesis import given
from hypothesis import strategies as st
from wires import Said, put_together

from deepstrike.errors import Overloaded, ProviderError, Truncated, Unreachable
from deepstrike.providers.base import Artefact, Finish, ToolCall
from deepstrike.providers.dialects.names import wire_name
from deepstrike.providers.dialects.ndjson import LineReader
from deepstrike.providers.dialects.ollama.dialect import OllamaDialect
from deepstrike.stream import TextDelta
from deepstrike.wire.message import ToolSpec, Usage

if TYPE_CHECKING:
    from deepstrike.providers.base import ModelEvent
    from deepstrike.providers.dialects.base import Asked

DIALECT = OllamaDialect()


def line(message: dict[str, object] | None = None, **more: object) -> bytes:
    """One line of an answer that goes on."""
    body = {"model": "m", "message": {"role": "assistant", "content": "", **(message or {})}, "done": False, **more}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def last(reason: str | None = "stop", counted: int | None = 20, output: int | None = 9) -> bytes:
    """The line that ends one."""
    counts = {"prompt_eval_count": counted, "eval_count": output}
    more = {name: count for name, count in counts.items() if count is not None}
    return line(None, **({"done_reason": reason} if reason else {}), **more).replace(b'"done":false', b'"done":true')


def calls(*functions: dict[str, object], **more: object) -> dict[str, object]:
    return {"tool_calls": [{"function": function, **more} for function in functions]}


def ask(**extensions: object) -> Asked:
    tools = (ToolSpec("math.add", "", '{"type":"object"}'),)
    return asked(model="m", source="ollama", tools=tools, extensions=extensions)


def said(body: bytes) -> Said:
    return put_together(read(DIALECT, ask(), body))


def events(body: bytes) -> list[ModelEvent]:
    return events_of(DIALECT, ask(), [body])


def test_given_thinking_text_and_counts_when_decoded_then_the_answer_says_them() -> None:
    body = line({"thinking": "Hm."}) + line({"content": "Ça "}) + line({"content": "va \u2028🎉"}) + last()
    assert said(body) == Said("Ça va \u2028🎉", "Hm.", (), Usage(20, 9), "stop")


def test_given_two_calls_of_one_tool_without_ids_when_decoded_then_both_come_and_stop_means_tool_calls() -> None:
    body = line(calls({"name": "w", "arguments": {"city": "Riga"}}, {"name": "w", "arguments": {"city": "Nice"}}))
    assert said(body + last()) == Said(
        calls=(ToolCall("", "w", '{"city":"Riga"}'), ToolCall("", "w", '{"city":"Nice"}')),
        usage=Usage(20, 9),
        finish="tool_calls",
    )


@pytest.mark.parametrize("arguments", [{}, None, "", "null", "{}"])
def test_given_no_arguments_in_any_form_when_decoded_then_they_are_an_empty_object(arguments: object) -> None:
    assert said(line(calls({"name": "now", "arguments": arguments})) + last()).calls == (ToolCall("", "now", "{}"),)


def test_given_arguments_as_text_when_decoded_then_they_are_taken_as_json() -> None:
    body = line(calls({"name": wire_name("math.add"), "arguments": '{"x":"é"}'}, id="call_1")) + last()
    assert said(body).calls == (ToolCall("call_1", "math.add", '{"x":"é"}'),)


def test_given_text_behind_a_call_when_decoded_then_the_order_is_kept() -> None:
    body = line({"content": "a"}) + line(calls({"name": "f"})) + line({"content": "b"}) + last(counted=None)
    assert events(body) == [TextDelta("a"), ToolCall("", "f", "{}"), TextDelta("b"), Finish("tool_calls")]


@pytest.mark.parametrize(
    ("reason", "ours"), [("stop", "stop"), (None, "stop"), ("length", "length"), ("load", "other"), ("unload", "other")]
)
def test_given_a_reason_to_be_done_when_decoded_then_it_is_ours(reason: str | None, ours: str) -> None:
    assert said(line({"content": "a"}) + last(reason)).finish == ours


def test_given_a_cut_answer_with_calls_when_decoded_then_it_stays_cut() -> None:
    assert said(line(calls({"name": "f"})) + last("length")).finish == "length"


@pytest.mark.parametrize("counted", [None, 0])
def test_given_no_count_of_the_prompt_when_decoded_then_usage_is_left_to_be_estimated(counted: int | None) -> None:
    assert said(line({"content": "a"}) + last(counted=counted)).usage is None


def test_given_hidden_reasoning_when_thinking_comes_then_it_is_kept_for_the_next_request() -> None:
    body = line({"thinking": "Hm"}) + line({"thinking": " é."}) + line({"content": "yes"}) + last(counted=None)
    assert events_of(DIALECT, ask(expose_reasoning=False), [body]) == [
        TextDelta("yes"),
        Artefact("ollama", '"Hm é."'),
        Finish("stop"),
    ]


def test_given_an_error_line_when_decoded_then_it_follows_what_was_said() -> None:
    reader, decoder = DIALECT.reader(), DIALECT.decoder(ask())
    body = line({"content": "Yes"}) + b'{"error":"model runner crashed"}\n'
    assert decoder.feed(reader.push(body)) == [TextDelta("Yes")]
    assert (decoder.done, decoder.finished) == (True, False)
    with pytest.raises(Overloaded, match="model runner crashed"):
        decoder.end()


def test_given_no_last_line_when_the_stream_ends_then_it_is_truncated_and_no_call_came_out() -> None:
    reader, decoder = DIALECT.reader(), DIALECT.decoder(ask())
    assert decoder.feed(reader.push(line({"content": "a"}) + line(calls({"name": "f"})))) == [TextDelta("a")]
    with pytest.raises(Truncated):
        decoder.end()


def test_given_a_last_line_without_its_end_when_decoded_then_it_counts_only_if_it_is_whole() -> None:
    body = (line({"content": "Hello"}) + last(counted=7, output=2)).rstrip()
    assert put_together(events(body)) == Said("Hello", usage=Usage(7, 2), finish="stop")
    with pytest.raises(Truncated):
        events(body[:-1])


def test_given_broken_characters_when_decoded_then_they_are_replaced_and_nothing_else_is_lost() -> None:
    body = b'{"message":{"content":"a\xffb\\ud83d"},"done":false}\n' + last(counted=None)
    assert put_together(events(body)) == Said("a\ufffdb\ufffd", finish="stop")


def test_given_an_unreadable_line_when_the_stream_ends_well_then_it_is_an_error_all_the_same() -> None:
    with pytest.raises(ProviderError) as caught:
        events(line({"content": "a"}) + b"{nonsense\n" + last())
    assert (caught.value.code, caught.value.retryable) == ("bad_stream", True)


def test_given_a_web_page_when_decoded_then_it_is_said_to_be_no_answer() -> None:
    with pytest.raises(Unreachable, match="OLLAMA_HOST") as caught:
        events(b"<html>\nsign in\n</html>\n")
    assert not caught.value.retryable


def test_given_an_answer_in_one_piece_when_decoded_then_object_and_lines_are_both_read() -> None:
    whole = line({"content": "a"}) + last(counted=None)
    one = last(counted=None).replace(b'"content":""', b'"content":"a"')
    for body in (whole, one, one.rstrip()):
        decoder = DIALECT.decoder(ask())
        assert decoder.feed_whole(body) == [TextDelta("a")]
        assert decoder.end() == [Finish("stop")]
    assert DIALECT.decoder(ask()).feed_whole(b"<html>sign in</html>") is None
    assert DIALECT.decoder(ask()).feed_whole(b'{"ok":true}') is None


@given(
    st.lists(st.sampled_from([b'{"a":"\xc3\xa9\xe2\x80\xa8"}', b"", b"  ", b"1"]), max_size=6),
    st.sampled_from([b"\n", b"\r\n"]),
    st.lists(st.integers(0, 80), max_size=5),
    st.booleans(),
)
def test_given_lines_when_they_come_in_any_pieces_then_the_reader_gives_those_that_are_not_blank(
    lines: list[bytes], end: bytes, cuts: list[int], mark: bool
) -> None:
    body = (b"\xef\xbb\xbf" if mark and lines else b"") + end.join(lines)
    reader, found = LineReader(), list[bytes]()
    places = sorted({0, *(min(cut, len(body)) for cut in cuts), len(body)})
    for start, stop in itertools.pairwise(places):
        found += reader.push(body[start:stop])
    assert found + reader.close() == [text for text in lines if text.strip()]


def test_given_a_line_without_end_when_it_passes_the_limit_then_it_is_refused() -> None:
    reader = LineReader(limit=10)
    with pytest.raises(ProviderError) as caught:
        reader.push(b"12345678901")
    assert caught.value.code == "event_too_large"
