//! The simulated storage systems of tr03: its two bases, and what an experiment changes of them.

use freewheel_model::cache::{OpportunisticSpec, PrefetchSpec, StorageCacheSpec};
use freewheel_model::drive::scale::Scaling;
use freewheel_model::sched::PolicySpec;
use freewheel_sim::config::{ArrayConfig, Layout, ScaleConfig, SimConfig, Workload};
use freewheel_units::Bytes;

use super::tr03_traces::{Class, TraceHere};

/// tr03's two systems, of which an experiment changes one thing at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// Disks and low-end adaptors alone.
    Poor,
    /// A large controller in front.
    Rich,
}

impl Base {
    pub const BOTH: [Self; 2] = [Self::Poor, Self::Rich];

    pub fn name(self) -> &'static str {
        match self {
            Self::Poor => "poor",
            Self::Rich => "rich",
        }
    }
}

/// A storage system. Its caches are those of all disks together on a rich system, and of each disk on a
/// poor one.
#[derive(Debug, Clone)]
pub(super) struct System {
    pub base: Base,
    pub cache: StorageCacheSpec,
    pub scheduler: PolicySpec,
    pub drives: u32,
    pub stripe_unit: Bytes,
    /// Of the member of the family that suits the trace.
    pub scaling: Scaling,
    /// Surfaces for each that the member has.
    pub surfaces: u32,
    pub slices: u32,
}

/// Slices of a trace that say how far a result holds.
pub(super) const SLICES: u32 = 5;

/// tr03's warm-up of its shortest trace: 3 of 7 days.
const WARM_UP: f64 = 0.43;

/// tr03 figure 2: order of requests, and stripe unit.
const ASATF: PolicySpec = PolicySpec::Asatf { age_factor: 0.01 };
const STRIPE_UNIT: Bytes = Bytes::new(2 << 20);

/// The member of the family that the library has.
const DRIVE: &str = "ultrastar73lzx";

/// A member of the family, by its surfaces for each that the library's has.
struct Member {
    surfaces: f64,
    capacity_gb: f64,
}

/// tr03 section 3.3.
const MEMBERS: [Member; 4] = [
    Member { surfaces: 0.25, capacity_gb: 9.1 },
    Member { surfaces: 0.5, capacity_gb: 18.3 },
    Member { surfaces: 1.0, capacity_gb: 36.7 },
    Member { surfaces: 2.0, capacity_gb: 73.4 },
];

/// Room that is left on a disk (tr03 section 3.3).
const HEADROOM: f64 = 1.2;

impl System {
    /// A base with the segments of the trace's class.
    pub fn new(base: Base, trace: &TraceHere) -> Self {
        let cache = match base {
            Base::Poor => StorageCacheSpec::resource_poor(),
            Base::Rich => StorageCacheSpec {
                prefetch: Self::conditional(trace.class),
                ..StorageCacheSpec::resource_rich(trace.storage_used)
            },
        };
        Self {
            base,
            cache,
            scheduler: ASATF,
            drives: 1,
            stripe_unit: STRIPE_UNIT,
            scaling: Scaling::default(),
            surfaces: 1,
            slices: SLICES,
        }
    }

    /// Conditional sequential prefetch: segments of 16 KB for personal computers, of 8 KB for servers.
    pub fn conditional(class: Class) -> PrefetchSpec {
        PrefetchSpec::conditional(Bytes::from_kib(if class.is_personal() { 16 } else { 8 }))
    }

    /// Prefetches nothing.
    pub fn without_prefetch(&mut self) {
        self.cache.prefetch = PrefetchSpec::Off;
        self.cache.opportunistic = OpportunisticSpec::default();
    }

    fn cache_of_a_disk(&self) -> StorageCacheSpec {
        let mut cache = self.cache;
        if self.base == Base::Poor {
            return cache;
        }
        let block = cache.block_size.get();
        cache.size = self.part(cache.size, block);
        cache
            .write_buffer
            .iter_mut()
            .for_each(|buffer| buffer.size = self.part(buffer.size, block));
        cache
    }

    fn part(&self, total: Bytes, block: u64) -> Bytes {
        let blocks = (total.get() / u64::from(self.drives) / block).max(1);
        Bytes::new(blocks * block)
    }

    /// The system with this trace in front. The drive's own electronics are off, so that every optimisation
    /// exists once (tr03 section 3.3).
    pub fn config(&self, trace: &TraceHere, seed: u64) -> SimConfig {
        let array = ArrayConfig {
            layout: Layout::Striped,
            drives: Some(self.drives),
            stripe_unit: self.stripe_unit,
            ..ArrayConfig::default()
        };
        SimConfig {
            seed,
            drive: DRIVE.into(),
            scale: self.scale(trace),
            scheduler: self.scheduler,
            electronics: false,
            array,
            cache: Some(self.cache_of_a_disk()),
            warm_up: WARM_UP,
            slices: self.slices,
            workload: Workload::Trace(trace.workload.clone()),
            ..SimConfig::default()
        }
    }

    /// The smallest member of the family with room for the trace, scaled.
    fn scale(&self, trace: &TraceHere) -> ScaleConfig {
        let needed_gb = HEADROOM * trace.reached.get() as f64 / 1e9;
        let member = MEMBERS
            .iter()
            .find(|member| member.capacity_gb >= needed_gb)
            .unwrap_or(&MEMBERS[MEMBERS.len() - 1]);
        let Scaling { seek, rpm, linear_density, track_density, .. } = self.scaling;
        ScaleConfig {
            years: 0.0,
            seek: Some(seek),
            rpm: Some(rpm),
            linear_density: Some(linear_density),
            track_density: Some(track_density),
            surfaces: Some(f64::from(self.surfaces) * member.surfaces),
        }
    }
}
