//! Plan for a gap, as commands that a drive accepts.

use std::collections::VecDeque;
use std::sync::Arc;

use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

use super::{PredictiveScheduler, TRUST_MAX};
use crate::margins::Learner;
use crate::predict::{Head, SameTrack};
use freewheel_freeblock::{Foreground, FreeRun, GapUse, Opportunity, Planner};
use freewheel_model::drive::{Drive, Leg, Position, RemainingAccess, Sectors, Target};

/// Free work in one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FreeCommand {
    pub op: Op,
    pub start: Lbn,
    pub blocks: u32,
    pub runs: Vec<FreeRun>,
    /// Set if it continues into the foreground request that follows.
    pub is_merged: bool,
}

/// Commands for the drive before a foreground request, and with it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filling {
    pub free: VecDeque<FreeCommand>,
    /// Free work that ends where the request begins.
    pub merged: Option<FreeCommand>,
    /// True if any of it is at the drive or was.
    pub has_sent: bool,
}

impl FreeCommand {
    fn new(run: &FreeRun) -> Self {
        Self {
            op: run.op,
            start: run.start,
            blocks: run.blocks,
            runs: vec![*run],
            is_merged: false,
        }
    }

    fn end(&self) -> u64 {
        self.start.get() + u64::from(self.blocks)
    }

    /// Blocks in it that are wanted.
    fn wanted(&self) -> u32 {
        self.runs.iter().map(|run| run.blocks).sum()
    }

    /// True if it shares blocks with a foreground request.
    pub fn touches(&self, request: &Foreground) -> bool {
        let from = request.start.get();
        self.start.get() < from + u64::from(request.blocks) && from < self.end()
    }

    /// Extends the command to the end of `run`, over the blocks between.
    fn extend(&mut self, run: &FreeRun) {
        self.blocks = (run.start.get() + u64::from(run.blocks) - self.start.get()) as u32;
        self.runs.push(*run);
    }
}

/// The gap before a foreground request, and the request in it.
struct Gap {
    opportunity: Opportunity,
    leg: Leg,
    start: Lbn,
    /// First block of the sector that it begins with: where the head has to be in time.
    edge: Lbn,
    op: Op,
    /// Times at which the commands at the drive end, and the next ones may follow.
    ends: Vec<SimTime>,
    head: Head,
}

/// A gap that free work may fill.
pub(super) struct GapToFill {
    gap: Gap,
    /// Time at which the command must leave for the drive, in the host's time.
    pub by: SimTime,
    /// Time at which the decision began.
    now: SimTime,
    /// Time at which the plan takes it to leave.
    leaves: SimTime,
}

impl GapToFill {
    pub fn opportunity(&self) -> &Opportunity {
        &self.gap.opportunity
    }
}

impl PredictiveScheduler {
    /// The gap before these blocks, which are to be sent for next; None where free work must not fill it.
    pub(super) fn open_gap(
        &mut self,
        now: SimTime,
        (start, blocks, op): (Lbn, u32, Op),
        planner: &mut dyn Planner,
    ) -> Option<GapToFill> {
        let at_once = self.tail(now, op);
        self.latency = None;
        if !at_once.is_known {
            return None;
        }
        let target = self.drive.target(start, Blocks::new(blocks.into()), op);
        let first = self.sectors.first(&self.drive, &target);
        let mut gap = self.gap_before(at_once, &first, (start, op));
        self.account.gaps += 1;
        let latency = gap.opportunity.latency();
        self.latency = Some(latency);
        self.account.potential_ns += u128::from(latency.ns());
        let is_off = self.off_slots.as_ref().is_some_and(|slots| slots.is_off(now));
        if latency == SimDuration::ZERO || is_off || !self.may_risk() {
            return None;
        }
        let until_due = gap.opportunity.due.saturating_since(at_once.at);
        if !self.is_worth_its_price(latency, (op == Op::Read).then_some((start, until_due))) {
            self.account.gaps_left += 1;
            return None;
        }
        let (by, leaves) = self.leaves(now);
        let head = self.tail(leaves, op);
        if head != at_once {
            let due = gap.opportunity.due;
            gap = self.gap_before(head, &first, (start, op));
            // A client that waits for the drive should not wait for a search too.
            if gap.opportunity.due > due {
                return None;
            }
        }
        self.follow_margins(planner);
        Some(GapToFill { gap, by, now, leaves })
    }

    /// Makes commands of the planned runs, as far as the request is in time behind them.
    pub(super) fn fill(&mut self, to_fill: &GapToFill, planner: &mut dyn Planner) -> Filling {
        let GapToFill { gap, leaves, now, .. } = to_fill;
        self.has_work = !self.runs.is_empty();
        let runs = std::mem::take(&mut self.runs);
        let mut commands = self.commands(gap, &runs);
        self.runs = runs;
        let gap_use = loop {
            if let Some(gap_use) = self.gap_use(gap, &commands, *leaves) {
                break gap_use;
            }
            let least = (0..commands.len()).min_by_key(|&at| commands[at].wanted());
            commands.remove(least.expect("without free work the request is in time"));
        };
        planner.filled(&gap.opportunity, &gap_use);
        self.account.gaps_used += u64::from(!commands.is_empty());
        if !commands.is_empty() {
            self.prices.gap_filled();
            if let Some(slots) = &mut self.off_slots {
                slots.worked(*now);
            }
        }
        self.account.transfer_ns += u128::from(gap_use.transfer.ns());
        self.account.extra_seek_ns += i128::from(gap_use.extra_seek_ns);
        let merged = commands.pop_if(|last| last.is_merged);
        Filling { free: commands.into(), merged, has_sent: false }
    }

    /// True if free work has kept its budget of delays, and more commands met their prediction than not.
    /// The cost of an unpredicted end is unknown, so that it cannot be charged to the budget.
    fn may_risk(&mut self) -> bool {
        let is_paid = self.learner.as_ref().is_none_or(Learner::may_risk);
        let may = is_paid && self.trust >= TRUST_MAX / 2;
        self.has_work &= may;
        may
    }

    /// Takes over what has been learned of margins.
    fn follow_margins(&mut self, planner: &mut dyn Planner) {
        if let Some(margins) = self.learner.as_mut().and_then(Learner::news) {
            self.cautious = Arc::new(self.drive.with_seek_margins(margins));
            planner.predict_with(&self.cautious);
        }
    }

    /// The gap before a request that begins with `start`, of which the head does `first` first.
    fn gap_before(&self, head: Head, first: &Target, (start, op): (Lbn, Op)) -> Gap {
        let departure = head.departure(self.read_write_switch);
        let leg = self.drive.next_leg(&departure, &RemainingAccess::whole(first), 0);
        let leg = leg.expect("a target has a leg");
        let mut opportunity = Opportunity::before(&departure, &leg, 0);
        let edge = first.start;
        opportunity.ends = self.spec.same_track.ends(&self.drive, op, edge);
        let ends = self.in_flight.iter().map(|sent| sent.prediction.end.at).collect();
        Gap { opportunity, leg, start, edge, op, ends, head }
    }

    /// Commands for the runs of a plan: one for what lies on a track, holes included.
    fn commands(&self, gap: &Gap, runs: &[FreeRun]) -> Vec<FreeCommand> {
        let position = |block: Lbn| position(&self.drive, block);
        // A write of a part of a sector takes the drive a read and a turn more.
        let sectors = Sectors::of(self.sector_blocks.max(self.sectors.blocks()));
        let of_use = runs.iter().filter(|run| !self.in_flight(run) && !is_slow(run, &sectors));
        let mut commands = one_command_a_track(of_use, position);
        if let Some(last) = commands.last_mut()
            && self.spec.same_track != SameTrack::Never
            && gap.can_merge(last, position(last.start))
        {
            last.blocks = (gap.start.get() - last.start.get()) as u32;
            last.is_merged = true;
        }
        if self.spec.same_track != SameTrack::Distinct {
            let ends = [gap.opportunity.from, gap.opportunity.to];
            commands.retain(|free| free.is_merged || !ends.contains(&position(free.start)));
            one_a_track(&mut commands, position);
        }
        commands
    }

    fn in_flight(&self, run: &FreeRun) -> bool {
        self.in_flight.iter().any(|sent| {
            sent.command.runs.iter().any(|other| {
                run.start.get() < other.start.get() + u64::from(other.blocks)
                    && other.start.get() < run.start.get() + u64::from(run.blocks)
            })
        })
    }

    /// Part of the gap that the commands use; None when the foreground request would be late behind them.
    /// Every seek takes longer by the margin, and a command cannot begin before the drive has been told of
    /// it and has processed it, one after the other.
    fn gap_use(&self, gap: &Gap, commands: &[FreeCommand], now: SimTime) -> Option<GapUse> {
        let mut gap_use = GapUse::default();
        if commands.is_empty() {
            return Some(gap_use);
        }
        let due = gap.opportunity.due;
        let mut ends = gap.ends.clone();
        let mut processed = self.clock.model(self.processed.max(now));
        let mut at = gap.head.departure(self.read_write_switch);
        for free in commands {
            processed =
                processed.max(self.next_command_at(&ends, now)) + self.turnaround.of(free.op);
            at.begin = at.begin.max(processed);
            let (from, mut to) = self.sectors.cover(free.start, Lbn::new(free.end()));
            if free.is_merged {
                to = gap.edge;
            }
            let target = self.drive.target(from, Blocks::new(to.get() - from.get()), free.op);
            let access = self.cautious.media_access_from(&at, &target, 0);
            at = at.after(&access, free.op);
            ends.push(at.begin);
            gap_use.transfer += access.transfer;
            gap_use.extra_seek_ns += access.seek.ns() as i64;
        }
        if commands.last().is_some_and(|last| last.is_merged) {
            // In one go with the request, it ends where that begins.
            if at.begin != due {
                return None;
            }
        } else {
            processed =
                processed.max(self.next_command_at(&ends, now)) + self.turnaround.of(gap.op);
            at.begin = at.begin.max(processed);
            let back = self.cautious.travel(&at, gap.opportunity.to, gap.leg.target.op, 0);
            gap_use.extra_seek_ns += back.ns() as i64;
            at.begin += back;
        }
        gap_use.extra_seek_ns -= gap.leg.seek.ns() as i64;
        (at.begin <= due).then_some(gap_use)
    }

    /// Time at which the drive can receive the next command behind commands with these ends.
    fn next_command_at(&self, ends: &[SimTime], now: SimTime) -> SimTime {
        let behind = ends.len().checked_sub(self.spec.queue_depth as usize);
        behind.map_or(self.clock.model(now), |behind| ends[behind])
    }
}

fn is_slow(run: &FreeRun, sectors: &Sectors) -> bool {
    run.op == Op::Write && sectors.is_part(run.start, run.blocks)
}

impl Gap {
    /// True if free work and the request can be one command: both read, on one track, the request behind it
    /// and from its beginning.
    fn can_merge(&self, free: &FreeCommand, at: Position) -> bool {
        free.op == Op::Read
            && self.op == Op::Read
            && at == self.opportunity.to
            && self.leg.target.start == self.edge
            && free.end() <= self.edge.get()
    }
}

impl SameTrack {
    /// Leaves of a plan what a scheduler outside the drive could ask for as well: of each track one
    /// command. For what such a scheduler would lose inside a drive.
    pub fn limit(self, drive: &Drive, runs: &mut Vec<FreeRun>) {
        if self == Self::Distinct {
            return;
        }
        let position = |block: Lbn| position(drive, block);
        let mut commands = one_command_a_track(runs.iter(), position);
        one_a_track(&mut commands, position);
        runs.clear();
        runs.extend(commands.into_iter().flat_map(|command| command.runs));
    }
}

fn position(drive: &Drive, block: Lbn) -> Position {
    let at = drive.layout().locate(block);
    Position { cylinder: at.cylinder, surface: at.surface }
}

/// Commands for runs: reads that follow each other on a track, in the order of its blocks, are one.
fn one_command_a_track<'a>(
    runs: impl Iterator<Item = &'a FreeRun>,
    position: impl Fn(Lbn) -> Position,
) -> Vec<FreeCommand> {
    let mut commands: Vec<FreeCommand> = Vec::new();
    for run in runs {
        match commands.last_mut() {
            Some(last)
                if run.op == Op::Read
                    && last.op == Op::Read
                    && last.end() <= run.start.get()
                    && position(last.start) == position(run.start) =>
            {
                last.extend(run);
            }
            _ => commands.push(FreeCommand::new(run)),
        }
    }
    commands
}

/// Command with the most wanted blocks on each track, of equals the first.
fn one_a_track(commands: &mut Vec<FreeCommand>, position: impl Fn(Lbn) -> Position) {
    let mut number = 0;
    while number < commands.len() {
        let here = position(commands[number].start);
        let most = commands
            .iter()
            .filter(|other| position(other.start) == here)
            .map(FreeCommand::wanted)
            .max()
            .unwrap_or(0);
        let is_first = commands[..number].iter().all(|other| position(other.start) != here);
        let is_most = commands[number].wanted() == most;
        if is_most && is_first {
            number += 1;
        } else {
            commands.remove(number);
        }
    }
}
