//! The scheduler in front of an emulated drive with data, in virtual time.

mod clients;
mod erase;
mod flushes;
mod gone;
mod large;
mod refresh;
mod tasks;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::device::DeviceErrorKind;
use crate::{Conservatism, PredictionSpec, PredictiveScheduler, SameTrack};
use freewheel_freeblock::tasks::{Extent, TaskKind};
use freewheel_freeblock::{Rule, TaskOrder};
use freewheel_model::sched::{CommandMark, PolicySpec};
use freewheel_sim::black_box::{self, BadBlocks, Behaviour, EmulatedDrive};
use freewheel_sim::library;
use freewheel_units::{Blocks, Bytes, Prng, SimDuration};

use super::*;
use crate::tasks::{ServedOrder, ServedTaskOutput, TaskParts};

/// The size of a task's blocks.
fn blocks(size: u32) -> Option<Bytes> {
    Some(Blocks::new(size.into()).bytes())
}

/// A task whose data somebody wants.
fn read_by(order: TaskOrder) -> ServedOrder {
    ServedOrder { has_reader: true, ..order.into() }
}

/// A scheduler, its drive and the data on it.
struct TestHost {
    scheduler: HostScheduler,
    drive: EmulatedDrive,
    media: Vec<u8>,
    /// Commands at the drive with their data.
    inside: BTreeMap<u64, DeviceCommand>,
    now: SimTime,
    /// Who asks.
    client: Client,
    answers: Vec<(SimTime, Answer)>,
    outputs: Vec<ServedTaskOutput>,
    /// A command whose reply is delayed, and that reply once the drive has given it.
    slow: Option<u64>,
    late: Option<Result<Vec<u8>, DeviceError>>,
    /// Writes that touch these blocks fail.
    unwritable: std::ops::Range<u64>,
    /// Erasing is refused although it was said to be possible.
    refuses: bool,
    /// Decisions with a search.
    decided: u64,
    /// Steps of a search before it gives up, and the number of searches that did.
    deadline: u64,
    refused: u64,
}

fn us(us: u64) -> SimDuration {
    SimDuration::from_us(us)
}

/// The next command where deciding takes no time.
fn next(scheduler: &mut HostScheduler, now: SimTime) -> Option<DeviceCommand> {
    if let DecisionStart::Searching { .. } = scheduler.begin_decision(now) {
        scheduler.search(u64::MAX);
        scheduler.end_decision();
    }
    scheduler.next_command(now)
}

impl TestHost {
    /// With a scrub of all of it, over and over.
    fn new(bad: &[u64], same_track: SameTrack) -> Self {
        let mut world = Self::without_tasks(bad, same_track);
        let scrub = TaskOrder { repeat: true, ..world.whole(TaskKind::Scrub) };
        world.scheduler.tasks_mut().create(SimTime::ZERO, scrub.into()).unwrap();
        world
    }

    /// All of the drive, in blocks of 4 KiB.
    fn whole(&self, kind: TaskKind) -> TaskOrder {
        TaskOrder::served(kind, Extent::new(0, self.blocks()), 8)
    }

    fn without_tasks(bad: &[u64], same_track: SameTrack) -> Self {
        Self::sized(20, 512, bad, same_track)
    }

    fn sized(cylinders: u32, sector_bytes: u32, bad: &[u64], same_track: SameTrack) -> Self {
        let mut spec = library::spec("atlas10k").unwrap();
        spec.electronics = Default::default();
        (spec.surfaces, spec.cylinders) = (2, cylinders);
        spec.zones.truncate(1);
        let zone = &mut spec.zones[0];
        (zone.last_cylinder, zone.spares) = (cylinders - 1, 0);
        zone.slips.clear();
        let drive = Arc::new(library::build(&spec, "small").unwrap());
        let conservatism = Conservatism::Constant(us(60));
        let options = PredictionSpec { conservatism, same_track, ..Default::default() };
        let abilities = Abilities { sector_bytes, flush: true, ..Abilities::default() };
        let sector = abilities.sector_blocks();
        let scheduler = PredictiveScheduler::new(&drive, us(0), PolicySpec::Sptf, options).unwrap();
        let scheduler = scheduler.with_sectors_of(sector);
        let planner = Options { rule: Rule::Paths, ..Options::default() };
        let tasks = Tasks::new(&scheduler.planners_drive(), planner, CADENCE);
        let bad = BadBlocks::new(bad.iter().copied().map(Lbn::new), us(20_000));
        let behaviour =
            Behaviour { seek_jitter: Some(us(50)), queue_depth: Some(8), ..Behaviour::default() };
        let drive = EmulatedDrive::new(&spec, "small", &behaviour, bad, 1).unwrap();
        let media = vec![0; drive.blocks().bytes().get() as usize];
        let tasks = ServedTasks::new(tasks, sector, 128);
        let scheduler = HostScheduler::new(scheduler, tasks, abilities);
        let (inside, answers, outputs) = (BTreeMap::new(), Vec::new(), Vec::new());
        let (now, client) = (SimTime::ZERO, Client::default());
        let (slow, late, refuses) = (None, None, false);
        Self {
            scheduler,
            drive,
            media,
            inside,
            now,
            client,
            answers,
            outputs,
            slow,
            late,
            unwritable: 0..0,
            refuses,
            decided: 0,
            deadline: u64::MAX,
            refused: 0,
        }
    }

    fn blocks(&self) -> u64 {
        self.drive.blocks().get()
    }

    fn next_command(&mut self) -> Option<DeviceCommand> {
        if let DecisionStart::Searching { .. } = self.scheduler.begin_decision(self.now) {
            self.search();
        }
        self.scheduler.next_command(self.now)
    }

    fn search(&mut self) {
        let (mut steps, mut nodes) = (0, 0);
        while !self.scheduler.search(nodes).is_done() {
            steps += 1;
            nodes = if steps <= self.deadline { 8 } else { 0 };
            if nodes == 0 {
                self.scheduler.give_up();
            }
        }
        self.refused += u64::from(steps > self.deadline);
        self.scheduler.end_decision();
        self.decided += 1;
    }

    /// Sends the drive its commands, and gathers answers.
    fn settle(&mut self) {
        while let Some(command) = self.next_command() {
            let blocks = (command.data.len() as u64 / BLOCK_BYTES) as u32;
            let sector = self.scheduler.abilities.sector_blocks();
            assert!(command.start.get().is_multiple_of(sector.into()), "{command:?}");
            assert!(blocks.is_multiple_of(sector), "{command:?}");
            let DeviceCommand { id, what, start, .. } = command;
            let op = match what {
                DeviceOp::Read => Op::Read,
                DeviceOp::Write { .. } => Op::Write,
                DeviceOp::Flush => Op::Flush,
                DeviceOp::Trim { blocks } | DeviceOp::WriteZeroes { blocks, .. } => {
                    self.erase_now(id, start, blocks);
                    continue;
                }
            };
            let fua = matches!(what, DeviceOp::Write { fua: true });
            self.drive.submit(
                self.now,
                black_box::Command { id, op, start, blocks, fua, mark: CommandMark::None },
            );
            self.inside.insert(id, command);
        }
        let now = self.now;
        self.scheduler.tasks_mut().refill_planner(now);
        self.answers.extend(self.scheduler.answers().map(|answer| (now, answer)));
        self.outputs.extend(self.scheduler.tasks_mut().outputs());
    }

    /// Outputs since the last call.
    fn outputs(&mut self) -> Vec<ServedTaskOutput> {
        std::mem::take(&mut self.outputs)
    }

    /// Lets everything happen until `end`.
    fn run_until(&mut self, end: SimTime) {
        loop {
            self.settle();
            let event = self.drive.next_event().map(|event| event.time());
            let decision = self.scheduler.decides_at();
            let next = event.into_iter().chain(decision).min().filter(|&next| next <= end);
            let Some(next) = next else { break };
            self.now = self.now.max(next);
            if event == Some(next)
                && let Some(reply) = self.drive.advance(next)
            {
                self.reply(reply.id, reply.bad);
            }
        }
        self.now = end;
    }

    /// The drive does it beside its other commands, and at once.
    fn erase_now(&mut self, id: u64, start: Lbn, blocks: u64) {
        let message = "zeroes have to be written".into();
        let result = if self.refuses {
            Err(DeviceError { kind: DeviceErrorKind::NotSupported, message })
        } else {
            Ok(Vec::new())
        };
        if result.is_ok() {
            let from = (start.get() * BLOCK_BYTES) as usize;
            self.media[from..from + (blocks * BLOCK_BYTES) as usize].fill(0);
        }
        self.scheduler.came_back(id, self.now, result);
    }

    fn reply(&mut self, id: u64, bad: Option<Lbn>) {
        let DeviceCommand { what, start, mut data, .. } = self.inside.remove(&id).unwrap();
        let from = (start.get() * BLOCK_BYTES) as usize;
        let place = from..from + data.len();
        let end = start.get() + data.len() as u64 / BLOCK_BYTES;
        let touches = start.get() < self.unwritable.end && self.unwritable.start < end;
        let is_refused = matches!(what, DeviceOp::Write { .. }) && touches;
        let bad = bad.or(is_refused.then_some(start));
        match what {
            _ if bad.is_some() => {}
            DeviceOp::Write { .. } => self.media[place].copy_from_slice(&data),
            DeviceOp::Read => data.copy_from_slice(&self.media[place]),
            _ => {}
        }
        let failed =
            |lbn: Lbn| DeviceError { kind: DeviceErrorKind::Io, message: format!("{lbn} is bad") };
        let result = bad.map_or(Ok(data), |lbn| Err(failed(lbn)));
        if self.slow == Some(id) {
            self.late = Some(result);
            return;
        }
        self.scheduler.came_back(id, self.now, result);
    }

    fn read(&mut self, start: u64, blocks: u64) -> u64 {
        let data = vec![0; (blocks * BLOCK_BYTES) as usize];
        let start = Lbn::new(start);
        self.scheduler.arrived(
            Request::Transfer { op: Op::Read, start, data, fua: false },
            self.client,
            self.now,
        )
    }

    fn write(&mut self, start: u64, data: Vec<u8>, fua: bool) -> u64 {
        let start = Lbn::new(start);
        self.scheduler.arrived(
            Request::Transfer { op: Op::Write, start, data, fua },
            self.client,
            self.now,
        )
    }
}

impl TestHost {
    fn erase(&mut self, how: Erase, start: u64, blocks: u64, fua: bool) -> u64 {
        let start = Lbn::new(start);
        self.scheduler.arrived(Request::Erase { how, start, blocks, fua }, self.client, self.now)
    }
}

/// Random requests that overlap often: what every read should bring.
fn load(world: &mut TestHost, requests: u64, seed: u64) -> BTreeMap<u64, (u64, Vec<u8>)> {
    let mut prng = Prng::new(seed, "requests of a client");
    let sector = u64::from(world.scheduler.abilities.sector_blocks());
    let mut should_be = world.media.clone();
    let mut reads = BTreeMap::new();
    for number in 0..requests {
        let blocks = (1 + prng.below(40)).next_multiple_of(sector);
        let start =
            if prng.chance(0.3) { prng.below(200) } else { prng.below(world.blocks() - blocks) };
        let start = start / sector * sector;
        let place = (start * BLOCK_BYTES) as usize..((start + blocks) * BLOCK_BYTES) as usize;
        if prng.chance(0.1) {
            let how = match prng.below(3) {
                0 => Erase::Trim,
                keep => Erase::Zeroes { keep: keep == 1 },
            };
            if how != Erase::Trim || world.scheduler.abilities.trim && !world.refuses {
                should_be[place].fill(0);
            }
            world.erase(how, start, blocks, prng.chance(0.2));
        } else if prng.chance(0.4) {
            let data: Vec<u8> = (0..place.len()).map(|_| prng.below(256) as u8).collect();
            should_be[place].copy_from_slice(&data);
            world.write(start, data, prng.chance(0.2));
        } else {
            let id = world.read(start, blocks);
            reads.insert(id, (start, should_be[place].to_vec()));
        }
        if number % 97 == 0 {
            world.scheduler.arrived(Request::Flush, world.client, world.now);
        }
        // Several at once now and then.
        if prng.chance(0.6) {
            world.run_until(world.now + us(prng.below(20_000)));
        }
    }
    world.run_until(world.now + us(3_000_000));
    assert!(world.scheduler.is_idle(), "everything comes back");
    assert_eq!(world.media, should_be, "what was written is on the media");
    reads
}

#[test]
fn reads_see_writes_while_gaps_read() {
    for same_track in [SameTrack::Merge, SameTrack::Distinct, SameTrack::Never] {
        let mut world = TestHost::new(&[], same_track);
        let reads = load(&mut world, 3000, 1);
        let mut answers = BTreeMap::new();
        for (_, (id, result)) in &world.answers {
            assert!(answers.insert(*id, result.as_ref().unwrap()).is_none(), "answered once");
        }
        for (id, (start, data)) in &reads {
            assert!(answers[id] == data, "{same_track:?}: read {id} of {start}");
        }
        let account = *world.scheduler.account();
        assert!(account.free_blocks > 1000, "{account:?}");
        assert_eq!(account.merged > 0, same_track != SameTrack::Never, "{account:?}");
    }
}

#[test]
fn planner_decisions_are_searches_of_host() {
    for tasks in [true, false] {
        let (bad, same_track) = (&[], SameTrack::Merge);
        let mut world = if tasks {
            TestHost::new(bad, same_track)
        } else {
            TestHost::without_tasks(bad, same_track)
        };
        load(&mut world, 300, 4);
        let (effort, account) = (world.scheduler.effort(), *world.scheduler.account());
        assert!(effort.decisions > 100, "{effort:?}");
        assert_eq!(world.decided, effort.decisions);
        assert!(effort.exhausted <= effort.decisions, "{effort:?}");
        // A gap without latency needs no decision.
        assert!(account.gaps_used <= effort.decisions && effort.decisions <= account.gaps);
        assert_eq!((effort.nodes > 0, account.gaps_used > 0), (tasks, tasks), "{effort:?}");
    }
}

#[test]
fn cut_short_searches_are_counted() {
    let free = [0, 2, u64::MAX].map(|deadline| {
        let mut world = TestHost { deadline, ..TestHost::new(&[], SameTrack::Merge) };
        let reads = load(&mut world, 300, 4);
        for (_, (id, result)) in &world.answers {
            let is_right = reads.get(id).is_none_or(|read| &read.1 == result.as_ref().unwrap());
            assert!(is_right, "{deadline}: read {id}");
        }
        let effort = world.scheduler.effort();
        assert_eq!(effort.exhausted, world.refused);
        assert_eq!(effort.exhausted > 0, deadline < u64::MAX, "{effort:?}");
        world.scheduler.account().free_blocks
    });
    assert!(0 < free[0] && free[0] < free[2], "{free:?}");
}

#[test]
fn erased_blocks_read_zero_in_order() {
    let can = |trim, write_zeroes, write_zeroes_kept| {
        let flush = true;
        Abilities { flush, trim, write_zeroes, write_zeroes_kept, ..Abilities::default() }
    };
    for (abilities, refuses) in [
        (can(true, true, true), false),
        (can(false, true, true), false),
        (can(true, true, false), false),
        (can(true, true, true), true),
    ] {
        let mut world = TestHost::new(&[], SameTrack::Merge);
        (world.scheduler.abilities, world.refuses) = (abilities, refuses);
        let reads = load(&mut world, 2000, 3);
        let answers: BTreeMap<u64, &Vec<u8>> =
            world.answers.iter().map(|(_, (id, result))| (*id, result.as_ref().unwrap())).collect();
        for (id, (start, data)) in &reads {
            assert!(answers[id] == data, "read {id} of {start}: {abilities:?}");
        }
        let learnt = if refuses { can(false, false, false) } else { abilities };
        assert_eq!(world.scheduler.abilities, learnt);
    }
}

#[test]
fn erase_without_kept_space_makes_holes() {
    let mut world = TestHost::without_tasks(&[], SameTrack::Merge);
    let can =
        Abilities { write_zeroes: true, write_zeroes_kept: true, ..world.scheduler.abilities };
    (world.scheduler.abilities, world.refuses) = (can, true);
    world.media.fill(7);
    world.erase(Erase::Zeroes { keep: true }, 0, 64, false);
    world.run_until(world.now + us(100_000));
    assert_eq!(world.scheduler.abilities, Abilities { write_zeroes_kept: false, ..can });
    assert!(world.media[..64 * 512].iter().all(|&byte| byte == 0));
    world.refuses = false;
    world.erase(Erase::Zeroes { keep: false }, 64, 64, false);
    world.run_until(world.now + us(1));
    assert_eq!(world.answers.len(), 2, "at once: nothing is written");
    assert!(world.media[..128 * 512].iter().all(|&byte| byte == 0));
}

#[test]
fn unsupported_trim_changes_no_block() {
    for says_it_can in [false, true] {
        let mut world = TestHost::without_tasks(&[], SameTrack::Merge);
        world.media.fill(7);
        let can = Abilities { trim: says_it_can, write_zeroes: true, ..world.scheduler.abilities };
        (world.scheduler.abilities, world.refuses) = (can, true);
        let whole = world.blocks();
        for fua in [false, true] {
            let trim = world.erase(Erase::Trim, 0, whole, fua);
            world.run_until(world.now + us(1));
            let (_, (id, result)) = world.answers.last().unwrap();
            assert_eq!((*id, result), (trim, &Ok(Vec::new())));
            assert!(world.inside.is_empty() && world.scheduler.is_idle());
        }
        assert!(world.media.iter().all(|&byte| byte == 7));
    }
}

#[test]
fn large_sector_device_gets_whole_sectors() {
    for same_track in [SameTrack::Merge, SameTrack::Distinct] {
        let mut world = TestHost::sized(20, 4096, &[], same_track);
        let scrub = TaskOrder { repeat: true, ..world.whole(TaskKind::Scrub) };
        world.scheduler.tasks_mut().create(SimTime::ZERO, scrub.into()).unwrap();
        let reads = load(&mut world, 2000, 5);
        let answers: BTreeMap<u64, &Vec<u8>> =
            world.answers.iter().map(|(_, (id, result))| (*id, result.as_ref().unwrap())).collect();
        for (id, (start, data)) in &reads {
            assert!(answers[id] == data, "{same_track:?}: read {id} of {start}");
        }
        let account = *world.scheduler.account();
        assert!(account.free_blocks > 1000, "{account:?}");
    }
}

#[test]
fn large_erase_blocks_overlapping_requests() {
    let mut world = TestHost::without_tasks(&[], SameTrack::Merge);
    world.media.fill(7);
    let blocks = 3 * 2048 + 100;
    let erased = world.erase(Erase::Zeroes { keep: false }, 50, blocks, true);
    let write = world.write(blocks, vec![9; 512], false);
    let mut most = 0;
    while world.answers.len() < 2 {
        world.run_until(world.now + us(1000));
        most = most.max(world.inside.values().map(|command| command.data.len()).max().unwrap_or(0));
    }
    assert_eq!(most, 1 << 20, "other requests come between");
    let order: Vec<u64> = world.answers.iter().map(|(_, (id, _))| *id).collect();
    assert_eq!(order, [erased, write]);
    let bytes = |from: u64, to: u64| &world.media[(from * 512) as usize..(to * 512) as usize];
    assert!(bytes(0, 50).iter().chain(bytes(50 + blocks, world.blocks())).all(|&byte| byte == 7));
    assert!(bytes(50, blocks).iter().all(|&byte| byte == 0));
    assert!(bytes(blocks, blocks + 1).iter().all(|&byte| byte == 9));
    assert_eq!(world.scheduler.written().since(SimTime::ZERO, world.blocks()).len(), 1);
}

/// Runs the commands of a scheduler for a device that takes one command after the other, 100 ms for each that erases
/// and 10 ms for others, until all is answered. When each answer came, and how many pieces were asked to
/// be erased.
fn one_after_the_other(scheduler: &mut HostScheduler) -> (BTreeMap<u64, SimTime>, u32) {
    let (mut queue, mut answered) = (VecDeque::new(), BTreeMap::new());
    let (mut now, mut pieces) = (SimTime::ZERO, 0);
    while !scheduler.is_idle() {
        while let Some(command) = next(scheduler, now) {
            queue.push_back(command);
        }
        if let Some(DeviceCommand { id, what, data, .. }) = queue.pop_front() {
            let erases = matches!(what, DeviceOp::Trim { .. } | DeviceOp::WriteZeroes { .. });
            pieces += u32::from(erases);
            now += us(if erases { 100_000 } else { 10_000 });
            scheduler.came_back(id, now, Ok(data));
        } else if let Some(next) = scheduler.decides_at() {
            now = now.max(next);
        }
        answered.extend(scheduler.answers().map(|(id, _)| (id, now)));
    }
    (answered, pieces)
}

#[test]
fn read_waits_for_one_erase_piece() {
    let mut world = TestHost::sized(400, 512, &[], SameTrack::Merge);
    world.scheduler.abilities.trim = true;
    let large = world.erase(Erase::Trim, 0, 3 * 65_536, false);
    let small = (0..60).map(|number| world.erase(Erase::Trim, 200_000 + number * 64, 64, false));
    let small: Vec<u64> = small.collect();
    let read = world.read(world.blocks() - 8, 8);
    let (answered, pieces) = one_after_the_other(&mut world.scheduler);
    assert_eq!(pieces, 3 + 60);
    assert!(answered[&read] <= SimTime::ZERO + us(200_000), "{:?}", answered[&read]);
    assert!(small.iter().all(|small| answered[small] < answered[&large]));
}

#[test]
fn device_error_reaches_covering_requests_only() {
    let bad: Vec<u64> = (0..60).map(|number| 97 + 211 * number).collect();
    let mut world = TestHost::new(&bad, SameTrack::Merge);
    let mut prng = Prng::new(2, "reads");
    let mut wanted = BTreeMap::new();
    for _ in 0..1500 {
        let blocks = 1 + prng.below(24);
        let start = prng.below(world.blocks() - blocks);
        wanted.insert(world.read(start, blocks), (start, blocks));
        world.run_until(world.now + us(prng.below(12_000)));
    }
    world.run_until(world.now + us(30_000_000));
    let answers: BTreeMap<u64, bool> =
        world.answers.iter().map(|(_, (id, result))| (*id, result.is_ok())).collect();
    assert_eq!(answers.len(), wanted.len());
    for (id, (start, blocks)) in wanted {
        let covers = bad.iter().any(|bad| (start..start + blocks).contains(bad));
        assert_eq!(answers[&id], !covers, "{start} and {blocks} behind it");
    }
    assert!(world.scheduler.account().merged > 100, "free work goes on");
}

#[test]
fn fua_write_is_answered_after_flush() {
    let mut world = TestHost::without_tasks(&[], SameTrack::Merge);
    let id = world.write(8, vec![7; 4096], true);
    world.settle();
    let write = *world.inside.keys().next().unwrap();
    let (start, blocks) = (Lbn::new(8), 8);
    assert_eq!(world.inside[&write].start, start);
    world.inside.remove(&write);
    world.scheduler.came_back(write, SimTime::from_ns(9_000_000), Ok(vec![7; blocks * 512]));
    assert_eq!(world.scheduler.answers().count(), 0, "not before the flush");
    let flush = next(&mut world.scheduler, SimTime::from_ns(9_000_000)).unwrap();
    assert_eq!(flush.what, DeviceOp::Flush);
    world.scheduler.came_back(flush.id, SimTime::from_ns(9_500_000), Ok(Vec::new()));
    let answers: Vec<Answer> = world.scheduler.answers().collect();
    assert_eq!((answers.len(), answers[0].0), (1, id));
}
