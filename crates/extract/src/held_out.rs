//! The worth of a drive file: requests that took no part in making it, as the drive served them and
//! as the file has it.
//!
//! They come in batches, so that the spindle's angle is known at each. Within a batch every request
//! is sent to the modelled drive as long after its own answer to the one before as to the real one,
//! at the same angle: a turn too many is an error of one response time and not of all that follow.

use freewheel_model::drive::spec::{DriveSpec, HeldOut};
use freewheel_model::electronics::spec::{ElectronicsSpec, SectorFormat, WriteCache};
use freewheel_model::sched::CommandMark;
use freewheel_model::stats::demerit;
use freewheel_sim::black_box::{
    BadBlocks, Behaviour, BlackBox, Command, EmulatedDrive, VirtualDrive,
};
use freewheel_units::{Lbn, Op, SimDuration, SimTime};

use super::clock::{Clock, fold};
use super::prober::Prober;
use super::sectors::InSectors;
use super::{ExtractError, readable};

/// Batches, and the requests of one that count.
const BATCHES: usize = 100;
const REQUESTS: usize = 40;
/// Batches from which the electronics are found out.
const FIT_BATCHES: usize = 40;
/// Requests before those that count at most: after them a buffer of fewer segments holds these alone.
const WARM_MAX: usize = 64;
/// Longest read of those.
const FIT_BLOCKS_MAX: u64 = 256;
/// So far from an earlier one they lie at most.
const FIT_NEAR: [u64; 3] = [64, 512, 4096];
/// Number of requests before, near one of which they are.
const FIT_BEFORE: u64 = 6;
/// The host waits this long at most before a request.
const PAUSE_MAX: SimDuration = SimDuration::from_ms(20);
/// Blocks of a longer request: the lengths that file systems send most.
const LENGTHS: [u32; 4] = [8, 16, 64, 256];
/// This many blocks from the last one at most is near.
const NEAR: u64 = 4096;

/// Kinds of requests, as the file lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Single,
    Longer,
    Near,
    Write,
}

const KINDS: [(Kind, &str); 4] = [
    (Kind::Single, "reads of one block anywhere"),
    (Kind::Longer, "reads of 8 to 256 blocks anywhere"),
    (Kind::Near, "reads of 1 to 256 blocks near or behind the last"),
    (Kind::Write, "writes of 1 to 256 blocks that were read a while before"),
];

/// A request, and how the drive served it.
#[derive(Debug, Clone, Copy)]
struct Request {
    kind: Kind,
    op: Op,
    block: u64,
    blocks: u32,
    /// Since the answer to the one before.
    gap: SimDuration,
    /// Angle of the spindle when it was sent.
    angle: f64,
    took: SimDuration,
}

/// Requests one after the other.
#[derive(Debug, Default)]
pub(super) struct Batch {
    requests: Vec<Request>,
    /// This many of the first say where the head is and what is in the buffer, and do not count.
    warm: usize,
}

impl Batch {
    fn counted(&self) -> &[Request] {
        &self.requests[self.warm.min(self.requests.len())..]
    }
}

/// Batches that were sent to a drive of this many blocks.
#[derive(Debug)]
pub(super) struct Requests {
    of_blocks: u64,
    batches: Vec<Batch>,
}

impl Requests {
    fn counted(&self) -> impl Iterator<Item = &Request> {
        self.batches.iter().flat_map(Batch::counted)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// To say what the file is worth; some are writes if there may be some.
    HeldOut { writes: bool },
    /// To find out what the electronics do.
    Fit,
}

/// Sends reads near one another, from which the electronics are found out.
pub(super) fn measure_for_fit(
    prober: &mut Prober<'_>,
    clock: &mut Clock,
) -> Result<Requests, ExtractError> {
    let mut batches = Vec::new();
    prober.begin("requests near others", FIT_BATCHES as u64);
    for index in 0..FIT_BATCHES {
        prober.reached(index as u64);
        clock.keep(prober)?;
        batches.push(batch(prober, clock, Purpose::Fit)?);
    }
    Ok(Requests { of_blocks: prober.blocks(), batches })
}

/// Sends requests of all kinds, writes only if there may be some.
pub(super) fn measure(
    prober: &mut Prober<'_>,
    clock: &mut Clock,
    writes: bool,
) -> Result<Requests, ExtractError> {
    let mut batches = Vec::new();
    prober.begin("held-out requests", BATCHES as u64);
    for index in 0..BATCHES {
        prober.reached(index as u64);
        clock.keep(prober)?;
        batches.push(batch(prober, clock, Purpose::HeldOut { writes })?);
    }
    Ok(Requests { of_blocks: prober.blocks(), batches })
}

/// One batch, shorter where a block cannot be read or a session ends.
fn batch(prober: &mut Prober<'_>, clock: &Clock, purpose: Purpose) -> Result<Batch, ExtractError> {
    let warm = 1 + prober.shadow().reads.min(WARM_MAX);
    let mut batch = Batch { requests: Vec::new(), warm };
    while batch.requests.len() < warm + REQUESTS {
        let pause = prober.below(PAUSE_MAX.ns());
        let before = prober.now();
        prober.sleep(SimDuration::from_ns(pause));
        let (kind, block, blocks) = match purpose {
            Purpose::HeldOut { writes } => choose(prober, &batch.requests, writes),
            Purpose::Fit => choose_near(prober, &batch.requests),
        };
        let op = if kind == Kind::Write { Op::Write } else { Op::Read };
        let Some(done) = readable(prober.ask_for(op, block, blocks))? else { break };
        if !clock.times(&done) {
            break;
        }
        let (gap, angle) = (done.sent.saturating_since(before), clock.angle(done.sent));
        batch.requests.push(Request { kind, op, block, blocks, gap, angle, took: done.took() });
    }
    Ok(batch)
}

fn choose(prober: &mut Prober<'_>, before: &[Request], writes: bool) -> (Kind, u64, u32) {
    let all = prober.blocks();
    let longer = LENGTHS[prober.below(LENGTHS.len() as u64) as usize];
    let (kind, what) = (prober.below(10), prober.below(2));
    let length = if what == 0 { 1 } else { longer };
    let Some(last) = before.last() else { return (Kind::Single, prober.below(all), 1) };
    if writes && kind < 3 {
        // The drive is somewhere else by now, or the block has just passed.
        let read = before[prober.below(before.len() as u64) as usize];
        return (Kind::Write, read.block, read.blocks);
    }
    match kind {
        0..4 => (Kind::Single, prober.below(all), 1),
        4..7 => (Kind::Longer, fits(prober.below(all), longer, all), longer),
        7 => (Kind::Near, fits(last.block + u64::from(last.blocks), length, all), length),
        _ => {
            let away = (last.block + prober.below(2 * NEAR)).saturating_sub(NEAR);
            (Kind::Near, fits(away, length, all), length)
        }
    }
}

fn fits(block: u64, length: u32, all: u64) -> u64 {
    block.min(all.saturating_sub(length.into()))
}

/// A read near one of those before, or anywhere.
fn choose_near(prober: &mut Prober<'_>, before: &[Request]) -> (Kind, u64, u32) {
    let all = prober.blocks();
    let blocks = 1 + prober.below(FIT_BLOCKS_MAX) as u32;
    let back = 1 + prober.below(FIT_BEFORE) as usize;
    let last = before.len().checked_sub(back).map(|at| before[at]);
    let anywhere = prober.below(5) == 0;
    let start = match last.filter(|_| !anywhere) {
        None => prober.below(all),
        Some(last) => {
            let near = FIT_NEAR[prober.below(FIT_NEAR.len() as u64) as usize];
            (last.block + prober.below(2 * near)).saturating_sub(near)
        }
    };
    (Kind::Near, start.min(all.saturating_sub(blocks.into())), blocks)
}

/// By how many nanoseconds the time of each request that counts is off, as a drive file has them; None
/// for one of another drive, or without requests.
pub(super) fn errors_ns(spec: &DriveSpec, requests: &Requests) -> Option<Vec<f64>> {
    let predicted = predicted(spec, requests, SectorFormat::Native512)?;
    let took = requests.counted().map(|request| request.took.ns() as f64);
    let off = took.zip(&predicted).map(|(took, predicted)| (took - predicted).abs()).collect();
    (!predicted.is_empty()).then_some(off)
}

/// Holds them against a drive file, whose sectors they counted as blocks; empty for a file of another drive.
pub(super) fn compare(spec: &DriveSpec, sent: &Requests, sector: SectorFormat) -> Vec<HeldOut> {
    let mechanics = DriveSpec { electronics: ElectronicsSpec::default(), ..spec.clone() };
    let (Some(whole), Some(mechanics)) =
        (predicted(spec, sent, sector), predicted(&mechanics, sent, sector))
    else {
        return Vec::new();
    };
    let requests: Vec<Request> = sent.counted().copied().collect();
    let of = |what: &str, kind: Option<Kind>| {
        let chosen: Vec<usize> = (0..requests.len())
            .filter(|at| kind.is_none_or(|kind| requests[*at].kind == kind))
            .collect();
        let measured = pick(&|at| requests[at].took.ns() as f64, &chosen);
        row(
            &named(what, &sector),
            measured,
            [pick(&|at| whole[at], &chosen), pick(&|at| mechanics[at], &chosen)],
        )
    };
    let kinds = KINDS.iter().map(|&(kind, what)| of(what, Some(kind)));
    std::iter::once(of("all", None)).chain(kinds).flatten().collect()
}

fn named(what: &str, sector: &SectorFormat) -> String {
    match sector {
        SectorFormat::Native512 => what.to_owned(),
        _ => what.replace("block", "sector"),
    }
}

fn pick(times: &dyn Fn(usize) -> f64, chosen: &[usize]) -> Vec<f64> {
    chosen.iter().map(|&at| times(at)).collect()
}

/// None without a request.
fn row(what: &str, mut measured: Vec<f64>, mut predicted: [Vec<f64>; 2]) -> Option<HeldOut> {
    if measured.is_empty() {
        return None;
    }
    measured.sort_by(f64::total_cmp);
    predicted.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    let [whole, mechanics] = &predicted;
    Some(HeldOut {
        requests: what.into(),
        count: measured.len() as u32,
        measured_mean: mean(&measured),
        foretold_mean: mean(whole),
        demerit: duration(demerit(&measured, whole)),
        mechanics_mean: mean(mechanics),
        mechanics_demerit: duration(demerit(&measured, mechanics)),
    })
}

fn mean(times: &[f64]) -> SimDuration {
    duration(times.iter().sum::<f64>() / times.len() as f64)
}

fn duration(ns: f64) -> SimDuration {
    SimDuration::from_ns(ns.round() as u64)
}

/// Response times of all requests that count in nanoseconds, as a drive file has them. None for one
/// that makes no drive, or one with other blocks, which could not serve them all.
fn predicted(spec: &DriveSpec, requests: &Requests, sector: SectorFormat) -> Option<Vec<f64>> {
    // As a host sees to it where writes are timed.
    let behaviour = Behaviour {
        seek_jitter: Some(SimDuration::ZERO),
        write_cache: Some(WriteCache::Off),
        ..Behaviour::default()
    };
    let drive = EmulatedDrive::new(spec, &spec.name, &behaviour, BadBlocks::default(), 0).ok()?;
    let mut drive = VirtualDrive::new(drive);
    let sector = sector.physical_blocks();
    if drive.blocks().get() != requests.of_blocks * u64::from(sector) {
        return None;
    }
    let mut drive = InSectors::new(&mut drive, sector);
    let mut times = Vec::new();
    let mut id = 0;
    for batch in &requests.batches {
        for (at, request) in batch.requests.iter().enumerate() {
            let took = serve(&mut drive, spec.rotation_period, id, request)?;
            id += 1;
            if at >= batch.warm {
                times.push(took);
            }
        }
    }
    Some(times)
}

/// Response time of one request in nanoseconds.
fn serve(drive: &mut dyn BlackBox, period: SimDuration, id: u64, request: &Request) -> Option<f64> {
    // At the right angle, as near to the same gap as that permits.
    let half = SimDuration::from_ns(period.ns() / 2);
    let soonest = drive.now() + request.gap.saturating_sub(half);
    let turned = soonest.ns() as f64 / period.ns() as f64;
    let wait = fold(request.angle - turned) * period.ns() as f64;
    drive.sleep_until(soonest + SimDuration::from_ns(wait.round() as u64));
    let sent = drive.now();
    let Request { op, block, blocks, .. } = *request;
    let (start, mark) = (Lbn::new(block), CommandMark::None);
    drive.submit(Command { id, op, start, blocks, fua: false, mark });
    let answer = drive.next_answer(SimTime::MAX).ok()??;
    Some((answer.at - sent).ns() as f64)
}

#[cfg(test)]
mod tests {
    use freewheel_model::drive::Drive;
    use freewheel_sim::library;
    use freewheel_units::Prng;

    use super::*;

    /// A batch as a drive without any jitter serves it.
    fn served(spec: &DriveSpec, prng: &mut Prng) -> Batch {
        let drive =
            EmulatedDrive::new(spec, "served", &Behaviour::default(), BadBlocks::default(), 0)
                .unwrap();
        let mut drive = VirtualDrive::new(drive);
        let all = drive.blocks().get();
        let request = |id| {
            let gap = SimDuration::from_ns(prng.below(20_000_000));
            drive.sleep_until(drive.now() + gap);
            let sent = drive.now();
            let (block, blocks) = (prng.below(all - 64), 1 + prng.below(64) as u32);
            let (op, start, mark) = (Op::Read, Lbn::new(block), CommandMark::None);
            drive.submit(Command { id, op, start, blocks, fua: false, mark });
            let took = drive.next_answer(SimTime::MAX).unwrap().unwrap().at - sent;
            let angle = fold(sent.ns() as f64 / spec.rotation_period.ns() as f64);
            Request { kind: Kind::Longer, op: Op::Read, block, blocks, gap, angle, took }
        };
        Batch { requests: (0..20).map(request).collect(), warm: 1 }
    }

    fn requests(spec: &DriveSpec, prng: &mut Prng) -> Requests {
        let of_blocks = Drive::build(spec).unwrap().blocks().get();
        Requests { of_blocks, batches: (0..10).map(|_| served(spec, prng)).collect() }
    }

    #[test]
    fn smaller_drive_file_has_no_demerit() {
        let spec = library::spec("atlas10k").unwrap();
        let sent = requests(&spec, &mut Prng::new(1, "batches"));
        let mut smaller = spec.clone();
        let last = smaller.zones.last_mut().unwrap();
        last.last_cylinder -= 1;
        smaller.cylinders -= 1;
        assert_eq!(compare(&smaller, &sent, SectorFormat::Native512), Vec::new());
        assert_eq!(errors_ns(&smaller, &sent), None);
        assert!(errors_ns(&spec, &sent).is_some());
    }

    #[test]
    fn demerit_is_zero_for_right_file() {
        let mut spec = library::spec("atlas10k").unwrap();
        spec.electronics = spec.electronics_as_measured();
        spec.seek.tolerance = SimDuration::ZERO;
        let mut prng = Prng::new(1, "batches");
        let requests = requests(&spec, &mut prng);
        let right = compare(&spec, &requests, SectorFormat::Native512);
        assert_eq!(right.len(), 2, "all, and those of the one kind there is");
        assert_eq!((right[0].count, right[0].requests.as_str()), (190, "all"));
        // Angles are rounded.
        assert!(right[0].demerit <= SimDuration::from_ns(10), "{right:?}");
        assert!(right[0].mechanics_demerit > SimDuration::from_us(100), "it has a slow bus");
        spec.head_switch = spec.head_switch * 8;
        spec.overhead.read = SimDuration::from_ms(1);
        let bare = DriveSpec { electronics: ElectronicsSpec::default(), ..spec };
        let wrong = compare(&bare, &requests, SectorFormat::Native512);
        assert!(wrong[0].demerit > SimDuration::from_us(100), "{wrong:?}");
    }
}
