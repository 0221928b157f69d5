"""The seccomp program: what Landlock does not see is refused here."""

from __future__ import annotations

import errno
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from deepstrike.execution.confine import syscalls

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deepstrike.execution.confine.policy import Policy

_LOAD, _EQUAL, _ABOVE, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_ALLOW: Final = 0x7FFF0000
_REFUSE: Final = 0x00050000 | errno.EPERM
_ABSENT: Final = 0x00050000 | errno.ENOSYS

_AF_INET, _AF_INET6, _AF_NETLINK = 2, 10, 16
_STREAM, _TCP = 1, 6
_TYPE_BITS: Final = 0xF
_FASTOPEN: Final = 0x20000000
"""A connection that is opened by sending, which Landlock does not judge."""
_NEW_NAMESPACES: Final = 0x7E020000
_TERMINAL_INPUT: Final = (0x5412, 0x541C)
_SET_LEASE: Final = 1024
"""It makes whoever opens the file wait."""
_SET_OWNER, _OWNER_OF_SOCKET = (8, 15), (0x8901, 0x8902)
"""By `fcntl` and by `ioctl`: the system then sends the owner signals, whoever that is."""
_SETUID_BITS: Final = 0o6000
_FILE_FLAGS: Final = (0x40086602, 0x40046602, 0x401C5820, 0x40087602)

_MAPPING_BITS, _SHARED_OF_NO_FILE = 0x2F, 0x21
_VERDICTS: Final = ((_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW))

_Code = list[tuple[int, int, int, int]]


class Around(NamedTuple):
    """What other layers see to: namespaces of mounts, processes, network and shared memory, and Landlock's scopes.

    `memory_counted`: a control group keeps the limit of memory, or there is none.
    """

    namespaces: bool
    scoped_signals: bool
    memory_counted: bool


def build_filter(policy: Policy, around: Around) -> bytes:
    """The program for this machine. Raises `Unnumbered`."""
    audit, column = syscalls.architecture()
    code: _Code = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, audit), (_RETURN, 0, 0, _ABSENT)]
    # Numbers above the last known one, and with them those of the x32 interface.
    code += [(_LOAD, 0, 0, _NUMBER), (_ABOVE, 0, 1, syscalls.LAST_KNOWN), (_RETURN, 0, 0, _ABSENT)]
    for numbers in _refused(around):
        number = numbers[column]
        if number is not None:
            code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE)]
    for name, block in _judged(policy, around).items():
        number = syscalls.JUDGED[name][column]
        if number is not None:
            code += [(_EQUAL, 0, len(block), number), *block]
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in code)


def _refused(around: Around) -> Iterable[tuple[int | None, int | None]]:
    yield from syscalls.OTHER_PROCESSES.values()
    yield from syscalls.KERNEL.values()
    yield from syscalls.MOUNTS.values()
    if not around.memory_counted:
        yield from syscalls.UNCOUNTED_MEMORY.values()
    if not around.namespaces:
        # Landlock judges neither changed modes, owners and times of files nor System V memory.
        yield from syscalls.METADATA.values()
        yield from syscalls.SHARED_MEMORY.values()
        if not around.scoped_signals:
            yield from syscalls.SIGNALS.values()


def _judged(policy: Policy, around: Around) -> dict[str, _Code]:
    own_only = dict.fromkeys(("prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam"), 0)
    own_only["sched_setscheduler"] = 0
    found = {name: _only(argument, (0,)) for name, argument in own_only.items()}
    # Of its own process or group. The next kind is "all of this user's", where 0 is the user.
    found |= {"setpriority": _at_most(0, 1, _only(1, (0,))), "ioprio_set": _at_most(0, 2, _only(1, (0,)))}
    found["clone"] = _none_of_bits(0, _NEW_NAMESPACES)
    # Its flags stand in memory, where no filter sees them; programs fall back to `clone`.
    found["clone3"] = [(_RETURN, 0, 0, _ABSENT)]
    signals = not (around.namespaces or around.scoped_signals)
    found["fcntl"] = _but(1, (_SET_LEASE, *(_SET_OWNER if signals else ())))
    if around.namespaces:
        # A file of the run's that others start with this user's rights; without namespaces no mode is changed at all.
        modes = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2}
        found |= {name: _none_of_bits(at, _SETUID_BITS) for name, at in modes.items()}
    commands = (*_TERMINAL_INPUT, *(() if around.namespaces else _FILE_FLAGS), *(_OWNER_OF_SOCKET if signals else ()))
    found["ioctl"] = _but(1, commands)
    if not around.memory_counted:
        # Shared memory stays when its pages are not mapped, and then no count of processes finds it.
        found["mmap"] = [_argument(3), (_AND, 0, 0, _MAPPING_BITS), (_EQUAL, 0, 1, _SHARED_OF_NO_FILE), *_VERDICTS]
    return found | _network(policy, around)


def _network(policy: Policy, around: Around) -> dict[str, _Code]:
    """Sockets of the families that the policy grants. Never Unix ones: who serves them acts with the host's rights."""
    if policy.network is True or (policy.network is False and around.namespaces):
        return {"socket": _only(0, (_AF_INET, _AF_INET6, _AF_NETLINK))}
    if policy.network is False:
        return {"socket": [(_RETURN, 0, 0, _REFUSE)]}
    fast = {name: _none_of_bits(at, _FASTOPEN) for name, at in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3))}
    return {"socket": _tcp_socket(), "listen": [(_RETURN, 0, 0, _REFUSE)], **fast}


def _tcp_socket() -> _Code:
    return [
        _argument(0),
        (_EQUAL, 2, 0, _AF_INET),
        (_EQUAL, 1, 0, _AF_INET6),
        (_RETURN, 0, 0, _REFUSE),
        _argument(1),
        (_AND, 0, 0, _TYPE_BITS),
        (_EQUAL, 1, 0, _STREAM),
        (_RETURN, 0, 0, _REFUSE),
        *_only(2, (0, _TCP)),
    ]


def _argument(at: int) -> tuple[int, int, int, int]:
    """The lower half, which is all that the kernel reads of these arguments."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * at)


def _only(at: int, values: tuple[int, ...]) -> _Code:
    tests = [(_EQUAL, len(values) - number, 0, value) for number, value in enumerate(values)]
    return [_argument(at), *tests, (_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)]


def _at_most(at: int, value: int, then: _Code) -> _Code:
    return [_argument(at), (_ABOVE, 0, 1, value), (_RETURN, 0, 0, _REFUSE), *then]


def _but(at: int, values: tuple[int, ...]) -> _Code:
    tests = [(_EQUAL, len(values) - number, 0, value) for number, value in enumerate(values)]
    return [_argument(at), *tests, (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]


def _none_of_bits(at: int, bits: int) -> _Code:
    return [_argument(at), (_ANY_BIT, 1, 0, bits), (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]
