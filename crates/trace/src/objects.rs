//! Uses of objects in the order of a trace's file.

use crate::reader::{REPORT_RECORDS, Report, TraceReader};
use crate::record::Record;
use crate::{Format, TraceError};
use freewheel_units::SimTime;

/// A use of an object, as a cache simulator counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectUse {
    /// Device or tenant of the object.
    pub device: u32,
    /// Number of the object. In a trace of a disk, that of the first block.
    pub number: u64,
    /// Size in bytes.
    pub bytes: u64,
}

impl ObjectUse {
    fn of(record: &Record, format: Format) -> Self {
        let (device, number) = (record.device, record.start.get());
        // Where numbers may be those of objects, there is the exact size in place of a completion.
        let exact = record.completion.filter(|_| format.may_hold_objects());
        let bytes = exact.map_or_else(|| record.bytes().get(), SimTime::ns);
        Self { device, number, bytes }
    }
}

impl TraceReader {
    /// Shows every read and write to `observe` as the use of an object, in the order of the file, with number and size
    /// as they stand there. Deletions, trims and flushes are left out. `report` is called every 65,536 uses.
    pub fn objects(
        &mut self,
        mut observe: impl FnMut(ObjectUse),
        report: Report<'_>,
    ) -> Result<(), TraceError> {
        let (mut uses, format) = (0u64, self.format());
        self.begin_objects()?;
        while let Some(record) = self.next_object()? {
            if record.op.moves_data() {
                observe(ObjectUse::of(&record, format));
            }
            uses += 1;
            if uses.is_multiple_of(REPORT_RECORDS) {
                report(self);
            }
        }
        Ok(())
    }
}
