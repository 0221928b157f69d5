//! The class `Judge`: a policy, and the rate windows of all runs that it governs.

use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

use deepstrike_kernel::Millis;
use deepstrike_kernel::governance::{Call, Name, STAGES, View, Windows, fits, judge, permit as decide};
use deepstrike_kernel::meta::is_own;
use deepstrike_kernel::wire::event::{Trail, Verdict};
use deepstrike_kernel::wire::policy::{Permissions, Policy, Skill};
use deepstrike_kernel::wire::strict;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;

use crate::fault::sized;
use crate::schema::Compiled;

/// Judges calls outside a run, and lends its windows to the kernels of runs.
#[pyclass(frozen, module = "deepstrike._kernel")]
pub(crate) struct Judge {
    seat: Mutex<Seat>,
}

struct Seat {
    policy: Policy,
    windows: Windows,
    asked: u64,
}

/// A call that is asked about outside a run.
struct About<'a> {
    name: &'a str,
    args: &'a str,
    skill: Option<&'a Skill>,
    approved: bool,
}

/// What a judgement says.
#[derive(Serialize)]
struct Judgement {
    verdict: Verdict,
    trail: Vec<Trail>,
}

#[pymethods]
impl Judge {
    #[new]
    fn new(policy: &[u8]) -> PyResult<Self> {
        let policy = read(policy)?;
        let mut windows = Windows::default();
        windows.set(&policy.rates);
        Ok(Self { seat: Mutex::new(Seat { policy, windows, asked: 0 }) })
    }

    /// Another policy from here on; windows of limits that stay go on counting.
    fn set(&self, policy: &[u8]) -> PyResult<()> {
        let policy = read(policy)?;
        self.lent(|seat| {
            seat.windows.set(&policy.rates);
            seat.policy = policy;
        });
        Ok(())
    }

    /// The verdict on a call, and its trail.
    #[allow(clippy::too_many_arguments, reason = "most of them are keywords in Python")]
    #[pyo3(signature = (name, args, now, *, consume, skill = None, approved = false))]
    fn evaluate(
        &self,
        py: Python<'_>,
        name: &str,
        args: &str,
        now: i64,
        consume: bool,
        skill: Option<&[u8]>,
        approved: bool,
    ) -> PyResult<Vec<u8>> {
        let skill: Option<Skill> = skill.map(strict::from_slice).transpose().map_err(invalid)?;
        let about = About { name, args, skill: skill.as_ref(), approved };
        sized(py, args.len(), || self.lent(|seat| seat.evaluate(&about, now, consume)))
    }
}

impl Judge {
    /// The windows, for as long as an input is taken.
    pub(crate) fn lend<T>(&self, take: impl FnOnce(&mut Windows) -> T) -> T {
        self.lent(|seat| take(&mut seat.windows))
    }

    /// A panic inside leaves at worst a call counted that did not run.
    fn lent<T>(&self, act: impl FnOnce(&mut Seat) -> T) -> T {
        act(&mut self.seat.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Seat {
    fn evaluate(&mut self, about: &About<'_>, now: i64, consume: bool) -> Vec<u8> {
        self.asked = self.asked.saturating_add(1);
        let view = View { policy: &self.policy, skill: about.skill, turns: 0, schemas: &Compiled };
        // No session has a reply of this number: each question outside a run is a call of its own.
        let at = Name { session: 0, reply: u64::MAX, index: self.asked };
        let About { name, args, approved, .. } = *about;
        let call = Call { at, id: "", name, args, approved, own: is_own(name) };
        let (verdict, trail) = judge(STAGES, &view, &call, &mut self.windows, Millis(now));
        if consume {
            self.windows.keep();
        } else {
            self.windows.give_back();
        }
        serde_json::to_vec(&Judgement { verdict, trail }).unwrap_or_default()
    }
}

/// Whether a glob fits a tool's name.
#[pyfunction]
pub(crate) fn glob(pattern: &str, name: &str) -> bool {
    fits(pattern, name)
}

/// What a permission manager says of an action, and the number of the entry that decides.
#[pyfunction]
pub(crate) fn permit(permissions: &[u8], tool: &str, action: &str) -> PyResult<(&'static str, Option<usize>)> {
    let permissions: Permissions = strict::from_slice(permissions).map_err(invalid)?;
    let (word, at) = decide(&permissions, tool, action);
    Ok((word.as_str(), at))
}

/// A list would pass for an object without names, and an empty one for a policy that allows everything.
fn read(policy: &[u8]) -> PyResult<Policy> {
    if !policy.trim_ascii_start().starts_with(b"{") {
        return Err(invalid("it is no JSON object"));
    }
    strict::from_slice(policy).map_err(invalid)
}

fn invalid(error: impl Display) -> PyErr {
    PyValueError::new_err(format!("invalid policy: {error}"))
}
