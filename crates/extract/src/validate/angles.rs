//! Angles that a measured trace tells: the period of the spindle, skews, and the angles of zones. Found on the
//! first half of a trace, judged on the second.
//!
//! From the end of one visit to the media to the end of the next a whole number of turns passes, less the angle
//! from the one sector to the other. What is left over says by how much that angle is off:
//!
//! ```text
//!   same or next track   the period
//!   same zone            skews, as whole sectors, by the cylinders and heads in between
//!   two zones            the angle from the one's first block to the other's
//! ```
//!
//! Each step is kept where the second half's requests come nearer one by one, and reported in any case.

use std::f64::consts::TAU;
use std::sync::Arc;

use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::{DriveSpec, Mapping, Turn};
use freewheel_model::electronics::Unit;
use freewheel_units::SimDuration;
use serde::Serialize;

use super::circular::{Coherence, coherence};
use super::exchange::{Exchange, Request, replay};
use super::spindle::{Distance, Visit, measured_period, pairs, variance, visits};
use crate::layout::turn;

/// A kind of angle that was looked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AngleFit {
    /// Key in the drive file.
    pub key: &'static str,
    /// Pairs of visits on the first half that tell.
    pub pairs: u64,
    /// Mean resultant length of those pairs, with the file as it was and with the change.
    pub resultant_lengths: [f64; 2],
    /// Changes of the key, by zone: index, value in the file, and the new one. The spindle has no zone.
    pub changes: Vec<AngleChange>,
    /// Standard deviation of ours less measured on the second half, request by request: before and after.
    pub judged_sd_ms: [f64; 2],
    /// True where the second half is nearer with the change, which is then in the drive.
    pub kept: bool,
}

/// An angle that was changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AngleChange {
    /// Index of the zone.
    pub zone: Option<usize>,
    /// Value in the file.
    pub from: String,
    /// Value that the trace prefers.
    pub to: String,
}

/// Lags of visits that are compared: beyond, the clock and the spindle have drifted.
const LAGS: usize = 3;
/// Longest time between two visits that are compared, in turns.
const LONGEST_TURNS: f64 = 50.0;
/// Least probability by chance that counts as chance, after all values that were tried.
const CHANCE: f64 = 1e-3;
/// Rounds over all zones.
const ROUNDS: usize = 20;
/// Fewest pairs that tell an angle of a zone.
const PAIRS_MIN: usize = 8;

/// Looks for each kind of angle in turn. The result are the kinds, and the drive with those that were kept.
pub(super) fn fit_angles(spec: &DriveSpec, requests: &[Request]) -> (Vec<AngleFit>, DriveSpec) {
    let mut best = spec.clone();
    let mut found = Vec::new();
    for look in [period, skews, zone_angles] {
        let Some(trial) = Halves::of(&best, requests) else { break };
        let Some(Candidate { spec, fit }) = look(&best, &trial) else { continue };
        let Some(after) = Halves::of(&spec, requests) else { continue };
        let judged_sd_ms = [trial.judged_sd_ms, after.judged_sd_ms];
        let kept = judged_sd_ms[1] < judged_sd_ms[0];
        if kept {
            best = spec;
            best.sources.insert(fit.key.into(), SOURCE.into());
        }
        found.push(AngleFit { judged_sd_ms, kept, ..fit });
    }
    (found, best)
}

pub(super) const SOURCE: &str =
    "derived: fits the first half of a measured trace (freewheel drive validate --fit)";

/// Changes that the first half asks for.
struct Candidate {
    spec: DriveSpec,
    fit: AngleFit,
}

impl Candidate {
    fn new(
        spec: DriveSpec,
        key: &'static str,
        before: &Coherence,
        after: &Coherence,
        changes: Vec<AngleChange>,
    ) -> Self {
        let resultant_lengths = [before.resultant_length, after.resultant_length];
        let (pairs, judged_sd_ms) = (after.pairs, [0.0; 2]);
        let fit = AngleFit { key, pairs, resultant_lengths, changes, judged_sd_ms, kept: false };
        Self { spec, fit }
    }
}

/// A drive against both halves of a trace.
struct Halves {
    drive: Arc<Drive>,
    /// Exchanges of the first half.
    first: Vec<Exchange>,
    judged_sd_ms: f64,
}

impl Halves {
    fn of(spec: &DriveSpec, requests: &[Request]) -> Option<Self> {
        let drive = Arc::new(Drive::build(spec).ok()?);
        let unit = Unit::new(&drive, &spec.electronics_as_measured()).ok()?;
        let exchanges = replay(unit, requests);
        let (first, second) = exchanges.split_at(exchanges.len() / 2);
        let errors: Vec<f64> = second.iter().map(Exchange::error_ms).collect();
        Some(Self { drive, first: first.to_vec(), judged_sd_ms: variance(&errors).sqrt() })
    }

    /// Pairs of visits near one another in time, with what is left of the angle between them.
    fn legs(&self, spec: &DriveSpec) -> Vec<Leg> {
        let visits = visits(&self.drive, &self.first);
        let period_ns = spec.rotation_period.ns() as f64;
        let leg = |(from, to): (&Visit, &Visit)| {
            let turns = to.end.saturating_since(from.end).ns() as f64 / period_ns;
            let left = turns - (to.end_turns - from.end_turns);
            (turns <= LONGEST_TURNS).then(|| Leg { from: *from, to: *to, left })
        };
        let at = |lag| visits.iter().zip(visits.iter().skip(lag));
        (1..=LAGS).flat_map(|lag| at(lag).filter_map(leg)).collect()
    }
}

/// A pair of visits.
#[derive(Debug, Clone, Copy)]
struct Leg {
    from: Visit,
    to: Visit,
    /// Turns by which the later sector ended later than its angle says.
    left: f64,
}

/// The period of the spindle by the trace's clock.
fn period(spec: &DriveSpec, trial: &Halves) -> Option<Candidate> {
    let nominal = spec.rotation_period;
    let pairs = pairs(&visits(&trial.drive, &trial.first), 1);
    let found = measured_period(&pairs, nominal.ns() as f64)?;
    let measured = SimDuration::from_ns(found.ns.round() as u64);
    if measured == nominal || found.coherence.p_value > CHANCE {
        return None;
    }
    let of = |ns: f64| {
        let near = pairs.iter().filter(|pair| pair.distance == found.distance);
        coherence(&near.map(|pair| pair.difference_turns(ns)).collect::<Vec<f64>>())
    };
    let change = AngleChange { zone: None, from: nominal.to_string(), to: measured.to_string() };
    let mut other = spec.clone();
    other.rotation_period = measured;
    let both = (of(nominal.ns() as f64)?, of(found.ns)?);
    Some(Candidate::new(other, "rotation_period", &both.0, &both.1, vec![change]))
}

/// Skews that place the visits of one zone better, in whole sectors.
fn skews(spec: &DriveSpec, trial: &Halves) -> Option<Candidate> {
    if matches!(spec.mapping, Mapping::Band { .. }) {
        return None;
    }
    let legs = trial.legs(spec);
    let (mut other, mut changes) = (spec.clone(), Vec::new());
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for zone in 0..spec.zones.len() {
        let of_zone: Vec<Steps> = legs
            .iter()
            .filter(|leg| leg.from.zone == zone && leg.to.zone == zone)
            .map(|leg| Steps::of(spec, leg))
            .filter(|steps| steps.cylinders != 0 || steps.tracks != 0)
            .collect();
        let left: Vec<f64> = of_zone.iter().map(|steps| steps.left).collect();
        before.extend(&left);
        let sectors = spec.zones[zone].blocks_per_track;
        let Some([tracks, cylinders]) = best_sectors(&of_zone, sectors) else {
            after.extend(left);
            continue;
        };
        after.extend(of_zone.iter().map(|steps| steps.left_with([tracks, cylinders], sectors)));
        let of_file = &mut other.zones[zone];
        let text = |zone: &freewheel_model::drive::spec::ZoneSpec| {
            format!("track {}, cylinder {}", zone.track_skew, zone.cylinder_skew)
        };
        let from = text(of_file);
        of_file.track_skew = further(of_file.track_skew, tracks, sectors);
        of_file.cylinder_skew = further(of_file.cylinder_skew, cylinders, sectors);
        changes.push(AngleChange { zone: Some(zone), from, to: text(of_file) });
    }
    if changes.is_empty() {
        return None;
    }
    let both = (coherence(&before)?, coherence(&after)?);
    Some(Candidate::new(other, "zones.skews", &both.0, &both.1, changes))
}

/// Skews between two visits of a zone.
#[derive(Debug, Clone, Copy)]
struct Steps {
    /// Changes to the next track of a cylinder.
    tracks: i64,
    /// Changes to the next cylinder.
    cylinders: i64,
    left: f64,
}

impl Steps {
    fn of(spec: &DriveSpec, leg: &Leg) -> Self {
        let [from, to] = [leg.from, leg.to].map(|visit| Self::to(spec, &visit));
        Self { tracks: to[0] - from[0], cylinders: to[1] - from[1], left: leg.left }
    }

    /// Changes of tracks and of cylinders from the start of a visit's zone.
    fn to(spec: &DriveSpec, visit: &Visit) -> [i64; 2] {
        let within = visit.cylinder - spec.zones[visit.zone].first_cylinder;
        let is_back = match spec.mapping {
            Mapping::Serpentine => visit.cylinder % 2 == 1,
            Mapping::SerpentineByZone => within % 2 == 1,
            Mapping::Cylinder | Mapping::Band { .. } => false,
        };
        let last = spec.surfaces - 1;
        let order = if is_back { last - visit.surface } else { visit.surface };
        let cylinders = i64::from(within);
        [cylinders * i64::from(last) + i64::from(order), cylinders]
    }

    /// What is left with skews longer by this many sectors.
    fn left_with(&self, [tracks, cylinders]: [u32; 2], sectors: u32) -> f64 {
        let all = self.tracks * i64::from(tracks) + self.cylinders * i64::from(cylinders);
        self.left - all.rem_euclid(i64::from(sectors)) as f64 / f64::from(sectors)
    }
}

/// Sectors by which both skews of a zone are to be longer; None where as they are is best, or chance
/// explains the others.
fn best_sectors(steps: &[Steps], sectors: u32) -> Option<[u32; 2]> {
    if steps.len() < PAIRS_MIN {
        return None;
    }
    let length = |skews: [u32; 2]| {
        let left: Vec<f64> = steps.iter().map(|step| step.left_with(skews, sectors)).collect();
        coherence(&left).map_or(0.0, |found| found.resultant_length)
    };
    let all = (0..sectors).flat_map(|tracks| (0..sectors).map(move |cylinders| [tracks, cylinders]));
    let [tracks, cylinders] = all.max_by(|a, b| length(*a).total_cmp(&length(*b)))?;
    let left: Vec<f64> =
        steps.iter().map(|step| step.left_with([tracks, cylinders], sectors)).collect();
    let tried = f64::from(sectors) * f64::from(sectors);
    let by_chance = coherence(&left).is_none_or(|found| found.p_value * tried > CHANCE);
    let is_new = [tracks, cylinders] != [0, 0];
    (is_new && !by_chance).then_some([tracks, cylinders])
}

fn further(skew: Turn, by: u32, sectors: u32) -> Turn {
    match skew.ratio() {
        (old, all) if all == u64::from(sectors) => {
            Turn::from_ratio((old + u64::from(by)) % all, all).unwrap_or(skew)
        }
        _ => turn(skew.angle().turns() + f64::from(by) / f64::from(sectors)),
    }
}

/// Angles of zones: each in turn where its pairs with the others agree best.
fn zone_angles(spec: &DriveSpec, trial: &Halves) -> Option<Candidate> {
    let legs = trial.legs(spec);
    let near: Vec<f64> = legs.iter().filter(|leg| is_near(leg)).map(|leg| leg.left).collect();
    // What is left on the same track is not the zones'.
    let constant = coherence(&near).filter(|found| found.p_value < CHANCE)?.mean_turns;
    let between: Vec<&Leg> = legs.iter().filter(|leg| leg.from.zone != leg.to.zone).collect();
    let mut angles = vec![Some(0.0); spec.zones.len()];
    let count = |zone: usize| {
        between.iter().filter(|leg| leg.from.zone == zone || leg.to.zone == zone).count()
    };
    let mut order: Vec<usize> =
        (0..spec.zones.len()).filter(|&zone| count(zone) >= PAIRS_MIN).collect();
    order.sort_by_key(|&zone| std::cmp::Reverse(count(zone)));
    // Zones join one after the other, those with most pairs first; the first stays where it is.
    order.iter().skip(1).for_each(|&zone| angles[zone] = None);
    for round in 0..ROUNDS {
        for &zone in order.iter().skip(1) {
            let found = angle_of(zone, &angles, &between, constant);
            angles[zone] = found.or(angles[zone]).or((round > 0).then_some(0.0));
        }
    }
    let angle = |zone: usize| angles[zone].unwrap_or(0.0);
    let left = |leg: &&Leg| leg.left - angle(leg.to.zone) + angle(leg.from.zone);
    let before = coherence(&between.iter().map(|leg| leg.left).collect::<Vec<f64>>())?;
    let after = coherence(&between.iter().map(left).collect::<Vec<f64>>())?;
    let mut other = spec.clone();
    let mut changes = Vec::new();
    for &zone in order.iter().skip(1) {
        let of_file = &mut other.zones[zone].first_block;
        let from = of_file.to_string();
        *of_file = turn(of_file.angle().turns() + angle(zone));
        changes.push(AngleChange { zone: Some(zone), from, to: of_file.to_string() });
    }
    (!changes.is_empty()).then(|| Candidate::new(other, "zones.first_block", &before, &after, changes))
}

fn is_near(leg: &Leg) -> bool {
    let on_cylinder = (leg.from.zone, leg.from.cylinder) == (leg.to.zone, leg.to.cylinder);
    on_cylinder && leg.from.surface.abs_diff(leg.to.surface) <= 1
}

/// Turns by which a zone's first block lies further on, by its pairs with zones whose angle is known.
fn angle_of(
    zone: usize,
    angles: &[Option<f64>],
    between: &[&Leg],
    constant: f64,
) -> Option<f64> {
    let vote = |leg: &&Leg| {
        let left = leg.left - constant;
        match (leg.from.zone == zone, leg.to.zone == zone) {
            (true, false) => Some(angles[leg.to.zone]? - left),
            (false, true) => Some(angles[leg.from.zone]? + left),
            _ => None,
        }
    };
    let votes: Vec<f64> = between.iter().filter_map(vote).collect();
    Some(coherence(&votes)?.mean_turns)
}
