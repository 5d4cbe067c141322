//! Stage "cache": the memory in front of an arm, if there is one.

use freewheel_model::sched::Waiting;
use freewheel_units::SimTime;

use crate::arm_executor::foreground;
use crate::device::Device;

/// True if memory answers this piece of an arriving request, so that its arm never hears of it. Memory is
/// volatile: it never answers a request with FUA.
#[inline]
pub(super) fn answers<D: Device>(device: &mut D, now: SimTime, piece: &Waiting) -> bool {
    if piece.fua {
        return false;
    }
    let cache = device.planner().and_then(|planner| planner.write_cache());
    cache.is_some_and(|cache| cache.takes(&foreground(piece, None), now))
}
