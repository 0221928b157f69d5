"""No call, however wrong, gets a panic out of the native module."""

from __future__ import annotations

import json
import math
from collections import deque
from typing import TYPE_CHECKING

import pytest
from native import FULL, seeded, start

from deepstrike import _kernel
from deepstrike.kernel import encode_input
from deepstrike.wire.input import Clock, Interrupt

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

CALLS = 1000 if FULL else 200
DOCUMENTED = (TypeError, ValueError, OverflowError)

SCHEMA = '{"type":"object","properties":{"a":{"type":"integer","minimum":0}},"required":["a"]}'
ODD: list[object] = [
    None,
    True,
    0,
    1,
    -1,
    2**31,
    2**63 - 1,
    2**63,
    -(2**63),
    2**64,
    10**30,
    0.5,
    math.nan,
    math.inf,
    b"",
    b"\x00",
    b"\xff\xfe",
    b"{}",
    b"null",
    b"[" * 10_000,
    b'{"a":' * 10_000,
    b'{"type":"clock"}',
    b'{"type":"interrupt","reason":"x"}',
    b'{"type":"reply","effect":18446744073709551616,"parts":[],"finish":"stop"}',
    b'{"type":"start","goal":[{"type":"text","text":"\\ud83d"}]}',
    b'{"type":"result","effect":0,"result":{"parts":[]}}',
    encode_input(start("hello")),
    encode_input(start("\x00\u2028\U0010ffff")),
    "",
    "\x00",
    "a",
    "gpt-4o",
    "\ud83d",
    "caf\udce9 end",
    "{}",
    "true",
    "NaN",
    "1e400",
    "1" * 5000,
    SCHEMA,
    '{"a":1}',
    '{"$ref":"#"}',
    '{"pattern":"(a+)+$"}',
    '{"pattern":"(?<=a)("}',
    '{"multipleOf":0}',
    '{"items":{"$ref":"#"}}',
    "[" * 10_000,
    '{"a":' * 10_000,
    "[" * 120 + "]" * 120,
    [],
    (),
    {},
    [b""],
    [b"{}", 3],
    [b'{"seq":0,"at":0,"event":{"type":"ended","status":"completed"}}'],
    (b'{"seq":1,"at":0,"event":{"type":"unknown"},"optional":true}',),
    deque([b"x"]),
    bytearray(b'{"type":"clock"}'),
    memoryview(b"{}"),
    object(),
    _kernel,
    _kernel.Kernel,
]
HUGE: list[object] = ["word " * 2_000_000, "中" * 3_400_000, b" " * 10_000_000, b'"' + b"x" * 10_000_000 + b'"']


def entry_points(kernel: _kernel.Kernel) -> dict[str, tuple[Callable[..., object], int]]:
    """Every callable of the module with the number of its arguments."""
    return {
        "Kernel": (_kernel.Kernel, 0),
        "replay": (_kernel.Kernel.replay, 1),
        "accept": (kernel.accept, 2),
        "pending": (kernel.pending, 1),
        "blocks": (kernel.blocks, 2),
        "deadline": (kernel.deadline, 0),
        "outcome": (kernel.outcome, 0),
        "weights": (kernel.weights, 0),
        "count": (_kernel.count, 2),
        "clip": (_kernel.clip, 3),
        "validate": (_kernel.validate, 2),
        "Rejected": (_kernel.Rejected, 1),
        "Stale": (_kernel.Stale, 1),
        "Corrupt": (_kernel.Corrupt, 1),
        "Newer": (_kernel.Newer, 1),
        "KernelFault": (_kernel.KernelFault, 1),
    }


def drawn(dice: random.Random, arity: int) -> list[object]:
    """Arguments, sometimes one too many or too few, rarely huge."""
    wanted = dice.choice([max(arity - 1, 0), *[arity] * 20, arity + 1])
    return [dice.choice(HUGE if dice.random() < 0.003 else ODD) for _ in range(wanted)]


@pytest.mark.parametrize("name", [*entry_points(_kernel.Kernel())])
def test_given_random_arguments_when_any_entry_point_is_called_then_only_documented_errors(name: str) -> None:
    seed, dice = seeded()
    kernel = _kernel.Kernel()
    call, arity = entry_points(kernel)[name]

    for turn in range(CALLS):
        arguments = drawn(dice, arity)
        try:
            call(*arguments)
        except DOCUMENTED:
            continue
        except BaseException as error:
            shown = [repr(argument)[:80] for argument in arguments]
            pytest.fail(f"seed {seed}, call {turn}: {name}{shown} raised {error!r}")

    assert_usable(kernel)


def assert_usable(kernel: _kernel.Kernel) -> None:
    kernel.accept(encode_input(start("still here")), 2**62)
    assert kernel.phase == "thinking"
    assert len(json.loads(kernel.pending())) == 1
    kernel.accept(encode_input(Interrupt("enough")), 2**62)
    assert kernel.phase == "ended"


def test_given_text_of_one_endless_word_when_counted_and_clipped_then_both_come_to_an_end() -> None:
    text = "a" * (10_000_000 if FULL else 1_000_000)

    assert _kernel.count(text, "gpt-4o") == len(text) // 8
    shortened = _kernel.clip(text, "gpt-4o", 100)

    assert shortened is not None
    assert shortened[1] == len(text) // 8


def test_given_a_rejected_input_when_the_kernel_goes_on_then_nothing_had_changed() -> None:
    kernel = _kernel.Kernel()
    kernel.accept(encode_input(start("hello")), 1)

    def seen() -> tuple[object, ...]:
        return kernel.next_seq, kernel.phase, kernel.epoch, kernel.pending(), kernel.blocks(kernel.epoch, 0)

    before = seen()
    for broken in (b"", b"{}", b"\xff", b"[" * 10_000, b'{"type":"clock","x":1}', encode_input(Clock())[:-1]):
        with pytest.raises(_kernel.Rejected):
            kernel.accept(broken, 2)

    assert seen() == before
