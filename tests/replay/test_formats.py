"""Logs of every released format are read, folded and replayed for ever. The files are never written anew."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from samples import recorded

from deepstrike.errors import SessionError
from deepstrike.kernel import FORMAT, RENDERER, Kernel, Newer
from deepstrike.replay.proof import Replay, replay
from deepstrike.replay.retrace import read_records
from deepstrike.replay.story import story_of

FOLDER = Path(__file__).parents[2] / "contract" / "logs"
LOGS = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.glob("format-*/*.jsonl"))
STANDS = {
    "plain": "completed",
    "tools": "completed",
    "parallel": "completed",
    "cut": "completed",
    "limited": "timeout",
    "endings": "error",
    "stopped": "completed",
    "suspended": "completed",
    "resumed": "completed",
    "disturbed": "user_abort",
}


LATEST = sorted(path.name for path in FOLDER.glob("*.jsonl"))


def lines(log: str) -> list[bytes]:
    return (FOLDER / log).read_bytes().splitlines()


def test_given_the_released_formats_when_listed_then_each_has_a_session_of_every_sort() -> None:
    assert [f"format-{number}/{name}.jsonl" for number in range(1, FORMAT + 1) for name in sorted(STANDS)] == LOGS


@pytest.mark.parametrize("log", LOGS)
def test_given_a_released_log_when_folded_then_it_stands_as_it_did(log: str) -> None:
    outcome = Kernel.replay(lines(log)).outcome()

    assert outcome is not None
    assert outcome.status == STANDS[Path(log).stem]


@pytest.mark.parametrize("log", LOGS)
def test_given_a_released_log_when_replayed_then_every_record_comes_out_as_recorded(log: str) -> None:
    records = lines(log)
    turns = sum(b'"type":"replied"' in line for line in records)

    proof = replay(records)

    # The prompts of another renderer are not compared, and with them goes what they weigh.
    same = b'"renderer":%d' % RENDERER in records[0]
    assert proof == Replay("s", len(records), len(records), turns, turns if same else 0, None, proof.warnings)
    assert all(same is False and "token counts" in warning for warning in proof.warnings)


@pytest.mark.parametrize("log", LOGS)
def test_given_a_released_log_when_told_then_no_record_is_left_out(log: str) -> None:
    records = lines(log)
    story = story_of(records)
    events = [json.loads(line)["event"] for line in records]

    assert story.records == len(read_records(records))
    assert len(story.goals) == sum(event["type"] == "started" for event in events)
    assert sum(len(goal.turns) for goal in story.goals) == sum(event["type"] == "replied" for event in events)
    settled = [call.settled for goal in story.goals for turn in goal.turns for call in turn.calls]
    assert sorted(seq for seq in settled if seq is not None) == [
        seq for seq, event in enumerate(events) if event["type"] == "settled"
    ]


@pytest.mark.parametrize("log", LOGS)
def test_given_a_log_of_a_newer_format_when_read_then_it_is_refused_by_name(log: str) -> None:
    newer = [line.replace(b'"format":%d' % FORMAT, b'"format":%d' % (FORMAT + 1)) for line in lines(log)]

    with pytest.raises(Newer, match=f"format {FORMAT + 1}"):
        Kernel.replay(newer)
    for read in (replay, story_of):
        with pytest.raises(SessionError, match=f"format {FORMAT + 1}") as refused:
            read(newer)
        assert refused.value.code == "newer_format"


@pytest.mark.parametrize("log", LATEST)
def test_given_a_session_of_the_contract_when_replayed_then_every_record_comes_out_as_recorded(log: str) -> None:
    proof = replay(lines(log))

    assert (proof.divergence, proof.proved) == (None, len(lines(log)))


async def test_given_a_compressed_session_when_made_anew_then_it_is_the_one_of_the_contract() -> None:
    records = await recorded("compressed")
    if os.environ.get("UPDATE_CONTRACT"):  # after a wanted change, as for the kernel's own
        (FOLDER / "compressed.jsonl").write_bytes(b"".join(line + b"\n" for line in records))

    assert records == lines("compressed.jsonl")
    events = [json.loads(line)["event"] for line in records]
    stages = {event["stage"] for event in events if event["type"] == "compressed"}
    assert stages == {"elide", "collapse", "renew"}
    assert replay(records).prompts == sum(event["type"] == "replied" for event in events)
