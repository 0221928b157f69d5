"""`python -m bench [--only CASE,…] [--reps N] [--json FILE] [--strict]`: measure the figures beside their floors.

Every sample comes from a fresh process; ours and the floor take turns, so a slow minute of the machine hits both.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from pathlib import Path
from statistics import median

from bench.figures import FIGURES, HEAVY, Figure
from bench.imports import brought_in, import_cost, import_memory
from bench.report import Line, table

ROOT = Path(__file__).parents[1]


def worker(who: str, case: str, base: str) -> list[float]:
    """One fresh process."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.worker", who, case, base], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    if done.returncode or not done.stdout.strip():
        raise SystemExit(f"bench: {who} failed at {case}:\n{done.stderr}")
    samples: list[float] = json.loads(done.stdout.splitlines()[-1])
    return samples


def samples_of(who: str, figure: Figure, base: str) -> list[float]:
    """The samples of one process for one figure."""
    if figure.case == "import_cpu":
        return [import_cost("import deepstrike" if who == "deepstrike" else "pass")]
    if figure.case == "import_memory":
        return [import_memory("import deepstrike")]
    return worker(who, figure.case, base)


def measure(figure: Figure, base: str, reps: int) -> Line:
    """Ours and the floor, interleaved."""
    ours: list[float] = []
    floor: list[float] = []
    for _ in range(reps):
        if figure.floor:
            floor += samples_of(figure.floor, figure, base)
        ours += samples_of("deepstrike", figure, base)
    return Line(figure, median(ours), median(floor) if floor else None, len(ours))


class Server:
    """The fake chat server, in its own process."""

    def __enter__(self) -> str:
        command = [sys.executable, "-m", "bench.server"]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        return f"http://127.0.0.1:{int(self.process.stdout.readline())}"

    def __exit__(self, *_: object) -> None:
        self.process.communicate(timeout=10)


def main() -> int:
    """0; with `--strict` 1 when a must is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", default="", help="cases to run, comma-separated")
    parser.add_argument("--reps", type=int, default=0, help="fresh processes for each contestant")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a must is missed")
    asked = parser.parse_args()
    chosen = [figure for figure in FIGURES if not asked.only or figure.case in asked.only.split(",")]
    lines: list[Line] = []
    with Server() as base:
        for figure in chosen:
            print(f"· {figure.name}", file=sys.stderr, flush=True)
            lines.append(measure(figure, base, asked.reps or figure.reps))
    print(f"{platform.machine()}, Python {platform.python_version()}; medians; ours and floor in the same run\n")
    print(table(lines))
    heavy = brought_in("import deepstrike", HEAVY)
    print(f"\nimport deepstrike brings in: {', '.join(heavy) or 'none of ' + ', '.join(HEAVY)}")
    if asked.json:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps([line.plain() for line in lines], indent=1))
    missed = heavy or any(line.verdict == "missed" for line in lines)
    return 1 if asked.strict and missed else 0


if __name__ == "__main__":
    sys.exit(main())
