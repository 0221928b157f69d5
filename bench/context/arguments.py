"""Whether the values that calls are made with can still be seen in the prompt that they are made from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bench.context.dialogues import Model, User
from bench.context.ours import Session, tools
from bench.context.prompts import newest, said

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.context.dialogues import Dialogue, Turn
    from deepstrike.wire.message import ToolSpec

_SHORTEST = 3


def values(arguments: str) -> Iterator[str]:
    """The texts and numbers in a call's arguments."""
    yield from _scalars(json.loads(arguments))


def _scalars(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for member in value.values():
            yield from _scalars(member)
    elif isinstance(value, list):
        for item in value:
            yield from _scalars(item)
    elif isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool)):
        text = str(value)
        if len(text) >= _SHORTEST and "\n" not in text:
            yield text


def _told(turn: Turn) -> str:
    return turn.text + (turn.arguments if isinstance(turn, Model) else "")


def of_window(dialogues: Sequence[Dialogue], room: int) -> float:
    """The part that the newest turns of so many tokens show."""
    seen = wanted = 0
    for dialogue in dialogues:
        for at, turn in enumerate(dialogue.turns):
            if isinstance(turn, Model) and turn.name:
                before = dialogue.turns[:at]
                shown = "".join(each.text for each in newest([said(each) for each in before], room)).replace("\\", "")
                for value in _recallable(turn, before):
                    wanted += 1
                    seen += value in shown
    return seen / wanted


def of_ours(dialogues: Sequence[Dialogue], room: int) -> tuple[float, int]:
    """The part that a prompt of ours shows with so many tokens of history; and the most that the history had."""
    specs = tools(dialogues)
    seen = wanted = most = 0
    for dialogue in dialogues:
        session = Session(dialogue.system, specs, _window(dialogue, specs, room))
        for at, turn in enumerate(dialogue.turns):
            if isinstance(turn, Model):
                prompt = session.request()
                if prompt is None:
                    wanted += _missed(dialogue, at)
                    break
                most = max(most, session.history_tokens)
                shown = "".join(each.text for each in prompt[1:]).replace("\\", "")
                for value in _recallable(turn, dialogue.turns[:at]) if turn.name else ():
                    wanted += 1
                    seen += value in shown
            session.take(turn)
    return seen / wanted, most


def _missed(dialogue: Dialogue, since: int) -> int:
    """Values that calls need from here on, in a dialogue whose request no longer fits: none of them is visible."""
    rest = enumerate(dialogue.turns[since:], since)
    calls = [(at, turn) for at, turn in rest if isinstance(turn, Model) and turn.name]
    return sum(len(_recallable(turn, dialogue.turns[:at])) for at, turn in calls)


def _recallable(turn: Model, before: Sequence[Turn]) -> list[str]:
    """The values of a call that were told before: what the model made itself no layout could show."""
    told = "\n".join(map(_told, before))
    return [value for value in values(turn.arguments) if value in told]


def _window(dialogue: Dialogue, specs: tuple[ToolSpec, ...], room: int) -> int:
    """The window that leaves so many tokens beside the head."""
    session = Session(dialogue.system, specs, 10**9)
    session.take(User("x"))
    return session.head_tokens + room
