"""The native half of deepstrike. Import it through `deepstrike.kernel` only.

Everything here is safe to call from any thread and raises nothing but what is listed. Arguments of a wrong type raise
`TypeError`, integers that do not fit 64 bits (or are negative where that makes no sense) `OverflowError`, text with a
lone surrogate `UnicodeEncodeError` (a `ValueError`): pass text through `deepstrike.text.well_formed` first.
Whatever takes time releases the interpreter lock: inputs above 16 KiB, counting, folding, validating.
"""

from collections.abc import Sequence
from typing import Final, final

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
    "__version__",
    "clip",
    "count",
    "curate",
    "glob",
    "permit",
    "validate",
]

__version__: Final[str]
FORMAT: Final[int]
"""Version of the log's words, as `Started` and `Resumed` record it."""
RENDERER: Final[int]
"""Version of the prompt rendering; digests are compared only between equal ones."""
META_TOOLS: Final[str]
"""The kernel's own tools, a JSON array of tool specs."""

class Rejected(ValueError):
    """The kernel refused an input: not JSON, not an input, or not possible now. Nothing has changed."""

class Stale(Rejected):
    """The input answers an effect that is no longer owed. Drop it. Nothing has changed."""

class Corrupt(ValueError):
    """The records do not fold into a session; the message names the record and what does not fit."""

class Newer(ValueError):
    """The records hold what this version does not know; the message names the format that wrote them.

    Use a newer deepstrike. The log is not damaged.
    """

class KernelFault(RuntimeError):
    """A defect in the native module. Drop the kernel that raised it and resume the session from its log."""

@final
class Judge:
    """A policy, and the rate windows of all runs that it governs. Safe to use from several threads."""

    def __new__(cls, policy: bytes) -> Judge:
        """By a policy as JSON. Raises `ValueError` for one that is not valid."""
    def set(self, policy: bytes) -> None:
        """Another policy from here on; the windows of limits that stay go on counting. Raises `ValueError`."""
    def evaluate(
        self, name: str, args: str, now: int, *, consume: bool, skill: bytes | None = None, approved: bool = False
    ) -> bytes:
        """What all stages say of a call at `now` (milliseconds since the epoch): JSON with `verdict` and `trail`.

        `consume` counts an allowed call in the rate windows. `skill` is the one that is active, as JSON; a text that is
        none raises `ValueError`. `approved` says that a person has allowed the call, so that a question is no obstacle.
        """

@final
class Kernel:
    """One session's state machine: inputs in, records and effects out. It does no I/O and reads no clock.

    An object may be used from several threads; calls wait for each other. Any method may raise `KernelFault`.
    """

    def __new__(cls) -> Kernel:
        """A session without records."""
    @staticmethod
    def replay(records: Sequence[bytes], judge: Judge | None = None) -> Kernel:
        """The kernel that has lived through `records`, one JSON record each, from seq 0 on.

        The rate windows of `judge` hear of the calls that were allowed. Raises `Corrupt` or `Newer`. Never tokenizes;
        some microseconds a record.
        """
    @staticmethod
    def active_skills(records: Sequence[bytes]) -> bytes:
        """Which skill a log makes active: a JSON array of `[seq, skill or null]`, one for each change behind a record.

        Raises `Corrupt` or `Newer`.
        """
    def offers(self, name: str) -> bool:
        """Whether the current goal offers the meta-tool of this name; false before the first goal."""
    def accept(self, input: bytes, now: int, judge: Judge | None = None) -> list[bytes]:  # noqa: A002 (the kernel's word)
        """Takes one input (JSON) at `now` (milliseconds since the epoch) and returns the records it made (JSON each).

        Rate limits are counted in the windows of `judge`, without one in the kernel's own.

        All or nothing: on `Rejected` or `Stale` nothing has changed. A `now` before the last record counts as its time.
        Some microseconds, and the time to count the new text's tokens (20 to 40 MB/s; the first count for a vocabulary
        decodes it, about 0.1 s).
        """
    def advance(
        self,
        input: bytes,  # noqa: A002 (the kernel's word for it)
        now: int,
        judge: Judge | None = None,
        aside: bool = False,
    ) -> tuple[list[bytes], bytes, int | None, bytes | None]:
        """`accept`, and how things stand behind it, in one call: the records, `pending()`, `deadline()`, `outcome()`.

        With `aside` the interpreter lock is given up whatever the size of the input: a rewrite of the prompt may follow
        from a small one. Raises as `accept` does.
        """
    def pending(self, since: int = -1) -> bytes:
        """A JSON array of the effects owed to the world with an id above `since`, in id order.

        A negative `since` asks for all.
        """
    def blocks(self, epoch: int, start: int) -> bytes:
        """A JSON array of the prompt's blocks of `epoch` from index `start` on; empty if there are none."""
    def task(self) -> bytes:
        """`turns[0]` as the task stands now, as a JSON block, wherever on the wire its parts stand."""
    def weights(self) -> tuple[int, int, int, int, int, int, int]:
        """Tokens of `system_stable`, `system_knowledge`, the tools, `turns[0]` and the history, counted anew; then the
        estimate of the whole prompt that the limits go by, and the window. Zeros before the first goal.
        """
    def deadline(self) -> int | None:
        """When the current goal runs out of active time, in milliseconds since the epoch; None without a limit."""
    def outcome(self) -> bytes | None:
        """How the current goal ended or parked, as JSON; None while it runs."""
    def may_rewrite(self, size: int, told: int, now: int) -> bool:
        """Whether an input of `size` bytes may have the prompt rewritten."""
    @property
    def phase(self) -> str:
        """One of idle, thinking, acting, waiting, ended."""
    @property
    def next_seq(self) -> int:
        """The seq that the next record will get."""
    @property
    def prompt_tokens(self) -> int:
        """The estimate of the whole prompt that the limits go by."""
    @property
    def epoch(self) -> int:
        """The epoch that the prompt is in. Within one, blocks are only added."""

def count(text: str, model: str) -> int:
    """Tokens of `text` for the model named `model`.

    Exact where the model's vocabulary is embedded (never below the tokenizer's own count), else o200k and 35 % more,
    rounded up. Text that looks like a special token counts as text. A few words take well under a microsecond, long
    text runs at 20 to 40 MB/s, text without any word end at 5 or more; the first count for a vocabulary decodes it
    (about 0.1 s and 25 MB).
    """

def clip(text: str, model: str, limit: int) -> tuple[str, int] | None:
    """Shortens `text` to at most `limit` tokens of `model`; None if it fits as it is.

    The result is beginning, a line that says how many characters are missing, and end, cut on character boundaries,
    with the number of tokens of the whole text. A limit that has no room for the line leaves "…", one of 0 nothing.
    Takes the time to count the text.
    """

def curate(curation: bytes) -> bytes:
    """What a store of memories holds once everything given has come to it, and what changes for that; JSON both ways.

    A pure function of the observations as a set. About a microsecond for each. Raises `ValueError` for what is no
    `Curation`.
    """

def glob(pattern: str, name: str) -> bool:
    """Whether a glob fits a tool's whole name: `*`, `?`, `[…]`, `[!…]` anywhere; case-sensitive."""

def permit(permissions: bytes, tool: str, action: str) -> tuple[str, int | None]:
    """What a permission manager (JSON) says of an action: allow, ask or deny, and the number of the entry that decides.

    Raises `ValueError` for permissions that are not valid.
    """

def validate(schema: str, document: str) -> list[str]:
    """What is wrong with `document` by the JSON schema `schema`, as "pointer: message"; empty if it is valid.

    Both are JSON text; the pointer of the whole document is "(root)". Numbers are compared exactly, of any size.
    A document that is not JSON, nests deeper than 127, or is longer than 32 MiB is an error in the list. At most 16
    errors are listed, each at most 400 characters. Drafts 4 to 2020-12; references stay within the schema.

    Raises:
        ValueError: the schema is not JSON, is no schema, is longer than 1 MiB, refers to something outside itself, or
            would need too many steps for this document (a million, or more for a long document).
    """
