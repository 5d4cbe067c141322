//! A drive that does freeblock reads by the plainest rule there is: of all tracks with wanted
//! blocks, the one where most can be read before the foreground request is due. Slow and obvious.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use freewheel_model::drive::{Drive, Position, Target};
use freewheel_model::log_disk::Wish;
use freewheel_model::onboard::{Done, NextEvent};
use freewheel_model::sched::Waiting;
use freewheel_sim::postmark::FreeReads;
use freewheel_sim::{Device, Mechanics, SeekErrors, Servo, Work};
use freewheel_units::{Blocks, Lbn, Op, SimTime};

/// Wanted blocks by the track they begin on, and what was read of them.
#[derive(Default)]
pub struct Wanted {
    tracks: BTreeMap<(u32, u32), BTreeMap<Lbn, Target>>,
    delivered: Vec<(SimTime, Lbn)>,
}

/// The cleaner's end of it.
pub struct Asking {
    pub drive: Arc<Drive>,
    pub block: Blocks,
    pub wanted: Rc<RefCell<Wanted>>,
}

impl FreeReads for Asking {
    fn wish(&mut self, wish: Wish) {
        let mut wanted = self.wanted.borrow_mut();
        let key = |at: Position| (at.cylinder, at.surface);
        match wish {
            Wish::Register(start) => {
                let target = self.drive.target(start, self.block, Op::Read);
                wanted.tracks.entry(key(target.at)).or_default().insert(start, target);
            }
            Wish::Abort(start) => {
                let track = key(self.drive.target(start, self.block, Op::Read).at);
                wanted.tracks.entry(track).or_default().remove(&start);
                wanted.delivered.retain(|&(_, delivered)| delivered != start);
            }
        }
    }

    fn take_delivered(&mut self, now: SimTime, delivered: &mut Vec<Lbn>) {
        let all = std::mem::take(&mut self.wanted.borrow_mut().delivered);
        assert!(all.iter().all(|&(at, _)| at <= now));
        delivered.extend(all.into_iter().map(|(_, start)| start));
    }
}

/// Bare mechanics with freeblock reads before every request.
pub struct GapReader {
    drive: Arc<Drive>,
    mechanics: Mechanics<'static>,
    wanted: Rc<RefCell<Wanted>>,
}

impl GapReader {
    pub fn new(drive: &Arc<Drive>, wanted: &Rc<RefCell<Wanted>>) -> Self {
        let mechanics = Mechanics::new(drive, Servo::new(SeekErrors::new(drive, 1, 0)));
        Self { drive: Arc::clone(drive), mechanics, wanted: Rc::clone(wanted) }
    }

    /// Reads the most that leaves the end of `foreground` as it is.
    fn fill_gap(&mut self, now: SimTime, from: Position, foreground: &Target) {
        let end = |at: SimTime, head| at + self.drive.media_access(at, head, foreground).total();
        let due = end(now, from);
        let mut best = Vec::new();
        let wanted = &mut *self.wanted.borrow_mut();
        for targets in wanted.tracks.values() {
            if targets.len() <= best.len() {
                continue;
            }
            let any = targets.values().next().expect("more than none");
            let arrival = now + self.drive.seek_to(from, any);
            if end(arrival, any.at) != due {
                continue;
            }
            let pass = |target: &Target| self.drive.media_access(arrival, any.at, target).total();
            let mut order: Vec<&Target> = targets.values().collect();
            order.sort_by_key(|target| pass(target));
            let (mut at, mut head, mut read) = (arrival, any.at, Vec::new());
            for target in order {
                let access = self.drive.media_access(at, head, target);
                let after = at + access.total();
                if end(after, access.end) == due {
                    (at, head) = (after, access.end);
                    read.push((after, target.start));
                }
            }
            if read.len() > best.len() {
                best = read;
            }
        }
        for &(_, start) in &best {
            for targets in wanted.tracks.values_mut() {
                targets.remove(&start);
            }
        }
        wanted.tracks.retain(|_, targets| !targets.is_empty());
        wanted.delivered.extend(best);
    }
}

impl Device for GapReader {
    fn has_room(&self) -> bool {
        self.mechanics.has_room()
    }

    fn free_at(&self, now: SimTime) -> (SimTime, Position) {
        self.mechanics.free_at(now)
    }

    fn submit(&mut self, now: SimTime, waiting: &Waiting) {
        let (_, from) = self.free_at(now);
        self.fill_gap(now, from, &waiting.target);
        self.mechanics.submit(now, waiting);
    }

    fn flush(&mut self, now: SimTime, sequence: u64) -> bool {
        self.mechanics.flush(now, sequence)
    }

    fn next_event(&self) -> Option<NextEvent> {
        self.mechanics.next_event()
    }

    fn advance(&mut self, now: SimTime) -> Option<Done> {
        self.mechanics.advance(now)
    }

    fn work(&self) -> Work {
        self.mechanics.work()
    }
}
