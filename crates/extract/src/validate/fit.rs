//! Values of a drive file that a measured trace prefers: found on its first half, judged on its second.
//!
//! Each value is moved alone, through a short list of others. The best move counts, then all are tried again,
//! until none makes the first half's distance a hundredth less. The distance is the demerit of reads and that of
//! writes, weighted by their numbers, so that no long read makes up for a short write.
//!
//! Angles follow from the phase of the spindle (`angles.rs`), and are judged request by request. Non-goal: seek
//! curves. The requests of a trace say too little of each distance.

use std::sync::Arc;

use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::electronics::DriveUnit;
use freewheel_model::electronics::spec::{AfterOp, BufferSpec, BusSpec, OverheadSpec, ReadAhead};
use freewheel_model::stats::demerit;
use freewheel_units::{Op, SimDuration};
use serde::Serialize;

use super::angles::{AngleFit, SOURCE, fit_angles};
use super::exchange::{Exchange, Request, replay};

/// Changes that a measured trace makes to a drive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ValidationFit {
    /// Values in the order in which they were changed.
    pub changes: Vec<FittedValue>,
    /// Distance on the second half, which no value comes from: with the file as it is, and with the changes.
    pub judged_ms: [f64; 2],
    /// Angles that were looked for with these changes made.
    pub angles: Vec<AngleFit>,
    /// The drive with the changes.
    #[serde(skip)]
    pub spec: DriveSpec,
}

/// A value that was changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FittedValue {
    /// Key in the drive file.
    pub key: &'static str,
    /// Value in the file.
    pub from: String,
    /// Value that the trace prefers.
    pub to: String,
    /// Distance on the first half, before and after this change.
    pub fitted_ms: [f64; 2],
}

impl ValidationFit {
    /// True if the half that judges is nearer with the changes.
    pub fn holds(&self) -> bool {
        self.judged_ms[1] < self.judged_ms[0]
    }
}

/// A move must make the distance this much less.
const GAIN: f64 = 0.01;

/// Rounds over all values.
const ROUNDS_MAX: usize = 8;

/// Another value: its key, and what makes it.
struct Move {
    key: &'static str,
    change: Box<dyn Fn(&mut DriveSpec)>,
}

pub(super) fn fit(spec: &DriveSpec, requests: &[Request]) -> ValidationFit {
    let half = requests.len() / 2;
    let at_first = distances(spec, requests, half).unwrap_or([f64::INFINITY; 2]);
    let (mut best, mut now) = (spec.clone(), at_first);
    let mut changes: Vec<FittedValue> = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let mut found: Option<(&'static str, DriveSpec, [f64; 2])> = None;
        for Move { key, change } in moves(&best) {
            let mut other = best.clone();
            change(&mut other);
            if other == best {
                continue;
            }
            let Some(there) = distances(&other, requests, half) else { continue };
            let least = found.as_ref().map_or(now[0] * (1.0 - GAIN), |(.., found)| found[0]);
            if there[0] < least {
                found = Some((key, other, there));
            }
        }
        let Some((key, other, there)) = found else { break };
        let [from, to] = [&best, &other].map(|spec| value(spec, key));
        changes.push(FittedValue { key, from, to, fitted_ms: [now[0], there[0]] });
        (best, now) = (other, there);
    }
    for FittedValue { key, .. } in &changes {
        best.sources.insert((*key).into(), SOURCE.into());
    }
    let judged_ms = [at_first[1], now[1]];
    // Changes that do not hold say nothing of the angles.
    let base = if judged_ms[1] < judged_ms[0] { &best } else { spec };
    let (angles, with_angles) = fit_angles(base, requests);
    let spec = if angles.iter().any(|angle| angle.kept) { with_angles } else { best };
    ValidationFit { changes, judged_ms, angles, spec }
}

fn distances(spec: &DriveSpec, requests: &[Request], half: usize) -> Option<[f64; 2]> {
    let exchanges = replayed(spec, requests)?;
    Some([distance(&exchanges[..half]), distance(&exchanges[half..])])
}

/// None for values that make no drive, or one without the places of the trace.
fn replayed(spec: &DriveSpec, requests: &[Request]) -> Option<Vec<Exchange>> {
    let drive = Drive::build(spec).ok()?;
    let last = requests.iter().map(|request| request.start.get() + u64::from(request.blocks)).max();
    if drive.blocks().get() < last? {
        return None;
    }
    let unit = DriveUnit::new(&Arc::new(drive), &spec.electronics_as_measured()).ok()?;
    Some(replay(unit, requests))
}

fn distance(exchanges: &[Exchange]) -> f64 {
    let of = |op: Op| {
        let of_op = exchanges.iter().filter(move |exchange| exchange.request.op == op);
        let (mut measured, mut simulated): (Vec<f64>, Vec<f64>) = of_op
            .map(|exchange| {
                (exchange.request.measured().as_ms_f64(), exchange.simulated.as_ms_f64())
            })
            .unzip();
        measured.sort_by(f64::total_cmp);
        simulated.sort_by(f64::total_cmp);
        let squares = demerit(&measured, &simulated).powi(2) * measured.len() as f64;
        if measured.is_empty() { 0.0 } else { squares }
    };
    ((of(Op::Read) + of(Op::Write)) / exchanges.len().max(1) as f64).sqrt()
}

/// Key of a value of the bus over which the trace was measured, by that of a file without `measured_on`.
fn key_of_bus(spec: &DriveSpec, own: &'static str) -> &'static str {
    match (&spec.measured_on, own) {
        (None, _) => own,
        (_, "electronics.bus.block_time") => "measured_on.bus.block_time",
        (_, "electronics.bus.read_water_mark") => "measured_on.bus.read_water_mark",
        (Some(host), _) if host.almost_hits.is_some() => "measured_on.almost_hits",
        _ => own,
    }
}

fn bus(spec: &mut DriveSpec) -> &mut BusSpec {
    match &mut spec.measured_on {
        Some(host) => &mut host.bus,
        None => spec.electronics.bus.get_or_insert_default(),
    }
}

fn almost_hits(spec: &mut DriveSpec) -> Option<&mut bool> {
    let of_host = spec.measured_on.as_mut().and_then(|host| host.almost_hits.as_mut());
    of_host.or(spec.electronics.buffer.as_mut().map(|buffer| &mut buffer.almost_hits))
}

/// A value in text, by its key.
fn value(spec: &DriveSpec, key: &str) -> String {
    let mut spec = spec.clone();
    let buffer = spec.electronics.buffer.clone().unwrap_or_default();
    let overheads = spec.electronics.overheads.unwrap_or_default();
    match key {
        "electronics.buffer.read_ahead" => buffer.read_ahead.to_string(),
        "electronics.buffer.almost_hits" | "measured_on.almost_hits" => {
            almost_hits(&mut spec).is_some_and(|is| *is).to_string()
        }
        "electronics.buffer.partial_hits" => buffer.partial_hits.to_string(),
        "electronics.buffer.keep_free_blocks_before" => buffer.keep_free_blocks_before.to_string(),
        "electronics.bus.read_water_mark" | "measured_on.bus.read_water_mark" => {
            format!("{} %", bus(&mut spec).read_water_mark)
        }
        "electronics.bus.block_time" | "measured_on.bus.block_time" => {
            bus(&mut spec).block_time.to_string()
        }
        "electronics.overheads.read_hit" => after(overheads.read_hit),
        "electronics.overheads.read_miss" => after(overheads.read_miss),
        "electronics.overheads.write_hit" => after(overheads.write_hit),
        "electronics.overheads.write_miss" => after(overheads.write_miss),
        "electronics.read_write_switch" => spec.electronics.read_write_switch.to_string(),
        "head_switch" => spec.head_switch.to_string(),
        _ => spec.seek.write_settle.to_string(),
    }
}

fn after(of: AfterOp) -> String {
    format!("{} after reads, {} after writes", of.after_read, of.after_write)
}

fn moves(spec: &DriveSpec) -> Vec<Move> {
    let mut moves: Vec<Move> = Vec::new();
    let mut push = |key, change: Box<dyn Fn(&mut DriveSpec)>| moves.push(Move { key, change });
    let of_bus = |own| key_of_bus(spec, own);
    if spec.electronics.buffer.is_some() {
        for read_ahead in ReadAhead::ALL {
            push(
                "electronics.buffer.read_ahead",
                with_buffer(move |buffer| buffer.read_ahead = read_ahead),
            );
        }
        push("electronics.buffer.partial_hits", with_buffer(|buffer| buffer.partial_hits ^= true));
        push(
            "electronics.buffer.keep_free_blocks_before",
            with_buffer(|buffer| buffer.keep_free_blocks_before ^= true),
        );
        push(
            of_bus("electronics.buffer.almost_hits"),
            Box::new(|spec| almost_hits(spec).into_iter().for_each(|is| *is ^= true)),
        );
    }
    for mark in [0, 25, 50, 75, 100] {
        push(
            of_bus("electronics.bus.read_water_mark"),
            Box::new(move |spec| bus(spec).read_water_mark = mark),
        );
    }
    for percent in PERCENTS {
        push(
            of_bus("electronics.bus.block_time"),
            Box::new(move |spec| {
                let bus = bus(spec);
                bus.block_time = scaled(bus.block_time, percent);
                bus.write_block_time = bus.write_block_time.map(|time| scaled(time, percent));
            }),
        );
        push(
            "electronics.read_write_switch",
            Box::new(move |spec| {
                let switch = &mut spec.electronics.read_write_switch;
                *switch = scaled(*switch, percent);
            }),
        );
        push(
            "head_switch",
            Box::new(move |spec| spec.head_switch = scaled(spec.head_switch, percent)),
        );
    }
    for us in STEPS_US {
        for (key, part) in OVERHEADS {
            push(
                key,
                Box::new(move |spec| {
                    let part = part(spec.electronics.overheads.get_or_insert_default());
                    part.after_read = moved(part.after_read, us);
                    part.after_write = moved(part.after_write, us);
                }),
            );
        }
        push(
            "seek.write_settle",
            Box::new(move |spec| spec.seek.write_settle = moved(spec.seek.write_settle, us)),
        );
    }
    moves
}

fn scaled(time: SimDuration, percent: u64) -> SimDuration {
    SimDuration::from_ns(time.ns() * percent / 100)
}

/// Factors of a value, in percent.
const PERCENTS: [u64; 6] = [0, 50, 90, 110, 150, 200];

/// Steps of a time.
const STEPS_US: [i64; 6] = [-500, -100, -25, 25, 100, 500];

type Overhead = fn(&mut OverheadSpec) -> &mut AfterOp;

const OVERHEADS: [(&str, Overhead); 4] = [
    ("electronics.overheads.read_hit", |overheads| &mut overheads.read_hit),
    ("electronics.overheads.read_miss", |overheads| &mut overheads.read_miss),
    ("electronics.overheads.write_hit", |overheads| &mut overheads.write_hit),
    ("electronics.overheads.write_miss", |overheads| &mut overheads.write_miss),
];

fn with_buffer(change: impl Fn(&mut BufferSpec) + 'static) -> Box<dyn Fn(&mut DriveSpec)> {
    Box::new(move |spec| spec.electronics.buffer.iter_mut().for_each(&change))
}

fn moved(time: SimDuration, us: i64) -> SimDuration {
    let step = SimDuration::from_us(us.unsigned_abs());
    if us < 0 { time.saturating_sub(step) } else { time + step }
}
