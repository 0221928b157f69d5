"""The collected faults against the public providers and the runner, where they lie beside the checkout."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cases import AREAS, CASES, Case, run_case
from wire_runs import KEY, ONCE, SOON, Outcome, chat, minimax, run
from wires import event, stream

from deepstrike import RuntimeOptions, RuntimeRunner
from deepstrike.providers.deepseek import DeepSeekProvider
from deepstrike.providers.retry import RetryConfig
from deepstrike.sessions.memory import InMemorySessionLog
from deepstrike.stream import ErrorEvent, TextDelta
from deepstrike.testing.server import ModelServer, Raw

pytestmark = pytest.mark.skipif(not CASES, reason="no cases beside the checkout")

MUST = [case for case in CASES.values() if case.level == "must"]
ON_THE_WIRE = [case for case in MUST if case.wire]
SPLIT_THINK = ("RSN-05", "RSN-06", "RSN-12", "RSN-15")
# No bytes stand in these: they are met with our own, in test_wire_runs.py, whether the cases are there or not.
ALONE = {
    "OLL-05",
    "RET-01",
    "RET-03",
    "RET-05",
    "RET-09",
    "RET-12",
    "RET-13",
    "RSN-03",
    "RSN-10",
    "SEC-01",
    "SEC-02",
    "SEC-04",
    "TARG-01",
    "TARG-03",
    "TARG-06",
    "TARG-09",
    "USE-05",
    "USE-07",
}
# What a tool gives back and how much of it stays in the prompt is not the providers' business.
OF_OTHERS = {"TARG-11"}


def test_given_the_cases_of_the_providers_areas_when_counted_then_each_that_must_hold_is_met_here() -> None:
    assert {case.id for case in MUST} == {case.id for case in ON_THE_WIRE} | ALONE | OF_OTHERS
    assert {case.area for case in MUST} == set(AREAS)


def maker(case: Case) -> dict[str, Any]:
    return {"make": minimax} if case.id in SPLIT_THINK else {}


def whole_calls(case: Case) -> list[tuple[str, object]]:
    return [(name, arguments) for name, arguments in case.expect.get("calls", ()) if arguments != "INVALID"]


@pytest.mark.parametrize("case", ON_THE_WIRE, ids=str)
async def test_given_the_bytes_of_a_case_when_a_run_meets_them_then_it_says_and_does_what_is_right(case: Case) -> None:
    outcome = await run_case(case, **maker(case))
    calls = whole_calls(case)
    assert [(name, arguments) for _, name, arguments in outcome.calls] == calls
    assert outcome.refused == []
    if "ids" in case.expect:
        assert [call_id for call_id, *_ in outcome.calls] == case.expect["ids"]
    if "text" in case.expect:
        assert outcome.text == case.expect["text"] + ("ok" if len(outcome.requests) > 1 else "")
    if "think" in case.expect:
        assert outcome.thinking == case.expect["think"]
    if "usage" in case.expect:
        assert outcome.usage == tuple(case.expect["usage"])
    if case.expect.get("end") in ("error", "truncated") or case.id == "SSE-16":
        assert (outcome.done.status, len(outcome.of(ErrorEvent)), len(outcome.requests)) == ("error", 1, 1)
    elif case.expect.get("end") == "complete" or calls:
        assert (outcome.done.status, outcome.error) == ("completed", "")


@pytest.mark.parametrize("case", [case for case in ON_THE_WIRE if not case.reset], ids=str)
async def test_given_the_bytes_of_a_case_when_they_come_one_at_a_time_then_nothing_changes(case: Case) -> None:
    whole = await run_case(case, **maker(case))
    single = await run_case(case, [case.body[at : at + 1] for at in range(len(case.body))], **maker(case))
    assert shown(single) == shown(whole)


def shown(outcome: Outcome) -> tuple[object, ...]:
    """What a run said and did, however it was cut into pieces; made-up ids differ."""
    calls = [(name, arguments) for _, name, arguments in outcome.calls]
    return (
        outcome.text,
        outcome.thinking,
        calls,
        sorted(map(repr, outcome.ran)),
        outcome.usage,
        outcome.done.status,
    )


async def test_sse_06_given_a_pause_between_events_then_the_first_is_shown_before_the_second_is_sent() -> None:
    first = CASES["SSE-06"].body.split(b"\r\n\r\n", 1)[0] + b"\r\n\r\n"
    with ModelServer([Raw([first], end="stall")]) as server:
        async for one in RuntimeRunner(RuntimeOptions(provider=chat(server.base_url, ONCE))).run_streaming("go"):
            assert one == TextDelta("one ")
            break


async def test_sse_13_given_a_chunk_of_usage_alone_then_it_reaches_the_total() -> None:
    assert (await run_case(CASES["SSE-13"])).done.total_tokens == 15


async def test_sse_15_given_an_error_in_the_stream_then_its_words_are_told_and_the_breaker_counts_it() -> None:
    breaking = RetryConfig(max_retries=0, circuit_open_after=1)
    outcome = await run_case(CASES["SSE-15"], retry=breaking)
    assert "upstream overloaded" in outcome.error
    assert [one.code for one in outcome.events if one.type == "notice"] == ["circuit_open"]


async def test_tcs_04_given_empty_ids_behind_the_first_then_the_result_goes_back_under_that() -> None:
    outcome = await run_case(CASES["TCS-04"])
    assert [one["tool_call_id"] for one in outcome.messages(1, "tool")] == ["call_9"]


async def test_tcs_09_given_calls_without_arguments_then_each_goes_back_with_an_empty_object() -> None:
    outcome = await run_case(CASES["TCS-09"])
    [message] = outcome.messages(1, "assistant")
    assert [call["function"]["arguments"] for call in message["tool_calls"]] == ["{}"] * 3


async def test_tcs_12_given_calls_without_ids_then_each_has_one_of_its_own_everywhere() -> None:
    outcome = await run_case(CASES["TCS-12"])
    [message] = outcome.messages(1, "assistant")
    ids = [call_id for call_id, *_ in outcome.calls]
    assert len(set(ids)) == 2
    assert all(ids)
    assert [one.call_id for one in outcome.results] == ids
    assert [call["id"] for call in message["tool_calls"]] == ids
    assert [one["tool_call_id"] for one in outcome.messages(1, "tool")] == ids


async def test_fin_02_given_a_finish_of_calls_without_any_then_it_ends_at_once() -> None:
    case = CASES["FIN-02"]
    outcome = await run_case(case, otherwise=case.reply(), max_turns=25)
    assert len(outcome.requests) <= 2
    assert outcome.done.status in ("completed", "error")


@pytest.mark.parametrize("name", ["FIN-03", "ANT-07"])
async def test_given_a_call_cut_by_the_output_limit_then_it_is_not_run_and_that_is_said(name: str) -> None:
    case = CASES[name]
    outcome = await run_case(case, otherwise=case.reply())
    assert outcome.ran == []
    assert len(outcome.requests) <= 5
    assert (outcome.done.status, "limit" in outcome.error) == ("error", True)
    for request in outcome.requests[1:]:
        json.dumps(request)


async def test_fin_07_given_a_filtered_answer_then_the_filter_is_named_after_one_request() -> None:
    outcome = await run_case(CASES["FIN-07"])
    assert (len(outcome.requests), outcome.done.status) == (1, "error")
    assert "filter" in outcome.error


async def test_ant_01_given_a_call_without_arguments_then_it_goes_back_with_an_object() -> None:
    outcome = await run_case(CASES["ANT-01"])
    [message] = outcome.messages(1, "assistant")
    assert [block["input"] for block in message["content"] if block["type"] == "tool_use"] == [{}]


async def test_ant_03_given_an_overload_behind_text_then_it_is_named_and_the_text_stays_single() -> None:
    breaking = RetryConfig(max_retries=2, base_delay=0.01, circuit_open_after=1)
    outcome = await run_case(CASES["ANT-03"], retry=breaking)
    assert (outcome.text.count("Half an"), outcome.done.status, len(outcome.requests)) == (1, "error", 1)
    assert "overloaded" in outcome.error.lower()
    assert [one.code for one in outcome.events if one.type == "notice"] == ["circuit_open"]


async def test_ant_04_given_an_overload_before_anything_then_it_is_tried_again() -> None:
    outcome = await run_case(CASES["ANT-04"], retry=SOON)
    assert (outcome.text, outcome.done.status, len(outcome.requests)) == ("ok", "completed", 2)


async def test_oll_01_given_calls_without_ids_then_their_results_go_back_in_order() -> None:
    outcome = await run_case(CASES["OLL-01"])
    assert sorted(str(arguments["city"]) for _, arguments in outcome.ran) == ["Nice", "Riga"]
    assert len({call_id for call_id, *_ in outcome.calls}) == 2
    assert [one["content"] for one in outcome.messages(1, "tool")] == [one.content for one in outcome.results]


async def test_oll_03_given_an_error_line_then_its_words_are_told() -> None:
    assert "model runner crashed" in (await run_case(CASES["OLL-03"])).error


async def test_oll_04_given_lines_without_the_last_one_then_it_is_no_answer() -> None:
    case = CASES["OLL-04"]
    lines = case.body.split(b"\n")
    outcome = await run_case(case, [b"\n".join(lines[:-1]) + b"\n"])
    assert outcome.done.status == "error"


async def test_use_01_given_running_counts_then_the_total_is_that_of_the_last() -> None:
    assert (await run_case(CASES["USE-01"])).done.total_tokens == 189


async def test_ret_06_given_a_reset_behind_text_then_the_text_is_never_said_twice() -> None:
    better = Raw([stream(event({"content": "The capital is X"}))])
    outcome = await run_case(CASES["RET-06"], retry=SOON, otherwise=better)
    assert (outcome.text, outcome.done.status, len(outcome.requests)) == ("The cap", "error", 1)
    assert "broke in mid-answer" in outcome.error


async def test_ret_07_given_a_reset_before_text_then_it_is_tried_again() -> None:
    fine = Raw([stream(event({"content": "fine"}))])
    outcome = await run_case(CASES["RET-07"], retry=SOON, otherwise=fine)
    assert (outcome.text, outcome.done.status, len(outcome.requests)) == ("fine", "completed", 2)


async def test_rsn_01_given_thinking_at_deepseek_then_it_goes_back_word_for_word() -> None:
    outcome = await run_case(
        CASES["RSN-01"],
        make=lambda url, retry: DeepSeekProvider(KEY, "deepseek-v4-flash", base_url=url, retry_config=retry),
    )
    assert [one["reasoning_content"] for one in outcome.messages(1, "assistant")] == ["Need the weather."]


@pytest.mark.parametrize("expose", [True, False])
async def test_rsn_05_given_details_at_minimax_then_they_are_asked_for_and_go_back(expose: bool) -> None:
    outcome = await run_case(CASES["RSN-05"], make=minimax, extensions={"expose_reasoning": expose})
    details = [{"type": "reasoning.text", "text": "check stock"}]
    assert outcome.requests[0]["reasoning_split"] is True
    assert [one["reasoning_details"] for one in outcome.messages(1, "assistant")] == [details]
    assert (outcome.thinking, "check stock" in outcome.text) == ("check stock" if expose else "", False)


async def test_rsn_07_given_signed_and_hidden_thinking_then_both_go_back_as_they_came_also_from_the_log() -> None:
    case = CASES["RSN-07"]
    log = InMemorySessionLog()
    first = await run_case(case, session_log=log, session_id="s")
    again = await run(kind="anthropic", session_log=log, session_id="s")
    *thoughts, call = case.expect["seq"]
    for content in (first.messages(1, "assistant")[0]["content"], again.messages(0, "assistant")[0]["content"]):
        assert content[:2] == thoughts
        assert (content[2]["type"], content[2]["id"]) == ("tool_use", call["id"])


async def test_rsn_15_given_a_tag_that_never_closes_then_the_limit_is_told() -> None:
    outcome = await run_case(CASES["RSN-15"], make=minimax)
    assert (outcome.text, outcome.done.status, bool(outcome.error)) == ("", "error", True)


async def test_targ_07_given_an_unknown_tool_beside_a_good_one_then_the_good_one_runs() -> None:
    outcome = await run_case(CASES["TARG-07"])
    assert outcome.ran == [("add", {"x": 1, "y": 2})]
    assert [one.is_error for one in outcome.results] == [True, False]
    assert "add" in outcome.results[0].content
