//! Reading a trace through with a progress bar.

use freewheel::TraceReader;
use freewheel::measures::grouped;

use crate::output;
use crate::progress::Bars;

/// Name of the bar of the first pass over a trace.
pub const READING: &str = "reading the trace";

/// Has `read` read a trace to its end; shows on stderr how far it is, and what was passed over.
pub fn watched<T, E>(
    reader: &mut TraceReader,
    read: impl FnOnce(&mut TraceReader, &mut dyn FnMut(&TraceReader)) -> Result<T, E>,
) -> Result<T, E> {
    let bars = Bars::default();
    let done = read(reader, &mut |reader| report(reader, &bars, READING))?;
    drop(bars);
    note_skipped(reader);
    Ok(done)
}

/// Reports the progress of the reader in its file.
pub fn report(reader: &TraceReader, bars: &Bars, task: &str) {
    bars.set(task, reader.compressed_bytes_read(), reader.compressed_bytes_total());
}

fn note_skipped(reader: &TraceReader) {
    if let Some(first) = reader.first_skipped() {
        output::note(&format!(
            "{} malformed records skipped; the first: {first}",
            grouped(reader.skipped())
        ));
    }
    if let Some(damaged) = reader.damaged() {
        output::note(&damaged.in_words());
    }
}
