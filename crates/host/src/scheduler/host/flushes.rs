//! Flushes of the device, and what holds after one has failed.
//!
//! **A failed flush is never forgotten.** A system may drop written data that it could not bring to the
//! media, and reports that once. The next flush of the same file then succeeds without those data (Linux;
//! found by PostgreSQL in 2018). A drive's own cache may do the same. No later success can therefore be
//! believed, of any client: they all share the device. So FLUSH and FUA fail until a restart.
//!
//! - Reads go on: the operator and the clients rescue their data by them.
//! - Writes without FUA go on: they make no promise about power cuts, and no later answer will. A client
//!   hears of the loss at its next FLUSH or FUA, as with a local disk; a file system or database then stops on its own
//!   decision. PostgreSQL panics there because it owns the data; a disk does not. ZFS fails new
//!   writes too (`failmode=continue`), but with copies to continue from. Here, a refusal of writes
//!   would take away what a client can still do, such as moving a file elsewhere.
//! - Background tasks go on: a backup is the best that can be done with such a device.

use freewheel_units::Lbn;

use super::{HostScheduler, Request};
use crate::device::{DeviceCommand, DeviceError, DeviceErrorKind, DeviceOp};

/// Requests that wait for written data to be on the media. The device has one flush at a time: a client
/// that sends flush after flush would keep the device from everything else.
#[derive(Default)]
pub(super) struct Flushes {
    /// The command, and the requests that it answers.
    pub at_device: Option<(u64, Vec<u64>)>,
    /// Requests for the next flush.
    pub waiting: Vec<u64>,
    /// The error of FLUSH and FUA since one has failed at the device.
    failed: Option<DeviceError>,
}

impl Request {
    /// True if its success tells that data are on the media.
    fn is_durable(&self) -> bool {
        match self {
            Self::Flush => true,
            Self::Transfer { fua, .. } | Self::Erase { fua, .. } => *fua,
            Self::Cache { .. } => false,
        }
    }
}

impl HostScheduler {
    /// The error with which every FLUSH and FUA fails, since a flush failed at the device.
    pub fn failed_flush(&self) -> Option<&DeviceError> {
        self.flushes.failed.as_ref()
    }

    /// The error of a request that could only succeed if no flush had failed.
    pub(super) fn refused_flush(&self, request: &Request) -> Option<DeviceError> {
        self.flushes.failed.clone().filter(|_| request.is_durable())
    }

    /// Asks for a flush. All requests before it have been answered, so it waits only for a flush that is at
    /// the device already.
    pub(super) fn flush(&mut self, request: u64) {
        if let Some(failed) = self.flushes.failed.clone() {
            return self.flushed(request, Err(failed));
        }
        self.flushes.waiting.push(request);
        self.continue_flush();
    }

    /// Sends one flush for all that wait.
    fn continue_flush(&mut self) {
        if self.flushes.at_device.is_some() || self.flushes.waiting.is_empty() {
            return;
        }
        let id = self.own_command();
        self.flushes.at_device = Some((id, std::mem::take(&mut self.flushes.waiting)));
        let (what, start) = (DeviceOp::Flush, Lbn::ZERO);
        self.outgoing.push_back(DeviceCommand { id, what, start, data: Vec::new() });
    }

    /// The device has flushed for these requests, or has not.
    pub(super) fn flush_came_back(
        &mut self,
        requests: Vec<u64>,
        result: Result<Vec<u8>, DeviceError>,
    ) {
        let result = match &self.flushes.failed {
            // A write with FUA failed meanwhile: the device may have reported the loss to that alone.
            Some(failed) if result.is_ok() => Err(failed.clone()),
            _ => result,
        };
        if let Err(why) = &result {
            self.flush_failed(why);
        }
        requests.into_iter().for_each(|request| self.flushed(request, result.clone()));
        self.fail_waiting();
        self.continue_flush();
    }

    /// A write with FUA has failed at the device. An error of input or output may be that of its sync; with
    /// any other error the device has refused the command.
    pub(super) fn fua_failed(&mut self, why: &DeviceError) {
        if why.kind == DeviceErrorKind::Io {
            self.flush_failed(why);
            self.fail_waiting();
        }
    }

    /// From now on FLUSH and FUA fail, with an error of the same class.
    fn flush_failed(&mut self, why: &DeviceError) {
        self.flushes.failed.get_or_insert_with(|| {
            let message = format!(
                "an earlier flush failed at the device ({why}), so data that were answered may be lost; \
                 restart the server after checking the device"
            );
            DeviceError { kind: why.kind, message }
        });
        if let Some(failed) = &self.flushes.failed {
            self.tasks.refuse_writes(&failed.message, self.now);
        }
    }

    /// A system reports a lost write once. The waiting flushes may have to cover that write: they fail too.
    fn fail_waiting(&mut self) {
        if let Some(failed) = self.flushes.failed.clone() {
            let waiting = std::mem::take(&mut self.flushes.waiting);
            waiting.into_iter().for_each(|request| self.flushed(request, Err(failed.clone())));
        }
    }

    fn flushed(&mut self, request: u64, result: Result<Vec<u8>, DeviceError>) {
        if self.pending.contains_key(&request) {
            return self.answer(request, result.err());
        }
        if self.erasures.contains_key(&request) {
            return self.answer_erasure(request, result.err());
        }
        if self.large.has(request) {
            return self.answer_large(request, result.err());
        }
        if self.refresh_flush.take_if(|flush| *flush == request).is_some() {
            // After a failure refreshes have failed.
            return self.tasks.flushed(self.now);
        }
        self.client_request_ended();
        self.answers.push((request, result));
    }
}
