"""The commands on policies and their options."""

from __future__ import annotations

import click

from deepstrike.cli import given
from deepstrike.cli.guard import end

_HELP = """\b
Exit codes:
    0  the policy is right; it changes nothing
    1  it decides some recorded call in another way
    2  wrong usage, a policy that is wrong, sessions that cannot be read
"""


@click.group(epilog=_HELP)
def policy() -> None:
    """Check what agents may do before they do it."""


@policy.command(epilog=_HELP)
@click.argument("file")
@given.as_json
def check(file: str, as_json: bool) -> None:
    """Say whether the policy in FILE is right, and what it holds; an error names the line."""
    from deepstrike.cli.policy import check_policy

    end(lambda: check_policy(file, as_json=as_json))


@policy.command(epilog=_HELP)
@click.argument("new")
@click.option(
    "--sessions",
    "log_path",
    metavar="PATH",
    help="The recorded sessions: a folder or a SQLite file.  [default: sessions.db in $DEEPSTRIKE_HOME, else in your "
    "data folder]",
)
@given.as_json
def test(new: str, log_path: str | None, as_json: bool) -> None:
    """Judge every recorded call again by the policy in NEW.

    Tells which calls would be newly blocked, allowed or asked about, by which rule, with the shortest of them as an
    example, and which rules fit no call at all. Nothing is run and nothing is written.
    """
    from deepstrike.cli.policy import backtest_policy

    end(lambda: backtest_policy(new, log_path, as_json=as_json))
