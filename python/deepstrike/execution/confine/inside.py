"""The last steps: this process binds its own hands and becomes the program."""

from __future__ import annotations

import os
import signal
import sys
from typing import Final, NamedTuple, NoReturn

from deepstrike.execution.confine import landlock, native, privileges
from deepstrike.execution.confine.filter import Around, build_filter
from deepstrike.execution.confine.policy import Policy, decode_policy

NOT_CONFINED: Final = 125
"""Exit code of a process that could not take all the steps, and did not start the program."""

RUNNING, FAILED, STATUS = b"R", b"F", b"S"
"""First letters of what is written on the failures pipe: the program starts, it does not, and how it ended."""


class View(NamedTuple):
    """How much of the host is to be seen: Landlock's version, whether in namespaces, whether /proc is the run's own.

    `memory_counted` says whether a control group keeps the memory's limit, or there is none.
    """

    abi: int
    namespaces: bool
    own_proc: bool
    processes_before: int
    memory_counted: bool


def become_program(policy: Policy, view: View, failures: int) -> NoReturn:
    """Take every step or none: what fails is told on `failures`, and the program does not start."""
    try:
        _detach(failures)
        if policy.confined:
            _confine(policy, view)
        else:
            os.chdir(policy.cwd)
            privileges.bound(policy.limits, view.processes_before)
        os.write(failures, RUNNING + b"\n")
        os.execve(policy.argv[0], list(policy.argv), policy.env)  # noqa: S606  (no shell: that is the program's affair)
    except BaseException as error:
        tell(failures, FAILED, f"{type(error).__name__}: {error}")
    os._exit(NOT_CONFINED)


def tell(pipe: int, letter: bytes, text: str) -> None:
    """One line on the failures pipe."""
    os.write(pipe, letter + text.replace("\n", " ").encode("utf-8", "replace")[:1000] + b"\n")


def _detach(failures: int) -> None:
    """A session of its own, nothing to read, and no descriptor but the two that carry output."""
    os.setsid()
    if sys.platform == "linux":
        native.process_control(native.PR_SET_PDEATHSIG, signal.SIGKILL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.set_inheritable(failures, False)
    os.closerange(3, failures)
    os.closerange(failures + 1, 1 << 16)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and a program inherits what is ignored
        signal.signal(number, signal.SIG_DFL)


def _confine(policy: Policy, view: View) -> None:
    around = Around(view.namespaces, scoped_signals=view.abi >= 6, memory_counted=view.memory_counted)
    program = build_filter(policy, around)
    where = native.open_plain(policy.cwd)
    os.fchdir(where)
    os.close(where)
    privileges.forbid_new_privileges()
    isolated = view.namespaces and policy.network is False
    landlock.restrict(
        policy,
        view.abi,
        own_proc=view.own_proc,
        isolated_network=isolated,
        memory_counted=view.memory_counted,
    )
    privileges.drop_capabilities()
    privileges.bound(policy.limits, view.processes_before)
    native.install_filter(program)


def main() -> NoReturn:
    """Under bubblewrap: the policy and the pipe are descriptors that the command line names."""
    held, failures, abi, counted = (int(word) for word in sys.argv[2:6])
    with os.fdopen(held, "rb") as file:
        policy = decode_policy(file.read())
    view = View(abi, namespaces=True, own_proc=True, processes_before=0, memory_counted=bool(counted))
    become_program(policy, view, failures)
