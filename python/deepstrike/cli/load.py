"""Tools named on the command line as `module:name`."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from deepstrike.errors import ConfigError
from deepstrike.execution.local import LocalExecutionPlane
from deepstrike.tools.definition import Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType


def plane_of(names: Sequence[str]) -> LocalExecutionPlane:
    """A plane with the tools of `names`; modules of the working directory come first.

    Raises `ConfigError`, in one line, for a module or a name that is not there, a module that fails on import, and
    something that is no tool.
    """
    if names and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    plane = LocalExecutionPlane()
    for name in names:
        plane.register(_find(name))
    return plane


def _find(spec: str) -> Tool[..., object] | Callable[..., object]:
    module_name, _, name = spec.partition(":")
    if not module_name or not name:
        raise ConfigError(f"--tools takes module:name, as in --tools my_tools:add; {spec!r} is not of that form")
    found: object = _module(module_name, spec)
    for part in name.split("."):
        if not hasattr(found, part):
            raise ConfigError(f"--tools {spec}: the module {module_name} has no {name!r}")
        found = getattr(found, part)
    if not isinstance(found, Tool) and (isinstance(found, type) or not callable(found)):
        raise ConfigError(f"--tools {spec}: {name} is {type(found).__name__}, neither a tool nor a function")
    return found


def _module(module_name: str, spec: str) -> ModuleType:
    try:
        return import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name + ".").startswith(error.name + "."):
            raise ConfigError(
                f"--tools {spec}: there is no module {error.name!r} here or among what is installed"
            ) from None
        raise ConfigError(f"--tools {spec}: importing {module_name} failed: {error}") from error
    except (Exception, SystemExit) as error:
        raise ConfigError(f"--tools {spec}: importing {module_name} failed: {type(error).__name__}: {error}") from error
