"""`python -m bench.peers_durability [PYTHON OF THE PEERS]`: kill each contestant, have it go on, count what came of it.

A contestant is a process that sends three letters (`bench/mortal.py`). It is killed at every place, and at random moments
of its work; then a new process goes on from what it left. Peers whose packages are missing are left out.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from deepstrike import __version__

MORTAL = Path(__file__).with_name("mortal.py")
TO = {"Ann", "Bob", "Eve"}
PLACES = 9
SAID = "All sent."
PACKAGES = {
    "deepstrike": ("deepstrike",),
    "langgraph": ("langgraph", "langgraph-checkpoint-sqlite"),
    "openai_agents": ("openai-agents",),
}


@dataclass(frozen=True)
class Contestant:
    """Whom to kill, and the interpreter that has it."""

    name: str
    python: str

    def versions(self) -> str:
        """Of its packages, "" where one is missing."""
        ask = "import sys; from importlib.metadata import version as v; print(*(f'{p} {v(p)}' for p in sys.argv[1:]))"
        command = [self.python, "-c", ask, *PACKAGES[self.name]]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()

    def work(self, folder: Path, die_at: int = 0, after_us: int = 0) -> bool:
        """One process; whether it was killed."""
        command = [self.python, "-W", "ignore", MORTAL, self.name, folder, die_at, after_us]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120)
        return done.returncode < 0


def outcome(contestant: Contestant, die_at: int, after_us: int) -> Counter[str]:
    """Kill one, let the next one go on, and see what is in the world and what the model was told."""
    with tempfile.TemporaryDirectory(prefix="mortal-") as name:
        folder = Path(name)
        killed = contestant.work(folder, die_at, after_us)
        if killed:
            contestant.work(folder)
        letters = folder / "letters"
        sent = Counter(letters.read_text().split() if letters.exists() else ())
        said = folder / "said"
        text, unknown, _ = said.read_text().splitlines() if said.exists() else ("", "0", "0")
    found = Counter(kills=int(killed), twice=int(any(times > 1 for times in sent.values())))
    if text != SAID:
        found["stuck"] = 1
    elif set(sent) != TO and int(unknown) == 0:
        found["silently missing"] = 1
    found["told unknown"] = int(int(unknown) > 0)
    return found


def measured(contestant: Contestant, moments: int, dice: random.Random) -> Counter[str]:
    """Every place, and so many moments within the time that its work takes."""
    with tempfile.TemporaryDirectory(prefix="mortal-") as name:
        contestant.work(Path(name))
        longest_us = int((Path(name) / "said").read_text().splitlines()[2])
    total = Counter[str]()
    for place in range(1, PLACES + 1):
        total += outcome(contestant, place, 0)
    for _ in range(moments):
        total += outcome(contestant, 0, dice.randint(1, longest_us))
    return total


def main() -> None:
    """A table in Markdown."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers_durability", description=__doc__)
    parser.add_argument("peers", nargs="?", default=sys.executable, help="an interpreter that has the peers' packages")
    parser.add_argument("--moments", type=int, default=30, help="kills at random moments for each contestant")
    parser.add_argument("--seed", type=int, default=20261130)
    asked = parser.parse_args()
    columns = ("kills", "twice", "silently missing", "stuck", "told unknown")
    print(f"| | {' | '.join(columns)} |\n|---|{'--:|' * len(columns)}")
    for name in PACKAGES:
        contestant = Contestant(name, sys.executable if name == "deepstrike" else asked.peers)
        versions = f"deepstrike {__version__}" if name == "deepstrike" else contestant.versions()
        if versions:
            found = measured(contestant, asked.moments, random.Random(asked.seed))
            print(f"| {versions} | {' | '.join(str(found[column]) for column in columns)} |", flush=True)


if __name__ == "__main__":
    main()
