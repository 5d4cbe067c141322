//! Plans for several disks.

use std::path::PathBuf;
use std::sync::Arc;

use freewheel::drives::DEFAULT_DRIVE;
use freewheel::experiments::TraceWorkload;
use freewheel::files::FileKind;
use freewheel::measures::Bytes;
use freewheel::plans::{self, LoadTime, PlaceOptions, PlaceSource, StripeOptions, StripeSource};
use pyo3::prelude::*;

use crate::drive;
use crate::fault::Fault;
use crate::frame::Frame;
use crate::job;
use crate::report::{Made, Parts, Report};
use crate::studies::Replay;
use crate::table::Columns;
use crate::trace::{self, Source, Trace};
use crate::values::{Size, Time, argument, choice, path_text};

/// The document of `freewheel plan stripe`.
///
/// Its table has a row a stripe unit.
#[pyclass(frozen, extends = Report, module = "freewheel")]
pub struct StripeReport {
    report: Arc<plans::StripeReport>,
}

/// The document of `freewheel plan place`.
///
/// Its table has a row a move, in order.
#[pyclass(frozen, extends = Report, module = "freewheel")]
pub struct PlaceReport {
    report: Arc<plans::PlaceReport>,
}

/// What a plan is made from.
enum Input {
    Trace(Arc<Source>),
    Snapshot(PathBuf),
    WebLog(PathBuf),
}

impl Input {
    fn of(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        if given.cast::<Trace>().is_ok() || given.hasattr("__arrow_c_stream__")? {
            return trace::source(given).map(Self::Trace);
        }
        let help = "give a trace, the snapshot of a JBOD, or the log of a web server";
        let path = PathBuf::from(path_text(given, "a path or a table", help)?);
        match FileKind::of(&path) {
            Some(FileKind::Trace) => trace::source(given).map(Self::Trace),
            Some(FileKind::WebLog) => Ok(Self::WebLog(path)),
            _ => Ok(Self::Snapshot(path)),
        }
    }
}

/// Works out how finely to stripe files or a volume over equal disks, and simulates their requests with each stripe
/// unit that is tried.
#[pyfunction]
#[pyo3(signature = (
    source, *, drive=None, disks=None, load=1.0, headroom=2.0, requests=None, electronics=true,
    replay="auto", fit="as-is", coarse_times="spread", device=None, seed=1, progress=None
))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub fn plan_stripe(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    drive: Option<Bound<'_, PyAny>>,
    disks: Option<u32>,
    load: f64,
    headroom: f64,
    requests: Option<u64>,
    electronics: bool,
    replay: &str,
    fit: &str,
    coarse_times: &str,
    device: Option<u32>,
    seed: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<StripeReport>> {
    check("load", load, 0.0)?;
    check("headroom", headroom, 1.0)?;
    let input = Input::of(source)?;
    let replay = Replay { mode: replay, fit, coarse_times, device };
    let (source, usual) = match &input {
        Input::Trace(source) => (StripeSource::Trace(replay.of(source)?), Some(DEFAULT_DRIVE)),
        Input::Snapshot(path) => (StripeSource::Files(path.clone()), None),
        Input::WebLog(path) => (StripeSource::WebLog(path.clone()), Some(DEFAULT_DRIVE)),
    };
    let drive = drive.as_ref().map(drive::reference).transpose()?;
    let usual_options = StripeOptions::new(source);
    let options = StripeOptions {
        drive: drive.or(usual.map(str::to_owned)),
        disks,
        load,
        headroom,
        requests: requests.unwrap_or(usual_options.requests),
        electronics,
        seed,
        ..usual_options
    };
    let report = Arc::new(job::run(py, progress, move |watch| {
        let report = plans::plan_stripe(&options, &|_, done, total| watch.report(done, total))?;
        // A table's file was needed until here.
        drop(input);
        Ok(report)
    })?);
    let frame = units(&report).map_err(|fault| fault.raise(py))?;
    let [of_json, of_html, of_text] = [(), (), ()].map(|()| Arc::clone(&report));
    let json: Made = Box::new(move || freewheel_cli::json_document(&*of_json).map_err(Fault::json));
    let parts = Parts {
        json,
        html: Some(Box::new(move || Ok(of_html.html()))),
        text: Box::new(move || Ok(of_text.text())),
        frame: Some(frame),
    };
    let class = PyClassInitializer::from(Report::new(parts));
    Py::new(py, class.add_subclass(StripeReport { report }))
}

/// Err for a factor that is too small to mean anything.
fn check(name: &str, factor: f64, least: f64) -> PyResult<()> {
    if factor.is_finite() && factor >= least && factor > 0.0 {
        Ok(())
    } else {
        let says = format!("{name}={factor}: a factor above 0 and of at least {least} is wanted");
        Err(argument(says, "write a number, as 1.5").raise_here())
    }
}

/// A row a stripe unit.
fn units(report: &plans::StripeReport) -> Result<Frame, Fault> {
    let units = &report.plan.units;
    Columns::default()
        .whole("unit_bytes", units.iter().map(|unit| Some(unit.unit.get())))
        .numbers("disks_a_request", units.iter().map(|unit| Some(unit.disks)))
        .numbers("busy", units.iter().map(|unit| Some(unit.busy)))
        .numbers("saturation_requests_per_second", units.iter().map(|unit| Some(unit.saturation)))
        .numbers("model_response_s", units.iter().map(|unit| unit.response_s))
        .numbers("response_s", units.iter().map(|unit| unit.simulated_s))
        .flags("fits", units.iter().map(|unit| unit.fits))
        .frame()
}

#[pymethods]
impl StripeReport {
    /// The result in a sentence.
    #[getter]
    fn headline(&self) -> &str {
        &self.report.conclusions.headline
    }

    /// The unit with the shortest response in the simulation; None where the disks cannot serve the load.
    #[getter]
    fn best_bytes(&self) -> Option<u64> {
        self.report.plan.best.map(Bytes::get)
    }
}

/// Options of a placement that have no other use.
struct Placement {
    drive: Option<String>,
    disks: Option<u32>,
    fragment: Option<Bytes>,
    load_time: LoadTime,
    device: Option<u32>,
}

/// The usual size of a trace's fragments.
const FRAGMENT: Bytes = Bytes::from_kib(64 * 1024);

impl Placement {
    fn of(self, input: &Input) -> PyResult<PlaceSource> {
        let drive = self.drive.unwrap_or_else(|| DEFAULT_DRIVE.to_owned());
        Ok(match input {
            Input::Snapshot(path) => PlaceSource::Snapshot(path.clone()),
            Input::Trace(source) => PlaceSource::Trace {
                trace: TraceWorkload { device: self.device, ..source.workload() },
                drive,
                fragment: self.fragment.unwrap_or(FRAGMENT),
                load_time: self.load_time,
            },
            Input::WebLog(path) => PlaceSource::WebLog {
                file: path.clone(),
                drive,
                disks: self.disks.ok_or_else(|| {
                    let says = format!("{} is a log of a web server", path.display());
                    argument(says, "give disks=N, on which its files are placed").raise_here()
                })?,
            },
        })
    }
}

/// Works out which files of a JBOD to move so that clients wait less, and simulates their requests before and after.
/// It moves nothing.
#[pyfunction]
#[pyo3(signature = (
    source, *, drive=None, disks=None, fragment=None, load_time="common", device=None, load=1.0,
    horizon=None, min_gain=0.01, keep_free=0.05, copy_rate=None, max_moves=100, add_disk=None,
    replace=None, requests=None, seed=1, progress=None
))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub fn plan_placement(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    drive: Option<Bound<'_, PyAny>>,
    disks: Option<u32>,
    fragment: Option<Size>,
    load_time: &str,
    device: Option<u32>,
    load: f64,
    horizon: Option<Time>,
    min_gain: f64,
    keep_free: f64,
    copy_rate: Option<Size>,
    max_moves: usize,
    add_disk: Option<&Bound<'_, PyAny>>,
    replace: Option<std::collections::BTreeMap<String, Bound<'_, PyAny>>>,
    requests: Option<u64>,
    seed: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PlaceReport>> {
    check("load", load, 0.0)?;
    for (name, share) in [("keep_free", keep_free), ("min_gain", min_gain)] {
        if !(0.0..1.0).contains(&share) {
            let says = format!("{name}={share}: a share of 0 to below 1 is wanted");
            return Err(argument(says, "write 0.05 for five per cent").raise(py));
        }
    }
    let kinds = [("common", LoadTime::Common), ("own", LoadTime::Own), ("whole", LoadTime::Whole)];
    let placement = Placement {
        drive: drive.as_ref().map(drive::reference).transpose()?,
        disks,
        fragment: fragment.map(|size| size.get("fragment")).transpose()?,
        load_time: choice("load_time", load_time, &kinds)?,
        device,
    };
    let input = Input::of(source)?;
    let replace = replace.unwrap_or_default().into_iter();
    let usual = PlaceOptions::new(placement.of(&input)?);
    let horizon = horizon.map(|time| time.get("horizon")).transpose()?;
    let options = PlaceOptions {
        load,
        horizon_s: horizon.map_or(usual.horizon_s, |time| time.as_secs_f64()),
        gain_min: min_gain,
        free_share: keep_free,
        copy_rate: copy_rate.map(|size| size.get("copy_rate")).transpose()?,
        moves_max: max_moves,
        add: drive::references(add_disk)?,
        replace: replace
            .map(|(disk, drive)| Ok((disk, drive::reference(&drive)?)))
            .collect::<PyResult<_>>()?,
        requests,
        seed,
        ..usual
    };
    place(py, options, input, progress)
}

fn place(
    py: Python<'_>,
    options: PlaceOptions,
    input: Input,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PlaceReport>> {
    let report = Arc::new(job::run(py, progress, move |watch| {
        let report = plans::plan_place(&options, &|_, done, total| watch.report(done, total))?;
        // A table's file was needed until here.
        drop(input);
        Ok(report)
    })?);
    let frame = moves(&report).map_err(|fault| fault.raise(py))?;
    let [of_json, of_html, of_text] = [(), (), ()].map(|()| Arc::clone(&report));
    let parts = Parts {
        json: Box::new(move || freewheel_cli::json_document(&*of_json).map_err(Fault::json)),
        html: Some(Box::new(move || Ok(of_html.html()))),
        text: Box::new(move || Ok(of_text.text())),
        frame: Some(frame),
    };
    let class = PyClassInitializer::from(Report::new(parts));
    Py::new(py, class.add_subclass(PlaceReport { report }))
}

/// A row a move, in order.
fn moves(report: &plans::PlaceReport) -> Result<Frame, Fault> {
    let moves = &report.plan.moves;
    Columns::default()
        .texts("file", moves.iter().map(|of| of.file.as_str()))
        .texts("from", moves.iter().map(|of| of.from.as_str()))
        .texts("to", moves.iter().map(|of| of.to.as_str()))
        .whole("size_bytes", moves.iter().map(|of| Some(of.bytes.get())))
        .numbers("requests_per_second", moves.iter().map(|of| Some(of.rate)))
        .numbers("gain_s", moves.iter().map(|of| Some(of.gain_s)))
        .numbers("response_s", moves.iter().map(|of| of.response_s))
        .numbers("copy_s", moves.iter().map(|of| Some(of.copy_s)))
        .numbers("payback_s", moves.iter().map(|of| Some(of.payback_s)))
        .flags("makes_room", moves.iter().map(|of| of.makes_room))
        .frame()
}

#[pymethods]
impl PlaceReport {
    /// The result in a sentence.
    #[getter]
    fn headline(&self) -> &str {
        &self.report.conclusions.headline
    }

    /// A script of the shell that does the moves; None where the disks have no paths.
    fn commands(&self) -> Option<String> {
        self.report.commands()
    }
}
