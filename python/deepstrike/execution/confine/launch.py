"""The launcher: starts one confined program, sees that it keeps its bounds, and leaves nothing of it behind.

The policy comes as the first line of standard input, which stays open: when that ends, because the host closed it or
died, the run ends. The report goes to the descriptor that the command line names.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from deepstrike.execution.confine import bubblewrap, namespaces, native
from deepstrike.execution.confine.fence import raise_fence
from deepstrike.execution.confine.inside import FAILED, RUNNING, STATUS, View, become_program, tell
from deepstrike.execution.confine.layers import Chosen, Refusal, choose
from deepstrike.execution.confine.policy import Report, decode_policy, encode_policy, encode_report
from deepstrike.execution.confine.watch import Family

if TYPE_CHECKING:
    from deepstrike.execution.confine.fence import Fence
    from deepstrike.execution.confine.policy import Policy

_TICK_MS: Final = 100
_SPARE: Final = 2
"""Processes of ours in the run's namespace."""
_SPARE_BYTES: Final = 16 * 1024 * 1024
"""What they take of the group's memory."""


class _Started(NamedTuple):
    """The first process, the pipe on which its beginning and end are told, and the layers in words."""

    process: int
    told: int
    confinement: str


def main() -> NoReturn:
    """Run the policy and write the report. Never raises: what goes wrong here is a refusal."""
    report_to = int(sys.argv[2])
    os.set_inheritable(report_to, False)
    try:
        report = _run(decode_policy(_first_line()))
    except Refusal as refusal:
        report = Report(refused=str(refusal))
    except BaseException as error:
        report = Report(refused=f"the launcher failed: {type(error).__name__}: {error}")
    os.write(report_to, encode_report(report))
    os._exit(0)


def _first_line() -> bytes:
    found = b""
    while not found.endswith(b"\n"):
        piece = os.read(0, 1 << 16)
        if not piece:
            raise Refusal("the host went away before the policy was there")
        found += piece
    return found


def _run(policy: Policy) -> Report:
    family = Family()
    if _closed():
        return Report(stopped="closed")
    fence = _fence(policy)
    try:
        started = _start(policy, family, fence)
        stopped = _watch(started, policy, family, fence)
        if not family.end():
            stopped = stopped or "left"
    finally:
        if fence is not None:
            fence.take_down()
    return _reported(started, stopped, family.ended.get(started.process))


def _fence(policy: Policy) -> Fence | None:
    """Around the run where its processes or its memory are limited.

    The system's limit of a user's processes is none for root, and memory that a process shares is counted nowhere else.
    """
    processes, memory = policy.limits.processes, policy.limits.memory_bytes
    fence = raise_fence(
        None if processes is None else processes + _SPARE, None if memory is None else memory + _SPARE_BYTES
    )
    counted = fence is not None and fence.counts_processes
    if processes is not None and not counted and policy.confined and os.geteuid() == 0:
        if fence is not None:
            fence.take_down()
        raise Refusal(
            "the number of root's processes cannot be bounded here, where no pids control group can be made: run as "
            "another user, or choose SandboxLimits(processes=None)"
        )
    return fence


def _closed() -> bool:
    """Whether the host has let go already; then it is better not to begin."""
    poll = select.poll()
    poll.register(0, select.POLLIN | select.POLLHUP)
    return bool(poll.poll(0)) and not os.read(0, 1 << 16)


def _start(policy: Policy, family: Family, fence: Fence | None) -> _Started:
    chosen = choose(policy) if policy.confined else Chosen(0)
    hears, tells = os.pipe()
    native.process_control(native.PR_SET_CHILD_SUBREAPER, 1)
    before = 0 if chosen.namespaces else family.count_of_user(os.geteuid())
    counted = policy.limits.memory_bytes is None or (fence is not None and fence.counts_memory)
    view = View(chosen.abi, chosen.namespaces, own_proc=False, processes_before=before + _SPARE, memory_counted=counted)
    if chosen.namespaces:
        namespaces.enter(policy)
    process = os.fork()
    if process == 0:
        os.close(hears)
        _become(policy, chosen, view, tells, fence)
    os.close(tells)
    return _Started(process, hears, chosen.told() + _told(policy, fence) if policy.confined else "unconfined")


def _told(policy: Policy, fence: Fence | None) -> str:
    """The bounds that hold for all of the run together, in words."""
    processes = " + pids group" if fence is not None and fence.counts_processes else ""
    if policy.limits.memory_bytes is None:
        return processes
    return processes + (" + memory group" if fence is not None and fence.counts_memory else " + memory watch")


def _become(policy: Policy, chosen: Chosen, view: View, tells: int, fence: Fence | None) -> NoReturn:
    try:
        if fence is not None:
            fence.enter()
        if chosen.namespaces:
            _be_first(policy, view, tells)
        elif chosen.bubblewrap is not None:
            bubblewrap.become(chosen.bubblewrap, policy, encode_policy(policy), tells, view)
        else:
            become_program(policy, view, tells)
    except BaseException as error:
        tell(tells, FAILED, f"{type(error).__name__}: {error}")
    os._exit(1)


def _be_first(policy: Policy, view: View, tells: int) -> NoReturn:
    """The first process of the namespace: it starts the program, and when it goes the kernel kills all the others."""
    native.process_control(native.PR_SET_PDEATHSIG, signal.SIGKILL)
    own_proc = namespaces.mount_proc()
    program = os.fork()
    if program == 0:
        become_program(policy, view._replace(own_proc=own_proc), tells)
    while True:
        child, status = os.waitpid(-1, 0)
        if child == program:
            tell(tells, STATUS, str(status))
            os._exit(0)


def _watch(started: _Started, policy: Policy, family: Family, fence: Fence | None) -> str:
    """Wait for the end of the first process; the reason where it is to be ended, or the system ended it."""
    poll = select.poll()
    poll.register(0, select.POLLIN | select.POLLHUP)
    poll.register(os.pidfd_open(started.process), select.POLLIN)
    while True:
        ready = [descriptor for descriptor, _ in poll.poll(_TICK_MS)]
        family.reap()
        if started.process in family.ended:
            return "memory" if fence is not None and fence.out_of_memory() else ""
        if 0 in ready and not os.read(0, 1 << 16):
            return "closed"
        if not ready and (beyond := _beyond(policy, family, fence)):
            return beyond


def _beyond(policy: Policy, family: Family, fence: Fence | None) -> str:
    """The limit that all of the run together has passed. The system bounds each process, and the user's number of them.

    It does not count the processes of user 0.
    """
    members = family.members()
    processes, memory = policy.limits.processes, policy.limits.memory_bytes
    if processes is not None and family.threads(members) > processes + _SPARE:
        return "processes"
    if fence is not None and fence.counts_memory:
        return "memory" if fence.out_of_memory() else ""
    return "memory" if memory is not None and family.held_bytes(members) > memory else ""


def _reported(started: _Started, stopped: str, status: int | None) -> Report:
    lines = _all(started.told).split(b"\n")
    failed = next((line[1:].decode() for line in lines if line.startswith(FAILED)), None)
    if failed is not None:
        raise Refusal(f"the program was not started: {failed}")
    if RUNNING not in lines and not stopped:
        raise Refusal("the program was not started, and nothing says why")
    inner = next((int(line[1:]) for line in lines if line.startswith(STATUS)), None)
    status = status if inner is None else inner
    if stopped or status is None:
        return Report(stopped=stopped, confinement=started.confinement)
    if os.WIFSIGNALED(status):
        return Report(signal=os.WTERMSIG(status), confinement=started.confinement)
    return Report(exit_code=os.WEXITSTATUS(status), confinement=started.confinement)


def _all(descriptor: int) -> bytes:
    os.set_blocking(descriptor, False)
    found = b""
    try:
        while piece := os.read(descriptor, 1 << 16):
            found += piece
    except BlockingIOError:
        pass  # somebody unkillable still holds the other end
    return found
