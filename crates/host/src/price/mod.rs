//! The price of a gap: what free work in it would take from clients by way of the drive's own buffer.
//!
//! A drive reads on its own account: the blocks that pass before a request, and those behind it while it
//! has time. Later reads of clients find them in its buffer. Free work takes that time, so such reads go to
//! the media. The host sees addresses, lengths and times only:
//!
//! ```text
//!   client reads     |=========Q=========|                  a trail: where the drive may have read on its own account
//!   on the track  |..before..|..own..|..behind..|
//!   later read           |=R=|                              in the trail: is its answer too fast for the media?
//! ```
//! [`HitChances`] learns how often reads in a trail are hits, by place in it and by age. [`Yields`] learns
//! how many hits the blocks before a read bring, by region of the drive and by whether the read itself
//! lay near another. So three prices are known before a gap is taken:
//!
//! - the request behind the gap may itself be a hit, and would wait for the free work;
//! - the blocks that pass before a read would be kept, and read later;
//! - commands of free work displace what the buffer holds.
//!
//! Hits that free work has taken are counted when the read comes back, by the chance that it would have
//! been a hit without.
//!
//! Non-goals: to know how the buffer works. What a drive does not keep is learned as a chance of zero.

mod chances;
mod trails;
mod yields;

use freewheel_model::drive::Drive;
use freewheel_units::{Blocks, Lbn, SimDuration};

use self::chances::HitChances;
use self::trails::{Found, Trail, Trails};
use self::yields::{Mean, Yields};

/// State of a client's read that is remembered until its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sighting {
    /// Trail in which the read most likely hits, as the buffer is now.
    found: Option<Found>,
    /// The read before which its blocks passed, where that would have made it a hit, and whether that
    /// read was near another.
    brought_by: Option<(Lbn, bool)>,
    /// Chance of a hit if there were no free work at all.
    alone: f64,
    /// Chance of a hit as the buffer is now.
    now: f64,
}

/// End of a client's read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadEnd {
    pub is_hit: bool,
    /// Free work was in the gap before it.
    pub is_behind_free: bool,
    /// Time by which it ended later than a hit at the beginning of the gap.
    pub later_than_hit: SimDuration,
}

/// Hits that free work has taken.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct LostHits {
    /// Expected number of lost hits.
    pub number: f64,
    pub time: SimDuration,
}

/// Learns the prices of one drive's gaps.
#[derive(Debug, Clone)]
pub(crate) struct GapPrices {
    trails: Trails,
    chances: HitChances,
    yields: Yields,
    /// Cost of a lost hit.
    loss_ns: Mean,
    /// Cost of a gap with free work by displacing the buffer's contents.
    displaced_ns: Mean,
}

impl GapPrices {
    pub fn new(drive: &Drive) -> Self {
        Self {
            trails: Trails::default(),
            chances: HitChances::default(),
            yields: Yields::new(drive.blocks()),
            loss_ns: Mean::starting_with(drive.rotation().period().ns() as f64),
            displaced_ns: Mean::starting_with(0.0),
        }
    }

    /// Chances of a client's read before it is sent.
    pub fn sight(&self, start: Lbn) -> Sighting {
        let [alone, now] = self.trails.chances_of(start, &self.chances);
        let brought_by = alone.and_then(|(found, _)| found.brought_by());
        let found = now.map(|(found, _)| found);
        Sighting {
            found,
            brought_by,
            alone: alone.map_or(0.0, |(_, chance)| chance),
            now: now.map_or(0.0, |(_, chance)| chance),
        }
    }

    /// Expected cost of free work in a gap. `read` is the request behind the gap if it is a read, with the
    /// time from the beginning of the gap to where its blocks pass.
    pub fn expected_ns(&self, read: Option<(Lbn, SimDuration)>) -> f64 {
        let Some((start, until_due)) = read else { return self.displaced_ns.get() };
        let Sighting { found, now, .. } = self.sight(start);
        let itself_ns = now * until_due.ns() as f64;
        // What is a hit itself passes no blocks.
        let kept = (1.0 - now) * self.yields.of(start, found.is_some());
        itself_ns + kept * self.loss_ns.get() + self.displaced_ns.get()
    }

    /// A command that reads is sent: of a client, or of free work alone.
    pub fn sent(&mut self, is_clients: bool) {
        self.trails.sent(is_clients);
    }

    /// A read of a client is sent, behind free work or without. During `latency` blocks pass before it.
    pub fn read_sent(
        &mut self,
        drive: &Drive,
        (start, blocks): (Lbn, u32),
        latency: SimDuration,
        is_taken: bool,
    ) -> Sighting {
        let sighting = self.sight(start);
        let is_near = sighting.found.is_some();
        self.yields.passed(start, is_near);
        let end = start + Blocks::new(blocks.into());
        self.trails.push(Trail::of(drive, (start, end), latency, (is_taken, is_near)));
        sighting
    }

    /// A read of a client has come back. Learns from it, and returns what free work has taken from it.
    pub fn read_came_back(&mut self, sighting: &Sighting, end: &ReadEnd) -> LostHits {
        let Sighting { found, brought_by, alone, now } = *sighting;
        if !end.is_hit {
            self.loss_ns.add(end.later_than_hit.ns() as f64);
        }
        let Some(found) = found else { return LostHits::default() };
        let is_known = found.is_kept();
        let with = match end.is_behind_free {
            true if is_known => self.chances.behind_free(found.class()),
            true => 0.0,
            false => now,
        };
        if is_known {
            self.chances.learn(found.class(), end.is_behind_free, end.is_hit);
        }
        if let Some((region, is_near)) = brought_by {
            self.yields.brought(region, is_near, alone);
        }
        let lost = if end.is_hit {
            // It would have been one without free work too, and did not wait for the media.
            f64::from(u8::from(end.is_behind_free))
        } else {
            // A share `with` of such reads are hits nevertheless, so each of the others counts for more.
            ((alone - with).max(0.0) / (1.0 - with).max(f64::EPSILON)).min(1.0)
        };
        let lost_ns = lost * end.later_than_hit.ns() as f64;
        if is_known && !end.is_behind_free {
            self.displaced_ns.add_to_sum(lost_ns);
        }
        let number = if end.is_hit { 0.0 } else { lost };
        LostHits { number, time: SimDuration::from_ns(lost_ns as u64) }
    }

    /// A gap was filled with free work.
    pub fn gap_filled(&mut self) {
        self.displaced_ns.add(0.0);
    }
}

#[cfg(test)]
mod tests;
