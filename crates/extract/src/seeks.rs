//! Seek times, by how short before a block passes the head a read of it may be sent.
//!
//! With the head at rest on one track, a read of a block on another is sent a *lag* before the block
//! is due. When the lag is long enough for command processing and seek, the answer comes when it is
//! due; when it is shorter, a turn later. The least lag at which half of the reads are in time is
//! found by bisection (fast02 section 4.2; Worthington et al. 1995). Buffers do not matter, and
//! jitter of answers does not, as the time of the head's arrival is not needed.

use super::clock::{Clock, fold};
use super::map::{ZoneMap, cylinders, zone_of};
use super::prober::Prober;
use super::{ExtractError, readable};
use freewheel_units::{Op, SimDuration, SimTime};

/// A track of the drive: zone, track in the zone, and its cylinder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Track {
    pub zone: usize,
    pub track: u64,
}

/// Timer of movements over a drive whose map is known.
pub(super) struct Timer<'s, 'h> {
    pub prober: &'s mut Prober<'h>,
    pub clock: &'s mut Clock,
    pub zones: &'s [ZoneMap],
    /// Operation where a movement begins; `to` is the one where it ends.
    pub from: Op,
    pub to: Op,
    /// Time by which a write is answered later in the turn than a read of the same block.
    pub write_late_ns: f64,
}

/// A lag is long enough when this many more trials are in time than are not, or too short the other
/// way round: with one trial of ten held up, one such decision of 700 is wrong.
const AHEAD: i32 = 3;
/// At the very lag where half of the trials are in time neither side gets ahead.
const VOTES_MAX: usize = 15;
/// From the lag that was found to where all trials have to be in time, or none.
const ASTRAY_NS: f64 = 80_000.0;
/// Bisections at most for one that stands this test.
const BISECTIONS_MAX: usize = 5;
/// Between an answer and the next command a host has this at least to get ready.
const HOST_TAKES: SimDuration = SimDuration::from_us(200);
/// A command that was sent later than this after its time is no evidence.
const SENT_LATE_MAX: SimDuration = SimDuration::from_us(3);
/// The bisection ends at a lag known to this.
pub(super) const RESOLUTION_NS: f64 = 4_000.0;
/// Trials without a result after which a movement is taken to be impossible to time.
const TRIALS_MAX: usize = 200;
/// First trials, which say in which turn the answer comes.
const FIRST_TRIALS: usize = 5;
/// Jitter of seeks that is allowed for around whole turns.
const MARGIN_NS: f64 = 200_000.0;

/// An answer is this near to when it is due, or some turns later, even with little jitter.
const IN_STEP_NS: f64 = 30_000.0;

/// Step of the lag for writes, which no buffer answers, in turns.
const WRITE_IN_STEP: f64 = 1.0 / 8.0;

impl<'s, 'h> Timer<'s, 'h> {
    /// One of movements between reads.
    pub fn of_reads(
        prober: &'s mut Prober<'h>,
        clock: &'s mut Clock,
        zones: &'s [ZoneMap],
    ) -> Self {
        Self { prober, clock, zones, from: Op::Read, to: Op::Read, write_late_ns: 0.0 }
    }
}

/// Lags do not count the time of the block itself, which differs from zone to zone.
impl Timer<'_, '_> {
    /// Cylinders of the drive that hold data.
    pub fn cylinders(&self) -> u64 {
        cylinders(self.zones)
    }

    /// A block of a track at about this part of it; None on a track without data.
    fn block(&self, at: Track, part: f64) -> Option<u64> {
        let zone = &self.zones[at.zone];
        zone.block_on(at.track, (part * zone.per_track as f64) as u64)
    }

    /// Sends a command for a block on `to` a lag before it is due, with the head on `from`: how many
    /// turns too late the answer came. None when the buffer had the block, or something else came
    /// in between.
    fn trial(&mut self, from: Track, to: Track, lag_ns: f64) -> Result<Option<u64>, ExtractError> {
        self.clock.keep(self.prober)?;
        let part = 0.2 + 0.4 * self.prober.below(1000) as f64 / 1000.0;
        let ends = (self.block(to, 0.0), self.block(to, 0.999));
        let (Some(begin), (Some(first), Some(last))) = (self.block(from, part), ends) else {
            return Ok(None);
        };
        // What is written was read, so its block cannot wait to be chosen until the head is there.
        let written = first + self.prober.below(last + 1 - first);
        self.hold(self.to, written)?;
        self.hold(self.from, begin)?;
        if [self.from, self.to].contains(&Op::Read) {
            self.prober.freshen(&[begin, first, last])?;
        }
        self.prober.ask(self.from, begin)?;
        let ready = self.ready_after(lag_ns);
        if self.to == Op::Write {
            return self.time(Op::Write, written, lag_ns, ready);
        }
        let zone = &self.zones[to.zone];
        // The first block of the track that is due no sooner than after the lag.
        let passed = self.clock.angle(ready) - zone.track_start(to.track);
        let width = 1.0 / zone.per_track as f64;
        let sector = (fold(passed) / width).ceil() as u64 % zone.per_track;
        let block = zone.block_on(to.track, sector).unwrap_or(last);
        self.time(Op::Read, block, lag_ns, ready)
    }

    /// Reads a block that is to be written.
    fn hold(&mut self, op: Op, block: u64) -> Result<(), ExtractError> {
        if op == Op::Write {
            self.prober.read(block)?;
        }
        Ok(())
    }

    /// Earliest time at which a block may be due that is asked for this long before.
    fn ready_after(&self, lag_ns: f64) -> SimTime {
        self.prober.now() + SimDuration::from_ns(lag_ns as u64) + HOST_TAKES
    }

    /// Asks for `block` this long before it is due the first time after `from`.
    fn time(
        &mut self,
        op: Op,
        block: u64,
        lag_ns: f64,
        from: SimTime,
    ) -> Result<Option<u64>, ExtractError> {
        let period = self.clock.period_ns();
        let zone = &self.zones[self.zones.partition_point(|zone| zone.first <= block) - 1];
        let width_ns = period / zone.per_track as f64;
        let begins = zone.angle(block) - 1.0 / zone.per_track as f64;
        let due = self.clock.next(begins, from);
        let send = SimTime::from_ns(due.ns() - lag_ns as u64);
        let done = self.prober.ask_at(send, op, block)?;
        let was_sent_in_time = done.sent - send <= SENT_LATE_MAX;
        let answer_ns = width_ns + if op == Op::Write { self.write_late_ns } else { 0.0 };
        let late = done.end.ns() as f64 - due.ns() as f64 - answer_ns;
        let turns = (late / period).round();
        // An answer out of step came from the buffer, or was held up. That of a write may have to
        // wait for its data and come somewhat later than its block has passed.
        let off = (late - turns * period).abs();
        let step = if op == Op::Write { WRITE_IN_STEP * period } else { IN_STEP_NS };
        let in_step = off < (8.0 * self.clock.jitter_ns()).max(step);
        let counts = was_sent_in_time && in_step && turns >= 0.0 && self.clock.times(&done);
        Ok(counts.then_some(turns as u64))
    }

    /// The least lag for movements between pairs of tracks: cylinder and order of the first, then of
    /// the second.
    pub fn least_lag_ns(
        &mut self,
        mut pair: impl FnMut(&mut Prober<'_>) -> (u64, u64, u64, u64),
    ) -> Result<Option<f64>, ExtractError> {
        let zones = self.zones;
        self.least_lag_between(|prober| {
            let (from, from_order, to, to_order) = pair(prober);
            [(from, from_order), (to, to_order)]
                .map(|(cylinder, order)| track(zones, cylinder, order))
        })
    }

    /// Least lag between tracks in any cylinders.
    pub fn least_lag_between(
        &mut self,
        mut pair: impl FnMut(&mut Prober<'_>) -> [Track; 2],
    ) -> Result<Option<f64>, ExtractError> {
        let mut trial = |timer: &mut Self, lag: f64| timer.turns_late(&mut pair, lag);
        let mut found = None;
        for _ in 0..BISECTIONS_MAX {
            let mut turns = Vec::new();
            for _ in 0..FIRST_TRIALS {
                turns.extend(trial(self, 0.0)?);
            }
            turns.sort_unstable();
            let Some(&most) = turns.get(turns.len() / 2) else { return Ok(found) };
            let period = self.clock.period_ns();
            let low = (turns[0].saturating_sub(1) as f64 * period - MARGIN_NS).max(0.0);
            let high = most as f64 * period + MARGIN_NS;
            if let Some(lag) = self.bisect(low, high, &mut trial)? {
                found = Some(lag);
                if self.is_right(lag, low, &mut trial)? {
                    break;
                }
            }
        }
        Ok(found)
    }

    /// True if the second of two tracks is reached with this lag; None if no trial says anything.
    pub fn is_reached_with(
        &mut self,
        lag: f64,
        tracks: [Track; 2],
    ) -> Result<Option<bool>, ExtractError> {
        self.is_in_time(lag, &mut |timer: &mut Self, lag: f64| {
            timer.turns_late(&mut |_| tracks, lag)
        })
    }

    /// Turns by which a movement is late with a lag.
    fn turns_late(
        &mut self,
        pair: &mut impl FnMut(&mut Prober<'_>) -> [Track; 2],
        lag: f64,
    ) -> Result<Option<u64>, ExtractError> {
        for _ in 0..TRIALS_MAX {
            let [from, to] = pair(self.prober);
            if let Some(Some(turns)) = readable(self.trial(from, to, lag))? {
                return Ok(Some(turns));
            }
        }
        Ok(None)
    }

    /// The lag between two at which half of the trials are in time.
    fn bisect(
        &mut self,
        mut late: f64,
        mut early: f64,
        trial: &mut impl FnMut(&mut Self, f64) -> Result<Option<u64>, ExtractError>,
    ) -> Result<Option<f64>, ExtractError> {
        while early - late > RESOLUTION_NS {
            let middle = f64::midpoint(late, early);
            match self.is_in_time(middle, trial)? {
                None => return Ok(None),
                Some(true) => early = middle,
                Some(false) => late = middle,
            }
        }
        Ok(Some(f64::midpoint(late, early)))
    }

    /// True if trials are late with a lag somewhat shorter, and in time with one somewhat longer: trials
    /// that were held up may have led a bisection astray.
    fn is_right(
        &mut self,
        lag: f64,
        low: f64,
        trial: &mut impl FnMut(&mut Self, f64) -> Result<Option<u64>, ExtractError>,
    ) -> Result<bool, ExtractError> {
        let (below, above) = (lag - ASTRAY_NS, lag + ASTRAY_NS);
        let is_least = below <= low || self.is_in_time(below, trial)? == Some(false);
        Ok(is_least && self.is_in_time(above, trial)? == Some(true))
    }

    /// True if most trials at a lag are in time: enough trials for one side to be ahead.
    fn is_in_time(
        &mut self,
        lag: f64,
        trial: &mut impl FnMut(&mut Self, f64) -> Result<Option<u64>, ExtractError>,
    ) -> Result<Option<bool>, ExtractError> {
        let mut ahead = 0_i32;
        for _ in 0..VOTES_MAX {
            let Some(turns) = trial(self, lag)? else { return Ok(None) };
            ahead += if turns == 0 { 1 } else { -1 };
            if ahead.abs() == AHEAD {
                break;
            }
        }
        Ok(Some(ahead > 0))
    }

    /// The least lag without any movement: command processing and what an answer takes. The head is
    /// brought to the middle of a track just in time, by a movement whose least lag is known, so that
    /// none of the blocks before passed it and came into the buffer; the block that is timed lies
    /// half a turn before. The head comes there as the timer times movements, and `op` is timed.
    pub fn least_lag_at_rest_ns(
        &mut self,
        op: Op,
        known_lag_ns: f64,
        mut pair: impl FnMut(&mut Prober<'_>) -> [Track; 2],
    ) -> Result<Option<f64>, ExtractError> {
        let period = self.clock.period_ns();
        let mut trial = |timer: &mut Self, lag: f64| -> Result<Option<u64>, ExtractError> {
            for _ in 0..TRIALS_MAX {
                let tracks = pair(timer.prober);
                let once = timer.trial_at_rest(op, tracks, known_lag_ns + MARGIN_NS, lag);
                if let Some(Some(turns)) = readable(once)? {
                    return Ok(Some(turns));
                }
            }
            Ok(None)
        };
        let mut found = None;
        for _ in 0..BISECTIONS_MAX {
            found = self.bisect(0.0, 0.4 * period, &mut trial)?;
            let Some(lag) = found else { break };
            if self.is_right(lag, 0.0, &mut trial)? {
                break;
            }
        }
        Ok(found)
    }

    fn trial_at_rest(
        &mut self,
        op: Op,
        [from, to]: [Track; 2],
        known_lag_ns: f64,
        lag_ns: f64,
    ) -> Result<Option<u64>, ExtractError> {
        let blocks = (self.block(to, 0.12), self.block(to, 0.62), self.block(from, 0.4));
        let ends = (self.block(to, 0.0), self.block(to, 0.999));
        let ((Some(timed), Some(middle), Some(begin)), (Some(first), Some(last))) = (blocks, ends)
        else {
            return Ok(None);
        };
        self.clock.keep(self.prober)?;
        self.hold(op, timed)?;
        self.hold(self.to, middle)?;
        self.hold(self.from, begin)?;
        if [self.from, self.to, op].contains(&Op::Read) {
            self.prober.freshen(&[begin, first, last])?;
        }
        self.prober.ask(self.from, begin)?;
        let ready = self.ready_after(known_lag_ns);
        if self.time(self.to, middle, known_lag_ns, ready)? != Some(0) {
            return Ok(None);
        }
        let soon = self.ready_after(lag_ns);
        self.time(op, timed, lag_ns, soon)
    }
}

/// The track of a cylinder that comes `order`-th there.
pub(super) fn track(zones: &[ZoneMap], cylinder: u64, order: u64) -> Track {
    let zone = zone_of(zones, cylinder);
    let map = &zones[zone];
    Track { zone, track: map.track_at(cylinder - map.first_cylinder, order) }
}

/// The distances at which curves are measured on a drive of this many cylinders (fast02 section 4.2):
/// every distance to 10, every 2nd to 20, every 5th to 50, every 10th to 100, every 25th to 500,
/// every 100th beyond, and the longest. On drives of today, which have many times the cylinders, a
/// hundred beyond 500.
pub(super) fn distances(cylinders: u64) -> Vec<u64> {
    let longest = cylinders.saturating_sub(1);
    let coarse = (longest / 10_000).max(1) * 100;
    let steps = [(10, 1), (20, 2), (50, 5), (100, 10), (500, 25), (u64::MAX, coarse)];
    let mut all: Vec<u64> = std::iter::successors(Some(1), |&d| {
        Some(d + steps.iter().find(|(until, _)| d < *until).map_or(1, |s| s.1))
    })
    .take_while(|&d| d < longest)
    .collect();
    if longest > 0 {
        all.push(longest);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::distances;

    #[test]
    fn distances_are_those_of_the_paper() {
        let all = distances(10_022);
        assert_eq!(all[..12], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14]);
        assert!(
            [20, 25, 50, 60, 100, 125, 500, 600, 10_000, 10_021].iter().all(|d| all.contains(d))
        );
        assert!(![11, 22, 55, 110, 550].iter().any(|d| all.contains(d)));
        let today = distances(388_991);
        assert!((120..160).contains(&today.len()) && today.contains(&4300));
        assert_eq!(distances(4), [1, 2, 3]);
        assert_eq!(distances(1), Vec::<u64>::new());
    }
}
