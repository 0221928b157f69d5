"""Events: what the kernel remembers, in past participles. They are the session log.

Read leniently: unknown fields of a record are ignored here, unlike on the way in.
"""

from __future__ import annotations

from deepstrike.wire.agents import Grant, Spent
from deepstrike.wire.input import AnswerBody, Fault
from deepstrike.wire.message import Block, Notice, Part, RecordedPart, ToolResult, Usage, Validated, Wire
from deepstrike.wire.policy import Config, Policy, Price
from deepstrike.wire.signal import Signal
from deepstrike.wire.task import Digest, Plan, Source


class Event(Wire, frozen=True, forbid_unknown_fields=False):
    """Base of all events."""


class CallRef(Event, frozen=True):
    """A call's name: the seq of its Replied and its index among the calls of that reply."""

    reply: int
    index: int


class Remark(Event, frozen=True):
    """A text that the model reads behind the goal."""

    text: str
    tokens: int


class Started(Event, frozen=True, tag="started"):
    """A goal of the session began. `format` and `renderer` are the versions that wrote the log.

    `tokens` are those of the head and the goal, `head` the head's alone (None in logs of before). `feedback` is what
    was said of an earlier attempt at it.
    """

    format: int
    renderer: int
    goal: tuple[Part, ...]
    config: Config
    tokens: int
    criteria: tuple[str, ...] = ()
    head: int | None = None
    feedback: tuple[Remark, ...] = ()


class Resumed(Event, frozen=True, tag="resumed"):
    """The goal goes on, by these options."""

    format: int
    renderer: int
    config: Config


class Replied(Event, frozen=True, tag="replied"):
    """The model replied. `digest` names the rendering it saw; `cost` is micro-dollars.

    `estimated` usage was counted here, because the service reported none. `price` is that of the model that answered,
    None where it is the config's. `least` are the tokens that the prompt has at least, None where our count is exact.
    """

    effect: int
    parts: tuple[RecordedPart, ...]
    finish: str
    usage: Usage
    digest: str
    tokens: int
    dialect: str = ""
    model: str = ""
    complete: bool = True
    estimated: bool = False
    cost: int | None = None
    output: Validated | None = None
    notices: tuple[Notice, ...] = ()
    price: Price | None = None
    least: int | None = None


class Trail(Event, frozen=True):
    """What one governance stage said of a call."""

    stage: str
    verdict: str
    reason: str = ""


class Allow(Event, frozen=True, tag="allow"):
    """The call may run."""


class Refuse(Event, frozen=True, tag="refuse"):
    """The call is refused by a stage."""

    stage: str
    rule: str
    reason: str
    retry_after_ms: int | None = None

    @property
    def unfit(self) -> bool:
        """The call came before no stage: there is no such tool, or its arguments are not valid."""
        return self.stage == "validation"


class Ask(Event, frozen=True, tag="ask"):
    """A person has to say."""

    stage: str
    rule: str
    reason: str


Verdict = Allow | Refuse | Ask


class Judged(Event, frozen=True, tag="judged"):
    """Governance has spoken; `trail` is the audit."""

    call: CallRef
    verdict: Verdict
    trail: tuple[Trail, ...] = ()


class Begun(Event, frozen=True, tag="begun"):
    """The tool of `effect` (the seq of its Judged) is about to run.

    `grant` is what the sub-agent may use up that it puts to work.
    """

    call: CallRef
    effect: int
    grant: Grant | None = None


class Settled(Event, frozen=True, tag="settled"):
    """A call has its result. `spent` is what the sub-agent used that it put to work; the rest of its grant returns."""

    call: CallRef
    result: ToolResult
    tokens: int
    spent: Spent | None = None


class Suspended(Event, frozen=True, tag="suspended"):
    """A running tool waits for an answer; `agent`: it is a sub-agent that waits, with questions of its own."""

    call: CallRef
    payload: str
    agent: bool = False


class Answered(Event, frozen=True, tag="answered"):
    """The answer to the AskUser `effect`."""

    call: CallRef
    effect: int
    answer: AnswerBody


class SignalledEvent(Event, frozen=True, tag="signalled"):
    """A signal was taken; it is rendered with the next model call, as `text` where there was no room for all of it.

    `renews`: it makes the model call that is owed anew, which reads it.
    """

    signal: Signal
    tokens: int
    renews: bool = False
    text: str = ""


class StateChanged(Event, frozen=True, tag="state_changed"):
    """The task state changed; `text` is the delta as it is rendered, `plan` the plan that is in force now."""

    text: str
    tokens: int
    plan: Plan | None = None


class Compressed(Event, frozen=True, tag="compressed"):
    """A new epoch began: the head, and these blocks behind it, each with its source.

    The result is kept so that newer strategies replay old logs. `stage` is the strategy that went furthest, `stages`
    all that had something to do, `digest` what is left of what left the prompt. `left` counts the records that left it
    or were shortened in it this time: `gone` are references to what left, as `recall` reads them, `shortened` the
    records that stay in a shorter form. `head` are the tokens of the head where it is another from here on: one that
    offers to recall.
    """

    stage: str
    blocks: tuple[Block, ...]
    tokens_before: int
    tokens: int
    sources: tuple[Source, ...] = ()
    digest: Digest = Digest(0, 0, 0)
    left: int = 0
    stages: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    shortened: tuple[int, ...] = ()
    head: int | None = None


class Summarized(Event, frozen=True, tag="summarized"):
    """A model has written a summary of the turns that left, or was to: `turns[0]` begins anew with it.

    Without a text there is none, for the reason in `fault`. `tokens` are those of `turns[0]` with it, `usage` and
    `cost` (micro-dollars) what it took, `price` that of the model that wrote it, where it is known.
    """

    effect: int
    text: str = ""
    tokens: int = 0
    usage: Usage = Usage(0, 0)
    price: Price | None = None
    cost: int | None = None
    fault: Fault | None = None


class PolicyChanged(Event, frozen=True, tag="policy_changed"):
    """Another policy from here on."""

    policy: Policy


class Failed(Event, frozen=True, tag="failed"):
    """The model call `effect` failed."""

    effect: int
    fault: Fault


class Ended(Event, frozen=True, tag="ended"):
    """The goal ended. `fault` says why, for every status but completed."""

    status: str
    fault: Fault | None = None


AnyEvent = (
    Started
    | Resumed
    | Replied
    | Judged
    | Begun
    | Settled
    | Suspended
    | Answered
    | SignalledEvent
    | StateChanged
    | Compressed
    | PolicyChanged
    | Failed
    | Ended
    | Summarized
)
