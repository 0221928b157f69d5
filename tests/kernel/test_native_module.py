"""What the native module says of itself."""

from __future__ import annotations

import deepstrike.kernel
from deepstrike import _kernel
from deepstrike._version import __version__


def test_given_the_native_module_when_its_version_is_asked_then_it_is_the_package_s() -> None:
    assert _kernel.__version__ == __version__


def test_given_the_exceptions_when_named_then_they_live_in_the_package_and_are_value_errors() -> None:
    refused = (_kernel.Rejected, _kernel.Stale, _kernel.Corrupt, _kernel.Newer)

    assert [f"{error.__module__}.{error.__name__}" for error in refused] == [
        "deepstrike._kernel.Rejected",
        "deepstrike._kernel.Stale",
        "deepstrike._kernel.Corrupt",
        "deepstrike._kernel.Newer",
    ]
    assert all(issubclass(error, ValueError) for error in refused)
    assert issubclass(_kernel.Stale, _kernel.Rejected)
    assert issubclass(_kernel.KernelFault, RuntimeError)


def test_given_the_typed_face_when_listed_then_every_public_native_name_is_there() -> None:
    assert set(_kernel.__all__) - {"__version__"} <= set(deepstrike.kernel.__all__)
