"""What a policy costs: one decision, and a governed turn beside one without a policy."""

from __future__ import annotations

import gc
from itertools import count

from bench.clocks import cpu_us
from bench.subject import WINDOW, Scripted
from bench.workload import TOOL_NAME, add, arguments
from deepstrike import Governance, LocalExecutionPlane, RuntimeOptions, RuntimeRunner, tool

Samples = list[float]
DECISIONS = 20_000
TURNS = 300
START_MS = 1_700_000_000_000


def policy() -> Governance:
    """A policy of a size that people write: 24 rules, 6 blocks, 4 limits, 4 constraints; it allows the tool."""
    governance = Governance("deny").add_permission_rule(f"{TOOL_NAME[:2]}*", "allow")
    for number in range(23):
        governance.add_permission_rule(f"area_{number}.*", ("allow", "ask", "deny")[number % 3])
    for number in range(6):
        governance.block_tool(f"*danger_{number}*")
    for pattern in ("*", "a*", "area_1.*", "area_2.*"):
        governance.set_rate_limit(pattern, max_calls=1_000_000, window_ms=1_000)
    governance.limit_param_range(TOOL_NAME, "x", min=-1e9, max=1e9).require_param("a*", "y")
    return governance.require_param("area_1.*", "z").require_param("area_2.*", "z")


def decisions() -> Samples:
    """CPU of one decision by the kernel's stages, in µs, in a window with a thousand calls."""
    judge, text = policy().judge, arguments(0)
    samples: Samples = []
    for run in range(4):
        start = START_MS + run * DECISIONS
        before = cpu_us()
        for number in range(DECISIONS):
            judge.evaluate(TOOL_NAME, text, start + number, consume=True)
        samples.append((cpu_us() - before) / DECISIONS)
    return samples[1:]


def _runner(governance: Governance | None) -> RuntimeRunner:
    return RuntimeRunner(
        RuntimeOptions(
            provider=Scripted(TURNS, ["done"], 0.0, None),
            execution_plane=LocalExecutionPlane().register(tool(name=TOOL_NAME)(add)),
            max_tokens=WINDOW,
            max_turns=TURNS + 1,
            governance=governance,
        )
    )


async def governed() -> Samples:
    """CPU that a turn costs more with a policy in front of its call, in µs."""
    governance, numbers = policy(), count()

    async def cpu(kept: Governance | None) -> float:
        runner = _runner(kept)
        before = cpu_us()
        result = await runner.run("go", session_id=f"run-{next(numbers)}")
        if result.text != "done":
            raise RuntimeError("the run did not say what it was to say")
        return (cpu_us() - before) / (TURNS + 1)

    samples: Samples = []
    for _ in range(8):
        gc.collect()
        samples.append(await cpu(governance) - await cpu(None))
    return samples[2:]
