//! A drive whose times can be worked out by hand, and commands for it.

use std::sync::Arc;

use freewheel_model::drive::spec::{ByOp, CurveSpec, DriveSpec, Mapping, SeekSpec, Turn, ZoneSpec};
use freewheel_model::drive::{Actuator, Drive, Exact};
use freewheel_model::electronics::spec::{
    AfterOp, BufferSpec, BusSpec, ElectronicsSpec, OverheadSpec, QueueSpec, ReadAhead, WriteCache,
};
use freewheel_model::electronics::{Done, DriveUnit, NextEvent, Served};
use freewheel_model::sched::{CommandMark, PolicySpec, Waiting};
use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

/// One surface, 100 sectors a track, a turn of 10 ms: a sector passes in 0.1 ms. Seeks take 1 ms,
/// and so does the skew.
pub fn drive() -> Drive {
    Drive::build(&drive_spec()).unwrap()
}

/// Block b is in cylinder b / 100 and comes by at b + 10 * (b / 100) tenths of a millisecond in the
/// turn of 100.
pub fn drive_spec() -> DriveSpec {
    let tenth = Turn::from_ratio(10, 100).unwrap();
    let zone = ZoneSpec {
        first_cylinder: 0,
        last_cylinder: 99,
        blocks_per_track: 100,
        first_block: Turn::default(),
        reserved_blocks: 0,
        track_skew: tenth,
        cylinder_skew: tenth,
        surface_blocks_per_track: Vec::new(),
        holes: Vec::new(),
        band_skews: Vec::new(),
        spares: 0,
        slips: Vec::new(),
        remaps: Vec::new(),
    };
    DriveSpec {
        name: "hand".into(),
        model: "hand".into(),
        year: Some(2000),
        actuators: 1,
        surfaces: 1,
        cylinders: 100,
        rotation_period: SimDuration::from_ms(10),
        mapping: Mapping::Cylinder,
        surface_offsets: Vec::new(),
        sparing: Default::default(),
        head_switch: SimDuration::ZERO,
        seek: SeekSpec {
            read: CurveSpec::Table { cylinders_ms: vec![(1, 1.0), (2, 1.0)] },
            write: None,
            write_settle: SimDuration::ZERO,
            tolerance: SimDuration::ZERO,
        },
        zero_latency: ByOp::default(),
        overhead: ByOp::default(),
        zones: vec![zone],
        electronics: ElectronicsSpec::default(),
        measured_on: None,
        zoned: None,
        advertised: Default::default(),
        held_out: Vec::new(),
        sources: Default::default(),
    }
}

pub fn unit_with(spec: &ElectronicsSpec) -> DriveUnit {
    DriveUnit::new(&Arc::new(drive()), spec).unwrap()
}

pub fn us(us: u64) -> SimDuration {
    SimDuration::from_us(us)
}

pub fn at_ms(ms: u64) -> SimTime {
    SimTime::ZERO + SimDuration::from_ms(ms)
}

/// Four segments of 200 blocks, reading on to the end of the track, every write cached; 20 us for
/// a hit, 50 us for a miss, 10 us a block on the bus.
pub fn electronics() -> ElectronicsSpec {
    ElectronicsSpec {
        buffer: Some(BufferSpec {
            segments: 4,
            segment_blocks: 200,
            write_segments: 2,
            read_ahead: ReadAhead::Track,
            write_cache: WriteCache::On,
            almost_hits: true,
            ..BufferSpec::default()
        }),
        overheads: Some(OverheadSpec {
            read_hit: AfterOp::both(us(20)),
            read_miss: AfterOp::both(us(50)),
            write_hit: AfterOp::both(us(30)),
            write_miss: AfterOp::both(us(60)),
            ..OverheadSpec::default()
        }),
        bus: Some(BusSpec { block_time: us(10), ..BusSpec::default() }),
        ..ElectronicsSpec::default()
    }
}

pub fn read(unit: &mut DriveUnit, now: SimTime, start: u64, blocks: u32) -> Served {
    unit.serve(now, Op::Read, Lbn::new(start), blocks)
}

pub fn write(unit: &mut DriveUnit, now: SimTime, start: u64, blocks: u32) -> Served {
    unit.serve(now, Op::Write, Lbn::new(start), blocks)
}

pub fn at(time_us: u64) -> SimTime {
    SimTime::ZERO + us(time_us)
}

/// The electronics with changes to their buffer.
pub fn buffered(change: impl FnOnce(&mut BufferSpec)) -> ElectronicsSpec {
    let mut spec = electronics();
    change(spec.buffer.as_mut().unwrap());
    spec
}

/// A queue alone: no buffer, no overheads, no time on the bus.
pub fn queued(depth: u32, scheduler: PolicySpec) -> ElectronicsSpec {
    ElectronicsSpec { queue: Some(queue(depth, scheduler)), ..ElectronicsSpec::default() }
}

pub fn queue(depth: u32, scheduler: PolicySpec) -> QueueSpec {
    QueueSpec { depth, scheduler, ..QueueSpec::default() }
}

/// Something that the host wants of a drive.
#[derive(Debug, Clone, Copy)]
pub struct Wish {
    pub arrival: SimTime,
    pub op: Op,
    pub start: u64,
    pub blocks: u32,
    pub fua: bool,
    pub mark: CommandMark,
}

pub fn reads(time_us: u64, start: u64, blocks: u32) -> Wish {
    Wish { arrival: at(time_us), op: Op::Read, start, blocks, fua: false, mark: CommandMark::None }
}

pub fn writes(time_us: u64, start: u64, blocks: u32) -> Wish {
    Wish { arrival: at(time_us), op: Op::Write, start, blocks, fua: false, mark: CommandMark::None }
}

pub fn flushes(time_us: u64) -> Wish {
    Wish {
        arrival: at(time_us),
        op: Op::Flush,
        start: 0,
        blocks: 0,
        fua: false,
        mark: CommandMark::None,
    }
}

/// Wish with force unit access.
pub fn forced(wish: Wish) -> Wish {
    Wish { fua: true, ..wish }
}

/// Outcome of a wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    pub submitted: SimTime,
    pub served: Served,
}

/// Lets a drive do all of it, each command submitted when it has arrived and there is room, and holds
/// the drive to what any run must keep to. A flush without work ends as it comes.
pub fn run(unit: &mut DriveUnit, wishes: &[Wish]) -> Vec<Outcome> {
    let mut outcomes: Vec<Option<Outcome>> = vec![None; wishes.len()];
    let mut submitted = Vec::new();
    let mut now = SimTime::ZERO;
    loop {
        let next = wishes.get(submitted.len()).filter(|w| w.op == Op::Flush || unit.has_room());
        let arrival = next.map(|wish| wish.arrival.max(now));
        let event = unit.next_event();
        let Some(time) = arrival.into_iter().chain(event.map(NextEvent::time)).min() else { break };
        assert!(time >= now, "an event lies in the past");
        now = time;
        // Completions first, and a decision when all that comes at this time is known.
        let completes = matches!(event, Some(NextEvent::Completion(end)) if end == now);
        if arrival == Some(now) && !completes {
            let sequence = submitted.len();
            submitted.push(now);
            outcomes[sequence] = submit(unit, now, &wishes[sequence], sequence as u64);
        } else if let Some(done) = unit.advance(now, &mut Exact) {
            assert!(completes && done.served.end == now, "{done:?} at {now:?}");
            let outcome = &mut outcomes[done.sequence as usize];
            assert!(outcome.is_none(), "done twice");
            *outcome = Some(outcome_of(&done, &submitted));
        }
    }
    outcomes.into_iter().map(|outcome| outcome.expect("every command is done")).collect()
}

/// An outcome at once only for a flush without work.
pub fn submit(unit: &mut DriveUnit, now: SimTime, wish: &Wish, sequence: u64) -> Option<Outcome> {
    if wish.op == Op::Flush {
        let served = Served { end: now, ..Served::default() };
        return (!unit.flush(now, sequence)).then_some(Outcome { submitted: now, served });
    }
    submit_to(unit, now, wish, sequence, &mut Exact);
    None
}

/// Submits a read or a write, which goes to the media through this actuator.
pub fn submit_to(
    unit: &mut DriveUnit,
    now: SimTime,
    wish: &Wish,
    sequence: u64,
    actuator: &mut impl Actuator,
) {
    let blocks = Blocks::new(wish.blocks.into());
    let target = unit.drive().target(Lbn::new(wish.start), blocks, wish.op);
    let waiting =
        Waiting { target, arrival: wish.arrival, sequence, fua: wish.fua, mark: wish.mark };
    unit.submit(now, &waiting, actuator);
}

fn outcome_of(done: &Done, submitted: &[SimTime]) -> Outcome {
    Outcome { submitted: submitted[done.sequence as usize], served: done.served }
}

/// Runs wishes on the drive with this electronics.
pub fn run_with(spec: &ElectronicsSpec, wishes: &[Wish]) -> Vec<Outcome> {
    run(&mut unit_with(spec), wishes)
}

/// Times at which the outcomes ended, in microseconds.
pub fn ends_us(outcomes: &[Outcome]) -> Vec<u64> {
    outcomes.iter().map(|outcome| outcome.served.end.ns() / 1000).collect()
}
