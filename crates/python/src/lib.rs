//! `deepstrike._kernel`: what Python sees of the kernel. The documentation stands in `_kernel.pyi`.

use pyo3::prelude::*;

mod counting;
mod fault;
mod judge;
mod kernel;
mod schema;

/// The native half of deepstrike.
#[pymodule]
mod _kernel {
    #[pymodule_export]
    use super::counting::{clip, count};
    #[pymodule_export]
    use super::fault::{Corrupt, KernelFault, Newer, Rejected, Stale};
    #[pymodule_export]
    use super::judge::{Judge, glob, permit};
    #[pymodule_export]
    use super::kernel::Kernel;
    #[pymodule_export]
    use super::schema::validate;

    #[pymodule_export]
    const FORMAT: u64 = deepstrike_kernel::FORMAT;
    #[pymodule_export]
    const RENDERER: u64 = deepstrike_kernel::RENDERER;
    #[allow(non_upper_case_globals)]
    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
