//! A trace as a snapshot: each device is a disk, and its fragments are the files.

use std::collections::BTreeMap;

use freewheel_sim::config::{TraceWorkload, open};
use freewheel_trace::Record;
use freewheel_units::{BLOCK_BYTES, Bytes, Op};

use super::error::PlanError;
use super::snapshot::{DiskEntry, FileEntry, Snapshot};
use crate::trace_runs::first_pass;

/// Requests that begin in a fragment.
#[derive(Debug, Clone, Copy, Default)]
struct Use {
    requests: u64,
    reads: u64,
    blocks: u64,
}

/// Reads a trace. A request counts for the fragment in which it begins. Fragments that nobody uses are
/// files, too: they take room.
pub(super) fn of_trace(
    trace: &TraceWorkload,
    drive: &str,
    fragment: Bytes,
    progress: impl Fn(u64, u64),
) -> Result<Snapshot, PlanError> {
    let blocks_each = (fragment.get() / BLOCK_BYTES).max(1);
    let mut devices: BTreeMap<u32, BTreeMap<u64, Use>> = BTreeMap::new();
    let (mut first_ns, mut last_ns) = (u64::MAX, 0);
    let observe = |record: &Record| {
        if !matches!(record.op, Op::Read | Op::Write) {
            return;
        }
        first_ns = first_ns.min(record.arrival.ns());
        last_ns = last_ns.max(record.arrival.ns());
        let fragments = devices.entry(record.device).or_default();
        let end = record.start.get() + record.blocks.get().max(1);
        // The last fragment that the request reaches is there, used or not.
        fragments.entry((end - 1) / blocks_each).or_default();
        let used = fragments.entry(record.start.get() / blocks_each).or_default();
        used.requests += 1;
        used.reads += u64::from(record.op == Op::Read);
        used.blocks += record.blocks.get();
    };
    first_pass(trace, open(trace)?, observe, progress)?;
    let span_s = last_ns.saturating_sub(first_ns) as f64 / 1e9;
    if span_s <= 0.0 {
        let file = trace.file.display();
        let message = format!("{file}: its reads and writes have no two times, which tell no rate");
        return Err(PlanError::Option { message });
    }
    let bytes_each = Bytes::new(blocks_each * BLOCK_BYTES);
    let mut snapshot = Snapshot { disks: Vec::new(), files: Vec::new(), files_csv: None };
    for (device, fragments) in devices {
        let disk = format!("device {device}");
        let count = fragments.keys().max().map_or(0, |last| last + 1);
        for number in 0..count {
            let used = fragments.get(&number).copied().unwrap_or_default();
            let mean =
                (used.blocks * BLOCK_BYTES).checked_div(used.requests).unwrap_or(BLOCK_BYTES);
            let at = Bytes::new(number * bytes_each.get()).human();
            snapshot.files.push(FileEntry {
                name: format!("{disk} at {at}"),
                size: bytes_each,
                rate: used.requests as f64 / span_s,
                request: Some(Bytes::new(mean.max(BLOCK_BYTES))),
                reads: used.reads as f64 / used.requests.max(1) as f64,
                disk: Some(disk.clone()),
            });
        }
        let drive = drive.to_owned();
        snapshot.disks.push(DiskEntry { name: disk, drive, size: None, path: None });
    }
    Ok(snapshot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_where_it_begins_and_unused_fragments_take_room() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("two.csv");
        let text = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n\
            0,R,0,4096,0,1\n1000000000,W,4096,8192,0,1000000001\n\
            2000000000,R,3145728,4096,0,2000000001\n";
        std::fs::write(&file, text).unwrap();
        let trace = TraceWorkload { file, ..TraceWorkload::default() };
        let snapshot = of_trace(&trace, "tr96", Bytes::new(1 << 20), |_, _| {}).unwrap();
        assert_eq!(snapshot.disks.len(), 1);
        let of = |at: usize| {
            let file = &snapshot.files[at];
            (file.rate, file.reads, file.request.unwrap().get(), file.size.get())
        };
        assert_eq!(of(0), (1.0, 0.5, 6144, 1 << 20));
        assert_eq!((of(1).0, of(2).0, of(3)), (0.0, 0.0, (0.5, 1.0, 4096, 1 << 20)));
        assert_eq!(snapshot.files[3].name, "device 0 at 3.00 MiB");
    }
}
