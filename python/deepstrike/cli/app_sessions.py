"""The commands on recorded sessions and their options."""

from __future__ import annotations

import click

from deepstrike.cli import exits, given
from deepstrike.cli.guard import end


@click.group(epilog=exits.HELP)
def sessions() -> None:
    """Look at the sessions that were kept, compare them, remove them."""


@sessions.command("list", epilog=exits.HELP)
@given.log_path
@given.as_json
def list_(log_path: str | None, as_json: bool) -> None:
    """List the sessions: how each stands, how old it is, its first goal."""
    from deepstrike.cli.sessions import list_sessions

    end(lambda: list_sessions(log_path, as_json=as_json))


@sessions.command(epilog=exits.HELP)
@click.argument("session", type=given.Words())
@given.log_path
@given.as_json
def show(session: str, log_path: str | None, as_json: bool) -> None:
    """Show SESSION: its goals, what the model said, its calls with their results, what is pending.

    What has the shape of a vendor's key is shown as ***.
    """
    from deepstrike.cli.sessions import show_session

    end(lambda: show_session(log_path, session, as_json=as_json))


@sessions.command(epilog=exits.HELP)
@click.argument("session", type=given.Words())
@click.option("--raw", is_flag=True, help="Leave what looks like a secret as it is.")
@click.option("--intact", is_flag=True, help="Of a damaged session, the records before the damage.")
@given.log_path
def export(session: str, raw: bool, intact: bool, log_path: str | None) -> None:
    """Write the records of SESSION as JSON lines.

    What has the shape of a vendor's key is written as ***, unless --raw.
    """
    from deepstrike.cli.sessions import export_session

    end(lambda: export_session(log_path, session, raw=raw, intact=intact))


@sessions.command(epilog=exits.HELP)
@click.argument("session", type=given.Words(), nargs=-1)
@given.log_path
@given.as_json
def verify(session: tuple[str, ...], log_path: str | None, as_json: bool) -> None:
    """Check every byte of SESSION, or of all sessions: checksums, blobs, and that the records make a session."""
    from deepstrike.cli.sessions import verify_sessions

    end(lambda: verify_sessions(log_path, session, as_json=as_json))


@sessions.command(epilog=exits.HELP)
@click.argument("a", type=given.Words())
@click.argument("b", type=given.Words())
@given.log_path
@given.as_json
def diff(a: str, b: str, log_path: str | None, as_json: bool) -> None:
    """Show where the sessions A and B part, and why.

    Times, ids and the order in which parallel calls came back are no difference.
    """
    from deepstrike.cli.compared import diff_sessions

    end(lambda: diff_sessions(log_path, a, b, as_json=as_json))


@sessions.command(epilog=exits.HELP)
@click.argument("session", type=given.Words(), nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@given.log_path
def delete(session: tuple[str, ...], yes: bool, log_path: str | None) -> None:
    """Remove SESSION with its blobs and its sub-agents' sessions, for good. Asks first."""
    from deepstrike.cli.sessions import delete_sessions

    end(lambda: delete_sessions(log_path, session, yes=yes))


@click.command(epilog=exits.HELP)
@click.argument("session", type=given.Words())
@given.log_path
@given.as_json
def replay(session: str, log_path: str | None, as_json: bool) -> None:
    """Live through SESSION again and compare decisions and prompts with what was recorded.

    Needs no model, no tools and no network.
    """
    from deepstrike.cli.compared import replay_session

    end(lambda: replay_session(log_path, session, as_json=as_json))


@click.command(epilog=exits.HELP)
@click.argument("session", type=given.Words())
@click.option(
    "--answer",
    "answers",
    type=given.Words(),
    multiple=True,
    metavar="ID=VALUE",
    help="Answer an open request; may be repeated.",
)
@click.option("--without-tools", is_flag=True, help="Let open calls fail whose tool no --tools gives.")
@click.option("--without-policy", is_flag=True, help="Go on without a policy where the session had one.")
@given.setup
@given.as_json
def resume(
    setup: given.Setup,
    session: str,
    answers: tuple[str, ...],
    without_tools: bool,
    without_policy: bool,
    as_json: bool,
) -> None:
    """Go on with the last goal of SESSION: crashed, interrupted, limited or waiting for answers.

    Nothing that finished is done again. Give the same --tools as before, and --policy where there was one: without the
    tool of an open call, without a policy for a session that had one, or with no model but the demo's for a session of
    another model, nothing is done. A VALUE is JSON; what is no JSON is taken as a text. Of a completed session the
    recorded answer is printed.
    """
    from deepstrike.cli.commands import Without, resume_session

    without = Without(tools=without_tools, policy=without_policy)
    end(lambda: resume_session(setup, session, answers, as_json=as_json, without=without))
