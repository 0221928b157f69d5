"""`deepstrike evaluate` and its options."""

from __future__ import annotations

import click

from deepstrike.cli import exits, given
from deepstrike.cli.guard import end


@click.command(epilog=exits.HELP)
@click.argument("cases", metavar="CASES.jsonl")
@given.setup
@given.session
@click.option("--judge", metavar="VENDOR:NAME", help="A model that judges the answers.")
@click.option("--against", metavar="VENDOR:NAME", help="Another model to run the same cases, and to be compared.")
@click.option("--repeats", type=click.IntRange(1, 1_000), default=1, show_default=True, help="Runs of each case.")
@click.option(
    "--attempts",
    type=click.IntRange(1, 1_000),
    default=1,
    show_default=True,
    help="Attempts of each run, with the judge's feedback.",
)
@click.option("--concurrency", type=click.IntRange(1, 1_000), default=8, show_default=True, help="Runs at once.")
@click.option(
    "--at-least", type=click.FloatRange(0, 1), metavar="RATE", help="The pass rate below which to fail, 0 to 1."
)
@click.option("--svg", type=click.Path(dir_okay=False, writable=True), metavar="FILE", help="Write a picture of it.")
@given.as_json
def evaluate(
    setup: given.Setup,
    cases: str,
    session_id: str | None,
    judge: str | None,
    against: str | None,
    repeats: int,
    attempts: int,
    concurrency: int,
    at_least: float | None,
    svg: str | None,
    as_json: bool,
) -> None:
    """Run a file of cases and say how often the answers are right.

    Each line of CASES.jsonl is an object with a `goal`, and with `contains`, `equals` or, for --judge, `criteria`. With
    --session the evaluation is kept: made again, it goes on where it was left, and runs what failed once more. The
    exit code is 1 if a run or the judge failed, or fewer passed than --at-least.
    """
    from deepstrike.cli.evaluation import Asked, run_evaluation

    asked = Asked(cases, session_id, judge, against, repeats, attempts, concurrency, at_least, svg)
    end(lambda: run_evaluation(setup, asked, as_json=as_json))
