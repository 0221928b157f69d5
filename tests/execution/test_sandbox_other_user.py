"""The sandbox holds for a host that is not root, where the system lets a program do more to its user's processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from deepstrike.execution.confine.landlock import landlock_abi

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux" or landlock_abi() < 3, reason="this kernel has no Landlock"),
    pytest.mark.skipif(
        sys.platform != "linux" or os.geteuid() != 0,
        reason="only root can become somebody else, for whom the rest runs",
    ),
]

SOMEBODY = 58_231
"""No process of anybody else runs as this user, so what an attempt does to all of the user's reaches only its own."""

AT_OTHERS = [
    "slows all processes of its user",
    "makes all processes of its user wait for the disk",
    "lets the kernel signal another process",
    "lets the kernel signal another process, by the newer command",
    "slows another process",
    "ends another process",
]
TWO_LAYERS = ["landlock", "seccomp"]
HOST = Path(__file__).with_name("other_user_host.py")
OUR_FILES = [HOST, HOST.with_name("sandbox_attempts.py"), HOST.with_name("sandbox_world.py")]
LOADED = """
import sys, deepstrike
from deepstrike.execution.sandbox import SandboxExecutionPlane
SandboxExecutionPlane(unconfined=True).specs()
tops = {name.partition(".")[0] for name, module in sys.modules.items() if getattr(module, "__file__", None)}
print(" ".join(tops - sys.stdlib_module_names - {"__main__"}))
"""


class Somebody(NamedTuple):
    """A folder of another user's, and a Python that this user can run."""

    folder: Path
    python: str

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run_as_somebody(self.folder, self.python, *words)


def run_as_somebody(folder: Path, python: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, *words],
        user=SOMEBODY,
        group=SOMEBODY,
        extra_groups=[],
        env={"PYTHONPATH": str(folder / "packages"), "PATH": "/usr/bin:/bin", "HOME": str(folder / "home")},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def somebody() -> Iterator[Somebody]:
    with tempfile.TemporaryDirectory(prefix="deepstrike-somebody-", dir="/tmp") as made:
        folder = Path(made)
        folder.chmod(0o755)
        (folder / "home").mkdir()
        os.chown(folder / "home", SOMEBODY, SOMEBODY)
        copy_packages(folder / "packages")
        reasons = []
        for python in pythons(folder):
            tried = try_python(folder, python)
            if tried is None:
                yield Somebody(folder, python)
                return
            reasons.append(f"{python}: {tried}")
        pytest.skip(f"no Python here that another user can run: {'; '.join(reasons)}")


def try_python(folder: Path, python: str) -> str | None:
    """Why it is of no use, None if it is."""
    try:
        tried = run_as_somebody(folder, python, "-c", LOADED)
    except OSError as error:
        return str(error)
    return None if tried.returncode == 0 else (tried.stderr.splitlines() or ["no word"])[-1]


def pythons(folder: Path) -> Iterator[str]:
    """This one where another user can reach it, that of the system, a copy of this one."""
    yield os.path.realpath(sys.executable)
    yield "/usr/bin/python3"
    library, config = Path(sysconfig.get_path("stdlib")), sysconfig.get_config_var
    copy = folder / "python"
    (copy / "bin").mkdir(parents=True)
    shutil.copy(os.path.realpath(sys.executable), copy / "bin/python3")
    left_out = shutil.ignore_patterns("site-packages", "dist-packages", "test", "config-*", "__pycache__", "idlelib")
    shutil.copytree(library, copy / "lib" / library.name, ignore=left_out)
    shared = Path(config("LIBDIR") or "/", config("LDLIBRARY") or "")
    if shared.suffix == ".so" or ".so." in shared.name:
        shutil.copy(shared, copy / "lib")
    yield str(copy / "bin/python3")


def copy_packages(target: Path) -> None:
    """What a host of a sandbox imports."""
    target.mkdir()
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, timeout=120, check=True)
    for name in done.stdout.split():
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            shutil.copytree(next(iter(spec.submodule_search_locations)), target / name)
        elif spec is not None and spec.origin:
            shutil.copy(spec.origin, target)
    for path in OUR_FILES:
        shutil.copy(path, target)


def reached(somebody: Somebody, name: str, layers: list[str]) -> dict[str, list[str]]:
    place = somebody.folder / "home" / name
    place.mkdir()
    os.chown(place, SOMEBODY, SOMEBODY)
    script = str(somebody.folder / "packages" / HOST.name)
    done = somebody.run(script, str(place), json.dumps(layers), json.dumps(AT_OTHERS))
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def test_given_a_host_of_another_user_when_a_program_tries_to_reach_its_processes_then_it_reaches_none(
    somebody: Somebody,
) -> None:
    assert reached(somebody, "confined", TWO_LAYERS) == {sentence: [] for sentence in AT_OTHERS}


def test_given_the_same_host_when_nothing_confines_the_program_then_it_reaches_them(somebody: Somebody) -> None:
    found = reached(somebody, "open", [])

    assert {sentence for sentence, what in found.items() if what == []} == set()
    assert list(found) == [sentence for sentence in found if sentence in AT_OTHERS]
