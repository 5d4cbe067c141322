//! The values of a drive that a fit moves, and the drive with them.

use freewheel_model::drive::scale::Scaling;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::electronics::spec::{AfterOp, OverheadSpec, WriteCache};
use freewheel_units::SimDuration;
use serde::Serialize;

/// Speeds that disks were made with, in turns a minute.
const SPEEDS: [f64; 6] = [3_600.0, 5_400.0, 5_900.0, 7_200.0, 10_000.0, 15_000.0];
/// Factors of seek times that each speed is tried with, half a doubling apart.
const SEEKS: [f64; 6] = [0.5, 0.7, 1.0, 1.4, 2.0, 2.8];
/// Seek times between an eighth and eight times the drive's own are tried.
const SEEK_DOUBLINGS_MAX: f64 = 3.0;
/// The longest time that is added to a command.
const OVERHEAD_MAX: SimDuration = SimDuration::from_ms(20);
/// Time that a whole step adds to a command.
const OVERHEAD_STEP: SimDuration = SimDuration::from_us(1_000);

/// Ending of the maker's name of a fitted drive.
pub const FITTED: &str = ", fitted";

/// Values of a fitted drive.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FittedValues {
    /// Factor of all seek times and the head switch.
    pub seek: f64,
    /// Turns a minute.
    pub rpm: f64,
    /// Added to the processing of each command.
    pub overhead_ns: u64,
    /// True if the drive's write cache is switched off.
    pub write_cache_off: bool,
}

impl FittedValues {
    pub(super) fn of(spec: &DriveSpec) -> Self {
        Self { seek: 1.0, rpm: rpm(spec), overhead_ns: 0, write_cache_off: false }
    }

    /// The drive's own speed, and those of others.
    pub(super) fn speeds(spec: &DriveSpec) -> impl Iterator<Item = f64> {
        let own = rpm(spec);
        let others = SPEEDS.into_iter().filter(move |rpm| (rpm / own - 1.0).abs() > 0.01);
        std::iter::once(own).chain(others)
    }

    /// Starts of a search: each speed with seeks of several lengths, and the write cache as it is and off.
    /// The first are the drive's own.
    pub(super) fn grid(spec: &DriveSpec, electronics: bool) -> Vec<Self> {
        let own = Self::of(spec);
        let caches: &[bool] =
            if electronics && has_write_cache(spec) { &[false, true] } else { &[false] };
        let mut all = vec![own];
        for &write_cache_off in caches {
            for rpm in Self::speeds(spec) {
                all.extend(SEEKS.map(|seek| Self { seek, rpm, write_cache_off, ..own }));
            }
        }
        let mut kept: Vec<Self> = Vec::new();
        all.into_iter().for_each(|values| {
            if !kept.contains(&values) {
                kept.push(values);
            }
        });
        kept
    }

    /// True if the search ended at one of its limits.
    pub fn is_at_a_limit(&self) -> bool {
        let doublings = libm::log2(self.seek).abs();
        [SPEEDS[0], SPEEDS[SPEEDS.len() - 1]].iter().any(|rpm| (self.rpm / rpm - 1.0).abs() < 0.01)
            || doublings > SEEK_DOUBLINGS_MAX - 0.1
            || self.overhead_ns >= OVERHEAD_MAX.ns()
    }

    /// Values of the same speed that differ in one of the others: seeks by `step` doublings, overheads by
    /// milliseconds, and the write cache. The electronics' values only where they take part.
    pub(super) fn neighbours(&self, spec: &DriveSpec, electronics: bool, step: f64) -> Vec<Self> {
        let seeks = [-step, step].map(|step| self.seek * libm::exp2(step));
        let seeks = seeks
            .into_iter()
            .filter(|seek| libm::log2(*seek).abs() <= SEEK_DOUBLINGS_MAX)
            .map(|seek| Self { seek, ..*self });
        let mut all: Vec<Self> = seeks.collect();
        if electronics {
            let more = (OVERHEAD_STEP.ns() as f64 * step) as u64;
            let longer = (self.overhead_ns + more).min(OVERHEAD_MAX.ns());
            let overheads = [longer, self.overhead_ns.saturating_sub(more)];
            all.extend(overheads.map(|overhead_ns| Self { overhead_ns, ..*self }));
            if has_write_cache(spec) {
                all.push(Self { write_cache_off: !self.write_cache_off, ..*self });
            }
        }
        all.retain(|values| values != self);
        all
    }

    /// Values that move the head, for drives that share it.
    pub(super) fn mechanics(&self) -> [f64; 2] {
        [self.seek, self.rpm]
    }

    /// The drive with these seeks and this speed; None where it cannot be built.
    pub(super) fn with_mechanics(&self, spec: &DriveSpec) -> Option<DriveSpec> {
        let scaling = Scaling { seek: self.seek, rpm: self.rpm / rpm(spec), ..Scaling::default() };
        scaling.apply(spec).ok()
    }

    /// A drive with [`Self::with_mechanics`] and this overhead and write cache.
    pub(super) fn with_electronics(&self, mut fitted: DriveSpec) -> DriveSpec {
        if self.overhead_ns > 0 {
            // A file without overheads has its commands' times under `overhead`.
            fitted.electronics = fitted.electronics.with_processing(fitted.overhead);
            let more = SimDuration::from_ns(self.overhead_ns);
            fitted.electronics.overheads = fitted.electronics.overheads.map(|of| longer(of, more));
        }
        if let Some(buffer) = fitted.electronics.buffer.as_mut().filter(|_| self.write_cache_off) {
            buffer.write_cache = WriteCache::Off;
        }
        fitted
    }

    /// The drive with all of them; None where it cannot be built. Its values say that they are fitted to
    /// `trace`.
    pub(super) fn apply(&self, spec: &DriveSpec, trace: &str) -> Option<DriveSpec> {
        let mut fitted = self.with_electronics(self.with_mechanics(spec)?);
        fitted.name = format!("{}-fitted", spec.name);
        fitted.model = format!("{}{FITTED}", spec.model);
        self.name_sources(&mut fitted, spec, trace);
        Some(fitted)
    }

    fn name_sources(&self, fitted: &mut DriveSpec, spec: &DriveSpec, trace: &str) {
        let changed = [
            ("model", true),
            ("seek", self.seek != 1.0),
            ("head_switch", self.seek != 1.0),
            ("rotation_period", self.rpm != rpm(spec)),
            ("electronics.overheads", self.overhead_ns > 0),
            ("electronics.buffer.write_cache", self.write_cache_off),
        ];
        for (key, _) in changed.into_iter().filter(|(_, is_changed)| *is_changed) {
            let below = format!("{key}.");
            fitted.sources.retain(|of, _| of != key && !of.starts_with(&below));
            // Another drive would answer alike, so these are as open as any assumed value.
            let text = format!("assumed: {}'s, fitted to the responses of {trace}", spec.name);
            fitted.sources.insert(key.into(), text);
        }
    }
}

fn rpm(spec: &DriveSpec) -> f64 {
    60e9 / spec.rotation_period.ns() as f64
}

fn has_write_cache(spec: &DriveSpec) -> bool {
    spec.electronics.buffer.as_ref().is_some_and(|buffer| buffer.write_cache != WriteCache::Off)
}

fn longer(of: OverheadSpec, more: SimDuration) -> OverheadSpec {
    let both = |of: AfterOp| AfterOp {
        after_read: of.after_read + more,
        after_write: of.after_write + more,
    };
    OverheadSpec {
        read_hit: both(of.read_hit),
        read_miss: both(of.read_miss),
        write_hit: both(of.write_hit),
        write_miss: both(of.write_miss),
        ..of
    }
}

#[cfg(test)]
mod tests {
    use freewheel_sim::library;

    use super::*;

    #[test]
    fn values_rebuild_same_drive() {
        let spec = library::spec(library::DEFAULT_DRIVE).unwrap();
        let fitted = FittedValues::of(&spec).apply(&spec, "a trace").unwrap();
        let DriveSpec { name, model, sources, held_out, .. } = spec.clone();
        assert_eq!(DriveSpec { name, model, sources, held_out, ..fitted }, spec);
    }

    #[test]
    fn values_neighbours_differ_in_one() {
        let spec = library::spec(library::DEFAULT_DRIVE).unwrap();
        let own = FittedValues::of(&spec);
        let all = own.neighbours(&spec, true, 1.0);
        // Two seeks, a longer overhead, no write cache.
        assert_eq!(all.len(), 4, "{all:?}");
        for values in all {
            let differs = [
                values.seek != own.seek,
                values.overhead_ns != own.overhead_ns,
                values.write_cache_off != own.write_cache_off,
            ];
            assert_eq!(differs.into_iter().filter(|it| *it).count(), 1);
            let fitted = values.apply(&spec, "a trace").unwrap();
            library::build(&fitted, "fitted").unwrap();
            assert!(fitted.sources.values().any(|text| text.ends_with("responses of a trace")));
        }
        assert!(!own.is_at_a_limit());
        assert!(FittedValues { rpm: 3_600.0, ..own }.is_at_a_limit());
        assert!(FittedValues { seek: 7.9, ..own }.is_at_a_limit());
        assert_eq!(FittedValues::grid(&spec, true).len(), 2 * 6 * SEEKS.len());
        assert_eq!(FittedValues::grid(&spec, false)[0], own);
        assert!(own.neighbours(&spec, false, 1.0).iter().all(|of| of.overhead_ns == 0));
    }

    #[test]
    fn values_overhead_adds_to_drive() {
        let read_miss = AfterOp::both(SimDuration::from_us(300));
        for overheads in [None, Some(OverheadSpec { read_miss, ..OverheadSpec::default() })] {
            let mut spec = library::spec("atlas10k").unwrap();
            spec.overhead.read = SimDuration::from_us(300);
            spec.electronics.overheads = overheads;
            let values = FittedValues { overhead_ns: 125_000, ..FittedValues::of(&spec) };
            let fitted = values.with_electronics(spec).electronics.overheads.unwrap();
            assert_eq!(fitted.read_miss.after_read, SimDuration::from_us(425));
        }
    }
}
