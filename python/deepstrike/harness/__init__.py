"""Attempts at a goal, judged and repeated until one is good enough, and whole data sets of them.

Everything here stands on what can begin an attempt (`deepstrike.harness.base.Attempts`), such as a `RuntimeRunner`.
"""

from __future__ import annotations

from deepstrike.harness.events import AttemptDoneEvent, HarnessDoneEvent, HarnessEvent, VerdictEvent
from deepstrike.harness.gate import QualityGate
from deepstrike.harness.loops import EvalLoopHarness, HarnessLoop, SinglePassHarness, SubAgentHarnessConfig
from deepstrike.harness.outcome import AttemptResult, HarnessOutcome
from deepstrike.harness.request import Criterion, HarnessRequest
from deepstrike.harness.stream import HarnessRun
from deepstrike.harness.verdict import CriterionVerdict, Verdict

__all__ = [
    "AttemptDoneEvent",
    "AttemptResult",
    "Criterion",
    "CriterionVerdict",
    "EvalLoopHarness",
    "HarnessDoneEvent",
    "HarnessEvent",
    "HarnessLoop",
    "HarnessOutcome",
    "HarnessRequest",
    "HarnessRun",
    "QualityGate",
    "SinglePassHarness",
    "SubAgentHarnessConfig",
    "Verdict",
    "VerdictEvent",
]
