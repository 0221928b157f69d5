"""Events of the Responses dialect, by their bytes."""

from __future__ import annotations

import json
import random

import pytest
from responses_wires import (
    SOURCE,
    added,
    called_in_pieces,
    compact,
    completed,
    decode,
    decode_pieces,
    delta,
    done,
    event,
    function_call,
    incomplete,
    message,
    new_decoder,
    reasoning,
    said_in_pieces,
    told,
    usage,
    whole,
)
from wires import Said, put_together

from deepstrike.errors import (
    BadRequest,
    ContextOverflow,
    Overloaded,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    Truncated,
)
from deepstrike.providers.base import Artefact, Finish, ToolCall
from deepstrike.providers.openai import ReasoningRefused
from deepstrike.stream import TextDelta, ThinkingDelta
from deepstrike.wire.message import Usage

START = event("response.created", response=whole(status="in_progress")) + event("response.in_progress", response={})


def artefact(item: object) -> Artefact:
    return Artefact(SOURCE, compact(item))


def call_frame(item_id: str) -> Artefact:
    return artefact({"id": item_id, "type": "function_call", "status": "completed"})


def message_frame(item_id: str, *lengths: int, **more: object) -> Artefact:
    parts = [{"type": "output_text", "annotations": [], "text": length} for length in lengths]
    fields = {"id": item_id, "type": "message", "status": "completed", "content": parts, "role": "assistant"}
    return artefact({**fields, **more})


def test_given_text_in_pieces_when_decoded_then_it_streams_and_is_counted() -> None:
    body = START + said_in_pieces(0, "Grüße 🌍") + completed(usage=usage(9, 4, 3))
    assert decode(body) == [
        TextDelta("Grü"),
        TextDelta("ße "),
        TextDelta("🌍"),
        message_frame("msg_0", 7),
        Usage(9, 4, cached=3),
        Finish("stop"),
    ]


def test_given_reasoning_and_calls_when_decoded_then_all_items_come_in_their_order_at_the_end() -> None:
    secret = reasoning("rs_0", "gAAA_\\u00e9-x")
    body = b"".join(
        (
            START,
            added(0, {"id": "rs_0", "type": "reasoning", "summary": []}),
            done(0, secret),
            called_in_pieces(1, "add", '{"x":1}', "call_a"),
            called_in_pieces(2, "now", "", "call_b"),
            completed(usage=usage(20, 9, reasoned=5)),
        )
    )
    assert decode(body) == [
        artefact(secret),
        ToolCall("call_a", "add", '{"x":1}'),
        call_frame("fc_1"),
        ToolCall("call_b", "now", "{}"),
        call_frame("fc_2"),
        Usage(20, 9, reasoning=5),
        Finish("tool_calls"),
    ]


def test_given_a_commentary_before_a_call_when_decoded_then_its_phase_is_kept() -> None:
    body = START + said_in_pieces(0, "First, I look.", phase="commentary") + called_in_pieces(1, "look", "{}")
    assert [one for one in decode(body + completed()) if not isinstance(one, TextDelta)] == [
        message_frame("msg_0", 14, phase="commentary"),
        ToolCall("call_1", "look", "{}"),
        call_frame("fc_1"),
        Finish("tool_calls"),
    ]


def test_given_text_behind_a_call_when_decoded_then_the_call_is_told_before_it() -> None:
    body = START + called_in_pieces(0, "look", "{}") + said_in_pieces(1, "And.") + completed()
    assert decode(body)[:3] == [ToolCall("call_1", "look", "{}"), call_frame("fc_0"), TextDelta("And")]


def test_given_interleaved_items_when_decoded_then_the_output_index_tells_them_apart() -> None:
    pieces = [
        added(0, {**function_call("a", "", "call_a", "fc_a"), "status": "in_progress"}),
        added(1, {**function_call("b", "", "call_b", "fc_b"), "status": "in_progress"}),
        delta(1, '{"n":', "function_call_arguments"),
        delta(0, '{"n":', "function_call_arguments"),
        delta(1, "2}", "function_call_arguments"),
        delta(0, "1}", "function_call_arguments"),
    ]
    calls = (ToolCall("call_a", "a", '{"n":1}'), ToolCall("call_b", "b", '{"n":2}'))
    assert told(START + b"".join(pieces) + completed()) == Said(calls=calls, finish="tool_calls")


def test_given_a_server_that_only_sends_whole_items_when_decoded_then_nothing_is_missing() -> None:
    items = (reasoning("r", "s", "Hm."), message("Well."), function_call("add", '{"x":1}'))
    body = b"".join(event("response.output_item.done", item=item) for item in items) + completed()
    said = Said("Well.", "Hm.", (ToolCall("call_1", "add", '{"x":1}'),), None, "tool_calls")
    assert told(body) == said
    assert told(completed(*items)) == said
    assert told(b"".join(done(0, item) for item in items) + completed(*items)) == said


def test_given_the_whole_response_at_the_end_when_decoded_then_nothing_is_told_twice() -> None:
    items = (reasoning(), message("One.", "msg_1"), function_call("f", "{}", "call_2", "fc_2"))
    stream = done(0, items[0]) + said_in_pieces(1, "One.") + called_in_pieces(2, "f", "{}", "call_2")
    assert decode(START + stream + completed(*items)) == decode(START + stream + completed())
    nameless = [{key: value for key, value in item.items() if key != "id"} for item in items]
    bare = delta(1, "One.") + done(1, nameless[1])
    assert told(bare + completed(nameless[1])).text == "One."


def test_given_a_message_without_its_end_when_decoded_then_the_whole_response_completes_it() -> None:
    assert told(added(0, message("")) + delta(0, "One") + completed(message("One."))).text == "One."


def test_given_arguments_as_an_object_or_none_when_decoded_then_they_are_json_text() -> None:
    for given, text in (({"x": 1}, '{"x":1}'), (None, "{}"), ("null", "{}"), ("", "{}"), ('{"x": 1}', '{"x": 1}')):
        assert told(done(0, function_call("f", given)) + completed()).calls == (ToolCall("call_1", "f", text),)


def test_given_a_name_that_was_mapped_when_decoded_then_it_is_the_tools_own() -> None:
    events = decode_pieces(
        [called_in_pieces(0, "fs_read_1", "{}") + completed()], new_decoder({"fs_read_1": "fs.read"})
    )
    assert events[0] == ToolCall("call_1", "fs.read", "{}")


def test_given_a_summary_of_several_parts_when_decoded_then_they_are_paragraphs_of_thinking() -> None:
    kind = "reasoning_summary_text"
    pieces = delta(0, "Let", kind, summary_index=0) + delta(0, " me.", kind, summary_index=0)
    body = added(0, reasoning()) + pieces + delta(0, "Done.", kind, summary_index=1)
    item = reasoning("rs_1", "gAAA", "Let me.", "Done.")
    assert told(body + done(0, item) + said_in_pieces(1, "42") + completed()).thinking == "Let me.\n\nDone."
    assert told(done(0, item) + said_in_pieces(1, "42") + completed()).thinking == "Let me.\n\nDone."
    hidden = decode_pieces([body + done(0, item) + said_in_pieces(1, "42") + completed()], new_decoder(expose=False))
    assert hidden[:2] == [artefact(item), TextDelta("42")]


def test_given_the_open_reasoning_of_other_models_when_decoded_then_it_is_thinking() -> None:
    item = {"id": "rs", "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Plan."}]}
    stream = delta(0, "Pl", "reasoning_text") + delta(0, "an.", "reasoning_text") + done(0, item)
    assert told(stream + said_in_pieces(1, "ok") + completed()) == Said("ok", "Plan.", finish="stop")


def test_given_reasoning_that_nothing_can_read_again_when_decoded_then_it_is_no_artefact() -> None:
    item = {"id": "rs", "type": "reasoning", "summary": []}
    assert decode(done(0, item) + said_in_pieces(1, "ok") + completed())[0] == TextDelta("ok")


def test_given_a_refusal_when_decoded_then_it_is_the_text() -> None:
    item = {**message(""), "content": [{"type": "refusal", "refusal": "I cannot."}]}
    body = START + added(0, message("")) + delta(0, "I ", "refusal") + delta(0, "cannot.", "refusal") + done(0, item)
    frame = {**item, "content": [{"type": "refusal", "refusal": 9}]}
    assert decode(body + completed()) == [TextDelta("I "), TextDelta("cannot."), artefact(frame), Finish("stop")]


def test_given_an_item_of_another_kind_when_decoded_then_it_is_kept_as_it_came() -> None:
    item = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"query": "x"}, "content": 5}
    assert decode(done(0, reasoning()) + done(1, item) + said_in_pieces(2, "ok") + completed())[:2] == [
        artefact(reasoning()),
        artefact(item),
    ]


def test_given_the_output_limit_inside_reasoning_when_decoded_then_nothing_is_kept_of_it() -> None:
    body = START + done(0, reasoning()) + incomplete("max_output_tokens", reasoning())
    assert decode(body) == [Finish("length")]


def test_given_the_output_limit_inside_arguments_when_decoded_then_the_cut_call_is_the_last_one() -> None:
    cut = function_call("write", '{"path":"a', "call_2", "fc_2", status="incomplete")
    body = START + called_in_pieces(1, "read", "{}") + done(2, cut) + incomplete("max_output_tokens")
    assert decode(body) == [
        ToolCall("call_1", "read", "{}"),
        call_frame("fc_1"),
        ToolCall("call_2", "write", '{"path":"a'),
        Finish("length"),
    ]
    unended = added(2, {**cut, "arguments": ""}) + delta(2, '{"path":"a', "function_call_arguments")
    assert told(unended + incomplete("max_output_tokens")) == Said(
        calls=(ToolCall("call_2", "write", '{"path":"a'),), finish="length"
    )
    assert told(START + done(2, cut) + incomplete("content_filter")) == Said(finish="content_filter")
    assert told(START + incomplete("something new")) == Said(finish="other")


BROKEN = {"code": "server_error", "message": "it broke"}


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (event("error", error={"type": "insufficient_quota", "code": "insufficient_quota", "message": "no money"})
         + event("response.failed", response=whole(status="failed", error=BROKEN)), QuotaExhausted, "no money"),
        (event("error", code="rate_limit_exceeded", message="slow", param=None), RateLimited, "slow"),
        (event("response.failed", response=whole(status="failed", error=BROKEN)), Overloaded, "it broke"),
        (event("response.failed", response=whole(status="failed")), Overloaded, "status 'failed'"),
        (event("response.failed"), Overloaded, "status 'failed'"),
        (event("error", code="context_length_exceeded", message="too long"), ContextOverflow, "too long"),
        (event("error", error={"code": "invalid_prompt", "message": "no"}), BadRequest, "no"),
        (event("error", error={"code": "invalid_encrypted_content", "message": "lost"}), ReasoningRefused, "lost"),
        (completed(error=BROKEN), Overloaded, "it broke"),
        (completed(status="cancelled"), Overloaded, "status 'cancelled'"),
    ],
)  # fmt: skip
def test_given_an_error_inside_the_stream_when_decoded_then_it_is_raised_behind_what_was_said(
    body: bytes, kind: type[ProviderError], words: str
) -> None:
    for pieces in ([body], [body[i : i + 1] for i in range(len(body))]):
        decoder = new_decoder()
        with pytest.raises(kind, match=words) as caught:
            decode_pieces([said_in_pieces(0, "so far"), *pieces], decoder)
        assert type(caught.value) is kind
        assert decoder.done


def test_given_a_stream_that_ends_early_when_decoded_then_it_is_truncated_and_no_call_is_told() -> None:
    body = START + done(0, reasoning()) + said_in_pieces(1, "Text.") + called_in_pieces(2, "f", "{}") + completed()
    payloads = [line[6:] for line in body.split(b"\n") if line.startswith(b"data: ")]
    for count in range(len(payloads)):
        decoder = new_decoder()
        events = decoder.feed(payloads[:count]) + decoder.feed_last(payloads[count][:-1])
        assert "Text.".startswith("".join(one.delta for one in events if isinstance(one, TextDelta)))
        assert not any(isinstance(one, ToolCall) for one in events)
        assert not decoder.finished
        with pytest.raises(Truncated):
            decoder.end()


def test_given_no_blank_line_at_the_end_when_decoded_then_the_answer_is_whole() -> None:
    body = said_in_pieces(0, "ok") + completed()
    assert put_together(decode_pieces([body.rstrip(b"\n")])) == Said("ok", finish="stop")


def test_given_an_answer_in_one_piece_when_read_then_it_says_the_same() -> None:
    items = (reasoning("rs", "s", "Hm."), message("Well."), function_call("add", '{"x":1}'))
    decoder = new_decoder()
    events = decoder.feed_whole(compact(whole(*items, usage=usage(3, 2))).encode())
    assert events is not None
    said = put_together(events + decoder.end())
    assert said == Said("Well.", "Hm.", (ToolCall("call_1", "add", '{"x":1}'),), Usage(3, 2), "tool_calls")
    for other in (b"<html>", b'{"error":{"message":"x"}}', b'{"object":"list"}', b"[]", b""):
        assert new_decoder().feed_whole(other) is None


def test_given_bytes_that_are_no_utf8_and_lone_surrogates_when_decoded_then_the_rest_is_read() -> None:
    body = delta(0, "a%b").replace(b"%", b"\xff") + delta(0, "c%d").replace(b"%", b"\\ud83d") + completed()
    assert told(body).text == "a\ufffdbc\ufffdd"


def test_given_a_payload_that_cannot_be_read_when_decoded_then_calls_are_not_trusted() -> None:
    torn = b'data: {"type":"response.output_item.done","item":{"type"\n\n'
    with pytest.raises(ProviderError, match="could not be read") as caught:
        decode(said_in_pieces(0, "ok") + torn + completed())
    assert caught.value.code == "bad_stream"
    recovered = told(said_in_pieces(0, "ok") + torn + completed(message("ok", "msg_0"), function_call("f", "{}")))
    assert recovered == Said("ok", calls=(ToolCall("call_1", "f", "{}"),), finish="tool_calls")


def test_given_foreign_and_empty_events_when_decoded_then_they_are_passed_over() -> None:
    odd = b": keep-alive\n\ndata: [DONE]\n\ndata: \n\n" + event("response.audio.delta", delta={"x": 1}) + event("ping")
    body = odd + event("response.output_text.delta", delta=None) + event("response.output_text.delta", delta=["x"])
    assert told(body + said_in_pieces(0, "ok") + odd + completed()) == Said("ok", finish="stop")


def test_given_what_follows_the_last_event_when_decoded_then_it_is_not_looked_at() -> None:
    assert told(said_in_pieces(0, "ok") + completed() + event("error", message="late")) == Said("ok", finish="stop")


def test_given_odd_usage_when_decoded_then_it_is_none_or_made_plausible() -> None:
    def counted(given: object) -> Usage | None:
        return told(said_in_pieces(0, "ok") + completed(usage=given)).usage

    assert counted(None) is None
    assert counted({"input_tokens": 0, "output_tokens": 0}) is None
    assert counted({"input_tokens": {}}) is None
    assert counted({"input_tokens": "7", "output_tokens": 2.0, "input_tokens_details": None}) == Usage(7, 2)
    assert counted(json.loads('{"input_tokens":5,"output_tokens":1,"input_tokens_details":{"cached_tokens":9}}')) == (
        Usage(5, 1, cached=5)
    )


def test_given_thinking_when_the_stream_breaks_off_then_only_it_was_told() -> None:
    decoder = new_decoder()
    stream = delta(0, "Hm.", "reasoning_summary_text") + done(0, reasoning()) + called_in_pieces(1, "f", "{}")
    events = decoder.feed([line[6:] for line in stream.split(b"\n") if line.startswith(b"data: ")])
    assert events == [ThinkingDelta("Hm.")]


def test_given_bad_bytes_in_a_field_that_nobody_reads_when_decoded_then_the_item_is_kept() -> None:
    item = function_call("f", '{"x":1}', namespace="a%b", note="c%d")
    body = done(0, item) + completed()
    torn = body.replace(b"a%b", b"a\xffb").replace(b"c%d", b"c\\ud83dd")
    frame = {"id": "fc_1", "type": "function_call", "status": "completed", "namespace": "a\ufffdb", "note": "c\ufffdd"}
    assert decode(torn) == [ToolCall("call_1", "f", '{"x":1}'), artefact(frame), Finish("tool_calls")]


ODD: tuple[object, ...] = (
    None,
    0,
    -1,
    1.5,
    "",
    [],
    {},
    True,
    [None],
    {"type": "output_text", "text": None},
    10**30,
    "\ud83d",
)


def altered(value: object, chance: random.Random) -> object:
    """`value` with a field left out or replaced here and there."""
    if chance.random() < 0.06:
        return chance.choice(ODD)
    if isinstance(value, dict):
        return {key: altered(inner, chance) for key, inner in value.items() if chance.random() > 0.06}
    return [altered(inner, chance) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("seed", range(100))
def test_given_events_with_odd_fields_when_decoded_then_it_is_an_answer_or_a_providers_error(seed: int) -> None:
    chance = random.Random(seed)
    items = (reasoning("rs_0", "s", "Hm."), message("So.", "msg_1"), function_call("f", "{}", "c", "fc_2"))
    stream = done(0, items[0]) + said_in_pieces(1, "So.") + called_in_pieces(2, "f", "{}", "c") + completed(*items)
    payloads = [json.loads(line[6:]) for line in stream.split(b"\n") if line.startswith(b"data: ")]
    body = b"".join(b"data: %b\n\n" % json.dumps(altered(one, chance)).encode() for one in payloads)
    try:
        events = decode_pieces([body])
    except ProviderError:
        return
    assert [type(one) for one in events].index(Finish) == len(events) - 1
    assert all(json.loads(one.text) for one in events if isinstance(one, Artefact))
