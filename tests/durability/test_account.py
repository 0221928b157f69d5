"""The account that the kill tests keep sees what must not happen: each of these is an otherwise sound session."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from account import Account
from lives import found_in, nursery
from msgspec.structs import replace
from story import SESSION
from telling import Acknowledged, Acted, Asked, Fate, Life, Told

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither fork nor SIGKILL")

Session = tuple[list[Told], list[bytes]]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Fate, Life]]:
    """A session that nothing disturbed."""
    place = tmp_path_factory.mktemp("sound")
    fate = Fate(str(place), "file")
    with nursery() as opened:
        yield fate, opened.live(fate)


def place_of(told: list[Told], wanted: Callable[[Told], bool]) -> int:
    """Where the first line stands that is wanted."""
    return next(place for place, each in enumerate(told) if wanted(each))


def acted(tool: str) -> Callable[[Told], bool]:
    """The act of a tool."""
    return lambda each: isinstance(each, Acted) and each.tool == tool


def a_record_is_lost(told: list[Told], records: list[bytes]) -> Session:
    return told, records[:-1]


def a_record_is_changed(told: list[Told], records: list[bytes]) -> Session:
    return told, [*records[:3], records[3] + b" ", *records[4:]]


def a_record_comes_from_nowhere(told: list[Told], records: list[bytes]) -> Session:
    return told, [*records, records[-1].replace(b'"seq":30', b'"seq":31')]


def once_acts_twice(told: list[Told], records: list[bytes]) -> Session:
    place = place_of(told, acted("send"))
    return [*told[:place], told[place], *told[place:]], records


def a_settled_call_acts_again(told: list[Told], records: list[bytes]) -> Session:
    return [*told, told[place_of(told, acted("put"))]], records


def a_key_changes(told: list[Told], records: list[bytes]) -> Session:
    place = place_of(told, acted("put"))
    again = told[place]
    assert isinstance(again, Acted)
    return [*told[: place + 1], replace(again, key="another"), *told[place + 1 :]], records


def a_tool_acts_before_its_intent(told: list[Told], records: list[bytes]) -> Session:
    place = place_of(told, acted("look"))
    before = max(at for at in range(place) if isinstance(told[at], Acknowledged))
    return [*told[:before], told[place], *told[before:place], *told[place + 1 :]], records


def a_call_is_not_run(told: list[Told], records: list[bytes]) -> Session:
    place = place_of(told, acted("book"))
    return [*told[:place], *told[place + 1 :]], records


def the_model_is_asked_too_early(told: list[Told], records: list[bytes]) -> Session:
    place = place_of(told, acted("look"))
    return [*told[:place], Asked(""), *told[place:]], records


def the_transcript_has_a_flaw(told: list[Told], records: list[bytes]) -> Session:
    place = place_of(told, lambda each: isinstance(each, Asked))
    return [*told[:place], Asked("a result is missing"), *told[place + 1 :]], records


Wrong = Callable[[list[Told], list[bytes]], Session]
WRONGS: dict[Wrong, str] = {
    a_record_is_lost: "the log is not what was acknowledged",
    a_record_is_changed: "the log is not what was acknowledged",
    a_record_comes_from_nowhere: "the log is not what was acknowledged",
    once_acts_twice: "acted 2 times",
    a_settled_call_acts_again: "acted although its outcome was in the log",
    a_key_changes: "a call acted under two keys",
    a_tool_acts_before_its_intent: "acted before its call was in the log",
    a_call_is_not_run: "acted 0 times",
    the_model_is_asked_too_early: "the model was asked before all outcomes were in the log",
    the_transcript_has_a_flaw: "a result is missing",
}


async def accounted(told: list[Told], records: list[bytes], undisturbed: list[bytes]) -> None:
    """One life that is the whole session."""
    account = Account()
    account.take(Life(tuple(told), 0), records, None)
    account.close(records, undisturbed)


@pytest.mark.parametrize("wrong", WRONGS, ids=lambda wrong: wrong.__name__)
async def test_given_something_that_must_not_happen_when_it_is_accounted_for_then_it_is_found(
    wrong: Wrong, sound: tuple[Fate, Life], tmp_path: Path
) -> None:
    fate, life = sound
    records = await found_in(fate, tmp_path).read(SESSION)
    await accounted(list(life.told), records, records)

    with pytest.raises(AssertionError, match=WRONGS[wrong]):
        await accounted(*wrong(list(life.told), list(records)), records)
