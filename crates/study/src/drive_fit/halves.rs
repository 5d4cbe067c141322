//! Recorded and simulated responses of the two halves of a trace: of every other slice, and of the slices
//! between. So both have requests of each phase of the load.

use freewheel_model::stats::demerit;
use freewheel_trace::Record;
use freewheel_units::Op;
use serde::Serialize;

/// Responses of half a trace, recorded and simulated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HalfFit {
    /// Reads and writes whose response was recorded.
    pub requests: u64,
    /// The responses as recorded.
    pub recorded: HalfResponses,
    /// Responses of the drive.
    pub simulated: HalfResponses,
    /// Root mean square of the distance between the distributions without the longest thousandth, reads and
    /// writes each for themselves (Ruemmler and Wilkes 1994).
    pub demerit_ns: f64,
    /// Demerit as a share of the mean of the recorded responses that it is about.
    pub demerit_share: f64,
}

/// Mean and quantiles of responses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct HalfResponses {
    pub mean_ns: f64,
    pub p50_ns: f64,
    /// 99th percentile.
    pub p99_ns: f64,
}

impl HalfResponses {
    fn of(sorted: &[f64]) -> Self {
        let at = |share: f64| {
            let index = (share * (sorted.len() - 1) as f64).round() as usize;
            sorted[index]
        };
        let mean_ns = sorted.iter().sum::<f64>() / sorted.len() as f64;
        Self { mean_ns, p50_ns: at(0.5), p99_ns: at(0.99) }
    }
}

/// Recorded responses by number of the request; None of a flush, a trim, and one without completion.
pub(super) struct Recorded {
    by_tag: Vec<Option<(Op, f64)>>,
    /// Requests of a slice.
    slice: usize,
}

/// The longest responses that a demerit leaves out, as a share: one stall of the recorded host would
/// outweigh all that the drive did.
pub const LEFT_OUT: f64 = 0.001;

/// Slices of a trace.
pub const SLICES: usize = 20;

impl Recorded {
    /// Halves of the records that take part in a replay, in their order. None where a half has fewer than
    /// `least` responses.
    pub fn of<'a>(records: impl Iterator<Item = &'a Record>, least: usize) -> Option<Self> {
        let by_tag: Vec<Option<(Op, f64)>> = records
            .map(|record| {
                let completion = record.completion.filter(|_| is_data(record.op))?;
                Some((record.op, completion.saturating_since(record.arrival).ns() as f64))
            })
            .collect();
        let slice = by_tag.len().div_ceil(SLICES).max(1);
        let recorded = Self { by_tag, slice };
        (recorded.half(0).flatten().count() >= least && recorded.half(1).flatten().count() >= least)
            .then_some(recorded)
    }

    /// Requests with and without a response.
    pub fn requests(&self) -> usize {
        self.by_tag.len()
    }

    /// Compares with the simulated responses of the same requests, the half from the first slice on and the
    /// other.
    pub fn compare(&self, simulated: &[Option<f64>]) -> [HalfFit; 2] {
        [0, 1].map(|first| {
            let pairs = self.half(first).zip(every_other(simulated, self.slice, first));
            compared(pairs.filter_map(|(recorded, simulated)| Some(((*recorded)?, (*simulated)?))))
        })
    }

    fn half(&self, first: usize) -> impl Iterator<Item = &Option<(Op, f64)>> {
        every_other(&self.by_tag, self.slice, first)
    }
}

/// Items in every other slice, from this one on.
fn every_other<T>(all: &[T], slice: usize, first: usize) -> impl Iterator<Item = &T> {
    all.chunks(slice).skip(first).step_by(2).flatten()
}

/// Reads and writes; a flush waits for others.
pub(super) fn is_data(op: Op) -> bool {
    matches!(op, Op::Read | Op::Write)
}

fn compared(pairs: impl Iterator<Item = ((Op, f64), f64)>) -> HalfFit {
    let pairs: Vec<(Op, f64, f64)> =
        pairs.map(|((op, recorded), simulated)| (op, recorded, simulated)).collect();
    // Reads and writes each for themselves: a cache that answers writes at once must not count as fast reads.
    let (mut squares, mut sum, mut count) = (0.0, 0.0, 0.0);
    for op in [Op::Read, Op::Write] {
        let (recorded, simulated) = sorted(&[op], &pairs);
        let kept = recorded.len() - (LEFT_OUT * recorded.len() as f64) as usize;
        if kept > 0 {
            let of_op = demerit(&recorded[..kept], &simulated[..kept]);
            squares += kept as f64 * of_op * of_op;
            sum += recorded[..kept].iter().sum::<f64>();
            count += kept as f64;
        }
    }
    let demerit_ns = (squares / count).sqrt();
    let (recorded, simulated) = sorted(&[Op::Read, Op::Write], &pairs);
    HalfFit {
        requests: recorded.len() as u64,
        recorded: HalfResponses::of(&recorded),
        simulated: HalfResponses::of(&simulated),
        demerit_ns,
        demerit_share: demerit_ns / (sum / count).max(1.0),
    }
}

fn sorted(ops: &[Op], pairs: &[(Op, f64, f64)]) -> (Vec<f64>, Vec<f64>) {
    let of_ops = pairs.iter().filter(|(op, ..)| ops.contains(op));
    let (mut recorded, mut simulated): (Vec<f64>, Vec<f64>) =
        of_ops.map(|&(_, recorded, simulated)| (recorded, simulated)).unzip();
    recorded.sort_unstable_by(f64::total_cmp);
    simulated.sort_unstable_by(f64::total_cmp);
    (recorded, simulated)
}

#[cfg(test)]
mod tests {
    use freewheel_units::{Blocks, SimDuration, SimTime, VolumeBlock};

    use super::*;

    fn record(op: Op, response_ns: Option<u64>) -> Record {
        let arrival = SimTime::from_ns(50);
        Record {
            arrival,
            op,
            device: 0,
            start: VolumeBlock::ZERO,
            blocks: Blocks::new(8),
            widened: false,
            completion: response_ns.map(|ns| arrival + SimDuration::from_ns(ns)),
            fua: false,
        }
    }

    #[test]
    fn halves_ignore_stalls() {
        let all = |stall_ms: u64| {
            let response = |n: u64| if n % 1000 == 7 { stall_ms } else { 1 } * 1_000_000;
            (0..4000).map(|n| record(Op::Read, Some(response(n)))).collect::<Vec<Record>>()
        };
        let simulated = vec![Some(3e6); 4000];
        let [short, long] = [1, 300_000].map(|stall_ms| {
            Recorded::of(all(stall_ms).iter(), 100).unwrap().compare(&simulated)[0]
        });
        assert!((short.demerit_share - 2.0).abs() < 1e-9, "{short:?}");
        assert!((long.demerit_share - 2.0).abs() < 1e-9, "{long:?}");
    }

    #[test]
    fn half_counts_requests_with_recorded_response() {
        let all = [
            record(Op::Read, Some(10)),
            record(Op::Read, Some(30)),
            record(Op::Write, Some(30)),
            record(Op::Flush, Some(90)),
            record(Op::Read, Some(20)),
            record(Op::Read, Some(50)),
            record(Op::Write, None),
        ];
        // Seven requests are seven slices, every other of which is in the first half.
        assert!(Recorded::of(all.iter(), 3).is_none());
        let recorded = Recorded::of(all.iter(), 2).unwrap();
        let simulated = [12.0, 50.0, 26.0, 1.0, 20.0, 30.0, 1.0].map(Some);
        let [first, second] = recorded.compare(&simulated);
        assert_eq!((first.requests, second.requests), (3, 2));
        assert_eq!((first.recorded.mean_ns, second.recorded.mean_ns), (20.0, 40.0));
        // Reads of 10 and 20 in 12 and 20, a write of 30 in 26.
        let expected = (20f64 / 3.0).sqrt();
        assert!((first.demerit_ns - expected).abs() < 1e-12, "{}", first.demerit_ns);
        assert!((first.demerit_share - expected / 20.0).abs() < 1e-12);
        assert_eq!(second.demerit_ns, 0.0, "the same two, in another order");
    }
}
