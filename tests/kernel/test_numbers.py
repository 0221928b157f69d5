"""Numbers cross the border as they were written."""

from __future__ import annotations

import pytest
from native import calling, start

from deepstrike.kernel import Kernel, decode_record, validate
from deepstrike.wire.effect import CallModel, RunTool
from deepstrike.wire.input import Result
from deepstrike.wire.message import AssistantBlock, CallBlock, Text, ToolResult

ARGS = '{"id": 123456789012345678901234567890, "x": 1e400, "y": 0.1, "z": 1.10, "b": 1, "a": 2}'


def test_given_big_numbers_in_arguments_when_the_call_runs_and_is_replayed_then_every_digit_is_kept() -> None:
    kernel = Kernel()
    log = kernel.accept(start("go"), 1)
    log += kernel.accept(calling(0, ARGS), 2)

    (run,) = kernel.pending()
    assert isinstance(run, RunTool)
    assert run.args == ARGS
    log += kernel.accept(Result(effect=run.id, result=ToolResult((Text("done"),))), 3)

    again = Kernel.replay(log)
    for each in (kernel, again):
        (owed,) = each.pending()
        assert isinstance(owed, CallModel)
        assert each.blocks(owed.epoch, 2)[0] == AssistantBlock((CallBlock("w1", "add", ARGS),))
    assert again.pending() == kernel.pending()


def test_given_the_records_when_decoded_then_seqs_and_times_are_theirs() -> None:
    records = [decode_record(line) for line in Kernel().accept(start("go"), 1_700_000_000_000)]

    assert [(record.seq, record.at) for record in records] == [(0, 1_700_000_000_000)]


@pytest.mark.parametrize(
    ("schema", "document", "errors"),
    [
        ('{"type":"integer"}', "123456789012345678901234567890", []),
        ('{"maximum":123456789012345678901234567889}', "123456789012345678901234567889", []),
        (
            '{"maximum":123456789012345678901234567889}',
            "123456789012345678901234567890",
            ["(root): 123456789012345678901234567890 is greater than the maximum of 123456789012345678901234567889"],
        ),
        ('{"type":"number"}', "1e400", []),
        ('{"multipleOf":0.1}', "0.3", []),
        ('{"const":9007199254740993}', "9007199254740992", ["(root): 9007199254740993 was expected"]),
    ],
)
def test_given_numbers_beyond_a_double_when_validated_then_they_are_compared_exactly(
    schema: str, document: str, errors: list[str]
) -> None:
    assert validate(schema, document) == errors
