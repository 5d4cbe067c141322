//! Freeblock scheduling in front of a drive that shows only commands and the times of their ends.
//!
//! fast02 section 4. A foreground policy picks requests by predicted positioning time. The drive has at
//! most two commands: always the next one, and no choice. The end of one command is then the beginning of
//! the next, and neither bus nor command processing shows. A [`Planner`] fills the gap between the
//! request at the drive and the next one; its plan goes to the drive as commands in between:
//!
//! ```text
//!   at the drive   |--request A--|                        |--request B--|
//!   gap                          |seek|..latency..........|
//!   with free work |--request A--|seek|--free read--|seek.|--request B--|
//! ```
//! Each end is compared with its prediction. Media commands end at a known angle, from which the spindle
//! is followed. An end elsewhere tells of a buffer, or of activity of the drive's own.
//!
//! Goals: one command after a surprise the state is right again; free work rests only on predictions that
//! can be trusted.
//! Non-goals: moving data, retries.

mod decision;
mod free;
mod hits;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

pub use self::decision::DecisionStart;
use self::decision::DecisionUnderWay;
use self::free::{Filling, FreeCommand};
use self::hits::{ReadAtDrive, ReadReply};
use super::command::{Command, Finished, ForegroundPart};
use crate::deadline::Deciding;
use crate::fair_queue::{Client, FairQueue, Limit};
use crate::margins::{Learner, MarginInUse, Movement};
use crate::off_slots::{CostSums, OffSlots};
use crate::predict::{Account, Clock, Head, Observed, PLAUSIBLE, Prediction, PredictionSpec};
use crate::price::GapPrices;
use freewheel_freeblock::{Foreground, ForegroundEvent, FreeRun, Planner};
use freewheel_model::drive::spec::ByOp;
use freewheel_model::drive::{Departure, Drive, RemainingAccess, Sectors, Target};
use freewheel_model::sched::{CommandMark, Moment, ParsePolicyError, Policy, PolicySpec, Waiting};

/// Surprises in a row after which the scheduler trusts no prediction; free work needs half of the trust.
/// Assumed: half a second of a busy drive, so that a burst of buffer hits does not end free work.
const TRUST_MAX: u32 = 64;

/// A command at the drive.
struct InFlight {
    command: Command,
    sent: SimTime,
    /// Time at which the drive begins to process it, in the host's time: after those before.
    taken_up: SimTime,
    prediction: Prediction,
    /// A foreground request with free work before it.
    is_behind_free: bool,
    /// State of a client's read.
    read: Option<ReadAtDrive>,
}

/// The part of a foreground request that comes next, with what goes before it.
struct Next {
    part: ForegroundPart,
    op: Op,
    filling: Filling,
    /// Time for which blocks pass before it without free work, where that is known.
    latency: Option<SimDuration>,
}

/// A gap in which free work has come back.
#[derive(Clone, Copy)]
struct OpenGap {
    /// Before all of it.
    head: Head,
    /// Time at which the drive took up the first command in it.
    taken_up: SimTime,
    /// A command of it lost two turns or more at once, which is the drive's own doing: a seek that
    /// misses its sector loses one.
    is_interrupted: bool,
}

/// A foreground request that is not done.
struct Pending {
    request: Foreground,
    client: Option<Client>,
    arrival: SimTime,
    /// Set until the request is picked.
    waits: bool,
    /// Blocks that have not come back.
    left: u32,
}

/// Schedules the commands of one drive.
pub struct PredictiveScheduler {
    spec: PredictionSpec,
    /// Drive of the predictions; its processing of commands takes no time.
    drive: Arc<Drive>,
    /// Drive with longer seeks, for free work.
    cautious: Arc<Drive>,
    /// Learner of margins that are not constant.
    learner: Option<Learner>,
    prices: GapPrices,
    /// Slots without free work, where its cost is measured.
    off_slots: Option<OffSlots>,
    /// Only requests with a client are measured: the others are not of clients.
    measures_named: bool,
    /// Chances of lost hits that do not make a whole one yet.
    lost_hits: f64,
    /// Rotational latency before the request that was decided on last, if it is known.
    latency: Option<SimDuration>,
    /// From sending a command to an idle drive until the head moves.
    turnaround: ByOp<SimDuration>,
    read_write_switch: SimDuration,
    /// Requests are cut at multiples of this number of blocks.
    sector_blocks: u32,
    /// Sectors of the media, as far as they are known.
    sectors: Sectors,
    by: PolicySpec,
    policy: Box<dyn Policy>,
    /// Requests that the policy still holds though they were picked when some clients had to let others go
    /// first.
    passed_over: BTreeSet<u64>,
    fair_queue: FairQueue,
    waiting: BTreeMap<u64, Pending>,
    next: Option<Next>,
    under_way: Option<DecisionUnderWay>,
    /// The rest of a request whose first part has been sent.
    rest: Option<(ForegroundPart, Op)>,
    /// True if the last plan had work.
    has_work: bool,
    decides_at: Option<SimTime>,
    deciding: Deciding,
    in_flight: VecDeque<InFlight>,
    /// Time at which the drive has processed all commands sent, in the host's time.
    processed: SimTime,
    clock: Clock,
    /// The head after the last completed command.
    head: Head,
    /// Time at which the last command came back.
    ended: SimTime,
    /// Ends as predicted less surprises; an end right after a surprise counts as neither.
    trust: u32,
    /// The gap of the free work that came back last, while the request behind it has not come back.
    gap: Option<OpenGap>,
    last_id: u64,
    runs: Vec<FreeRun>,
    account: Account,
}

impl PredictiveScheduler {
    /// For a drive whose commands take `drive.overhead` from the host to the media. An error when the
    /// policy has a parameter out of range.
    pub fn new(
        drive: &Drive,
        read_write_switch: SimDuration,
        policy: PolicySpec,
        spec: PredictionSpec,
    ) -> Result<Self, ParsePolicyError> {
        assert!(spec.queue_depth > 0, "commands at the drive");
        let period = drive.rotation().period();
        Ok(Self {
            learner: Learner::for_spec(&spec, period),
            prices: GapPrices::new(drive),
            off_slots: OffSlots::new(0, spec.off_slot, spec.off_share),
            measures_named: false,
            lost_hits: 0.0,
            latency: None,
            cautious: Arc::new(spec.planners_drive(drive)),
            turnaround: drive.overheads(),
            clock: Clock::new(period),
            drive: Arc::new(drive.with_overhead(ByOp::default())),
            read_write_switch,
            sector_blocks: 1,
            sectors: Sectors::default(),
            policy: policy.build()?,
            by: policy,
            passed_over: BTreeSet::new(),
            fair_queue: FairQueue::new(longest_track(drive)),
            spec,
            waiting: BTreeMap::new(),
            next: None,
            under_way: None,
            rest: None,
            has_work: false,
            decides_at: None,
            deciding: Deciding::default(),
            in_flight: VecDeque::new(),
            processed: SimTime::ZERO,
            head: Head::default(),
            ended: SimTime::ZERO,
            trust: TRUST_MAX,
            gap: None,
            last_id: 0,
            runs: Vec::new(),
            account: Account::default(),
        })
    }

    /// Scheduler for a drive with sectors of `blocks`: no foreground request is cut inside a sector. Free
    /// work ignores them.
    #[must_use]
    pub fn with_sectors_of(self, blocks: u32) -> Self {
        Self { sector_blocks: blocks, ..self }
    }

    /// Scheduler for a drive whose media have these sectors. A write of a part of a sector is predicted to
    /// take a read and a turn more, and no request is cut inside a sector. Sectors that do not divide the
    /// drive into whole ones are ignored.
    #[must_use]
    pub fn with_media_sectors(self, sectors: Sectors) -> Self {
        let is_whole = self.drive.blocks().get().is_multiple_of(sectors.blocks().into());
        Self { sectors: if is_whole { sectors } else { self.sectors }, ..self }
    }

    /// Scheduler with random slots without free work from this seed.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { off_slots: self.off_slots.map(|slots| slots.seeded(seed)), ..self }
    }

    /// Scheduler in which requests without a client are of tasks.
    #[must_use]
    pub(crate) fn with_named_clients(self) -> Self {
        Self { measures_named: true, ..self }
    }

    /// Cost of free work to clients, as measured in slots without it; None where there are no such slots.
    pub fn cost_sums(&self) -> Option<CostSums> {
        self.off_slots.as_ref().map(OffSlots::sums)
    }

    /// Sectors of the media, as far as they are known.
    pub fn media_sectors(&self) -> Sectors {
        self.sectors
    }

    /// The drive as planners of free work should see it: see [`PredictionSpec::planners_drive`].
    pub fn planners_drive(&self) -> Arc<Drive> {
        Arc::clone(&self.cautious)
    }

    /// Account of observations and work so far.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// The margins that have been learned, where they are.
    pub fn margins(&self) -> Vec<MarginInUse> {
        self.learner.as_ref().map(Learner::in_use).unwrap_or_default()
    }

    /// A foreground request has arrived. What overlaps with one that is not done, and is a write or
    /// meets one, must be held back by the caller. Clients have turns; what is no client's goes as the
    /// policy has it.
    pub fn arrived(
        &mut self,
        request: Foreground,
        client: Option<Client>,
        now: SimTime,
        planner: &mut dyn Planner,
    ) {
        let Foreground { blocks, sequence, .. } = request;
        let pending = Pending { request, client, arrival: now, waits: true, left: blocks };
        self.policy.push(self.to_pick(&pending));
        client.into_iter().for_each(|client| self.fair_queue.arrived(client));
        self.waiting.insert(sequence, pending);
        planner.foreground(ForegroundEvent::Arrived { request: &request, at: now });
        if let Some(next) = self.next.as_mut().filter(|_| request.op == Op::Write) {
            next.filling.free.retain(|free| free.op == Op::Read || !free.touches(&request));
        }
    }

    /// Takes a foreground request back. False if it has been picked, and continues.
    pub fn withdraw(&mut self, sequence: u64, now: SimTime, planner: &mut dyn Planner) -> bool {
        if !self.waiting.get(&sequence).is_some_and(|pending| pending.waits) {
            return false;
        }
        let Some(Pending { request, client, .. }) = self.waiting.remove(&sequence) else {
            return false;
        };
        client.into_iter().for_each(|client| self.fair_queue.withdrawn(client));
        self.pass_over(sequence);
        planner.foreground(ForegroundEvent::Done { request: &request, at: now });
        true
    }

    /// The policy has a request that is not to be picked from it any more.
    fn pass_over(&mut self, sequence: u64) {
        self.passed_over.insert(sequence);
        // What a policy would not pick for long is not to fill it.
        if 2 * self.passed_over.len() > self.policy.len() {
            self.policy = self.policy_of(|pending| pending.request.sequence != sequence);
            self.passed_over.clear();
        }
    }

    /// A request as the policy sees it.
    fn to_pick(&self, pending: &Pending) -> Waiting {
        let Foreground { op, start, blocks, sequence, .. } = pending.request;
        let target = self.drive.target(start, Blocks::new(blocks.into()), op);
        // A policy that predicts positioning times has no use for the flag.
        Waiting { target, arrival: pending.arrival, sequence, fua: false, mark: CommandMark::None }
    }

    /// Sets how long decisions take.
    pub fn decisions_take(&mut self, deciding: Deciding) {
        self.deciding = deciding;
    }

    /// Time before the drive needs a command at which its decision begins.
    pub fn decides_before(&self) -> SimDuration {
        self.spec.lead_time.max(self.deciding.most)
    }

    /// True if the drive is to have more commands than it has.
    fn has_room(&self) -> bool {
        self.in_flight.len() < self.spec.queue_depth as usize
    }

    /// The free write that [`Self::next_command`] would send now, if it is one: its first block and their
    /// number.
    pub(crate) fn next_free_write(&self) -> Option<(Lbn, u32)> {
        let next = self.next.as_ref().filter(|_| self.has_room() && self.head.is_known)?;
        let free = next.filling.free.front().filter(|free| free.op == Op::Write)?;
        Some((free.start, free.blocks))
    }

    /// Gives up the next command of free work.
    pub(crate) fn skip_free(&mut self) {
        if let Some(next) = &mut self.next {
            next.filling.free.pop_front();
        }
    }

    /// The next command to send at `now`, as [decided](Self::decide); None when the drive has enough
    /// commands or none is decided.
    pub fn next_command(&mut self, now: SimTime, planner: &mut dyn Planner) -> Option<Command> {
        if !self.has_room() {
            return None;
        }
        let next = self.next.as_mut()?;
        // What was planned rests on a prediction that has just failed.
        if !self.head.is_known {
            next.filling.free.clear();
        }
        if let Some(free) = next.filling.free.pop_front() {
            self.account.commands += 1;
            return Some(self.send(free, None, false, now, planner));
        }
        let Next { part, op, filling, latency } = self.next.take().expect("it has been chosen");
        let merged = filling.merged.filter(|_| self.head.is_known);
        let is_behind_free = filling.has_sent || merged.is_some();
        let command = match merged {
            Some(free) => {
                self.account.merged += 1;
                FreeCommand { blocks: free.blocks + part.blocks, ..free }
            }
            None => FreeCommand {
                op,
                start: part.start,
                blocks: part.blocks,
                runs: Vec::new(),
                is_merged: false,
            },
        };
        let read = self.read_sent(&part, op, latency, is_behind_free);
        let sent = self.send(command, Some(part), is_behind_free, now, planner);
        self.in_flight.back_mut().expect("it has just been sent").read = read;
        Some(sent)
    }

    /// Time at which [`Self::decide`] has to be called, if no request arrives and no command ends before.
    pub fn decides_at(&self) -> Option<SimTime> {
        self.decides_at
    }

    /// True if the next request need not be chosen yet: the drive is busy for longer.
    fn is_early(&mut self, now: SimTime) -> bool {
        self.decides_at = None;
        let Some(decides_at) = self.before_needed(self.decides_before()) else { return false };
        let is_early = self.head.is_known && now < decides_at && self.any_waits();
        self.decides_at = is_early.then_some(decides_at);
        is_early
    }

    /// The time `before` the drive needs its next command; None when the drive needs one now.
    fn before_needed(&self, before: SimDuration) -> Option<SimTime> {
        let ends_ns = self.in_flight.back()?.prediction.end.at.ns();
        let needed_ns = ends_ns.saturating_sub(self.turnaround.of(Op::Write).ns());
        let before_ns = needed_ns.saturating_sub(before.ns());
        Some(self.clock.host(SimTime::from_ns(before_ns)))
    }

    /// Time at which a command leaves that is decided on from `now` on, and time from which the drive has
    /// it. It is in time when the drive needs it. Where that is too soon for most decisions, it is as late
    /// as most of them are made.
    fn leaves(&self, now: SimTime) -> (SimTime, SimTime) {
        let soon = now + self.deciding.usual;
        // Free work goes first, and may take longer to get ready.
        let [free, own] = [Op::Read, Op::Write].map(|op| self.turnaround.of(op));
        match self.before_needed(free.saturating_sub(own)) {
            Some(needed) if needed >= soon => (needed, now),
            _ => (soon, soon),
        }
    }

    fn send(
        &mut self,
        command: FreeCommand,
        foreground: Option<ForegroundPart>,
        is_behind_free: bool,
        now: SimTime,
        planner: &mut dyn Planner,
    ) -> Command {
        let FreeCommand { op, start, blocks, runs, .. } = command;
        runs.iter().for_each(|run| planner.sent(run));
        self.last_id += 1;
        let command = Command { id: self.last_id, op, start, blocks, foreground, runs };
        if let Some(next) = &mut self.next {
            next.filling.has_sent = true;
        }
        let is_part_write = op == Op::Write && self.sectors.is_part(start, blocks);
        self.account.part_sector_writes += u64::from(is_part_write);
        let prediction = self.prediction(&command, now);
        let taken_up = now.max(self.processed);
        self.processed = taken_up + self.turnaround.of(op);
        self.in_flight.push_back(InFlight {
            command: command.clone(),
            sent: now,
            taken_up,
            prediction,
            is_behind_free,
            read: None,
        });
        if op == Op::Read {
            self.prices.sent(foreground.is_some());
        }
        command
    }

    /// Prediction for a command that is sent now, behind those at the drive.
    fn prediction(&self, command: &Command, now: SimTime) -> Prediction {
        let head = self.tail(now, command.op);
        Prediction::new(&self.drive, self.sectors, &head, self.read_write_switch, command.extent())
    }

    /// The head when it is done with everything at the drive and can begin with a command that is
    /// sent at `now`.
    fn tail(&self, now: SimTime, op: Op) -> Head {
        let head = self.in_flight.back().map_or(self.head, |last| last.prediction.end);
        let taken_up = now.max(self.processed);
        let ready = self.clock.model(taken_up) + self.turnaround.of(op);
        Head { at: head.at.max(ready), ..head }
    }

    /// Picks the next foreground request, or the rest of the last one, if the drive has room for it and
    /// it is time.
    fn choose(&mut self, now: SimTime) -> Option<(ForegroundPart, Op)> {
        let is_time =
            self.has_room() && self.next.is_none() && (self.rest.is_some() || !self.is_early(now));
        if !is_time {
            return None;
        }
        self.rest.take().or_else(|| self.pick(now))
    }

    /// The next foreground request. A drive whose head would arrive in the middle of the request gets it as
    /// two commands while there is free work: most of a turn lies between them, and is a gap.
    fn pick(&mut self, now: SimTime) -> Option<(ForegroundPart, Op)> {
        let head = self.tail(now, Op::Read);
        let drive = Arc::clone(&self.drive);
        let moment = Moment { now: head.at, head: head.position, drive: &drive };
        let Waiting { target, sequence, .. } = match self.fair_queue.limit() {
            None => self.pick_of_all(&moment)?,
            Some(limit) => self.pick_of_those_behind(&limit, &moment)?,
        };
        let pending = self.waiting.get_mut(&sequence).expect("it is not done");
        pending.waits = false;
        if let Some(client) = pending.client {
            self.fair_queue.picked(client, Blocks::new(pending.request.blocks.into()));
        }
        let Target { start, blocks, op, .. } = target;
        let whole = ForegroundPart { sequence, start, blocks };
        // A write of part sectors takes two turns, however it is cut.
        let is_part_write = op == Op::Write && self.sectors.is_part(start, blocks);
        if !(self.has_work && head.is_known) || is_part_write {
            return Some((whole, op));
        }
        let departure = self.tail(now, op).departure(self.read_write_switch);
        // By a head that arrives late, so that it reads from there whenever it arrives.
        let leg = self.cautious.next_leg(&departure, &RemainingAccess::whole(&target), 0)?;
        let first = leg.target;
        let is_rest =
            first.start.get() + u64::from(first.blocks) == start.get() + u64::from(blocks);
        if first.start == start || !is_rest || !self.is_late_for(&departure, &target) {
            return Some((whole, op));
        }
        let sector = self.sector_blocks.max(self.sectors.blocks());
        let cut = first.start.get().next_multiple_of(sector.into());
        let before = (cut - start.get()) as u32;
        if before >= blocks {
            return Some((whole, op));
        }
        self.rest = Some((ForegroundPart { blocks: before, ..whole }, op));
        Some((ForegroundPart { sequence, start: Lbn::new(cut), blocks: blocks - before }, op))
    }

    /// True if a request has not been picked.
    fn any_waits(&self) -> bool {
        self.policy.len() > self.passed_over.len()
    }

    fn pick_of_all(&mut self, moment: &Moment<'_>) -> Option<Waiting> {
        loop {
            let picked = self.policy.pick(moment)?;
            if !self.passed_over.remove(&picked.sequence) {
                return Some(picked);
            }
        }
    }

    /// Picks by the policy among what clients want that are not ahead.
    fn pick_of_those_behind(&mut self, limit: &Limit, moment: &Moment<'_>) -> Option<Waiting> {
        let picked = self
            .policy_of(|pending| {
                pending.client.is_none_or(|client| self.fair_queue.may_go(client, limit))
            })
            .pick(moment)?;
        self.pass_over(picked.sequence);
        Some(picked)
    }

    /// The policy with those that wait and are `of` a kind.
    fn policy_of(&self, of: impl Fn(&Pending) -> bool) -> Box<dyn Policy> {
        let mut policy = self.by.build().expect("it was built before");
        let waiting = self.waiting.values().filter(|pending| pending.waits && of(pending));
        waiting.for_each(|pending| policy.push(self.to_pick(pending)));
        policy
    }

    /// True if the first block has passed when the head gets to a target's track, however early that is,
    /// and not all of them.
    fn is_late_for(&self, departure: &Departure, target: &Target) -> bool {
        let leg =
            |target: &Target| self.drive.next_leg(departure, &RemainingAccess::whole(target), 0);
        let first = self.drive.target(target.start, Blocks::new(1), target.op);
        let (Some(whole), Some(first)) = (leg(target), leg(&first)) else { return false };
        let period = self.drive.rotation().period();
        let margin = if departure.from == target.at {
            SimDuration::ZERO
        } else {
            self.cautious.travel(departure, target.at, target.op, 0) - first.seek
        };
        whole.target.start > target.start && first.wait + margin < period
    }

    /// A command has completed at `ended`; a busy caller tells so later, at `now`. Planners get `now`.
    /// Panics when the command is not at the drive.
    pub fn finished(
        &mut self,
        id: u64,
        ended: SimTime,
        now: SimTime,
        planner: &mut dyn Planner,
    ) -> Finished {
        let ended = ended.max(self.ended);
        let place = self.in_flight.iter().position(|sent| sent.command.id == id);
        let place = place.expect("it has been sent");
        let InFlight { command, sent, taken_up, prediction, is_behind_free, read } =
            self.in_flight.remove(place).expect("it is there");
        let was_known = self.head.is_known;
        let is_own = self.is_promoted(&command);
        let observed = self.clock.compare(ended, prediction.end.at);
        let head = ended.saturating_since(self.ended.max(sent));
        if let Some(learner) = &mut self.learner {
            learner.worked(head);
        }
        let period = self.drive.rotation().period();
        let late_ns = observed.turns * period.ns() as i64;
        let may_be_media =
            if was_known { prediction.may_end(&observed, period) } else { observed.is_plausible };
        let begin = self.gap_begin(sent);
        let mut delay = SimDuration::ZERO;
        // One that has overtaken others did not begin where the head is.
        if place > 0 {
            self.gap = None;
        } else {
            if was_known {
                self.learn(&command, taken_up, &observed);
            }
            let is_interrupted = was_known && observed.turns > 1;
            let here = OpenGap { head: self.head, taken_up, is_interrupted };
            delay = self.count_delay(&command, here, ended);
        }
        if let Some(read) = read {
            let is_early = late_ns + observed.phase_ns < -((period / PLAUSIBLE).ns() as i64);
            let reply = ReadReply {
                is_hit: place > 0
                    || is_early && (was_known && !may_be_media || self.is_fast(&read, head)),
                is_behind_free,
                begin,
                ended,
                delay,
            };
            self.read_came_back(&read, &reply);
        }
        if place == 0 && may_be_media {
            self.head = prediction.end.later(late_ns);
            self.head.is_known = self.clock.is_known();
            self.clock.follow(ended, &observed);
            self.trust = (self.trust + u32::from(was_known && !is_own)).min(TRUST_MAX);
        } else {
            let lost = u32::from(self.clock.is_known() && !is_own);
            self.trust = self.trust.saturating_sub(lost);
            self.surprise(ended, &observed);
        }
        self.ended = ended;
        self.predict_again();
        let error_ns = was_known.then_some(late_ns + observed.phase_ns);
        if let Some(error) = error_ns {
            self.account.count(&observed, error.unsigned_abs(), is_behind_free);
        }
        let done = self.tell(&command, now, planner);
        Finished { command, done, head, error_ns }
    }

    /// True if a command reads for a promoted task alone. Its blocks are sequential, and a buffer answers
    /// them: such surprises do not show how the drive treats other commands.
    fn is_promoted(&self, command: &Command) -> bool {
        let pending = command.foreground.and_then(|part| self.waiting.get(&part.sequence));
        pending.is_some_and(|pending| pending.request.promotion.is_some())
    }

    /// Learns from the end of a command that began where the head is. `taken_up` is when the drive
    /// began to process it.
    fn learn(&mut self, command: &Command, taken_up: SimTime, observed: &Observed) {
        let Some(learner) = &mut self.learner else { return };
        // A drive that reads from the middle of the request when it is late ends within the turn.
        let is_late = observed.turns == 1;
        if !(is_late || observed.turns == 0 && observed.is_plausible) {
            return;
        }
        let (op, start, blocks) = command.extent();
        let target = self.drive.target(start, Blocks::new(blocks.into()), op);
        if target.at == self.head.position {
            return;
        }
        let target = self.sectors.first(&self.drive, &target);
        let ready = self.clock.model(taken_up) + self.turnaround.of(op);
        let begin = self.head.at.max(ready);
        let departure = Departure { begin, ..self.head.departure(self.read_write_switch) };
        let leg = self.drive.next_leg(&departure, &RemainingAccess::whole(&target), 0);
        let slack = leg.expect("a target has a leg").wait;
        let (from, to) = (self.head.position.cylinder, target.at.cylinder);
        learner.moved(&Movement { op: target.op, from, to, slack, is_late });
    }

    /// Compares the end of a foreground command after free work, at `now`, with the predicted end without
    /// free work, and returns the delay. `here` is the gap if this command is alone in it.
    fn count_delay(&mut self, command: &Command, here: OpenGap, now: SimTime) -> SimDuration {
        let is_free = !command.runs.is_empty();
        let before = self.gap.take();
        let is_interrupted = here.is_interrupted || before.is_some_and(|gap| gap.is_interrupted);
        let Some(part) = command.foreground else {
            self.gap = Some(OpenGap { is_interrupted, ..before.unwrap_or(here) });
            return SimDuration::ZERO;
        };
        let Some(OpenGap { head: mut from, taken_up, .. }) = before.or(is_free.then_some(here))
        else {
            return SimDuration::ZERO;
        };
        if !from.is_known {
            return SimDuration::ZERO;
        }
        from.at = from.at.max(self.clock.model(taken_up) + self.turnaround.of(command.op));
        let extent = (command.op, part.start, part.blocks);
        let alone =
            Prediction::new(&self.drive, self.sectors, &from, self.read_write_switch, extent);
        let delay = self.clock.model(now).saturating_since(alone.end.at);
        if delay <= self.drive.rotation().period() / PLAUSIBLE {
            return SimDuration::ZERO;
        }
        self.account.delayed += 1;
        self.account.delay_ns += u128::from(delay.ns());
        if let Some(learner) = self.learner.as_mut().filter(|_| !is_interrupted) {
            learner.delayed(delay);
        }
        delay
    }

    /// A command ended where the media could not have ended it. The head is where it was, or elsewhere; the
    /// end of the next command tells.
    fn surprise(&mut self, now: SimTime, observed: &Observed) {
        self.account.surprises += u64::from(self.clock.is_known());
        self.head.at = self.head.at.max(self.clock.model(now));
        self.head.is_known = false;
        self.clock.follow(now, &Observed { is_plausible: false, ..*observed });
    }

    /// Predicts the commands at the drive again, from the known place of the head.
    fn predict_again(&mut self) {
        let mut head = self.head;
        for sent in &mut self.in_flight {
            let turnaround = self.turnaround.of(sent.command.op);
            head.at = head.at.max(self.clock.model(sent.taken_up) + turnaround);
            let extent = sent.command.extent();
            sent.prediction =
                Prediction::new(&self.drive, self.sectors, &head, self.read_write_switch, extent);
            head = sent.prediction.end;
        }
    }

    /// Tells the planner which blocks have been moved. Returns the foreground request that is now done.
    fn tell(
        &mut self,
        command: &Command,
        now: SimTime,
        planner: &mut dyn Planner,
    ) -> Option<Foreground> {
        for run in &command.runs {
            planner.done(run, now);
            self.account.free_blocks += u64::from(run.blocks);
            let written = if run.op == Op::Write { run.blocks } else { 0 };
            self.account.free_written_blocks += u64::from(written);
        }
        let part = command.foreground?;
        planner.foreground(ForegroundEvent::Passed {
            op: command.op,
            start: part.start,
            blocks: part.blocks,
            at: now,
        });
        let pending = self.waiting.get_mut(&part.sequence)?;
        pending.left -= part.blocks;
        if pending.left > 0 {
            return None;
        }
        let Pending { request, client, arrival, .. } = self.waiting.remove(&part.sequence)?;
        let is_clients = request.promotion.is_none() && (client.is_some() || !self.measures_named);
        if let Some(slots) = self.off_slots.as_mut().filter(|_| is_clients) {
            slots.record(arrival, now.saturating_since(arrival));
        }
        planner.foreground(ForegroundEvent::Done { request: &request, at: now });
        Some(request)
    }
}

fn longest_track(drive: &Drive) -> Blocks {
    let tracks = drive.layout().zones().iter().map(|zone| zone.blocks_per_track());
    Blocks::new(tracks.max().expect("a drive has a zone").into())
}

#[cfg(test)]
mod tests;
