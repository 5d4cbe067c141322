//! SPTF-SWn%: shortest seek among those whose positioning time is within n % of the shortest.

use super::by_cylinder::{ByCylinder, Found};
use super::{Moment, Policy, Waiting};

/// Between SPTF (n = 0) and SSTF (n = infinite): gives up a little positioning time for a shorter
/// seek, and so for more rotational latency that freeblock requests can use (osdi00 section 3.3).
#[derive(Debug)]
pub struct SptfSw {
    queue: ByCylinder,
    /// 1 + n, in units of 2^-32; None for infinite n, where every request is within the window
    /// even of a positioning time of zero.
    factor_q32: Option<u128>,
    /// Requests that may still be within n % of the shortest; kept to reuse its memory.
    candidates: Vec<Candidate>,
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    found: Found,
    positioning_ns: u64,
    seek_ns: u64,
    sequence: u64,
}

impl SptfSw {
    /// `window` is n as a fraction: 0.4 for SPTF-SW40%. Panics when it is negative or not a
    /// number; infinite is allowed and gives SSTF.
    pub fn new(window: f64) -> Self {
        assert!(window >= 0.0, "window of {window}");
        // In units of 2^-32 the multiplication below is the same on every machine. No positioning
        // time above zero is 2^30 times shorter than another.
        let finite = window.min(f64::from(1 << 30));
        let factor_q32 = window.is_finite().then_some(((1.0 + finite) * 4_294_967_296.0) as u128);
        Self { queue: ByCylinder::default(), factor_q32, candidates: Vec::new() }
    }

    fn limit_ns(&self, shortest_ns: u64) -> u64 {
        self.factor_q32
            .and_then(|factor| u64::try_from((u128::from(shortest_ns) * factor) >> 32).ok())
            .unwrap_or(u64::MAX)
    }
}

impl Policy for SptfSw {
    fn push(&mut self, waiting: Waiting) {
        self.queue.push(waiting);
    }

    fn pick(&mut self, moment: &Moment<'_>) -> Option<Waiting> {
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        let mut shortest_ns = u64::MAX;
        let mut limit_ns = u64::MAX;
        let mut search = self.queue.outwards(moment);
        while let Some((found, waiting)) = search.next(limit_ns) {
            let positioning = moment.drive.positioning(moment.now, moment.head, &waiting.target);
            let positioning_ns = positioning.total().ns();
            shortest_ns = shortest_ns.min(positioning_ns);
            limit_ns = self.limit_ns(shortest_ns);
            if positioning_ns <= limit_ns {
                let seek_ns = positioning.seek.ns();
                let sequence = waiting.sequence;
                candidates.push(Candidate { found, positioning_ns, seek_ns, sequence });
            }
        }
        let within = candidates.iter().filter(|c| c.positioning_ns <= limit_ns);
        let best = within.min_by_key(|c| (c.seek_ns, c.sequence)).map(|c| c.found);
        self.candidates = candidates;
        best.map(|found| self.queue.remove(found))
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}
