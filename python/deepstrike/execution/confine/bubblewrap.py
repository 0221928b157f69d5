"""Bubblewrap: the same views as `namespaces`, by a program that may make them where this process may not."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from deepstrike.execution.confine.inside import View
    from deepstrike.execution.confine.policy import Policy

_PLACES: Final = ("/usr/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap")
INSIDE: Final = "import sys; sys.path.append(sys.argv[1]); from deepstrike.execution.confine.inside import main; main()"


def find() -> str | None:
    """Where it is installed; never looked for on a PATH, which others may have set."""
    return next((path for path in _PLACES if os.access(path, os.X_OK)), None)


def works(program: str, policy: Policy) -> bool:
    """Whether it can make the views, found by letting it run `true` in them."""
    child = os.fork()
    if child == 0:
        try:
            silent = os.open(os.devnull, os.O_RDWR)
            for descriptor in range(3):
                os.dup2(silent, descriptor)
            os.execve(program, [*arguments(program, policy), "/bin/true"], {})  # noqa: S606  (the path is a constant)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def arguments(program: str, policy: Policy) -> list[str]:
    """The command line up to the program that it shall run."""
    found = [program, "--die-with-parent", "--new-session", "--unshare-all", "--ro-bind", "/", "/"]
    found += ["--dev", "/dev", "--proc", "/proc"]
    if policy.network is not False:
        found.append("--share-net")
    for path in policy.write:
        found += ["--bind", path, path]
    return [*found, "--"]


def become(program: str, policy: Policy, encoded: bytes, failures: int, view: View) -> None:
    """Turn into bubblewrap, in which `inside.main` confines itself further. Raises `OSError`."""
    held = os.memfd_create("policy", 0)
    os.write(held, encoded)
    os.lseek(held, 0, os.SEEK_SET)
    os.set_inheritable(failures, True)
    told = (held, failures, view.abi, int(view.memory_counted))
    inner = [sys.executable, "-I", "-S", "-c", INSIDE, sys.argv[1], *map(str, told)]
    os.execve(program, [*arguments(program, policy), *inner], {})  # noqa: S606
