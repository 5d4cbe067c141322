//! Positions of the spindle that a trace's completions show.
//!
//! A request that visits the media ends when its last sector has passed the head. So the time from
//! one such end to the next, less the angle from the one sector to the other, is a whole number of
//! turns when spindle, clock and layout are what the drive file says. The rest of it, the
//! *difference of phase*, gathers around one value if the phase can be known and is spread evenly
//! if it cannot.

use freewheel_model::drive::Drive;
use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};
use serde::Serialize;

use super::circular::{Coherence, coherence};
use super::exchange::{Exchange, Request};

/// Distance between a request and the one on the media before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distance {
    /// On one track: only the spindle counts.
    SameTrack,
    /// On tracks of one cylinder that follow each other: the track skew counts, too.
    NextTrack,
    /// Elsewhere in one zone: all skews in between count.
    SameZone,
    /// In two zones: their first sectors' angles count, too.
    OtherZone,
}

impl Distance {
    /// All of them, the nearest first.
    pub const ALL: [Self; 4] = [Self::SameTrack, Self::NextTrack, Self::SameZone, Self::OtherZone];

    /// The distance in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::SameTrack => "same track",
            Self::NextTrack => "next track, same cylinder",
            Self::SameZone => "elsewhere in the zone",
            Self::OtherZone => "another zone",
        }
    }
}

/// A visit to the media whose end is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visit {
    /// Index of the request in the trace.
    pub index: usize,
    pub op: Op,
    start: Lbn,
    /// Time at which the last sector had passed, but for a constant.
    pub end: SimTime,
    /// Angle of its end in turns.
    pub end_turns: f64,
    pub zone: usize,
    pub cylinder: u32,
    pub surface: u32,
}

/// The visits among the exchanges. Left out are requests that the real drive answered sooner than
/// arm and data alone allow: it had them in its buffer.
pub(super) fn visits(drive: &Drive, exchanges: &[Exchange]) -> Vec<Visit> {
    let all = exchanges.iter().enumerate();
    all.filter(|(_, e)| to_media(e)).map(|(index, e)| visit(drive, index, e)).collect()
}

fn to_media(e: &Exchange) -> bool {
    !e.served.hit && e.request.measured() >= e.simulated.saturating_sub(e.served.rotate)
}

fn visit(drive: &Drive, index: usize, exchange: &Exchange) -> Visit {
    let Request { op, start, blocks, completion, .. } = exchange.request;
    let layout = drive.layout();
    let last = layout.run(start + Blocks::new(u64::from(blocks) - 1), 1);
    let at = last.at;
    let track = layout.track_start(at.cylinder, at.surface).expect("a block lies on a track");
    let sectors = layout.zones()[last.zone].blocks_per_track();
    let behind = f64::from(at.sector + 1) / f64::from(sectors);
    Visit {
        index,
        op,
        start,
        // A request cannot end before its data came over the bus; a damaged trace may say so.
        end: SimTime::from_ns(completion.ns().saturating_sub(exchange.served.bus.ns())),
        end_turns: track.turns() + behind,
        zone: last.zone,
        cylinder: at.cylinder,
        surface: at.surface,
    }
}

/// Two visits to the media.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    /// Request of the later one.
    pub index: usize,
    pub ops: (Op, Op),
    pub distance: Distance,
    /// From end to end.
    elapsed: SimDuration,
    /// From angle to angle, in turns.
    turns: f64,
    /// Negative when the later one lies before the other: a wrong skew then shows the same way.
    sign: f64,
}

impl Pair {
    /// Difference of phase in turns when a turn takes `period_ns`.
    pub(super) fn difference_turns(&self, period_ns: f64) -> f64 {
        self.sign * (self.elapsed.ns() as f64 / period_ns - self.turns)
    }
}

/// Every visit with the `lag`-th before it.
pub(super) fn pairs(visits: &[Visit], lag: usize) -> Vec<Pair> {
    visits.iter().zip(visits.iter().skip(lag)).map(|(from, to)| pair(from, to)).collect()
}

fn pair(from: &Visit, to: &Visit) -> Pair {
    let same_cylinder = from.cylinder == to.cylinder;
    let distance = match from.surface.abs_diff(to.surface) {
        0 if same_cylinder => Distance::SameTrack,
        1 if same_cylinder => Distance::NextTrack,
        _ if from.zone == to.zone => Distance::SameZone,
        _ => Distance::OtherZone,
    };
    let backwards = distance == Distance::NextTrack && to.start < from.start;
    Pair {
        index: to.index,
        ops: (from.op, to.op),
        distance,
        elapsed: to.end.saturating_since(from.end),
        turns: to.end_turns - from.end_turns,
        sign: if backwards { -1.0 } else { 1.0 },
    }
}

/// Coherence of the pairs that `wanted` takes.
pub(super) fn coherence_of(
    pairs: &[Pair],
    period_ns: f64,
    wanted: impl Fn(&Pair) -> bool,
) -> Option<Coherence> {
    let chosen = pairs.iter().filter(|pair| wanted(pair));
    let turns: Vec<f64> = chosen.map(|pair| pair.difference_turns(period_ns)).collect();
    coherence(&turns)
}

/// Time of a turn by the clock of a trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Period {
    pub ns: f64,
    /// Distance of the measurement.
    pub distance: Distance,
    /// Coherence there; its p-value allows for the periods tried.
    pub coherence: Coherence,
}

/// Periods tried: the drive file's, and as far to either side as a clock or a data sheet may be
/// off, 2 %, in steps that turn by a hundredth over the longest time used.
const STEPS: i32 = 100;
const STEP: f64 = 2e-4;
/// Longest time over which the period is measured, in turns.
const LONGEST_TURNS: f64 = 50.0;

/// The period at which neighbouring visits agree best, measured on the same track or the next,
/// wherever there are more of them. None without any.
pub(super) fn measured_period(pairs: &[Pair], nominal_ns: f64) -> Option<Period> {
    let longest = LONGEST_TURNS * nominal_ns;
    let (same, next) =
        (close(Distance::SameTrack, pairs, longest), close(Distance::NextTrack, pairs, longest));
    let chosen = if next.len() > same.len() { next } else { same };
    let distance = chosen.first()?.distance;
    let at = |step: i32| {
        let ns = nominal_ns * (1.0 + f64::from(step) * STEP);
        coherence_of(&chosen, ns, |_| true).map(|coherence| Period { ns, distance, coherence })
    };
    let tried = (-STEPS..=STEPS).filter_map(at);
    let longest = tried.max_by(|a, b| length(a).total_cmp(&length(b)))?;
    // The drive file stands where it does as well, within the standard error of the length.
    let spread = 1.0 - length(&longest) * length(&longest);
    let standard_error = spread / (2.0 * chosen.len() as f64).sqrt();
    let nominal = at(0).filter(|nominal| length(nominal) >= length(&longest) - standard_error);
    let mut best = nominal.unwrap_or(longest);
    let trials = f64::from(2 * STEPS + 1);
    best.coherence.p_value = (best.coherence.p_value * trials).min(1.0);
    Some(best)
}

fn close(distance: Distance, pairs: &[Pair], longest: f64) -> Vec<Pair> {
    pairs
        .iter()
        .filter(|p| p.distance == distance && p.elapsed.ns() as f64 <= longest)
        .copied()
        .collect()
}

fn length(period: &Period) -> f64 {
    period.coherence.resultant_length
}

/// Points of a turn at which an access is tried for the spread of its times.
const PHASES: u64 = 32;

/// Variance in ms^2 of a request's time on the media over all phases of the spindle alike, the
/// seek left out.
pub(super) fn variance_over_phases_ms2(drive: &Drive, request: &Request) -> f64 {
    let blocks = Blocks::new(u64::from(request.blocks));
    let target = drive.target(request.start, blocks, request.op);
    let period = drive.rotation().period().ns();
    let times: Vec<f64> = (0..PHASES)
        .map(|k| {
            let now = SimTime::from_ns(period * k / PHASES);
            drive.media_access(now, target.at, &target).total().as_ms_f64()
        })
        .collect();
    variance(&times)
}

/// Mean square distance from the mean; 0 without values.
pub(super) fn variance(values: &[f64]) -> f64 {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / n
}
