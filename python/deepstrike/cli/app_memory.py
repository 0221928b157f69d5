"""The commands on memories and their options."""

from __future__ import annotations

import click

from deepstrike.cli import exits, given
from deepstrike.cli.guard import end

store = click.option(
    "--store",
    "store_path",
    metavar="PATH",
    help="The SQLite file of the memories.  [default: memories.db in $DEEPSTRIKE_HOME, else in your data folder]",
)
agent = click.option("--agent", "agent_id", type=given.Words(), metavar="ID", help="Whose memories.")


@click.group(epilog=exits.HELP)
def memory() -> None:
    """Look at what agents remember of their sessions, and take it back."""


@memory.command("list", epilog=exits.HELP)
@click.option("--all", "everything", is_flag=True, help="Also what is no longer so.")
@agent
@store
@given.as_json
def list_(everything: bool, agent_id: str | None, store_path: str | None, as_json: bool) -> None:
    """List the memories of an agent, or of all: since when, what, from which session."""
    from deepstrike.cli.memory import list_memories

    end(lambda: list_memories(store_path, agent_id, everything=everything, as_json=as_json))


@memory.command(epilog=exits.HELP)
@click.argument("entry", type=given.Words())
@agent
@store
@given.as_json
def show(entry: str, agent_id: str | None, store_path: str | None, as_json: bool) -> None:
    """Show the memory that ENTRY of `memory list` names: where it comes from, what it took the place of."""
    from deepstrike.cli.memory import show_memory

    end(lambda: show_memory(store_path, agent_id, entry, as_json=as_json))


@memory.command(epilog=exits.HELP)
@click.option("--all", "everything", is_flag=True, help="Of the last 20 dreams that changed something.")
@agent
@store
@given.as_json
def diff(everything: bool, agent_id: str | None, store_path: str | None, as_json: bool) -> None:
    """Show what the last dream has changed: + is so since, - no longer is."""
    from deepstrike.cli.memory import show_diff

    end(lambda: show_diff(store_path, agent_id, everything=everything, as_json=as_json))


@memory.command(epilog=exits.HELP)
@agent
@store
@given.as_json
def undo(agent_id: str | None, store_path: str | None, as_json: bool) -> None:
    """Take back what the last dream has changed, and show it.

    Its sessions stay dreamed of, so it does not come again. A second time takes back the dream before.
    """
    from deepstrike.cli.memory import undo_dream

    end(lambda: undo_dream(store_path, agent_id, as_json=as_json))


@memory.command(epilog=exits.HELP)
@click.argument("session", type=given.Words(), nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@agent
@store
def forget(session: tuple[str, ...], yes: bool, agent_id: str | None, store_path: str | None) -> None:
    """Remove SESSION and all that was drawn from it, for good: no byte is left in the file. Asks first."""
    from deepstrike.cli.memory import forget_sessions

    end(lambda: forget_sessions(store_path, agent_id, session, yes=yes))
