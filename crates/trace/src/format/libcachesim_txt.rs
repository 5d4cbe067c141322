//! libCacheSim's text: the number of an object a line.
//!
//! Source: libCacheSim's description of its formats (`txt`). The objects have no size, so that each takes
//! the same room; here it is 4 KiB. A trace has neither times nor operations: every request is a read at
//! time 0. The text on objects in `libcachesim` holds here too.

use super::libcachesim::{ObjectRequest, Placer};
use super::{Clock, Format, ObjectPlaces, Row, Timing};
use crate::fault::Fault;
use crate::record::Record;
use crate::scan::Token;
use crate::source::{LineDecoder, LineSource, most_lines_parse, parsed_lines};
use freewheel_units::{BLOCK_BYTES, Op};
use std::collections::BTreeSet;

/// The size of every object, 4 KiB, which the trace does not say.
const OBJECT_BLOCKS: u64 = 8;

pub(super) const ROW: Row = Row {
    format: Format::LibcachesimTxt,
    name: "libcachesim-txt",
    description: "libCacheSim's text, for caches only: number of an object (as of 4 KiB); no times",
    rebased: false,
    clock: Clock::FromStart,
    timing: Timing::None,
    unit: None,
    may_be_objects: false,
    detect: |head| most_lines_parse(head, &mut LibcachesimTxt::default()) && comes_again(head),
    open: Some(|input, _| {
        Ok(Box::new(LineSource::new(input.into_stream(), LibcachesimTxt::default())))
    }),
};

/// True if an object comes again: numbers that never do are a list of something else.
fn comes_again(head: &[u8]) -> bool {
    let mut objects = BTreeSet::new();
    let records = parsed_lines(head, &mut LibcachesimTxt::default());
    records.iter().any(|record| !objects.insert(record.start))
}

struct LibcachesimTxt {
    placer: Placer,
}

impl Default for LibcachesimTxt {
    fn default() -> Self {
        // A number may be as large as any.
        Self { placer: Placer::new(Some(ObjectPlaces::new(OBJECT_BLOCKS, u64::MAX))) }
    }
}

impl LineDecoder for LibcachesimTxt {
    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let object = Token { name: "obj_id", text: line }.number()?.value;
        ObjectRequest {
            clock_time: 0,
            obj_id: object,
            obj_size: OBJECT_BLOCKS * BLOCK_BYTES,
            op: Op::Read,
            tenant: 0,
        }
        .record(&mut self.placer)
    }
}
