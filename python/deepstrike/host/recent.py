"""Sessions at rest: what a further goal of the same session need not fold, pull and encode again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepstrike.host.secrecy import Vault

if TYPE_CHECKING:
    from deepstrike.host.narrate import Narrator
    from deepstrike.host.prompt import Prompt
    from deepstrike.kernel import Judge, Kernel

MAX_SESSIONS = 16
MAX_RECORDS = 100_000

# So many last records must be the same in the log: the end of a goal and the digest of all that came before it.
TAIL = 3


@dataclass(frozen=True, slots=True)
class Standing:
    """A session as its last run left it. `tail` is how its log ends, `judge` whose rate windows know its calls."""

    kernel: Kernel
    prompt: Prompt
    narrator: Narrator
    tail: list[bytes]
    judge: Judge | None = None


class Recent:
    """The sessions that ended last, the oldest forgotten first. From any thread. `vault` holds what they withhold.

    The sessions are only ever a saving: whoever takes one compares its tail with the log, under the session's lock,
    before using it.
    """

    def __init__(self, vault: Vault | None = None) -> None:
        self.vault = Vault() if vault is None else vault
        self._lock = threading.Lock()
        self._standing: OrderedDict[str, Standing] = OrderedDict()
        self._records = 0

    def keep(self, session_id: str, standing: Standing) -> None:
        """Remember how a session stands."""
        with self._lock:
            self._forget(session_id)
            self._standing[session_id] = standing
            self._records += standing.kernel.next_seq
            while self._standing and (len(self._standing) > MAX_SESSIONS or self._records > MAX_RECORDS):
                self._forget(next(iter(self._standing)))

    def take(self, session_id: str, judge: Judge | None = None) -> Standing | None:
        """What is remembered of a session under this judge; it is then forgotten here.

        The rate windows of another judge do not know its calls and have to hear of them from the log.
        """
        with self._lock:
            standing = self._forget(session_id)
        return standing if standing is not None and standing.judge is judge else None

    def _forget(self, session_id: str) -> Standing | None:
        standing = self._standing.pop(session_id, None)
        if standing is not None:
            self._records -= standing.kernel.next_seq
        return standing
