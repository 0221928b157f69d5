"""The task state: what `turns[0]` says, and where rendered blocks come from."""

from __future__ import annotations

from deepstrike.wire.message import Wire


class PlanStep(Wire, frozen=True):
    """A step of the plan, on one line; `status` is todo, doing or done."""

    text: str
    status: str


class Plan(Wire, frozen=True):
    """The model's plan, and in a line what was reached."""

    steps: tuple[PlanStep, ...] = ()
    progress: str = ""


class Line(Wire, frozen=True):
    """A line of the digest, from record `seq`; `kind` is constraint, said, feedback, decision, result or failed."""

    kind: str
    text: str
    seq: int


class Value(Wire, frozen=True):
    """A value that later calls may need again, and the record that it was last seen in."""

    label: str
    value: str
    seq: int


class Digest(Wire, frozen=True, rename={"from_": "from"}):
    """What is left of the turns that left the prompt: those of the records `from_` to `to`.

    `opening`: a goal that `turns[0]` began with is among them, be it record 0. `unsaid` messages of the user are not
    among the lines, not even in part. `tokens` are those of its text.
    """

    passes: int
    from_: int
    to: int
    lines: tuple[Line, ...] = ()
    ledger: tuple[Value, ...] = ()
    summary: str = ""
    opening: bool = False
    unsaid: int = 0
    tokens: int = 0


class Source(Wire, frozen=True):
    """Where a block is from, what it weighs, and its `role`: state, goal, delta, reply or result."""

    role: str
    seq: int
    tokens: int
