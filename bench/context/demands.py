"""Demands that a user makes along the way, after ten compressions of the session."""

from __future__ import annotations

import json

from bench.context.dialogues import Model, Tool, User
from bench.context.ours import Session
from deepstrike.wire.message import ToolSpec

_DEMANDS = (
    "Never book a seat in row {n}3.",
    "The total must not exceed {n}50 dollars.",
    "Always answer me in language number {n}.",
    "Please don't call my office number 555-0{n}1.",
    "Bitte keine Flüge vor {n} Uhr.",
    "第{n}号请求：不要靠窗的座位。",
    # Without a word that says that it is one, in other languages, with abbreviations, and a long one.
    "I am allergic to peanuts and to dish {n}.",
    "Row {n} is out of the question for me.",
    "Budget: {n}00 USD.",
    "Я не ем мясо номер {n}.",
    "别订{n}点以前的航班。",
    "Non voglio volare di notte, volo {n}.",
    "Não aceito o hotel {n} sem piscina.",
    "لا تحجز رحلات ليلية {n}.",
    "{n}번 비행기는 안 돼요.",
    "Never book with Dr. Smith, e.g. at no. {n}, on Mondays.",
    "Report amount {n} in EUR.",
    "On trip {n} I would like, " + "if that can be arranged at all, " * 20 + "to sit alone.",
)
_TOOLS = (ToolSpec("look", "Looks something up.", '{"type":"object","properties":{"item":{}}}', "read"),)
_PASSES = 10
WINDOWS = (4_000, 8_000, 16_000, 32_000)


def kept_demands(window: int) -> tuple[int, int, int]:
    """How many demands stand word for word in the last prompt, how many were made, and the compressions between."""
    session = Session("Be helpful.", _TOOLS, window)
    demands: list[str] = []
    number = 0
    while len(session.compressions) < _PASSES:
        number += 1
        demands.append(_DEMANDS[number % len(_DEMANDS)].format(n=number))
        session.take(User(f"Hello again, this is visit {number}. {demands[-1]} Thank you!"))
        for item in range(4):
            session.take(Model("", "look", json.dumps({"item": f"item-{number}-{item}"})))
            session.take(Tool(f"item-{number}-{item} is there. " * 40))
        session.take(Model(f"That was visit {number}."))
    session.take(User("And now?"))
    shown = "".join(block.text for block in session.request() or [])
    return sum(demand in shown for demand in demands), len(demands), len(session.compressions)
