//! Stage "queue": what waits for an arm, and the requests that are made for its background work.

use std::sync::Arc;

use freewheel_freeblock::tasks::Promoted;
use freewheel_model::drive::Drive;
use freewheel_model::sched::{CommandMark, Policy, Waiting};
use freewheel_units::{Blocks, Op, SimTime};

use super::pending::PendingRequests;
use super::promoted::PromotedRequests;
use crate::arm_executor::foreground;
use crate::device::Device;

/// An arm with its queue outside the drive.
#[allow(missing_docs)]
pub struct Arm<D> {
    /// Predicts access times for the policy.
    pub drive: Arc<Drive>,
    pub policy: Box<dyn Policy>,
    pub device: D,
}

/// Requests that are not done, of the workload and of background work.
#[derive(Default)]
pub(super) struct Requests {
    pub pending: PendingRequests,
    pub promoted: PromotedRequests,
}

impl<D: Device> Arm<D> {
    /// Queues a piece of an arriving request for the arm `number`. Returns whether the policy may have
    /// new work.
    #[inline]
    pub(super) fn enqueue(
        &mut self,
        number: u32,
        waiting: &Waiting,
        requests: &mut Requests,
        now: SimTime,
    ) -> bool {
        let mut has_new = false;
        if waiting.target.op == Op::Write {
            // A backup's reads of these blocks enter the queue before the write does, so that
            // `promoted` can hold the write back behind them.
            while let Some(read) = self.read_before(now, waiting) {
                self.begin_promoted(number, read, requests, now);
                has_new = true;
            }
        }
        self.device.arrived(now, waiting, None);
        if requests.promoted.pass(number, waiting) {
            self.policy.push(*waiting);
            has_new = true;
        }
        has_new
    }

    #[inline]
    fn read_before(&mut self, now: SimTime, write: &Waiting) -> Option<Promoted> {
        let promoter = self.device.planner()?.promoter()?;
        promoter.read_before(&foreground(write, None), now)
    }

    /// Makes foreground requests of what background work has promoted.
    #[inline]
    pub(super) fn promote(&mut self, number: u32, requests: &mut Requests, now: SimTime) {
        let next = |arm: &mut Self| arm.device.planner()?.promoter()?.promote(now);
        while let Some(request) = next(self) {
            self.begin_promoted(number, request, requests, now);
        }
    }

    /// Makes a foreground request of background work, at this moment.
    fn begin_promoted(
        &mut self,
        number: u32,
        request: Promoted,
        requests: &mut Requests,
        now: SimTime,
    ) {
        let Promoted { id, op, start, blocks, precedes_writes } = request;
        let target = self.drive.target(start, Blocks::new(blocks.into()), op);
        let sequence = requests.pending.push_promoted(now);
        let waiting =
            Waiting { target, arrival: now, sequence, fua: false, mark: CommandMark::None };
        self.device.arrived(now, &waiting, Some(id));
        if precedes_writes {
            requests.promoted.begin(number, waiting);
        }
        self.policy.push(waiting);
    }
}
