//! Drives and places of a fleet's traces: a CSV, a table, or a dict of dicts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use freewheel::fleets::{Place, Places};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::drive;
use crate::fault::Fault;
use crate::table_in;
use crate::values::{argument, path_text};

/// Columns of a table, the first of which is the name of a trace.
const COLUMNS: [&str; 4] = ["trace", "drive", "server", "bay"];

const HELP: &str = "write places={\"usr_1\": {\"drive\": \"tr96\", \"server\": \"usr\", \"bay\": 1}}, or give a CSV or a table with \
     the columns trace and drive, server or bay";

/// Places that the argument `places` of `fleet` gives.
pub fn places(given: &Bound<'_, PyAny>) -> PyResult<Places> {
    let by_name = if let Ok(by_name) = given.cast::<PyDict>() {
        of_dict(by_name)?
    } else if given.hasattr("__arrow_c_stream__")? {
        of_table(given)?
    } else {
        let path = path_text(given, "a table of places", HELP)?;
        let read = Places::read(&PathBuf::from(path));
        return read.map_err(|error| Fault::from(error).raise(given.py()));
    };
    Ok(Places { origin: "places".to_owned(), by_name })
}

fn of_dict(by_name: &Bound<'_, PyDict>) -> PyResult<BTreeMap<String, Place>> {
    let mut found = BTreeMap::new();
    for (name, place) in by_name {
        let says = format!("places={{{}: {place}}}: a dict is wanted", name.repr()?);
        let place = place.cast_into::<PyDict>().map_err(|_| wrong(name.py(), says))?;
        for key in place.keys() {
            known(name.py(), &key.str()?.extract::<String>()?, &COLUMNS[1..])?;
        }
        let text = |key: &str| -> PyResult<Option<String>> {
            let given = place.get_item(key)?.filter(|value| !value.is_none());
            given.map(|value| value.str()?.extract()).transpose()
        };
        let drive = place.get_item("drive")?.filter(|drive| !drive.is_none());
        let drive = drive.map(|drive| drive::reference(&drive)).transpose()?;
        let place = Place { drive, server: text("server")?, bay: text("bay")? };
        found.insert(name.str()?.extract()?, place);
    }
    Ok(found)
}

fn of_table(table: &Bound<'_, PyAny>) -> PyResult<BTreeMap<String, Place>> {
    let py = table.py();
    let mut found = BTreeMap::new();
    for batch in table_in::reader(table)? {
        let batch = batch.map_err(|error| wrong(py, format!("places: {error}")))?;
        for field in batch.schema().fields() {
            known(py, field.name(), &COLUMNS)?;
        }
        let column = |name: &str| {
            table_in::words(&batch, name).map_err(|fault| match fault {
                Fault::Table(says) => wrong(py, format!("places: {says}")),
                fault => fault.raise(py),
            })
        };
        let [traces, drives, servers, bays] = COLUMNS.map(column);
        let (drives, servers, bays) = (drives?, servers?, bays?);
        let traces =
            traces?.ok_or_else(|| wrong(py, "places: the table has no column `trace`".into()))?;
        let of = |column: &Option<Vec<Option<String>>>, row: usize| column.as_ref()?[row].clone();
        for (row, trace) in traces.into_iter().enumerate() {
            let trace =
                trace.ok_or_else(|| wrong(py, format!("places: row {row}: `trace` is null")))?;
            let (drive, server, bay) = (of(&drives, row), of(&servers, row), of(&bays, row));
            found.insert(trace, Place { drive, server, bay });
        }
    }
    Ok(found)
}

/// Err for a column or key that is none of these.
fn known(py: Python<'_>, name: &str, all: &[&str]) -> PyResult<()> {
    if all.contains(&name) {
        return Ok(());
    }
    let says = format!("places: `{name}` is not known; there are {}", all.join(", "));
    Err(wrong(py, says))
}

fn wrong(py: Python<'_>, says: String) -> PyErr {
    argument(says, HELP).raise(py)
}
