//! Reading a trace through with a progress bar.

use freewheel::trace::{Damaged, InfoCollector, Record, TraceError, TraceInfo, TraceReader};
use freewheel::units::grouped;

use crate::output;
use crate::progress::Bars;

/// What the bar of the first pass over a trace is called.
pub const READING: &str = "reading the trace";
/// Records between two reports of progress.
const REPORT_RECORDS: u64 = 1 << 16;

/// Shows every record to `observe`, and on stderr how far it is and what was passed over.
pub fn read_through(
    reader: &mut TraceReader,
    mut observe: impl FnMut(&Record),
) -> Result<(), TraceError> {
    let bars = Bars::default();
    let mut records = 0u64;
    while let Some(record) = reader.next().transpose()? {
        observe(&record);
        records += 1;
        if records.is_multiple_of(REPORT_RECORDS) {
            report(reader, &bars, READING);
        }
    }
    drop(bars);
    note_skipped(reader);
    Ok(())
}

/// Counts, span, bytes and footprint of the rest of `reader`.
pub fn info(reader: &mut TraceReader) -> Result<TraceInfo, TraceError> {
    let collector = InfoCollector::new(reader.format());
    collect(reader, collector)
}

/// The same without the footprint, which takes memory that grows with it.
pub fn info_without_footprint(reader: &mut TraceReader) -> Result<TraceInfo, TraceError> {
    let collector = InfoCollector::without_footprint(reader.format());
    collect(reader, collector)
}

fn collect(
    reader: &mut TraceReader,
    mut collector: InfoCollector,
) -> Result<TraceInfo, TraceError> {
    read_through(reader, |record| collector.observe(record))?;
    Ok(collector.finish().as_read_by(reader))
}

/// How far the reader is in its file.
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
        note_damaged(&damaged);
    }
}

/// What a trace that is read in part leaves out.
pub fn note_damaged(damaged: &Damaged) {
    output::note(&format!("{damaged}; {}", damaged.damage.consequence()));
}
