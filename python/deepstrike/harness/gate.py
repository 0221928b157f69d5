"""Judges that are code: a gate, asked in the way in which a model is, so that its verdict stands in the log too."""

from __future__ import annotations

import inspect
import json
from abc import ABC, abstractmethod
from dataclasses import asdict
from typing import TYPE_CHECKING

from deepstrike.errors import ConfigError, ProviderError
from deepstrike.harness.verdict import Verdict
from deepstrike.host.steady import told
from deepstrike.providers.base import Finish, ModelInfo, Provider
from deepstrike.stream import TextDelta
from deepstrike.tools.threads import run_in_thread
from deepstrike.wire.message import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

    from deepstrike.harness.outcome import HarnessOutcome
    from deepstrike.harness.request import HarnessRequest
    from deepstrike.providers.base import ModelEvent, ModelRequest

_ROOM = 1_000_000_000  # code has no context window; this is one that no answer fills


class QualityGate(ABC):
    """Says whether an attempt is good enough."""

    @abstractmethod
    def evaluate(self, request: HarnessRequest, outcome: HarnessOutcome) -> object:
        """True, False or a `Verdict`, or an awaitable of one.

        A coroutine function runs on the loop, any other in a thread. Not asked about an attempt that ended `error`.
        Anything else that it gives, and whatever it raises, is a failure of the gate: the attempt has not passed, and
        the verdict says why. It is cancelled when the harness is, and when the time of the options is over.
        """


class GateProvider(Provider):
    """A gate in the place of a model: its answer to any request is the verdict as JSON. It costs no tokens."""

    dialect = "gate"

    def __init__(self, gate: QualityGate, request: HarnessRequest, outcome: HarnessOutcome) -> None:
        self._gate = gate
        self._request = request
        self._outcome = outcome
        self.info = ModelInfo(f"gate:{type(gate).__name__}", window=_ROOM)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask the gate. Raises `ProviderError`, code `gate_failed`."""
        try:
            verdict = _verdict(await self._asked())
        except Exception as error:
            message = f"the gate {type(self._gate).__name__} failed: {told(error)}"
            raise ProviderError(message, code="gate_failed") from error
        yield TextDelta(json.dumps(asdict(verdict), ensure_ascii=False))
        yield Usage(0, 0)
        yield Finish("stop")

    async def _asked(self) -> object:
        evaluate = self._gate.evaluate
        if inspect.iscoroutinefunction(evaluate):
            coroutine: Awaitable[object] = evaluate(self._request, self._outcome)
            return await coroutine
        answer = await run_in_thread(lambda: evaluate(self._request, self._outcome))
        return await answer if inspect.isawaitable(answer) else answer


def require_gate(gate: object) -> None:
    """Raises `ConfigError` for what is no gate."""
    if isinstance(gate, type):
        raise ConfigError(f"gate must be an object, not a class: write gate={gate.__name__}()")
    if not callable(getattr(gate, "evaluate", None)):
        raise ConfigError(f"gate must be a QualityGate, with evaluate(request, outcome), not {type(gate).__name__}")


def _verdict(answer: object) -> Verdict:
    if isinstance(answer, Verdict):
        return answer
    if isinstance(answer, bool):
        return Verdict(answer)
    raise TypeError(f"evaluate gave {type(answer).__name__}, not True, False or a Verdict")
