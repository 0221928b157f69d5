"""Replay: does this version make the same session of the same inputs?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepstrike.kernel import RENDERER
from deepstrike.records import decode_record
from deepstrike.replay.differences import differences
from deepstrike.replay.retrace import Retrace
from deepstrike.wire.event import Ended, Judged, Replied, Resumed, Settled, Started

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.replay.differences import Difference
    from deepstrike.replay.retrace import Step
    from deepstrike.wire.record import Record


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first record that came out otherwise.

    seq: of the record. recorded, replayed: what kind the log holds and what kind came out ("" for none).
    cause: why, in words. differences: the fields that differ, where both are of one kind.
    """

    seq: int
    recorded: str
    replayed: str
    cause: str
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True)
class Replay:
    """What a replay found.

    session_id: as the log itself names it, "" for an empty log.
    records: how many there are. proved: how many of them came out the same.
    turns: replies of the model, up to the divergence. prompts: how many of their prompts rendered to the recorded
        digest; the others were rendered by another version of the renderer and are not compared.
    divergence: the first one; None if there is none.
    warnings: what was not compared: records that no input of this version makes, the end of batches that a crash has
        cut, token counts of another tokenizer.
    """

    session_id: str
    records: int
    proved: int
    turns: int
    prompts: int
    divergence: Divergence | None
    warnings: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether nothing came out otherwise."""
        return self.divergence is None


def replay(records: Sequence[bytes]) -> Replay:
    """Live through a session again and compare what is decided and rendered with what was recorded.

    The inputs are rebuilt from the records (goals, replies, failures, results, suspensions, answers, signals, resumes,
    stops) and go into a fresh kernel, at the recorded times. What the kernel makes of them is compared with the log
    record by record: verdicts, what began and in which order, how calls were closed, token counts, costs, limits, ends,
    and for every reply the digest of the prompt that it answered. No model, tool, network or clock takes part.

    Not proved, because the log does not hold it: that the world really gave those inputs, that a model would give them
    again, an input that came too late and was dropped, and what a dialect makes of the prompt's blocks together with
    the run's `extensions`. Digests are compared only where the log was rendered by the version of the renderer that is
    at work.

    Raises `CorruptLog` for a log that does not fold, `SessionError` with code `newer_format` for one that a newer
    version wrote.
    """
    trace = Retrace(records)
    tally = _Tally()
    divergence: Divergence | None = None
    while divergence is None and trace.at < len(records):
        step = trace.step()
        tally.count(trace.records[step.seq : trace.at], step)
        if step.differs:
            divergence = _divergence(trace.records, step)
    return Replay(
        session_id=_session_of(trace.records),
        records=len(records),
        proved=tally.proved,
        turns=tally.turns,
        prompts=tally.prompts,
        divergence=divergence,
        warnings=tuple(tally.warnings),
    )


class _Tally:
    """What has been lived through so far."""

    __slots__ = ("_recounted", "_renderer", "prompts", "proved", "turns", "warnings")

    def __init__(self) -> None:
        self.proved = self.turns = self.prompts = 0
        self.warnings: list[str] = []
        self._renderer = RENDERER
        self._recounted = False

    def count(self, records: Sequence[Record | None], step: Step) -> None:
        if step.cause is None:
            kind = _kind(records[0])
            self.warnings.append(f"record {step.seq} ({kind}) is taken as it stands: no input of this version makes it")
            return
        if step.cut:
            self.warnings.append(f"the batch of record {step.seq} is cut behind record {step.seq + step.agreed - 1}")
        if step.recounted and not self._recounted:
            self._recounted = True
            self.warnings.append(
                f"from record {step.seq} on texts weigh other token counts; the recorded ones are taken"
            )
        self.proved += step.agreed
        for record in records[: step.agreed]:
            event = None if record is None else record.event
            if isinstance(event, Started | Resumed):
                self._renderer = event.renderer
            elif isinstance(event, Replied):
                self.turns += 1
                self.prompts += self._renderer == RENDERER


def _session_of(records: Sequence[Record | None]) -> str:
    for record in records:
        if record is not None and isinstance(record.event, Started | Resumed):
            return record.event.config.session
    return ""


def _kind(record: Record | None) -> str:
    return "unknown" if record is None else str(record.event.__struct_config__.tag)


def _divergence(records: Sequence[Record | None], step: Step) -> Divergence:
    seq = step.seq + step.agreed
    recorded = records[seq] if seq < len(records) else None
    made = decode_record(step.made[step.agreed]) if step.agreed < len(step.made) else None
    left = "" if seq == len(records) else _kind(recorded)
    right = "" if made is None else _kind(made)
    fields = differences(recorded, made) if left == right else ()
    return Divergence(seq, left, right, _cause(recorded, made, step.refusal, fields), fields)


def _cause(recorded: Record | None, made: Record | None, refusal: str, fields: tuple[Difference, ...]) -> str:
    if refusal:
        return f"the kernel does not take the input that the record shows: {refusal}"
    if made is None:
        return "nothing is decided here, where the log holds a record"
    if recorded is None:
        return f"the log ends here, where a record of kind {_kind(made)} follows"
    if _kind(recorded) != _kind(made):
        return "the kernel decides otherwise: another version wrote this log, or a record of it was changed"
    paths = {difference.path.removeprefix("event.") for difference in fields}
    for path, cause in _CAUSES:
        if path in paths:
            return cause
    return _BY_EVENT.get(type(recorded.event), "the same decision comes out with other content")


_CAUSES = (
    ("digest", "the prompt renders to other bytes: what the model was asked is not what this log folds to"),
    ("cost", "the call costs something else: the price or the usage in the log was changed"),
    ("at", "the time stands before that of the record in front of it"),
    ("seq", "the records are not numbered in order"),
)
_BY_EVENT: dict[type, str] = {
    Judged: "governance judges the call otherwise",
    Settled: "the call is closed with another result",
    Ended: "the goal ends otherwise",
}
