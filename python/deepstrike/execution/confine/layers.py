"""Which layers confine a run on this machine, tried out and not guessed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from deepstrike.execution.confine import bubblewrap, namespaces
from deepstrike.execution.confine.landlock import landlock_abi
from deepstrike.execution.confine.syscalls import Unnumbered, architecture

if TYPE_CHECKING:
    from deepstrike.execution.confine.policy import Policy


class Refusal(Exception):
    """The run cannot be confined as the policy asks, so nothing was started; the message says why."""


class Chosen(NamedTuple):
    """Landlock's version, and what makes the run's own views of the host: this process, bubblewrap, or nothing."""

    abi: int
    namespaces: bool = False
    bubblewrap: str | None = None

    def told(self) -> str:
        """In words, for the result."""
        views = ["namespaces"] if self.namespaces else ["bubblewrap"] if self.bubblewrap else []
        return " + ".join([f"landlock abi {self.abi}", "seccomp", *views, "no capabilities", "rlimits"])


def choose(policy: Policy) -> Chosen:
    """All that works, or exactly what the policy names. Raises `Refusal`."""
    chosen = _views(policy, _required())
    if chosen.abi < 3 and not (chosen.namespaces or chosen.bubblewrap):
        raise Refusal(
            f"Landlock abi {chosen.abi} does not keep a program from emptying files, and there are no namespaces here "
            "to make up for it; use Linux 6.2 or later, or allow user namespaces, or install bubblewrap"
        )
    if not isinstance(policy.network, bool) and chosen.abi < 4:
        raise Refusal(
            f"single ports need Landlock abi 4 (Linux 6.7), this is abi {chosen.abi}; give network=True or False"
        )
    return chosen


def _required() -> int:
    abi = landlock_abi()
    if abi < 1:
        raise Refusal("the kernel has no Landlock, or it is switched off (it needs Linux 5.13 and lsm=landlock,…)")
    try:
        architecture()
    except Unnumbered as error:
        raise Refusal(f"no seccomp filter can be made: {error}") from error
    return abi


def _views(policy: Policy, abi: int) -> Chosen:
    if policy.layers is None:
        if namespaces.works(policy):
            return Chosen(abi, namespaces=True)
        program = bubblewrap.find()
        usable = program is not None and bubblewrap.works(program, policy)
        return Chosen(abi, bubblewrap=program if usable else None)
    if "namespaces" in policy.layers:
        if not namespaces.works(policy):
            raise Refusal("user namespaces do not work here, and layers= asks for them")
        return Chosen(abi, namespaces=True)
    if "bubblewrap" in policy.layers:
        program = bubblewrap.find()
        if program is None or not bubblewrap.works(program, policy):
            raise Refusal("bubblewrap is not installed or does not work here, and layers= asks for it")
        return Chosen(abi, bubblewrap=program)
    return Chosen(abi)
