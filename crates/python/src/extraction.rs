//! Drives found out by timing them, and drive files held against measured times.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use freewheel::drives;
use freewheel::emulation::Behaviour;
use freewheel::extraction::{
    BlackBox, ExtractOptions, GapReading, Journal, RealDrive, VirtualDrive, validation_html,
};
use freewheel::serving::Claim;
use pyo3::prelude::*;

use crate::drive::{self, Drive};
use crate::fault::Fault;
use crate::frame::Frame;
use crate::job;
use crate::report::{Parts, Report};
use crate::table::Columns;
use crate::trace;
use crate::values::{argument, choice, path_text};

/// Cost and results of an extraction.
///
/// Its table has a row a value.
#[pyclass(frozen, extends = Report, module = "freewheel")]
pub struct Extraction {
    found: Arc<freewheel::Extraction>,
}

/// Results of a validation. Times in milliseconds.
///
/// Its table has a row a part of the trace.
#[pyclass(frozen, extends = Report, module = "freewheel")]
pub struct Validation {
    validation: Arc<freewheel::extraction::Validation>,
}

/// What stands before the name of a drive in virtual time.
const EMULATED: &str = "emulated:";

enum Target {
    /// A drive in virtual time.
    Virtual(String),
    /// A block device or a file.
    Device(PathBuf),
}

impl Target {
    fn of(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        if given.cast::<Drive>().is_ok() {
            return drive::reference(given).map(Self::Virtual);
        }
        let help = "give a Drive, \"emulated:NAME\", or the path of a block device";
        let text = path_text(given, "a drive", help)?;
        Ok(match text.strip_prefix(EMULATED) {
            Some(name) => Self::Virtual(name.to_owned()),
            None if !Path::new(&text).exists() => {
                let says = format!("target={text:?}: there is no such device or file");
                return Err(argument(says, help).raise(given.py()));
            }
            None => Self::Device(text.into()),
        })
    }

    fn open(&self, seed: u64) -> Result<Box<dyn BlackBox>, Fault> {
        match self {
            Self::Virtual(name) => {
                let (spec, _) = drives::load(name)?;
                let (behaviour, bad) = Default::default();
                let behaviour: Behaviour = behaviour;
                Ok(Box::new(VirtualDrive::emulating(&spec, name, &behaviour, bad, seed)?))
            }
            Self::Device(path) => Ok(Box::new(RealDrive::open(path, Claim::Read, |_| {})?)),
        }
    }
}

/// Finds the parameters of a drive by timing reads of it.
///
/// The target is a `Drive` or `"emulated:NAME"` in virtual time, or the path of a block device.
#[pyfunction]
#[pyo3(signature = (target, *, name="extracted", seed=1, surfaces=false, progress=None))]
pub fn extract(
    py: Python<'_>,
    target: &Bound<'_, PyAny>,
    name: &str,
    seed: u64,
    surfaces: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<Extraction>> {
    let target = Target::of(target)?;
    let options = ExtractOptions { name: name.to_owned(), seed, writes: false, surfaces };
    let found = Arc::new(job::run(py, progress, move |watch| {
        let mut drive = target.open(seed)?;
        let journal = Journal::default();
        Ok(freewheel::extract(&mut *drive, &options, journal, &|step| {
            watch.report(step.done, step.total);
        })?)
    })?);
    let frame = values(&found).map_err(|fault| fault.raise(py))?;
    let [of_json, of_text] = [(), ()].map(|()| Arc::clone(&found));
    let parts = Parts {
        json: Box::new(move || freewheel_cli::json_document(&*of_json).map_err(Fault::json)),
        html: None,
        text: Box::new(move || {
            let seconds = of_text.drive_ns as f64 / 1e9;
            Ok(format!(
                "{}: {} values by {} commands in {seconds:.0} s of the drive's time",
                of_text.spec.name,
                of_text.values.len(),
                of_text.commands
            ))
        }),
        frame: Some(frame),
    };
    let class = PyClassInitializer::from(Report::new(parts));
    Py::new(py, class.add_subclass(Extraction { found }))
}

/// A row a value.
fn values(found: &freewheel::Extraction) -> Result<Frame, Fault> {
    let values = &found.values;
    Columns::default()
        .texts("key", values.iter().map(|value| value.key.as_str()))
        .texts("value", values.iter().map(|value| value.value.as_str()))
        .texts("confidence", values.iter().map(|value| value.confidence.name()))
        .texts("source", values.iter().map(|value| value.source.as_str()))
        .frame()
}

#[pymethods]
impl Extraction {
    /// The drive that was found.
    #[getter]
    fn drive(&self, py: Python<'_>) -> PyResult<Drive> {
        Drive::of_spec(self.found.spec.clone()).map_err(|fault| fault.raise(py))
    }

    /// Commands sent to the drive.
    #[getter]
    fn commands(&self) -> u64 {
        self.found.commands
    }

    /// Time on the drive.
    #[getter]
    fn drive_ns(&self) -> u64 {
        self.found.drive_ns
    }
}

/// Sends the requests of a measured trace to a drive, each as long after the completion of the one before as in
/// the trace, and compares the response times.
#[pyfunction]
#[pyo3(signature = (drive, trace, *, delays=None))]
pub fn validate(
    py: Python<'_>,
    drive: &Bound<'_, PyAny>,
    trace: &Bound<'_, PyAny>,
    delays: Option<&str>,
) -> PyResult<Py<Validation>> {
    let (name, source) = (drive::reference(drive)?, trace::source(trace)?);
    let sides = [("before", GapReading::AsRecorded), ("after", GapReading::OneLater)];
    let gaps = delays.map(|side| choice("delays", side, &sides)).transpose()?;
    let validation = Arc::new(job::run(py, None, move |_| {
        Ok(freewheel::validate(&name, &source.workload(), gaps)?)
    })?);
    let frame = parts_of(&validation).map_err(|fault| fault.raise(py))?;
    let [of_json, of_html, of_text] = [(), (), ()].map(|()| Arc::clone(&validation));
    let parts = Parts {
        json: Box::new(move || freewheel_cli::json_document(&*of_json).map_err(Fault::json)),
        html: Some(Box::new(move || Ok(validation_html(&of_html)))),
        text: Box::new(move || {
            Ok(format!(
                "{} against {}: demerit {:.3} ms, {:.2} % of the mean; {}",
                of_text.drive,
                of_text.trace,
                of_text.demerit_ms,
                100.0 * of_text.demerit_share,
                of_text.gaps_in_words()
            ))
        }),
        frame: Some(frame),
    };
    let class = PyClassInitializer::from(Report::new(parts));
    Py::new(py, class.add_subclass(Validation { validation }))
}

/// A row a part of the trace.
fn parts_of(validation: &freewheel::extraction::Validation) -> Result<Frame, Fault> {
    let parts = &validation.parts;
    Columns::default()
        .texts("served_as", parts.iter().map(|part| part.name))
        .whole("requests", parts.iter().map(|part| Some(part.requests)))
        .numbers("measured_ms_mean", parts.iter().map(|part| Some(part.measured_mean_ms)))
        .numbers("simulated_ms_mean", parts.iter().map(|part| Some(part.simulated_mean_ms)))
        .numbers("difference_ms_sd", parts.iter().map(|part| Some(part.per_request_error_sd_ms)))
        .frame()
}

#[pymethods]
impl Validation {
    /// Root mean square of the horizontal distance between the two distributions.
    #[getter]
    fn demerit_ms(&self) -> f64 {
        self.validation.demerit_ms
    }

    /// The same as a share of the measured mean.
    #[getter]
    fn demerit_share(&self) -> f64 {
        self.validation.demerit_share
    }

    /// Number of requests that were compared.
    #[getter]
    fn requests(&self) -> u64 {
        self.validation.requests
    }
}
