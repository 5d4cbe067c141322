//! Counts of a scheduler in front of a drive.

use serde::Serialize;

use super::clock::Observed;

/// Gaps, commands and prediction errors so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Account {
    /// Gaps between foreground requests, by prediction.
    pub gaps: u64,
    /// Gaps in which something was done.
    pub gaps_used: u64,
    /// Rotational latency in them.
    pub potential_ns: u128,
    /// Commands of free work under the head in them, as planned: wanted blocks, and the holes that are
    /// read with them in one command or before the request that they are merged with. What was planned
    /// and given up after a surprise counts too.
    pub transfer_ns: u128,
    /// Longer ways than the foreground's alone, as planned.
    pub extra_seek_ns: i128,
    /// Wanted blocks of 512 B that were moved: without holes.
    pub free_blocks: u64,
    /// Blocks of them that were written.
    #[serde(skip_serializing_if = "is_zero")]
    pub free_written_blocks: u64,
    /// Commands of free work alone.
    pub commands: u64,
    /// Foreground commands that free work was merged with.
    pub merged: u64,
    /// Commands that ended elsewhere than the media would have: buffer hits, internal activity.
    pub surprises: u64,
    /// Commands whose head time was predicted: not behind a surprise.
    pub predicted: u64,
    /// Predicted commands whose head time was within 50 us of its prediction.
    pub within_50us: u64,
    /// Predicted commands whose head time was within 150 us of its prediction.
    pub within_150us: u64,
    /// Commands that took whole turns more.
    pub late: u64,
    /// Foreground commands behind free work that were late, where only the way from there was off: the loss
    /// of an earlier command of the gap was known by then.
    pub late_behind_free: u64,
    /// Foreground commands behind free work that ended later than predicted without it, from where the
    /// head was when the gap began, by more than a sixteenth of a turn. Some would have been late
    /// alone: a seek on the direct way may be off as well.
    pub delayed: u64,
    /// By how much together.
    pub delay_ns: u128,
    /// Commands that took whole turns less.
    pub early: u64,
    /// Reads of clients that free work has taken buffer hits from, by their chances.
    pub lost_hits: u64,
    /// Sum of the time that they took longer, and hits that waited for free work.
    pub lost_hit_ns: u128,
    /// Gaps that were left to the drive, as free work in them cost more than the budget allows.
    pub gaps_left: u64,
    /// Writes of parts of sectors, where these are known: each takes a read and a turn more.
    #[serde(skip_serializing_if = "is_zero")]
    pub part_sector_writes: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Account {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            gaps: self.gaps + other.gaps,
            gaps_used: self.gaps_used + other.gaps_used,
            potential_ns: self.potential_ns + other.potential_ns,
            transfer_ns: self.transfer_ns + other.transfer_ns,
            extra_seek_ns: self.extra_seek_ns + other.extra_seek_ns,
            free_blocks: self.free_blocks + other.free_blocks,
            free_written_blocks: self.free_written_blocks + other.free_written_blocks,
            commands: self.commands + other.commands,
            merged: self.merged + other.merged,
            surprises: self.surprises + other.surprises,
            predicted: self.predicted + other.predicted,
            within_50us: self.within_50us + other.within_50us,
            within_150us: self.within_150us + other.within_150us,
            late: self.late + other.late,
            late_behind_free: self.late_behind_free + other.late_behind_free,
            delayed: self.delayed + other.delayed,
            delay_ns: self.delay_ns + other.delay_ns,
            early: self.early + other.early,
            lost_hits: self.lost_hits + other.lost_hits,
            lost_hit_ns: self.lost_hit_ns + other.lost_hit_ns,
            gaps_left: self.gaps_left + other.gaps_left,
            part_sector_writes: self.part_sector_writes + other.part_sector_writes,
        }
    }

    /// Counts a command whose head time was predicted, by its error.
    pub(crate) fn count(&mut self, observed: &Observed, error_ns: u64, is_behind_free: bool) {
        self.predicted += 1;
        self.within_50us += u64::from(error_ns <= 50_000);
        self.within_150us += u64::from(error_ns <= 150_000);
        self.late += u64::from(observed.turns > 0);
        self.late_behind_free += u64::from(observed.turns > 0 && is_behind_free);
        self.early += u64::from(observed.turns < 0);
    }
}
