"""Answers of the messages wire: every rule by bytes of our own, however they are cut."""

from __future__ import annotations

import contextlib
import json

import pytest
from anthropic_wire import (
    SOURCE,
    answer,
    begin,
    closed,
    decode,
    decode_pieces,
    delta,
    event,
    new_decoder,
    opened,
    stopped,
    text,
    thinking,
    tool_use,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from deepstrike.errors import BadRequest, Overloaded, ProviderError, Truncated
from deepstrike.providers.base import Artefact, Finish, ToolCall
from deepstrike.stream import TextDelta, ThinkingDelta
from deepstrike.wire.message import Notice, Usage

USED = Usage(10, 5)


def test_given_text_when_decoded_then_its_pieces_are_followed_by_usage_and_finish() -> None:
    assert decode(answer(text(0, "Hällo ", "wörld"))) == [TextDelta("Hällo "), TextDelta("wörld"), USED, Finish("stop")]


def test_given_thinking_when_decoded_then_it_is_shown_and_kept_with_its_signature() -> None:
    kept = '{"type":"thinking","thinking":"Let me check.","signature":"c2ln"}'
    assert decode(answer(thinking(0, "Let me check.", "c2ln"), text(1, "Yes."))) == [
        ThinkingDelta("Let me check."),
        Artefact(SOURCE, kept),
        TextDelta("Yes."),
        USED,
        Finish("stop"),
    ]


def test_given_thinking_whose_text_is_left_out_when_decoded_then_the_signature_is_kept() -> None:
    body = answer(
        opened(0, type="thinking", thinking="", signature=""),
        delta(0, "signature_delta", signature="c2ln"),
        closed(0),
        text(1, "Yes."),
    )
    assert decode(body)[0] == Artefact(SOURCE, '{"type":"thinking","thinking":"","signature":"c2ln"}')


def test_given_thinking_that_is_not_to_be_shown_when_decoded_then_it_is_still_kept() -> None:
    events = decode_pieces([answer(thinking(0, "hm", "s"), text(1, "Yes."))], new_decoder(expose_reasoning=False))
    assert events[:2] == [Artefact(SOURCE, '{"type":"thinking","thinking":"hm","signature":"s"}'), TextDelta("Yes.")]


def test_given_redacted_thinking_when_decoded_then_it_is_kept_as_it_came_and_not_shown() -> None:
    body = answer(opened(0, type="redacted_thinking", data="ZW5j"), closed(0), text(1, "Yes."))
    assert decode(body)[:2] == [Artefact(SOURCE, '{"type":"redacted_thinking","data":"ZW5j"}'), TextDelta("Yes.")]


def test_given_thinking_cut_before_its_signature_when_decoded_then_nothing_of_it_is_kept() -> None:
    body = answer(opened(0, type="thinking", thinking=""), delta(0, "thinking_delta", thinking="hm"), closed(0))
    assert decode(body) == [ThinkingDelta("hm"), USED, Finish("stop")]


def test_given_a_call_in_pieces_when_decoded_then_it_is_whole_with_its_text_as_the_model_wrote_it() -> None:
    body = answer(tool_use(0, "toolu_1", "add", '{"x": ', "1.0", ', "y":2}'), reason="tool_use")
    assert decode(body) == [ToolCall("toolu_1", "add", '{"x": 1.0, "y":2}'), USED, Finish("tool_calls")]


@pytest.mark.parametrize("pieces", [(), ("",), (" ",)])
def test_given_a_call_without_arguments_when_decoded_then_they_are_an_empty_object(pieces: tuple[str, ...]) -> None:
    body = answer(tool_use(0, "toolu_1", "now", *pieces), reason="tool_use")
    assert decode(body)[0] == ToolCall("toolu_1", "now", "{}")


def test_given_a_call_whose_input_comes_with_its_opening_when_decoded_then_it_counts() -> None:
    body = answer(opened(0, type="tool_use", id="t", name="f", input={"a": 1}), closed(0), reason="tool_use")
    assert decode(body)[0] == ToolCall("t", "f", '{"a":1}')


def test_given_pieces_of_two_calls_in_turn_when_decoded_then_each_goes_to_the_block_of_its_index() -> None:
    body = answer(
        opened(0, type="tool_use", id="t0", name="f", input={}),
        opened(1, type="tool_use", id="t1", name="g", input={}),
        delta(1, "input_json_delta", partial_json='{"b":'),
        delta(0, "input_json_delta", partial_json='{"a":1}'),
        delta(1, "input_json_delta", partial_json="2}"),
        closed(0),
        closed(1),
        reason="tool_use",
    )
    assert decode(body)[:2] == [ToolCall("t0", "f", '{"a":1}'), ToolCall("t1", "g", '{"b":2}')]


def test_given_thinking_between_calls_when_decoded_then_the_order_of_the_blocks_stays() -> None:
    body = answer(
        thinking(0, "a", "s1"), tool_use(1, "t1", "f", "{}"), thinking(2, "b", "s2"), tool_use(3, "t2", "g", "{}")
    )
    kept = [one for one in decode(body) if isinstance(one, ToolCall | Artefact)]
    assert kept == [
        Artefact(SOURCE, '{"type":"thinking","thinking":"a","signature":"s1"}'),
        ToolCall("t1", "f", "{}"),
        Artefact(SOURCE, '{"type":"thinking","thinking":"b","signature":"s2"}'),
        ToolCall("t2", "g", "{}"),
    ]


def test_given_a_cut_input_under_max_tokens_when_decoded_then_it_stays_cut_and_the_finish_says_length() -> None:
    body = answer(tool_use(0, "t", "save", '{"title": "Draft"', ', "body": "Lor'), reason="max_tokens")
    cut = ToolCall("t", "save", '{"title": "Draft", "body": "Lor')
    assert decode(body) == [cut, USED, Finish("length")]


def test_given_a_call_without_pieces_under_max_tokens_when_decoded_then_it_is_not_taken_for_whole() -> None:
    assert decode(answer(tool_use(0, "t", "save"), reason="max_tokens"))[0] == ToolCall("t", "save", "")


def test_given_the_wire_name_of_a_tool_when_decoded_then_the_call_has_the_tools_own() -> None:
    decoder = new_decoder(names={"files_read_1": "files.read"})
    events = decode_pieces([answer(tool_use(0, "t", "files_read_1", "{}"), reason="tool_use")], decoder)
    assert events[0] == ToolCall("t", "files.read", "{}")


def test_given_two_texts_in_a_row_when_decoded_then_a_boundary_keeps_them_apart() -> None:
    assert decode(answer(text(0, "a"), text(1, "b")))[:3] == [TextDelta("a"), Artefact(SOURCE, "null"), TextDelta("b")]


def test_given_a_text_with_citations_when_decoded_then_it_is_kept_with_them() -> None:
    citation = {"type": "char_location", "cited_text": "x", "document_index": 0}
    body = answer(
        opened(0, type="text", text="", citations=[]),
        delta(0, "text_delta", text="Green"),
        delta(0, "citations_delta", citation=citation),
        closed(0),
    )
    kept = json.dumps({"type": "text", "text": "Green", "citations": [citation]}, separators=(",", ":"))
    assert decode(body)[:2] == [TextDelta("Green"), Artefact(SOURCE, kept)]


def test_given_the_services_own_tool_when_decoded_then_its_call_is_kept_whole_and_never_ours_to_run() -> None:
    found = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"type": "x", "n": 1e2}]}
    body = answer(
        opened(0, type="server_tool_use", id="srv_1", name="web_search", input={}),
        delta(0, "input_json_delta", partial_json='{"query": '),
        delta(0, "input_json_delta", partial_json='"rust"}'),
        closed(0),
        opened(1, **found),
        closed(1),
        text(2, "Found."),
    )
    asked = '{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"query": "rust"}}'
    assert decode(body) == [
        Artefact(SOURCE, asked),
        Artefact(SOURCE, json.dumps(found, separators=(",", ":"))),
        TextDelta("Found."),
        USED,
        Finish("stop"),
    ]


def test_given_the_services_own_tool_with_a_cut_input_when_decoded_then_nothing_of_it_is_kept() -> None:
    cut = opened(0, type="server_tool_use", id="srv_1", name="web_search", input={})
    body = answer(cut, delta(0, "input_json_delta", partial_json='{"query": "ru'), closed(0), reason="max_tokens")
    assert decode(body) == [USED, Finish("length")]


def test_given_a_delta_of_a_kind_that_is_new_when_decoded_then_its_fields_are_those_of_the_block() -> None:
    body = answer(
        opened(0, type="compaction", content=None),
        delta(0, "compaction_delta", content="Sum"),
        delta(0, "compaction_delta", content="mary"),
        closed(0),
    )
    assert decode(body)[0] == Artefact(SOURCE, '{"type":"compaction","content":"Summary"}')


def test_given_pings_padding_and_events_of_a_new_kind_when_decoded_then_they_are_passed_over() -> None:
    news = event("brand_new", index=7) + event("brand_new", delta="of another form")
    body = begin() + event("ping") + news + text(0, "a") + stopped("end_turn")
    padded = body.replace(b"}\n\n", b"}      \n\n")
    assert decode(padded) == [TextDelta("a"), USED, Finish("stop")]


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "tool_calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("something_new", "other"),
    ],
)
def test_given_a_stop_reason_when_decoded_then_it_is_this_finish(reason: str, finish: str) -> None:
    assert decode(answer(reason=reason)) == [USED, Finish(finish)]


def test_given_a_refusal_when_decoded_then_its_reason_is_told_and_its_calls_are_dropped() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "not this"}
    body = begin() + text(0, "Well") + tool_use(1, "t", "f", "{}") + stopped("refusal", stop_details=details)
    assert decode(body) == [
        TextDelta("Well"),
        Notice("refused", "the model declined to answer (cyber: not this)"),
        USED,
        Finish("content_filter"),
    ]


def test_given_running_totals_when_decoded_then_the_last_ones_count_and_include_the_cached_part() -> None:
    start = begin(input_tokens=31, cache_creation_input_tokens=7, cache_read_input_tokens=100, output_tokens=3)
    counts = {
        "input_tokens": 31,
        "cache_read_input_tokens": 100,
        "output_tokens": 58,
        "output_tokens_details": {"thinking_tokens": 40},
    }
    body = start + text(0, "ok") + stopped("end_turn", counts)
    assert decode(body)[1] == Usage(138, 58, cached=100, cache_write=7, reasoning=40)


def test_given_calls_that_the_service_made_itself_when_decoded_then_they_are_added() -> None:
    calls = [
        {"type": "compaction", "input_tokens": 1_000, "output_tokens": 100},
        {"type": "message", "input_tokens": 10, "output_tokens": 5},
    ]
    body = begin() + text(0, "ok") + stopped("end_turn", {"iterations": calls})
    assert decode(body)[1] == Usage(1_010, 105)


def test_given_thinking_that_the_service_left_out_when_decoded_then_it_is_told() -> None:
    left_out = [{"type": "thinking_dropped", "path": "messages.1", "reason": "prefix_binding_mismatch"}] * 2
    message = {"type": "message", "usage": {"input_tokens": 10}, "input_transformations": left_out}
    body = event("message_start", message=message) + text(0, "ok") + stopped("end_turn")
    told = "the service left out 2 earlier thinking block(s): prefix_binding_mismatch"
    assert decode(body)[0] == Notice("artefact_dropped", told)


def test_given_an_error_behind_text_when_decoded_then_the_text_is_kept_and_the_error_names_itself() -> None:
    broken = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
    decoder = new_decoder()
    seen = decoder.feed(
        [line[6:] for line in (begin() + text(0, "Half an") + broken).split(b"\n") if line[:5] == b"data:"]
    )
    assert seen == [TextDelta("Half an")]
    assert decoder.done
    with pytest.raises(Overloaded, match="overloaded_error: Overloaded") as caught:
        decoder.end()
    assert caught.value.retryable


def test_given_a_refused_request_inside_a_stream_when_decoded_then_it_is_not_tried_again() -> None:
    body = begin() + event("error", error={"type": "invalid_request_error", "message": "no"})
    with pytest.raises(BadRequest) as caught:
        decode_pieces([body])
    assert not caught.value.retryable


@pytest.mark.parametrize("error", ["odd", {"unknown": 1}, 5])
def test_given_an_error_of_an_odd_form_when_decoded_then_the_call_fails(error: object) -> None:
    with pytest.raises(ProviderError):
        decode_pieces([begin() + event("error", error=error)])


def test_given_a_stream_cut_anywhere_before_its_stop_reason_when_decoded_then_it_is_truncated_and_gives_no_call() -> (
    None
):
    body = begin() + thinking(0, "hm", "s") + tool_use(1, "t", "f", '{"a":1}')
    for cut in range(len(body) + 1):
        decoder = new_decoder()
        with pytest.raises(Truncated):
            decode_pieces([body[:cut]], decoder)
        assert not decoder.finished


def test_given_no_end_marker_behind_the_stop_reason_when_decoded_then_the_answer_is_whole() -> None:
    body = answer(text(0, "a")).removesuffix(event("message_stop"))
    assert decode_pieces([body]) == [TextDelta("a"), USED, Finish("stop")]


def test_given_blocks_that_are_not_closed_when_decoded_then_the_stop_reason_closes_them() -> None:
    body = answer(tool_use(0, "t", "f", "{}"), reason="tool_use").replace(closed(0), b"")
    assert decode_pieces([body])[0] == ToolCall("t", "f", "{}")


def test_given_a_lone_surrogate_in_a_text_when_decoded_then_the_text_is_kept() -> None:
    broken = answer(text(0, "ok XX end")).replace(b"XX", b"\\ud83d")
    assert decode_pieces([broken])[0] == TextDelta("ok \ufffd end")


def test_given_a_part_that_cannot_be_read_when_there_are_calls_then_they_are_not_trusted() -> None:
    body = answer(tool_use(0, "t", "f", '{"a":1}'), reason="tool_use")
    broken = body.replace(b'"partial_json"', b'"partial_json')
    with pytest.raises(ProviderError) as caught:
        decode_pieces([broken])
    assert (caught.value.code, caught.value.retryable) == ("bad_stream", True)


def test_given_a_part_that_cannot_be_read_when_there_is_only_text_then_the_rest_counts() -> None:
    broken = answer(text(0, "a")).replace(b'data: {"type":"content_block_stop"', b'data: {"type":content_block_stop"')
    assert decode_pieces([broken]) == [TextDelta("a"), USED, Finish("stop")]


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "text", "input"]), inner),
    max_leaves=5,
)
_kinds = st.sampled_from(
    ["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "error", "x"]
)
_names = st.sampled_from(["index", "delta", "content_block", "message", "usage", "error"])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(_kinds, st.dictionaries(_names, _json)), max_size=6), st.booleans())
def test_given_events_of_any_form_when_decoded_then_nothing_but_a_providers_error_comes_of_them(
    events: list[tuple[str, dict[str, object]]], ends: bool
) -> None:
    body = begin() + b"".join(event(kind, **fields) for kind, fields in events) + (stopped("end_turn") if ends else b"")
    with contextlib.suppress(ProviderError):
        assert decode_pieces([body])[-1] in (Finish("stop"), Finish("other"))


def test_given_a_whole_message_instead_of_a_stream_when_decoded_then_it_says_the_same() -> None:
    message = {
        "type": "message",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "Yes."},
            {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }
    decoder = new_decoder()
    events = decoder.feed_whole(json.dumps(message).encode())
    assert events is not None
    assert events + decoder.end() == [
        ThinkingDelta("hm"),
        Artefact(SOURCE, '{"type":"thinking","thinking":"hm","signature":"s"}'),
        TextDelta("Yes."),
        ToolCall("t", "f", '{"a": 1}'),
        USED,
        Finish("tool_calls"),
    ]


@pytest.mark.parametrize(
    "body", [b'{"type":"error","error":{"type":"x"}}', b"<html>", b"[]", b"{}", b'{"type":"message"}']
)
def test_given_a_document_that_is_no_message_when_read_whole_then_it_is_no_answer(body: bytes) -> None:
    assert new_decoder().feed_whole(body) is None
