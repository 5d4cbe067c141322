//! An arm behind a cache of the storage system.

use freewheel_model::cache::StorageCache;
use freewheel_model::drive::Sectors;
use freewheel_model::sched::{Policy, PolicySpec};

use crate::cached::CachedDevice;
use crate::config::ConfigError;
use crate::device::Device;
use crate::engine::Arm;

/// Puts a cache in front of an arm. The arm's policy orders what misses, and `destages` what the cache
/// writes; in front of the cache is a plain queue.
pub(crate) fn behind_cache<D: Device>(
    arm: Arm<D>,
    cache: StorageCache,
    destages: Box<dyn Policy>,
    sectors: Sectors,
) -> Result<Arm<CachedDevice<D>>, ConfigError> {
    let Arm { drive, policy, device } = arm;
    let device = CachedDevice::new(device, &drive, cache, sectors, [policy, destages]);
    Ok(Arm { drive, policy: PolicySpec::Fcfs.build()?, device })
}
