//! What of a drive's electronics shows in no single time: which of the ways that buffers work, and of
//! taking sectors as they pass, explains requests near one another best.
//!
//! Every choice is held against the same requests, served by the model as by the drive
//! (`held_out.rs`); what is best then are those that none of the others betters. The requests that say
//! what the file is worth are others.

use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::onboard::spec::{BufferSpec, BusSpec, ReadAhead};
use freewheel_units::SimDuration;

use super::held_out::{Requests, misfit_ns};

/// What was chosen, and how much worse the best of the other choices explains the requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Choice {
    pub key: &'static str,
    pub misfit_ns: f64,
    pub other_misfit_ns: f64,
}

impl Choice {
    pub fn lead_ns(&self) -> f64 {
        self.other_misfit_ns - self.misfit_ns
    }

    /// Whether any other would have shown.
    pub fn tells(&self) -> bool {
        self.lead_ns() > SAME_NS
    }
}

/// All that is chosen.
pub(super) const KEYS: [&str; 10] = [
    "zero_latency",
    "onboard.bus.store_and_forward",
    "onboard.buffer.read_ahead",
    "onboard.buffer.segment_blocks",
    "onboard.buffer.read_ahead_max_blocks",
    "onboard.buffer.partial_hits",
    "onboard.buffer.keep_free_blocks_before",
    "onboard.buffer.keep_requested",
    "onboard.buffer.almost_hits",
    "onboard.buffer.read_ahead_on_hit",
];

/// A value of these as text; None where a drive has no such part.
pub(super) fn value(spec: &DriveSpec, key: &str) -> Option<String> {
    let yes = |is: bool| String::from(if is { "yes" } else { "no" });
    let buffer = spec.onboard.buffer.as_ref();
    Some(match key {
        "zero_latency" => yes(spec.zero_latency.read),
        "onboard.bus.store_and_forward" => yes(spec.onboard.bus?.store_and_forward),
        "onboard.buffer.read_ahead" => format!("{:?}", buffer?.read_ahead),
        "onboard.buffer.segment_blocks" => buffer?.segment_blocks.to_string(),
        "onboard.buffer.read_ahead_max_blocks" => buffer?.read_ahead_max_blocks.to_string(),
        "onboard.buffer.partial_hits" => yes(buffer?.partial_hits),
        "onboard.buffer.keep_free_blocks_before" => yes(buffer?.keep_free_blocks_before),
        "onboard.buffer.keep_requested" => yes(buffer?.keep_requested),
        "onboard.buffer.almost_hits" => yes(buffer?.almost_hits),
        _ => yes(buffer?.read_ahead_on_hit),
    })
}

/// Rounds over all choices at most; in most cases the second changes nothing.
const ROUNDS_MAX: usize = 4;
/// Mean error per request that leaves no more than one wrong turn among some hundred.
const WELL_EXPLAINED_NS: f64 = 50_000.0;
/// So much shorter a head switch may be than was measured.
pub(super) const SWITCH_LESS: [SimDuration; 4] = [
    SimDuration::from_us(2),
    SimDuration::from_us(4),
    SimDuration::from_us(8),
    SimDuration::from_us(16),
];
/// Mean error per request of turns lost at the ends of tracks: one of some hundred requests.
const TURNS_NS: f64 = 20_000.0;
/// Mean error per request by which a choice is no better than another.
const SAME_NS: f64 = 1.0;

type Change = fn(&mut DriveSpec);
type ChangeBuffer = fn(&mut BufferSpec);
type AnyChange = Box<dyn Fn(&mut DriveSpec)>;

const YES_OR_NO: [(&str, Change); 2] = [
    ("zero_latency", |spec| {
        let on = !spec.zero_latency.read;
        (spec.zero_latency.read, spec.zero_latency.write) = (on, on);
    }),
    ("onboard.bus.store_and_forward", |spec| {
        let bus = spec.onboard.bus.unwrap_or_default();
        let store_and_forward = !bus.store_and_forward;
        spec.onboard.bus = Some(BusSpec { store_and_forward, ..bus });
    }),
];

const OF_BUFFER: [(&str, ChangeBuffer); 5] = [
    ("onboard.buffer.partial_hits", |buffer| buffer.partial_hits ^= true),
    ("onboard.buffer.keep_free_blocks_before", |buffer| buffer.keep_free_blocks_before ^= true),
    ("onboard.buffer.keep_requested", |buffer| buffer.keep_requested ^= true),
    ("onboard.buffer.almost_hits", |buffer| buffer.almost_hits ^= true),
    ("onboard.buffer.read_ahead_on_hit", |buffer| buffer.read_ahead_on_hit ^= true),
];

const READ_AHEAD: [ReadAhead; 5] = [
    ReadAhead::None,
    ReadAhead::Track,
    ReadAhead::Cylinder,
    ReadAhead::Segment,
    ReadAhead::Adaptive,
];

/// Sizes of segments that are tried first.
const SIZES: [u32; 9] = [32, 64, 128, 256, 512, 1024, 2048, 4096, 8192];

/// A drive file that is made better choice by choice.
struct Fit<'a> {
    spec: DriveSpec,
    misfit_ns: f64,
    requests: &'a Requests,
    choices: Vec<Choice>,
}

/// The file with what explains the requests best; None without requests. Choices hang together, so
/// what no single change betters need not be the best there is: where requests are still off, a buffer
/// that does all it can is begun from, too.
pub(super) fn fitted(spec: DriveSpec, requests: &Requests) -> Option<(DriveSpec, Vec<Choice>)> {
    let mut best = settled(spec.clone(), requests)?;
    if best.misfit_ns > WELL_EXPLAINED_NS && spec.onboard.buffer.is_some() {
        let mut other = spec;
        for (_, change) in OF_BUFFER {
            other.onboard.buffer.iter_mut().for_each(change);
        }
        let other = settled(other, requests)?;
        if other.misfit_ns < best.misfit_ns {
            best = other;
        }
    }
    Some((best.spec, best.choices))
}

/// Made better until nothing does.
fn settled(spec: DriveSpec, requests: &Requests) -> Option<Fit<'_>> {
    let misfit_ns = misfit_ns(&spec, requests)?;
    let mut fit = Fit { spec, misfit_ns, requests, choices: Vec::new() };
    for _ in 0..ROUNDS_MAX {
        let before = fit.misfit_ns;
        fit.choices.clear();
        fit.round();
        if fit.misfit_ns > before - SAME_NS {
            break;
        }
    }
    Some(fit)
}

impl Fit<'_> {
    fn round(&mut self) {
        for (key, change) in YES_OR_NO {
            if key != "onboard.bus.store_and_forward" || self.spec.onboard.bus.is_some() {
                self.choose(key, vec![Box::new(change)]);
            }
        }
        self.shorten_head_switch();
        if self.spec.onboard.buffer.is_none() {
            return;
        }
        let read_ahead = READ_AHEAD.map(|kind| of_buffer(move |b| b.read_ahead = kind));
        self.choose("onboard.buffer.read_ahead", read_ahead.into());
        let sizes = SIZES.map(|size| of_buffer(move |b| b.segment_blocks = size));
        self.choose("onboard.buffer.segment_blocks", sizes.into());
        let most = SIZES.map(|size| of_buffer(move |b| b.read_ahead_max_blocks = size));
        let most = most.into_iter().chain([of_buffer(|b| b.read_ahead_max_blocks = 0)]);
        self.choose("onboard.buffer.read_ahead_max_blocks", most.collect());
        for (key, change) in OF_BUFFER {
            self.choose(key, vec![of_buffer(change)]);
        }
        // Where a segment is read full, neither of both is better alone.
        self.approach("onboard.buffer.segment_blocks", |b, to| {
            (b.segment_blocks, b.read_ahead_max_blocks) =
                (to(b.segment_blocks), to(b.segment_blocks));
        });
        self.approach("onboard.buffer.segment_blocks", |b, to| {
            b.segment_blocks = to(b.segment_blocks);
        });
        self.approach("onboard.buffer.read_ahead_max_blocks", |b, to| {
            b.read_ahead_max_blocks = to(b.read_ahead_max_blocks);
        });
    }

    /// A skew may leave a head so little more than the switch takes that one measured a few
    /// microseconds too long loses a turn at the end of each track, where the drive loses none.
    fn shorten_head_switch(&mut self) {
        for less in SWITCH_LESS {
            let mut spec = self.spec.clone();
            spec.head_switch = spec.head_switch.saturating_sub(less);
            if let Some(misfit) = misfit_ns(&spec, self.requests)
                && misfit < self.misfit_ns - TURNS_NS
            {
                (self.misfit_ns, self.spec) = (misfit, spec);
                return;
            }
        }
    }

    /// Takes the best of some changes, if it is better than what there is.
    fn choose(&mut self, key: &'static str, changes: Vec<AnyChange>) {
        let mut all: Vec<(f64, DriveSpec)> = vec![(self.misfit_ns, self.spec.clone())];
        for change in changes {
            let mut spec = self.spec.clone();
            change(&mut spec);
            if spec != self.spec
                && let Some(misfit) = misfit_ns(&spec, self.requests)
            {
                all.push((misfit, spec));
            }
        }
        let is_better = all.iter().any(|(misfit, _)| *misfit < self.misfit_ns - SAME_NS);
        if is_better {
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
        } else {
            all[1..].sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        if let Some(&(other_misfit_ns, _)) = all.get(1) {
            self.choices.push(Choice { key, misfit_ns: all[0].0, other_misfit_ns });
        }
        (self.misfit_ns, self.spec) = all.swap_remove(0);
    }

    /// Makes a number of blocks greater or less by steps that become shorter.
    fn approach(&mut self, key: &'static str, change: fn(&mut BufferSpec, &dyn Fn(u32) -> u32)) {
        let Some(buffer) = &self.spec.onboard.buffer else { return };
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

fn of_buffer(change: impl Fn(&mut BufferSpec) + 'static) -> AnyChange {
    Box::new(move |spec| spec.onboard.buffer.iter_mut().for_each(&change))
}
