"""Sessions that are lived through by one process after another, each dying its death, until one of them finishes."""

from __future__ import annotations

import shutil
import signal
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path

from account import Account, finished
from lives import Nursery, found_in
from msgspec.structs import replace
from story import SESSION
from telling import Fate, Life, Parted, Warned

Deaths = Callable[[int], Fate | None]
RECORDS = 31
"""Of the session that nothing disturbs."""


class Trials:
    """Sessions of one kind of log. `undisturbed` are the records of the first, which nothing disturbs.

    `kills` counts the processes that were killed, `parted` the others that could not finish; `warnings` is what the
    package's logger said. `totals` sums what the accounts of the sessions count.
    """

    def __init__(self, nursery: Nursery, folder: Path, kind: str, durability: str = "os") -> None:
        self.base = Fate(place="", kind=kind, durability=durability)
        self.kills = 0
        self.parted: list[Parted] = []
        self.warnings: list[str] = []
        self.totals: Counter[str] = Counter()
        self.undisturbed: list[bytes] = []
        self._nursery = nursery
        self._folder = folder
        self._numbers = count()

    @classmethod
    async def begin(cls, nursery: Nursery, folder: Path, kind: str, durability: str = "os") -> Trials:
        """The first session is made at once."""
        trials = cls(nursery, folder, kind, durability)
        account = await trials.session(lambda _: None)
        assert (account.lives, len(trials.undisturbed)) == (1, RECORDS)
        return trials

    async def session(self, deaths: Deaths) -> Account:
        """Have a new session lived through. `deaths` gives the fate of each life by its number, None to let it live.

        Whatever a process left is checked before the next one begins.
        """
        place = self._folder / f"{self.base.kind}-{next(self._numbers)}"
        place.mkdir()
        account = Account()
        fates: list[Fate] = []
        for number in count():
            fates.append(replace(deaths(number) or self.base, place=str(place)))
            life = self._nursery.live(fates[-1])
            try:
                if await self.after(account, fates[-1], life):
                    break
            except AssertionError as error:
                raise AssertionError(f"{error}, after these lives: {fates}") from error
        shutil.rmtree(place)
        return account

    async def after(self, account: Account, fate: Fate, life: Life) -> bool:
        """Check what a life has left; whether it finished the session."""
        log = found_in(fate, self._folder)
        records = await log.read(SESSION)
        account.take(life, records, await log.verify(SESSION) if records else None)
        self.kills += life.signal in (signal.SIGKILL, signal.SIGXFSZ)
        self.parted += [each for each in life.told if isinstance(each, Parted)]
        self.warnings += [each.text for each in life.told if isinstance(each, Warned)]
        if not finished(life):
            return False
        self.undisturbed = self.undisturbed or records
        account.close(records, self.undisturbed)
        self.totals.update(account.repeated())
        self.totals.update(lost=account.lost, absent=account.absent, whole=account.whole)
        return True
