"""Random lives of a session in a real kernel: texts of all kinds, parallel calls, failures, signals, crashes, goals."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

from deepstrike.host.prompt import Prompt
from deepstrike.kernel import Kernel
from deepstrike.wire.effect import CallModel, RunTool, Summarize
from deepstrike.wire.input import Failure, Fault, Input, Interrupt, Notify, Reply, Result, Resume, Start, Summary
from deepstrike.wire.message import CallPart, Image, Ok, Opaque, Part, ReplyPart, Text, Thinking, ToolResult, ToolSpec
from deepstrike.wire.policy import Config, Limits, Model, Policy
from deepstrike.wire.signal import Signal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepstrike.providers.base import ModelRequest

TOOLS = (
    ToolSpec("look", "Look.", '{"type":"object","properties":{"item":{"type":"string"}}}', "read"),
    ToolSpec("fs.put it", "Put.", '{"type":"object"}'),
)
WORDS = (
    "order",
    "the customer",
    "ORD12345",
    "数据库迁移",
    "дом",
    "🛡️",
    "a\u0000b",
    '{"n": 1.50}',
    "\u2028",
    "x" * 70,
    "é",
)
SIGNED = {
    "anthropic": '{"type":"thinking","thinking":"hm","signature":"s"}',
    "openai-responses": '{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}',
}
MODELS = {"anthropic": "claude-sonnet-5-5", "openai-responses": "gpt-6-luna", "deepseek": "deepseek-flash"}

_IDLE = 60


class Walk:
    """One session after the other, led by dice. `rewrites` counts their rewrites."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self.config = self._any_config()
        self._kernel = Kernel()
        self._records: list[bytes] = []
        self._prompt = Prompt()
        self._session = "s0"
        self._now = 1_764_500_000_000
        self.rewrites = 0

    def requests(self, count: int) -> Iterator[ModelRequest]:
        """So many requests. Where a goal does not fit again and again, another session goes on."""
        given = idle = 0
        while given < count:
            idle += 1
            for effect in self._kernel.pending():
                if isinstance(effect, CallModel):
                    given, idle = given + 1, 0
                    yield self._prompt.request(self._kernel, effect, {}, self.config.limits, None, self._session)
            self._take(self._any_input())
            if idle > _IDLE:
                self._kernel, self._prompt, self._records, idle = Kernel(), Prompt(), [], 0
                self._session = f"s{given}"
            elif self._dice.random() < 0.02:
                self._kernel, self._prompt = Kernel.replay(self._records), Prompt()

    def _take(self, item: Input) -> None:
        self._now += self._dice.choice((5, 900, 400_000))
        for line in self._kernel.accept(item, self._now):
            self._records.append(line)
            self.rewrites += b'"type":"compressed"' in line

    def _any_config(self) -> Config:
        dice = self._dice
        window = dice.choice((2_500, 4_000, 12_000))
        return Config(
            "s",
            dice.choice(("", "Be brief.")),
            dice.choice(((), ("They live in Oslo.",))),
            TOOLS,
            Policy(),
            Limits(max_turns=dice.choice((4, 40)), window=window, reserve=300, parallel=8),
            Model("gpt-4o"),
            dice.choice(("frozen", "frozen", "live")),
            summaries=dice.random() < 0.3,
        )

    def _any_input(self) -> Input:
        dice = self._dice
        if self._kernel.phase in ("idle", "ended"):
            return self._begun()
        if dice.random() < 0.04:
            return dice.choice((Interrupt("stop"), Notify(Signal("news", json.dumps({"said": self._text(20)})))))
        for effect in self._kernel.pending():
            if isinstance(effect, CallModel):
                return self._replied(effect.id)
            if isinstance(effect, Summarize):
                return Summary(effect.id, dice.choice(("", "It was looked at.", self._text(effect.room))))
            if isinstance(effect, RunTool):
                return Result(effect.id, ToolResult(tuple(self._content()), dice.choice(("", "", "", "tool_error"))))
        return self._begun()

    def _begun(self) -> Input:
        outcome = self._kernel.outcome()
        if outcome is not None and outcome.status != "completed" and self._dice.random() < 0.3:
            return Resume(self.config)
        return Start((Text(self._text(60)),), self.config)

    def _replied(self, effect: int) -> Input:
        dice = self._dice
        fate = dice.random()
        if fate < 0.03:
            return Failure(effect, Fault("context_overflow", "too long"))
        if fate < 0.06:
            return Failure(effect, Fault("unreachable", "no answer", retryable=True))
        dialect = dice.choice(("anthropic", "openai-responses", "deepseek", "kimi", "gemini"))
        model = MODELS.get(dialect, "m")
        if fate < 0.1:
            return Reply(effect, (Text(self._text(30)),), "interrupted", dialect, model, complete=False)
        parts: list[ReplyPart] = [Thinking(self._text(10))] if dice.random() < 0.4 else []
        if dialect in SIGNED and dice.random() < 0.5:
            parts.append(Opaque(dialect, SIGNED[dialect]))
        if dice.random() < 0.5:
            parts.append(Text(self._text(200)))
        calls = dice.choice((0, 1, 1, 2, 3, 20)) if fate < 0.8 else 0
        parts += [self._call(number) for number in range(calls)]
        return Reply(effect, tuple(parts), "tool_calls" if calls else "stop", dialect, model)

    def _call(self, number: int) -> CallPart:
        dice = self._dice
        arguments = json.dumps({"item": self._text(dice.choice((2, 2, 60)))}, ensure_ascii=dice.random() < 0.5)
        return CallPart(
            dice.choice(("", f"c{number}", f"functions.look:{number}")), dice.choice(TOOLS).name, arguments, Ok()
        )

    def _content(self) -> Iterator[Part]:
        yield Text(self._text(self._dice.choice((0, 5, 40, 300))))
        if self._dice.random() < 0.05:
            yield Image(media_type="image/png", data="aGk=")

    def _text(self, most: int) -> str:
        count = self._dice.randrange(most + 1)
        return " ".join(self._dice.choice(WORDS) for _ in range(count)) or self._dice.choice((" ", "ok"))
