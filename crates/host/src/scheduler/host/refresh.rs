//! Writes of refreshes, in gaps and by requests of their own, in the order of all requests.
//!
//! **No client's write is ever overwritten by older data.** A refresh writes blocks only
//! - while no request that has not been answered touches them: a client's write before it is done, and the
//!   data are of after that, as the [tasks](crate::tasks) see to;
//! - and from then on it has a place in the order, so that every later request waits until it is done. A
//!   device may reorder its commands, so a client's write that overlaps is not sent beside it.
//!
//! Both hold when the write leaves for the device, and not when it is planned.

use freewheel_units::{Lbn, Op};

use super::{HostScheduler, RequestOwner};
use crate::Command;
use crate::device::DeviceError;

impl HostScheduler {
    /// A client has written or erased blocks, or has failed to.
    pub(super) fn client_wrote(&mut self, (from, to): (u64, u64), is_new: bool) {
        self.written.mark(from, to, self.now);
        let oldest = self.at_device.first_key_value().map(|(&id, _)| id);
        self.tasks.client_wrote((from, to), oldest, is_new, self.now);
    }

    /// Gives up what is planned to be written in this gap and may not be, or not any more.
    pub(super) fn skip_unsafe_writes(&mut self) {
        while let Some((start, blocks)) = self.scheduler.next_free_write() {
            let (from, to) = (start.get(), start.get() + u64::from(blocks));
            let may_write = !self.is_closing && self.order.is_free(from..to);
            if may_write && self.tasks.to_write(start, blocks).is_some() {
                return;
            }
            self.scheduler.skip_free();
        }
    }

    /// A write in a gap leaves for the device, with these data.
    pub(super) fn begin_gap_write(&mut self, command: u64, (start, blocks): (Lbn, u32)) -> Vec<u8> {
        let place = self.number();
        let (from, to) = (start.get(), start.get() + u64::from(blocks));
        self.order.arrived(place, from..to, true);
        self.gap_writes.insert(command, place);
        self.tasks.to_write(start, blocks).expect("writes without data are given up")
    }

    /// Returns the place in the order of a write in a gap that has come back.
    pub(super) fn gap_write_came_back(
        &mut self,
        command: &Command,
        result: &Result<Vec<u8>, DeviceError>,
    ) -> Option<u64> {
        let place = self.gap_writes.remove(&command.id)?;
        if let Err(failed) = result {
            if self.abilities.fua {
                self.fua_failed(failed);
            }
            self.tasks.not_written(command.start, command.blocks, self.now);
        }
        Some(place)
    }

    /// Makes the writes that refreshes make like clients, and the flush before they read back.
    pub(super) fn write_for_tasks(&mut self) {
        if self.is_closing {
            return;
        }
        let (now, idle_since) = (self.now, self.idle_since());
        while let Some(write) =
            self.tasks.next_write(now, idle_since, |from, to| self.order.is_free(from..to))
        {
            let (fua, owner) = (self.abilities.fua, RequestOwner::Refresh(write.number));
            self.enqueue_transfer(Op::Write, write.start, write.data, fua, owner);
        }
        if self.refresh_flush.is_none() && self.tasks.is_flush_due() {
            let flush = self.number();
            self.refresh_flush = Some(flush);
            self.tasks.flush_begins();
            self.flush(flush);
        }
    }
}
