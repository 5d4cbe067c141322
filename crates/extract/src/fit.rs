//! Values of a drive's electronics that show in no single time: the rules of buffers, and of taking sectors
//! as they pass, that explain requests near one another best.
//!
//! Every choice is held against the same requests, served by the model as by the drive
//! (`held_out.rs`); what is best then are those that none of the others betters. The requests that say
//! what the file is worth are others.

use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::electronics::spec::{BufferSpec, BusSpec, ReadAhead};
use freewheel_units::SimDuration;

use super::Confidence;
use super::held_out::{Requests, errors_ns};

/// Another value than the one that was chosen, and by how much worse it explains the requests.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Other {
    pub value: String,
    /// Mean error of a request more than with the value that was chosen.
    pub lead_ns: f64,
    /// Standard error of that, from request to request.
    pub error_ns: f64,
}

impl Other {
    /// True if it would have shown.
    pub fn shows(&self) -> bool {
        self.lead_ns > SAME_NS && self.lead_ns > SURE * self.error_ns
    }

    /// True if no request tells it from the chosen one.
    fn is_like(&self) -> bool {
        self.lead_ns <= SAME_NS.max(self.error_ns)
    }
}

/// Chosen value, and the other values that were tried for it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choice {
    pub key: &'static str,
    /// True if the requests are well explained by what was chosen.
    pub explains: bool,
    /// Mean error of a request.
    pub misfit_ns: f64,
    pub others: Vec<Other>,
}

impl Choice {
    /// The other value that explains the requests best.
    pub fn nearest(&self) -> Option<&Other> {
        self.others.iter().min_by(|a, b| a.lead_ns.total_cmp(&b.lead_ns))
    }

    /// Confidence of a value that is one of a few.
    pub fn confidence(&self) -> Confidence {
        let all_show = self.others.iter().all(Other::shows);
        match self.nearest() {
            None => Confidence::Assumed,
            Some(_) if all_show && self.explains => Confidence::Measured,
            Some(other) if other.is_like() => Confidence::Unobservable,
            Some(_) => Confidence::Approximate,
        }
    }

    /// Least and greatest of the numbers that were tried and explain the requests as well; None if all do.
    pub fn range(&self, number: u32) -> Option<[u32; 2]> {
        if !self.others.iter().any(Other::shows) {
            return None;
        }
        let like = self.others.iter().filter(|other| !other.shows());
        let like = like.filter_map(|other| other.value.parse().ok());
        Some(like.fold([number; 2], |[least, most], n: u32| [least.min(n), most.max(n)]))
    }
}

/// All that is chosen.
pub(super) const KEYS: [&str; 10] = [
    "zero_latency",
    "electronics.bus.read_water_mark",
    "electronics.buffer.read_ahead",
    "electronics.buffer.segment_blocks",
    "electronics.buffer.read_ahead_max_blocks",
    "electronics.buffer.partial_hits",
    "electronics.buffer.keep_free_blocks_before",
    "electronics.buffer.keep_requested",
    "electronics.buffer.almost_hits",
    "electronics.buffer.read_ahead_on_hit",
];

/// A value of these as text; None where a drive has no such part.
pub(super) fn value(spec: &DriveSpec, key: &str) -> Option<String> {
    let buffer = spec.electronics.buffer.as_ref();
    Some(match key {
        "zero_latency" => yes(spec.zero_latency.read),
        "electronics.bus.read_water_mark" => spec.electronics.bus?.read_water_mark.to_string(),
        "electronics.buffer.read_ahead" => format!("{:?}", buffer?.read_ahead),
        "electronics.buffer.segment_blocks" => buffer?.segment_blocks.to_string(),
        "electronics.buffer.read_ahead_max_blocks" => buffer?.read_ahead_max_blocks.to_string(),
        "electronics.buffer.partial_hits" => yes(buffer?.partial_hits),
        "electronics.buffer.keep_free_blocks_before" => yes(buffer?.keep_free_blocks_before),
        "electronics.buffer.keep_requested" => yes(buffer?.keep_requested),
        "electronics.buffer.almost_hits" => yes(buffer?.almost_hits),
        _ => yes(buffer?.read_ahead_on_hit),
    })
}

fn yes(is: bool) -> String {
    String::from(if is { "yes" } else { "no" })
}

/// Rounds over all choices at most; in most cases the second changes no choice.
const ROUNDS_MAX: usize = 4;
/// Requests are well explained where at most one of this many is off by a turn, what answers vary by
/// counted in; and a shorter head switch saves turns if it saves one in this many. Assumed: few enough
/// that a wrong value that all others hang on shows.
const REQUESTS_A_TURN: f64 = 300.0;
/// This much shorter a head switch is tried, as far as the error of its measurement goes.
const SWITCH_LESS: [SimDuration; 4] = [
    SimDuration::from_us(2),
    SimDuration::from_us(4),
    SimDuration::from_us(8),
    SimDuration::from_us(16),
];
/// Mean error per request by which a choice is no better than another.
const SAME_NS: f64 = 1.0;
/// Standard errors from which on one is.
const SURE: f64 = 4.0;

type Change = fn(&mut DriveSpec);
type ChangeBuffer = fn(&mut BufferSpec);
type AnyChange = Box<dyn Fn(&mut DriveSpec)>;

const YES_OR_NO: [(&str, Change); 2] = [
    ("zero_latency", |spec| {
        let on = !spec.zero_latency.read;
        (spec.zero_latency.read, spec.zero_latency.write) = (on, on);
    }),
    ("electronics.bus.read_water_mark", |spec| {
        let bus = spec.electronics.bus.unwrap_or_default();
        let read_water_mark = if bus.read_water_mark > 0 { 0 } else { 100 };
        spec.electronics.bus = Some(BusSpec { read_water_mark, ..bus });
    }),
];

const OF_BUFFER: [(&str, ChangeBuffer); 5] = [
    ("electronics.buffer.partial_hits", |buffer| buffer.partial_hits ^= true),
    ("electronics.buffer.keep_free_blocks_before", |buffer| buffer.keep_free_blocks_before ^= true),
    ("electronics.buffer.keep_requested", |buffer| buffer.keep_requested ^= true),
    ("electronics.buffer.almost_hits", |buffer| buffer.almost_hits ^= true),
    ("electronics.buffer.read_ahead_on_hit", |buffer| buffer.read_ahead_on_hit ^= true),
];

/// Sizes of segments that are tried first.
const SIZES: [u32; 9] = [32, 64, 128, 256, 512, 1024, 2048, 4096, 8192];

/// A value that was tried, and by how much each request was off.
struct FitAttempt {
    key: &'static str,
    value: String,
    errors_ns: Vec<f64>,
}

/// A drive file that is made better choice by choice.
struct Fit<'a> {
    spec: DriveSpec,
    errors_ns: Vec<f64>,
    misfit_ns: f64,
    requests: &'a Requests,
    /// No head switch is shorter, by what was measured.
    switch_least: SimDuration,
    /// In the last round.
    tried: Vec<FitAttempt>,
}

/// The file with what explains the requests best; None without requests. Choices hang together, so
/// what no single change betters need not be the best there is: where requests are still off, a buffer
/// that does all it can is begun from, too. The head switch may be off by `switch_error`.
pub(super) fn fitted(
    spec: DriveSpec,
    requests: &Requests,
    switch_error: SimDuration,
) -> Option<(DriveSpec, Vec<Choice>)> {
    let switch_least = spec.head_switch.saturating_sub(switch_error);
    let mut best = settled(spec.clone(), requests, switch_least)?;
    if !best.explains() && spec.electronics.buffer.is_some() {
        let mut other = spec;
        for (_, change) in OF_BUFFER {
            other.electronics.buffer.iter_mut().for_each(change);
        }
        let other = settled(other, requests, switch_least)?;
        if other.misfit_ns < best.misfit_ns {
            best = other;
        }
    }
    let choices = KEYS.iter().filter_map(|key| best.choice(key)).collect();
    Some((best.spec, choices))
}

/// Improved until no change helps.
fn settled(spec: DriveSpec, requests: &Requests, switch_least: SimDuration) -> Option<Fit<'_>> {
    let errors_ns = errors_ns(&spec, requests)?;
    let misfit_ns = mean(&errors_ns);
    let mut fit = Fit { spec, errors_ns, misfit_ns, requests, switch_least, tried: Vec::new() };
    for _ in 0..ROUNDS_MAX {
        let before = fit.misfit_ns;
        fit.tried.clear();
        fit.round();
        if fit.misfit_ns > before - SAME_NS {
            break;
        }
    }
    Some(fit)
}

impl Fit<'_> {
    /// Mean error of requests of which one in this many is off by a turn.
    fn turns_ns(&self) -> f64 {
        self.spec.rotation_period.ns() as f64 / REQUESTS_A_TURN
    }

    fn explains(&self) -> bool {
        self.misfit_ns < self.turns_ns()
    }

    fn round(&mut self) {
        for (key, change) in YES_OR_NO {
            if key != "electronics.bus.read_water_mark" || self.spec.electronics.bus.is_some() {
                self.choose(key, vec![Box::new(change)]);
            }
        }
        self.shorten_head_switch();
        if self.spec.electronics.buffer.is_none() {
            return;
        }
        let read_ahead = ReadAhead::ALL.map(|kind| of_buffer(move |b| b.read_ahead = kind));
        self.choose("electronics.buffer.read_ahead", read_ahead.into());
        let sizes = SIZES.map(|size| of_buffer(move |b| b.segment_blocks = size));
        self.choose("electronics.buffer.segment_blocks", sizes.into());
        let most = SIZES.map(|size| of_buffer(move |b| b.read_ahead_max_blocks = size));
        let most = most.into_iter().chain([of_buffer(|b| b.read_ahead_max_blocks = 0)]);
        self.choose("electronics.buffer.read_ahead_max_blocks", most.collect());
        for (key, change) in OF_BUFFER {
            self.choose(key, vec![of_buffer(change)]);
        }
        // Where a segment is read full, neither of both is better alone.
        self.approach("electronics.buffer.segment_blocks", |b, to| {
            (b.segment_blocks, b.read_ahead_max_blocks) =
                (to(b.segment_blocks), to(b.segment_blocks));
        });
        self.approach("electronics.buffer.segment_blocks", |b, to| {
            b.segment_blocks = to(b.segment_blocks);
        });
        self.approach("electronics.buffer.read_ahead_max_blocks", |b, to| {
            b.read_ahead_max_blocks = to(b.read_ahead_max_blocks);
        });
    }

    /// A skew may leave a head so little more than the switch takes that one measured a few
    /// microseconds too long loses a turn at the end of each track, where the drive loses none.
    fn shorten_head_switch(&mut self) {
        for less in SWITCH_LESS {
            let mut spec = self.spec.clone();
            spec.head_switch = spec.head_switch.saturating_sub(less);
            if spec.head_switch < self.switch_least {
                return;
            }
            if let Some(errors) = errors_ns(&spec, self.requests)
                && mean(&errors) < self.misfit_ns - self.turns_ns()
            {
                self.take(spec, errors);
                return;
            }
        }
    }

    fn take(&mut self, spec: DriveSpec, errors_ns: Vec<f64>) {
        (self.misfit_ns, self.spec, self.errors_ns) = (mean(&errors_ns), spec, errors_ns);
    }

    /// Takes the best of some changes, if it improves the choice.
    fn choose(&mut self, key: &'static str, changes: Vec<AnyChange>) {
        let mut best: Option<(DriveSpec, Vec<f64>)> = None;
        self.note(key, &self.spec.clone(), self.errors_ns.clone());
        for change in changes {
            let mut spec = self.spec.clone();
            change(&mut spec);
            if spec == self.spec {
                continue;
            }
            let Some(errors) = errors_ns(&spec, self.requests) else { continue };
            self.note(key, &spec, errors.clone());
            let least = best.as_ref().map_or(self.misfit_ns - SAME_NS, |(_, best)| mean(best));
            if mean(&errors) < least {
                best = Some((spec, errors));
            }
        }
        if let Some((spec, errors)) = best {
            self.take(spec, errors);
        }
    }

    fn note(&mut self, key: &'static str, spec: &DriveSpec, errors_ns: Vec<f64>) {
        if let Some(value) = value(spec, key) {
            self.tried.push(FitAttempt { key, value, errors_ns });
        }
    }

    /// Values tried for a key, against the chosen one; None if no other was.
    fn choice(&self, key: &'static str) -> Option<Choice> {
        let chosen = value(&self.spec, key)?;
        let others = self.tried.iter().filter(|tried| tried.key == key && tried.value != chosen);
        let others: Vec<Other> = others.map(|tried| self.other(tried)).collect();
        let (misfit_ns, explains) = (self.misfit_ns, self.explains());
        (!others.is_empty()).then_some(Choice { key, explains, misfit_ns, others })
    }

    fn other(&self, tried: &FitAttempt) -> Other {
        let pairs = tried.errors_ns.iter().zip(&self.errors_ns);
        let more: Vec<f64> = pairs.map(|(other, own)| other - own).collect();
        let (lead_ns, count) = (mean(&more), more.len() as f64);
        let variance = more.iter().map(|more| (more - lead_ns).powi(2)).sum::<f64>() / count;
        Other { value: tried.value.clone(), lead_ns, error_ns: (variance / count).sqrt() }
    }

    /// Makes a number of blocks greater or less by steps that become shorter.
    fn approach(&mut self, key: &'static str, change: fn(&mut BufferSpec, &dyn Fn(u32) -> u32)) {
        let Some(buffer) = &self.spec.electronics.buffer else { return };
        let mut step = buffer.segment_blocks.max(buffer.read_ahead_max_blocks) / 2;
        while step > 0 {
            let changes: [AnyChange; 2] = [
                of_buffer(move |b| change(b, &|blocks| blocks + step)),
                of_buffer(move |b| change(b, &|blocks| blocks.saturating_sub(step).max(1))),
            ];
            self.choose(key, changes.into());
            step /= 2;
        }
    }
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

fn of_buffer(change: impl Fn(&mut BufferSpec) + 'static) -> AnyChange {
    Box::new(move |spec| spec.electronics.buffer.iter_mut().for_each(&change))
}
