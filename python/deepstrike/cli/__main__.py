"""`python -m deepstrike.cli` is the `deepstrike` command."""

from deepstrike.cli import main

main()
