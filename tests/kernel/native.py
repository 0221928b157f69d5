"""A configured kernel for the tests of the border."""

from __future__ import annotations

import os
import random

from deepstrike.wire.input import Reply, Start
from deepstrike.wire.message import CallPart, Ok, Text, ToolSpec
from deepstrike.wire.policy import Config, Limits, Model, Policy

FULL = os.environ.get("DEEPSTRIKE_FULL") == "1"
CONFIG = Config(
    session="s",
    system="Be brief.",
    preload=(),
    tools=(ToolSpec("add", "Adds.", '{"type":"object"}'),),
    policy=Policy(),
    limits=Limits(max_turns=5, window=100_000_000, reserve=1000, parallel=8),
    model=Model("gpt-4o"),
)


def seeded() -> tuple[int, random.Random]:
    """The seed of this run, to be named when a test fails, and its dice."""
    seed = int(os.environ.get("DEEPSTRIKE_SEED", "20261130"))
    return seed, random.Random(seed)


def start(goal: str) -> Start:
    return Start(goal=(Text(goal),), config=CONFIG)


def calling(effect: int, args_text: str) -> Reply:
    """A reply with one valid call of `add`."""
    return Reply(effect=effect, parts=(CallPart("w1", "add", args_text, Ok()),), finish="tool_calls")
