"""The command line: `deepstrike demo | run | chat | doctor`."""

from __future__ import annotations


def main() -> None:
    """The `deepstrike` command. Ends the process with the exit code that `deepstrike --help` documents."""
    from deepstrike.cli.app import start

    start()
