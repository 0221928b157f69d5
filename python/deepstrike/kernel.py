"""The kernel with typed inputs and outputs; the only importer of the native module."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from deepstrike._version import __version__
from deepstrike.records import decode_record
from deepstrike.wire.curation import Curated
from deepstrike.wire.effect import Effect, Outcome
from deepstrike.wire.message import Block, ToolSpec, UserBlock
from deepstrike.wire.policy import Skill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepstrike.wire.curation import Curation
    from deepstrike.wire.input import Input

_REMEDY = (
    "Build it in the checkout with `make build` (or `maturin develop --release`), or install a wheel made for this "
    "platform with `pip install .`."
)

try:
    from deepstrike import _kernel
except ImportError as error:
    raise ImportError(
        f"deepstrike's native module deepstrike._kernel is missing or does not load: {error}. {_REMEDY}"
    ) from error

if _kernel.__version__ != __version__:
    raise ImportError(
        f"deepstrike is {__version__} but its native module deepstrike._kernel is {_kernel.__version__}. {_REMEDY}"
    )

__all__ = [
    "FORMAT",
    "META_TOOLS",
    "RENDERER",
    "Corrupt",
    "Judge",
    "Kernel",
    "KernelFault",
    "Newer",
    "Rejected",
    "Stale",
    "Weights",
    "clip",
    "count",
    "curate",
    "decode_record",
    "encode_input",
    "glob",
    "permit",
    "validate",
    "warm",
]

FORMAT = _kernel.FORMAT
"""Version of the log's words, as `Started` and `Resumed` record it."""
RENDERER = _kernel.RENDERER
"""Version of the prompt rendering; digests are compared only between equal ones."""
Corrupt = _kernel.Corrupt
Judge = _kernel.Judge
KernelFault = _kernel.KernelFault
Newer = _kernel.Newer
Rejected = _kernel.Rejected
Stale = _kernel.Stale
clip = _kernel.clip
count = _kernel.count
glob = _kernel.glob
permit = _kernel.permit
validate = _kernel.validate
META_TOOLS = {spec.name: spec for spec in msgspec.json.decode(_kernel.META_TOOLS, type=list[ToolSpec])}
"""The kernel's own tools by name; it offers them beside those of a run."""

_warming = threading.Lock()


def warm(model: str) -> None:
    """Decode the vocabulary of `model`, about a tenth of a second the first time. A fork waits until it is done.

    A child forked in the middle of it would wait for ever for a thread that it does not have.
    """
    with _warming:
        count("warm", model)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_warming.acquire, after_in_parent=_warming.release, after_in_child=_warming.release)

encode_input = msgspec.json.Encoder().encode
"""An input as the JSON that `accept` takes. Raises `UnicodeEncodeError` on a lone surrogate."""
_curated = msgspec.json.Decoder(Curated).decode
_effects = msgspec.json.Decoder(list[Effect]).decode
_blocks = msgspec.json.Decoder(list[Block]).decode
_task = msgspec.json.Decoder(UserBlock).decode
_changes = msgspec.json.Decoder(list[tuple[int, Skill | None]]).decode
_outcome = msgspec.json.Decoder(Outcome).decode


def curate(curation: Curation) -> Curated:
    """What a store of memories holds once everything given has come to it, and what changes for that.

    A pure function of the observations as a set. A lone surrogate in a text raises `UnicodeEncodeError`.
    """
    return _curated(_kernel.curate(msgspec.json.encode(curation)))


class Weights(NamedTuple):
    """Tokens by slot. `total` is the estimate of the whole prompt that the limits go by, anchored on reported usage."""

    system_stable: int
    system_knowledge: int
    tools: int
    state: int
    history: int
    total: int
    window: int


class Kernel:
    """One session's state machine: typed inputs in, records and effects out.

    It does no I/O and reads no clock. An object may be used from several threads. Any method may raise `KernelFault`
    after a defect in the native module; then resume the session from its log.
    """

    __slots__ = ("_native",)

    def __init__(self) -> None:
        """A session without records."""
        self._native = _kernel.Kernel()

    @classmethod
    def replay(cls, records: Sequence[bytes], judge: Judge | None = None) -> Kernel:
        """The kernel that has lived through `records`, from seq 0 on. Raises `Corrupt` or `Newer`.

        The rate windows of `judge` hear of the calls that were allowed.
        """
        kernel = cls.__new__(cls)
        kernel._native = _kernel.Kernel.replay(records, judge)
        return kernel

    @staticmethod
    def active_skills(records: Sequence[bytes]) -> list[tuple[int, Skill | None]]:
        """Which skill `records` make active, or none, behind which of them. Raises `Corrupt` or `Newer`."""
        return _changes(_kernel.Kernel.active_skills(records))

    def offers(self, name: str) -> bool:
        """Whether the current goal offers the meta-tool of this name; false before the first goal."""
        return self._native.offers(name)

    def accept(self, input: Input, now: int, judge: Judge | None = None) -> list[bytes]:  # noqa: A002 (the kernel's word)
        """Takes `input` at `now` (milliseconds since the epoch); the records it made, as the log keeps them.

        `decode_record` reads one. Raises `Stale` for the answer to an effect no longer owed, `Rejected` for an input
        that is not possible; nothing has changed then. A lone surrogate in a text raises `UnicodeEncodeError`.
        """
        return self._native.accept(encode_input(input), now, judge)

    def advance(
        self,
        input: bytes,  # noqa: A002 (the kernel's word for it)
        now: int,
        judge: Judge | None = None,
        *,
        aside: bool = False,
    ) -> tuple[list[bytes], list[Effect], int | None, Outcome | None]:
        """`accept` for an input that `encode_input` has encoded, and how things stand behind it.

        Gives the records it made, and what `pending()`, `deadline()` and `outcome()` say now. `aside` says that this is
        no thread that others wait for: the interpreter lock is given up also for a small input. Raises as `accept`
        does.
        """
        records, owed, deadline, outcome = self._native.advance(input, now, judge, aside)
        return records, _effects(owed), deadline, None if outcome is None else _outcome(outcome)

    def pending(self, since: int = -1) -> list[Effect]:
        """The effects owed to the world with an id above `since`, in id order."""
        return _effects(self._native.pending(since))

    def blocks(self, epoch: int, start: int) -> list[Block]:
        """The prompt's blocks of `epoch` from index `start` on."""
        return _blocks(self._native.blocks(epoch, start))

    def task(self) -> UserBlock:
        """`turns[0]` as the task stands now: goal, criteria, plan, progress, signals, what is known of what left."""
        return _task(self._native.task())

    def weights(self) -> Weights:
        """What each slot of the prompt weighs, counted anew: for whoever looks at a session."""
        return Weights(*self._native.weights())

    def deadline(self) -> int | None:
        """When the current goal runs out of active time, in milliseconds since the epoch; None without a limit."""
        return self._native.deadline()

    def outcome(self) -> Outcome | None:
        """How the current goal ended or parked; None while it runs."""
        outcome = self._native.outcome()
        return None if outcome is None else _outcome(outcome)

    def may_rewrite(self, size: int, told: int, now: int) -> bool:
        """Whether an input of `size` bytes may have the prompt rewritten at `now`.

        A rewrite takes time in proportion to the prompt. `told` are the tokens of the prompt that the input reports, or
        0. True where no goal is under way. Says nothing of inputs that begin a goal or go on with one, or that tell of
        a failed model call: those may.
        """
        return self._native.may_rewrite(size, told, now)

    @property
    def phase(self) -> str:
        """One of idle, thinking, acting, waiting, ended."""
        return self._native.phase

    @property
    def next_seq(self) -> int:
        """The seq that the next record will get."""
        return self._native.next_seq

    @property
    def prompt_tokens(self) -> int:
        """The estimate of the whole prompt that the limits go by; costs nothing."""
        return self._native.prompt_tokens

    @property
    def epoch(self) -> int:
        """The epoch that the prompt is in."""
        return self._native.epoch
