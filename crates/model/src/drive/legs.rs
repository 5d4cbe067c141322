//! The parts of one access in order of time, each with a wait before it.
//!
//! An access to one run of sectors is one leg. With zero-latency access begun within the run it is two:
//! the rest of the run from the next whole sector on, and, most of a turn later, its beginning. An
//! access to several tracks has the legs of each track, one after the other.
//!
//! Goals: the legs one after the other take exactly as long as the whole; a leg says to the
//! nanosecond when its first data pass.
//! Non-goals: waits within a visit to a track that slips or remaps cut into several runs. Such a
//! visit is one leg, also where zero-latency access takes its runs out of order.

use freewheel_units::{Blocks, Lbn, Op, SimDuration};

use super::access::{Access, Departure};
use super::mechanics::{Drive, OnTrack, Target};

/// The rest of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemainingAccess {
    next: Option<Target>,
    /// Blocks from `start` on that follow after `next`.
    start: Lbn,
    blocks: u32,
    op: Op,
}

/// A part of an access that the head takes without waiting in between for longer than it takes to
/// pass over slipped sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leg {
    /// Track of all transfers of the leg.
    pub target: Target,
    /// Getting there: seek, settling, change between reading and writing.
    pub seek: SimDuration,
    /// Waiting there until the first data reach the head.
    pub wait: SimDuration,
    /// Waiting between its data.
    pub between: SimDuration,
    /// Time in which the data pass under the head.
    pub transfer: SimDuration,
    /// The rest of the access after it.
    pub rest: RemainingAccess,
}

impl RemainingAccess {
    /// All of an access.
    #[inline]
    pub fn whole(target: &Target) -> Self {
        let start = target.start + Blocks::new(u64::from(target.blocks));
        Self { next: Some(*target), start, blocks: 0, op: target.op }
    }
}

impl Leg {
    /// Stage times of the leg.
    #[inline]
    pub fn access(&self) -> Access {
        Access {
            overhead: SimDuration::ZERO,
            seek: self.seek,
            rotate: self.wait + self.between,
            transfer: self.transfer,
            end: self.target.at,
        }
    }
}

impl Drive {
    /// The first leg of the rest of an access; None at its end. For `seek_error_ns` see
    /// [`Self::media_access_from`].
    // Not inlined: where foreground requests are simulated, their own path keeps its inlining.
    #[inline(never)]
    pub fn next_leg(
        &self,
        departure: &Departure,
        rest: &RemainingAccess,
        seek_error_ns: i64,
    ) -> Option<Leg> {
        let (target, blocks) = match rest.next {
            Some(target) => (target, rest.blocks),
            None if rest.blocks > 0 => {
                (self.target(rest.start, Blocks::new(u64::from(rest.blocks)), rest.op), 0)
            }
            None => return None,
        };
        let after = RemainingAccess { next: None, blocks, ..*rest };
        let seek = self.travel(departure, target.at, target.op, seek_error_ns);
        Some(if target.one_run {
            self.leg_of_run(departure, seek, &target, after)
        } else {
            self.leg_of_visit(departure, seek, &target)
        })
    }

    #[inline]
    fn leg_of_run(
        &self,
        departure: &Departure,
        seek: SimDuration,
        target: &Target,
        after: RemainingAccess,
    ) -> Leg {
        let run = &target.first_run;
        let wait_ns = self.wait_ns(departure.begin + seek, run);
        let Some(amid) = self.begin_amid(wait_ns, target.op, run) else {
            return leg(*target, wait_ns, after, seek);
        };
        let Target { start, op, .. } = *target;
        let middle = start + Blocks::new(u64::from(amid.before));
        let end = self.first_run(middle, target.blocks - amid.before, op);
        let beginning = self.first_run(start, amid.before, op);
        leg(end, amid.wait_ns, RemainingAccess { next: Some(beginning), ..after }, seek)
    }

    /// The first leg of a target of several runs, without a rest.
    fn leg_of_visit(&self, departure: &Departure, seek: SimDuration, target: &Target) -> Leg {
        let (visit, taken) = self.next_visit(target.start, target.blocks);
        let runs = visit.runs();
        let visited = Target { blocks: taken, one_run: runs.len() == 1, ..*target };
        let start = target.start + Blocks::new(u64::from(taken));
        let rest =
            RemainingAccess { next: None, start, blocks: target.blocks - taken, op: target.op };
        if visited.one_run {
            return self.leg_of_run(departure, seek, &visited, rest);
        }
        let arrival = departure.begin + seek;
        let OnTrack { rotate_ns, transfer_ns } = self.visit_track(arrival, target.op, runs);
        let wait_ns = self.first_data_ns(arrival, target.op, runs);
        Leg {
            target: visited,
            seek,
            wait: SimDuration::from_ns(wait_ns),
            between: SimDuration::from_ns(rotate_ns - wait_ns),
            transfer: SimDuration::from_ns(transfer_ns),
            rest,
        }
    }
}

fn leg(target: Target, wait_ns: u64, rest: RemainingAccess, seek: SimDuration) -> Leg {
    Leg {
        target,
        seek,
        wait: SimDuration::from_ns(wait_ns),
        between: SimDuration::ZERO,
        transfer: SimDuration::from_ns(u64::from(target.first_run.span_ns)),
        rest,
    }
}
