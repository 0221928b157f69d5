"""The one-way rules of ARCHITECTURE.md, read from the sources."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "deepstrike"
SOURCES = sorted(PACKAGE.rglob("*.py"))


def imported(path: Path) -> set[str]:
    """The dotted names that a module imports anywhere, also inside functions; `from a import b` gives `a` and `a.b`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def importers(of: str) -> set[str]:
    """Which of our modules import `of` or something in it."""
    return {
        path.relative_to(PACKAGE).as_posix()
        for path in SOURCES
        if any(name == of or name.startswith(f"{of}.") for name in imported(path))
    }


def test_given_the_import_contracts_when_they_are_checked_then_none_is_broken() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    if not linter.exists():
        pytest.skip("import-linter is not installed beside this Python")

    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr


def test_given_the_native_module_when_its_importers_are_listed_then_kernel_py_is_the_only_one() -> None:
    assert importers("deepstrike._kernel") == {"kernel.py"}


def test_given_the_machines_clock_when_its_readers_are_listed_then_only_clock_py_and_the_demos_tool_read_it() -> None:
    # `signals/cron.py` only turns times into dates and back; the time comes in as a number.
    assert importers("time") | importers("datetime") == {"clock.py", "cli/demo.py", "signals/cron.py"}
    assert ".now(" not in (PACKAGE / "signals" / "cron.py").read_text()


def test_given_aiohttp_when_its_importers_are_listed_then_only_the_transport_and_the_test_server_use_it() -> None:
    allowed = {path for path in importers("aiohttp") if path.startswith("providers/transport/")}

    assert importers("aiohttp") - allowed <= {"testing/server.py", "cli/doctor.py"}


@pytest.mark.parametrize("vendor", ["openai", "anthropic", "httpx", "requests", "tiktoken"])
def test_given_a_vendors_sdk_when_its_importers_are_listed_then_there_are_none(vendor: str) -> None:
    assert importers(vendor) == set()


def test_given_a_fresh_interpreter_when_deepstrike_is_imported_then_nothing_heavy_comes_with_it() -> None:
    heavy = ["aiohttp", "pydantic", "pydantic_core", "click", "rich", "yaml", "asyncio", "multiprocessing", "unittest"]
    code = f"import sys, deepstrike; print(*sorted(sys.modules.keys() & set({heavy!r})))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []
