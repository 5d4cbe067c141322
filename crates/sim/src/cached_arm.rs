//! An arm behind a cache of the storage system.

use freewheel_model::cache::{KeyPolicy, StorageCache, StorageCacheSpec};
use freewheel_model::drive::Sectors;
use freewheel_model::sched::{Policy, PolicySpec};

use crate::cached::{CacheQueue, CachedDevice};
use crate::config::ConfigError;
use crate::device::Device;
use crate::engine::Arm;

/// Puts a cache in front of an arm. The arm's policy orders what misses, and `destages` what the cache
/// writes; in front of the cache is a plain queue. `own` evicts from the read cache in place of the
/// specification's policy.
pub(crate) fn behind_cache<D: Device>(
    arm: Arm<D>,
    spec: StorageCacheSpec,
    depth: u32,
    destages: Box<dyn Policy>,
    sectors: Sectors,
    own: Option<Box<dyn KeyPolicy>>,
) -> Result<Arm<CachedDevice<D>>, ConfigError> {
    let Arm { drive, policy, device } = arm;
    let cache = StorageCache::new(spec, drive.blocks());
    let cache = match own {
        Some(own) => cache.with_policy(own),
        None => cache,
    };
    let queue = CacheQueue { depth, sectors, policies: [policy, destages] };
    let device = CachedDevice::new(device, &drive, cache, queue);
    Ok(Arm { drive, policy: PolicySpec::Fcfs.build()?, device })
}
