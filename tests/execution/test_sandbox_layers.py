"""Which layers confine a run, and what the filter of system calls says."""

from __future__ import annotations

import errno
import os
import signal
import struct
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from deepstrike.execution.confine import syscalls
from deepstrike.execution.confine.filter import Around, build_filter
from deepstrike.execution.confine.policy import (
    Limits,
    Policy,
    Report,
    decode_policy,
    decode_report,
    encode_policy,
    encode_report,
)

if sys.platform != "linux":
    pytest.skip("the sandbox is for Linux", allow_module_level=True)

from deepstrike.execution.confine import bubblewrap as wrap
from deepstrike.execution.confine import layers
from deepstrike.execution.confine import namespaces as views
from deepstrike.execution.confine.fence import raise_fence
from deepstrike.execution.confine.layers import Chosen, Refusal, choose

if TYPE_CHECKING:
    from collections.abc import Callable

ALLOWED, REFUSED, ABSENT = "allowed", "refused", "absent"
_ANSWERS = {0x7FFF0000: ALLOWED, 0x50000 | errno.EPERM: REFUSED, 0x50000 | errno.ENOSYS: ABSENT}
_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}


def policy(network: bool | tuple[int, ...] = False, wanted: tuple[str, ...] | None = None) -> Policy:
    limits = Limits(1, 2, 3, None, 5)
    return Policy(("/bin/true",), {"A": "é"}, "/w", ("/usr",), ("/r",), ("/w",), network, limits, wanted, True)


def _counts_memory() -> bool:
    """Whether a memory control group can be made here."""
    fence = raise_fence(None, 2**30)
    if fence is None:
        return False
    fence.take_down()
    return fence.counts_memory


COUNTS_MEMORY = _counts_memory()


class Filter:
    """A seccomp program, run as the kernel runs it."""

    def __init__(self, machine: str, found: bytes) -> None:
        self.audit, self.column = _MACHINES[machine]
        self.steps = [struct.unpack_from("=HBBI", found, at) for at in range(0, len(found), 8)]

    def says(self, name: str, *arguments: int) -> str:
        tables = (
            *(syscalls.JUDGED, syscalls.METADATA, syscalls.KERNEL, syscalls.MOUNTS, syscalls.SIGNALS),
            syscalls.UNCOUNTED_MEMORY,
        )
        (number, *_) = (table[name][self.column] for table in tables if name in table)
        assert number is not None
        return self.judges(number, self.audit, arguments)

    def judges(self, number: int, audit: int, arguments: tuple[int, ...] = ()) -> str:
        padded = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
        data = struct.pack("=IIQ6Q", number, audit, 0, *(each % 2**64 for each in padded))
        held, at = 0, 0
        while True:
            code, if_true, if_false, value = self.steps[at]
            at += 1
            if code == 0x20:
                (held,) = struct.unpack_from("=I", data, value)
            elif code == 0x54:
                held &= value
            elif code == 0x06:
                return _ANSWERS[value]
            else:
                true = {0x15: held == value, 0x25: held > value, 0x45: bool(held & value)}[code]
                at += if_true if true else if_false


@pytest.fixture(params=_MACHINES)
def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Filter]:
    """Filters as they are made on a machine of each kind."""

    class Machine(NamedTuple):
        machine: str

    def made(
        network: bool | tuple[int, ...] = False,
        *,
        namespaces: bool = False,
        scoped: bool = True,
        memory_counted: bool = True,
    ) -> Filter:
        monkeypatch.setattr(os, "uname", lambda: Machine(request.param))
        return Filter(request.param, build_filter(policy(network), Around(namespaces, scoped, memory_counted)))

    return made


def test_given_another_interface_or_an_unknown_call_when_judged_then_it_is_not_there(
    make: Callable[..., Filter],
) -> None:
    made = make()

    assert made.judges(1, 0x40000003) == ABSENT
    assert made.judges(syscalls.LAST_KNOWN + 1, made.audit) == ABSENT
    assert made.judges(0x40000000 + 1, made.audit) == ABSENT
    assert made.judges(1, made.audit) == ALLOWED


@pytest.mark.parametrize("name", ["memfd_create", "memfd_secret", "shmget"])
def test_given_memory_that_no_group_counts_when_it_would_be_held_without_being_mapped_then_it_is_refused(
    make: Callable[..., Filter], name: str
) -> None:
    assert make(namespaces=True, memory_counted=False).says(name) == REFUSED
    assert make(namespaces=True, memory_counted=True).says(name) == ALLOWED


@pytest.mark.parametrize(
    ("flags", "found"), [(0x21, REFUSED), (0x8021, REFUSED), (0x22, ALLOWED), (0x01, ALLOWED), (0x02, ALLOWED)]
)
def test_given_memory_that_no_group_counts_when_some_is_mapped_then_only_what_is_shared_and_no_file_is_refused(
    make: Callable[..., Filter], flags: int, found: str
) -> None:
    made = make(memory_counted=False)

    assert made.says("mmap", 0, 4096, 3, flags) == found
    assert make(memory_counted=True).says("mmap", 0, 4096, 3, flags) == ALLOWED


INET, UNIX, STREAM, DATAGRAM, CLOEXEC = 2, 1, 1, 2, 0o2000000


@pytest.mark.parametrize(
    ("network", "namespaces", "socket", "found"),
    [
        (False, False, (INET, STREAM), REFUSED),
        (False, False, (UNIX, STREAM), REFUSED),
        (False, True, (INET, STREAM), ALLOWED),
        (False, True, (10, DATAGRAM), ALLOWED),
        (False, True, (UNIX, STREAM), REFUSED),
        (True, False, (INET, DATAGRAM), ALLOWED),
        (True, False, (UNIX, STREAM), REFUSED),
        (True, False, (40, STREAM), REFUSED),
        ((80,), False, (INET, STREAM | CLOEXEC), ALLOWED),
        ((80,), False, (10, STREAM, 6), ALLOWED),
        ((80,), False, (INET, STREAM, 262), REFUSED),
        ((80,), False, (INET, DATAGRAM), REFUSED),
        ((80,), True, (INET, DATAGRAM), REFUSED),
        ((80,), True, (UNIX, STREAM), REFUSED),
    ],
)
def test_given_a_network_when_a_socket_is_opened_then_only_granted_families_are(
    make: Callable[..., Filter], network: bool | tuple[int, ...], namespaces: bool, socket: tuple[int, ...], found: str
) -> None:
    assert make(network, namespaces=namespaces).says("socket", *socket) == found


@pytest.mark.parametrize(
    ("name", "arguments", "found"),
    [
        ("clone", (0x11,), ALLOWED),
        ("clone", (0x10000011,), REFUSED),
        ("clone", (0x20000,), REFUSED),
        ("clone3", (), ABSENT),
        ("prlimit64", (0, 7), ALLOWED),
        ("prlimit64", (1234, 7), REFUSED),
        ("setpriority", (0, 0, 19), ALLOWED),
        ("setpriority", (0, 1234, 19), REFUSED),
        ("setpriority", (1, 0, 19), ALLOWED),
        ("setpriority", (2, 0, 19), REFUSED),
        ("ioprio_set", (1, 0, 0x4000), ALLOWED),
        ("ioprio_set", (1, 1234, 0x4000), REFUSED),
        ("ioprio_set", (3, 0, 0x4000), REFUSED),
        ("ioctl", (0, 0x5401), ALLOWED),
        ("ioctl", (0, 0x5412), REFUSED),
        ("fcntl", (3, 1), ALLOWED),
        ("fcntl", (3, 1024), REFUSED),
        ("mount", (), REFUSED),
        ("io_uring_setup", (), REFUSED),
        ("sendto", (3, 0, 0, 0x20000000), ALLOWED),
    ],
)
def test_given_a_call_that_is_judged_when_made_then_its_arguments_decide(
    make: Callable[..., Filter], name: str, arguments: tuple[int, ...], found: str
) -> None:
    assert make(namespaces=True).says(name, *arguments) == found


def test_given_no_namespaces_when_modes_are_changed_then_all_is_refused_else_what_gives_rights(
    make: Callable[..., Filter],
) -> None:
    without, within = make(), make(namespaces=True)

    assert [without.says("fchmodat", 0, 0, mode) for mode in (0o755, 0o4755)] == [REFUSED, REFUSED]
    assert [within.says("fchmodat", 0, 0, mode) for mode in (0o755, 0o4755, 0o2755)] == [ALLOWED, REFUSED, REFUSED]
    assert [made.says("fchown") for made in (without, within)] == [REFUSED, ALLOWED]


def test_given_single_ports_when_a_connection_is_opened_by_sending_then_it_is_refused(
    make: Callable[..., Filter],
) -> None:
    made = make((80,))

    assert [made.says("sendto", 3, 0, 0, flags) for flags in (0, 0x20000000)] == [ALLOWED, REFUSED]
    assert [made.says("sendmsg", 3, 0, flags) for flags in (0, 0x20000000)] == [ALLOWED, REFUSED]
    assert made.says("listen") == REFUSED


def test_given_a_kernel_that_keeps_no_signals_apart_when_one_is_sent_then_it_is_refused(
    make: Callable[..., Filter],
) -> None:
    assert [make(scoped=scoped).says("kill") for scoped in (True, False)] == [ALLOWED, REFUSED]
    assert make(namespaces=True, scoped=False).says("kill") == ALLOWED


@pytest.mark.parametrize(
    ("name", "command"), [("fcntl", 8), ("fcntl", 15), ("ioctl", 0x8901), ("ioctl", 0x8902)], ids=str
)
def test_given_a_kernel_that_keeps_no_signals_apart_when_it_shall_send_one_itself_then_it_is_refused(
    make: Callable[..., Filter], name: str, command: int
) -> None:
    assert [make(scoped=scoped).says(name, 3, command, 1234) for scoped in (True, False)] == [ALLOWED, REFUSED]
    assert make(namespaces=True, scoped=False).says(name, 3, command, 1234) == ALLOWED


# ---- choosing


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A machine with these abilities."""

    def be(abi: int, *, namespaces: bool = False, bubblewrap: bool = False, name: str = "x86_64") -> None:
        def audit() -> tuple[int, int]:
            if name not in syscalls.ARCHITECTURES:
                raise syscalls.Unnumbered(f"the system calls of {name} are not known here")
            return syscalls.ARCHITECTURES[name]

        monkeypatch.setattr(layers, "landlock_abi", lambda: abi)
        monkeypatch.setattr(layers, "architecture", audit)
        monkeypatch.setattr(views, "works", lambda _: namespaces)
        monkeypatch.setattr(wrap, "find", lambda: "/usr/bin/bwrap")
        monkeypatch.setattr(wrap, "works", lambda *_: bubblewrap)

    return be


@pytest.mark.parametrize(
    ("able", "wanted", "found"),
    [
        ({"abi": 7, "namespaces": True, "bubblewrap": True}, None, Chosen(7, namespaces=True)),
        ({"abi": 7, "bubblewrap": True}, None, Chosen(7, bubblewrap="/usr/bin/bwrap")),
        ({"abi": 3}, None, Chosen(3)),
        ({"abi": 1, "namespaces": True}, None, Chosen(1, namespaces=True)),
        ({"abi": 7, "namespaces": True}, ("landlock", "seccomp"), Chosen(7)),
        (
            {"abi": 7, "namespaces": True, "bubblewrap": True},
            ("landlock", "seccomp", "bubblewrap"),
            Chosen(7, bubblewrap="/usr/bin/bwrap"),
        ),
    ],
)
def test_given_a_machine_when_layers_are_chosen_then_it_is_the_best_or_what_was_demanded(
    machine: Callable[..., None], able: dict[str, Any], wanted: tuple[str, ...] | None, found: Chosen
) -> None:
    machine(**able)

    assert choose(policy(wanted=wanted)) == found


@pytest.mark.parametrize(
    ("able", "network", "wanted", "said"),
    [
        ({"abi": 0}, False, None, "the kernel has no Landlock"),
        ({"abi": 2}, False, None, "does not keep a program from emptying files"),
        ({"abi": 3}, (80,), None, "single ports need Landlock abi 4"),
        ({"abi": 7, "name": "s390x"}, False, None, "the system calls of s390x are not known here"),
        ({"abi": 7}, False, ("landlock", "seccomp", "namespaces"), "user namespaces do not work here"),
        ({"abi": 7}, False, ("landlock", "seccomp", "bubblewrap"), "bubblewrap is not installed or does not work"),
    ],
)
def test_given_a_machine_that_cannot_confine_when_layers_are_chosen_then_it_is_refused_with_the_reason(
    machine: Callable[..., None],
    able: dict[str, Any],
    network: bool | tuple[int, ...],
    wanted: tuple[str, ...] | None,
    said: str,
) -> None:
    machine(**able)

    with pytest.raises(Refusal, match=said):
        choose(policy(network, wanted))


# ---- crossing


@pytest.mark.parametrize("network", [True, False, (80, 443)])
@pytest.mark.parametrize("wanted", [None, ("landlock", "seccomp")])
def test_given_a_policy_when_it_crosses_then_it_is_the_same(
    network: bool | tuple[int, ...], wanted: tuple[str, ...] | None
) -> None:
    encoded = encode_policy(policy(network, wanted))

    assert decode_policy(encoded) == policy(network, wanted)
    assert encoded.count(b"\n") == 1


def test_given_a_report_when_it_crosses_then_it_is_the_same_and_an_empty_one_is_none() -> None:
    report = Report(exit_code=1, confinement="x", refused="é\n")

    assert decode_report(encode_report(report)) == report
    assert decode_report(b"") is None


def test_given_a_fence_when_processes_double_inside_then_the_system_stops_them() -> None:
    fence = raise_fence(4, None)
    if fence is None:
        pytest.skip("no pids control group can be made here")
    child = os.fork()
    if child == 0:
        fence.enter()
        made = 0
        try:
            for _ in range(8):
                if os.fork() == 0:
                    time.sleep(5)
                    os._exit(0)
                made += 1
        except OSError:
            os._exit(made)
        os._exit(99)
    _, status = os.waitpid(child, 0)
    (group,) = groups(fence.name)
    left = [int(line) for line in (group / "cgroup.procs").read_text().split()]
    for process in left:
        os.kill(process, signal.SIGKILL)

    assert (os.waitstatus_to_exitcode(status), len(left)) == (3, 3)
    while (group / "cgroup.procs").read_text().split():
        time.sleep(0.01)
    fence.take_down()
    assert groups(fence.name) == []


def groups(name: str) -> list[Path]:
    """The control groups of this name, wherever they are."""
    return [Path(folder) for folder, _, _ in os.walk("/sys/fs/cgroup") if folder.endswith(f"/{name}")]


@pytest.mark.skipif(not COUNTS_MEMORY, reason="no memory control group can be made here")
def test_given_a_fence_when_what_is_inside_takes_too_much_memory_then_the_system_ends_it_and_says_so() -> None:
    fence = raise_fence(None, 32 * 2**20)
    assert fence is not None
    assert not fence.out_of_memory()
    child = os.fork()
    if child == 0:
        fence.enter()
        held = os.memfd_create("held")
        for _ in range(64):
            os.write(held, b"x" * 2**20)
        os._exit(0)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    assert fence.out_of_memory()
    fence.take_down()
    assert groups(fence.name) == []


def test_given_groups_that_killed_launchers_left_when_a_fence_is_raised_then_the_empty_ones_are_gone() -> None:
    fence = raise_fence(4, None)
    if fence is None:
        pytest.skip("no control group can be made here")
    (group,) = groups(fence.name)
    gone = os.fork()
    if gone == 0:
        os._exit(0)
    os.waitpid(gone, 0)
    left = [group.parent / f"deepstrike-{gone}-00", group.parent / "deepstrike-other", group.parent / f"mine-{gone}-0"]
    for folder in left:
        folder.mkdir(exist_ok=True)
    again = raise_fence(4, None)

    assert again is not None
    assert [folder.exists() for folder in (*left, group)] == [False, True, True, True]
    for folder in left[1:]:
        folder.rmdir()
    again.take_down()
    fence.take_down()


def test_given_a_place_without_control_groups_when_a_fence_is_wanted_then_there_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("deepstrike.execution.confine.fence._ROOT", str(tmp_path))

    assert raise_fence(4, 1_000) is None
