"""What a process that lives through the session is told to do, and what it tells its parent, as lines of JSON."""

from __future__ import annotations

import msgspec


class Fate(msgspec.Struct, frozen=True):
    """How one process lives.

    place: where its log is. kind, durability: which log. It dies at the `die_at`-th place that it passes (0: none) and
    whose name begins with `at`; with `hold` it stops there instead and stays. after_us: its parent kills it after so
    many microseconds (0: never). most_bytes: no file may grow beyond (0: no limit), and with `die_full` the process
    dies of the write that would; else that write fails. ahead_ms: how far its clock is ahead. goals: how many it
    pursues.
    """

    place: str
    kind: str
    durability: str = "os"
    die_at: int = 0
    at: str = ""
    hold: bool = False
    after_us: int = 0
    most_bytes: int = 0
    die_full: bool = False
    ahead_ms: int = 0
    goals: int = 2


class Handed(msgspec.Struct, frozen=True, tag="handed"):
    """These records go to the log; the first must get `seq`. Each stands here by a digest of its bytes."""

    seq: int
    digests: tuple[str, ...]


class Acknowledged(msgspec.Struct, frozen=True, tag="acknowledged"):
    """The log has taken them; `seq` is the last."""

    seq: int


class Acted(msgspec.Struct, frozen=True, tag="acted"):
    """A tool has done what it does in the world."""

    tool: str
    call_id: str
    key: str


class Asked(msgspec.Struct, frozen=True, tag="asked"):
    """The model was asked. `flaw` says what is wrong with the transcript it was shown, "" if nothing is."""

    flaw: str


class Warned(msgspec.Struct, frozen=True, tag="warned"):
    """The package's logger had this to say."""

    text: str


class Parted(msgspec.Struct, frozen=True, tag="parted"):
    """The session ended otherwise than completed or suspended, or could not be opened: an error, by name and code."""

    error: str
    code: str
    text: str


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """All goals are completed. `passed` counts the places that the process has passed."""

    text: str
    passed: int


Told = Handed | Acknowledged | Acted | Asked | Warned | Parted | Finished


class Life(msgspec.Struct, frozen=True):
    """How a process lived. `signal` is what ended it (0: it left by itself), −1 while it stops and stays."""

    told: tuple[Told, ...]
    signal: int
