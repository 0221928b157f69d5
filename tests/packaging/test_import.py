"""`import deepstrike`: quiet, and clear when the native kernel is missing or another one."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def python(code: str, *flags: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter."""
    return subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, cwd=cwd, timeout=60)


def test_given_warnings_as_errors_when_every_public_name_is_touched_then_nothing_is_printed(tmp_path: Path) -> None:
    code = "import deepstrike\nfor name in deepstrike.__all__: getattr(deepstrike, name)"

    done = python(code, "-W", "error", "-X", "dev", cwd=tmp_path)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_given_an_import_when_logging_and_threads_are_looked_at_then_they_are_untouched() -> None:
    code = (
        "import deepstrike, sys, threading\n"
        "logging = sys.modules.get('logging')\n"
        "print(threading.active_count(), logging.getLogger().handlers if logging else [])"
    )

    done = python(code)

    assert (done.stdout, done.stderr) == ("1 []\n", "")


@pytest.mark.parametrize("statement", ["import deepstrike.kernel", "from deepstrike import RuntimeRunner"])
def test_given_no_native_module_when_it_is_needed_then_the_error_says_what_to_install(statement: str) -> None:
    hidden = "import sys; sys.modules['deepstrike._kernel'] = None\n"
    code = f"{hidden}try:\n    {statement}\nexcept ImportError as error:\n    print(error)"

    done = python(code)

    assert done.returncode == 0, done.stderr
    assert "deepstrike._kernel" in done.stdout
    assert "install" in done.stdout


def test_given_a_native_module_of_another_version_when_it_is_loaded_then_the_error_names_both() -> None:
    code = (
        "import sys, types\n"
        "other = types.ModuleType('deepstrike._kernel')\n"
        "other.__version__ = '0.0.1'\n"
        "sys.modules['deepstrike._kernel'] = other\n"
        "from deepstrike._version import __version__ as ours\n"
        "try:\n    import deepstrike.kernel\n"
        "except ImportError as error:\n    print('0.0.1' in str(error), ours in str(error), 'install' in str(error))"
    )

    done = python(code)

    assert (done.stdout, done.stderr) == ("True True True\n", "")


def test_given_the_package_when_its_version_is_asked_then_native_module_and_metadata_agree() -> None:
    from importlib.metadata import version

    import deepstrike
    from deepstrike import _kernel

    assert deepstrike.__version__ == _kernel.__version__ == version("deepstrike")
