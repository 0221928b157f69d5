"""Prompts as the caches see them: blocks with their tokens; and the three layouts that others use."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from bench.context.dialogues import Model, User
from deepstrike.kernel import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.context.dialogues import Dialogue, Turn

MODEL = "gpt-4o"
_FRAME = 8
_REPLY = '{"type":"assistant"'


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a request."""

    text: str
    tokens: int

    @property
    def is_reply(self) -> bool:
        """Whether the model said it."""
        return self.text.startswith(_REPLY)


Prompt = list[Block]


@cache
def block(text: str) -> Block:
    """A block with its tokens."""
    return Block(text, count(text, MODEL) + _FRAME)


def said(turn: Turn) -> Block:
    """A turn as one block."""
    if isinstance(turn, Model):
        return block(json.dumps({"assistant": turn.text, "call": turn.name, "arguments": turn.arguments}))
    return block(json.dumps({"user" if isinstance(turn, User) else "tool": turn.text}))


def weight(blocks: Sequence[Block]) -> int:
    """The tokens of blocks."""
    return sum(each.tokens for each in blocks)


Render = "Callable[[Block, list[Block], int], Prompt]"


def literal(head: Block, history: list[Block], budget: int) -> Prompt:
    """`turns[0]` tells the progress anew before each call; the oldest turns are dropped."""
    state = block(f"Goal: help the user. Progress: {len(history)} turns.")
    return [head, state, *newest(history, budget - head.tokens - state.tokens)]


def window(head: Block, history: list[Block], budget: int) -> Prompt:
    """The newest turns that fit."""
    return [head, *newest(history, budget - head.tokens)]


def masking(head: Block, history: list[Block], budget: int) -> Prompt:
    """Results before the last ten turns are masked; the oldest turns are dropped."""
    edge = len(history) - 20
    masked = [_MASK if at < edge and turn.text.startswith('{"tool"') else turn for at, turn in enumerate(history)]
    return [head, *newest(masked, budget - head.tokens)]


_MASK = block("[old result left out]")

BASELINES = {"literal": literal, "window": window, "masking": masking}


def newest(history: list[Block], room: int) -> list[Block]:
    """The newest turns that fit in so many tokens."""
    at = len(history)
    while at > 0 and history[at - 1].tokens <= room:
        at -= 1
        room -= history[at].tokens
    # A result does not stand without its call.
    while at < len(history) and history[at].text.startswith('{"tool"'):
        at += 1
    return history[at:]


def requests(dialogues: Sequence[Dialogue], name: str, budget: int) -> Iterator[Prompt]:
    """The requests of one session over these dialogues, in one of the three layouts."""
    render = BASELINES[name]
    head = block(dialogues[0].system)
    history: list[Block] = []
    for dialogue in dialogues:
        for turn in dialogue.turns:
            if isinstance(turn, Model):
                yield render(head, history, budget)
            history.append(said(turn))
