"""What every execution plane must hold, as checks that run on any `ExecutionPlane`.

    @pytest.mark.parametrize("check", PLANE_CHECKS, ids=str)
    async def test_my_plane(check: PlaneCheck) -> None:
        await check.run(make_sample)

or all at once: `await check_plane(make_sample)`. A `Sample` is a new plane with calls to try on it; a check whose
call is not in the sample is passed over.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from deepstrike.execution.base import ExecutionPlane, Invocation
from deepstrike.execution.lifetime import close
from deepstrike.testing.trying import require_all, same, true
from deepstrike.tools.context import ToolContext
from deepstrike.wire.message import Err, Ok, Text, ToolResult


class Call(NamedTuple):
    """A tool's name and the argument text as a model writes it."""

    name: str
    args_text: str


@dataclass(frozen=True, slots=True)
class Sample:
    """A plane, and calls of its tools: one that works, and where there are such tools one that the schema refuses, one
    that fails, one that waits for ever (an async tool or a process, not a thread) and says so by a delta before it
    does, one that runs into its tool's own `timeout_ms`, and one whose result is longer than 16 MiB. `ends_calls` says
    that closing the plane ends the calls under way, because they run in what it has opened.
    """

    plane: ExecutionPlane
    works: Call
    invalid: Call | None = None
    fails: Call | None = None
    hangs: Call | None = None
    expires: Call | None = None
    floods: Call | None = None
    ends_calls: bool = False


MakeSample = Callable[[], Awaitable[Sample]]
"""Gives a new sample each time it is called. Its plane is open, and the check closes it."""

MOST_BYTES = 17 * 1024 * 1024
"""A result is bounded: 16 MiB of text and what is said about the rest."""
PATIENCE_SECONDS = 30.0
"""No check takes longer on a working plane."""

_Body = Callable[[Sample], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class PlaneCheck:
    """One promise of `ExecutionPlane`; `name` says it."""

    name: str
    _body: _Body

    def __str__(self) -> str:
        return self.name

    async def run(self, make: MakeSample) -> None:
        """Run the check on a sample from `make`. Raises `AssertionError` with what was found instead."""
        sample = await make()
        try:
            await asyncio.wait_for(self._body(sample), PATIENCE_SECONDS)
        except asyncio.TimeoutError:
            raise AssertionError(f"no end after {PATIENCE_SECONDS:.0f} s") from None
        finally:
            await close(sample.plane)


PLANE_CHECKS: list[PlaneCheck] = []
"""All checks, in the order of the protocol."""


async def check_plane(make: MakeSample) -> None:
    """Run every check, each on a sample of its own. Raises one `AssertionError` that lists all that failed."""
    await require_all((check.name, check.run(make)) for check in PLANE_CHECKS)


def _check(body: _Body) -> _Body:
    PLANE_CHECKS.append(PlaneCheck(body.__name__.strip("_"), body))
    return body


class _Shown:
    """Keeps the deltas, and knows when the first one came."""

    def __init__(self) -> None:
        self.deltas: list[str] = []
        self.first = asyncio.Event()

    async def show(self, delta: str, chunk: object | None) -> None:
        self.deltas.append(delta)
        self.first.set()


async def _execute(plane: ExecutionPlane, call: Call, shown: _Shown | None = None) -> ToolResult:
    """Validate and run the call, as the host does."""
    checked = plane.validate(call.name, call.args_text)
    true(isinstance(checked, Ok), f"{call} is not valid: {checked}")
    text = checked.text if isinstance(checked, Ok) and checked.text is not None else call.args_text
    context = ToolContext("session", "call-1", "key-1")
    return await plane.execute(Invocation(call.name, text, context, (shown or _Shown()).show))


def _text(result: ToolResult) -> str:
    return "".join(part.text for part in result.parts if isinstance(part, Text))


def _descriptors() -> int | None:
    """How many are open, None where the system does not tell."""
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None


async def _calm(before: set[asyncio.Task[object]]) -> set[asyncio.Task[object]]:
    """Tasks that were not there before, after those that just end have had their turns."""
    for _ in range(100):
        left = asyncio.all_tasks() - before
        if not left:
            break
        await asyncio.sleep(0.01)
    return asyncio.all_tasks() - before


# ---- tools


@_check
async def _specs_are_sorted_by_name_and_unique(sample: Sample) -> None:
    names = [spec.name for spec in sample.plane.specs()]
    same(names, sorted(set(names)), "names")
    true(sample.works.name in names, f"{sample.works.name!r} is offered")


@_check
async def _specs_stay_the_same(sample: Sample) -> None:
    first = sample.plane.specs()
    await _execute(sample.plane, sample.works)
    same(sample.plane.specs(), first, "specs after a call")


@_check
async def _specs_hold_a_schema_of_an_object_and_an_effect(sample: Sample) -> None:
    for spec in sample.plane.specs():
        true('"object"' in spec.parameters, f"parameters of {spec.name!r} are a JSON schema of an object")
        true(spec.effect in ("once", "idempotent", "read"), f"effect of {spec.name!r}: {spec.effect!r}")


# ---- validation


@_check
async def _validate_never_raises(sample: Sample) -> None:
    texts = ["", "null", "[]", "{", "{}", '"', "1e999", '{"a":' * 200, '{"\\ud800":1}', "\0", "x" * 100_000]
    for name in (*[spec.name for spec in sample.plane.specs()], "", "no such tool", "é\n", "x" * 100_000):
        for text in texts:
            found: object = sample.plane.validate(name, text)
            true(isinstance(found, Ok | Err), f"validate({name[:20]!r}, {text[:20]!r}) gave {found!r}")


@_check
async def _a_validated_text_validates_to_itself(sample: Sample) -> None:
    checked = sample.plane.validate(*sample.works)
    true(isinstance(checked, Ok), f"{sample.works} is not valid: {checked}")
    if isinstance(checked, Ok) and checked.text is not None:
        same(sample.plane.validate(sample.works.name, checked.text), Ok(), "the validated text")


@_check
async def _an_unknown_tool_is_refused_and_the_error_names_what_is_there(sample: Sample) -> None:
    unknown = sample.works.name + "s"
    checked = sample.plane.validate(unknown, "{}")
    true(isinstance(checked, Err), f"validate of an unknown tool gave {checked!r}")
    if isinstance(checked, Err):
        same(checked.kind, "unknown_tool", "kind")
        true(sample.works.name in checked.message, f"{checked.message!r} names {sample.works.name!r}")
    context = ToolContext("session", "call-1", "key-1")
    result = await sample.plane.execute(Invocation(unknown, "{}", context, _Shown().show))
    same(result.error_kind, "unknown_tool", "kind of the result")


@_check
async def _arguments_that_do_not_fit_are_refused(sample: Sample) -> None:
    if sample.invalid is not None:
        checked = sample.plane.validate(*sample.invalid)
        true(isinstance(checked, Err), f"{sample.invalid} is valid")
        same(checked.kind if isinstance(checked, Err) else "", "invalid_arguments", "kind")


# ---- results


@_check
async def _a_call_that_works_gives_content(sample: Sample) -> None:
    result = await _execute(sample.plane, sample.works)
    same(result.error_kind, "", f"kind of {_text(result)!r}")
    true(len(result.parts) > 0, "a result has at least one part")


@_check
async def _a_failure_is_a_result_with_a_kind_and_words(sample: Sample) -> None:
    if sample.fails is not None:
        result = await _execute(sample.plane, sample.fails)
        true(result.error_kind != "", "it has an error_kind")
        true(_text(result).strip() != "", "it says something")
        true("Traceback" not in _text(result), "it shows no traceback")


@_check
async def _a_call_that_takes_too_long_is_a_result_of_kind_timeout(sample: Sample) -> None:
    if sample.expires is not None:
        same((await _execute(sample.plane, sample.expires)).error_kind, "timeout", "kind")


@_check
async def _a_long_result_is_bounded(sample: Sample) -> None:
    if sample.floods is not None:
        size = len(_text(await _execute(sample.plane, sample.floods)).encode())
        true(size <= MOST_BYTES, f"a result of {size} bytes, more than {MOST_BYTES}")


# ---- many calls


@_check
async def _calls_run_side_by_side_and_do_not_mix(sample: Sample) -> None:
    alone = await _execute(sample.plane, sample.works)
    found = await asyncio.gather(*(_execute(sample.plane, sample.works) for _ in range(10)))
    same({each.error_kind for each in found}, {alone.error_kind}, "kinds")
    same({_text(each) for each in found}, {_text(alone)}, "results")


@_check
async def _a_call_that_waits_does_not_keep_others_waiting(sample: Sample) -> None:
    if sample.hangs is not None:
        shown = _Shown()
        waiting = asyncio.ensure_future(_execute(sample.plane, sample.hangs, shown))
        await shown.first.wait()
        same((await _execute(sample.plane, sample.works)).error_kind, "", "kind of the other call")
        true(not waiting.done(), "the first one still waits")
        waiting.cancel()
        await asyncio.wait({waiting})


# ---- cancellation and closing


@_check
async def _a_cancelled_call_leaves_nothing(sample: Sample) -> None:
    if sample.hangs is None:
        return
    await _execute(sample.plane, sample.works)
    before, open_before = asyncio.all_tasks(), _descriptors()
    for _ in range(3):
        shown = _Shown()
        waiting = asyncio.ensure_future(_execute(sample.plane, sample.hangs, shown))
        await shown.first.wait()
        waiting.cancel()
        await asyncio.wait({waiting})
        true(waiting.cancelled(), "CancelledError gets out")
    same(await _calm(before), set(), "tasks left behind")
    same(_descriptors(), open_before, "open descriptors")


@_check
async def _a_call_can_be_cancelled_at_its_very_start(sample: Sample) -> None:
    before = asyncio.all_tasks()
    for turns in range(8):
        call = asyncio.ensure_future(_execute(sample.plane, sample.works))
        for _ in range(turns):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait({call})
    same(await _calm(before), set(), "tasks left behind")
    same((await _execute(sample.plane, sample.works)).error_kind, "", "kind of a call after them")


@_check
async def _many_calls_leave_nothing(sample: Sample) -> None:
    await _execute(sample.plane, sample.works)
    before, open_before = asyncio.all_tasks(), _descriptors()
    await asyncio.gather(*(_execute(sample.plane, sample.works) for _ in range(10)))
    same(await _calm(before), set(), "tasks left behind")
    same(_descriptors(), open_before, "open descriptors")


@_check
async def _closing_twice_is_closing_once(sample: Sample) -> None:
    await _execute(sample.plane, sample.works)
    await close(sample.plane)
    await close(sample.plane)


@_check
async def _closing_ends_calls_that_wait(sample: Sample) -> None:
    if sample.hangs is None or not sample.ends_calls:
        return
    shown = _Shown()
    waiting = asyncio.ensure_future(_execute(sample.plane, sample.hangs, shown))
    await shown.first.wait()
    await close(sample.plane)
    done, _ = await asyncio.wait({waiting}, timeout=5)
    waiting.cancel()
    await asyncio.wait({waiting})
    true(bool(done), "the call ends when the plane is closed")
