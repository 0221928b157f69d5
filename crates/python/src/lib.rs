//! `deepstrike._kernel`: what Python sees of the kernel. The documentation stands in `_kernel.pyi`.

use deepstrike_kernel::meta::{META_TOOLS, MetaTool};
use pyo3::prelude::*;

mod counting;
mod curation;
mod fault;
mod judge;
mod kernel;
mod schema;

fn meta_tools() -> String {
    let specs: Vec<_> = META_TOOLS.iter().map(MetaTool::spec).collect();
    serde_json::to_string(&specs).unwrap_or_default()
}

/// The native half of deepstrike.
#[pymodule]
mod _kernel {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::counting::{clip, count};
    #[pymodule_export]
    use super::curation::curate;
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
    /// The kernel's own tools, a JSON array of tool specs.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("META_TOOLS", super::meta_tools())
    }
    #[allow(non_upper_case_globals)]
    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
