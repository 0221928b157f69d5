"""The commands on skills and their options."""

from __future__ import annotations

import click

from deepstrike.cli import exits, given
from deepstrike.cli.guard import end


@click.group(epilog=exits.HELP)
def skills() -> None:
    """Look at skills: instructions in a folder that an agent reads when it needs them."""


@skills.command(epilog=exits.HELP)
@click.argument("folder", metavar="DIR")
@given.as_json
def check(folder: str, as_json: bool) -> None:
    """Check the skills in DIR, or the one whose folder DIR is, against the open Agent Skills format.

    Says file, line and what is wrong. The exit code is 1 if something breaks the format, 0 if there are only notes.
    """
    from deepstrike.cli.skills import check_skills

    end(lambda: check_skills(folder, as_json=as_json))
