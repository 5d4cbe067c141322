//! The papers' claims.

use std::path::PathBuf;
use std::sync::Arc;

use freewheel::claims::{self, CLAIMS, ReproduceOptions, Reproduction, Row, SEEDS};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::fault::Fault;
use crate::frame::Frame;
use crate::job;
use crate::report::{Parts, Report};
use crate::table::Columns;
use crate::values::{OneOrMore, argument};

/// The claims that were run.
///
/// The table has a row a number.
#[pyclass(frozen, extends = Report, module = "freewheel")]
pub struct ClaimsReport {
    done: Arc<ClaimsDone>,
}

struct ClaimsDone {
    options: ReproduceOptions,
    reproductions: Vec<Reproduction>,
}

impl ClaimsDone {
    fn report(&self) -> claims::ClaimsReport<'_> {
        claims::ClaimsReport::new(&self.reproductions, &self.options)
    }

    fn rows(&self) -> impl Iterator<Item = &Row> + Clone {
        self.reproductions.iter().flat_map(|of| &of.rows)
    }
}

/// The claims there are: id and title.
#[pyfunction]
#[pyo3(name = "claims")]
pub fn claim_titles(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for claim in CLAIMS {
        all.set_item(claim.id, claim.title)?;
    }
    Ok(all)
}

/// Runs the experiment behind a claim, and compares its numbers with the paper's.
///
/// `ids` are one or several of `claims()`, all if none is given.
#[pyfunction]
#[pyo3(signature = (ids=None, *, quick=false, seeds=None, recordings=None, progress=None))]
pub fn reproduce(
    py: Python<'_>,
    ids: Option<OneOrMore<String>>,
    quick: bool,
    seeds: Option<OneOrMore<u64>>,
    recordings: Option<PathBuf>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<ClaimsReport>> {
    let seeds = seeds.map_or_else(|| SEEDS.to_vec(), OneOrMore::into_vec);
    let options = ReproduceOptions { quick, seeds, recordings };
    let ids = ids.map_or_else(
        || CLAIMS.iter().map(|claim| claim.id.to_owned()).collect(),
        OneOrMore::into_vec,
    );
    for (name, is_empty) in [("ids", ids.is_empty()), ("seeds", options.seeds.is_empty())] {
        if is_empty {
            let says = format!("{name}=[]: one at least is needed");
            return Err(argument(says, "leave it out for all of them").raise(py));
        }
    }
    let done = Arc::new(job::run(py, progress, move |watch| {
        let reproductions = ids
            .iter()
            .map(|id| {
                Ok(freewheel::reproduce(id, &options, &|done, total| watch.report(done, total))?)
            })
            .collect::<Result<Vec<_>, Fault>>()?;
        Ok(ClaimsDone { options, reproductions })
    })?);
    let frame = frame(&done).map_err(|fault| fault.raise(py))?;
    let [of_json, of_html, of_text] = [(), (), ()].map(|()| Arc::clone(&done));
    let parts = Parts {
        json: Box::new(move || {
            freewheel_cli::json_document(&of_json.report()).map_err(Fault::json)
        }),
        html: Some(Box::new(move || {
            let pages = of_html.report().html().into_iter().flatten();
            pages.reduce(|first, _| first).ok_or_else(|| Fault::Other("no claim was run".into()))
        })),
        text: Box::new(move || Ok(of_text.report().words())),
        frame: Some(frame),
    };
    let class = PyClassInitializer::from(Report::new(parts));
    Py::new(py, class.add_subclass(ClaimsReport { done }))
}

/// A row a number.
fn frame(done: &ClaimsDone) -> Result<Frame, Fault> {
    let rows = done.rows();
    Columns::default()
        .texts("id", rows.clone().map(|row| row.id))
        .texts("quantity", rows.clone().map(|row| row.quantity.as_str()))
        .texts("unit", rows.clone().map(|row| row.unit))
        .numbers("paper", rows.clone().map(|row| row.paper))
        .numbers("ours", rows.clone().map(|row| Some(row.ours).filter(|ours| !ours.is_nan())))
        .numbers("ours_min", rows.clone().map(move |row| end(row.range, 0)))
        .numbers("ours_max", rows.clone().map(move |row| end(row.range, 1)))
        .numbers("band_min", rows.clone().map(move |row| end(row.band, 0)))
        .numbers("band_max", rows.clone().map(move |row| end(row.band, 1)))
        .texts("verdict", rows.clone().map(|row| row.verdict.title()))
        .flags("passes", rows.map(|row| row.verdict.passes()))
        .frame()
}

fn end(range: Option<[f64; 2]>, at: usize) -> Option<f64> {
    range.map(|ends| ends[at])
}

#[pymethods]
impl ClaimsReport {
    /// Whether no number fails.
    #[getter]
    fn passes(&self) -> bool {
        self.done.rows().all(|row| row.verdict.passes())
    }
}
