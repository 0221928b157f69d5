//! Curating memories.

use deepstrike_kernel::curate::curate as curated;
use deepstrike_kernel::wire::strict;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::fault::sized;

/// What a store holds once everything given has come to it.
#[pyfunction]
pub(crate) fn curate(py: Python<'_>, curation: &[u8]) -> PyResult<Vec<u8>> {
    sized(py, curation.len(), || {
        let curation = strict::from_slice(curation)?;
        serde_json::to_vec(&curated(&curation))
    })?
    .map_err(|error| PyValueError::new_err(format!("invalid curation: {error}")))
}
