"""Answers of Gemini: what their bytes mean."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from gemini_ollama_wires import asked, events_of, read
from wires import Said, put_together

from deepstrike.errors import BadRequest, Overloaded, ProviderError, QuotaExhausted, Truncated
from deepstrike.providers.base import Artefact, Finish, ToolCall
from deepstrike.providers.dialects.gemini.dialect import GeminiDialect
from deepstrike.stream import TextDelta, ThinkingDelta
from deepstrike.wire.message import Notice, ToolSpec, Usage

if TYPE_CHECKING:
    from deepstrike.providers.base import ModelEvent
    from deepstrike.providers.dialects.base import Asked

CRLF = b"\r\n\r\n"
DIALECT = GeminiDialect()


def event(*parts: object, finish: str | None = None, **more: object) -> bytes:
    """One event with these parts."""
    candidate: dict[str, object] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return b"data: " + json.dumps({"candidates": [candidate], **more}, ensure_ascii=False).encode() + CRLF


def call(**extensions: object) -> Asked:
    tools = (ToolSpec("math.add", "", '{"type":"object"}'),)
    return asked(model="gemini-3.8-flash", source="gemini", tools=tools, extensions=extensions)


def said(body: bytes) -> Said:
    return put_together(read(DIALECT, call(), body))


def events(body: bytes) -> list[ModelEvent]:
    return events_of(DIALECT, call(), [body])


def test_given_thoughts_text_and_counts_when_decoded_then_the_last_count_holds_and_output_includes_thoughts() -> None:
    body = event({"text": "Hm. ", "thought": True}, usageMetadata={"promptTokenCount": 7, "thoughtsTokenCount": 3})
    body += event({"text": "Ça va "}, usageMetadata={"promptTokenCount": 9, "candidatesTokenCount": 1})
    counts = {
        "promptTokenCount": 9,
        "cachedContentTokenCount": 4,
        "candidatesTokenCount": 2,
        "thoughtsTokenCount": 3,
        "toolUsePromptTokenCount": 1,
        "totalTokenCount": 15,
    }
    body += event({"text": "\u2028 très bien 🎉"}, finish="STOP", usageMetadata=counts)
    assert said(body) == Said("Ça va \u2028 très bien 🎉", "Hm. ", (), Usage(10, 5, 4, 0, 3), "stop")


def test_given_no_count_of_the_answer_when_decoded_then_it_is_what_the_total_leaves() -> None:
    counts = {"promptTokenCount": 10, "thoughtsTokenCount": 5, "totalTokenCount": 21}
    assert said(event({"text": "a"}, finish="STOP", usageMetadata=counts)).usage == Usage(10, 11, 0, 0, 5)


def test_given_calls_when_decoded_then_stop_means_tool_calls_and_absent_arguments_are_empty() -> None:
    parts = (
        {"functionCall": {"name": "math_add_9e2c", "args": {"b": 1, "a": "é"}, "id": "x1"}},
        {"functionCall": {"name": "now", "args": None}},
        {"functionCall": {"name": "now"}},
    )
    result = said(event(*parts) + event({"text": ""}, finish="STOP"))
    assert result == Said(
        calls=(
            ToolCall("x1", "math_add_9e2c", '{"b": 1, "a": "é"}'),
            ToolCall("", "now", "{}"),
            ToolCall("", "now", "{}"),
        ),
        finish="tool_calls",
    )


def test_given_a_tool_whose_name_changed_on_the_wire_when_called_then_its_own_name_comes_back() -> None:
    from deepstrike.providers.dialects.names import wire_name

    result = said(event({"functionCall": {"name": wire_name("math.add"), "args": {}}}, finish="STOP"))
    assert result.calls == (ToolCall("", "math.add", "{}"),)


def test_given_signatures_when_decoded_then_each_stands_beside_its_part_byte_for_byte() -> None:
    body = (
        b'data: {"candidates":[{"content":{"parts":[{"text":"Let me "},'
        b'{"text":"see.","thoughtSignature":"a\\/+b="}]}}]}'
        + CRLF
        + b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"},"thoughtSignature":"c=="},'
        b'{"functionCall":{"name":"g"}},{"text":"","thoughtSignature":"d"}]},"finishReason":"STOP"}]}' + CRLF
    )
    assert events(body) == [
        TextDelta("Let me "),
        TextDelta("see."),
        Artefact("gemini", '{"on":"text","chars":4,"signature":"a\\/+b="}'),
        Artefact("gemini", '{"on":"call","chars":0,"signature":"c=="}'),
        ToolCall("", "f", "{}"),
        ToolCall("", "g", "{}"),
        Artefact("gemini", '{"on":"text","chars":0,"signature":"d"}'),
        Finish("tool_calls"),
    ]


def test_given_text_behind_a_call_when_decoded_then_the_order_is_kept() -> None:
    body = event({"text": "a"}) + event({"functionCall": {"name": "f"}}) + event({"text": "b"}, finish="STOP")
    assert events(body) == [TextDelta("a"), ToolCall("", "f", "{}"), TextDelta("b"), Finish("tool_calls")]


def test_given_hidden_reasoning_when_thoughts_come_then_only_their_signature_is_kept() -> None:
    body = event({"text": "hm", "thought": True, "thoughtSignature": "s"}, {"text": "yes"}, finish="STOP")
    assert events_of(DIALECT, call(expose_reasoning=False), [body]) == [
        Artefact("gemini", '{"on":"thought","chars":0,"signature":"s"}'),
        TextDelta("yes"),
        Finish("stop"),
    ]
    assert events(body)[0] == ThinkingDelta("hm")


@pytest.mark.parametrize(
    ("reason", "ours"),
    [("MAX_TOKENS", "length"), ("STOP", "stop"), ("SOMETHING_NEW", "other")]
    + [(word, "content_filter") for word in ("SAFETY", "RECITATION", "PROHIBITED_CONTENT", "SPII", "BLOCKLIST")],
)
def test_given_a_finish_reason_when_decoded_then_it_is_ours(reason: str, ours: str) -> None:
    assert said(event({"text": "a"}, finish=reason)).finish == ours


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "OTHER"])
def test_given_an_answer_that_the_service_could_not_use_when_decoded_then_it_may_be_asked_again(reason: str) -> None:
    with pytest.raises(ProviderError, match=reason) as caught:
        events(event(finish=reason))
    assert (caught.value.code, caught.value.retryable) == ("bad_answer", True)


def test_given_a_missing_signature_when_told_by_the_finish_then_asking_again_is_no_help() -> None:
    with pytest.raises(BadRequest, match="MISSING_THOUGHT_SIGNATURE"):
        events(event(finish="MISSING_THOUGHT_SIGNATURE"))


def test_given_a_blocked_prompt_when_decoded_then_the_finish_and_a_notice_say_so() -> None:
    body = (
        b'data: {"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":4}}' + CRLF
    )
    assert events(body) == [
        Usage(4, 0),
        Notice("content_filter", "the service stopped the prompt (PROHIBITED_CONTENT)"),
        Finish("content_filter"),
    ]


def test_given_a_candidate_without_content_or_parts_when_decoded_then_it_is_an_empty_answer() -> None:
    assert said(b'data: {"candidates":[{"content":{"role":"model"},"finishReason":"STOP"}]}\n\n') == Said(finish="stop")
    assert said(b'data: {"candidates":[{"finishReason":"MAX_TOKENS"}]}\n\n') == Said(finish="length")


def test_given_no_finish_reason_when_the_stream_ends_then_it_is_truncated_and_no_call_came_out() -> None:
    reader, decoder = DIALECT.reader(), DIALECT.decoder(call())
    body = event({"text": "a"}) + event({"functionCall": {"name": "f"}})
    assert decoder.feed(reader.push(body)) == [TextDelta("a")]
    assert not decoder.finished
    with pytest.raises(Truncated):
        decoder.end()


def test_given_a_last_event_without_its_blank_line_when_decoded_then_it_counts_only_if_it_is_whole() -> None:
    body = event({"text": "a"}, finish="STOP").rstrip()
    assert put_together(events(body)) == Said("a", finish="stop")
    with pytest.raises(Truncated):
        events(body[:-1])


def test_given_an_error_inside_the_stream_when_decoded_then_it_follows_what_was_said() -> None:
    reader, decoder = DIALECT.reader(), DIALECT.decoder(call())
    body = event({"text": "a"}) + b'data: {"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}' + CRLF
    assert decoder.feed(reader.push(body)) == [TextDelta("a")]
    assert decoder.done
    with pytest.raises(Overloaded, match="overloaded") as caught:
        decoder.end()
    assert caught.value.status == 503


def test_given_broken_characters_when_decoded_then_they_are_replaced_and_nothing_else_is_lost() -> None:
    body = b'data: {"candidates":[{"content":{"parts":[{"text":"a\xffb\\ud83d"}]},"finishReason":"STOP"}]}\n\n'
    assert put_together(events(body)) == Said("a\ufffdb\ufffd", finish="stop")


def test_given_an_unreadable_event_when_the_stream_ends_well_then_it_is_an_error_all_the_same() -> None:
    with pytest.raises(ProviderError) as caught:
        events(b"data: {nonsense\n\n" + event({"text": "a"}, finish="STOP"))
    assert (caught.value.code, caught.value.retryable) == ("bad_stream", True)


def test_given_an_answer_in_one_piece_when_decoded_then_object_and_list_are_both_read() -> None:
    one = {"candidates": [{"content": {"parts": [{"text": "a"}]}}]}
    two = {"candidates": [{"content": {"parts": [{"text": "b"}]}, "finishReason": "STOP"}]}
    decoder = DIALECT.decoder(call())
    assert decoder.feed_whole(json.dumps([one, two]).encode()) == [TextDelta("a"), TextDelta("b")]
    assert decoder.end() == [Finish("stop")]
    decoder = DIALECT.decoder(call())
    assert decoder.feed_whole(json.dumps(two, indent=1).encode()) == [TextDelta("b")]
    assert DIALECT.decoder(call()).feed_whole(b"<html>sign in</html>") is None
    assert DIALECT.decoder(call()).feed_whole(b'{"ok":true}') is None


def test_given_a_daily_quota_inside_an_answer_of_one_piece_when_decoded_then_it_is_final() -> None:
    from deepstrike.providers.faults import Faults
    from deepstrike.providers.gemini import GEMINI
    from deepstrike.providers.redact import Mask

    body = (
        b'[{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"q","violations":'
    )
    body += b'[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]}}]'
    fault, _ = Faults(Mask([]), GEMINI.words).http(429, "application/json", body, None)
    assert type(fault) is QuotaExhausted


def test_given_parts_behind_the_end_when_decoded_then_they_are_none_of_the_answer() -> None:
    late: object = {"functionCall": {"name": "late", "args": {}}}
    body = event({"text": "done"}, finish="STOP") + event({"text": " more"}, late)
    body += event(usageMetadata={"promptTokenCount": 3, "candidatesTokenCount": 1})
    assert said(body) == Said("done", usage=Usage(3, 1), finish="stop")
