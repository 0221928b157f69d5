"""Both languages read every line of the contract and write the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from contract_files import BLOCKS, DECODERS, EFFECTS, FOLDER, LOGS, TYPES, lines, with_unknown_fields

from deepstrike import _kernel
from deepstrike.kernel import decode_record

if TYPE_CHECKING:
    from collections.abc import Iterator

STRICT = ("inputs.jsonl", "effects.jsonl", "blocks.jsonl", "outcomes.jsonl")
encode = msgspec.json.Encoder().encode


def test_given_the_contract_when_listed_then_every_file_has_lines() -> None:
    assert {path.name for path in FOLDER.glob("*.jsonl")} == set(TYPES)
    assert all(lines(name) for name in TYPES)
    assert LOGS


@pytest.mark.parametrize("name", TYPES)
def test_given_a_line_when_decoded_and_encoded_then_the_bytes_are_the_same(name: str) -> None:
    assert [encode(DECODERS[name].decode(line)) for line in lines(name)] == lines(name)


@pytest.mark.parametrize("log", LOGS)
def test_given_a_recorded_session_when_decoded_and_encoded_then_the_bytes_are_the_same(log: str) -> None:
    decode = DECODERS["events.jsonl"].decode

    assert [encode(decode(line)) for line in lines(f"logs/{log}")] == lines(f"logs/{log}")


@pytest.mark.parametrize("name", STRICT)
def test_given_an_unknown_field_anywhere_when_decoded_then_python_refuses_it(name: str) -> None:
    for line in lines(name):
        for changed in with_unknown_fields(line):
            with pytest.raises(msgspec.ValidationError, match="unknown_field"):
                DECODERS[name].decode(changed)


def test_given_an_unknown_field_anywhere_in_an_input_when_accepted_then_the_kernel_refuses_it() -> None:
    for line in lines("inputs.jsonl"):
        for changed in with_unknown_fields(line):
            with pytest.raises(_kernel.Rejected, match="unknown field `unknown_field`"):
                _kernel.Kernel().accept(changed, 1)


@pytest.mark.parametrize("line", lines("inputs.jsonl"))
def test_given_an_input_when_accepted_then_the_kernel_takes_it_or_says_why_not_now(line: bytes) -> None:
    refusal = refused(line)

    assert refusal is None or not refusal.startswith("invalid input")


def refused(line: bytes) -> str | None:
    """What a kernel without records says against an input."""
    try:
        _kernel.Kernel().accept(line, 1)
    except _kernel.Rejected as refusal:
        return str(refusal)
    return None


@pytest.mark.parametrize("name", ["events.jsonl", *(f"logs/{log}" for log in LOGS)])
def test_given_an_unknown_field_anywhere_in_a_record_when_decoded_then_python_ignores_it(name: str) -> None:
    for line in lines(name):
        assert {encode(decode_record(changed)) for changed in with_unknown_fields(line)} == {line}


def test_given_what_is_no_record_when_decoded_then_python_refuses_it() -> None:
    for line in (b"{}", b'{"seq":0,"at":0,"event":{"type":"dreamt"}}', b'{"seq":"0","at":0,"event":[]}'):
        with pytest.raises(msgspec.ValidationError):
            decode_record(line)


@pytest.mark.parametrize("log", LOGS)
def test_given_an_unknown_field_anywhere_in_a_log_when_replayed_then_the_kernel_ignores_it(log: str) -> None:
    records = lines(f"logs/{log}")
    expected = folded(records)

    for at, line in enumerate(records):
        for changed in with_unknown_fields(line):
            assert folded([*records[:at], changed, *records[at + 1 :]]) == expected


def folded(records: list[bytes]) -> tuple[object, ...]:
    """All that can be seen of the kernel that has lived through these records."""
    kernel = _kernel.Kernel.replay(records)
    return (
        kernel.next_seq,
        kernel.phase,
        kernel.epoch,
        kernel.deadline(),
        kernel.pending(),
        kernel.outcome(),
        kernel.blocks(kernel.epoch, 0),
    )


@pytest.mark.parametrize("log", LOGS)
def test_given_every_prefix_of_a_log_when_replayed_then_what_is_owed_decodes_strictly(log: str) -> None:
    for kernel in grown(lines(f"logs/{log}")):
        assert encode(EFFECTS.decode(kernel.pending())) == kernel.pending()
        assert encode(BLOCKS.decode(kernel.blocks(kernel.epoch, 0))) == kernel.blocks(kernel.epoch, 0)
        outcome = kernel.outcome()
        assert outcome is None or encode(DECODERS["outcomes.jsonl"].decode(outcome)) == outcome


def grown(records: list[bytes]) -> Iterator[_kernel.Kernel]:
    for length in range(len(records) + 1):
        yield _kernel.Kernel.replay(records[:length])


@pytest.mark.parametrize("log", LOGS)
def test_given_a_record_of_an_unknown_kind_when_replayed_then_only_an_optional_one_is_passed_over(log: str) -> None:
    records = lines(f"logs/{log}")
    later = b'{"seq":%d,"at":9999999999999,"event":{"type":"dreamt","of":["sheep"]}%s}'

    passed = _kernel.Kernel.replay([*records, later % (len(records), b',"optional":true')])
    assert (passed.next_seq, passed.phase) == (len(records) + 1, _kernel.Kernel.replay(records).phase)
    with pytest.raises(_kernel.Newer, match=r'"dreamt".*format 1'):
        _kernel.Kernel.replay([*records, later % (len(records), b"")])
