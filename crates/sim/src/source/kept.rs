//! The records of a trace that many runs replay: kept in memory, so that its file is read once.
//!
//! A long trace is read again for each run instead: memory must not grow with its length.

use std::sync::Arc;

use freewheel_trace::{Record, TraceError, TraceReader};
use freewheel_units::{SimDuration, SimTime};

/// Most records that are kept: 60 MB of them.
const RECORDS_MAX: usize = 1 << 20;

/// All records of a trace, in the order in which its reader gives them.
#[derive(Debug, Clone)]
pub struct KeptRecords(Arc<Vec<Record>>);

impl KeptRecords {
    /// Records with shorter pauses: the record with a number, and all after it, come earlier by what `cut`
    /// says.
    pub fn with_cuts(&self, mut cut: impl FnMut(usize, &Record) -> SimDuration) -> Self {
        let mut earlier = SimDuration::ZERO;
        Self::from(
            self.0
                .iter()
                .enumerate()
                .map(|(number, record)| {
                    earlier += cut(number, record);
                    let at =
                        |time: SimTime| SimTime::from_ns(time.ns().saturating_sub(earlier.ns()));
                    Record {
                        arrival: at(record.arrival),
                        completion: record.completion.map(at),
                        ..*record
                    }
                })
                .collect::<Vec<Record>>(),
        )
    }
}

impl From<Vec<Record>> for KeptRecords {
    fn from(records: Vec<Record>) -> Self {
        Self(Arc::new(records))
    }
}

/// Takes the records of a first pass over a trace.
#[derive(Debug)]
pub struct RecordKeeper {
    /// None of a trace that is too long.
    records: Option<Vec<Record>>,
    most: usize,
}

impl Default for RecordKeeper {
    fn default() -> Self {
        Self::up_to(RECORDS_MAX)
    }
}

impl RecordKeeper {
    fn up_to(most: usize) -> Self {
        Self { records: Some(Vec::new()), most }
    }

    /// Takes the next record, whichever device it is of.
    pub fn observe(&mut self, record: &Record) {
        let Some(records) = &mut self.records else { return };
        if records.len() == self.most {
            self.records = None;
            return;
        }
        records.push(*record);
    }

    /// The records at the end of the trace. None of a trace with more than 2^20 records.
    pub fn finish(self) -> Option<KeptRecords> {
        Some(KeptRecords::from(self.records?))
    }
}

/// The records of a trace: out of its file, or kept by an earlier pass.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Records {
    /// Out of its file.
    File(Box<TraceReader>),
    Kept {
        records: KeptRecords,
        /// Index of the next one.
        next: usize,
    },
}

impl From<TraceReader> for Records {
    fn from(reader: TraceReader) -> Self {
        Self::File(Box::new(reader))
    }
}

impl From<KeptRecords> for Records {
    fn from(records: KeptRecords) -> Self {
        Self::Kept { records, next: 0 }
    }
}

impl Iterator for Records {
    type Item = Result<Record, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::File(reader) => reader.next(),
            Self::Kept { records, next } => {
                let record = records.0.get(*next)?;
                *next += 1;
                Some(Ok(*record))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use freewheel_trace::OpenOptions;

    use super::*;

    const TRACE: &str = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n\
                         0,R,0,4096,0,10\n5,W,8192,512,1,\n5,F,0,0,0,40\n9,T,4096,4096,0,\n";

    fn reader() -> TraceReader {
        TraceReader::from_reader("test", TRACE.as_bytes(), &OpenOptions::default()).unwrap()
    }

    fn kept_up_to(most: usize) -> Option<KeptRecords> {
        let mut keeper = RecordKeeper::up_to(most);
        reader().for_each(|record| keeper.observe(&record.unwrap()));
        keeper.finish()
    }

    #[test]
    fn kept_records_match_file_each_time() {
        let kept = kept_up_to(4).unwrap();
        let of = |records: Records| records.map(|record| record.unwrap()).collect::<Vec<_>>();
        let read = of(reader().into());
        assert_eq!(read.len(), 4);
        for _ in 0..2 {
            assert_eq!(of(kept.clone().into()), read);
        }
    }

    #[test]
    fn kept_records_shift_with_cut_pauses() {
        let kept = kept_up_to(4).unwrap();
        let cut = |number, record: &Record| {
            assert_eq!(record.arrival.ns(), [0, 5, 5, 9][number]);
            SimDuration::from_ns([0, 3, 0, 4][number])
        };
        let records = Records::from(kept.with_cuts(cut)).map(Result::unwrap);
        let times = records.map(|of| (of.arrival.ns(), of.completion.map(SimTime::ns)));
        let expected = [(0, Some(10)), (2, None), (2, Some(37)), (2, None)];
        assert_eq!(times.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn kept_nothing_of_longer_trace() {
        assert!(kept_up_to(3).is_none());
    }
}
