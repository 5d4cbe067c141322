//! Merging as a search through a list, and tags as a count.

use freewheel_model::sched::linux::IoRequest;
use freewheel_units::SimTime;

use super::load::Oracle;

/// Most blocks of a merged request.
const MERGED_MAX: u32 = 2560;

fn may_join(a: &IoRequest, b: &IoRequest) -> bool {
    a.op == b.op && a.mark == b.mark && !a.fua && !b.fua && a.blocks + b.blocks <= MERGED_MAX
}

/// The oldest of the waiting requests for which this holds.
fn oldest(list: &[IoRequest], is: impl Fn(&IoRequest) -> bool) -> Option<IoRequest> {
    list.iter().copied().filter(|request| is(request)).min_by_key(|request| request.sequence)
}

fn join(list: &mut Vec<IoRequest>, waiting: IoRequest, new: IoRequest) -> IoRequest {
    list.retain(|other| other.sequence != waiting.sequence);
    let older = if waiting.sequence < new.sequence { waiting } else { new };
    let start = waiting.start.min(new.start);
    IoRequest { start, blocks: waiting.blocks + new.blocks, ..older }
}

/// Adds a request to the list, or joins it with one or two that it adjoins.
pub fn arrive(list: &mut Vec<IoRequest>, new: IoRequest, front: bool) {
    let same = |other: &IoRequest| other.op == new.op && !other.fua;
    let before = oldest(list, |other| same(other) && other.end() == new.start);
    let after = oldest(list, |other| same(other) && other.start == new.end());
    let before_joins = before.filter(|before| may_join(before, &new));
    let after_joins = after.filter(|after| front && may_join(after, &new));
    let (mut joined, third) = match (before_joins, after_joins) {
        (Some(before), _) => (join(list, before, new), after),
        (None, Some(after)) => (join(list, after, new), before),
        (None, None) => (new, None),
    };
    if let Some(third) = third.filter(|third| may_join(third, &joined)) {
        joined = join(list, third, joined);
    }
    list.push(joined);
}

/// Adds a request that has waited for a tag, or joins it with one that ends where it begins, and so on.
pub fn arrive_late(list: &mut Vec<IoRequest>, new: IoRequest) {
    let mut joined = new;
    loop {
        let same = |other: &IoRequest| other.op == new.op && !other.fua;
        let before = oldest(list, |other| same(other) && other.end() == joined.start);
        let Some(before) = before.filter(|before| may_join(before, &joined)) else { break };
        joined = join(list, before, joined);
    }
    list.push(joined);
}

/// Joins a request with one of the latest eight of a list: the first that it adjoins decides.
pub fn joins_latest(list: &mut [IoRequest], new: &IoRequest) -> bool {
    for waiting in list.iter_mut().rev().take(8) {
        let is_other = waiting.op != new.op || waiting.mark != new.mark || waiting.fua || new.fua;
        if is_other || (waiting.end() != new.start && new.end() != waiting.start) {
            continue;
        }
        if !may_join(waiting, new) {
            return false;
        }
        waiting.start = waiting.start.min(new.start);
        waiting.blocks += new.blocks;
        return true;
    }
    false
}

/// The rules of a scheduler that knows whether a request had to wait for a tag.
pub trait Rules {
    /// Joins a new request, if it can be.
    fn join(&mut self, request: &IoRequest) -> bool;
    /// Takes a request that has a tag, or joins it with another.
    fn take(&mut self, now: SimTime, request: IoRequest);
    fn dispatch(&mut self, now: SimTime) -> Option<IoRequest>;
    fn completed(&mut self, now: SimTime, request: &IoRequest, dispatched: SimTime);
    /// Waiting requests, asynchronous ones or all.
    fn waiting(&self, asynchronous: bool) -> usize;
}

/// A scheduler behind tags.
pub struct Tagged<R> {
    pub rules: R,
    /// Requests in scheduler and drive at most, and asynchronous ones among them.
    pub limits: [usize; 2],
    pub without: Vec<IoRequest>,
    pub at_drive: Vec<IoRequest>,
}

impl<R: Rules> Tagged<R> {
    pub fn new(rules: R, limits: [usize; 2]) -> Self {
        Self { rules, limits, without: Vec::new(), at_drive: Vec::new() }
    }

    fn give(&mut self, now: SimTime) {
        loop {
            let all = self.rules.waiting(false) + self.at_drive.len();
            let at_drive = self.at_drive.iter().filter(|request| !request.is_sync()).count();
            let asynchronous = self.rules.waiting(true) + at_drive;
            let may = |request: &IoRequest| request.is_sync() || asynchronous < self.limits[1];
            if all >= self.limits[0] {
                return;
            }
            let Some(at) = self.without.iter().position(may) else { return };
            let next = self.without.remove(at);
            self.rules.take(now, IoRequest { queued: now, ..next });
        }
    }
}

impl<R: Rules> Oracle for Tagged<R> {
    fn arrive(&mut self, now: SimTime, request: IoRequest) {
        if !self.rules.join(&request) {
            self.without.push(request);
        }
        self.give(now);
    }

    fn dispatch(&mut self, now: SimTime) -> Option<IoRequest> {
        let sent = self.rules.dispatch(now)?;
        self.at_drive.push(sent);
        Some(sent)
    }

    fn completed(&mut self, now: SimTime, request: &IoRequest, dispatched: SimTime) {
        self.at_drive.retain(|other| other.sequence != request.sequence);
        self.rules.completed(now, request, dispatched);
        self.give(now);
    }
}
