"""Chat chunks in all the forms that services send them."""

from __future__ import annotations

import json
import logging

import pytest
from wires import DONE, STOP, Said, call_event, decode, decode_pieces, event, put_together, stream

from deepstrike.errors import (
    BadRequest,
    ContentFiltered,
    ContextOverflow,
    Overloaded,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    Truncated,
)
from deepstrike.providers.base import Finish, ModelEvent, ToolCall
from deepstrike.providers.dialects.chat.decode import ChatDecoder
from deepstrike.providers.faults import Faults
from deepstrike.providers.redact import Mask
from deepstrike.stream import TextDelta
from deepstrike.wire.message import Usage


def function(arguments: object = None, name: str | None = None) -> dict[str, object]:
    both = {"name": name, "arguments": arguments}
    return {key: value for key, value in both.items() if value is not None}


WEATHER = "get_weather"

CALLS: dict[str, tuple[list[bytes], list[ToolCall]]] = {
    "fragments by index": (
        [
            call_event({"index": 0, "id": "a", "function": function("", WEATHER)}),
            call_event({"index": 1, "id": "b", "function": function("", "now")}),
            call_event({"index": 0, "function": function('{"city":')}),
            call_event({"index": 1, "function": function("{}")}),
            call_event({"index": 0, "function": function('"Oslo"}')}),
        ],
        [ToolCall("a", WEATHER, '{"city":"Oslo"}'), ToolCall("b", "now", "{}")],
    ),
    "no index: pieces go to the call opened last": (
        [
            call_event({"id": "a", "function": function("", WEATHER)}),
            call_event({"function": function('{"city":')}),
            call_event({"function": function('"Oslo"}')}),
            call_event({"id": "b", "function": function("", "get_time")}),
            call_event({"function": function('{"tz":"UTC"}')}),
        ],
        [ToolCall("a", WEATHER, '{"city":"Oslo"}'), ToolCall("b", "get_time", '{"tz":"UTC"}')],
    ),
    "whole parallel calls that all say index 0": (
        [
            call_event({"index": 0, "id": f"c{n}", "function": function(f'{{"city":"{city}"}}', WEATHER)})
            for n, city in enumerate(["Rome", "Bonn", "Cork"])
        ],
        [ToolCall(f"c{n}", WEATHER, f'{{"city":"{city}"}}') for n, city in enumerate(["Rome", "Bonn", "Cork"])],
    ),
    "empty id and name on later pieces": (
        [
            call_event({"index": 0, "id": "call_9", "function": function("", WEATHER)}),
            call_event({"index": 0, "id": "", "function": {"name": "", "arguments": '{"city"'}}),
            call_event({"index": 0, "id": "", "function": {"name": "", "arguments": ':"Lima"}'}}),
        ],
        [ToolCall("call_9", WEATHER, '{"city":"Lima"}')],
    ),
    "the whole name on every piece": (
        [
            call_event({"index": 0, "id": "c", "function": function("", WEATHER)}),
            call_event({"index": 0, "function": function('{"city":', WEATHER)}),
            call_event({"index": 0, "id": "c", "function": function('"Kyiv"}', WEATHER)}),
        ],
        [ToolCall("c", WEATHER, '{"city":"Kyiv"}')],
    ),
    "arguments null first": (
        [
            call_event({"index": 0, "id": "c", "function": {"name": WEATHER, "arguments": None}}),
            call_event({"index": 0, "id": None, "function": {"name": None, "arguments": '{"city":"Pau"}'}}),
        ],
        [ToolCall("c", WEATHER, '{"city":"Pau"}')],
    ),
    "no arguments in five ways": (
        [
            call_event({"index": 0, "id": "a", "function": function("", "now")}),
            call_event({"index": 1, "id": "b", "function": function(None, "now")}),
            call_event({"index": 2, "id": "c", "function": function("null", "now")}),
            call_event({"index": 3, "id": "d", "function": function({}, "now")}),
            call_event({"index": 4, "id": "e", "function": function(" ", "now")}),
        ],
        [ToolCall(one, "now", "{}") for one in "abcde"],
    ),
    "no id ever": (
        [
            call_event({"index": 0, "function": function("{}", "f")}),
            call_event({"index": 1, "function": function("{}", "f")}),
        ],
        [ToolCall("", "f", "{}"), ToolCall("", "f", "{}")],
    ),
    "neither id nor index, whole calls in one list": (
        [call_event({"function": function('{"x":1}', "f")}, {"function": function('{"x":2}', "f")})],
        [ToolCall("", "f", '{"x":1}'), ToolCall("", "f", '{"x":2}')],
    ),
    "the id changes, without a name": (
        [
            call_event({"index": 0, "id": "A1", "function": function("", "f")}),
            call_event({"index": 0, "id": "B2", "function": function('{"x"')}),
            call_event({"index": 0, "id": "B2", "function": function(":1}")}),
        ],
        [ToolCall("A1", "f", '{"x":1}')],
    ),
    "the id comes late": (
        [
            call_event({"index": 0, "function": function("{", "f")}),
            call_event({"index": 0, "id": "late", "function": function("}")}),
        ],
        [ToolCall("late", "f", "{}")],
    ),
    "a number for an id": (
        [call_event({"index": 0, "id": 42, "function": function("{}", "f")})],
        [ToolCall("42", "f", "{}")],
    ),
    "arguments as an object": (
        [call_event({"index": 0, "id": "c", "function": function({"n": 12345678901234567890123, "é": [1.50]}, "f")})],
        [ToolCall("c", "f", '{"n":12345678901234567890123,"é":[1.5]}')],
    ),
    "two objects back to back stay as they are": (
        [call_event({"index": 0, "id": "c", "function": function('{"q":1}{"q":2}', "f")})],
        [ToolCall("c", "f", '{"q":1}{"q":2}')],
    ),
    "the old function_call": (
        [event({"function_call": {"name": "f", "arguments": ""}}), event({"function_call": {"arguments": '{"x":1}'}})],
        [ToolCall("", "f", '{"x":1}')],
    ),
    "pieces with a miscounted index": (
        [
            call_event({"index": 1, "id": "c", "function": function("", "f")}),
            call_event({"index": 2, "function": function('{"x":')}),
            call_event({"index": 2, "function": function("1}")}),
        ],
        [ToolCall("c", "f", '{"x":1}')],
    ),
}


@pytest.mark.parametrize(("events", "calls"), CALLS.values(), ids=CALLS)
def test_given_tool_calls_in_pieces_when_the_stream_ends_then_they_are_whole(
    events: list[bytes], calls: list[ToolCall]
) -> None:
    assert decode(stream(*events, finish="tool_calls")) == Said(calls=tuple(calls), finish="tool_calls")


WHOLE = b'data: {"choices":[{"index":0,"finish_reason":"stop","message":{"content":"Hi"}}]}\n\n'

ANSWERS: dict[str, tuple[bytes, Said]] = {
    "text": (stream(event({"role": "assistant", "content": ""}), event({"content": "Hi"})), Said("Hi", finish="stop")),
    "unicode separators stay in the text": (
        stream(event({"content": "a\u2028b\u2029c\u0085d"})),
        Said("a\u2028b\u2029c\u0085d", finish="stop"),
    ),
    "characters of two, three and four bytes": (
        stream(event({"content": "你好🦀é ✅"})),
        Said("你好🦀é ✅", finish="stop"),
    ),
    "no space, two spaces, an end marker without one": (
        b'data:{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n'
        b'data:  {"choices":[{"index":0,"delta":{"content":" there"},"finish_reason":"stop"}]}\n\ndata:[DONE]\n\n',
        Said("Hi there", finish="stop"),
    ),
    "comments between events": (
        b": connected\n\nid: 7\n"
        + event({"content": "o"})
        + b": ping\n\n:\n\n"
        + event({"content": "k"}, "stop")
        + DONE,
        Said("ok", finish="stop"),
    ),
    "JSON over several data lines with CRLF": (
        b'data: {\r\ndata: "choices":[{"index":0,"delta":{"content":"one"},"finish_reason":"stop"}]\r\ndata: }\r\n\r\n',
        Said("one", finish="stop"),
    ),
    "no blank line behind the last event": (
        event({"content": "ab"}) + event({"content": "c"}, "stop").rstrip(),
        Said("abc", finish="stop"),
    ),
    "no end marker": (event({"content": "fine"}) + STOP, Said("fine", finish="stop")),
    "usage behind the finish, choices empty": (
        event({"content": "Hi"})
        + STOP
        + b'data: {"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15}}\n\n'
        + DONE,
        Said("Hi", usage=Usage(12, 3), finish="stop"),
    ),
    "running totals on every chunk are not added up": (
        b"".join(
            event({"content": text}, "stop" if n == 3 else None, usage={"prompt_tokens": 10, "completion_tokens": n})
            for n, text in enumerate("abc", 1)
        ),
        Said("abc", usage=Usage(10, 3), finish="stop"),
    ),
    "zeros and nulls behind a count do not hide it": (
        event({"content": "a"}, usage={"prompt_tokens": 10, "completion_tokens": 3})
        + event({}, "stop", usage={"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0})
        + event({}, usage=None)
        + DONE,
        Said("a", usage=Usage(10, 3), finish="stop"),
    ),
    "usage inside the choice, the cached part flat": (
        b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"length","usage":'
        b'{"prompt_tokens":18,"completion_tokens":50,"cached_tokens":17}}]}\n\n' + DONE,
        Said(usage=Usage(18, 50, cached=17), finish="length"),
    ),
    "usage in all its details": (
        STOP + b'data: {"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":'
        b'{"cached_tokens":64,"cache_write_tokens":5},"completion_tokens_details":{"reasoning_tokens":12}}}\n\n',
        Said(usage=Usage(100, 20, cached=64, cache_write=5, reasoning=12), finish="stop"),
    ),
    "a finish that comes twice": (
        event({"content": "a"}, "stop") + event({}, "stop", usage={"prompt_tokens": 1, "completion_tokens": 1}) + DONE,
        Said("a", usage=Usage(1, 1), finish="stop"),
    ),
    "only the first of several answers": (
        b'data: {"choices":[{"index":1,"delta":{"content":"other"}},{"index":0,"delta":{"content":"ours"}}]}\n\n'
        b'data: {"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}\n\n' + STOP,
        Said("ours", finish="stop"),
    ),
    "null and absent deltas": (
        b'data: {"choices":[{"index":0,"delta":null}]}\n\ndata: {"choices":[{"index":0}]}\n\n'
        b'data: {"choices":null}\n\ndata: {}\n\n' + event({"content": None, "tool_calls": None}) + STOP,
        Said(finish="stop"),
    ),
    "a refusal is text": (
        stream(event({"content": None}), event({"refusal": "I cannot."})),
        Said("I cannot.", finish="stop"),
    ),
    "reasoning under either name, once": (
        stream(event({"reasoning_content": "a", "content": None}), event({"reasoning": "b"}), event({"content": "c"})),
        Said("c", thinking="ab", finish="stop"),
    ),
    "reasoning under both names at once is one": (
        stream(event({"reasoning_content": "a", "reasoning": "a"})),
        Said(thinking="a", finish="stop"),
    ),
    "content as a list of parts": (
        stream(
            event({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}),
            event({"content": [{"type": "text", "text": "Yes"}]}),
        ),
        Said("Yes", thinking="hm", finish="stop"),
    ),
    "calls although the finish says stop": (
        stream(event({"content": "Look."}), call_event({"index": 0, "id": "c", "function": function("{}", "f")})),
        Said("Look.", calls=(ToolCall("c", "f", "{}"),), finish="stop"),
    ),
    "a finish of tool_calls without a call": (stream(finish="tool_calls"), Said(finish="tool_calls")),
    "the old finish function_call": (stream(finish="function_call"), Said(finish="tool_calls")),
    "a cut call is left as it is": (
        stream(
            call_event({"index": 0, "id": "a", "function": function("{}", "f")}),
            call_event({"index": 1, "id": "b", "function": function('{"text":"# Ti', "f")}),
            finish="length",
        ),
        Said(calls=(ToolCall("a", "f", "{}"), ToolCall("b", "f", '{"text":"# Ti')), finish="length"),
    ),
    "empty arguments under length are not whole": (
        stream(call_event({"index": 0, "id": "a", "function": function("", "f")}), finish="length"),
        Said(calls=(ToolCall("a", "f", ""),), finish="length"),
    ),
    "a filtered answer": (
        stream(event({"role": "assistant", "content": ""}), finish="content_filter"),
        Said(finish="content_filter"),
    ),
    "a finish that nobody knows": (stream(finish="moon_phase"), Said(finish="other")),
    "the word null as finish is none": (
        event({"content": "a"}, "null") + event({"content": "b"}, "stop"),
        Said("ab", finish="stop"),
    ),
    "a final message that repeats the deltas": (
        event({"content": "Hi"}) + WHOLE,
        Said("Hi", finish="stop"),
    ),
    "a final message and nothing before it": (
        WHOLE,
        Said("Hi", finish="stop"),
    ),
}


@pytest.mark.parametrize(("body", "said"), ANSWERS.values(), ids=ANSWERS)
def test_given_an_answer_when_it_is_cut_anywhere_then_it_says_the_same(body: bytes, said: Said) -> None:
    assert decode(body) == said


def test_given_text_and_calls_when_decoded_then_calls_usage_and_finish_come_last_in_this_order() -> None:
    body = stream(
        call_event({"index": 0, "id": "c", "function": function("{}", "f")}),
        event({"content": "Hi"}, usage={"prompt_tokens": 1, "completion_tokens": 2}),
    )
    expected: list[ModelEvent] = [TextDelta("Hi"), ToolCall("c", "f", "{}"), Usage(1, 2), Finish("stop")]
    assert decode_pieces([body]) == expected


@pytest.mark.parametrize(
    "body",
    [b"", b"data: [DONE]\n\n", event({"content": "The three steps are: 1."}), STOP[: len(STOP) // 2], STOP[:-5]],
)
def test_given_a_stream_without_a_finish_when_it_ends_then_it_is_truncated(body: bytes) -> None:
    with pytest.raises(Truncated, match="without a finish reason") as caught:
        decode_pieces([body])
    assert caught.value.retryable


def test_given_a_whole_answer_when_it_is_cut_at_any_byte_then_it_is_never_taken_for_finished_early() -> None:
    body = event({"content": "ab"}) + event({"content": "c"}, "stop")
    finish_is_in = body.rindex(b"}") + 1
    for cut in range(finish_is_in):
        with pytest.raises(Truncated):
            decode_pieces([body[:cut]])
    assert put_together(decode_pieces([body[:finish_is_in]])) == Said("abc", finish="stop")


ERRORS: dict[str, tuple[object, type[ProviderError], str]] = {
    "a number for a code": ({"code": 502, "message": "upstream overloaded"}, Overloaded, "upstream overloaded"),
    "a status of its own": (
        {"message": "bad call", "code": "tool_use_failed", "status_code": 400},
        BadRequest,
        "bad call",
    ),
    "a server error by type": ({"message": "x", "type": "server_error"}, Overloaded, "x"),
    "a rate limit by code": ({"message": "slow", "code": "rate_limit_exceeded"}, RateLimited, "slow"),
    "no credit": ({"message": "pay", "code": "insufficient_quota"}, QuotaExhausted, "pay"),
    "too long a prompt": ({"message": "long", "code": "context_length_exceeded"}, ContextOverflow, "long"),
    "a content filter": ({"message": "no", "code": "data_inspection_failed"}, ContentFiltered, "no"),
    "a bare text": ("it broke", Overloaded, "it broke"),
    "an unknown form": ({"oops": 1}, Overloaded, "oops"),
}


@pytest.mark.parametrize(("found", "kind", "words"), ERRORS.values(), ids=ERRORS)
def test_given_an_error_inside_the_stream_when_it_comes_then_it_is_raised_with_its_message(
    found: object, kind: type[ProviderError], words: str
) -> None:
    body = event({"content": "Let me"}) + b"data: " + json.dumps({"error": found}).encode() + b"\n\n" + STOP
    with pytest.raises(ProviderError, match=words) as caught:
        decode_pieces([body])
    assert type(caught.value) is kind


def test_given_text_before_an_error_when_both_come_at_once_then_the_text_is_given_out_first() -> None:
    decoder = ChatDecoder({}, Faults(Mask([])))
    error = b'{"error":{"message":"down","code":502}}'
    text = b'{"choices":[{"delta":{"content":"Let me"}}]}'
    assert decoder.feed([text, error, text]) == [TextDelta("Let me")]
    assert decoder.done
    with pytest.raises(Overloaded, match="down"):
        decoder.end()


@pytest.mark.parametrize("reason", ["error", "insufficient_system_resource", "network_error"])
def test_given_a_finish_that_tells_of_a_failure_when_it_comes_then_it_is_an_error(reason: str) -> None:
    with pytest.raises(Overloaded, match=reason):
        decode_pieces([stream(event({"content": "a"}), finish=reason)])


def test_given_a_line_that_is_no_json_when_the_rest_is_good_then_the_text_comes_and_the_log_shows_the_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    decoder = ChatDecoder({}, Faults(Mask(["sk-secret-1"])))
    with caplog.at_level(logging.WARNING, "deepstrike.providers"):
        body = event({"content": "a"}) + b"data: hiccup sk-secret-1\n\n" + event({"content": "b"}, "stop") + DONE
        assert put_together(decode_pieces([body], decoder)) == Said("ab", finish="stop")
    assert [record.getMessage().rsplit(": ", 1)[1] for record in caplog.records] == ["hiccup ***"]


def test_given_a_line_that_is_no_json_when_there_are_tool_calls_then_none_of_them_is_trusted() -> None:
    body = call_event({"index": 0, "id": "c", "function": function("{}", "f")}) + b"data: {oops\n\n" + stream()
    with pytest.raises(ProviderError, match="tool calls cannot be trusted") as caught:
        decode_pieces([body])
    assert (caught.value.code, caught.value.retryable) == ("bad_stream", True)


def test_given_that_reasoning_is_not_wanted_when_it_comes_then_it_is_left_out() -> None:
    decoder = ChatDecoder({}, Faults(Mask([])), expose_reasoning=False)
    body = stream(event({"reasoning_content": "a"}), event({"content": "b"}))
    assert put_together(decode_pieces([body], decoder)) == Said("b", finish="stop")


def test_given_a_service_that_counts_reasoning_apart_when_it_reports_then_output_includes_it() -> None:
    decoder = ChatDecoder({}, Faults(Mask([])), reasoning_in_output=False)
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "completion_tokens_details": {"reasoning_tokens": 30}}
    body = stream(event({"content": "a"}, usage=usage))
    assert put_together(decode_pieces([body], decoder)).usage == Usage(9, 34, reasoning=30)


def test_given_a_mapped_tool_name_when_the_model_calls_it_then_the_tools_own_name_comes_back() -> None:
    decoder = ChatDecoder({"fs_read_1234567890": "fs.read"}, Faults(Mask([])))
    body = stream(call_event({"index": 0, "id": "c", "function": function("{}", "fs_read_1234567890")}))
    assert put_together(decode_pieces([body], decoder)).calls == (ToolCall("c", "fs.read", "{}"),)
