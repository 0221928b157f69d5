"""The frame that a log puts around each record: what makes damage and half-written batches visible.

A frame is `left` and `checksum`, two little-endian 32-bit numbers, followed by the record's own bytes. `left` says how
many records of the same batch still follow: 0 marks the last one, so a batch that was cut can be told from a whole one.
`checksum` is a CRC-32 that begins with the checksum of the frame before (the first with `seed(session_id)`), so a
record that was changed, dropped, swapped or taken from another session does not fit its neighbours. Everything here is
pure; where frames are kept, and how long each is, is the log's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_HEADER = Struct("<II")
_pack = _HEADER.pack
_MASK = 0xFFFF_FFFF
_MIX = 0x9E37_79B1
HEADER_SIZE = _HEADER.size


@dataclass(frozen=True, slots=True)
class Damage:
    """Frame `index` (counted within what was scanned) does not fit; `reason` says what is wrong with it."""

    index: int
    reason: str


@dataclass(frozen=True, slots=True)
class Scan:
    """What a scan found: the records of all whole batches before the first fault.

    `chain` is the checksum that the next batch goes on from. `cut` counts the intact frames behind them whose batch has
    no end. `damage` is None when every frame fits.
    """

    records: list[bytes]
    chain: int
    cut: int
    damage: Damage | None


def seed(session_id: str) -> int:
    """The checksum that the first frame of a session begins with."""
    return crc32(session_id.encode("utf-8", "surrogatepass"))


def checksum_of(frame: bytes) -> int:
    """The checksum of a frame, which the next one begins with."""
    return int.from_bytes(frame[4:8], "little")


def seal_batch(records: Sequence[bytes], before: int) -> list[int]:
    """A seal for each record of one batch: `left << 32 | checksum`; `before` is the checksum in front of the batch."""
    if len(records) == 1:  # every second batch; the turn waits for it
        return [crc32(records[0], before)]
    seals = []
    left = len(records)
    for record in records:
        left -= 1
        before = crc32(record, before ^ (left * _MIX & _MASK))  # `checksum`, without the cost of a call
        seals.append(left << 32 | before)
    return seals


def frame_batch(records: Sequence[bytes], before: int) -> list[bytes]:
    """The frames of one batch, `before` being the checksum of the frame in front of it."""
    seals = seal_batch(records, before)
    return [_pack(seal >> 32, seal & _MASK) + record for seal, record in zip(seals, records, strict=True)]


def verify(records: Iterable[bytes], seals: Iterable[int], before: int) -> Damage | None:
    """The first of `records` that does not fit its seal; `before` is the checksum in front of them."""
    for index, (record, seal) in enumerate(zip(records, seals, strict=True)):
        found = crc32(record, before) if seal <= _MASK else checksum(record, before, seal >> 32)
        before = seal & _MASK
        if found != before:
            return Damage(index, misfit(before, found))
    return None


def scan(frames: Iterable[bytes], before: int) -> Scan:
    """Check `frames` in order, up to the first that does not fit, and take out the records of the whole batches."""
    records: list[bytes] = []
    open_batch: list[bytes] = []
    chain, last, expected_left = before, before, None
    for index, frame in enumerate(frames):
        reason = _fault(frame, last, expected_left)
        if reason is not None:
            return Scan(records, chain, len(open_batch), Damage(index, reason))
        left, last = _HEADER.unpack_from(frame)
        open_batch.append(frame[HEADER_SIZE:])
        expected_left = left - 1 if left else None
        if left == 0:
            records += open_batch
            open_batch.clear()
            chain = last
    return Scan(records, chain, len(open_batch), None)


def checksum(record: bytes, before: int, left: int) -> int:
    """The checksum of a record behind `before`, of whose batch `left` records still follow."""
    # For given bytes CRC-32 maps every start to another end, so mixing `left` into the start covers it too, for free.
    return crc32(record, before ^ (left * _MIX & _MASK))


def _fault(frame: bytes, before: int, expected_left: int | None) -> str | None:
    if len(frame) < HEADER_SIZE:
        return f"its header has {len(frame)} of {HEADER_SIZE} bytes"
    left, seal = _HEADER.unpack_from(frame)
    found = checksum(frame[HEADER_SIZE:], before, left)
    if found != seal:
        return misfit(seal, found)
    if expected_left is not None and left != expected_left:
        return f"it says that {left} records of its batch follow where {expected_left} do"
    return None


def misfit(seal: int, found: int) -> str:
    """What to say of a frame whose checksum does not fit its bytes."""
    return f"its checksum is {seal:08x} and its bytes give {found:08x}"
