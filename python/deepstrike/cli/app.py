"""The commands and their options. What a command needs is imported when it runs, so that `--help` is quick."""

from __future__ import annotations

import sys

import click

from deepstrike._version import __version__
from deepstrike.cli import exits, given
from deepstrike.cli.app_evaluate import evaluate
from deepstrike.cli.app_policy import policy
from deepstrike.cli.app_sessions import replay, resume, sessions
from deepstrike.cli.app_skills import skills
from deepstrike.cli.guard import end, guarded, have_streams


def start() -> None:
    """Run the command line and end the process."""
    if not have_streams():
        sys.exit(exits.FAILED)
    sys.exit(guarded(lambda: cli.main(prog_name="deepstrike")))


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=exits.HELP)
@click.version_option(__version__, "--version", prog_name="deepstrike")
def cli() -> None:
    """Run agents: a goal, a model, tools, an answer.

    Without --model, the first that there is: a configured key or address, a model server on this machine, the built-in
    demo model (fixed rules, no language model).
    """


for command in (sessions, resume, replay, policy, skills, evaluate):
    cli.add_command(command)


@cli.command(epilog=exits.HELP)
@click.argument("goal", type=given.Words(), default="What is 17 + 28?")
@given.as_json
def demo(goal: str, as_json: bool) -> None:
    """Run a real agent loop with the built-in demo model.

    Needs no key and no network. The tools are add, multiply and now.
    """
    from deepstrike.cli.commands import run_demo

    end(lambda: run_demo(goal, as_json=as_json))


@cli.command(epilog=exits.HELP)
@click.argument("goal", type=given.Words())
@given.setup
@given.session
@given.as_json
def run(setup: given.Setup, goal: str, session_id: str | None, as_json: bool) -> None:
    """Pursue GOAL and print the answer.

    In a pipe the answer goes to standard output, all else to standard error; --json gives every event. With --session
    or --log the session is kept: it can be continued, resumed, shown and replayed.
    """
    from deepstrike.cli.commands import run_goal

    end(lambda: run_goal(setup, goal, session_id, as_json=as_json))


@cli.command(epilog=exits.HELP)
@given.setup
@given.session
@given.as_json
def chat(setup: given.Setup, session_id: str | None, as_json: bool) -> None:
    """Talk: one goal a line, all in one session, which --session or --log keeps.

    Ctrl-C interrupts the answer; Ctrl-C at the prompt, or the end of the input, leaves. The exit code is that of the
    last answer.
    """
    from deepstrike.cli.commands import run_chat

    end(lambda: run_chat(setup, session_id, as_json=as_json))


@cli.command(epilog=exits.HELP)
@given.as_json
def doctor(as_json: bool) -> None:
    """Say what is installed, configured and reachable.

    Names of keys are shown, never their values. Ends with 1 when something that is needed is broken.
    """
    from deepstrike.cli.doctor import run_doctor

    end(lambda: run_doctor(as_json=as_json))
