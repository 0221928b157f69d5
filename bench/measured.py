"""`python -m bench.measured FOLDER SEED`: the page of one torture run, from the reports that it left in FOLDER."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from xml.etree import ElementTree

from bench.figures import FIGURES
from bench.report import Line, table


def rust_counts(text: str) -> str:
    """Sums cargo's closing lines."""
    closing = re.findall(r"^test result: \w+\. (\d+) passed; (\d+) failed", text, re.MULTILINE)
    passed, failed = (sum(int(pair[side]) for pair in closing) for side in (0, 1))
    return f"{passed} passed, {failed} failed"


def python_counts(report: Path) -> str:
    """What pytest's report says."""
    suite = ElementTree.parse(report).getroot().find("testsuite")
    assert suite is not None
    total, failed, skipped = (int(suite.get(name, "0")) for name in ("tests", "failures", "skipped"))
    failed += int(suite.get("errors", "0"))
    took = float(suite.get("time", "0"))
    return f"{total - failed - skipped} passed, {failed} failed, {skipped} skipped, {took:.0f} s"


def counted(report: Path, what: str) -> str:
    """How often the tests did something, by their own account."""
    told = ElementTree.parse(report).getroot().iter("property")
    return f"{sum(int(each.get('value', '0')) for each in told if each.get('name') == what):,}"


def slowest(report: Path, count: int = 10) -> list[str]:
    """The tests that took longest."""
    cases = ElementTree.parse(report).getroot().iter("testcase")
    timed = sorted(((float(case.get("time", "0")), case) for case in cases), key=lambda pair: -pair[0])[:count]
    return [f"| {case.get('classname')} | {case.get('name')} | {seconds:.1f} s |" for seconds, case in timed]


def lines_of(report: Path) -> list[Line]:
    """The bench's figures, read back."""
    known = {figure.case: figure for figure in FIGURES}
    rows = json.loads(report.read_text())
    return [Line(known[row["case"]], row["ours"], row["floor"], row["samples"]) for row in rows]


def page(folder: Path, seed: str) -> str:
    """The whole page, in Markdown."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    today = datetime.now(timezone.utc).date().isoformat()
    cases = f"{int(os.environ['PROPTEST_CASES']):,}" if "PROPTEST_CASES" in os.environ else "the usual number of"
    rust, report = rust_counts((folder / "rust.txt").read_text()), folder / "python.xml"
    return "\n".join(
        [
            "# What was measured",
            "",
            f"Written by `make torture` on {today} at {commit or 'no commit'}: {platform.platform()}, "
            f"Python {platform.python_version()}, seed {seed}. Figures of that run, nothing else.",
            "",
            "## Tests",
            "",
            f"* Kernel and tokens (Rust): {rust}; properties of the kernel at {cases} cases each.",
            f"* Package (Python): {python_counts(report)}.",
            f"* Processes killed in the middle of a session: {counted(report, 'kills')}. A lost record, a second "
            "execution of a `once` tool or an unreadable log in any of them fails a test.",
            f"* Attempts to get out of the sandbox: {counted(report, 'attempts')}, under each set of layers. One that "
            "reaches anything fails a test.",
            f"* Globs compared with a reference: {counted(report, 'globs')} pairs. A difference fails a test.",
            "",
            "The slowest:",
            "",
            "| in | test | took |",
            "|---|---|--:|",
            *slowest(report),
            "",
            "## Speed and size",
            "",
            table(lines_of(folder / "bench.json")),
            "",
        ]
    )


if __name__ == "__main__":
    print(page(Path(sys.argv[1]), sys.argv[2]), end="")
