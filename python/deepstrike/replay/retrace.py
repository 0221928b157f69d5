"""A session lived through again: the inputs that its records show go into a fresh kernel, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from deepstrike.errors import CorruptLog, SessionError
from deepstrike.kernel import FORMAT, RENDERER, Corrupt, Kernel, Rejected
from deepstrike.records import decode_record
from deepstrike.replay.inputs import inputs_at
from deepstrike.wire.event import Begun, CallRef, Replied, Resumed, Settled, SignalledEvent, Started, Summarized

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.wire.input import Input
    from deepstrike.wire.record import Record


_Weighed = Settled | SignalledEvent | Summarized


@dataclass(frozen=True, slots=True)
class Step:
    """One input and what it came to.

    seq: of the first record that it should make.
    made: the records that the fresh kernel made of it.
    agreed: how many of them are what the log holds from `seq` on, and the session goes on behind them.
    cause: the input; None for a record that was taken as it stands, because no input of this version makes it.
    refusal: why the kernel did not take the input.
    cut: the log holds only the beginning of the batch, and goes on as after a crash.
    recounted: texts weigh other token counts than those recorded, by which the session goes on.
    """

    seq: int
    cause: Input | None
    made: tuple[bytes, ...]
    agreed: int
    refusal: str = ""
    cut: bool = False
    recounted: bool = False

    @property
    def differs(self) -> bool:
        """Whether something else came out than was recorded."""
        return self.cause is not None and not self.cut and (self.agreed == 0 or self.agreed < len(self.made))


class Retrace:
    """Goes through a session's records from one input to the next. Not for use by two threads at once.

    `at` is the seq of the record that is due. Building one raises what `read_records` raises.
    """

    __slots__ = ("_begun", "_kernel", "_lines", "_renderer", "at", "records")

    def __init__(self, lines: Sequence[bytes]) -> None:
        self.records = read_records(lines)
        self._kernel: Kernel | None = Kernel()
        self.at = 0
        self._lines = lines
        self._begun: dict[CallRef, int] = {}
        self._renderer = RENDERER

    @property
    def kernel(self) -> Kernel:
        """The kernel in front of the record that is due. Raises `CorruptLog` where the records do not fold so far."""
        if self._kernel is None:
            self._kernel = fold(self._lines[: self.at])
        return self._kernel

    def step(self) -> Step:
        """Let the kernel make the records that are due, and go behind those that agree.

        From a record that comes out otherwise one goes on as if it had come out as recorded. Raises `IndexError` at the
        end, `CorruptLog` where the records so far do not fold.
        """
        first = self.at
        best: Step | None = None
        for item in inputs_at(self.records, first, self._begun):
            step = self._tried(item)
            if not step.differs:
                self._move(step)
                return step
            if step.made:
                self._kernel = None  # it has lived through something else
            if best is None or step.agreed > best.agreed:
                best = step
        best = best or Step(first, None, (), 1)
        self._move(best if best.agreed else Step(first, None, (), 1))
        self._kernel = None
        return best

    def _tried(self, item: Input) -> Step:
        record = self.records[self.at]
        try:
            made = tuple(self.kernel.accept(item, 0 if record is None else record.at))
        except Rejected as refusal:
            return Step(self.at, item, (), 0, str(refusal))
        agreed, recounted = 0, False
        for seq, line in zip(range(self.at, len(self._lines)), made, strict=False):
            if self._lines[seq] != line:
                alike, other_counts = self._alike(seq, decode_record(line))
                if not alike:
                    break
                recounted |= other_counts
            agreed += 1
        cut = 0 < agreed < len(made) and self._goes_on_as_after_a_crash(self.at + agreed)
        return Step(self.at, item, made, agreed, "", cut, recounted)

    def _alike(self, seq: int, made: Record) -> tuple[bool, bool]:
        """Whether the recorded record says the same, and whether by other token counts."""
        record = self.records[seq]
        if record is None:
            return False, False
        if told_alike(record, made, self._renderer):
            return True, False
        return told_alike(record, with_counts_of(record, made), self._renderer), True

    def _goes_on_as_after_a_crash(self, seq: int) -> bool:
        """Whether the log ends here, or goes on with a resume or another goal."""
        for record in self.records[seq:]:
            if record is None or not isinstance(record.event, Settled):
                return record is not None and isinstance(record.event, Started | Resumed)
        return True

    def _move(self, step: Step) -> None:
        """Go behind the records that agree."""
        if step.cut or step.recounted:
            self._kernel = None  # to be folded from what is recorded
        for record in self.records[self.at : self.at + step.agreed]:
            event = None if record is None else record.event
            if isinstance(event, Begun):
                self._begun[event.call] = event.effect
            elif isinstance(event, Started | Resumed):
                self._renderer = event.renderer
        self.at += step.agreed


def read_records(lines: Sequence[bytes]) -> list[Record | None]:
    """The records of a log; None for one of an unknown kind that may be skipped.

    Raises `CorruptLog` for a line that is no record, `SessionError` for one that only a newer version knows.
    """
    records: list[Record | None] = []
    for line in lines:
        record = _read(line)
        if record is None or (isinstance(record.event, Started | Resumed) and record.event.format > FORMAT):
            fold(lines[: len(records) + 1])  # says what is wrong, unless the record may be skipped
        records.append(record)
    return records


def _read(line: bytes) -> Record | None:
    try:
        return decode_record(line)
    except msgspec.DecodeError:
        return None


def fold(lines: Sequence[bytes]) -> Kernel:
    """The kernel that has lived through `lines`. Raises `CorruptLog`, or `SessionError` for a newer format."""
    try:
        return Kernel.replay(lines)
    except Corrupt as error:
        raise CorruptLog(f"the log does not fold: {error}") from error
    except ValueError as error:
        raise SessionError(f"the log cannot be read by this version: {error}", code="newer_format") from error


def told_alike(recorded: Record, made: Record, renderer: int) -> bool:
    """Whether two records say the same, apart from fields that are not known here and from versions.

    A log of another format or renderer names that one; its digests name prompts of that renderer, and weigh those.
    """
    theirs, ours = recorded.event, made.event
    if isinstance(theirs, Started | Resumed) and isinstance(ours, Started | Resumed):
        ours = replace(ours, format=theirs.format, renderer=theirs.renderer)
        if isinstance(theirs, Started) and isinstance(ours, Started) and renderer != RENDERER:
            ours = replace(ours, head=theirs.head)
    elif isinstance(theirs, Replied) and isinstance(ours, Replied) and renderer != RENDERER:
        ours = replace(ours, digest=theirs.digest, least=theirs.least)
    return recorded == replace(made, event=ours, optional=recorded.optional)


def with_counts_of(recorded: Record, made: Record) -> Record:
    """`made` with the token counts of `recorded`, and what was estimated by them."""
    theirs, ours = recorded.event, made.event
    if isinstance(theirs, Replied) and isinstance(ours, Replied):
        ours = replace(ours, tokens=theirs.tokens, least=theirs.least)
        if theirs.estimated and ours.estimated:
            ours = replace(ours, usage=theirs.usage, cost=theirs.cost)
    elif isinstance(theirs, Started) and isinstance(ours, Started):
        ours = replace(ours, tokens=theirs.tokens, head=theirs.head)
    elif isinstance(theirs, _Weighed) and isinstance(ours, _Weighed):
        ours = replace(ours, tokens=theirs.tokens)
    return replace(made, event=ours)
