//! Sums over the rotational gaps of an arm.

use freewheel_freeblock::FreeRun;
use freewheel_model::drive::Access;
use freewheel_units::Op;
use serde::Serialize;

/// Sums over rotational gaps: their potential and its use. While no head is late, `transfer_ns +
/// extra_seek_ns + unused_ns` is `potential_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[allow(missing_docs)]
pub struct FreeTime {
    /// Rotational latency of the foreground before each of its legs: the potential free bandwidth
    /// in time (osdi00 section 3).
    pub potential_ns: u128,
    /// Free runs under the head.
    pub transfer_ns: u128,
    /// Seeks, settling and changes between reading and writing beyond those of the foreground
    /// alone. A detour may be shorter than the direct way, as when a read spares a write its
    /// settling.
    pub extra_seek_ns: i128,
    /// Latency that is left.
    pub unused_ns: u128,
    /// Time by which foreground accesses ended later than without free work, had they begun at the same
    /// time.
    pub foreground_delay_ns: u128,
    pub gaps: u64,
    /// Gaps in which something was done.
    pub gaps_used: u64,
    /// Gaps behind which the head was late for the foreground's data. An access may make up for it
    /// on its further tracks.
    pub gaps_late: u64,
    pub runs: u64,
    /// Bytes read for free.
    pub read_bytes: u64,
    /// Bytes written for free.
    pub write_bytes: u64,
}

impl FreeTime {
    /// Sums of both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            potential_ns: self.potential_ns + other.potential_ns,
            transfer_ns: self.transfer_ns + other.transfer_ns,
            extra_seek_ns: self.extra_seek_ns + other.extra_seek_ns,
            unused_ns: self.unused_ns + other.unused_ns,
            foreground_delay_ns: self.foreground_delay_ns + other.foreground_delay_ns,
            gaps: self.gaps + other.gaps,
            gaps_used: self.gaps_used + other.gaps_used,
            gaps_late: self.gaps_late + other.gaps_late,
            runs: self.runs + other.runs,
            read_bytes: self.read_bytes + other.read_bytes,
            write_bytes: self.write_bytes + other.write_bytes,
        }
    }

    pub(crate) fn count(&mut self, run: &FreeRun, access: &Access) {
        self.runs += 1;
        self.transfer_ns += u128::from(access.transfer.ns());
        self.extra_seek_ns += i128::from(access.seek.ns());
        self.unused_ns += u128::from(access.rotate.ns());
        let bytes = if run.op == Op::Write { &mut self.write_bytes } else { &mut self.read_bytes };
        *bytes += u64::from(run.blocks) * 512;
    }
}
