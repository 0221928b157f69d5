"""What the tests of harnesses share: scripted judges and gates, and runners around scripts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from deepstrike import InMemorySessionLog, LocalExecutionPlane, RuntimeOptions, RuntimeRunner, ScriptedProvider
from deepstrike.harness import HarnessOutcome, HarnessRequest, QualityGate, Verdict
from deepstrike.providers.base import Finish, LLMProvider, ModelEvent, ModelRequest
from deepstrike.sessions.base import SessionLog
from deepstrike.stream import TextDelta
from deepstrike.wire.message import Text, Usage, UserBlock


def verdict(passed: object, feedback: str = "", **more: object) -> str:
    """A judge's answer."""
    return json.dumps({"passed": passed, "feedback": feedback, **more})


def priced(text: str, tokens_in: int, tokens_out: int) -> list[ModelEvent]:
    """A reply with its usage."""
    return [TextDelta(text), Usage(tokens_in, tokens_out), Finish("stop")]


def runner_of(
    provider: LLMProvider,
    *tools: Callable[..., object],
    log: SessionLog | None = None,
    max_total_tokens: int | None = None,
    timeout_ms: int | None = None,
    max_turns: int = 5,
) -> RuntimeRunner:
    """A runner around `provider`."""
    return RuntimeRunner(
        RuntimeOptions(
            provider=provider,
            session_log=InMemorySessionLog() if log is None else log,
            execution_plane=LocalExecutionPlane().register(*tools),
            max_total_tokens=max_total_tokens,
            timeout_ms=timeout_ms,
            max_turns=max_turns,
        )
    )


def told(request: ModelRequest) -> list[list[str]]:
    """The texts of each user turn of a request."""
    turns = [turn for turn in request.turns if isinstance(turn, UserBlock)]
    return [[part.text for part in turn.parts if isinstance(part, Text)] for turn in turns]


class Answers(QualityGate):
    """A gate that gives one answer after the other, the last one again and again; keeps what it was asked."""

    def __init__(self, *answers: bool | Verdict | BaseException) -> None:
        self._answers = answers
        self.asked: list[tuple[HarnessRequest, HarnessOutcome]] = []

    async def evaluate(self, request: HarnessRequest, outcome: HarnessOutcome) -> bool | Verdict:
        self.asked.append((request, outcome))
        answer = self._answers[min(len(self.asked), len(self._answers)) - 1]
        if isinstance(answer, BaseException):
            raise answer
        return answer


def script(*replies: str | Sequence[ModelEvent] | BaseException) -> ScriptedProvider:
    """A model that says these things."""
    return ScriptedProvider(list(replies))
