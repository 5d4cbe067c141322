//! Changes of a storage system: what each is called, costs, and does to an experiment.

use freewheel_model::cache::{
    CachePolicy, OpportunisticSpec, PrefetchSpec, StorageCacheSpec, WriteBufferSpec,
};
use freewheel_model::electronics::spec::WriteCache;
use freewheel_model::sched::PolicySpec;
use freewheel_model::sched::linux::LINUX_SCHEDULERS;
use freewheel_sim::config::SimConfig;
use freewheel_units::{Bytes, SimDuration};
use serde::{Deserialize, Serialize};

use crate::cache_curves::{KNEES_MAX, Knee};

/// A part of the system. A combination has at most one change of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Part {
    /// The order in which requests are served.
    Order,
    /// The drive's own write cache.
    DriveWriteCache,
    ReadCache,
    Prefetch,
    WriteBuffer,
    /// Number of drives that share the load.
    Drives,
}

/// Cost of a change, from the cheapest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "class", rename_all = "kebab-case")]
pub enum ChangeCost {
    /// Another value of something that is there.
    Setting,
    /// A program in front of the drive.
    Software,
    /// Memory for copies of data that the drive has.
    Memory {
        /// Bytes, over all drives.
        bytes: Bytes,
    },
    /// Memory that keeps its data without power.
    NonVolatileMemory {
        /// Bytes, over all drives.
        bytes: Bytes,
    },
    /// Further drives of the same kind.
    Drives {
        /// Number of additional drives.
        more: u32,
    },
}

/// A change of the system.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Change {
    /// Commands that the drive may have in its queue.
    DriveQueue { depth: u32 },
    /// The drive reports no write done before it is on the media.
    DriveWriteCacheOff,
    /// A policy in front of the drive.
    Policy {
        policy: PolicySpec,
        /// True if the drive is given commands up to its queue's length, and orders them once more; else
        /// it is given one at a time.
        drive_queue: bool,
    },
    /// A read cache in front of the drive.
    ReadCache { size: Bytes, policy: CachePolicy },
    /// Prefetching into a read cache of at least [`PREFETCH_CACHE`].
    Prefetch {
        /// With reads that miss.
        with_misses: PrefetchSpec,
        /// In idle time and in rotational latency.
        opportunistic: OpportunisticSpec,
    },
    /// A non-volatile write buffer in front of the drive.
    WriteBuffer {
        size: Bytes,
        /// Age at which it destages data regardless of its marks.
        max_age: SimDuration,
        /// Most destages at once. Reads wait behind them where a write waits for room.
        destages: u32,
    },
    /// One volume over several drives.
    Stripe {
        drives: u32,
        /// Consecutive bytes on one drive.
        unit: Bytes,
    },
}

/// Place at which caches are added.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Actuators of the drive. Each has a cache, so memory is divided among them.
    pub actuators: u64,
    /// Most requests in the storage system at once; further ones wait before the cache.
    pub cache_depth: u32,
}

/// Memory that prefetching needs at least: tr03's cache of a drive with few resources.
pub const PREFETCH_CACHE: Bytes = Bytes::new(8 << 20);

/// Unit of stripes, from tr03's table 9.
const STRIPE_UNIT: Bytes = Bytes::new(2 << 20);

impl Change {
    /// The part of the system that it changes.
    pub fn part(&self) -> Part {
        match self {
            Self::DriveQueue { .. } | Self::Policy { .. } => Part::Order,
            Self::DriveWriteCacheOff => Part::DriveWriteCache,
            Self::ReadCache { .. } => Part::ReadCache,
            Self::Prefetch { .. } => Part::Prefetch,
            Self::WriteBuffer { .. } => Part::WriteBuffer,
            Self::Stripe { .. } => Part::Drives,
        }
    }

    /// The system that it is compared with, where that is not the one of today: prefetching needs a cache, and
    /// what the cache does alone is not its gain.
    pub fn control(&self) -> Option<Self> {
        match self {
            Self::Prefetch { .. } => {
                Some(Self::ReadCache { size: PREFETCH_CACHE, policy: CachePolicy::Lru })
            }
            _ => None,
        }
    }

    /// Cost of the change.
    pub fn cost(&self) -> ChangeCost {
        match *self {
            Self::DriveQueue { .. } | Self::DriveWriteCacheOff => ChangeCost::Setting,
            Self::Policy { policy, .. } if policy.is_linux() => ChangeCost::Setting,
            Self::Policy { .. } => ChangeCost::Software,
            Self::ReadCache { size, .. } => ChangeCost::Memory { bytes: size },
            Self::Prefetch { .. } => ChangeCost::Memory { bytes: PREFETCH_CACHE },
            Self::WriteBuffer { size, .. } => ChangeCost::NonVolatileMemory { bytes: size },
            Self::Stripe { drives, .. } => ChangeCost::Drives { more: drives - 1 },
        }
    }

    /// Changes an experiment. Changes of different parts may follow each other in any order.
    pub fn apply(&self, config: &mut SimConfig, place: Place) {
        match *self {
            Self::DriveQueue { depth } => {
                config.scheduler = PolicySpec::Fcfs;
                config.queue_depth = Some(depth);
            }
            Self::DriveWriteCacheOff => config.write_cache = Some(WriteCache::Off),
            Self::Policy { policy, drive_queue } => {
                config.scheduler = policy;
                if !drive_queue {
                    config.queue_depth = Some(1);
                }
            }
            Self::ReadCache { size, policy } => {
                let cache = cache(config, place);
                cache.size = cache.size.max(part(size, &place));
                cache.policy = policy;
            }
            Self::Prefetch { with_misses, opportunistic } => {
                let cache = cache(config, place);
                cache.size = cache.size.max(part(PREFETCH_CACHE, &place));
                cache.prefetch = with_misses;
                cache.opportunistic = opportunistic;
            }
            Self::WriteBuffer { size, max_age, destages } => {
                let (max_age, destages) = (Some(max_age), Some(destages));
                let size = part(size, &place);
                let buffer =
                    WriteBufferSpec { size, max_age, destages, ..WriteBufferSpec::default() };
                cache(config, place).write_buffer = Some(buffer);
            }
            Self::Stripe { drives, unit } => {
                config.array.drives = Some(drives);
                config.array.stripe_unit = unit;
            }
        }
    }

    /// The change in a few words.
    pub fn title(&self) -> String {
        match self {
            Self::DriveQueue { depth: 1 } => "One command at the drive at a time".into(),
            Self::DriveQueue { depth } => format!("Drive queue of {depth}"),
            Self::DriveWriteCacheOff => "The drive's write cache off".into(),
            Self::Policy { policy, .. } if policy.is_linux() => policy.title(),
            Self::Policy { policy, drive_queue: true } => format!("{} in the host", policy.title()),
            Self::Policy { policy, drive_queue: false } => {
                format!("{} in the host, one command at the drive", policy.title())
            }
            Self::ReadCache { size, policy } => {
                format!("Read cache, {}, {}", size.human(), policy.row().title)
            }
            Self::Prefetch { with_misses, opportunistic } => {
                prefetch_title(with_misses, opportunistic)
            }
            Self::WriteBuffer { size, destages, .. } => {
                format!("Write buffer, {}, {destages} destages at once", size.human())
            }
            Self::Stripe { drives, unit } => {
                format!("Stripe over {drives} drives, unit {}", unit.human())
            }
        }
    }
}

fn part(size: Bytes, place: &Place) -> Bytes {
    Bytes::new(size.get() / place.actuators)
}

/// The storage system's cache, and an empty one where there was none.
fn cache(config: &mut SimConfig, place: Place) -> &mut StorageCacheSpec {
    let queue_depth = place.cache_depth;
    config.cache.get_or_insert_with(|| StorageCacheSpec {
        size: Bytes::ZERO,
        queue_depth,
        ..StorageCacheSpec::default()
    })
}

fn prefetch_title(with_misses: &PrefetchSpec, opportunistic: &OpportunisticSpec) -> String {
    let first = match with_misses {
        PrefetchSpec::Off => "Prefetch in idle and rotational time".into(),
        PrefetchSpec::LargeFetchUnit { unit } => format!("Fetch units of {}", unit.human()),
        PrefetchSpec::ReadAhead { amount } => format!("Read-ahead of {}", amount.human()),
        PrefetchSpec::Amp { .. } => "Adaptive prefetch (AMP)".into(),
        PrefetchSpec::Conditional { segment, .. } => {
            format!("Sequential prefetch, segments of {}", segment.human())
        }
    };
    let is_both = *with_misses != PrefetchSpec::Off && opportunistic.read_ahead > Bytes::ZERO;
    if is_both { format!("{first}, and in idle and rotational time") } else { first }
}

/// The system that the changes start from.
#[derive(Debug, Clone)]
pub(crate) struct BaseSystem {
    /// Sizes of a read cache that the miss curve of the trace suggests.
    pub read_knees: Vec<Knee>,
    /// Distinct bytes that are written.
    pub written: Bytes,
    /// True if the drive reports writes done before they are on the media.
    pub has_write_cache: bool,
    /// True if the host sees to it that the zones of a shingled drive are written in order, which a buffer
    /// would not.
    pub is_host_managed: bool,
    /// Commands that the drive may have in its queue now; none without its own queue.
    pub drive_queue: Option<u32>,
    /// True if more requests wait with every second. Then their order hardly matters, and a policy in front
    /// of the drive would have to look through all of them.
    pub has_growing_queue: bool,
}

/// The changes to try on a system, by part.
pub(crate) fn catalogue(setting: &BaseSystem) -> Vec<Change> {
    let mut all = if setting.has_growing_queue { vec![] } else { orders(setting.drive_queue) };
    all.extend(setting.has_write_cache.then_some(Change::DriveWriteCacheOff));
    all.extend(read_caches(&setting.read_knees));
    all.extend(prefetches());
    if !setting.is_host_managed {
        all.extend(write_buffers(setting));
    }
    all.extend([2, 4, 8].map(|drives| Change::Stripe { drives, unit: STRIPE_UNIT }));
    all
}

/// The most changes of a catalogue, for all that the trace may show of sizes.
pub(crate) fn most_changes(setting: &BaseSystem) -> usize {
    let written = Bytes::new(u64::MAX);
    let all = BaseSystem { read_knees: Vec::new(), written, ..setting.clone() };
    catalogue(&all).len() + 2 * KNEES_MAX
}

fn orders(drive_queue: Option<u32>) -> Vec<Change> {
    let depths = drive_queue.into_iter().flat_map(|now| {
        let others = [1, 4, 8, 16, 32].into_iter().filter(move |&depth| depth != now);
        others.map(|depth| Change::DriveQueue { depth })
    });
    let policies = [
        PolicySpec::Look,
        PolicySpec::Clook,
        PolicySpec::Sstf,
        PolicySpec::Sptf,
        PolicySpec::Asatf { age_factor: 0.01 },
    ];
    // Linux's schedulers are made for a drive with a queue. Its `none` is the baseline.
    let linux = LINUX_SCHEDULERS.iter().map(|row| row.usual);
    let linux = linux.filter(|&policy| policy != PolicySpec::LinuxNone);
    let with_queue = policies.into_iter().chain(linux.filter(|_| drive_queue.is_some()));
    let one_at_a_time = policies.into_iter().filter(|_| drive_queue.is_some());
    depths
        .chain(with_queue.map(move |policy| Change::Policy { policy, drive_queue: true }))
        .chain(one_at_a_time.map(move |policy| Change::Policy { policy, drive_queue: false }))
        .collect()
}

/// 8 MiB, which prefetching is compared with, and the knees of the miss curve under the policy that misses
/// least there and under LRU.
fn read_caches(knees: &[Knee]) -> Vec<Change> {
    distinct(std::iter::once(read_cache(PREFETCH_CACHE, CachePolicy::Lru)).chain(
        knees.iter().flat_map(|knee| {
            [read_cache(knee.size, CachePolicy::Lru), read_cache(knee.size, knee.policy)]
        }),
    ))
}

fn read_cache(size: Bytes, policy: CachePolicy) -> Change {
    Change::ReadCache { size, policy }
}

fn prefetches() -> Vec<Change> {
    let kib = Bytes::from_kib;
    let conditional = PrefetchSpec::conditional(kib(16));
    let idle = OpportunisticSpec::tr03();
    let none = OpportunisticSpec::default();
    let all = [
        (PrefetchSpec::LargeFetchUnit { unit: kib(64) }, none),
        (PrefetchSpec::ReadAhead { amount: kib(32) }, none),
        (conditional, none),
        (PrefetchSpec::amp(), none),
        (PrefetchSpec::Off, idle),
        (PrefetchSpec::ReadAhead { amount: kib(32) }, idle),
        (conditional, idle),
    ];
    all.map(|(with_misses, opportunistic)| Change::Prefetch { with_misses, opportunistic }).into()
}

/// 4 MiB and 30 s, as in tr03's system with few resources. Then up to 256 MiB and an hour, as in the one
/// with many, and no more than is written: the smallest that does nearly as much as the best is what a user
/// needs. Eight destages at once, as there. The first that holds all, or the largest, also with as many as
/// the drive's queue takes.
fn write_buffers(setting: &BaseSystem) -> Vec<Change> {
    const FEW: u32 = 8;
    const MIB: u64 = 1 << 20;
    let hour = SimDuration::from_secs(3600);
    let sizes = [4, 16, 64, 256].map(|mib| Bytes::new(mib * MIB));
    let holds_all = sizes.iter().position(|&size| size >= setting.written);
    let sizes = &sizes[..=holds_all.unwrap_or(sizes.len() - 1)];
    let few = sizes.iter().map(|&size| write_buffer(size, hour, FEW));
    let many = setting.drive_queue.filter(|&depth| depth > FEW);
    let many = many.map(|depth| write_buffer(sizes[sizes.len() - 1], hour, depth));
    let small = write_buffer(sizes[0], SimDuration::from_secs(30), FEW);
    std::iter::once(small).chain(few.skip(1)).chain(many).collect()
}

fn write_buffer(size: Bytes, max_age: SimDuration, destages: u32) -> Change {
    Change::WriteBuffer { size, max_age, destages }
}

/// Each once, in order of their first.
fn distinct(changes: impl Iterator<Item = Change>) -> Vec<Change> {
    let mut list: Vec<Change> = Vec::new();
    for change in changes {
        if list.iter().all(|other| other.title() != change.title()) {
            list.push(change);
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_never_exceed_expected_count() {
        let knee = |mib: u64, policy| Knee { size: Bytes::new(mib << 20), policy };
        let setting = |written: u64, has_growing_queue| BaseSystem {
            read_knees: [16, 64, 256].map(|mib| knee(mib, CachePolicy::Arc)).into(),
            written: Bytes::new(written),
            has_write_cache: true,
            is_host_managed: false,
            drive_queue: Some(32),
            has_growing_queue,
        };
        let most = most_changes(&setting(0, false));
        for written in [0, 1 << 20, 20 << 20, 1 << 40] {
            assert!(catalogue(&setting(written, false)).len() <= most);
            assert!(catalogue(&setting(written, true)).len() < most);
        }
        assert_eq!(catalogue(&setting(1 << 40, false)).len(), most);
    }

    #[test]
    fn write_buffers_end_at_first_holding_all() {
        let sizes = |written: u64| {
            let setting = BaseSystem {
                read_knees: Vec::new(),
                written: Bytes::new(written),
                has_write_cache: false,
                is_host_managed: false,
                drive_queue: None,
                has_growing_queue: false,
            };
            let all = write_buffers(&setting).into_iter();
            let size = |change| match change {
                Change::WriteBuffer { size, .. } => size.get() >> 20,
                _ => unreachable!("these are write buffers"),
            };
            all.map(size).collect::<Vec<_>>()
        };
        assert_eq!([sizes(0), sizes(5 << 20)], [vec![4], vec![4, 16]]);
        assert_eq!(sizes(1 << 40), [4, 16, 64, 256]);
    }
}
