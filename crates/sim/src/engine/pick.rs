//! Stage "pick": arms with room get the requests that their policies choose.

use freewheel_model::sched::Moment;
use freewheel_units::SimTime;

use super::queue::Arm;
use crate::device::Device;

impl<D: Device> Arm<D> {
    /// Gives the drive requests while it has room and the policy has some.
    #[inline]
    pub(super) fn pick(&mut self, now: SimTime) {
        while self.device.has_room() {
            let (at, head) = self.device.free_at(now);
            let picked = self.policy.pick(&Moment { now: at, head, drive: &self.drive });
            let Some(picked) = picked else { break };
            self.device.submit(now, &picked);
        }
    }
}

/// Arms that may have work to give out at this instant, each once.
pub(super) struct TouchedArms {
    list: Vec<u32>,
    marked: Vec<bool>,
}

impl TouchedArms {
    pub fn new(arms: usize) -> Self {
        Self { list: Vec::new(), marked: vec![false; arms] }
    }

    #[inline]
    pub fn push(&mut self, arm: u32) {
        if !std::mem::replace(&mut self.marked[arm as usize], true) {
            self.list.push(arm);
        }
    }

    #[inline]
    pub fn pop(&mut self) -> Option<u32> {
        let arm = self.list.pop()?;
        self.marked[arm as usize] = false;
        Some(arm)
    }
}
