"""Inputs: what the world tells the kernel."""

from __future__ import annotations

from deepstrike.wire.agents import Spent
from deepstrike.wire.message import Notice, Part, ReplyPart, ToolResult, Usage, Validated, Wire
from deepstrike.wire.policy import Config, Policy, Price
from deepstrike.wire.signal import Signal


class Fault(Wire, frozen=True):
    """Why something failed: a stable code, a text for people, whether trying again may help."""

    code: str
    message: str
    retryable: bool = False


class Start(Wire, frozen=True, tag="start"):
    """A goal; the first or a further one of the session. `feedback` on an earlier attempt is read behind it."""

    goal: tuple[Part, ...]
    config: Config
    criteria: tuple[str, ...] = ()
    feedback: tuple[str, ...] = ()


class Resume(Wire, frozen=True, tag="resume"):
    """Go on with the current goal, by today's options."""

    config: Config


class Reply(Wire, frozen=True, tag="reply"):
    """The model's finished reply to the CallModel `effect`; `complete=False` is what was shown of a stopped one.

    `finish` is one of stop, tool_calls, length, content_filter, other, interrupted. `fault` says why an incomplete
    reply stopped, None when it was stopped on purpose. `output` is the validation of the final text, where asked for.
    `notices` are what the caller should know of the call; `price` is that of the model that answered, None where it is
    the config's.
    """

    effect: int
    parts: tuple[ReplyPart, ...]
    finish: str
    dialect: str = ""
    model: str = ""
    usage: Usage | None = None
    complete: bool = True
    output: Validated | None = None
    fault: Fault | None = None
    notices: tuple[Notice, ...] = ()
    price: Price | None = None


class Failure(Wire, frozen=True, tag="failure"):
    """The model call `effect` failed before anything was shown."""

    effect: int
    fault: Fault


class Result(Wire, frozen=True, tag="result"):
    """The tool run `effect` came to an end; `spent` is what the sub-agent used that it put to work."""

    effect: int
    result: ToolResult
    spent: Spent | None = None


class Suspend(Wire, frozen=True, tag="suspend"):
    """The tool run `effect` asks a question and waits. `payload` is JSON text."""

    effect: int
    payload: str


class Value(Wire, frozen=True, tag="value"):
    """An answer to a suspension; `json` is JSON text."""

    json: str


class Approve(Wire, frozen=True, tag="approve"):
    """An approval; `arguments` are changed arguments, validated again by the host."""

    arguments: Validated | None = None


class Deny(Wire, frozen=True, tag="deny"):
    """A refusal."""

    reason: str


AnswerBody = Value | Approve | Deny


class Answer(Wire, frozen=True, tag="answer"):
    """The answer to the AskUser `effect`."""

    effect: int
    answer: AnswerBody


class Summary(Wire, frozen=True, tag="summary"):
    """The summary that the Summarize `effect` asks for; without a text there is none, for the reason in `fault`.

    `price` is that of the model that wrote it, None where it is not known.
    """

    effect: int
    text: str = ""
    usage: Usage = Usage(0, 0)
    price: Price | None = None
    fault: Fault | None = None


class Notify(Wire, frozen=True, tag="signal"):
    """A signal arrived, and `more` with it.

    `renews`: the model call that is owed has not been begun, so it is made anew and reads them.
    """

    signal: Signal
    more: tuple[Signal, ...] = ()
    renews: bool = False


class SetPolicy(Wire, frozen=True, tag="set_policy"):
    """The policy changed while the run goes on."""

    policy: Policy


class Interrupt(Wire, frozen=True, tag="interrupt"):
    """Stop now; the run ends `user_abort`."""

    reason: str


class Clock(Wire, frozen=True, tag="clock"):
    """Time has passed; the kernel looks at its deadline."""


Input = Start | Resume | Reply | Failure | Result | Suspend | Answer | Notify | SetPolicy | Interrupt | Clock | Summary
