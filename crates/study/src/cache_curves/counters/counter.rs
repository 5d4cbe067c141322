//! Operations of every counter.

use freewheel_model::cache::BlockRange;
use freewheel_units::VolumeBlock;

use crate::cache_curves::result::MissRatio;

/// A read or a write of the volume.
#[derive(Debug, Clone, Copy)]
pub(in crate::cache_curves) struct Access {
    pub range: BlockRange<VolumeBlock>,
    pub is_read: bool,
}

/// Caches of one policy that see all accesses in order.
pub(in crate::cache_curves) trait Counter: Send {
    /// The next accesses.
    fn process(&mut self, accesses: &[Access]);

    /// The warm-up ends: later accesses count.
    fn begin_counting(&mut self);

    /// Miss ratios since then: one for each capacity, ascending.
    fn miss_ratios(&mut self) -> Vec<MissRatio>;
}
