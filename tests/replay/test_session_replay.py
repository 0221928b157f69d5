"""A replayed session comes out as it was recorded, and what was changed in it is found and named."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest
from samples import SESSIONS, Hand, recorded

from deepstrike.errors import CorruptLog, SessionError
from deepstrike.kernel import RENDERER
from deepstrike.replay.differences import Difference
from deepstrike.replay.proof import Divergence, Replay, replay
from deepstrike.wire.message import Text

Json = dict[str, object]


def turns_of(records: list[bytes]) -> int:
    return sum(json.loads(line)["event"]["type"] == "replied" for line in records)


def changed(records: list[bytes], seq: int, change: Callable[[Json], object]) -> list[bytes]:
    """The records with the event of record `seq` changed in place."""
    record = json.loads(records[seq])
    change(record["event"])
    return [*records[:seq], msgspec.json.encode(record), *records[seq + 1 :]]


def first(records: list[bytes], kind: str) -> int:
    """The seq of the first record of a kind."""
    return next(seq for seq, line in enumerate(records) if json.loads(line)["event"]["type"] == kind)


@pytest.mark.parametrize("name", SESSIONS)
async def test_given_a_session_when_replayed_then_every_record_comes_out_as_recorded(name: str) -> None:
    records = await recorded(name)

    turns = turns_of(records)
    assert replay(records) == Replay("s", len(records), len(records), turns, turns, None, ())


@pytest.mark.parametrize("name", SESSIONS)
async def test_given_every_prefix_of_a_session_when_replayed_then_none_differs(name: str) -> None:
    records = await recorded(name)

    for length in range(len(records) + 1):
        report = replay(records[:length])
        assert (report.divergence, report.proved) == (None, length)


async def test_given_a_changed_closing_when_replayed_then_its_record_and_field_are_named() -> None:
    records = await recorded("limited")
    seq = next(seq for seq, line in enumerate(records) if b"limit reached (max_turns = 2)" in line)
    text = json.loads(records[seq])["event"]["result"]["parts"][0]["text"]

    report = replay([*records[:seq], records[seq].replace(b"not run:", b"skipped:"), *records[seq + 1 :]])

    assert report.divergence == Divergence(
        seq,
        "settled",
        "settled",
        "the call is closed with another result",
        (Difference("event.result.parts[0].text", json.dumps(text.replace("not run:", "skipped:")), json.dumps(text)),),
    )


async def test_given_a_changed_digest_when_replayed_then_the_prompt_is_named_as_the_cause() -> None:
    records = await recorded("tools")
    last = max(seq for seq, line in enumerate(records) if b'"replied"' in line)

    report = replay(changed(records, last, lambda event: event.update({"digest": "0" * 16})))

    assert report.divergence is not None
    assert (report.divergence.seq, report.divergence.cause) == (
        last,
        "the prompt renders to other bytes: what the model was asked is not what this log folds to",
    )
    assert report.turns == turns_of(records) - 1


async def test_given_a_changed_result_when_replayed_then_the_next_prompt_differs() -> None:
    records = await recorded("tools")
    settled = first(records, "settled")

    report = replay([*records[:settled], records[settled].replace(b'"45"', b'"46"'), *records[settled + 1 :]])

    assert report.divergence is not None
    assert (report.divergence.seq, report.divergence.recorded) == (settled + 1, "replied")
    assert [difference.path for difference in report.divergence.differences] == ["event.digest"]


async def test_given_another_end_when_replayed_then_both_kinds_are_named() -> None:
    records = await recorded("plain")
    ended = msgspec.json.encode(
        {"seq": 2, "at": json.loads(records[2])["at"], "event": {"type": "ended", "status": "error"}}
    )

    report = replay([*records[:2], ended])

    assert report.divergence is not None
    assert report.divergence.differences == (Difference("event.status", '"error"', '"completed"'),)
    assert report.divergence.cause == "the goal ends otherwise"


async def test_given_a_record_too_many_when_replayed_then_what_the_kernel_says_of_it_is_told() -> None:
    records = await recorded("plain")
    reply = json.loads(records[1]) | {"seq": 3, "at": json.loads(records[2])["at"]}

    report = replay([*records, msgspec.json.encode(reply)])

    assert report.divergence is not None
    assert (report.divergence.seq, report.divergence.recorded, report.divergence.replayed) == (3, "replied", "")
    assert report.divergence.cause.startswith("the kernel does not take the input that the record shows: reply answers")


async def test_given_records_with_fields_of_a_newer_version_when_replayed_then_they_do_not_count() -> None:
    records = await recorded("parallel")

    report = replay(
        [changed(records, seq, lambda event: event.update({"mood": "fine"}))[seq] for seq in range(len(records))]
    )

    assert (report.divergence, report.proved, report.warnings) == (None, len(records), ())


async def test_given_a_record_that_may_be_skipped_when_replayed_then_it_is_passed_over_and_told() -> None:
    records = await recorded("plain")
    at = json.loads(records[-1])["at"]
    dreamt = b'{"seq":3,"at":%d,"event":{"type":"dreamt"},"optional":true}' % at

    report = replay([*records, dreamt])

    assert report == Replay(
        "s", 4, 3, 1, 1, None, ("record 3 (unknown) is taken as it stands: no input of this version makes it",)
    )


async def test_given_a_record_that_must_not_be_skipped_when_replayed_then_the_format_that_wrote_it_is_named() -> None:
    records = await recorded("plain")
    dreamt = b'{"seq":3,"at":9999999999999,"event":{"type":"dreamt"}}'

    with pytest.raises(SessionError, match=r'"dreamt", which this version does not know.*format 1') as refused:
        replay([*records, dreamt])

    assert refused.value.code == "newer_format"


async def test_given_a_newer_format_when_replayed_then_it_is_refused_by_name() -> None:
    records = await recorded("plain")

    with pytest.raises(SessionError, match="format 2") as refused:
        replay(changed(records, 0, lambda event: event.update({"format": 2})))

    assert refused.value.code == "newer_format"


async def test_given_a_line_that_is_no_record_when_replayed_then_the_log_is_damaged() -> None:
    records = await recorded("plain")

    with pytest.raises(CorruptLog, match="record 1"):
        replay([records[0], b"{", *records[2:]])


async def test_given_a_log_of_another_renderer_when_replayed_then_its_digests_are_not_compared() -> None:
    records = await recorded("tools")

    def of_another_day(event: Json) -> None:
        if "renderer" in event:
            event["renderer"] = RENDERER + 1
        if "digest" in event:
            event["digest"] = "f" * 16

    theirs = [changed(records, seq, of_another_day)[seq] for seq in range(len(records))]
    report = replay(theirs)

    assert (report.divergence, report.proved, report.turns, report.prompts) == (None, len(records), 3, 0)


async def test_given_a_log_of_another_tokenizer_when_replayed_then_its_counts_are_taken_and_told() -> None:
    records = await recorded("tools")

    def weighed_otherwise(event: Json) -> None:
        if isinstance(tokens := event.get("tokens"), int):
            event["tokens"] = tokens + 3

    theirs = [changed(records, seq, weighed_otherwise)[seq] for seq in range(len(records))]
    report = replay(theirs)

    assert report.divergence is None
    assert report.proved == len(records)
    assert report.warnings == ("from record 0 on texts weigh other token counts; the recorded ones are taken",)


def test_given_a_batch_that_a_crash_has_cut_when_replayed_then_it_is_told_and_the_session_goes_on() -> None:
    hand = Hand()
    hand.start()
    hand.reply(Text("Done."))
    hand.records.pop()
    hand.crash()
    hand.start("Something else.")
    hand.reply(Text("Done."))

    report = replay(hand.records)

    assert report == Replay(
        "s", len(hand.records), len(hand.records), 2, 2, None, ("the batch of record 1 is cut behind record 1",)
    )


def test_given_no_records_when_replayed_then_nothing_differs() -> None:
    assert replay([]) == Replay("", 0, 0, 0, 0, None, ())


@pytest.mark.parametrize("name", [name for name in SESSIONS if name != "plain"])
async def test_given_a_session_when_a_record_of_the_kernels_own_is_left_out_then_that_is_found(name: str) -> None:
    """Left out with the seqs closed up again, so that only the decision is missing. The last may not be there yet."""
    records = await recorded(name)
    own = [seq for seq, line in enumerate(records) if json.loads(line)["event"]["type"] in ("judged", "begun", "ended")]
    for left_out in own[:-1]:
        shorter = [json.loads(line) for seq, line in enumerate(records) if seq != left_out]
        lines = [msgspec.json.encode(record | {"seq": seq}) for seq, record in enumerate(shorter)]

        assert is_found(lines)


def is_found(lines: list[bytes]) -> bool:
    try:
        report = replay(lines)
    except CorruptLog:
        return True
    return report.divergence is not None or report.warnings != ()
