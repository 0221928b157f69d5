"""What one confined run may do, as it crosses from the host to the launcher, and what came of it."""

from __future__ import annotations

import json
from typing import Final, NamedTuple

LAYERS: Final = ("landlock", "seccomp", "namespaces", "bubblewrap")
"""What can confine a process. The first two always have to."""


class Limits(NamedTuple):
    """Bounds of one run: seconds of processor time, bytes of memory and of one file, open files, processes."""

    cpu_seconds: int | None
    memory_bytes: int | None
    file_bytes: int | None
    open_files: int | None
    processes: int | None


class Policy(NamedTuple):
    """One run. All paths are absolute and without links.

    `system` is read where it is there; every path of `read` and `write` must be there. `network` is False for none,
    True for all, or the TCP ports that may be connected to. `layers` None stands for all that work here; else each of
    them must work. `confined` False applies none of them.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    system: tuple[str, ...]
    read: tuple[str, ...]
    write: tuple[str, ...]
    network: bool | tuple[int, ...]
    limits: Limits
    layers: tuple[str, ...] | None
    confined: bool


class Report(NamedTuple):
    """What came of a run. `refused` is empty unless nothing ran, and then says why.

    `stopped` is `processes` or `memory` where the launcher ended the run for that limit, `closed` where the host asked.
    """

    exit_code: int | None = None
    signal: int | None = None
    stopped: str = ""
    confinement: str = ""
    refused: str = ""


def encode_policy(policy: Policy) -> bytes:
    """One line of JSON."""
    return json.dumps(policy._asdict()).encode() + b"\n"


def decode_policy(line: bytes) -> Policy:
    """The reverse of `encode_policy`. Raises `ValueError`, `KeyError` or `TypeError` for anything else."""
    found = json.loads(line)
    network, layers = found["network"], found["layers"]
    return Policy(
        argv=tuple(found["argv"]),
        env=dict(found["env"]),
        cwd=found["cwd"],
        system=tuple(found["system"]),
        read=tuple(found["read"]),
        write=tuple(found["write"]),
        network=network if isinstance(network, bool) else tuple(network),
        limits=Limits(*found["limits"]),
        layers=None if layers is None else tuple(layers),
        confined=found["confined"],
    )


def encode_report(report: Report) -> bytes:
    """JSON text."""
    return json.dumps(report._asdict()).encode()


def decode_report(data: bytes) -> Report | None:
    """None where the launcher did not come to write one."""
    return Report(**json.loads(data)) if data else None
