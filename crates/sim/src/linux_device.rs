//! A device behind Linux's block layer.
//!
//! ```text
//!   engine's queue (in order of arrival) --> tags, merges, scheduler --> device with its own queue
//! ```
//! The engine's queue passes every request on at once. The block layer decides when the device gets it.
//! Where free work is planned, requests stay apart, as a planner knows each by its sequence.

use std::collections::VecDeque;
use std::sync::Arc;

use freewheel_freeblock::{Planner, PromotionId};
use freewheel_model::cache::BlockRange;
use freewheel_model::drive::{Drive, Position};
use freewheel_model::electronics::{Done, NextEvent};
use freewheel_model::sched::Waiting;
use freewheel_model::sched::linux::{BlockLayer, IoRequest};
use freewheel_units::{Blocks, Lbn, SimTime};

use crate::device::{Device, Work};

/// A device with a block layer in front.
pub struct LinuxDevice<D> {
    inner: D,
    drive: Arc<Drive>,
    layer: BlockLayer,
    /// Requests that are done, and not reported yet.
    answers: VecDeque<Done>,
    /// Something has changed since the device was last offered requests.
    must_dispatch: bool,
    now: SimTime,
}

impl<D: Device> LinuxDevice<D> {
    /// Puts `layer` in front of `inner`.
    pub fn new(mut inner: D, drive: &Arc<Drive>, layer: BlockLayer) -> Self {
        let has_planner = inner.planner().is_some();
        Self {
            inner,
            drive: Arc::clone(drive),
            layer: if has_planner { layer.without_merges() } else { layer },
            answers: VecDeque::new(),
            must_dispatch: false,
            now: SimTime::ZERO,
        }
    }

    /// Gives the device requests while it has room and the scheduler sends some.
    fn dispatch(&mut self) {
        self.must_dispatch = false;
        while self.inner.has_room() {
            let Some(request) = self.layer.dispatch(self.now) else { break };
            let IoRequest { op, start, blocks, fua, sequence, arrival, mark, .. } = request;
            let target = self.drive.target(start, Blocks::new(blocks.into()), op);
            self.inner.submit(self.now, &Waiting { target, arrival, sequence, fua, mark });
        }
    }

    /// Handles the event of the device at this instant.
    fn advance_inside(&mut self) -> Option<Done> {
        let done = self.inner.advance(self.now);
        // Work in idle time may have ended, which makes room without a completion.
        self.must_dispatch = self.inner.has_room();
        match done {
            Some(done) if !done.flush => {
                let parts = self.layer.completed(self.now, done.sequence);
                self.answers.extend(parts.into_iter().map(|sequence| Done { sequence, ..done }));
                self.answers.pop_front()
            }
            other => other,
        }
    }
}

impl<D: Device> Device for LinuxDevice<D> {
    fn has_room(&self) -> bool {
        true
    }

    fn free_at(&self, now: SimTime) -> (SimTime, Position) {
        self.inner.free_at(now)
    }

    fn arrived(&mut self, now: SimTime, waiting: &Waiting, promotion: Option<PromotionId>) {
        self.inner.arrived(now, waiting, promotion);
    }

    fn planner(&mut self) -> Option<&mut dyn Planner> {
        self.inner.planner()
    }

    fn submit(&mut self, now: SimTime, waiting: &Waiting) {
        self.now = now;
        let Waiting { target, arrival, sequence, fua, mark } = *waiting;
        let (op, start, blocks) = (target.op, target.start, target.blocks);
        let request = IoRequest { op, start, blocks, fua, sequence, arrival, queued: now, mark };
        self.layer.arrive(now, request);
        self.must_dispatch = true;
    }

    fn flush(&mut self, now: SimTime, sequence: u64) -> bool {
        self.inner.flush(now, sequence)
    }

    fn trim(&mut self, now: SimTime, blocks: BlockRange<Lbn>) -> bool {
        self.inner.trim(now, blocks)
    }

    fn next_event(&self) -> Option<NextEvent> {
        if !self.answers.is_empty() {
            return Some(NextEvent::Completion(self.now));
        }
        let inner = self.inner.next_event();
        if matches!(inner, Some(NextEvent::Completion(time)) if time <= self.now) {
            return inner;
        }
        if self.must_dispatch {
            return Some(NextEvent::Decision(self.now));
        }
        let wake = self.layer.wakes_at().map(|time| time.max(self.now));
        match (inner, wake) {
            (Some(inner), Some(wake)) if inner.time() <= wake => Some(inner),
            (inner, None) => inner,
            (_, Some(wake)) => Some(NextEvent::Decision(wake)),
        }
    }

    fn advance(&mut self, now: SimTime) -> Option<Done> {
        self.now = now;
        if let Some(done) = self.answers.pop_front() {
            return Some(done);
        }
        let inner = self.inner.next_event().filter(|event| event.time() <= now);
        match inner {
            // Requests that wait go to the device before the device decides.
            Some(NextEvent::Completion(_)) => self.advance_inside(),
            Some(NextEvent::Decision(_)) if !self.must_dispatch => self.advance_inside(),
            _ => {
                self.dispatch();
                None
            }
        }
    }

    fn work(&self, now: SimTime) -> Work {
        self.inner.work(now)
    }
}
