"""Data sets of goals: how often an agent is right, how sure that is, and whether another one is better.

evaluation = await evaluate(runner, "cases.jsonl", repeats=3)
print(evaluation.table())
print(compare(evaluation, await evaluate(other, "cases.jsonl", repeats=3)))
"""

from __future__ import annotations

from deepstrike.harness.evaluate.cases import Case, read_cases
from deepstrike.harness.evaluate.comparison import Comparison, compare
from deepstrike.harness.evaluate.plot import plot
from deepstrike.harness.evaluate.report import Evaluation, Trial
from deepstrike.harness.evaluate.statistics import Interval
from deepstrike.harness.evaluate.work import evaluate

__all__ = ["Case", "Comparison", "Evaluation", "Interval", "Trial", "compare", "evaluate", "plot", "read_cases"]
