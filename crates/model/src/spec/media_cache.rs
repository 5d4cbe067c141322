//! Media cache in a drive file: of a drive that manages its shingled tracks itself.

use freewheel_units::{BLOCK_BYTES, Bytes, SimDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Impossible;

/// A media cache: tracks to which a drive appends what would otherwise overwrite part of a band. Blocks have
/// fixed places in bands, and return there when a band is rewritten (Aghayev and Desnoyers, "Skylight",
/// FAST 2015: a static map with a persistent cache).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MediaCacheSpec {
    /// Size of a band, which is rewritten as a whole.
    pub band: Bytes,
    /// Size of the cache.
    pub size: Bytes,
    /// Address on whose cylinders the cache begins: 0 at the outer diameter. The cache itself has no address.
    pub start: Bytes,
    /// Most extents in the cache at once: what its map holds.
    pub extents: u32,
    /// Idle time after which the drive begins to empty the cache, one band after the other: the aggressive way.
    /// When absent, it does so only for a write without room: the lazy way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean_after_idle: Option<SimDuration>,
    /// A band is written elsewhere before it is written in place, so that no power cut can lose it.
    #[serde(default)]
    pub safe_rewrite: bool,
}

/// Blocks of 512 bytes that bands and cache are whole multiples of: a sector of 4 KiB.
const UNIT: u64 = 8 * BLOCK_BYTES;

const BAND_MAX: u64 = 1 << 30;

/// Longest idle time before cleaning.
const IDLE_MAX: SimDuration = SimDuration::from_secs(3600);

/// Most extents in a cache.
const CACHE_EXTENTS_MAX: u32 = 1 << 22;

impl MediaCacheSpec {
    pub(super) fn check(&self) -> Result<(), Impossible> {
        let Self { band, size, start, extents, .. } = *self;
        if band.get() < UNIT || band.get() > BAND_MAX || !band.get().is_multiple_of(UNIT) {
            let rule = "whole multiples of 4 KiB up to 1 GiB are allowed";
            return Err(("electronics.media_cache.band", band.to_string(), rule.to_owned()));
        }
        if size < band || !size.get().is_multiple_of(UNIT) {
            let rule = "whole multiples of 4 KiB are allowed, a band at least";
            return Err(("electronics.media_cache.size", size.to_string(), rule.to_owned()));
        }
        if !start.get().is_multiple_of(UNIT) {
            let rule = "whole multiples of 4 KiB are allowed";
            return Err(("electronics.media_cache.start", start.to_string(), rule.to_owned()));
        }
        if !(1..=CACHE_EXTENTS_MAX).contains(&extents) {
            let rule = format!("1 to {CACHE_EXTENTS_MAX} are allowed");
            return Err(("electronics.media_cache.extents", extents.to_string(), rule.to_owned()));
        }
        match self.clean_after_idle.filter(|idle| *idle > IDLE_MAX) {
            None => Ok(()),
            Some(idle) => {
                let rule = format!("at most {IDLE_MAX} is allowed");
                Err(("electronics.media_cache.clean_after_idle", idle.to_string(), rule.to_owned()))
            }
        }
    }

    /// The address after the cylinders of the cache.
    pub fn end(&self) -> Bytes {
        Bytes::new(self.start.get() + self.size.get())
    }
}
