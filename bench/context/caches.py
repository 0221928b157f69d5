"""The providers' prompt caches, each by its own rules, fed with one session's requests in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepstrike.providers.dialects.places import no_places, note_end, note_reply, standing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bench.context.prompts import Block, Prompt


@dataclass(frozen=True, slots=True)
class Sent:
    """A request: its blocks, and where the prefixes end that are marked in it; none where the layout sets no marks."""

    prompt: Prompt
    marks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """What is cached and what it costs, in parts of the price of a plain prompt token."""

    name: str
    hit: Callable[[Sent, Sent], int]
    read: float
    write: float


@dataclass
class Bill:
    """The sums of one session."""

    tokens: int = 0
    hits: int = 0
    cost: float = 0.0
    fresh: int = 0

    @property
    def rate(self) -> float:
        """Part of the prompt tokens that came from the cache."""
        return self.hits / self.tokens if self.tokens else 0.0

    @property
    def bound(self) -> float:
        """The rate of prompts that only ever grow: all but what is new in each request, rewrites for nothing."""
        return 1 - self.fresh / self.tokens if self.tokens else 0.0

    def bound_cost(self, rules: Rules) -> float:
        """The cost at that rate."""
        return (self.tokens - self.fresh) * rules.read + self.fresh * rules.write


def common(before: Prompt, now: Prompt) -> int:
    """How many blocks the two begin with alike."""
    at = 0
    for one, other in zip(before, now, strict=False):
        if one is not other and one.text != other.text:
            break
        at += 1
    return at


def _tokens(blocks: Iterable[Block]) -> int:
    return sum(block.tokens for block in blocks)


def _alike(before: Prompt, now: Prompt) -> int:
    """Tokens of the common beginning, within the first block that differs by its characters."""
    at = common(before, now)
    tokens = _tokens(now[:at])
    if at < min(len(before), len(now)):
        one, other = before[at].text, now[at].text
        same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
        tokens += now[at].tokens * same // max(1, len(other))
    return tokens


def _stepped(least: int, step: int) -> Callable[[Sent, Sent], int]:
    """A cache of whole prefixes in steps of so many tokens, found by itself."""

    def hit(before: Sent, now: Sent) -> int:
        alike = _alike(before.prompt, now.prompt)
        return alike // step * step if alike >= least else 0

    return hit


def marks(prompt: Prompt) -> tuple[int, ...]:
    """Where the encoders set marks: behind the head, and at the places that they find by these same functions."""
    places = no_places()
    for end, each in enumerate(prompt[1:], 2):
        if each.is_reply:
            note_reply(places)
        else:
            note_end(places, end)
    return (1, *standing(places))


_LEAST = 1_024
_LOOK_BACK = 20


def _breakpoints(look_back: int, at_head: bool) -> Callable[[Sent, Sent], int]:
    """A cache of the prefixes at marks: found at a mark, or at most so many blocks before one.

    A layout without marks of its own has one at its end and, `at_head`, where other libraries mark it, at the head.
    """

    def ends(sent: Sent) -> tuple[int, ...]:
        last = len(sent.prompt)
        return sent.marks or ((1, last) if at_head else (last,))

    def hit(before: Sent, now: Sent) -> int:
        alike, asked = common(before.prompt, now.prompt), ends(now)
        written = [end for end in ends(before) if end <= alike]
        found = [end for end in written if any(0 <= mark - end <= look_back for mark in asked)]
        tokens = _tokens(now.prompt[: max(found)]) if found else 0
        return tokens if tokens >= _LEAST else 0

    return hit


RULES = (
    Rules("anthropic", _breakpoints(_LOOK_BACK, True), 0.1, 1.25),
    Rules("openai", _stepped(_LEAST, 128), 0.1, 1.0),
    Rules("openai-new", _breakpoints(_LOOK_BACK, False), 0.1, 1.25),
    Rules("deepseek", _stepped(64, 64), 0.1, 1.0),
)


def bill(session: Iterable[Prompt], *, marked: bool) -> dict[str, Bill]:
    """What a session's requests come to by each set of rules. `marked`: whether the layout sets marks of its own."""
    bills = {rules.name: Bill() for rules in RULES}
    before = Sent([], ())
    seen: set[str] = set()
    for prompt in session:
        now = Sent(prompt, marks(prompt) if marked else ())
        tokens, new = _tokens(prompt), prompt[common(before.prompt, prompt) :]
        fresh = _tokens(block for block in new if block.text not in seen)
        seen.update(block.text for block in new)
        for rules in RULES:
            each = bills[rules.name]
            hits = min(tokens, rules.hit(before, now)) if before.prompt else 0
            each.tokens += tokens
            each.hits += hits
            each.fresh += fresh
            each.cost += hits * rules.read + (tokens - hits) * rules.write
        before = now
    return bills
