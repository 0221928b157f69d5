//! The class `Kernel`: bytes in, bytes out, one lock.

use std::sync::{Mutex, TryLockError};

use deepstrike_kernel::{Corrupt as Damage, Kernel as Machine, Millis, Rejected as Refusal};
use deepstrike_tokens::Embedded;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use serde::Serialize;

use crate::fault::{Corrupt, KernelFault, Newer, Rejected, Stale, apart, broken, sized};
use crate::judge::Judge;
use crate::schema::Compiled;

/// Records, owed effects, deadline, outcome.
type Stand = (Vec<Vec<u8>>, Vec<u8>, Option<i64>, Option<Vec<u8>>);

/// The slots in order with the tools behind slot 2, the whole, the window.
type Weights = (u64, u64, u64, u64, u64, u64, u64);

/// One session's state machine.
#[pyclass(frozen, module = "deepstrike._kernel")]
pub(crate) struct Kernel {
    machine: Mutex<Machine>,
}

#[pymethods]
impl Kernel {
    #[new]
    fn new() -> Self {
        Self::around(Machine::new(Box::new(Embedded)))
    }

    /// The kernel that has lived through these records.
    #[staticmethod]
    #[pyo3(signature = (records, judge = None))]
    fn replay(py: Python<'_>, records: Vec<PyBackedBytes>, judge: Option<&Judge>) -> PyResult<Self> {
        let mut windows = judge.map(|judge| judge.lend(|windows| windows.blank())).unwrap_or_default();
        let lines = records.iter().map(|record| &**record);
        let machine = apart(py, || Machine::replay_with(Box::new(Embedded), &mut windows, lines))?;
        if let (Ok(_), Some(judge)) = (&machine, judge) {
            judge.lend(|own| own.merge(windows));
        }
        machine.map(Self::around).map_err(|damage| unfolded(&damage))
    }

    /// Which skill these records make active, or none, behind which of them: a JSON array of pairs.
    #[staticmethod]
    fn active_skills(py: Python<'_>, records: Vec<PyBackedBytes>) -> PyResult<Vec<u8>> {
        let lines = records.iter().map(|record| &**record);
        let changes = apart(py, || Machine::active_skills(Box::new(Embedded), lines))?;
        changes.map(|changes| json(&changes)).map_err(|damage| unfolded(&damage))
    }

    /// Whether the current goal offers the meta-tool of this name.
    fn offers(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.read(py, |machine| machine.offers(name))
    }

    /// Takes an input; the records it made.
    #[pyo3(signature = (input, now, judge = None))]
    fn accept(&self, py: Python<'_>, input: &[u8], now: i64, judge: Option<&Judge>) -> PyResult<Vec<Vec<u8>>> {
        let step = |machine: &mut Machine| taken(machine, input, now, judge);
        sized(py, input.len(), || self.locked(step))?.ok_or_else(broken)?.map_err(refused)
    }

    /// `accept`, and how things stand behind it: the records, what is owed, the deadline, the outcome.
    #[pyo3(signature = (input, now, judge = None, aside = false))]
    fn advance(&self, py: Python<'_>, input: &[u8], now: i64, judge: Option<&Judge>, aside: bool) -> PyResult<Stand> {
        let step = |machine: &mut Machine| {
            let records = taken(machine, input, now, judge)?;
            let owed = json(&machine.pending(None));
            Ok((records, owed, machine.deadline().map(|at| at.0), machine.outcome().map(|outcome| json(&outcome))))
        };
        let size = if aside { usize::MAX } else { input.len() };
        sized(py, size, || self.locked(step))?.ok_or_else(broken)?.map_err(refused)
    }

    /// What is owed to the world, in id order.
    #[pyo3(signature = (since = -1), text_signature = "($self, since=-1)")]
    fn pending(&self, py: Python<'_>, since: i64) -> PyResult<Vec<u8>> {
        self.read(py, |machine| json(&machine.pending(u64::try_from(since).ok())))
    }

    /// The prompt's blocks from `start` on.
    fn blocks(&self, py: Python<'_>, epoch: u64, start: u64) -> PyResult<Vec<u8>> {
        self.read(py, |machine| machine.blocks(epoch, start))
    }

    /// `turns[0]` as the task stands now.
    fn task(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        self.read(py, |machine| machine.task_block().into_bytes())
    }

    /// Tokens by slot, the estimate of the whole prompt, the window.
    fn weights(&self, py: Python<'_>) -> PyResult<Weights> {
        let look = |machine: &mut Machine| {
            let (slots, (total, window)) = (machine.slots(), machine.fill());
            (slots.system_stable, slots.system_knowledge, slots.tools, slots.state, slots.history, total, window)
        };
        apart(py, || self.locked(look))?.ok_or_else(broken)
    }

    /// When the current goal runs out of time.
    fn deadline(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        self.read(py, |machine| machine.deadline().map(|at| at.0))
    }

    /// How the current goal ended or parked.
    fn outcome(&self, py: Python<'_>) -> PyResult<Option<Vec<u8>>> {
        self.read(py, |machine| machine.outcome().map(|outcome| json(&outcome)))
    }

    #[getter]
    fn phase(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.read(py, Machine::phase)
    }

    #[getter]
    fn next_seq(&self, py: Python<'_>) -> PyResult<u64> {
        self.read(py, Machine::next_seq)
    }

    /// Whether an input of so many bytes may have the prompt rewritten.
    fn may_rewrite(&self, py: Python<'_>, size: u64, told: u64, now: i64) -> PyResult<bool> {
        self.read(py, |machine| machine.may_rewrite(size, told, Millis(now)))
    }

    #[getter]
    fn prompt_tokens(&self, py: Python<'_>) -> PyResult<u64> {
        self.read(py, |machine| machine.fill().0)
    }

    #[getter]
    fn epoch(&self, py: Python<'_>) -> PyResult<u64> {
        self.read(py, Machine::epoch)
    }
}

impl Kernel {
    fn around(machine: Machine) -> Self {
        Self { machine: Mutex::new(machine.with_schemas(Box::new(Compiled))) }
    }

    /// Waits for the lock. A panic inside leaves it poisoned: then the state is unknown, and every later call gets None.
    fn locked<T>(&self, act: impl FnOnce(&mut Machine) -> T) -> Option<T> {
        self.machine.lock().ok().map(|mut machine| act(&mut machine))
    }

    /// Looks at the machine. Only a look that has to wait for a running `accept` gives up the interpreter lock.
    fn read<T: Send>(&self, py: Python<'_>, look: impl FnOnce(&Machine) -> T + Send) -> PyResult<T> {
        match self.machine.try_lock() {
            Ok(machine) => Ok(look(&machine)),
            Err(TryLockError::Poisoned(_)) => Err(broken()),
            Err(TryLockError::WouldBlock) => apart(py, || self.locked(|machine| look(machine)))?.ok_or_else(broken),
        }
    }
}

/// Takes an input, with the rate windows of `judge` if there is one.
fn taken(machine: &mut Machine, input: &[u8], now: i64, judge: Option<&Judge>) -> Result<Vec<Vec<u8>>, Refusal> {
    match judge {
        Some(judge) => judge.lend(|windows| machine.accept_with(windows, input, Millis(now))),
        None => machine.accept(input, Millis(now)),
    }
}

fn refused(refusal: Refusal) -> PyErr {
    match refusal {
        Refusal::Stale { .. } => Stale::new_err(refusal.to_string()),
        Refusal::Invalid(_) | Refusal::Refused { .. } => Rejected::new_err(refusal.to_string()),
        Refusal::Broken(_) => KernelFault::new_err(refusal.to_string()),
    }
}

fn unfolded(damage: &Damage) -> PyErr {
    match damage {
        Damage::UnknownKind { .. } | Damage::Newer { .. } => Newer::new_err(damage.to_string()),
        _ => Corrupt::new_err(damage.to_string()),
    }
}

/// Wire structs always serialize: their maps have string keys and nothing in them can fail.
fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
