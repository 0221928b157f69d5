//! JSON-schema validation with bounds: no reference leaves the schema, patterns and steps are limited.

mod patterns;
mod steps;

use std::collections::HashMap;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use deepstrike_kernel::governance::Schemas;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;

use crate::fault::apart;

/// Bytes of schema text.
const SCHEMA_LIMIT: usize = 1 << 20;
/// Bytes of document text.
const DOCUMENT_LIMIT: usize = 32 << 20;
/// Errors reported of one document; a model mends a few at a time.
const ERRORS: usize = 16;
/// Characters of one message; it may quote the document.
const MESSAGE: usize = 400;
/// Steps back that a pattern with lookaround may take; others run in linear time.
const BACKTRACKING: usize = 100_000;
/// Bytes of schema times bytes of document that are checked without counting first.
const HARMLESS: usize = 1 << 20;
/// Bytes of one compiled pattern, or of one piece of it between lookarounds; and as many for its matching.
const PATTERN_SIZE: usize = 1 << 20;
/// Bytes of all compiled patterns of a schema: the more pieces it has, the smaller each must be.
const PATTERNS_SIZE: usize = 32 << 20;

/// What is wrong with a document, by a schema; `ValueError` if the schema is.
#[pyfunction]
pub(crate) fn validate(py: Python<'_>, schema: &str, document: &str) -> PyResult<Vec<String>> {
    apart(py, || check(schema, document, &read(document)))?.map_err(PyValueError::new_err)
}

/// The kernel's schema check: every failure of it is an error, and so a refusal.
pub(crate) struct Compiled;

impl Schemas for Compiled {
    fn objection(&self, schemas: &[&str], document: &str) -> Result<Option<(usize, Vec<String>)>, String> {
        let checked = catch_unwind(AssertUnwindSafe(|| first_objection(schemas, document)));
        checked.unwrap_or_else(|_| Err("the schema check failed".into()))
    }
}

struct Known {
    schema: Value,
    validator: Validator,
    /// Documents of up to so many bytes need no count of their steps before they are checked.
    harmless: usize,
    /// Bytes that its patterns may take.
    size: usize,
}

/// Compiled schemas by their text: compiling takes a hundred times as long as a check.
static KNOWN: LazyLock<Mutex<HashMap<String, Arc<Known>>>> = LazyLock::new(Mutex::default);
/// Schemas that are kept, and bytes that their patterns may take; when they are more, all are made anew.
const KEPT: usize = 256;
const KEPT_SIZE: usize = 256 << 20;

fn first_objection(schemas: &[&str], text: &str) -> Result<Option<(usize, Vec<String>)>, String> {
    let document = read(text);
    for (at, schema) in schemas.iter().enumerate() {
        let objections = check(schema, text, &document)?;
        if !objections.is_empty() {
            return Ok(Some((at, objections)));
        }
    }
    Ok(None)
}

/// The document, or what is wrong with its text.
fn read(text: &str) -> Result<Value, String> {
    if text.len() > DOCUMENT_LIMIT {
        return Err(line("", &format!("longer than {DOCUMENT_LIMIT} bytes")));
    }
    serde_json::from_str(text).map_err(|error| line("", &format!("not JSON: {error}")))
}

fn check(schema: &str, text: &str, document: &Result<Value, String>) -> Result<Vec<String>, String> {
    let known = known(schema)?;
    let document = match document {
        Ok(document) => document,
        Err(objection) => return Ok(vec![objection.clone()]),
    };
    if text.len() > known.harmless {
        steps::within_bounds(&known.schema, document)?;
    }
    if known.validator.is_valid(document) {
        return Ok(Vec::new());
    }
    let objections: Vec<_> = known.validator.iter_errors(document).take(ERRORS).map(|error| told(&error)).collect();
    Ok(if objections.is_empty() { vec![line("", &"not valid")] } else { objections })
}

fn known(text: &str) -> Result<Arc<Known>, String> {
    if text.len() > SCHEMA_LIMIT {
        return Err(format!("schema: longer than {SCHEMA_LIMIT} bytes"));
    }
    if let Some(known) = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(text) {
        return Ok(known.clone());
    }
    let schema: Value = serde_json::from_str(text).map_err(|error| format!("schema: not JSON: {error}"))?;
    // Without references a schema is walked once for each node of the document at most.
    let harmless = if steps::refers(&schema) { 0 } else { HARMLESS.checked_div(text.len()).unwrap_or(0) };
    let pieces = patterns::pieces(&schema);
    let each = PATTERNS_SIZE.checked_div(pieces).unwrap_or(PATTERN_SIZE).min(PATTERN_SIZE);
    let size = pieces.saturating_mul(each);
    let known = Arc::new(Known { validator: compile(&schema, each)?, schema, harmless, size });
    let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = all.values().map(|each| each.size).fold(size, usize::saturating_add);
    if all.len() >= KEPT || kept > KEPT_SIZE {
        all.clear();
    }
    all.insert(text.into(), known.clone());
    Ok(known)
}

/// `size` is that of a compiled pattern, or of a piece of one, at most.
fn compile(schema: &Value, size: usize) -> Result<Validator, String> {
    let patterns = PatternOptions::fancy_regex().backtrack_limit(BACKTRACKING).size_limit(size).dfa_size_limit(size);
    jsonschema::options().offline().with_pattern_options(patterns).build(schema).map_err(|error| match error.kind() {
        ValidationErrorKind::Format { format } if format == "regex" => {
            format!("schema: {}, or takes over {size} bytes", told(&error))
        }
        _ => format!("schema: {}", told(&error)),
    })
}

fn told(error: &ValidationError<'_>) -> String {
    line(error.instance_path().as_str(), error)
}

/// `path: message`; the path is a JSON pointer, "(root)" for the document itself.
fn line(path: &str, message: &dyn Display) -> String {
    let path = if path.is_empty() { "(root)" } else { path };
    let text = format!("{path}: {message}");
    match text.char_indices().nth(MESSAGE) {
        Some((cut, _)) => format!("{}…", text.split_at(cut).0),
        None => text,
    }
}
