"""Effects: what the kernel asks of the host. An effect's id is the seq of the record that made it owed."""

from __future__ import annotations

from deepstrike.wire.agents import Grant
from deepstrike.wire.message import Wire


class CallModel(Wire, frozen=True, tag="call_model"):
    """Ask the model. The prompt is the first `len` blocks of `epoch`; `digest` names them.

    `max_output` is set only where a budget needs it.
    """

    id: int
    epoch: int
    len: int
    digest: str
    max_output: int | None = None


class RunTool(Wire, frozen=True, tag="run_tool"):
    """Run a tool whose `Begun` is in the log. `args` is the validated JSON text, `key` the idempotency key.

    `answers` are the recorded answers of its suspensions so far, as JSON text, in order. `grant` is what the sub-agent
    may use up that it puts to work.
    """

    id: int
    call_id: str
    name: str
    args: str
    key: str
    answers: tuple[str, ...] = ()
    grant: Grant | None = None


class AskUser(Wire, frozen=True, tag="ask_user"):
    """A question that waits: `kind` is approval, suspension, or agent where a sub-agent waits with its own questions.

    `payload` is JSON text, or the reason for asking.
    """

    id: int
    kind: str
    call_id: str
    name: str
    args: str
    payload: str


class Summarize(Wire, frozen=True, tag="summarize", rename={"from_": "from"}):
    """Have a summary written of the records `from_` to `to`, which left the prompt, before the model is asked.

    It may have `room` tokens and takes the place of the summary of what left `before`.
    """

    id: int
    from_: int
    to: int
    room: int
    before: str = ""


Effect = CallModel | RunTool | AskUser | Summarize


class Outcome(Wire, frozen=True):
    """How the current goal ended, folded from the log."""

    status: str
    text: str
    turns: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    priced: bool = False
    cost: int = 0
    code: str = ""
    message: str = ""
    retryable: bool = False
    pending: tuple[AskUser, ...] = ()
