"""The frame around a record shows damage and cut batches, wherever it is kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from deepstrike.sessions.frame import Damage, Scan, checksum_of, frame_batch, scan, seed

BATCHES = st.lists(st.lists(st.binary(max_size=40), min_size=1, max_size=4), min_size=1, max_size=5)


def framed(batches: list[list[bytes]], session_id: str = "s") -> list[bytes]:
    frames: list[bytes] = []
    chain = seed(session_id)
    for batch in batches:
        frames += frame_batch(batch, chain)
        chain = checksum_of(frames[-1])
    return frames


@given(BATCHES)
def test_given_whole_batches_when_scanned_then_their_records_come_back(batches: list[list[bytes]]) -> None:
    frames = framed(batches)
    records = [record for batch in batches for record in batch]
    assert scan(frames, seed("s")) == Scan(records, checksum_of(frames[-1]), 0, None)


def test_given_a_cut_after_each_frame_when_scanned_then_only_whole_batches_count() -> None:
    frames = framed([[b"a"], [b"b", b"c", b"d"], [b"e"]])
    found = [scan(frames[:end], seed("s")) for end in range(6)]
    assert [(result.records, result.cut) for result in found] == [
        ([], 0),
        ([b"a"], 0),
        ([b"a"], 1),
        ([b"a"], 2),
        ([b"a", b"b", b"c", b"d"], 0),
        ([b"a", b"b", b"c", b"d", b"e"], 0),
    ]


def test_given_a_cut_batch_when_the_log_goes_on_from_the_chain_then_the_next_batch_fits() -> None:
    frames = framed([[b"a"], [b"b", b"c"]])
    found = scan(frames[:2], seed("s"))
    again = frames[:1] + frame_batch([b"new"], found.chain)
    assert scan(again, seed("s")).records == [b"a", b"new"]


def test_given_any_flipped_bit_when_scanned_then_the_frame_is_named() -> None:
    frames = framed([[b"alpha"], [b"beta", b"gamma"], [b""]])
    for index, frame in enumerate(frames):
        for bit in range(len(frame) * 8):
            broken = bytearray(frame)
            broken[bit // 8] ^= 1 << bit % 8
            found = scan([*frames[:index], bytes(broken), *frames[index + 1 :]], seed("s"))
            assert found.damage is not None
            assert found.damage.index == index


def test_given_a_header_cut_at_any_byte_when_scanned_then_it_is_named() -> None:
    frames = framed([[b"a"], [b"b"]])
    for size in range(8):
        found = scan([frames[0], frames[1][:size]], seed("s"))
        assert found == Scan([b"a"], checksum_of(frames[0]), 0, Damage(1, f"its header has {size} of 8 bytes"))


def test_given_a_dropped_swapped_or_foreign_frame_when_scanned_then_it_does_not_fit() -> None:
    frames = framed([[b"a"], [b"b"], [b"c"]])
    foreign = framed([[b"a"]], "another session")
    for broken, index in (
        ([frames[0], frames[2]], 1),
        ([frames[1], frames[0], frames[2]], 0),
        ([*frames[:2], frames[1]], 2),
        (foreign, 0),
    ):
        found = scan(broken, seed("s"))
        assert found.damage is not None
        assert found.damage.index == index


def test_given_a_batch_inside_an_open_one_when_scanned_then_the_count_gives_it_away() -> None:
    opened = frame_batch([b"a", b"b", b"c"], seed("s"))[0]
    inside = frame_batch([b"x"], checksum_of(opened))
    assert scan([opened, *inside], seed("s")) == Scan(
        [], seed("s"), 1, Damage(1, "it says that 0 records of its batch follow where 1 do")
    )
