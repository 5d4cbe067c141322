//! Scheduling policies written in Python.
//!
//! Each decision is a call of Python, so such a run is slower than one of a policy in Rust. Requests that wait are kept
//! here, too: the object may only name one of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use freewheel::Drive;
use freewheel::experiments::{self, Policy, Waiting};
use freewheel::measures::SimTime;
use pyo3::prelude::*;

use crate::fault::Fault;
use crate::job::Watch;
use crate::table::op_name;
use crate::values::argument;

/// A request that waits for the head.
#[pyclass(frozen, module = "freewheel")]
pub struct Request(Waiting);

#[pymethods]
impl Request {
    /// Unique and ascending in order of arrival.
    #[getter]
    fn sequence(&self) -> u64 {
        self.0.sequence
    }

    /// `"read"` or `"write"`.
    #[getter]
    fn op(&self) -> &'static str {
        op_name(self.0.target.op)
    }

    /// First block of 512 bytes on the arm.
    #[getter]
    fn start_block(&self) -> u64 {
        self.0.target.start.get()
    }

    /// Number of blocks.
    #[getter]
    fn blocks(&self) -> u32 {
        self.0.target.blocks
    }

    /// Time of arrival.
    #[getter]
    fn arrival_ns(&self) -> u64 {
        self.0.arrival.ns()
    }

    /// Cylinder of the first block, counted from the outermost.
    #[getter]
    fn cylinder(&self) -> u32 {
        self.0.target.at.cylinder
    }

    /// Head of the first block.
    #[getter]
    fn head(&self) -> u32 {
        self.0.target.at.surface
    }

    /// True if the data must be on the media before the request is done.
    #[getter]
    fn fua(&self) -> bool {
        self.0.fua
    }

    fn __repr__(&self) -> String {
        let Waiting { target, sequence, .. } = &self.0;
        let (op, start, blocks) = (op_name(target.op), target.start.get(), target.blocks);
        format!("<Request {sequence}: {op} of {blocks} blocks at {start}>")
    }
}

/// Positioning time and seek time of a request.
type Times = dyn Fn(&Waiting) -> [u64; 2] + Send + Sync;

/// State at a decision that a policy may use.
#[pyclass(frozen, module = "freewheel")]
pub struct Moment {
    now: SimTime,
    cylinder: u32,
    head: u32,
    times_ns: Box<Times>,
}

impl Moment {
    fn new(moment: &experiments::Moment<'_>, drive: &Arc<Drive>) -> Self {
        let (now, from, drive) = (moment.now, moment.head, Arc::clone(drive));
        Self {
            now,
            cylinder: from.cylinder,
            head: from.surface,
            times_ns: Box::new(move |waiting| {
                let positioning = drive.positioning(now, from, &waiting.target);
                [positioning.total(), positioning.seek].map(|time| time.ns())
            }),
        }
    }
}

#[pymethods]
impl Moment {
    /// Time at which the head becomes free.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.now.ns()
    }

    /// Cylinder of the head at that time.
    #[getter]
    fn cylinder(&self) -> u32 {
        self.cylinder
    }

    /// Head that was used last.
    #[getter]
    fn head(&self) -> u32 {
        self.head
    }

    /// Seek time and rotational latency of a request, if it is served now.
    fn positioning_ns(&self, request: &Request) -> u64 {
        (self.times_ns)(&request.0)[0]
    }

    /// Seek time of a request, if it is served now.
    fn seek_ns(&self, request: &Request) -> u64 {
        (self.times_ns)(&request.0)[1]
    }

    fn __repr__(&self) -> String {
        let (now, cylinder, head) = (self.now.ns(), self.cylinder, self.head);
        format!("<Moment {now} ns: cylinder {cylinder}, head {head}>")
    }
}

/// A class of scheduling policies, or whatever makes one when it is called without arguments.
pub struct OwnPolicy {
    /// Name of the class.
    pub name: String,
    make: Arc<Py<PyAny>>,
}

/// What makes a policy for an arm.
type Make = Box<dyn Fn(&Arc<Drive>) -> Box<dyn Policy> + Send + Sync>;

impl OwnPolicy {
    /// A policy that `make` makes.
    pub fn new(make: &Bound<'_, PyAny>) -> PyResult<Self> {
        let name = name_of("policy", make, "class with push, pick and take")?;
        Ok(Self { name, make: Arc::new(make.clone().unbind()) })
    }

    /// What makes a policy for each arm of a run.
    pub fn watched(&self, watch: &Arc<Watch>) -> Make {
        let (make, watch) = (Arc::clone(&self.make), Arc::clone(watch));
        Box::new(move |drive| {
            let [push, pick, take] = watch.call(|py| {
                let object = make.bind(py).call0()?;
                methods("policy", &object, ["push", "pick", "take"])
            });
            let (drive, watch) = (Arc::clone(drive), Arc::clone(&watch));
            Box::new(InPython { push, pick, take, drive, watch, waiting: BTreeMap::new() })
        })
    }
}

/// The name of a class, or of another thing that is called.
pub fn name_of(keyword: &str, make: &Bound<'_, PyAny>, wanted: &'static str) -> PyResult<String> {
    if !make.is_callable() {
        let kind = make.get_type().name()?;
        let says = format!("{keyword} is a {kind}: a {wanted} is needed");
        return Err(argument(says, "give the class itself, not an object of it").raise(make.py()));
    }
    match make.getattr("__name__") {
        Ok(name) => name.extract(),
        Err(_) => Ok(make.get_type().name()?.to_string()),
    }
}

/// Methods of an object, each of which can be called.
pub fn methods<const N: usize>(
    keyword: &str,
    object: &Bound<'_, PyAny>,
    names: [&str; N],
) -> PyResult<[Py<PyAny>; N]> {
    let kind = object.get_type().name()?;
    let method = |name: &str| {
        let found = object.getattr_opt(name)?.filter(|found| found.is_callable());
        found.map(Bound::unbind).ok_or_else(|| {
            let says = format!("{keyword}: {kind} has no method `{name}`");
            argument(
                says,
                "help(freewheel.Policy) and help(freewheel.CachePolicy) list the methods",
            )
            .raise(object.py())
        })
    };
    let found = names.iter().map(|name| method(name)).collect::<PyResult<Vec<_>>>()?;
    Ok(found.try_into().expect("one for each name"))
}

/// The policy of an arm, and the requests that wait.
struct InPython {
    push: Py<PyAny>,
    pick: Py<PyAny>,
    take: Py<PyAny>,
    drive: Arc<Drive>,
    watch: Arc<Watch>,
    waiting: BTreeMap<u64, Waiting>,
}

impl InPython {
    /// The request that was picked, by its number or itself.
    fn chosen(&self, picked: &Bound<'_, PyAny>) -> PyResult<u64> {
        let py = picked.py();
        let wrong = |says: String| {
            let waits = format!("{says}, while {} wait", self.waiting.len());
            let help = "pick() gives a request that was pushed and neither picked nor taken since, or its sequence";
            Err(Fault::Argument(waits, help).raise(py))
        };
        if picked.is_none() {
            return wrong("policy: pick() gave None".into());
        }
        let sequence = match picked.cast::<Request>() {
            Ok(request) => request.get().0.sequence,
            Err(_) => match picked.extract::<u64>() {
                Ok(sequence) => sequence,
                Err(_) => return wrong(format!("policy: pick() gave {}", picked.repr()?)),
            },
        };
        if self.waiting.contains_key(&sequence) {
            Ok(sequence)
        } else {
            wrong(format!("policy: pick() gave request {sequence}, which does not wait"))
        }
    }
}

impl Policy for InPython {
    fn push(&mut self, waiting: Waiting) {
        self.waiting.insert(waiting.sequence, waiting);
        self.watch.call(|py| self.push.call1(py, (Request(waiting),)).map(drop));
    }

    fn pick(&mut self, moment: &experiments::Moment<'_>) -> Option<Waiting> {
        if self.waiting.is_empty() {
            return None;
        }
        let sequence = self.watch.call(|py| {
            let picked = self.pick.bind(py).call1((Moment::new(moment, &self.drive),))?;
            self.chosen(&picked)
        });
        self.waiting.remove(&sequence)
    }

    fn take(&mut self, sequence: u64) -> Option<Waiting> {
        let taken = self.waiting.remove(&sequence)?;
        self.watch.call(|py| self.take.call1(py, (sequence,)).map(drop));
        Some(taken)
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }
}
