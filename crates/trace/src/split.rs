//! The devices of a trace as traces of their own.
//!
//! One pass, in memory that grows with the number of devices and not with that of requests.
//! Non-goals: compression: the files are read some times and then removed.

use std::collections::BTreeMap;
use std::fs::OpenOptions as FileOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::{TraceError, path_text};
use crate::format::freewheel_csv::HEADER;
use crate::reader::REPORT_RECORDS;
use crate::write::append_line;
use crate::{OpenOptions, TraceReader};

/// Text of a device that is gathered before its file is opened: hundreds of devices would need as many open
/// files.
const CHUNK_BYTES: usize = 64 << 10;

/// Device of a trace, as a trace of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceTrace {
    /// Number of the device.
    pub device: u32,
    /// Its trace, in Freewheel CSV.
    pub path: PathBuf,
}

/// Writes each device of the trace at `input` into the existing `folder`, as `device-N.csv`, in order of the
/// number. Files of that name are replaced. `report` receives the reader now and then.
pub fn split_devices(
    input: &Path,
    folder: &Path,
    options: &OpenOptions,
    mut report: impl FnMut(&TraceReader),
) -> Result<Vec<DeviceTrace>, TraceError> {
    let mut reader = TraceReader::open(input, options)?;
    reader.prepare(&mut report)?;
    let mut devices: BTreeMap<u32, DeviceText> = BTreeMap::new();
    let mut seen = 0;
    while let Some(record) = reader.next() {
        let record = record?;
        let device = devices.entry(record.device).or_insert_with(|| {
            DeviceText::new(folder.join(format!("device-{}.csv", record.device)))
        });
        append_line(&mut device.text, &record)
            .map_err(|error| TraceError::write(&path_text(&device.path), error))?;
        if device.text.len() >= CHUNK_BYTES {
            device.write()?;
        }
        seen += 1;
        if seen % REPORT_RECORDS == 0 {
            report(&reader);
        }
    }
    let traces = devices.into_iter().map(|(device, mut text)| {
        text.write()?;
        Ok(DeviceTrace { device, path: text.path })
    });
    traces.collect()
}

/// Lines of a device that are not in its file yet.
struct DeviceText {
    path: PathBuf,
    text: Vec<u8>,
    is_begun: bool,
}

impl DeviceText {
    fn new(path: PathBuf) -> Self {
        Self { path, text: format!("{HEADER}\n").into_bytes(), is_begun: false }
    }

    fn write(&mut self) -> Result<(), TraceError> {
        let options = if self.is_begun {
            FileOptions::new().append(true).clone()
        } else {
            FileOptions::new().write(true).create(true).truncate(true).clone()
        };
        let written = options.open(&self.path).and_then(|mut file| file.write_all(&self.text));
        written.map_err(|error| TraceError::write(&path_text(&self.path), error))?;
        self.text.clear();
        self.is_begun = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::Op;

    use super::*;
    use crate::{Record, TraceRow, write_rows};

    fn records(path: &Path) -> Vec<Record> {
        let reader = TraceReader::open(path, &OpenOptions::default()).unwrap();
        reader.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn devices_keep_requests_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("all.parquet");
        // Many rows of one device, so that its file is opened several times.
        let row = |number: u64| TraceRow {
            arrival_ns: 1_000 * number,
            op: if number.is_multiple_of(3) { Op::Write } else { Op::Read },
            device: if number.is_multiple_of(10) { 7 } else { 2 },
            start_block: 8 * number,
            blocks: 8,
            completion_ns: number.is_multiple_of(2).then_some(1_000 * number + 500),
            fua: number.is_multiple_of(3),
        };
        let rows = (0..10_000).map(|number| Ok::<_, TraceError>(row(number)));
        write_rows(&input, rows).unwrap();
        let split = split_devices(&input, folder.path(), &OpenOptions::default(), |_| {}).unwrap();
        let devices: Vec<u32> = split.iter().map(|of| of.device).collect();
        assert_eq!(devices, [2, 7]);
        let all = records(&input);
        for DeviceTrace { device, path } in split {
            let wanted = all.iter().filter(|record| record.device == device);
            let wanted: Vec<Record> =
                wanted.map(|record| Record { device: 0, ..*record }).collect();
            assert!(records(&path) == wanted, "{device}");
        }
    }
}
