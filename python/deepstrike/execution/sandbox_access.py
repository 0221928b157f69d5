"""What programs in the sandbox may reach and use: checked when the plane is made."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from deepstrike.errors import ConfigError
from deepstrike.execution.confine.policy import LAYERS, Limits
from deepstrike.secrets import bind_named

Paths = Sequence[str | os.PathLike[str]]
Network = bool | Sequence[int]

_ETC: Final = (
    "alternatives ca-certificates ca-certificates.conf fonts group gai.conf host.conf hosts ld.so.cache ld.so.conf "
    "ld.so.conf.d locale.alias locale.conf localtime magic mime.types nsswitch.conf os-release passwd pki/tls/certs "
    "pki/ca-trust protocols resolv.conf services ssl/cert.pem ssl/certs ssl/openssl.cnf terminfo timezone"
)
SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/run/current-system/sw"),
    *(f"/etc/{name}" for name in _ETC.split()),
)
"""Programs, libraries and what they need to start. Not the rest of /etc, which holds secrets."""

_PACKAGES: Final = str(Path(__file__).resolve().parents[2])
_MEGABYTE: Final = 1024 * 1024


@dataclass(frozen=True)
class SandboxLimits:
    """Bounds of one run; None for none.

    `cpu_seconds`, `memory_mb`, `file_mb` and `open_files` hold for each process, `processes` (their threads counted)
    and again `memory_mb` for all of a run together: by a control group (`memory group` in the result), shared memory
    and files in memory included; where none can be made by looking ten times a second (`memory watch`), and shared
    memory that belongs to no file is then refused. The first process beyond fails to start, or, where the system does
    not count them (those of user 0), the run is ended. How much a run writes to disks in all is not bounded.
    """

    cpu_seconds: int | None = 60
    memory_mb: int | None = 2048
    file_mb: int | None = 256
    open_files: int | None = 256
    processes: int | None = 256

    def __post_init__(self) -> None:
        """Raises `ConfigError`."""
        for field in fields(self):
            value = self.__dict__[field.name]
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**31):
                raise ConfigError(f"SandboxLimits({field.name}={value!r}): give a whole number above 0, or None")

    def in_units(self) -> Limits:
        """The same in bytes."""
        return Limits(
            self.cpu_seconds,
            None if self.memory_mb is None else self.memory_mb * _MEGABYTE,
            None if self.file_mb is None else self.file_mb * _MEGABYTE,
            self.open_files,
            self.processes,
        )


@dataclass(frozen=True)
class Access:
    """Absolute paths without links, the network, the layers and the environment that a plane grants."""

    read: tuple[str, ...]
    write: tuple[str, ...]
    cwd: str | None
    network: bool | tuple[int, ...]
    env: Mapping[str, str]
    layers: tuple[str, ...] | None

    def told(self) -> str:
        """In words, for the model."""
        write = ", ".join(("its working directory", *self.write))
        read = ", ".join(("the system's programs", *self.read))
        ports = () if isinstance(self.network, bool) else self.network
        network = f"TCP ports {', '.join(map(str, ports))}" if ports else "all of it" if self.network else "none"
        return f"It may write in {write}; read {read}; network: {network}."


def check_access(read: Paths, write: Paths, cwd: object, network: Network, env: object, layers: object) -> Access:
    """Raises `ConfigError` that names the argument and the remedy. Values of `env` named like a secret are bound."""
    variables = checked_environment({} if env is None else env)
    writable = _resolved("write", write)
    _check_ours(writable)
    readable = _resolved("read", read)
    place = _place(cwd, (*readable, *writable))
    access = Access(readable, writable, place, _network(network), variables, _layers(layers))
    bind_named(variables)
    return access


def python_paths() -> tuple[str, ...]:
    """Where the Python that runs this lives, with what is installed in it."""
    found = dict.fromkeys(os.path.realpath(path) for path in (sys.prefix, sys.exec_prefix, sys.base_prefix))
    return tuple(path for path in found if path != "/")


def _check_ours(writable: tuple[str, ...]) -> None:
    """The next run begins outside of any sandbox, with this Python and this package: no run may change them."""
    ours = (*python_paths(), os.path.realpath(os.path.dirname(sys.executable)), _PACKAGES)
    for path in writable:
        touched = next((each for each in ours if os.path.commonpath((each, path)) in (each, path)), None)
        if touched is not None:
            raise ConfigError(
                f"write: {path!r} and {touched!r} overlap, where the Python lives that starts the sandbox; a program "
                "could change it and get out. Name the folders beside it, or keep the environment elsewhere"
            )


def _resolved(word: str, paths: Paths) -> tuple[str, ...]:
    if isinstance(paths, str | bytes | os.PathLike) or not isinstance(paths, Sequence):
        raise ConfigError(f"{word}={paths!r}: give a list of paths")
    return tuple(_existing(word, path) for path in paths)


def system_text(value: object) -> str | None:
    """A text or path as the system takes it. None for what it does not take: a NUL, half a surrogate pair, all else."""
    try:
        text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
        if isinstance(text, str) and "\0" not in text:
            os.fsencode(text)
            return text
    except Exception:  # a path class may raise anything
        return None
    return None


def checked_path(word: str, path: object) -> str:
    """The path as text. Raises `ConfigError` that names the argument."""
    text = system_text(path)
    if not text:
        raise ConfigError(f"{word}: {path!r} is no path")
    return text


def _existing(word: str, path: object) -> str:
    resolved = os.path.realpath(checked_path(word, path))
    if not os.path.exists(resolved):
        raise ConfigError(f"{word}: there is no {resolved!r}; make it before the plane")
    return resolved


def _place(cwd: object, granted: tuple[str, ...]) -> str | None:
    if cwd is None:
        return None
    resolved = _existing("cwd", cwd)
    if not os.path.isdir(resolved):
        raise ConfigError(f"cwd: {resolved!r} is no directory")
    if not any(os.path.commonpath((resolved, path)) == path for path in granted):
        raise ConfigError(f"cwd: {resolved!r} is neither below a path of read= nor of write=; name it there too")
    return resolved


def _network(network: object) -> bool | tuple[int, ...]:
    if isinstance(network, bool):
        return network
    if isinstance(network, Sequence) and not isinstance(network, str | bytes) and network:
        ports = tuple(network)
        if all(isinstance(port, int) and not isinstance(port, bool) and 0 < port < 65536 for port in ports):
            return ports
    raise ConfigError(f"network={network!r}: give False, True or a list of TCP ports")


def checked_environment(env: object) -> dict[str, str]:
    """A copy. Raises `ConfigError` that names the variable, and never its value."""
    if not isinstance(env, Mapping):
        raise ConfigError("env: give a dict of names and values")
    for name, value in env.items():
        if not isinstance(name, str) or not system_text(name) or "=" in name:
            raise ConfigError(f"env: {name!r} is no name of a variable")
        if not isinstance(value, str) or system_text(value) is None:  # it may be a secret, so it is not shown
            raise ConfigError(f"env: the value of {name!r} must be a string without NUL and half surrogate pairs")
    return dict(env)


def _layers(layers: object) -> tuple[str, ...] | None:
    if layers is None:
        return None
    if not isinstance(layers, Sequence) or isinstance(layers, str) or not all(each in LAYERS for each in layers):
        raise ConfigError(f"layers={layers!r}: give a list of {', '.join(LAYERS)}, or None for all that work")
    if not {"landlock", "seccomp"} <= set(layers) or {"namespaces", "bubblewrap"} <= set(layers):
        raise ConfigError(
            "layers: landlock and seccomp are always needed, and of namespaces and bubblewrap at most one"
        )
    return tuple(layers)
