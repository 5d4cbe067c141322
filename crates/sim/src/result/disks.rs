//! Use of each of several disks on which files lie.

use freewheel_model::stats::Level;
use freewheel_model::striping::Piece;
use freewheel_units::{SimDuration, SimTime};
use serde::Serialize;

use crate::device::Work;

/// Use of a disk in a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DiskUse {
    /// Share of the time in which it was busy.
    pub utilisation: f64,
    /// Share of the time in which it moved the arm.
    pub seek: f64,
    /// Share of the time in which it waited for rotation.
    pub rotate: f64,
    /// Share of the time in which data passed its heads.
    pub transfer: f64,
    /// Share of the time in which it wrote back its buffer.
    pub writing_back: f64,
    /// Mean number of pieces of requests at the disk, waiting or served.
    pub queue_mean: f64,
    /// Most of them at once.
    pub queue_max: u64,
    /// Pieces of requests that reached it, copies with them, a second.
    pub pieces_per_second: f64,
    /// Heat of the disk: bytes that these pieces read and wrote, a second.
    pub bytes_per_second: f64,
}

/// Sums of one disk over the part of a run that counts.
#[derive(Debug, Default)]
struct DiskTally {
    queue: Level,
    pieces: u64,
    blocks: u64,
}

/// Sums of all disks.
pub(super) struct DiskTallies(Vec<DiskTally>);

impl DiskTallies {
    pub(super) fn new(disks: usize) -> Self {
        Self((0..disks).map(|_| DiskTally::default()).collect())
    }

    /// Sums begin anew; what is at the disks stays there.
    pub(super) fn begin(&mut self, now: SimTime) {
        for disk in &mut self.0 {
            let value = disk.queue.value();
            *disk = DiskTally::default();
            disk.queue.set(now, value);
        }
    }

    #[inline]
    pub(super) fn arrived(&mut self, now: SimTime, piece: &Piece) {
        let disk = &mut self.0[piece.arm as usize];
        disk.queue.set(now, disk.queue.value() + 1);
        disk.pieces += 1;
        disk.blocks += piece.blocks.get();
    }

    #[inline]
    pub(super) fn done(&mut self, now: SimTime, number: u32) {
        let queue = &mut self.0[number as usize].queue;
        queue.set(now, queue.value() - 1);
    }

    /// Results from `start` to `now`; `work` is that of each disk in this time.
    pub(super) fn results(&self, start: SimTime, now: SimTime, work: &[Work]) -> Vec<DiskUse> {
        let elapsed = now - start;
        let seconds = elapsed.as_secs_f64();
        self.0
            .iter()
            .zip(work)
            .map(|(disk, work)| DiskUse {
                utilisation: share(work.busy, elapsed),
                seek: share(work.head_time.seek, elapsed),
                rotate: share(work.head_time.rotate, elapsed),
                transfer: share(work.head_time.transfer, elapsed),
                writing_back: share(work.destaging, elapsed),
                queue_mean: disk.queue.area(now) as f64 / elapsed.ns().max(1) as f64,
                queue_max: disk.queue.max(),
                pieces_per_second: per_second(disk.pieces as f64, seconds),
                bytes_per_second: per_second(disk.blocks as f64 * 512.0, seconds),
            })
            .collect()
    }
}

fn per_second(count: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { count / seconds } else { 0.0 }
}

fn share(time: SimDuration, elapsed: SimDuration) -> f64 {
    time.ns() as f64 / elapsed.ns().max(1) as f64
}
