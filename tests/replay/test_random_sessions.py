"""Whatever happens to a session, it replays: random inputs, as many as a run would see in a bad year."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from samples import CONFIG, Hand

from deepstrike.kernel import Rejected
from deepstrike.replay.comparison import compare
from deepstrike.replay.proof import Replay, replay
from deepstrike.replay.story import story_of
from deepstrike.wire.effect import AskUser, CallModel, RunTool, Summarize
from deepstrike.wire.input import (
    Answer,
    Clock,
    Failure,
    Fault,
    Input,
    Interrupt,
    Notify,
    Reply,
    Result,
    Resume,
    SetPolicy,
    Start,
    Summary,
    Suspend,
    Value,
)
from deepstrike.wire.message import CallPart, Err, Notice, Ok, ReplyPart, Text, ToolResult, Usage, Validated
from deepstrike.wire.policy import Config, Limits, Model, Policy, Price
from deepstrike.wire.signal import Signal

FULL = os.environ.get("DEEPSTRIKE_FULL") == "1"
SEED = int(os.environ.get("DEEPSTRIKE_SEED", "20261130"))
SESSIONS_A_TEST = 500 if FULL else 20
PRICE = Price(1_000_000, 2_000_000, 100_000, 0)


class Fate:
    """Decides what happens next to a session."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.hand = Hand()

    def session(self) -> list[bytes]:
        self.hand.take(Start((Text("Go."),), self.config()))
        for _ in range(self.random.randrange(5, 40)):
            self.hand.now += self.random.choice([0, 0, 1, 5, 50]) - 1
            if self.random.random() < 0.05:
                self.hand.crash()
            item = self.from_beside() if self.random.random() < 0.25 else self.owed()
            try:
                self.hand.take(item)
            except Rejected:
                continue  # it came at a bad time and changed nothing
        return self.hand.records

    def config(self) -> Config:
        choose = self.random.choice
        limits = Limits(
            max_turns=choose([3, 25]),
            window=choose([400, 1_200, 100_000]),
            reserve=50,
            parallel=choose([1, 2, 8]),
            max_total_tokens=choose([None, None, 900]),
            max_cost=choose([None, 200]),
            timeout_ms=choose([None, None, 40]),
        )
        model, system = Model("m", choose([None, PRICE])), choose(["a", "b"])
        return replace(CONFIG, limits=limits, model=model, system=system, summaries=choose([True, False]))

    def from_beside(self) -> Input:
        makers: list[Callable[[], Input]] = [
            lambda: Start((Text("Again."),), self.config()),
            lambda: Resume(self.config()),
            lambda: Interrupt("stop"),
            Clock,
            lambda: SetPolicy(Policy()),
            self.signals,
            self.signals,
        ]
        return self.random.choice(makers)()

    def signals(self) -> Input:
        more = tuple(self.signal() for _ in range(self.random.choice([0, 0, 1, 30])))
        return Notify(self.signal(), more, self.random.random() < 0.5)

    def signal(self) -> Signal:
        choose = self.random.choice
        return Signal(
            choose(["news", "news", "interrupt"]),
            choose(["{}", '{"text":"Stop."}', f'"{"x" * 900}"']),
            urgency=choose(["low", "normal", "high", "critical"]),
            dedupe_key=choose([None, None, "k"]),
            id=choose([None, None, "d1", "d2"]),
            from_user=self.random.random() < 0.2,
        )

    def owed(self) -> Input:
        effects = self.hand.kernel.pending()
        match self.random.choice(effects) if effects else None:
            case CallModel(id=effect):
                return self.reply(effect)
            case RunTool(id=effect):
                return self.result(effect)
            case AskUser(id=effect):
                return Answer(effect, Value("1"))
            case Summarize(id=effect):
                return self.summary(effect)
            case None:
                return self.from_beside()

    def summary(self, effect: int) -> Input:
        choose = self.random.choice
        usage, price = choose([Usage(0, 0), Usage(100, 10, 5)]), choose([None, Price(1, 1_000_000, 3, 4)])
        if self.random.random() < 0.3:
            return Summary(effect, "", usage, price, Fault("summary_late", "it is"))
        return Summary(effect, choose(["It was so.", "word " * 5_000]), usage, price)

    def reply(self, effect: int) -> Input:
        choose = self.random.choice
        if self.random.random() < 0.1:
            return Failure(effect, Fault("overloaded", "it is", retryable=True))
        complete = self.random.random() < 0.85
        return Reply(
            effect,
            tuple(self.part() for _ in range(self.random.randrange(4))),
            choose(["stop", "tool_calls", "length", "content_filter"]) if complete else "interrupted",
            usage=choose([None, Usage(100, 10, 5)]),
            complete=complete,
            output=choose([None, None, Ok("1"), Err("invalid_output", "no number")]),
            fault=None if complete else choose([None, Fault("stalled", "it is")]),
            notices=choose([(), (Notice("fallback", "another answers"),)]),
            price=choose([None, Price(1, 1_000_000, 3, 4)]),
        )

    def part(self) -> ReplyPart:
        choose = self.random.choice
        if self.random.random() < 0.5:
            return Text(choose(["Well.", ""]))
        checks: list[Validated] = [Ok(), Ok('{"a":1}'), Err("invalid_arguments", "a is missing")]
        return CallPart(choose(["", "a", "b"]), choose(["write", "look", "nowhere"]), "{}", choose(checks))

    def result(self, effect: int) -> Input:
        if self.random.random() < 0.3:
            return Suspend(effect, "{}")
        kind = self.random.choice(["", "exception", "cancelled", "not_run", "outcome_unknown"])
        return Result(effect, ToolResult((Text("r"),), kind))


@pytest.mark.parametrize("part", range(4))
def test_given_a_random_session_when_replayed_compared_and_told_then_it_is_the_same(part: int) -> None:
    print(f"seed {SEED}")
    for number in range(SESSIONS_A_TEST):
        records = Fate(SEED + part * SESSIONS_A_TEST + number).session()
        turns = sum(b'"type":"replied"' in line for line in records)

        assert replay(records) == Replay("s", len(records), len(records), turns, turns, None, ())
        assert compare(records, records).parting is None
        assert sum(len(goal.turns) for goal in story_of(records).goals) == turns
