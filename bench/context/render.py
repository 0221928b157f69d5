"""What a turn costs in the kernel when the history is long: the input taken, the new blocks rendered and read."""

from __future__ import annotations

import json
import time
from statistics import median

from bench.context.dialogues import Model, Tool, User
from bench.context.ours import Session
from deepstrike.wire.message import ToolSpec

_TOOLS = (ToolSpec("look", "Looks.", '{"type":"object","properties":{"item":{}}}', "read"),)
_SAMPLES = 300


def microseconds(messages: int) -> float:
    """The median of a reply with a call and its result, behind a history of so many messages."""
    session = Session("Be helpful.", _TOOLS, 10**9)
    session.take(User("Look at everything."))
    session.pull()
    for number in range(messages // 2):
        _turn(session, number)
    return median(_timed(session, messages + number) for number in range(_SAMPLES))


def _timed(session: Session, number: int) -> float:
    begun = time.perf_counter_ns()
    _turn(session, number)
    return (time.perf_counter_ns() - begun) / 1_000


def _turn(session: Session, number: int) -> None:
    session.take(Model("", "look", json.dumps({"item": f"item-{number}"})))
    session.take(Tool(f"item-{number} is there."))
    session.pull()
