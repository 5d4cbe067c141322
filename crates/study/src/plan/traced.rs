//! A trace as a snapshot: each device is a disk, and its fragments are the files.

use std::collections::BTreeMap;
use std::path::Path;

use freewheel_array::plan::{DeviceTime, LoadTime, LoadTimes};
use freewheel_sim::config::{TraceWorkload, open};
use freewheel_sim::library;
use freewheel_trace::Record;
use freewheel_units::{BLOCK_BYTES, Blocks, Bytes, Op};

use super::error::{PlanError, wrong};
use super::snapshot::{DiskEntry, FileEntry, Snapshot};
use crate::trace_runs::first_pass;

/// Fragments of a trace at most: each is a file of the plan.
const FRAGMENTS_MAX: u64 = 1_000_000;
/// Rates of days do not depend on where in a step of its clock a request lies.
const ANY_SEED: u64 = 1;
/// A fragment has at least this many bytes.
const FRAGMENT_MIN: Bytes = Bytes::from_kib(4);

/// Requests that begin in a fragment.
#[derive(Debug, Clone, Copy, Default)]
struct Use {
    requests: u64,
    reads: u64,
    blocks: u64,
}

#[derive(Debug)]
struct Device {
    fragments: BTreeMap<u64, Use>,
    /// The end of the last block that is used.
    end: u64,
    time: DeviceTime,
}

impl Device {
    fn new() -> Self {
        Self { fragments: BTreeMap::new(), end: 0, time: DeviceTime::default() }
    }

    fn count(&mut self, record: &Record, each: u64) {
        let used = self.fragments.entry(record.start.get() / each).or_default();
        used.requests += 1;
        used.reads += u64::from(record.op == Op::Read);
        used.blocks += record.blocks.get();
    }

    fn requests(&self) -> u64 {
        self.fragments.values().map(|used| used.requests).sum()
    }
}

/// A trace as a snapshot.
pub(super) struct Traced {
    pub snapshot: Snapshot,
    pub times: LoadTimes,
}

/// Reads a trace. A request counts for the fragment in which it begins. Fragments without requests are
/// files, too: they take room.
pub(super) fn of_trace(
    trace: &TraceWorkload,
    drive: &str,
    fragment: Bytes,
    load_time: LoadTime,
    progress: impl Fn(u64, u64),
) -> Result<Traced, PlanError> {
    if fragment < FRAGMENT_MIN {
        let [is, least] = [fragment, FRAGMENT_MIN].map(Bytes::human);
        return wrong(format!("--fragment is {is}: at least {least} are needed"));
    }
    let capacity = library::drive(drive)?.1.blocks();
    let each = fragment.get() / BLOCK_BYTES;
    let mut devices: BTreeMap<u32, Device> = BTreeMap::new();
    read(trace, &progress, |record| {
        let device = devices.entry(record.device).or_insert_with(Device::new);
        device.time.observe(record.arrival.ns());
        device.end = device.end.max(record.start.get() + record.blocks.get().max(1));
        device.count(record, each);
    })?;
    check_fit(trace, &devices, drive, capacity, fragment)?;
    let known: Vec<(u32, DeviceTime)> =
        devices.iter().map(|(&number, device)| (number, device.time)).collect();
    let mut times = LoadTimes::new(&known, load_time).or_else(|why| {
        let file = trace.file.display();
        wrong(format!("{file}: {why}"))
    })?;
    if times.leaves_requests_out() {
        // Which time is common is known only when everything was read.
        check_rereadable(&trace.file)?;
        devices.values_mut().for_each(|device| device.fragments.clear());
        read(trace, &progress, |record| {
            if times.counts(record.arrival.ns()) {
                let device = devices.get_mut(&record.device).expect("seen in the first pass");
                device.count(record, each);
            }
        })?;
    }
    for (of_disk, device) in times.disks.iter_mut().zip(devices.values()) {
        of_disk.requests = device.requests();
    }
    let mut snapshot = Snapshot { disks: Vec::new(), files: Vec::new(), files_csv: None };
    for ((number, device), time) in devices.iter().zip(&times.disks) {
        add(&mut snapshot, &format!("device {number}"), device, time.load_span_s, (each, capacity));
        let drive = drive.to_owned();
        let name = format!("device {number}");
        snapshot.disks.push(DiskEntry { name, drive, size: None, path: None });
    }
    Ok(Traced { snapshot, times })
}

/// Err for what cannot be read twice.
fn check_rereadable(file: &Path) -> Result<(), PlanError> {
    match file.metadata() {
        Ok(there) if !there.is_file() && !there.is_dir() => wrong(format!(
            "{}: is a pipe or a device, and loads over the time that its devices have in common need it twice: save it as a file first, or give --load-time whole",
            file.display()
        )),
        _ => Ok(()),
    }
}

/// Shows each read and write of a trace to `observe`.
fn read(
    trace: &TraceWorkload,
    progress: &impl Fn(u64, u64),
    mut observe: impl FnMut(&Record),
) -> Result<(), PlanError> {
    first_pass(
        trace,
        open(trace, ANY_SEED)?,
        |record: &Record| {
            if matches!(record.op, Op::Read | Op::Write) {
                observe(record);
            }
        },
        |_| {},
        progress,
    )?;
    Ok(())
}

/// Adds the fragments of a device, with their rates over this time.
fn add(
    snapshot: &mut Snapshot,
    disk: &str,
    device: &Device,
    span_s: f64,
    (each, capacity): (u64, Blocks),
) {
    for fragment in 0..device.end.div_ceil(each) {
        let used = device.fragments.get(&fragment).copied().unwrap_or_default();
        let mean = (used.blocks * BLOCK_BYTES).checked_div(used.requests).unwrap_or(BLOCK_BYTES);
        let start = fragment * each;
        snapshot.files.push(FileEntry {
            name: format!("{disk}, fragment {fragment}"),
            size: Blocks::new(each.min(capacity.get() - start)).bytes(),
            rate: used.requests as f64 / span_s,
            request: Some(Bytes::new(mean.max(BLOCK_BYTES))),
            reads: used.reads as f64 / used.requests.max(1) as f64,
            disk: Some(disk.to_owned()),
        });
    }
}

/// Err for a device that is larger than the drive, and for too many fragments.
fn check_fit(
    trace: &TraceWorkload,
    devices: &BTreeMap<u32, Device>,
    drive: &str,
    capacity: Blocks,
    fragment: Bytes,
) -> Result<(), PlanError> {
    let (file, each) = (trace.file.display(), fragment.get() / BLOCK_BYTES);
    for (number, device) in devices {
        if device.end > capacity.get() {
            let [end, holds] =
                [Blocks::new(device.end), capacity].map(|blocks| blocks.bytes().human_decimal());
            return wrong(format!(
                "{file}: device {number} is used up to {end}, and a {drive} holds {holds}: name a larger --drive"
            ));
        }
    }
    let all: u64 = devices.values().map(|device| device.end.div_ceil(each)).sum();
    if all > FRAGMENTS_MAX {
        return wrong(format!(
            "{file}: {all} fragments of {}: at most {FRAGMENTS_MAX} are planned, so give a larger --fragment",
            fragment.human()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(text: &str) -> (tempfile::TempDir, TraceWorkload) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("two.csv");
        let head = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n";
        std::fs::write(&file, format!("{head}{text}")).unwrap();
        (folder, TraceWorkload { file, ..TraceWorkload::default() })
    }

    fn planned(trace: &TraceWorkload, fragment: u64) -> Result<Traced, PlanError> {
        of_trace(trace, "tr96", Bytes::new(fragment), LoadTime::Common, |_, _| {})
    }

    #[test]
    fn traced_request_counts_at_start() {
        let (_folder, trace) = trace(
            "0,R,0,4096,0,1\n1000000000,W,4096,8192,0,1000000001\n\
            2000000000,R,3145728,4096,0,2000000001\n",
        );
        let snapshot = planned(&trace, 1 << 20).unwrap().snapshot;
        assert_eq!(snapshot.disks.len(), 1);
        let of = |at: usize| {
            let file = &snapshot.files[at];
            (file.rate, file.reads, file.request.unwrap().get(), file.size.get())
        };
        assert_eq!(of(0), (1.0, 0.5, 6144, 1 << 20));
        assert_eq!((of(1).0, of(2).0, of(3)), (0.0, 0.0, (0.5, 1.0, 4096, 1 << 20)));
        assert_eq!(snapshot.files[3].name, "device 0, fragment 3");
    }

    /// A drive is no whole number of fragments, and its last block is used.
    #[test]
    fn traced_last_fragment_ends_with_drive() {
        let end = library::drive("tr96").unwrap().1.blocks().bytes().get();
        let at = |offset: u64| {
            let line =
                |second: u64| format!("{second}000000000,R,{offset},512,0,{second}000000001\n");
            trace(&(line(0) + &line(1)))
        };
        let (_folder, within) = at(end - 512);
        let snapshot = planned(&within, 1 << 30).unwrap().snapshot;
        let sum: u64 = snapshot.files.iter().map(|file| file.size.get()).sum();
        assert_eq!(sum, end);
        let says = |trace: &TraceWorkload, fragment: u64| {
            planned(trace, fragment).err().unwrap().to_string()
        };
        let (_folder, beyond) = at(end);
        assert!(says(&beyond, 1 << 20).contains("name a larger --drive"));
        assert!(says(&within, 512).contains("--fragment is 512 B"));
    }
}
