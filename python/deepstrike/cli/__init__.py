"""The command line: `deepstrike demo | run | chat | resume | replay | sessions | doctor`."""

from __future__ import annotations


def main() -> None:
    """The `deepstrike` command. Ends the process with the exit code that `deepstrike --help` documents."""
    from deepstrike.cli.signals import leave_on_signals

    leave_on_signals()  # before the imports, which Ctrl-C may hit
    from deepstrike.cli.app import start

    start()
