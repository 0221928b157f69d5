"""System calls that Python has no name for."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Final

Argument = int | bytes | None | ctypes.Array[ctypes.c_char]

PR_SET_PDEATHSIG: Final = 1
PR_SET_SECCOMP: Final = 22
PR_CAPBSET_DROP: Final = 24
PR_SET_SECUREBITS: Final = 28
PR_SET_CHILD_SUBREAPER: Final = 36
PR_SET_NO_NEW_PRIVS: Final = 38
PR_CAP_AMBIENT: Final = 47
PR_CAP_AMBIENT_CLEAR_ALL: Final = 4

_OPENAT2: Final = 437
_RESOLVE_NO_SYMLINKS: Final = 0x04
_AT_FDCWD: Final = -100


@cache
def _libc() -> ctypes.CDLL:
    """Loaded when it is first needed: this module is also imported where there is nothing to load."""
    return ctypes.CDLL(None, use_errno=True)


def system_call(number: int, *arguments: Argument) -> int:
    """The call's result. Raises `OSError` as the system gives it."""
    found: int = _libc().syscall(ctypes.c_long(number), *map(_wide, arguments))
    return _checked(found)


def _wide(argument: Argument) -> object:
    """Whole numbers at the full width of a register: variadic calls pass what they are given."""
    return ctypes.c_long(argument) if isinstance(argument, int) else argument


def process_control(option: int, *arguments: int) -> int:
    """`prctl`. Raises `OSError`."""
    padded = (*arguments, 0, 0, 0, 0)[:4]
    found: int = _libc().prctl(ctypes.c_int(option), *map(ctypes.c_ulong, padded))
    return _checked(found)


def install_filter(program: bytes) -> None:
    """Put a seccomp program in force for this thread and all that it starts. Raises `OSError`."""

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))

    held = Program(len(program) // 8, program)
    _checked(_libc().prctl(ctypes.c_int(PR_SET_SECCOMP), ctypes.c_ulong(2), ctypes.byref(held), 0, 0))


def open_socket(family: int, kind: int) -> int:
    """A socket's descriptor, without the weight of the socket module. Raises `OSError`."""
    found: int = _libc().socket(family, kind, 0)
    return _checked(found)


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """`mount`. Raises `OSError`."""
    _checked(_libc().mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()))


def unshare(flags: int) -> None:
    """Leave the namespaces that `flags` name for new ones. Raises `OSError`."""
    _checked(_libc().unshare(ctypes.c_int(flags)))


def set_capabilities(header: bytes, data: bytes) -> None:
    """`capset`. Raises `OSError`."""
    _checked(_libc().capset(header, data))


def open_plain(path: str) -> int:
    """An `O_PATH` descriptor of a path no part of which is a link. Raises `OSError`.

    The paths were resolved when the plane was made: a link there now was put in by somebody, perhaps an earlier run.
    """
    how = (os.O_PATH | os.O_CLOEXEC).to_bytes(8, "little") + bytes(8) + _RESOLVE_NO_SYMLINKS.to_bytes(8, "little")
    try:
        return system_call(_OPENAT2, _AT_FDCWD, os.fsencode(path), how, len(how))
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None


def _checked(found: int) -> int:
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return found
