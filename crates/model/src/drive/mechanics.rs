//! The one function that says how long an access takes.
//!
//! Simulator and schedulers both call [`Drive::access`] and [`Drive::positioning`]; there is no
//! second estimate anywhere. `positioning` is the beginning of `access`, and a test holds the two
//! together to the nanosecond.

use freewheel_units::{Angle, Blocks, Lbn, Op, SimDuration, SimTime};

use super::access::{Access, Departure, Position, Positioning};
use super::layout::{Layout, Run};
use super::margins::SeekMargins;
use super::rotation::Rotation;
use super::seek::SeekCurve;
use super::zone::FileZone;
use crate::spec::by_op::ByOp;
use crate::spec::drive::DriveSpec;

/// A drive that answers questions. It has no state: the head's position is an argument. Of a drive
/// with more actuators it is the part that one of them serves.
#[derive(Debug, Clone, PartialEq)]
pub struct Drive {
    layout: Layout,
    seek: SeekCurve,
    rotation: Rotation,
    actuators: u32,
    zero_latency: ByOp<bool>,
    overhead: ByOp<SimDuration>,
    seek_tolerance: SimDuration,
    sector_blocks: u32,
}

/// A request with all that does not change while it waits worked out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Target {
    pub start: Lbn,
    /// Number of blocks, at least one.
    pub blocks: u32,
    pub op: Op,
    /// Place of the first block.
    pub at: Position,
    /// Everything lies in consecutive sectors of one track.
    pub(super) one_run: bool,
    pub(super) first_run: TrackRun,
}

impl Target {
    /// True if everything lies in consecutive sectors of one track.
    pub fn is_one_run(&self) -> bool {
        self.one_run
    }
}

/// A run on a track, in nanoseconds within the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TrackRun {
    track_start: Angle,
    zone: u32,
    sector: u32,
    pub(super) blocks: u32,
    /// Phase at which the first sector begins.
    pub(super) edge_ns: u32,
    /// Time from there to the end of the last; a whole turn for a whole track.
    pub(super) span_ns: u32,
}

impl TrackRun {
    const NONE: Self = Self {
        track_start: Angle::from_steps(0),
        zone: 0,
        sector: 0,
        blocks: 0,
        edge_ns: 0,
        span_ns: 0,
    };
}

/// The sector at which an access that begins within its run begins.
#[derive(Clone, Copy)]
pub(super) struct EntrySector {
    /// Sectors of the run before it, at least one.
    pub before: u32,
    /// Time from the start of the run to its edge.
    edge_ns: u64,
    /// Time from the arrival of the head to its edge.
    pub wait_ns: u64,
}

/// Rotation and transfer on one track, in nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct OnTrack {
    pub rotate_ns: u64,
    pub transfer_ns: u64,
}

/// Runs of one access that are served as one visit to a track. More slips or remaps within one
/// access on one track make it two visits; with zero-latency access each of them then waits for
/// its own start, up to a turn more than a drive would need. Shipped drives have at most 3.
const RUNS_A_VISIT: usize = 8;

impl Drive {
    pub(crate) fn new(
        layout: Layout,
        seek: SeekCurve,
        rotation: Rotation,
        spec: &DriveSpec,
    ) -> Self {
        Self {
            layout,
            seek,
            rotation,
            actuators: spec.actuators,
            zero_latency: spec.zero_latency,
            overhead: spec.overhead,
            seek_tolerance: spec.seek.tolerance,
            sector_blocks: spec.electronics.sector.physical_blocks(),
        }
    }

    /// LBN to place and back.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Seek times.
    pub fn seek(&self) -> &SeekCurve {
        &self.seek
    }

    /// The spindle.
    pub fn rotation(&self) -> &Rotation {
        &self.rotation
    }

    /// Capacity of the part that one actuator serves: all that this object knows places of.
    pub fn blocks(&self) -> Blocks {
        self.layout.blocks()
    }

    /// Number of actuators.
    pub fn actuators(&self) -> u32 {
        self.actuators
    }

    /// Capacity of the whole drive, all actuators together.
    pub fn total_blocks(&self) -> Blocks {
        Blocks::new(self.blocks().get() * u64::from(self.actuators))
    }

    /// Greatest difference between a real seek and the curve.
    pub fn seek_tolerance(&self) -> SimDuration {
        self.seek_tolerance
    }

    /// Command processing time before `op`.
    #[inline]
    pub fn overhead(&self, op: Op) -> SimDuration {
        self.overhead.of(op)
    }

    /// Works out what does not depend on time or head. Panics when the blocks are none, more than
    /// 2^32 - 1, or beyond the capacity, or when `op` moves no data.
    #[inline]
    pub fn target(&self, start: Lbn, blocks: Blocks, op: Op) -> Target {
        let count = self.checked_blocks(start, blocks, op);
        let run = self.layout.run(start, count);
        // Only the first run is worked out: most requests have no other, and policies compare first runs.
        Target { blocks: count, one_run: run.blocks == count, ..self.target_of(start, &run, op) }
    }

    /// A target without its place, for a queue that serves in order of arrival and a device that works out
    /// its requests to the media. Panics like [`Self::target`].
    #[inline]
    pub fn unplaced_target(&self, start: Lbn, blocks: Blocks, op: Op) -> Target {
        let blocks = self.checked_blocks(start, blocks, op);
        let (at, first_run) = (Position::default(), TrackRun::NONE);
        Target { start, blocks, op, at, one_run: false, first_run }
    }

    #[inline]
    fn checked_blocks(&self, start: Lbn, blocks: Blocks, op: Op) -> u32 {
        assert!(op.moves_data(), "{op} has no target");
        assert!((start + blocks).get() <= self.blocks().get(), "{start} + {blocks} past the end");
        u32::try_from(blocks.get()).expect("a request below 2 TiB")
    }

    /// The target of those of the `wanted` blocks from `start` on that lie in consecutive sectors of
    /// one track. Panics like [`Self::target`].
    #[inline]
    pub fn first_run(&self, start: Lbn, wanted: u32, op: Op) -> Target {
        self.target_of(start, &self.layout.run(start, wanted), op)
    }

    #[inline]
    fn target_of(&self, start: Lbn, run: &Run, op: Op) -> Target {
        Target {
            start,
            blocks: run.blocks,
            op,
            at: Position { cylinder: run.at.cylinder, surface: run.at.surface },
            one_run: true,
            first_run: self.track_run(run),
        }
    }

    #[inline]
    fn track_run(&self, run: &Run) -> TrackRun {
        let zone = &self.layout.zones()[run.zone];
        let track_start = self.layout.track_start_in(run.zone, run.at);
        // Whole nanoseconds from here on, so that all estimates of a request agree exactly.
        let first = self.rotation.edge_ns(zone.sector_angle(track_start, run.at.sector));
        // A whole track begins and ends at the same edge: the forward distance would be zero.
        let span_ns = if run.blocks == zone.blocks_per_track() {
            self.rotation.period_ns()
        } else {
            self.rotation.forward_ns(
                first,
                self.rotation.edge_ns(zone.sector_angle(track_start, run.at.sector + run.blocks)),
            )
        };
        TrackRun {
            track_start,
            zone: run.zone as u32,
            sector: run.at.sector,
            blocks: run.blocks,
            edge_ns: first as u32,
            span_ns: span_ns as u32,
        }
    }

    /// Stage times of serving `target` from `now` on with the head at `from`.
    #[inline]
    pub fn access(&self, now: SimTime, from: Position, target: &Target) -> Access {
        let overhead = self.overhead(target.op);
        Access { overhead, ..self.media_access(now + overhead, from, target) }
    }

    /// Stage times of the media's part alone, without command processing.
    #[inline]
    pub fn media_access(&self, now: SimTime, from: Position, target: &Target) -> Access {
        self.media_access_after(now, self.seek_ns(from, target.at, target.op), target)
    }

    /// Like [`Self::media_access`] for a head of which more is known than its place. The seek, if there
    /// is one, takes `seek_error_ns` longer than its curve says (never below zero): what a simulator
    /// draws within the tolerance.
    #[inline]
    pub fn media_access_from(
        &self,
        departure: &Departure,
        target: &Target,
        seek_error_ns: i64,
    ) -> Access {
        let travel = self.travel(departure, target.at, target.op, seek_error_ns);
        self.media_access_after(departure.begin, travel.ns(), target)
    }

    /// Time to `to`, until `op` may begin there: seek, settling, and the change between reading and
    /// writing. For `seek_error_ns` see [`Self::media_access_from`].
    #[inline]
    pub fn travel(
        &self,
        departure: &Departure,
        to: Position,
        op: Op,
        seek_error_ns: i64,
    ) -> SimDuration {
        let mut seek_ns = self.seek_ns(departure.from, to, op);
        // Without a movement no time could vary.
        if seek_ns > 0 && seek_error_ns != 0 {
            seek_ns = seek_ns.saturating_add_signed(seek_error_ns);
        }
        // A seek to another cylinder hides the change between reading and writing.
        let switches = departure.from.cylinder == to.cylinder && departure.last_op != op;
        let switch = if switches { departure.read_write_switch } else { SimDuration::ZERO };
        SimDuration::from_ns(seek_ns) + switch
    }

    /// Command processing times.
    pub fn overheads(&self) -> ByOp<SimDuration> {
        self.overhead
    }

    /// Drive with other command processing times.
    #[must_use]
    pub fn with_overhead(&self, overhead: ByOp<SimDuration>) -> Self {
        Self { overhead, ..self.clone() }
    }

    /// Drive whose spindle takes `period` for a turn. Its seeks are the same, and share their tables.
    #[must_use]
    pub fn with_rotation_period(&self, period: SimDuration) -> Self {
        Self { rotation: Rotation::new(period), ..self.clone() }
    }

    /// Drive with every movement longer by its margin: for plans that must hold although seeks vary. Copies
    /// no table of seeks.
    #[must_use]
    pub fn with_seek_margins(&self, margins: SeekMargins) -> Self {
        Self { seek: self.seek.with_margins(margins), ..self.clone() }
    }

    /// The rest of an access whose first movement takes `seek_ns` from `now` on.
    #[inline]
    fn media_access_after(&self, now: SimTime, seek_ns: u64, target: &Target) -> Access {
        let arrival = now + SimDuration::from_ns(seek_ns);
        // The usual case stays short: one run on one track.
        if !target.one_run {
            return self.access_many_runs(arrival, seek_ns, target);
        }
        let on_track = self.on_track(arrival, target.op, &target.first_run);
        Access {
            overhead: SimDuration::ZERO,
            seek: SimDuration::from_ns(seek_ns),
            rotate: SimDuration::from_ns(on_track.rotate_ns),
            transfer: SimDuration::from_ns(on_track.transfer_ns),
            end: target.at,
        }
    }

    /// Seek and rotational latency before the first data of `target`.
    #[inline]
    pub fn positioning(&self, now: SimTime, from: Position, target: &Target) -> Positioning {
        let seek_ns = self.seek_ns(from, target.at, target.op);
        let arrival = now + self.overhead(target.op) + SimDuration::from_ns(seek_ns);
        let on_track = if target.one_run {
            self.on_track(arrival, target.op, &target.first_run)
        } else {
            // Runs on the first track decide together where the access begins.
            let (visit, _) = self.next_visit(target.start, target.blocks);
            self.visit_track(arrival, target.op, visit.runs())
        };
        Positioning {
            seek: SimDuration::from_ns(seek_ns),
            rotate: SimDuration::from_ns(on_track.rotate_ns),
        }
    }

    /// Seek time to `target` alone.
    #[inline]
    pub fn seek_to(&self, from: Position, target: &Target) -> SimDuration {
        SimDuration::from_ns(self.seek_ns(from, target.at, target.op))
    }

    #[inline]
    fn seek_ns(&self, from: Position, to: Position, op: Op) -> u64 {
        self.seek.between_ns(op, from.cylinder, to.cylinder, from.surface != to.surface)
    }

    #[inline]
    pub(super) fn is_zero_latency(&self, op: Op) -> bool {
        self.zero_latency.of(op)
    }

    /// Rotation and transfer of one run when the head arrives on its track.
    #[inline(always)]
    fn on_track(&self, arrival: SimTime, op: Op, run: &TrackRun) -> OnTrack {
        let wait_ns = self.wait_ns(arrival, run);
        let transfer_ns = u64::from(run.span_ns);
        if let Some(amid) = self.begin_amid(wait_ns, op, run) {
            // From the next whole sector on to the end, over the gap, and up to that sector.
            let gap_ns = self.rotation.period_ns() - transfer_ns;
            return OnTrack { rotate_ns: amid.wait_ns + gap_ns, transfer_ns };
        }
        OnTrack { rotate_ns: wait_ns, transfer_ns }
    }

    /// From the arrival on its track to the start of a run.
    #[inline]
    pub(super) fn wait_ns(&self, arrival: SimTime, run: &TrackRun) -> u64 {
        self.rotation.forward_ns(self.rotation.phase_ns(arrival), u64::from(run.edge_ns))
    }

    /// Sector at which zero-latency access begins when the head arrives `wait_ns` before the start of a
    /// run; None for that start.
    #[inline]
    pub(super) fn begin_amid(&self, wait_ns: u64, op: Op, run: &TrackRun) -> Option<EntrySector> {
        // How far the start of the run has already passed by.
        let passed_ns = self.rotation.period_ns() - wait_ns;
        // With no wait the head arrives at the start, and the run is read in order.
        if passed_ns < u64::from(run.span_ns) && wait_ns > 0 && self.is_zero_latency(op) {
            self.next_sector(run, passed_ns)
        } else {
            None
        }
    }

    /// The first sector of the run that begins no earlier than `passed_ns` after its start. None
    /// when only the rest of the last sector is left.
    #[cold]
    fn next_sector(&self, run: &TrackRun, passed_ns: u64) -> Option<EntrySector> {
        let zone = &self.layout.zones()[run.zone as usize];
        // Edges are rounded to whole nanoseconds, so the estimate may be one sector early.
        let sectors = self.rotation.turns(passed_ns * u64::from(zone.blocks_per_track()));
        // Transfers begin at whole sectors of several blocks.
        let rest = (sectors as u32..run.blocks)
            .filter(|before| (run.sector + before).is_multiple_of(self.sector_blocks));
        rest.map(|before| {
            let angle = zone.sector_angle(run.track_start, run.sector + before);
            let edge = self.rotation.edge_ns(angle);
            let edge_ns = self.rotation.forward_ns(u64::from(run.edge_ns), edge);
            // Sectors before the arrival get no wait: the search below passes over them.
            EntrySector { before, edge_ns, wait_ns: edge_ns.saturating_sub(passed_ns) }
        })
        .find(|sector| sector.edge_ns >= passed_ns)
    }

    fn access_many_runs(&self, arrival: SimTime, first_seek_ns: u64, target: &Target) -> Access {
        let (mut now, mut head) = (arrival, target.at);
        let (mut lbn, mut left) = (target.start, target.blocks);
        // The head is on the first track already: the first seek of the loop takes no time.
        let (mut seek_ns, mut rotate_ns, mut transfer_ns) = (first_seek_ns, 0, 0);
        while left > 0 {
            let (visit, taken) = self.next_visit(lbn, left);
            // Zero for the first visit, and for a second visit to the same track.
            let seek = self.seek_ns(head, visit.at, target.op);
            now += SimDuration::from_ns(seek);
            let on_track = self.visit_track(now, target.op, visit.runs());
            now += SimDuration::from_ns(on_track.rotate_ns + on_track.transfer_ns);
            seek_ns += seek;
            rotate_ns += on_track.rotate_ns;
            transfer_ns += on_track.transfer_ns;
            head = visit.at;
            lbn = lbn + Blocks::new(u64::from(taken));
            left -= taken;
        }
        Access {
            overhead: SimDuration::ZERO,
            seek: SimDuration::from_ns(seek_ns),
            rotate: SimDuration::from_ns(rotate_ns),
            transfer: SimDuration::from_ns(transfer_ns),
            end: head,
        }
    }

    /// The runs from `lbn` on that lie on one track with ascending sectors, and their blocks.
    pub(super) fn next_visit(&self, lbn: Lbn, left: u32) -> (Visit, u32) {
        let first = self.layout.run(lbn, left);
        let mut visit = Visit::new(&first, self.track_run(&first));
        let mut taken = first.blocks;
        // Sectors must ascend: a remapped block further back would need another turn.
        let mut next_sector = first.at.sector + first.blocks;
        while taken < left && visit.count < RUNS_A_VISIT {
            let run = self.layout.run(lbn + Blocks::new(u64::from(taken)), left - taken);
            let same_track = visit.at
                == Position { cylinder: run.at.cylinder, surface: run.at.surface }
                && run.at.sector >= next_sector;
            if !same_track {
                break;
            }
            next_sector = run.at.sector + run.blocks;
            visit.push(self.track_run(&run));
            taken += run.blocks;
        }
        (visit, taken)
    }

    /// Rotation and transfer of all runs of a visit.
    pub(super) fn visit_track(&self, arrival: SimTime, op: Op, runs: &[TrackRun]) -> OnTrack {
        // One run needs no comparison of orders.
        if let [run] = runs {
            return self.on_track(arrival, op, run);
        }
        // Either order transfers the same sectors; only the waits between them differ.
        let transfer_ns: u64 = runs.iter().map(|run| u64::from(run.span_ns)).sum();
        let phase = self.rotation.phase_ns(arrival);
        let in_order_ns = self.pass_runs_ns(phase, runs);
        let total_ns = if self.is_zero_latency(op) {
            // A drive with zero-latency access takes the order that ends first.
            self.out_of_order_ns(phase, runs).map_or(in_order_ns, |ns| ns.min(in_order_ns))
        } else {
            in_order_ns
        };
        OnTrack { rotate_ns: total_ns - transfer_ns, transfer_ns }
    }

    /// Time from `phase` until the last of the runs, taken in order, has passed.
    fn pass_runs_ns(&self, phase: u64, runs: &[TrackRun]) -> u64 {
        let mut at = phase;
        let mut total = 0;
        for run in runs {
            let edge = u64::from(run.edge_ns);
            total += self.rotation.forward_ns(at, edge) + u64::from(run.span_ns);
            // The end of a run may lie past the index mark: the phase begins again at zero.
            at = self.rotation.phase_ns(SimTime::from_ns(edge + u64::from(run.span_ns)));
        }
        total
    }

    /// Time from an arrival within or before the runs to the first data that an access takes.
    pub(super) fn first_data_ns(&self, arrival: SimTime, op: Op, runs: &[TrackRun]) -> u64 {
        let phase = self.rotation.phase_ns(arrival);
        let first_edge = u64::from(runs[0].edge_ns);
        let wait_ns = self.rotation.forward_ns(phase, first_edge);
        if wait_ns == 0 || !self.is_zero_latency(op) {
            return wait_ns;
        }
        let passed = self.rotation.period_ns() - wait_ns;
        // When all of the runs have passed, the access begins with the first one, a turn later.
        runs.iter()
            .filter_map(|run| {
                let start = self.rotation.forward_ns(first_edge, run.edge_ns.into());
                match passed.checked_sub(start) {
                    // The run begins now or later in the turn.
                    None | Some(0) => Some(start - passed),
                    Some(done) if done < u64::from(run.span_ns) => {
                        self.next_sector(run, done).map(|sector| sector.wait_ns)
                    }
                    Some(_) => None,
                }
            })
            .min()
            .unwrap_or(wait_ns)
    }

    /// Time when the head arrives within the runs and may begin with what passes first: until the last
    /// sector before the point of arrival has passed, a turn later. None when the head does not arrive
    /// within them.
    fn out_of_order_ns(&self, phase: u64, runs: &[TrackRun]) -> Option<u64> {
        let first_edge = u64::from(runs[0].edge_ns);
        let passed = self.rotation.forward_ns(first_edge, phase);
        // From behind: the last run is the likeliest to end after the arrival.
        runs.iter()
            .rev()
            .find(|run| self.start_of(run, first_edge) + u64::from(run.span_ns) > passed)?;
        let mut last_end = None;
        // Runs that begin after the arrival pass in this turn. Only those before it end a turn later.
        for run in runs.iter().filter(|run| self.start_of(run, first_edge) < passed) {
            let start = self.start_of(run, first_edge);
            // Sectors before the next whole one, or the whole run when it has passed.
            let done = passed - start;
            let end = if done >= u64::from(run.span_ns) {
                start + u64::from(run.span_ns)
            } else {
                // The head takes the run from the next whole sector on; the part before that comes last.
                let next = self.next_sector(run, done);
                start + next.map_or(u64::from(run.span_ns), |sector| sector.edge_ns)
            };
            last_end = Some(end);
        }
        // To the end of the turn, and then on to the end of the last missed sector.
        last_end.map(|end| self.rotation.period_ns() - passed + end)
    }

    fn start_of(&self, run: &TrackRun, first_edge: u64) -> u64 {
        self.rotation.forward_ns(first_edge, run.edge_ns.into())
    }

    /// Sustained rate of a zone of the file in bytes a second, given one that it consists of: its data
    /// over the time to read it through, with every head and cylinder switch. Zero for a zone without data.
    pub fn sustained_rate_bytes_per_second(&self, zone: usize) -> u64 {
        let FileZone { first_lbn, blocks, period_blocks, .. } = self.layout.zones()[zone].of_file();
        if blocks == Blocks::ZERO {
            return 0;
        }
        let zone = &self.layout.zones()[zone];
        // Some cylinders, but a whole band at least: the rate is the same throughout.
        let tracks = u64::from(self.layout.surfaces()) * 4;
        let wanted = period_blocks.max(tracks * u64::from(zone.blocks_per_track()));
        let wanted = wanted.min(blocks.get()).min(u32::MAX.into());
        let target = self.target(first_lbn, Blocks::new(wanted), Op::Read);
        let access = self.access(SimTime::ZERO, target.at, &target);
        let first = self.positioning(SimTime::ZERO, target.at, &target);
        let ns = (access.total() - first.total() - access.overhead).ns().max(1);
        u64::try_from(u128::from(wanted * 512) * 1_000_000_000 / u128::from(ns)).expect("a rate")
    }

    /// Mean rate at which sectors pass under a head, in bytes a second, each zone weighed by its
    /// capacity: the full potential bandwidth of the drive (osdi00 section 3).
    pub fn mean_media_rate_bytes_per_second(&self) -> f64 {
        let track_bytes: f64 = self
            .layout
            .zones()
            .iter()
            .map(|zone| zone.blocks().get() as f64 * f64::from(zone.blocks_per_track()) * 512.0)
            .sum();
        let mean_track = track_bytes / self.blocks().get() as f64;
        mean_track / self.rotation.period().as_secs_f64()
    }
}

/// Run that is read or written between two movements.
pub(super) struct Visit {
    at: Position,
    runs: [TrackRun; RUNS_A_VISIT],
    count: usize,
}

impl Visit {
    fn new(run: &Run, track_run: TrackRun) -> Self {
        let at = Position { cylinder: run.at.cylinder, surface: run.at.surface };
        Self { at, runs: [track_run; RUNS_A_VISIT], count: 1 }
    }

    fn push(&mut self, run: TrackRun) {
        self.runs[self.count] = run;
        self.count += 1;
    }

    pub(super) fn runs(&self) -> &[TrackRun] {
        &self.runs[..self.count]
    }
}
