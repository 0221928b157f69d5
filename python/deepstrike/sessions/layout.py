"""The bytes of a session's file: a head line, then frames, each behind its length. Everything here is pure.

    deepstrike log 1 0000000c "sums" 1a2b3c4d⏎
    length  check  left  checksum  record …

The head holds the layout's version, the session's place in the order of first appends, its id as JSON, and a CRC-32 of
all that. `length` is that of the record and `check` a CRC-32 of it behind the checksum of the frame before, so that a
length is believed only where it belongs: without that, one flipped bit in it could pass for a file that was cut.
"""

from __future__ import annotations

import json
import re
from array import array
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from deepstrike.sessions.frame import checksum, misfit, seal_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

VERSION: Final = 1
_MAGIC: Final = b"deepstrike log "
_HEAD = re.compile(rb'deepstrike log (\d+) ([0-9a-f]{8}) ("[ -~]*") ([0-9a-f]{8})\n')
_PRINTABLE = re.compile(b"[ -~]*")
_VERSIONED = re.compile(rb"deepstrike log (\d{1,9}) ")
_PREFIX = Struct("<IIII")
_LENGTH = Struct("<I")
PREFIX_SIZE: Final = _PREFIX.size
BLOCK: Final = 512
"""What a disk writes at once, at the least: a power cut can leave zeros only from such a border on."""
_BLANK: Final = 16


@dataclass(frozen=True, slots=True)
class Head:
    """What the head line says; `version` alone is known of a later layout."""

    version: int
    order: int = 0
    session_id: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """Frame `index` (counted within what was read), `offset` bytes into it, does not fit, for this reason."""

    index: int
    offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class Stretch:
    """What was read of a file: the records of its whole batches.

    `ends` is where each of their frames ends, `chain` the checksum of the last. `torn` counts the bytes behind them
    that an unfinished write has left; `fault` is what is damaged, None where nothing is.
    """

    records: list[bytes]
    ends: array[int]
    chain: int
    torn: int
    fault: Fault | None


def head_line(session_id: str, order: int) -> bytes:
    """The head of a new file. Its length depends on the id alone."""
    body = b"%b%d %08x %b " % (_MAGIC, VERSION, order, json.dumps(session_id).encode())
    return b"%b%08x\n" % (body, crc32(body))


def head_of(data: bytes) -> Head | None:
    """The head that `data` begins with; None where there is none or it is damaged."""
    found = _HEAD.match(data)
    if found is not None and int(found[1]) == VERSION and crc32(data[: found.start(4)]) == int(found[4], 16):
        return Head(VERSION, int(found[2], 16), json.loads(found[3]))
    versioned = _VERSIONED.match(data)
    if versioned is not None and int(versioned[1]) > VERSION:
        return Head(int(versioned[1]))
    return None


def is_torn_head(data: bytes) -> bool:
    """Whether a file that holds nothing but `data` may be one whose head line was never written to its end."""
    if not data.strip(b"\0"):
        return True
    return data[: len(_MAGIC)] == _MAGIC[: len(data)] and _PRINTABLE.fullmatch(data) is not None


def pack_batch(records: Sequence[bytes], chain: int, at: int) -> tuple[bytes, list[int], int]:
    """The bytes of one batch that begins at offset `at`, where each of its frames ends, and the new chain."""
    pieces: list[bytes] = []
    ends: list[int] = []
    for record, seal in zip(records, seal_batch(records, chain), strict=True):
        length = len(record)
        pieces.append(_PREFIX.pack(length, crc32(_LENGTH.pack(length), chain), seal >> 32, seal & 0xFFFF_FFFF))
        pieces.append(record)
        chain = seal & 0xFFFF_FFFF
        at += PREFIX_SIZE + length
        ends.append(at)
    return b"".join(pieces), ends, chain


def checksum_at(prefix: bytes) -> int:
    """The checksum in the `PREFIX_SIZE` bytes in front of a record."""
    return int.from_bytes(prefix[12:16], "little")


def read_stretch(data: bytes, chain: int, base: int) -> Stretch:
    """Read frames from the start of `data`, which stands at offset `base` of its file and reaches to its end.

    `chain` is the checksum in front of them.
    """
    records: list[bytes] = []
    ends: array[int] = array("Q")
    whole, at, last, expected = 0, 0, chain, -1
    fault: Fault | None = None
    while (frame := _frame_at(data, at, last, expected)) is not None:
        if frame.reason:
            blank = _blank(data, at, frame.end, base)
            fault = None if blank else Fault(len(records), base + at, frame.reason)
            break
        records.append(frame.record)
        ends.append(base + frame.end)
        at, last, expected = frame.end, frame.seal, frame.left - 1
        if frame.left == 0:
            whole, chain = len(records), last
    del records[whole:], ends[whole:]
    torn = 0 if fault is not None else len(data) - (ends[-1] - base if ends else 0)
    return Stretch(records, ends, chain, torn, fault)


class _Frame(NamedTuple):
    """A frame that ends at `end`, if `reason` is empty; else what is wrong with it."""

    left: int
    seal: int
    record: bytes
    end: int
    reason: str = ""


def _frame_at(data: bytes, at: int, last: int, expected: int) -> _Frame | None:
    """The frame at `at` behind one with the checksum `last`; None where the data ends before it does."""
    start = at + PREFIX_SIZE
    if start > len(data):
        return None
    length, check, left, seal = _PREFIX.unpack_from(data, at)
    if crc32(data[at : at + 4], last) != check:
        return _Frame(left, seal, b"", start, "its length does not fit")
    end = start + length
    if end > len(data):
        return None
    record = data[start:end]
    found = checksum(record, last, left)
    if found != seal:
        return _Frame(left, seal, b"", end, misfit(seal, found))
    if 0 <= expected != left:
        return _Frame(left, seal, b"", end, f"it says that {left} records of its batch follow where {expected} do")
    return _Frame(left, seal, record, end)


def _blank(data: bytes, start: int, end: int, base: int) -> bool:
    """Whether the frame from `start` to `end` was never written to its end: nothing but zeros from a disk's border on.

    A file system may have made a file longer before a power cut and never come to write what belongs there.
    """
    last = max(start, len(data.rstrip(b"\0")))
    border = -(-(base + last) // BLOCK) * BLOCK
    return last < end and base + len(data) - border >= _BLANK
