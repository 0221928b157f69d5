"""The same sessions through the kernel's renderer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from bench.context.dialogues import Model, Tool, User
from bench.context.prompts import MODEL, block
from deepstrike.kernel import Kernel
from deepstrike.records import decode_record
from deepstrike.wire.effect import CallModel, RunTool
from deepstrike.wire.event import Compressed
from deepstrike.wire.input import Reply, Result, Start
from deepstrike.wire.message import CallPart, Ok, Text, ToolResult, ToolSpec
from deepstrike.wire.policy import Config, Limits, Policy
from deepstrike.wire.policy import Model as Name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.context.dialogues import Dialogue
    from bench.context.prompts import Prompt
    from deepstrike.wire.message import Wire

_encode = msgspec.json.Encoder().encode
_UNBOUND = 10**12


def tools(dialogues: Sequence[Dialogue]) -> tuple[ToolSpec, ...]:
    """The tools that the dialogues call, with the arguments that they call them with."""
    seen: dict[str, dict[str, object]] = {}
    for dialogue in dialogues:
        for turn in dialogue.turns:
            if isinstance(turn, Model) and turn.name:
                seen.setdefault(turn.name, {}).update({name: {} for name in json.loads(turn.arguments)})
    return tuple(
        ToolSpec(name, name.replace("_", " "), json.dumps({"type": "object", "properties": properties}), "read")
        for name, properties in sorted(seen.items())
    )


class Session:
    """One session of the kernel, driven by recorded turns. `compressions` are its rewrites so far."""

    def __init__(self, system: str, specs: tuple[ToolSpec, ...], window: int, preload: tuple[str, ...] = ()) -> None:
        limits = Limits(max_turns=_UNBOUND, window=window, reserve=0, parallel=8)
        self._config = Config("bench", system, preload, specs, Policy(), limits, Name(MODEL))
        self._kernel = Kernel()
        self._blocks: Prompt = []
        self._epoch = -1
        self._pulled = 0
        self._now = 0
        self.compressions: list[Compressed] = []

    def take(self, turn: User | Model | Tool) -> None:
        """What was said next."""
        if isinstance(turn, User):
            self._give(Start((Text(turn.text or "…"),), self._config))
        elif isinstance(turn, Tool):
            self._give(Result(self._effect(RunTool), ToolResult((Text(turn.text),))))
        else:
            parts: list[Text | CallPart] = [Text(turn.text)] if turn.text else []
            if turn.name:
                parts.append(CallPart("", turn.name, turn.arguments, Ok()))
            self._give(Reply(self._effect(CallModel), tuple(parts), "tool_calls" if turn.name else "stop"))

    def request(self) -> Prompt | None:
        """The blocks of the request that is owed; None where the kernel found that it cannot fit."""
        if not any(isinstance(effect, CallModel) for effect in self._kernel.pending()):
            return None
        new = self.pull()
        self._blocks += [block(_encode(each).decode()) for each in new]
        return list(self._blocks)

    def pull(self) -> list[Wire]:
        """The blocks that were not pulled yet, all of them in another epoch."""
        if self._kernel.epoch != self._epoch:
            self._epoch, self._pulled, self._blocks = self._kernel.epoch, 0, []
        new: list[Wire] = list(self._kernel.blocks(self._epoch, self._pulled))
        self._pulled += len(new)
        return new

    @property
    def head_tokens(self) -> int:
        """Tokens of slots 1 and 2 and the tools, as the kernel counts them."""
        weights = self._kernel.weights()
        return weights.total - weights.state - weights.history

    def slots(self) -> tuple[int, int, int]:
        """Tokens of the head, of `turns[0]` and of the history."""
        weights = self._kernel.weights()
        return self.head_tokens, weights.state, weights.history

    @property
    def history_tokens(self) -> int:
        """Tokens of all that stands behind them, as the kernel counts them."""
        weights = self._kernel.weights()
        return weights.state + weights.history

    def _give(self, item: Start | Reply | Result) -> None:
        self._now += 1_000
        for line in self._kernel.accept(item, self._now):
            if b'"type":"compressed"' in line:
                event = decode_record(line).event
                if isinstance(event, Compressed):
                    self.compressions.append(event)

    def _effect(self, kind: type[CallModel | RunTool]) -> int:
        return next(effect.id for effect in self._kernel.pending() if isinstance(effect, kind))


def requests(dialogues: Sequence[Dialogue], window: int) -> Iterator[Prompt]:
    """The requests of one session over these dialogues."""
    session = Session(dialogues[0].system, tools(dialogues), window)
    for dialogue in dialogues:
        for turn in dialogue.turns:
            if isinstance(turn, Model):
                prompt = session.request()
                if prompt is None:
                    raise SystemExit("bench: a request of a recorded dialogue does not fit its window")
                yield prompt
            session.take(turn)
