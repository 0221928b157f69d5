//! The module's exceptions, and the belt that turns a panic into one of them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::marker::Ungil;
use pyo3::prelude::*;

create_exception!(deepstrike._kernel, Rejected, PyValueError, "The kernel refused an input; nothing has changed.");
create_exception!(deepstrike._kernel, Stale, Rejected, "The input answers an effect that is no longer owed; drop it.");
create_exception!(deepstrike._kernel, Corrupt, PyValueError, "The records do not fold into a session.");
create_exception!(deepstrike._kernel, Newer, PyValueError, "The records hold what this version does not know.");
create_exception!(
    deepstrike._kernel,
    KernelFault,
    PyRuntimeError,
    "A defect in the native module; resume the session from its log."
);

/// Bytes of an input that is taken without giving the interpreter lock up.
const SMALL: usize = 16 * 1024;

/// Runs `work` without the interpreter lock. A panic becomes `KernelFault`: a `PanicException` would pass through
/// `except Exception` and leave tools and sessions hanging.
pub(crate) fn apart<T: Ungil + Send>(py: Python<'_>, work: impl FnOnce() -> T + Ungil + Send) -> PyResult<T> {
    py.detach(|| catch_unwind(AssertUnwindSafe(work))).map_err(|_| broken())
}

/// As `apart` for an input of `size` bytes; a small one keeps the interpreter lock, since it is taken in less time than
/// giving the lock up and getting it back costs (measured: 3 to 6 µs on a busy machine, an `accept` of 1 KiB 3 to 7 µs).
pub(crate) fn sized<T: Ungil + Send>(
    py: Python<'_>,
    size: usize,
    work: impl FnOnce() -> T + Ungil + Send,
) -> PyResult<T> {
    if size > SMALL { apart(py, work) } else { catch_unwind(AssertUnwindSafe(work)).map_err(|_| broken()) }
}

/// What is raised when the native module itself has failed.
pub(crate) fn broken() -> PyErr {
    KernelFault::new_err("the native module failed; this is a defect of deepstrike. Resume the session from its log")
}
