//! An arm with tasks: gaps as the drive's own mechanics make them, plans carried out by them.

use std::sync::Arc;

use freewheel_freeblock::tasks::{CADENCE, Event, Extent, TaskId, Tasks};
use freewheel_freeblock::{
    Ends, ForegroundEvent, ForegroundObserver, FreeRun, Opportunity, Options, Planner, Rule,
};
use freewheel_model::drive::spec::{
    Advertised, ByOp, CurveSpec, DriveSpec, Mapping, SeekSpec, SpareUnit, Sparing, Turn, ZoneSpec,
};
use freewheel_model::drive::{Drive, Position};
use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

pub const READ: Op = Op::Read;
pub const WRITE: Op = Op::Write;

/// More than any test needs.
const GAPS_MAX: u32 = 100_000;

pub struct Arm {
    pub drive: Arc<Drive>,
    pub tasks: Tasks,
    pub now: SimTime,
    pub head: Position,
    gaps: u32,
}

/// A foreground request that is being served: the gap before it and the plan for that.
pub struct Gap {
    pub opportunity: Opportunity,
    pub runs: Vec<FreeRun>,
    op: Op,
    start: u64,
    blocks: u32,
}

/// A drive of one zone: `cylinders` of two surfaces with tracks of 64 blocks, 10 ms a turn, seeks of
/// 1 ms and more.
pub fn plain_spec(cylinders: u32) -> DriveSpec {
    spec_of(cylinders, 2, 64)
}

pub fn spec_of(cylinders: u32, surfaces: u32, blocks_per_track: u32) -> DriveSpec {
    let skew = |sectors| Turn::from_ratio(sectors, u64::from(blocks_per_track)).unwrap();
    DriveSpec {
        name: "plain".into(),
        model: "plain".into(),
        year: Some(2000),
        actuators: 1,
        surfaces,
        cylinders,
        rotation_period: SimDuration::from_ms(10),
        mapping: Mapping::Cylinder,
        surface_offsets: Vec::new(),
        sparing: Sparing {
            unit: SpareUnit::Zone,
            at_front: false,
            slip_to_zone_end: false,
            slips_turn_tracks: false,
        },
        head_switch: SimDuration::from_us(500),
        seek: SeekSpec {
            read: CurveSpec::Table { cylinders_ms: vec![(1, 1.0), (cylinders, 5.0)] },
            write: None,
            write_settle: SimDuration::from_us(200),
            tolerance: SimDuration::ZERO,
        },
        zero_latency: ByOp { read: false, write: false },
        overhead: ByOp { read: SimDuration::ZERO, write: SimDuration::ZERO },
        zones: vec![ZoneSpec {
            first_cylinder: 0,
            last_cylinder: cylinders - 1,
            blocks_per_track,
            first_block: skew(0),
            reserved_blocks: 0,
            track_skew: skew(8),
            cylinder_skew: skew(8),
            surface_blocks_per_track: Vec::new(),
            holes: Vec::new(),
            band_skews: Vec::new(),
            spares: 0,
            slips: Vec::new(),
            remaps: Vec::new(),
        }],
        electronics: Default::default(),
        measured_on: None,
        zoned: None,
        advertised: Advertised::default(),
        held_out: Vec::new(),
        sources: Default::default(),
    }
}

impl Arm {
    pub fn new(drive: Drive) -> Self {
        Self::with_cadence(drive, CADENCE)
    }

    pub fn with_cadence(drive: Drive, cadence: SimDuration) -> Self {
        // The paper's: its times can be worked out by hand.
        let options = Options { rule: Rule::Greedy, ..Options::default() };
        Self::with_options(drive, options, cadence)
    }

    pub fn with_options(drive: Drive, options: Options, cadence: SimDuration) -> Self {
        let drive = Arc::new(drive);
        let tasks = Tasks::new(&drive, options, cadence);
        Self { drive, tasks, now: SimTime::ZERO, head: Position::default(), gaps: 0 }
    }

    pub fn plain() -> Self {
        Self::new(Drive::build(&plain_spec(40)).unwrap())
    }

    pub fn capacity(&self) -> u64 {
        self.drive.blocks().get()
    }

    /// Whole blocks of `size`.
    pub fn capacity_in(&self, size: u64) -> u64 {
        self.capacity() / size
    }

    /// Lets the tasks plan the gap before a foreground request.
    pub fn plan(&mut self, op: Op, start: u64, blocks: u32) -> Gap {
        self.gaps += 1;
        assert!(self.gaps < GAPS_MAX, "what a test waits for does not happen");
        let first = self.drive.target(Lbn::new(start), Blocks::new(1), op);
        let access = self.drive.media_access(self.now, self.head, &first);
        let opportunity = Opportunity {
            begin: self.now,
            from: self.head,
            last_op: Op::Read,
            read_write_switch: SimDuration::ZERO,
            to: first.at,
            op,
            seek: access.seek,
            seek_error_ns: 0,
            due: self.now + access.seek + access.rotate,
            ends: Ends::default(),
        };
        let mut runs = Vec::new();
        self.tasks.plan(&opportunity, &mut runs);
        Gap { opportunity, runs, op, start, blocks }
    }

    /// Carries out the next run of a gap, `at` being when the last one ended and where.
    pub fn run(&mut self, run: &FreeRun, at: &mut (SimTime, Position)) {
        let target = self.drive.target(run.start, Blocks::new(run.blocks.into()), run.op);
        let access = self.drive.media_access(at.0, at.1, &target);
        *at = (at.0 + access.total(), access.end);
        self.tasks.done(run, at.0);
    }

    /// The foreground request after the last run: it is not late, and passes.
    pub fn finish(&mut self, gap: &Gap, at: (SimTime, Position)) {
        let Gap { opportunity, op, start, blocks, .. } = gap;
        let target = self.drive.target(Lbn::new(*start), Blocks::new((*blocks).into()), *op);
        let arrival = at.0 + self.drive.seek_to(at.1, &target);
        assert!(arrival <= opportunity.due, "{arrival} after {}", opportunity.due);
        let access = self.drive.media_access(opportunity.begin, opportunity.from, &target);
        (self.now, self.head) = (opportunity.begin + access.total(), access.end);
        self.tasks.foreground(ForegroundEvent::Passed {
            op: *op,
            start: Lbn::new(*start),
            blocks: *blocks,
            at: self.now,
        });
    }

    /// A foreground request with the gap before it.
    pub fn serve(&mut self, op: Op, start: u64, blocks: u32) {
        let gap = self.plan(op, start, blocks);
        let mut at = (gap.opportunity.begin, gap.opportunity.from);
        for run in &gap.runs {
            self.run(run, &mut at);
        }
        self.finish(&gap, at);
    }

    pub fn events(&mut self) -> Vec<Event> {
        self.tasks.events().collect()
    }
}

/// First blocks of what was delivered to `task`, block by block of `size`.
pub fn delivered(events: &[Event], task: TaskId, size: u64) -> Vec<u64> {
    let of_task = events.iter().filter_map(|event| match event {
        Event::Delivered { task: of, extent, .. } if *of == task => Some(*extent),
        _ => None,
    });
    of_task.flat_map(|extent| blocks(&extent, size)).collect()
}

pub fn blocks(extent: &Extent, size: u64) -> impl Iterator<Item = u64> + use<> {
    let from = extent.start.get();
    (from..from + extent.blocks.get()).step_by(size as usize)
}

pub fn is_done(events: &[Event], task: TaskId) -> bool {
    events.iter().any(|event| matches!(event, Event::Done { task: of, .. } if *of == task))
}
