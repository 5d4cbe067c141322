//! Buffer hits: the price of a gap before it is taken, and what free work has taken from clients' reads.

use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

use super::PredictiveScheduler;
use crate::predict::PLAUSIBLE;
use crate::price::{ReadEnd, Sighting};
use crate::scheduler::command::ForegroundPart;

/// A client's read at the drive.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadAtDrive {
    sighting: Sighting,
    /// Command processing and transfer: the time of a hit, or more.
    hit: SimDuration,
}

/// End of a read.
pub(super) struct ReadReply {
    pub is_hit: bool,
    pub is_behind_free: bool,
    /// Beginning of the gap before it.
    pub begin: SimTime,
    pub ended: SimTime,
    /// Delay that has been counted.
    pub delay: SimDuration,
}

impl PredictiveScheduler {
    /// True if the budget allows the expected cost of free work in a gap to clients.
    pub(super) fn is_worth_its_price(
        &self,
        latency: SimDuration,
        read: Option<(Lbn, SimDuration)>,
    ) -> bool {
        let Some(learner) = &self.learner else { return true };
        learner.is_worth(latency, self.prices.expected_ns(read))
    }

    /// A part of a request goes to the drive. Reads that are whole requests of clients are looked at.
    pub(super) fn read_sent(
        &mut self,
        part: &ForegroundPart,
        op: Op,
        latency: Option<SimDuration>,
        is_behind_free: bool,
    ) -> Option<ReadAtDrive> {
        let request = self.waiting.get(&part.sequence)?.request;
        if op != Op::Read || request.promotion.is_some() || part.blocks != request.blocks {
            return None;
        }
        // With the head somewhere else, half a turn passes in the mean.
        let latency = latency.unwrap_or(self.drive.rotation().period() / 2);
        let extent = (part.start, part.blocks);
        let sighting = self.prices.read_sent(&self.drive, extent, latency, is_behind_free);
        let target = self.drive.target(part.start, Blocks::new(part.blocks.into()), op);
        let track = self.drive.layout().track_bounds(target.start);
        let track = track.1.get() - track.0.get();
        let period_ns = self.drive.rotation().period().ns();
        let transfer = SimDuration::from_ns(u64::from(part.blocks) * period_ns / track.max(1));
        Some(ReadAtDrive { sighting, hit: self.turnaround.of(op) + transfer })
    }

    /// True if a reply after this time is too fast for the media to have moved.
    pub(super) fn is_fast(&self, read: &ReadAtDrive, head: SimDuration) -> bool {
        head <= read.hit + self.drive.rotation().period() / (2 * PLAUSIBLE)
    }

    /// Begin of the gap that is open, or of a command without a gap.
    pub(super) fn gap_begin(&self, sent: SimTime) -> SimTime {
        match &self.gap {
            Some(gap) if gap.head.is_known => gap.taken_up.max(self.clock.host(gap.head.at)),
            Some(gap) => gap.taken_up,
            None => self.ended.max(sent),
        }
    }

    /// A client's read has come back: charges what free work has taken from it.
    pub(super) fn read_came_back(&mut self, read: &ReadAtDrive, reply: &ReadReply) {
        if !self.clock.is_known() {
            return;
        }
        let &ReadReply { is_hit, is_behind_free, begin, ended, delay } = reply;
        let took = ended.saturating_since(begin);
        let later_than_hit = took.saturating_sub(read.hit).saturating_sub(delay);
        let end = ReadEnd { is_hit, is_behind_free, later_than_hit };
        let lost = self.prices.read_came_back(&read.sighting, &end);
        self.lost_hits += lost.number;
        let whole = self.lost_hits as u64;
        self.lost_hits -= whole as f64;
        self.account.lost_hits += whole;
        self.account.lost_hit_ns += u128::from(lost.time.ns());
        if let Some(learner) = &mut self.learner {
            learner.took(lost.time);
        }
    }
}
