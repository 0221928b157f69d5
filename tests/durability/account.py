"""The account of a session: what must be in its log by all that its processes told before they died."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from story import digest
from telling import Acknowledged, Acted, Asked, Finished, Handed, Life, Told

from deepstrike.kernel import Kernel
from deepstrike.records import decode_record
from deepstrike.replay.proof import replay
from deepstrike.sessions.verify import LogReport
from deepstrike.wire.event import Begun, CallRef, Replied, Settled, Started
from deepstrike.wire.message import RecordedCall, Text

EFFECTS = {"look": "read", "put": "idempotent", "send": "once", "book": "once"}
UNKNOWN = "the outcome is unknown; it may have taken effect"


@dataclass(frozen=True)
class Call:
    """A call as the log shows it: its tool and what it came to; the place of each of its records."""

    tool: str
    begun: tuple[int, ...]
    settled: tuple[int, ...]
    result: str
    error_kind: str


def calls_in(records: Sequence[bytes]) -> dict[str, Call]:
    """The calls of a session by their ids."""
    ids: dict[CallRef, tuple[str, str]] = {}
    begun: defaultdict[CallRef, list[int]] = defaultdict(list)
    settled: defaultdict[CallRef, list[tuple[int, str, str]]] = defaultdict(list)
    for record in map(decode_record, records):
        event = record.event
        if isinstance(event, Replied):
            calls = [part for part in event.parts if isinstance(part, RecordedCall)]
            ids.update({CallRef(record.seq, index): (call.id, call.name) for index, call in enumerate(calls)})
        elif isinstance(event, Begun):
            begun[event.call].append(record.seq)
        elif isinstance(event, Settled):
            text = "".join(part.text for part in event.result.parts if isinstance(part, Text))
            settled[event.call].append((record.seq, text, event.result.error_kind))
    return {
        call_id: Call(
            name,
            tuple(begun[ref]),
            tuple(seq for seq, _, _ in settled[ref]),
            "".join(text for _, text, _ in settled[ref]),
            "".join(kind for _, _, kind in settled[ref]),
        )
        for ref, (call_id, name) in ids.items()
    }


class Account:
    """Kept over all lives of one session.

    Of the batches that were handed to the log and not acknowledged, `absent` counts those that it does not hold,
    `whole` those that it does. `lost` counts the calls whose outcome is unknown, `unkept` those
    whose whole result the disk did not take.
    """

    def __init__(self) -> None:
        self._known: list[str] = []
        self._acts: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        self.lives = 0
        self.absent = 0
        self.whole = 0
        self.lost = 0
        self.unkept = 0

    def take(self, life: Life, records: Sequence[bytes], report: LogReport | None) -> None:
        """Check what a process has left against what it told, and go on from there.

        The log holds exactly what was acknowledged, and whole what was handed to it last, or nothing of that.
        """
        self.lives += 1
        found = [digest(record) for record in records]
        in_flight = self._followed(life.told, records)
        assert found in (self._known, self._known + in_flight), "the log is not what was acknowledged"
        self.absent += bool(in_flight) and found == self._known
        self.whole += bool(in_flight) and found != self._known
        self._known = found
        assert report is None or report.sound, f"{report}"
        if records:
            Kernel.replay(records)
        ats = [decode_record(record).at for record in records]
        assert ats == sorted(ats), "time goes back"

    def _followed(self, told: Iterable[Told], records: Sequence[bytes]) -> list[str]:
        """Go through what was told; the digests that were handed to the log last and not acknowledged."""
        in_flight: list[str] = []
        for each in told:
            if isinstance(each, Handed):
                assert (each.seq, in_flight) == (len(self._known), []), f"a batch for {each.seq} was out of turn"
                in_flight = list(each.digests)
            elif isinstance(each, Acknowledged):
                self._known += in_flight
                in_flight = []
                assert each.seq == len(self._known) - 1, f"{each.seq} is not the last of what was acknowledged"
            elif isinstance(each, Acted):
                call = calls_in(records[: len(self._known)]).get(each.call_id)
                assert call, f"{each.tool} acted before its call was in the log"
                assert call.begun, f"{each.tool} acted before its intent was in the log"
                assert not call.settled, f"{each.tool} acted although its outcome was in the log"
                self._acts[each.call_id, each.tool].append(each.key)
            elif isinstance(each, Asked):
                assert each.flaw == "", each.flaw
                calls = calls_in(records[: len(self._known)]).values()
                assert all(call.settled for call in calls), "the model was asked before all outcomes were in the log"
        return in_flight

    def close(self, records: Sequence[bytes], undisturbed: Sequence[bytes]) -> None:
        """Check the finished session against one that nothing disturbed."""
        calls, wanted = calls_in(records), calls_in(undisturbed)
        assert list(calls) == list(wanted), f"the calls are {list(calls)}"
        for call_id, call in calls.items():
            self._check(call_id, call, wanted[call_id].result)
        keys = [set(keys) for keys in self._acts.values()]
        assert all(len(each) == 1 for each in keys), "a call acted under two keys"
        assert len(set().union(*keys)) == len(keys), "two calls acted under one key"
        if not any(call.error_kind for call in calls.values()) and not self.unkept:
            assert texts_in(records) == texts_in(undisturbed), f"the texts are {texts_in(records)}"
        proof = replay(records)
        assert (proof.divergence, proof.proved) == (None, len(records)), f"{proof}"

    def _check(self, call_id: str, call: Call, wanted: str) -> None:
        acts = len(self._acts.get((call_id, call.tool), ()))
        once = EFFECTS[call.tool] == "once"
        assert len(call.settled) == 1, f"{call} has not one result"
        if call.error_kind == "outcome_unknown":
            self.lost += 1
            assert once, f"{call} could have run again"
            assert acts <= 1, f"{call} acted {acts} times"
            assert call.result == UNKNOWN, f"{call}"
        else:
            # Where the disk took no blob, the line that says where the whole is must be missing, and nothing else.
            preview, pointer, _ = wanted.partition("\n[the whole has ")
            possible = {wanted, preview} if pointer else {wanted}
            self.unkept += call.result != wanted
            assert not call.error_kind, f"{call} should have given {wanted}"
            assert call.result in possible, f"{call} should have given {wanted}"
            assert acts == 1 if once else acts >= 1, f"{call} acted {acts} times"

    def repeated(self) -> Counter[str]:
        """How often a tool of each effect class acted again for the same call."""
        again: Counter[str] = Counter()
        for (_, tool), keys in self._acts.items():
            again[EFFECTS[tool]] += max(0, len(keys) - 1)
        return again


def texts_in(records: Sequence[bytes]) -> list[str]:
    """The last text of each goal."""
    texts: list[str] = []
    for event in (decode_record(record).event for record in records):
        if isinstance(event, Started):
            texts.append("")
        elif isinstance(event, Replied):
            texts[-1] = "".join(part.text for part in event.parts if isinstance(part, Text))
    return texts


def finished(life: Life) -> bool:
    """Whether the process has completed all goals."""
    return life.signal == 0 and isinstance(life.told[-1], Finished)
