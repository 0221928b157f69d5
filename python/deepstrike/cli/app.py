"""The commands and their options. What a command needs is imported when it runs, so that `--help` is quick."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from deepstrike._version import __version__
from deepstrike.cli import exits
from deepstrike.cli.guard import guarded, have_streams

if TYPE_CHECKING:
    from collections.abc import Callable


def start() -> None:
    """Run the command line and end the process."""
    if not have_streams():
        sys.exit(exits.FAILED)
    sys.exit(guarded(lambda: cli.main(prog_name="deepstrike")))


def _end(work: Callable[[], int]) -> None:
    """Do the work of a command and end with its exit code; failures end in one clear line."""
    click.get_current_context().exit(guarded(work))


class Seconds(click.FloatRange):
    """A time above zero, up to some thirty years; not a number is none."""

    name = "seconds"

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True, max=1e9)

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds: float = super().convert(value, param, ctx)
        if seconds != seconds:  # only nan is not equal to itself
            self.fail(f"{value} is no number of seconds.", param, ctx)
        return seconds


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=exits.HELP)
@click.version_option(__version__, "--version", prog_name="deepstrike")
def cli() -> None:
    """Run agents: a goal, a model, tools, an answer.

    Without --model, the first that there is: a configured key or address, a model server on this machine, the built-in
    demo model (fixed rules, no language model).
    """


_model = click.option("--model", metavar="VENDOR:NAME", help="The model, as in openai:gpt-5-mini, or demo.")
_base_url = click.option("--base-url", metavar="URL", help="Any OpenAI-compatible address.")
_tools = click.option("--tools", multiple=True, metavar="MODULE:NAME", help="A tool or function; may be repeated.")
_system = click.option("--system", default="", metavar="TEXT", help="The system prompt.")
_max_turns = click.option(
    "--max-turns",
    type=click.IntRange(1, 1_000_000_000),
    default=25,
    show_default=True,
    help="Model calls for each goal.",
)
_timeout = click.option("--timeout", type=Seconds(), metavar="SECONDS", help="Time for each goal.")
_json = click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")


@cli.command(epilog=exits.HELP)
@click.argument("goal", default="What is 17 + 28?")
@_json
def demo(goal: str, as_json: bool) -> None:
    """Run a real agent loop with the built-in demo model.

    Needs no key and no network. The tools are add, multiply and now.
    """
    from deepstrike.cli.commands import run_demo

    _end(lambda: run_demo(goal, as_json=as_json))


@cli.command(epilog=exits.HELP)
@click.argument("goal")
@_model
@_base_url
@_tools
@_system
@_max_turns
@_timeout
@_json
def run(
    goal: str,
    model: str | None,
    base_url: str | None,
    tools: tuple[str, ...],
    system: str,
    max_turns: int,
    timeout: float | None,
    as_json: bool,
) -> None:
    """Pursue GOAL and print the answer.

    In a pipe the answer goes to standard output, all else to standard error; --json gives every event.
    """
    from deepstrike.cli.commands import Setup, run_goal

    _end(lambda: run_goal(Setup(model, base_url, tools, system, max_turns, timeout), goal, as_json=as_json))


@cli.command(epilog=exits.HELP)
@_model
@_base_url
@_tools
@_system
@_max_turns
@_timeout
@_json
def chat(
    model: str | None,
    base_url: str | None,
    tools: tuple[str, ...],
    system: str,
    max_turns: int,
    timeout: float | None,
    as_json: bool,
) -> None:
    """Talk: one goal a line, all in one session.

    Ctrl-C interrupts the answer; Ctrl-C at the prompt, or the end of the input, leaves. The exit code is that of the
    last answer.
    """
    from deepstrike.cli.commands import Setup, run_chat

    _end(lambda: run_chat(Setup(model, base_url, tools, system, max_turns, timeout), as_json=as_json))


@cli.command(epilog=exits.HELP)
@_json
def doctor(as_json: bool) -> None:
    """Say what is installed, configured and reachable.

    Names of keys are shown, never their values. Ends with 1 when something that is needed is broken.
    """
    from deepstrike.cli.doctor import run_doctor

    _end(lambda: run_doctor(as_json=as_json))
