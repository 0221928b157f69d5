"""Chunks that are not quite JSON, or not quite of the form that everybody agreed on."""

from __future__ import annotations

import logging

import pytest
from wires import DONE, STOP, Said, call_event, decode, decode_pieces, event, put_together

from deepstrike.errors import Overloaded, ProviderError, Truncated
from deepstrike.providers.base import ToolCall
from deepstrike.providers.dialects.chat.decode import ChatDecoder
from deepstrike.providers.faults import Faults
from deepstrike.providers.redact import Mask
from deepstrike.stream import TextDelta
from deepstrike.wire.message import Usage


def payload(text: bytes) -> bytes:
    return b"data: " + text + b"\n\n"


def first_choice(rest: bytes) -> bytes:
    return payload(b'{"choices":[{"index":0,' + rest + b"}]}")


def call_piece(text: bytes) -> bytes:
    return first_choice(b'"delta":{"tool_calls":[' + text + b"]}")


CALL_ENDS = first_choice(b'"delta":{},"finish_reason":"tool_calls"') + DONE
ONE_CALL = (ToolCall("c", "f", '{"x":1}'),)

ODD: dict[str, tuple[bytes, Said]] = {
    "a lone surrogate beside the finish": (
        first_choice(b'"delta":{"content":"a\\ud83d b"},"finish_reason":"stop"') + DONE,
        Said("a� b", finish="stop"),
    ),
    "bytes that are no UTF-8": (
        first_choice(b'"delta":{"content":"a\xff b"},"finish_reason":"stop"') + DONE,
        Said("a� b", finish="stop"),
    ),
    "NaN in a field of no interest": (
        payload(b'{"score":NaN,"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}'),
        Said("a", finish="stop"),
    ),
    "Infinity inside the usage": (
        STOP + payload(b'{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"speed":Infinity}}'),
        Said(usage=Usage(7, 2), finish="stop"),
    ),
    "counts as text": (
        STOP + payload(b'{"choices":[],"usage":{"prompt_tokens":"7","completion_tokens":"2"}}'),
        Said(usage=Usage(7, 2), finish="stop"),
    ),
    "the choice's index as text": (
        payload(b'{"choices":[{"index":"0","delta":{"content":"ours"}},{"index":"1","delta":{"content":"other"}}]}')
        + STOP,
        Said("ours", finish="stop"),
    ),
    "the choice's index with a point": (
        payload(b'{"choices":[{"index":0.0,"delta":{"content":"a"},"finish_reason":"stop"}]}'),
        Said("a", finish="stop"),
    ),
    "the call's index as text": (
        call_piece(b'{"index":"0","id":"c","function":{"name":"f","arguments":"{\\"x\\":"}}')
        + call_piece(b'{"index":"0","function":{"arguments":"1}"}}')
        + CALL_ENDS,
        Said(calls=ONE_CALL, finish="tool_calls"),
    ),
    "an id of a wrong form": (
        call_piece(b'{"index":0,"id":{},"function":{"name":"f","arguments":"{\\"x\\":1}"}}') + CALL_ENDS,
        Said(calls=(ToolCall("", "f", '{"x":1}'),), finish="tool_calls"),
    ),
    "an id with a point": (
        call_piece(b'{"index":0,"id":42.0,"function":{"name":"f","arguments":{"x":1}}}') + CALL_ENDS,
        Said(calls=(ToolCall("42", "f", '{"x":1}'),), finish="tool_calls"),
    ),
    "a lone surrogate among the arguments": (
        call_event({"index": 0, "id": "c", "function": {"name": "f", "arguments": '{"y":"'}})
        + call_piece(b'{"index":0,"function":{"arguments":"\\ud83d\\"}"}}')
        + CALL_ENDS,
        Said(calls=(ToolCall("c", "f", '{"y":"�"}'),), finish="tool_calls"),
    ),
    "bytes that are no UTF-8 among the arguments": (
        call_piece(b'{"index":0,"id":"c","function":{"name":"f","arguments":{"y":"\xff"}}}') + CALL_ENDS,
        Said(calls=(ToolCall("c", "f", '{"y":"�"}'),), finish="tool_calls"),
    ),
    "fields of wrong forms everywhere": (
        first_choice(
            b'"delta":{"content":5,"reasoning":[],"refusal":{},"tool_calls":{},"function_call":"f"},"finish_reason":[]'
        )
        + first_choice(b'"delta":[],"finish_reason":"stop"'),
        Said("5", finish="stop"),
    ),
    "parts of wrong forms": (
        first_choice(
            b'"delta":{"content":["a",{"type":1,"text":"b"},{"type":"thinking","thinking":[{"text":"hm"},null]}]}'
        )
        + STOP,
        Said("ab", thinking="hm", finish="stop"),
    ),
    "JSON that is no object": (
        payload(b'"ping"') + event({"content": "a"}) + payload(b"[]") + STOP,
        Said("a", finish="stop"),
    ),
    "a last event without its blank line": (
        event({"content": "a"}) + first_choice(b'"delta":{"content":"\\ud83d"},"finish_reason":"stop"').rstrip(),
        Said("a�", finish="stop"),
    ),
}


@pytest.mark.parametrize(("body", "said"), ODD.values(), ids=ODD)
def test_given_an_odd_chunk_when_it_is_cut_anywhere_then_nothing_legible_is_lost(body: bytes, said: Said) -> None:
    assert decode(body) == said


def test_given_an_odd_error_object_when_it_comes_then_its_message_is_raised() -> None:
    body = event({"content": "a"}) + payload(b'{"error":{"message":"down \\ud83d","code":502},"at":NaN}')
    with pytest.raises(Overloaded, match="down �"):
        decode_pieces([body])


def test_given_an_odd_whole_answer_when_it_is_read_then_it_is_the_answer() -> None:
    decoder = ChatDecoder({}, Faults(Mask([])))
    body = b'{"choices":[{"index":"0","message":{"content":"a\\ud83d"},"finish_reason":"stop"}]}'
    assert decoder.feed_whole(body) == [TextDelta("a�")]
    assert decoder.finished


@pytest.mark.parametrize("lost", [b'{"choices":[{"delta":{"tool_calls":[{"index', b'{"x":' + b"[" * 100_000, b"oops"])
def test_given_what_is_no_json_when_calls_were_told_of_and_none_came_then_the_stream_is_bad(lost: bytes) -> None:
    with pytest.raises(ProviderError, match="tool calls cannot be trusted") as caught:
        decode_pieces([payload(lost) + CALL_ENDS])
    assert (caught.value.code, caught.value.retryable) == ("bad_stream", True)


def test_given_a_call_of_an_unreadable_form_when_none_came_then_the_stream_is_bad() -> None:
    with pytest.raises(ProviderError, match="tool calls cannot be trusted") as caught:
        decode_pieces([first_choice(b'"delta":{"tool_calls":"f()"}') + CALL_ENDS])
    assert (caught.value.code, caught.value.retryable) == ("bad_stream", True)


def test_given_json_of_no_use_when_there_are_calls_then_they_stand_and_the_log_shows_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    whole = call_event({"index": 0, "id": "c", "function": {"name": "f", "arguments": '{"x":1}'}})
    with caplog.at_level(logging.WARNING, "deepstrike.providers"):
        events = decode_pieces([whole + payload(b'"ping"') + CALL_ENDS])
    assert put_together(events) == Said(calls=ONE_CALL, finish="tool_calls")
    assert [record.getMessage().rsplit(": ", 1)[1] for record in caplog.records] == ['"ping"']


def test_given_an_odd_chunk_that_is_cut_when_the_body_ends_then_it_is_not_taken_for_whole() -> None:
    body = first_choice(b'"delta":{"content":"\\ud83d"},"finish_reason":"stop"').rstrip()
    for cut in range(len(body)):
        with pytest.raises(Truncated):
            decode_pieces([body[:cut]])
