//! Jobs on a Dask cluster, by way of the Python package: the command is a program of Rust, and Dask is one of
//! Python.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::Value;

use crate::failure::Failure;
use crate::itself;
use crate::progress::Bars;

/// Python of the package, unless the command was started by one.
const PYTHON: &str = "FREEWHEEL_PYTHON";

/// Runs the pending parts of a job on the cluster whose scheduler has this address. Their rows go into the job's
/// journal. `job` is what `freewheel._dask` reads; `task` names the bar.
pub fn fill(address: &str, mut job: Value, bars: &Bars, task: &str) -> Result<(), Failure> {
    job["address"] = address.into();
    job["version"] = env!("CARGO_PKG_VERSION").into();
    let mut command = itself::python(PYTHON);
    command.args(["-m", "freewheel._dask"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| no_python(&error.to_string()))?;
    if let Some(mut input) = child.stdin.take() {
        // A child that has ended already says why below.
        let _ = input.write_all(job.to_string().as_bytes());
    }
    let mut says = None;
    let lines = child.stdout.take().into_iter().flat_map(|output| BufReader::new(output).lines());
    for line in lines.map_while(Result::ok) {
        let amount = line.split_once(' ').and_then(|(done, total)| {
            Some((done.parse::<u64>().ok()?, total.parse::<u64>().ok()?))
        });
        match amount {
            Some((done, total)) => bars.set(task, done, total),
            None => says = line.strip_prefix("error ").map(str::to_owned).or(says),
        }
    }
    let ended = child.wait().map_err(Failure::failed)?;
    match says {
        Some(says) => Err(Failure::failed(format!("Dask at {address}: {says}"))
            .with_help("call again with the same output: what is done is not run again")),
        None if ended.success() => Ok(()),
        None => Err(no_python(&ended.to_string())),
    }
}

fn no_python(says: &str) -> Failure {
    Failure::failed(format!("the Python package did not run: {says}")).with_help(format!(
        "--dask needs it: pip install '.[dask]', and {PYTHON} names the Python that has it"
    ))
}
