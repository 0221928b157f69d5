"""What is installed, configured and reachable."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from deepstrike._version import __version__
from deepstrike.cli import exits
from deepstrike.cli.safe import json_line, one_line
from deepstrike.providers.choice import KEYS, choose, shown_address
from deepstrike.providers.transport.probe import LOCAL_SERVERS, ask, local_servers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deepstrike.providers.transport.probe import LocalServer

_PACKAGES = ("aiohttp", "msgspec", "pydantic", "click", "rich")
_REACH_SECONDS = 3.0
_MARKS = {"ok": "✓", "none": "·", "broken": "✗"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `broken` ones are needed and do not work; `none` says that there is nothing."""

    name: str
    state: Literal["ok", "none", "broken"]
    detail: str


def run_doctor(*, as_json: bool) -> int:
    """Print what was found; 1 when something is broken."""
    findings = list(_findings())
    broken = any(finding.state == "broken" for finding in findings)
    if as_json:
        report = {"ok": not broken, "findings": [asdict(finding) for finding in findings]}
        sys.stdout.write(json_line(report) + "\n")
    else:
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            sys.stdout.write(f"{_MARKS[finding.state]} {finding.name:<{width}}  {one_line(finding.detail, 300)}\n")
    return exits.FAILED if broken else 0


def _findings() -> Iterator[Finding]:
    yield _python()
    yield Finding("deepstrike", "ok", __version__)
    yield _kernel()
    for name in _PACKAGES:
        yield _package(name)
    for name in KEYS:
        yield Finding(name, "ok", "set") if os.environ.get(name) else Finding(name, "none", "not set")
    yield _address()
    servers = local_servers()
    yield from _local(servers)
    choice = choose(None, None, lambda: servers)
    yield Finding("model", "ok", f"{choice.name} ({choice.why})")


def _python() -> Finding:
    return Finding("python", "ok", f"{platform.python_version()} on {platform.platform()}")


def _kernel() -> Finding:
    try:
        from deepstrike.kernel import FORMAT, RENDERER
    except ImportError as error:
        return Finding("kernel", "broken", str(error))
    return Finding("kernel", "ok", f"{__version__}, log format {FORMAT}, renderer {RENDERER}")


def _package(name: str) -> Finding:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return Finding(name, "ok", version(name))
    except PackageNotFoundError:
        return Finding(name, "broken", f"not installed; run pip install {name}")


def _address() -> Finding:
    address = os.environ.get("OPENAI_BASE_URL")
    if not address:
        return Finding("OPENAI_BASE_URL", "none", "not set")
    answer = ask(address, _REACH_SECONDS)
    where = shown_address(address)
    if answer.status is None:
        return Finding("OPENAI_BASE_URL", "broken", f"{where} cannot be reached: {answer.reason}")
    return Finding("OPENAI_BASE_URL", "ok", f"{where} answers (HTTP {answer.status})")


def _local(servers: Sequence[LocalServer]) -> Iterator[Finding]:
    running = {server.name: server for server in servers}
    for name, port, _provider in LOCAL_SERVERS:
        if name in running:
            yield Finding(name, "ok", f"port {port}: {', '.join(running[name].models[:5])}")
        else:
            yield Finding(name, "none", f"port {port}: no model server")
