//! Traces of block I/O: formats, how to read them, their properties, and from one form to another.

use std::io::Read;
use std::path::Path;

use freewheel_sim::config::TraceWorkload;
use freewheel_sim::experiment::Progress;
use freewheel_trace::{TraceError, TraceInfo, TraceReader};

use crate::Error;

pub use freewheel_sim::fidelity::ReplayFidelity;
pub use freewheel_trace::{
    Character, Clock, ConvertOptions, Converted, Format, Layer, Numbers, OpenOptions, SpooledTrace,
    TimeUnit, Timing, TraceRow,
};

/// Writes a trace to a file whose name ends in `.parquet`, `.csv`, `.csv.zst` or `.csv.gz`.
///
/// `report` receives the reader now and then, for a progress bar.
///
/// ```
/// use freewheel::convert_trace;
/// use freewheel::traces::ConvertOptions;
///
/// # let folder = tempfile::tempdir()?;
/// # let (input, output) = (folder.path().join("mine.csv"), folder.path().join("mine.parquet"));
/// let text = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n0,R,4096,512,0,\n";
/// std::fs::write(&input, text)?;
/// let converted = convert_trace(&input, &output, &ConvertOptions::default(), |_| {})?;
/// assert_eq!(converted.records, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn convert_trace(
    input: &Path,
    output: &Path,
    options: &ConvertOptions,
    report: impl FnMut(&TraceReader),
) -> Result<Converted, Error> {
    Ok(freewheel_trace::convert(input, output, options, report)?)
}

/// Writes the trace that comes on `stream`, in any format but Parquet, as [`convert_trace`] does. Messages
/// call the trace `name`.
pub fn convert_stream(
    name: &str,
    stream: impl Read + Send + 'static,
    output: &Path,
    options: &ConvertOptions,
    report: impl FnMut(&TraceReader),
) -> Result<Converted, Error> {
    Ok(freewheel_trace::convert_stream(name, stream, output, options, report)?)
}

/// Writes rows as a trace to `output`, whose name ends as for [`convert_trace`], and gives their number. A row
/// that is no request is found when the trace is read.
///
/// Errors: the first of the rows, and what the system says.
pub fn write_trace<E: From<Error>>(
    output: &Path,
    rows: impl Iterator<Item = Result<TraceRow, E>>,
) -> Result<u64, E> {
    let rows = rows.map(|row| row.map_err(Carried));
    freewheel_trace::write_rows(output, rows).map_err(|Carried(error)| error)
}

/// An error of the caller's.
struct Carried<E>(E);

impl<E: From<Error>> From<TraceError> for Carried<E> {
    fn from(error: TraceError) -> Self {
        Self(Error::from(error).into())
    }
}

/// Replays a trace with this first pass by dependence, each request taking its recorded time, and says how
/// exactly the arrivals come back. `progress` gets done and total.
///
/// Errors: a trace without completions or fine times, or without the device that the workload names.
///
/// ```
/// use freewheel::experiments::TraceWorkload;
/// use freewheel::traces::{OpenOptions, replay_fidelity};
/// use freewheel::{TraceInfo, TraceReader};
///
/// let file = "../../data/recorded/sqlite-ext4.csv.zst".into();
/// let workload = TraceWorkload { file, ..TraceWorkload::default() };
/// let mut reader = TraceReader::open(&workload.file, &OpenOptions::default())?;
/// let info = TraceInfo::scan(&mut reader)?;
/// let fidelity = replay_fidelity(&workload, &info, &mut |_, _| {})?;
/// assert_eq!(fidelity.displaced.requests, 0);
/// # Ok::<(), freewheel::Error>(())
/// ```
pub fn replay_fidelity(
    workload: &TraceWorkload,
    trace: &TraceInfo,
    progress: Progress<'_>,
) -> Result<ReplayFidelity, Error> {
    Ok(freewheel_sim::fidelity::replay_fidelity(workload, trace, progress)?)
}
