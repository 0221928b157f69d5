//! Token counting without the interpreter lock.

use pyo3::prelude::*;

use crate::fault::apart;

/// Tokens of a text for a model.
#[pyfunction]
pub(crate) fn count(py: Python<'_>, text: &str, model: &str) -> PyResult<u64> {
    apart(py, || deepstrike_tokens::count(text, model))
}

/// A text shortened to a number of tokens, with its full count; None if it fits.
#[pyfunction]
pub(crate) fn clip(py: Python<'_>, text: &str, model: &str, limit: u64) -> PyResult<Option<(String, u64)>> {
    let clipped = apart(py, || deepstrike_tokens::clip(text, model, limit))?;
    Ok(clipped.map(|clipped| (clipped.text, clipped.total)))
}
