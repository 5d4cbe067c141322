//! A decision: the next foreground request, and free work in the gap before it, at once or in steps.
//!
//! ```text
//!   begin_decision   picks the request, opens the gap      -> Searching { by }
//!   search(nodes)    carries the search for free work on   -> SearchProgress, until it is done
//!   end_decision     plans the best that was found
//! ```
//! A caller with a deadline looks at its clock between steps. In virtual time [`PredictiveScheduler::decide`]
//! does all of it.

use freewheel_freeblock::{Planner, SearchProgress};
use freewheel_units::{Op, SimTime};

use super::free::{Filling, GapToFill};
use super::{Next, PredictiveScheduler};
use crate::scheduler::command::ForegroundPart;

/// State of a decision after its begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionStart {
    /// The drive has no room for a command, or none is due.
    NotDue,
    /// The next command is decided, without free work.
    Decided,
    /// The search for free work is under way.
    Searching {
        /// Time at which the command must leave for the drive, in the host's time.
        by: SimTime,
    },
}

/// A decision whose search is under way.
pub(super) struct DecisionUnderWay {
    part: ForegroundPart,
    op: Op,
    gap: GapToFill,
    has_begun: bool,
}

impl PredictiveScheduler {
    /// Decides what to send next, if the drive has room for it and it is time: the foreground request,
    /// and free work before it, with a search to the end. Returns whether something was decided.
    pub fn decide(&mut self, now: SimTime, planner: &mut dyn Planner) -> bool {
        let Some((part, op)) = self.choose(now) else { return false };
        let gap = self.open_gap(now, (part.start, part.blocks, op), planner);
        let filling = gap.map_or_else(Filling::default, |gap| {
            planner.plan(gap.opportunity(), &mut self.runs);
            self.fill(&gap, planner)
        });
        self.next = Some(self.next_of(part, op, filling));
        true
    }

    /// Begins the same decision for a caller with a deadline. Until [`Self::end_decision`] only
    /// [`Self::search`] and [`Self::give_up`] may be called.
    pub fn begin_decision(&mut self, now: SimTime, planner: &mut dyn Planner) -> DecisionStart {
        let Some((part, op)) = self.choose(now) else { return DecisionStart::NotDue };
        let Some(gap) = self.open_gap(now, (part.start, part.blocks, op), planner) else {
            self.next = Some(self.next_of(part, op, Filling::default()));
            return DecisionStart::Decided;
        };
        planner.prepare(gap.opportunity());
        let by = gap.by;
        self.under_way = Some(DecisionUnderWay { part, op, gap, has_begun: false });
        DecisionStart::Searching { by }
    }

    /// Looks at up to `nodes` nodes of the search under way. The search is done at once if the planner
    /// does not plan in steps.
    pub fn search(&mut self, planner: &mut dyn Planner, nodes: u64) -> SearchProgress {
        let (Some(under_way), Some(search)) = (&mut self.under_way, planner.resumable()) else {
            return SearchProgress::DONE;
        };
        // Not at the decision's begin: callers time the search, and its begin is part of it.
        if !std::mem::replace(&mut under_way.has_begun, true) {
            search.begin_search(under_way.gap.opportunity());
        }
        search.step(nodes)
    }

    /// Ends the search in the current direction, reads or writes, with the best so far.
    pub fn give_up(&mut self, planner: &mut dyn Planner) {
        if let Some(search) = planner.resumable() {
            search.give_up();
        }
    }

    /// Ends the search under way: the next command is decided with the best that was found.
    pub fn end_decision(&mut self, planner: &mut dyn Planner) {
        // A search without a step has yet to begin.
        self.search(planner, 0);
        let Some(DecisionUnderWay { part, op, gap, .. }) = self.under_way.take() else { return };
        match planner.resumable() {
            Some(search) => search.end_search(&mut self.runs),
            None => planner.plan(gap.opportunity(), &mut self.runs),
        }
        let filling = self.fill(&gap, planner);
        self.next = Some(self.next_of(part, op, filling));
    }

    fn next_of(&self, part: ForegroundPart, op: Op, filling: Filling) -> Next {
        Next { part, op, filling, latency: self.latency }
    }

    /// The drive has come back with something while free work was looked for, before it was expected to:
    /// what has been decided is sent without any.
    pub fn overtaken(&mut self) {
        if let Some(next) = &mut self.next {
            next.filling = Filling::default();
        }
    }
}
