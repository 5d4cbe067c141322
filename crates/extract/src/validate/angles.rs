//! Angles that a measured trace tells: the period of the spindle, skews, and the angles of zones. Found on the
//! first half of a trace, judged on the second.
//!
//! From the end of one visit to the media to the end of the next a whole number of turns passes, less the angle
//! from the one sector to the other. What is left over says by how much that angle is off:
//!
//! ```text
//!   same or next track   the period
//!   two zones            skews of a zone, as whole sectors, and the angle of its first block
//! ```
//!
//! Zones join one after the other: those that are known tell the angles of visits before and behind those to the
//! next. A zone joins with the skews under which most of its visits agree, if chance does not explain them.
//!
//! Each step is kept where the second half's requests come nearer one by one, and reported in any case.

use std::f64::consts::TAU;
use std::sync::Arc;

use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::{DriveSpec, Mapping, Turn, ZoneSpec};
use freewheel_model::electronics::DriveUnit;
use freewheel_units::SimDuration;
use serde::Serialize;

use super::circular::{Coherence, coherence};
use super::exchange::{Exchange, Request, replay};
use super::spindle::{Visit, measured_period, pairs, variance, visits};
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
/// Rounds over all zones: in the second each has all others to tell by.
const ROUNDS: usize = 2;
/// Fewest pairs that tell the angles of a zone.
const PAIRS_MIN: usize = 8;

/// Looks for each kind of angle in turn. The result are the kinds, and the drive with those that were kept.
pub(super) fn fit_angles(spec: &DriveSpec, requests: &[Request]) -> (Vec<AngleFit>, DriveSpec) {
    let mut best = spec.clone();
    let mut found = Vec::new();
    for look in [period, zones] {
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
        let unit = DriveUnit::new(&drive, &spec.electronics_as_measured()).ok()?;
        let exchanges = replay(unit, requests);
        let (first, second) = exchanges.split_at(exchanges.len() / 2);
        let errors: Vec<f64> = second.iter().map(Exchange::error_ms).collect();
        Some(Self { drive, first: first.to_vec(), judged_sd_ms: variance(&errors).sqrt() })
    }

    /// Pairs of visits near one another in time, with what is left of the angle between them.
    fn legs(&self, spec: &DriveSpec) -> Vec<Leg> {
        let visits = visits(&self.drive, &self.first);
        let period_ns = spec.rotation_period.ns() as f64;
        (1..=LAGS)
            .flat_map(|lag| {
                visits.iter().zip(visits.iter().skip(lag)).filter_map(|(from, to)| {
                    let turns = to.end.saturating_since(from.end).ns() as f64 / period_ns;
                    let left = turns - (to.end_turns - from.end_turns);
                    (turns <= LONGEST_TURNS).then_some(Leg { from: *from, to: *to, left })
                })
            })
            .collect()
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

/// Angles of zones: of their first blocks, and skews in whole sectors.
fn zones(spec: &DriveSpec, trial: &Halves) -> Option<Candidate> {
    let legs = trial.legs(spec);
    let near: Vec<f64> = legs.iter().filter(|leg| leg.is_near()).map(|leg| leg.left).collect();
    // What is left on the same track is not the zones'.
    let constant = coherence(&near).filter(|found| found.p_value < CHANCE)?.mean_turns;
    let between: Vec<&Leg> = legs.iter().filter(|leg| leg.from.zone != leg.to.zone).collect();
    let mut survey = Survey { spec, legs: &legs, between: &between, constant, known: Vec::new() };
    survey.known = vec![None; spec.zones.len()];
    survey.find();
    let told: Vec<&Leg> = between
        .iter()
        .filter(|leg| [leg.from, leg.to].iter().all(|at| survey.known[at.zone].is_some()))
        .copied()
        .collect();
    let before = coherence(&told.iter().map(|leg| leg.left).collect::<Vec<f64>>())?;
    let after = coherence(
        &told
            .iter()
            .map(|leg| leg.left - survey.turned(&leg.to) + survey.turned(&leg.from))
            .collect::<Vec<f64>>(),
    )?;
    let mut other = spec.clone();
    let mut changes = Vec::new();
    for (zone, known) in survey.known.iter().enumerate() {
        let Some(shift) = known else { continue };
        let of_file = &mut other.zones[zone];
        let from = text(of_file);
        shift.put_into(of_file);
        changes.push(AngleChange { zone: Some(zone), from, to: text(of_file) });
    }
    (!changes.is_empty()).then(|| Candidate::new(other, "zones", &before, &after, changes))
}

fn text(zone: &ZoneSpec) -> String {
    format!(
        "first_block {:.4}, track_skew {}, cylinder_skew {}",
        zone.first_block.angle().turns(),
        zone.track_skew,
        zone.cylinder_skew
    )
}

/// Changes of a zone's angles.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shift {
    /// Turns by which the first block lies further on.
    start: f64,
    /// Sectors by which skews are longer, from track to track and from cylinder to cylinder.
    skews: [u32; 2],
}

impl Shift {
    /// Turns by which a visit's sector lies further on.
    fn turned(&self, spec: &DriveSpec, visit: &Visit) -> f64 {
        let sectors = spec.zones[visit.zone].blocks_per_track;
        let all = sectors_of(changes_before(spec, visit), self.skews, sectors);
        self.start + f64::from(all) / f64::from(sectors)
    }

    fn put_into(&self, zone: &mut ZoneSpec) {
        let sectors = zone.blocks_per_track;
        zone.track_skew = further(zone.track_skew, self.skews[0], sectors);
        zone.cylinder_skew = further(zone.cylinder_skew, self.skews[1], sectors);
        zone.first_block = turn(zone.first_block.angle().turns() + self.start);
    }
}

/// Changes to the next track and to the next cylinder from the start of a visit's zone to its track. None of
/// either in bands, whose skews are taken to be right.
fn changes_before(spec: &DriveSpec, visit: &Visit) -> [u64; 2] {
    let within = visit.cylinder.saturating_sub(spec.zones[visit.zone].first_cylinder);
    let is_back = match spec.mapping {
        Mapping::Band { .. } => return [0, 0],
        Mapping::Serpentine => visit.cylinder % 2 == 1,
        Mapping::SerpentineByZone => within % 2 == 1,
        Mapping::Cylinder => false,
    };
    let last = spec.surfaces - 1;
    let order = if is_back { last - visit.surface } else { visit.surface };
    let cylinders = u64::from(within);
    [cylinders * u64::from(last) + u64::from(order), cylinders]
}

/// Sectors of so many changes, without whole turns.
fn sectors_of(
    [tracks, cylinders]: [u64; 2],
    [of_track, of_cylinder]: [u32; 2],
    sectors: u32,
) -> u32 {
    let all = tracks * u64::from(of_track) + cylinders * u64::from(of_cylinder);
    (all % u64::from(sectors)) as u32
}

fn further(skew: Turn, by: u32, sectors: u32) -> Turn {
    match skew.ratio() {
        (old, all) if all == u64::from(sectors) => {
            Turn::from_ratio((old + u64::from(by)) % all, all).unwrap_or(skew)
        }
        _ if by == 0 => skew,
        _ => turn(skew.angle().turns() + f64::from(by) / f64::from(sectors)),
    }
}

impl Leg {
    /// True if one track follows the other, or is the same.
    fn is_near(&self) -> bool {
        let on_cylinder = (self.from.zone, self.from.cylinder) == (self.to.zone, self.to.cylinder);
        on_cylinder && self.from.surface.abs_diff(self.to.surface) <= 1
    }
}

/// Where a zone's first block lies by one pair, for skews as they are.
struct Vote {
    turns: f64,
    changes: [u64; 2],
}

/// Angles that are known so far.
struct Survey<'a> {
    spec: &'a DriveSpec,
    legs: &'a [Leg],
    between: &'a [&'a Leg],
    /// Turns that are left of a leg on the same track.
    constant: f64,
    known: Vec<Option<Shift>>,
}

impl Survey<'_> {
    fn find(&mut self) {
        let Some(first) = self.first() else { return };
        self.known[first.0] = Some(first.1);
        let mut left: Vec<usize> = (0..self.known.len()).filter(|&zone| zone != first.0).collect();
        // Those with most votes are the surest.
        while let Some(at) = (0..left.len()).max_by_key(|&at| self.votes(left[at]).len()) {
            let zone = left.swap_remove(at);
            self.known[zone] = self.fitted(zone);
        }
        for _ in 1..ROUNDS {
            for zone in (0..self.known.len()).filter(|&zone| zone != first.0) {
                self.known[zone] = self.fitted(zone);
            }
        }
    }

    /// The zone whose own pairs agree best, and its skews.
    fn first(&self) -> Option<(usize, Shift)> {
        let found = (0..self.known.len()).filter_map(|zone| {
            let inside =
                self.legs.iter().filter(|leg| (leg.from.zone, leg.to.zone) == (zone, zone));
            let votes: Vec<Vote> = inside.filter_map(|leg| self.vote_inside(leg)).collect();
            let (shift, found) = best(&votes, self.sectors(zone))?;
            // Pairs within a zone say nothing of where it begins.
            let sure = found.resultant_length * (found.pairs as f64).sqrt();
            Some((zone, Shift { start: 0.0, ..shift }, sure))
        });
        let surest = found.max_by(|a, b| a.2.total_cmp(&b.2))?;
        Some((surest.0, surest.1))
    }

    fn vote_inside(&self, leg: &Leg) -> Option<Vote> {
        let [from, to] = [&leg.from, &leg.to].map(|visit| changes_before(self.spec, visit));
        // Backwards the skews count the other way.
        let is_back = to < from;
        let (less, more) = if is_back { (to, from) } else { (from, to) };
        let changes = [more[0] - less[0], more[1].checked_sub(less[1])?];
        let left = leg.left - self.constant;
        let turns = if is_back { -left } else { left };
        (changes != [0, 0]).then_some(Vote { turns, changes })
    }

    fn sectors(&self, zone: usize) -> u32 {
        match self.spec.mapping {
            // Skews stay as they are.
            Mapping::Band { .. } => 1,
            _ => self.spec.zones[zone].blocks_per_track,
        }
    }

    /// Pairs of a zone with those that are known.
    fn votes(&self, zone: usize) -> Vec<Vote> {
        self.between
            .iter()
            .filter_map(|leg| {
                let left = leg.left - self.constant;
                let (turns, visit) = match (leg.from.zone == zone, leg.to.zone == zone) {
                    (true, false) => (self.known_turns(&leg.to)? - left, &leg.from),
                    (false, true) => (self.known_turns(&leg.from)? + left, &leg.to),
                    _ => return None,
                };
                Some(Vote { turns, changes: changes_before(self.spec, visit) })
            })
            .collect()
    }

    /// The angles of a zone by its pairs with the others; None where chance explains them.
    fn fitted(&self, zone: usize) -> Option<Shift> {
        best(&self.votes(zone), self.sectors(zone)).map(|(shift, _)| shift)
    }

    fn known_turns(&self, visit: &Visit) -> Option<f64> {
        self.known[visit.zone].map(|shift| shift.turned(self.spec, visit))
    }

    fn turned(&self, visit: &Visit) -> f64 {
        self.known_turns(visit).unwrap_or(0.0)
    }
}

/// Angles under which votes agree best, all skews of whole sectors tried; None where chance explains them.
fn best(votes: &[Vote], sectors: u32) -> Option<(Shift, Coherence)> {
    if votes.len() < PAIRS_MIN {
        return None;
    }
    let circle: Vec<(f64, f64)> =
        (0..sectors).map(|at| libm::sincos(-f64::from(at) / f64::from(sectors) * TAU)).collect();
    let directions: Vec<(f64, f64)> =
        votes.iter().map(|vote| libm::sincos(vote.turns * TAU)).collect();
    let length = |skews: [u32; 2]| {
        let (mut north, mut east) = (0.0, 0.0);
        for (vote, (sine, cosine)) in votes.iter().zip(&directions) {
            let (back_sine, back_cosine) =
                circle[sectors_of(vote.changes, skews, sectors) as usize];
            north += sine * back_cosine + cosine * back_sine;
            east += cosine * back_cosine - sine * back_sine;
        }
        north * north + east * east
    };
    let all =
        (0..sectors).flat_map(|tracks| (0..sectors).map(move |cylinders| [tracks, cylinders]));
    let tried = f64::from(sectors) * f64::from(sectors);
    let own = (length([0, 0]), [0, 0]);
    // Where two do as well, the skews of the file stay.
    let (_, skews) = all
        .map(|skews| (length(skews), skews))
        .fold(own, |most, one| if one.0 > most.0 * (1.0 + SAME_LENGTH) { one } else { most });
    let turns: Vec<f64> = votes
        .iter()
        .map(|vote| {
            vote.turns - f64::from(sectors_of(vote.changes, skews, sectors)) / f64::from(sectors)
        })
        .collect();
    let found = coherence(&turns)?;
    let trials = if skews == [0, 0] { 1.0 } else { tried };
    let shift = Shift { start: found.mean_turns, skews };
    (found.p_value * trials <= CHANCE).then_some((shift, found))
}

/// Part by which a sum of directions must be longer to count as longer.
const SAME_LENGTH: f64 = 1e-9;
