"""The built wheel: what is in it, and a fresh install on the oldest and the newest Python that this machine has.

`make check` builds the wheel and names it in DEEPSTRIKE_WHEEL; without it these tests are skipped.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
WHEEL = os.environ.get("DEEPSTRIKE_WHEEL", "")
pytestmark = pytest.mark.skipif(not WHEEL, reason="no wheel was built: `make check` builds one")


def pythons() -> list[tuple[str, str]]:
    """(version, path) of the oldest and the newest Python here that can carry the package."""
    if not WHEEL:
        return []
    lines = subprocess.check_output([ROOT / ".ci" / "pythons"], text=True).splitlines()
    found = sorted((tuple(map(int, line.split()[0].split("."))), line.split(" ", 1)) for line in lines)
    ends = [found[0][1], found[-1][1]] if len(found) > 1 else [found[0][1]]
    return [(version, path) for version, path in ends]


def test_given_the_wheel_when_its_files_are_listed_then_marker_stub_kernel_and_licence_are_there() -> None:
    names = ZipFile(WHEEL).namelist()

    assert {"deepstrike/py.typed", "deepstrike/_kernel.pyi", "deepstrike/_kernel.abi3.so"} <= set(names)
    assert any(name.endswith("LICENSE") for name in names)
    assert [name for name in names if name.startswith(("tests/", "bench/")) or name.endswith(".pyc")] == []


def test_given_the_wheel_when_its_name_is_read_then_it_serves_every_python_from_3_10() -> None:
    assert "-cp310-abi3-" in Path(WHEEL).name


@pytest.mark.parametrize(("version", "path"), pythons(), ids=lambda value: value if "/" not in value else "")
def test_given_an_empty_environment_when_the_wheel_is_installed_then_the_command_runs_an_agent(
    version: str, path: str, tmp_path: Path
) -> None:
    subprocess.run([path, "-m", "venv", tmp_path / "venv"], check=True)
    commands = tmp_path / "venv" / "bin"
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTHON") and name != "VIRTUAL_ENV"
    }
    subprocess.run([commands / "python", "-m", "pip", "install", "--quiet", WHEEL], check=True, cwd=tmp_path, env=clean)

    done = subprocess.run([commands / "deepstrike", "demo"], capture_output=True, text=True, cwd=tmp_path, env=clean)
    asked = [str(commands / "python"), "-c", "import sys, deepstrike; print(*sys.version_info[:2], sep='.')"]
    said = subprocess.run(asked, capture_output=True, text=True, cwd=tmp_path, env=clean)

    assert done.returncode == 0, done.stderr
    assert "45" in done.stdout
    assert said.stdout == f"{version}\n", said.stderr
