"""Two processes want one session: one has it, the other is refused at once and may go on when the first is dead."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from account import Account
from lives import FULL, KINDS, Nursery, nursery
from msgspec.structs import replace
from story import SESSION, digest
from telling import Acknowledged, Fate, Handed, Life, Parted
from trials import Trials

from deepstrike import RuntimeOptions, RuntimeRunner, ScriptedProvider
from deepstrike.errors import SessionBusy
from deepstrike.sessions.file import FileSessionLog
from deepstrike.sessions.sqlite import SqliteSessionLog

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither fork nor SIGKILL")

PLACES = ["acquired", "append", "written", "put blob", "send acted", "book asks", "model asked", "release"]


@pytest.fixture(scope="module")
def one() -> Iterator[Nursery]:
    """Where the first process comes from."""
    with nursery() as opened:
        yield opened


@pytest.fixture(scope="module")
def other() -> Iterator[Nursery]:
    """Where the second process comes from."""
    with nursery() as opened:
        yield opened


def at(fate: Fate) -> FileSessionLog | SqliteSessionLog:
    """The very log of a process, opened by this one too."""
    place = Path(fate.place)
    return SqliteSessionLog(place / "sessions.db") if fate.kind == "sqlite" else FileSessionLog(place / "sessions")


def refused(life: Life) -> bool:
    """Whether all that came of a process is that the session is busy."""
    return [type(each) for each in life.told] == [Parted] and [
        (each.error, each.code) for each in life.told if isinstance(each, Parted)
    ] == [("SessionBusy", "session_busy")]


def acknowledged(life: Life) -> list[str]:
    """The digests of the records that a process knows to be in the log."""
    handed = [each.digests for each in life.told if isinstance(each, Handed)]
    times = sum(isinstance(each, Acknowledged) for each in life.told)
    return [record for digests in handed[:times] for record in digests]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", KINDS)
async def test_given_a_process_that_hangs_when_another_wants_its_session_then_it_is_busy_until_the_first_is_killed(
    kind: str, place: str, one: Nursery, other: Nursery, tmp_path: Path
) -> None:
    trials = await Trials.begin(one, tmp_path, kind)
    here = tmp_path / "here"
    here.mkdir()
    free = replace(trials.base, place=str(here))
    hanging = replace(free, at=place, die_at=2 if place in ("append", "written") else 1, hold=True)

    first, account = one.live(hanging), Account()
    refusal = other.live(free)
    records = await at(free).read(SESSION)
    with pytest.raises(SessionBusy):
        await at(free).delete(SESSION)
    one.kill_the_stopped()
    ended = await trials.after(account, hanging, first)
    second = other.live(free)

    assert (first.signal, ended, refused(refusal)) == (-1, False, True)
    assert [digest(record) for record in records][: len(acknowledged(first))] == acknowledged(first)
    assert await trials.after(account, free, second)


@pytest.mark.parametrize("kind", KINDS)
async def test_given_a_crashed_session_when_two_processes_resume_it_at_once_then_exactly_one_has_it(
    kind: str, one: Nursery, other: Nursery, tmp_path: Path
) -> None:
    trials = await Trials.begin(one, tmp_path, kind)
    for number in range(60 if FULL else 6):
        here = tmp_path / f"race-{number}"
        here.mkdir()
        free, account = replace(trials.base, place=str(here)), Account()
        crash = replace(free, at="send acted", die_at=1)
        await trials.after(account, crash, one.live(crash))

        wanting = replace(free, at="model asked", die_at=1, hold=True)
        one.begin(wanting)
        other.begin(wanting)
        lives = [one.end(), other.end()]
        one.kill_the_stopped()
        other.kill_the_stopped()
        [winner] = [life for life in lives if life.signal == -1]
        [loser] = [life for life in lives if life.signal == 0]

        assert refused(loser)
        assert not await trials.after(account, wanting, winner)
        assert await trials.after(account, free, other.live(free))


@pytest.mark.parametrize("ahead_ms", [-86_400_000, 86_400_000])
@pytest.mark.parametrize("kind", KINDS)
async def test_given_a_clock_that_jumps_between_two_processes_when_the_second_goes_on_then_time_never_goes_back(
    kind: str, ahead_ms: int, one: Nursery, tmp_path: Path
) -> None:
    trials = await Trials.begin(one, tmp_path, kind)

    account = await trials.session(
        lambda life: replace(trials.base, ahead_ms=ahead_ms, at="book acted", die_at=1) if life == 0 else None
    )

    assert (account.lives, account.lost, trials.parted) == (2, 1, [])


async def test_given_a_live_session_elsewhere_when_looked_at_here_then_its_open_requests_and_slots_are_shown(
    one: Nursery, tmp_path: Path
) -> None:
    for kind in KINDS:
        here = tmp_path / kind
        here.mkdir()
        fate = Fate(str(here), kind, at="release", die_at=1, hold=True)
        one.live(fate)
        runner = RuntimeRunner(RuntimeOptions(provider=ScriptedProvider([]), session_log=at(fate)))

        [request] = await runner.pending(SESSION)
        view = await runner.context(SESSION)
        with pytest.raises(SessionBusy):
            await runner.resume(SESSION, answers={request.request_id: "12A"})
        one.kill_the_stopped()

        assert (request.name, request.payload) == ("book", {"choose": ["12A", "14C"]})
        assert (await runner.sessions(), len(view.history.turns)) == ([SESSION], 5)
