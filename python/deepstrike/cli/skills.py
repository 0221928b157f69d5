"""`deepstrike skills`: checking folders of skills."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from deepstrike.cli import exits
from deepstrike.cli.safe import json_line, one_line
from deepstrike.skills.check import check

if TYPE_CHECKING:
    from deepstrike.skills.check import Finding


def check_skills(skill_dir: str, *, as_json: bool) -> int:
    """Print what is wrong with the skills of a folder; 0 if nothing breaks the open format, else 1."""
    report = check(skill_dir)
    for finding in report.findings:
        print(json_line(asdict(finding)) if as_json else _line(finding))
    if not as_json:
        errors = sum(finding.level == "error" for finding in report.findings)
        print(f"{len(report.checked)} skills checked, {errors} errors")
    return 0 if report.good else exits.FAILED


def _line(finding: Finding) -> str:
    return one_line(f"{finding.path}:{finding.line}: {finding.level}: {finding.message}", 1000)
