"""The policy that the docs offer to be copied does what they say of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deepstrike.governance import Governance

PAGE = Path(__file__).parents[2] / "docs" / "governance.md"


@pytest.fixture
def policy(tmp_path: Path) -> Governance:
    """The policy as it is printed."""
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "policy.yaml").write_text(block)
    return Governance.from_file(tmp_path / "policy.yaml")


@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "stage"),
    [
        ("read_file", {"path": "a.txt"}, "allow", ""),
        ("search_web", {"query": "x"}, "allow", ""),
        ("write_file", {"path": "src/a.py"}, "allow", ""),
        ("write_file", {"path": ".env"}, "deny", "constraint"),
        ("write_file", {"path": "src/.git/config"}, "deny", "constraint"),
        ("write_file", {"path": "a/.ENV"}, "deny", "constraint"),
        ("write_file", {"path": "a\\.env"}, "deny", "constraint"),
        ("read_file", {"path": ".env"}, "deny", "constraint"),
        ("git_status", {}, "allow", ""),
        ("git_push", {}, "ask", "permission"),
        ("send_mail", {"to": "ann@example.org"}, "ask", "permission"),
        ("send_mail", {"to": "eve@example.com"}, "deny", "constraint"),
        ("send_mail", {"to": "eve@example.com, ann@example.org"}, "deny", "constraint"),
        ("send_mail", {"to": "eve@example.com\nann@example.org"}, "deny", "constraint"),
        ("send_mail", {}, "deny", "constraint"),
        ("git_delete_branch", {}, "ask", "permission"),
        ("read_secret_file", {}, "deny", "permission"),
        ("rm_rf", {}, "deny", "permission"),
        ("anything", {}, "deny", "permission"),
    ],
)
def test_given_the_printed_policy_when_calls_are_evaluated_then_it_holds_what_the_page_says(
    policy: Governance, tool: str, arguments: dict[str, object], kind: str, stage: str
) -> None:
    verdict = policy.evaluate(tool, arguments, now_ms=1_000)
    assert (verdict.kind, verdict.stage) == (kind, stage)


def test_given_the_printed_policy_when_searches_are_many_then_the_limit_holds(policy: Governance) -> None:
    kinds = [policy.evaluate("search", now_ms=1_000 + number, consume=True).kind for number in range(31)]
    assert kinds == ["allow"] * 30 + ["rate_limited"]
    assert policy.evaluate("search", now_ms=61_000).kind == "allow"
