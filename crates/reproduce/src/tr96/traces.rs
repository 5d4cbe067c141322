//! Table 7 and figure 8: cooling under traces. The paper's were never published. A day of a web server, which
//! ships, and a public trace of 14 disks stand in.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use freewheel_model::array::allocation::{Allocator, DiskOrder, NewHeat, Passes};
use freewheel_model::array::cooling::{CoolingSpec, CoolingUnit, MoverSpec};
use freewheel_model::array::heat::{HeadTimeCost, HeatAmount, HeatSpec, History};
use freewheel_model::array::partition::{DiskModel, DiskUse, stripes_of_unit};
use freewheel_model::array::placement::{Extent, ExtentId, FileId, Place, Placement};
use freewheel_model::drive::Drive;
use freewheel_model::sched::PolicySpec;
use freewheel_sim::config::{ConfigError, TraceWorkload, open};
use freewheel_sim::files::{
    Arrivals, Cooling, CoolingRule, CoolingStep, CoolingWork, FileMap, FileOnDisks, FileRequest,
    FilesExperiment, FilesResult, MappedFile, place, simulate, simulate_cooled, unsynchronised,
};
use freewheel_sim::library;
use freewheel_trace::WebLog;
use freewheel_units::{Blocks, Bytes, Lbn, Op, Prng, SimDuration, SimTime};
use rayon::prelude::*;

use super::workload::DISKS;
use crate::public_traces::DISKSIM_ASCII;
use crate::tr03::{line, lines};
use crate::{Context, HOLDS, Outcome, Row, median};

/// A gain above this is no gain but a fault.
const MOST: f64 = 1000.0;

/// A claim whose data are not there.
fn missing(context: &Context<'_>, what: &str, why: String) -> Outcome {
    let row = context.measured(&format!("{what}: it is there"), HOLDS, 0.0).not_run(why);
    Outcome { rows: vec![row], figures: Vec::new() }
}

/// Requests, and the disks on which they run.
struct Setting {
    disks: Vec<Arc<Drive>>,
    requests: Vec<FileRequest>,
    speedup: f64,
    warm_up: f64,
}

impl Setting {
    fn run(
        &self,
        map: &FileMap,
        cooling: Option<Cooling>,
    ) -> Result<(FilesResult, CoolingWork), ConfigError> {
        let experiment = FilesExperiment {
            disks: &self.disks,
            map,
            arrivals: Arrivals::Traced { requests: &self.requests, speedup: self.speedup },
            policy: PolicySpec::Fcfs,
            cache: None,
            warm_up: self.warm_up,
            seed: 1,
        };
        match cooling {
            Some(cooling) => simulate_cooled(&experiment, cooling, &mut |_| {}),
            None => Ok((simulate(&experiment, &mut |_| {})?, CoolingWork::default())),
        }
    }
}

fn mean_ms(result: &FilesResult) -> f64 {
    result.response.mean_ns / 1e6
}

fn hottest(result: &FilesResult) -> f64 {
    result.disks.iter().map(|disk| disk.utilisation).fold(0.0, f64::max)
}

/// Heat in head time on the disks of `drive`.
fn head_time(drive: &Drive, read_share: f64) -> HeatAmount {
    let usage = DiskUse { filled_share: 0.5, read_share, block: Bytes::new(512) };
    HeatAmount::HeadTime(HeadTimeCost::of(&DiskModel::of(drive, &usage), Blocks::new(1)))
}

/// A step every `step_requests`. The paper's k lies between 5 and 50.
fn cooling(amount: HeatAmount, unit: CoolingUnit, threshold: f64, step_requests: u64) -> Cooling {
    let accesses = match unit {
        CoolingUnit::Extents => 25,
        // A fragment is asked for less often and costs 16 MiB to move: a longer history moves fewer.
        CoolingUnit::Fragments => 50,
    };
    Cooling {
        rule: CoolingRule::default(),
        daemon: CoolingSpec { threshold, queue_veto: false, unit, candidates_max: 32 },
        heat: HeatSpec {
            accesses,
            accesses_min: accesses / 5,
            history: History::Accesses,
            extents_max: 1_000_000,
        },
        amount,
        step: CoolingStep::Requests(step_requests),
        near_hot: false,
        waits: false,
        copies_first: false,
        mover: MoverSpec { piece: Blocks::new(1024), rate: None },
    }
}

/// How extents are put on disks.
#[derive(Debug, Clone, Copy)]
enum Placing {
    RoundRobin,
    Random,
    EqualBytes,
    EqualCount,
    ByHeat,
}

/// What others do, and the best that hindsight gives.
const OTHERS: [(&str, Placing); 4] = [
    ("random placement", Placing::Random),
    ("equal bytes", Placing::EqualBytes),
    ("equal count", Placing::EqualCount),
    ("by heat, in hindsight", Placing::ByHeat),
];

impl Placing {
    fn allocator(self, seed: u64) -> Allocator {
        let order = match self {
            Self::RoundRobin => DiskOrder::RoundRobin,
            Self::Random => DiskOrder::Shuffled { seed },
            Self::EqualBytes | Self::EqualCount | Self::ByHeat => DiskOrder::Coolest,
        };
        Allocator::new(order, Passes::ByStatus, NewHeat::AtOnce)
    }

    /// What the coolest disk is judged by.
    fn heat(self, blocks: f64, head_time: f64) -> f64 {
        match self {
            Self::EqualBytes => blocks,
            Self::EqualCount => 1.0,
            _ => head_time,
        }
    }
}

/// The web log, in blocks of 512 bytes: sizes of the files that are asked for, and the requests.
struct Web {
    blocks: Vec<u64>,
    requests: Vec<FileRequest>,
    /// Requests of each file.
    counts: Vec<u64>,
}

impl Web {
    fn read(path: &Path) -> Result<Self, ConfigError> {
        let log = WebLog::open(path, true)?;
        let blocks: Vec<u64> = log.files.iter().map(|file| file.bytes.div_ceil(512)).collect();
        let mut counts = vec![0; blocks.len()];
        let request = |request: &freewheel_trace::WebRequest| {
            counts[request.file as usize] += 1;
            FileRequest {
                arrival: request.arrival,
                op: Op::Read,
                file: request.file,
                first: 0,
                blocks: Blocks::new(request.bytes.div_ceil(512).min(blocks[request.file as usize])),
            }
        };
        let requests = log.requests.iter().map(request).collect();
        Ok(Self { blocks, requests, counts })
    }

    /// Track striping among files that nobody asks for, which fill half of the disks.
    fn place(&self, placing: Placing, disks: &[Arc<Drive>], seed: u64) -> FileMap {
        const TRACK: u64 = 70;
        const COLD_BLOCKS: u64 = 2000;
        let capacities: Vec<Blocks> = disks.iter().map(|disk| disk.blocks()).collect();
        let capacity: u64 = capacities.iter().map(|blocks| blocks.get()).sum();
        let used: u64 = self.blocks.iter().sum();
        let cold = ((capacity / 2).saturating_sub(used) / COLD_BLOCKS) as usize;
        let HeatAmount::HeadTime(cost) = head_time(&disks[0], 1.0) else { unreachable!() };
        let cold_file = FileOnDisks {
            blocks: Blocks::new(COLD_BLOCKS),
            unit: Blocks::new(COLD_BLOCKS),
            width: 1,
            boundary: Blocks::new(TRACK),
            heat: placing.heat(COLD_BLOCKS as f64, 0.0),
        };
        let file = |(&blocks, &count): (&u64, &u64)| {
            let stripes = stripes_of_unit(blocks, TRACK, DISKS);
            let of_run = cost.access_s(Blocks::new(blocks.div_ceil(u64::from(stripes.width))));
            let head_time = count as f64 * of_run * f64::from(stripes.width);
            FileOnDisks {
                blocks: Blocks::new(blocks),
                unit: Blocks::new(TRACK),
                width: stripes.width,
                boundary: Blocks::new(TRACK),
                heat: placing.heat(blocks as f64, head_time),
            }
        };
        let asked = self.blocks.iter().zip(&self.counts).map(file);
        let files: Vec<FileOnDisks> = asked.chain((0..cold).map(|_| cold_file)).collect();
        let mut order: Vec<usize> = (0..files.len()).collect();
        let prng = &mut Prng::new(seed, "tr96 order of the web server's files");
        for at in (1..order.len()).rev() {
            order.swap(at, prng.below(at as u64 + 1) as usize);
        }
        if matches!(placing, Placing::ByHeat) {
            order.sort_by(|&a, &b| files[b].heat.total_cmp(&files[a].heat));
        }
        let allocator = &mut placing.allocator(seed);
        place(&files, order, &capacities, allocator).expect("half of the disks stays free").map
    }
}

const LOG: &str = "nasa-1995-08-01.log.gz";
const STANDING_IN: &str = "a day of NASA's web server, data/weblogs/nasa-1995-08-01.log.gz (The Internet Traffic Archive, https://ita.ee.lbl.gov/html/contrib/NASA-HTTP.html; SHA-256 of the unpacked file 0eec2e04bf86c9375104ef2b212ff99489c9d7c7e42f4c15c34d9468da7708bc)";
/// How much faster than the server the log is played.
const SPEEDUPS: [f64; 6] = [100.0, 400.0, 600.0, 700.0, 800.0, 1000.0];
const SEEDS: u64 = 3;
/// 100 s of the log have about this many requests.
const STEP_REQUESTS: u64 = 60;
/// tr96's load: the highest, where uncooled responses are this many times those of light load.
const HEAVY: f64 = 6.0;

/// Table 7.
pub(crate) fn tab7(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let path = match context.web_log(LOG) {
        Ok(path) => path,
        Err(why) => return Ok(missing(context, LOG, why)),
    };
    let web = Web::read(&path)?;
    let spec = library::spec("tr96")?;
    let disks = unsynchronised(&spec, DISKS).expect("a drive of the library");
    let amounts = [None, Some(HeatAmount::Blocks), Some(head_time(&disks[0], 1.0))];
    let run_cooled = |speedup: f64, placing, seed, cooling: Option<Cooling>| {
        let setting =
            Setting { disks: disks.clone(), requests: web.requests.clone(), speedup, warm_up: 0.1 };
        setting.run(&web.place(placing, &disks, seed), cooling)
    };
    let by_extent = |amount| cooling(amount, CoolingUnit::Extents, DELTA, STEP_REQUESTS);
    let run = |speedup: f64, placing, seed, amount: Option<HeatAmount>| {
        run_cooled(speedup, placing, seed, amount.map(by_extent))
    };
    let cells: Vec<(f64, usize, u64)> = SPEEDUPS
        .iter()
        .flat_map(|&speedup| (0..amounts.len()).map(move |amount| (speedup, amount)))
        .flat_map(|(speedup, amount)| (0..SEEDS).map(move |seed| (speedup, amount, seed)))
        .collect();
    let results: Vec<(FilesResult, CoolingWork)> = cells
        .par_iter()
        .map(|&(speedup, amount, seed)| {
            run(speedup, Placing::RoundRobin, context.seed + seed, amounts[amount])
        })
        .collect::<Result<_, _>>()?;
    let of = |speedup: f64, amount: usize| -> Vec<&(FilesResult, CoolingWork)> {
        let same = |cell: &&(f64, usize, u64)| (cell.0, cell.1) == (speedup, amount);
        let all = cells.iter().zip(&results);
        all.filter(|(cell, _)| same(cell)).map(|(_, result)| result).collect()
    };
    let response =
        |speedup, amount| median(of(speedup, amount).iter().map(|run| mean_ms(&run.0)).collect());
    let light = response(SPEEDUPS[0], 0);
    let heavy = SPEEDUPS.into_iter().find(|&speedup| response(speedup, 0) >= HEAVY * light);
    let mut rows =
        vec![context.holds("Track passes 6 times its light-load response", heavy.is_some())];
    let heavy = heavy.unwrap_or(SPEEDUPS[SPEEDUPS.len() - 1]);
    for (amount, name, least) in [(2, "head-time heat", 2.0), (1, "block heat", 0.0)] {
        let gain = response(heavy, 0) / response(heavy, amount);
        let quantity = format!("{heavy} times as fast: response not cooled over cooled by {name}");
        let note = said(&of(heavy, 0), &of(heavy, amount));
        let row = match least > 0.0 {
            true => context.row_in(&quantity, "", [least, MOST], gain),
            false => context.measured(&quantity, "", gain),
        };
        rows.push(row.noted(note));
        let light_ratio = response(SPEEDUPS[0], amount) / light;
        let quantity =
            format!("{} times as fast: response cooled by {name} over not cooled", SPEEDUPS[0]);
        rows.push(context.row_in(&quantity, "", [0.0, 1.02], light_ratio));
    }
    // The rule that prices each move, with heat in head time.
    let rule = CoolingRule::Variance(SimDuration::from_secs(3600));
    let priced = Cooling { rule, ..by_extent(head_time(&disks[0], 1.0)) };
    let run_priced = |speedup| {
        let seeds: Vec<u64> = (0..SEEDS).collect();
        let all = seeds.par_iter().map(|seed| {
            let seed = context.seed + seed;
            run_cooled(speedup, Placing::RoundRobin, seed, Some(priced))
        });
        all.collect::<Result<Vec<_>, ConfigError>>()
    };
    let (at_heavy, at_light) = (run_priced(heavy)?, run_priced(SPEEDUPS[0])?);
    let mean = |runs: &[(FilesResult, CoolingWork)]| {
        median(runs.iter().map(|run| mean_ms(&run.0)).collect())
    };
    let quantity = format!(
        "{heavy} times as fast: response not cooled over cooled where a move's cost counts"
    );
    let all: Vec<&(FilesResult, CoolingWork)> = at_heavy.iter().collect();
    let gain = response(heavy, 0) / mean(&at_heavy);
    rows.push(context.row_in(&quantity, "", [2.0, MOST], gain).noted(said(&of(heavy, 0), &all)));
    let quantity = format!(
        "{} times as fast: response cooled where a move's cost counts over not cooled",
        SPEEDUPS[0]
    );
    rows.push(context.row_in(&quantity, "", [0.0, 1.02], mean(&at_light) / light));
    rows.extend(others(context, heavy, &|placing| {
        let seeds: Vec<u64> = (0..SEEDS).collect();
        let all = seeds
            .par_iter()
            .map(|seed| Ok(mean_ms(&run(heavy, placing, context.seed + seed, None)?.0)));
        Ok(median(all.collect::<Result<_, ConfigError>>()?))
    })?);
    let series =
        ["not cooled", "block heat", "head-time heat"].iter().enumerate().map(|(amount, name)| {
            line(
                name,
                SPEEDUPS.iter().map(|&speedup| (speedup, response(speedup, amount))).collect(),
            )
        });
    let figure = lines("times as fast as the server", "mean response, ms", series.collect());
    let rows = rows.into_iter().map(|row| row.standing_in(STANDING_IN)).collect();
    Ok(Outcome { rows, figures: vec![figure] })
}

/// Responses under the placements of others, without cooling.
fn others(
    context: &Context<'_>,
    speedup: f64,
    response: &dyn Fn(Placing) -> Result<f64, ConfigError>,
) -> Result<Vec<Row>, ConfigError> {
    let row = |(name, placing): (&str, Placing)| {
        let quantity = format!("{speedup} times as fast: response with {name}");
        Ok(context.measured(&quantity, "ms", response(placing)?))
    };
    OTHERS.into_iter().map(row).collect()
}

/// Responses, hottest disk and moves before and after.
fn said(old: &[&(FilesResult, CoolingWork)], new: &[&(FilesResult, CoolingWork)]) -> String {
    let of = |runs: &[&(FilesResult, CoolingWork)], value: fn(&FilesResult) -> f64| {
        median(runs.iter().map(|run| value(&run.0)).collect())
    };
    let moves = median(new.iter().map(|run| run.1.moves as f64).collect());
    let mib = median(new.iter().map(|run| run.1.blocks.get() as f64 / 2048.0).collect());
    format!(
        "{:.1} to {:.1} ms; hottest disk {:.2} to {:.2} busy; {moves:.0} moves, {mib:.0} MiB",
        of(old, mean_ms),
        of(new, mean_ms),
        of(old, hottest),
        of(new, hottest)
    )
}

const DRIVE: &str = "atlas10k";
/// Blocks of a fragment: 16 MiB.
const FRAGMENT: u64 = 32_768;
/// The last third of the requests comes at peak load.
const PEAK_FROM: f64 = 2.0 / 3.0;
/// How busy the hottest disk is at the peak, uncooled.
const PEAK_BUSY: f64 = 0.95;

/// A trace whose devices are disks, cut into fragments.
struct Devices {
    /// Blocks of each device, in whole fragments.
    blocks: Vec<u64>,
    requests: Vec<FileRequest>,
}

impl Devices {
    fn read(path: &Path) -> Result<Self, ConfigError> {
        let workload = TraceWorkload { file: path.into(), ..TraceWorkload::default() };
        let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
        let (mut blocks, mut requests) = (Vec::new(), Vec::new());
        let mut reader = open(&workload, 1)?;
        reader.read_through(
            |record| {
                let next = numbers.len() as u32;
                let file = *numbers.entry(record.device).or_insert(next);
                if file == next {
                    blocks.push(0);
                }
                let end: &mut u64 = &mut blocks[file as usize];
                *end = (*end).max(record.start.get() + record.blocks.get());
                if matches!(record.op, Op::Read | Op::Write) && record.blocks > Blocks::ZERO {
                    let first = record.start.get();
                    let (arrival, op, blocks) = (record.arrival, record.op, record.blocks);
                    requests.push(FileRequest { arrival, op, file, first, blocks });
                }
            },
            &mut |_| {},
        )?;
        requests.sort_by_key(|request| request.arrival);
        let whole = |end: &u64| end.div_ceil(FRAGMENT) * FRAGMENT;
        Ok(Self { blocks: blocks.iter().map(whole).collect(), requests })
    }

    /// The same requests; from the peak on, times between them are divided by `factor`.
    fn with_peak(&self, factor: f64) -> Vec<FileRequest> {
        let from = (self.requests.len() as f64 * PEAK_FROM) as usize;
        let start = self.requests[from].arrival;
        let mut requests = self.requests.clone();
        for request in &mut requests[from..] {
            let since = (request.arrival - start).ns() as f64 / factor;
            request.arrival = start + SimDuration::from_ns(since as u64);
        }
        requests
    }

    /// The requests of the peak alone, from time 0 on.
    fn peak(&self) -> Vec<FileRequest> {
        let from = (self.requests.len() as f64 * PEAK_FROM) as usize;
        let start = self.requests[from].arrival;
        let moved = |request: &FileRequest| {
            let arrival = SimTime::ZERO + (request.arrival - start);
            FileRequest { arrival, ..*request }
        };
        self.requests[from..].iter().map(moved).collect()
    }

    /// A device is a file, and a fragment an extent of it. Fragments lie where they are in the trace, or
    /// as another placement has them.
    fn place(&self, placing: Option<Placing>, drive: &Drive, seed: u64) -> FileMap {
        let disks = self.blocks.len() as u32;
        let mut files = Vec::new();
        let mut fragments = Vec::new();
        for (file, &blocks) in (0..).zip(&self.blocks) {
            let width = (blocks / FRAGMENT) as u32;
            let first_extent = ExtentId(fragments.len() as u32);
            let (blocks, unit) = (Blocks::new(blocks), Blocks::new(FRAGMENT));
            files.push(MappedFile { blocks, unit, first_extent, width });
            fragments.extend((0..u64::from(width)).map(|at| (file, at * FRAGMENT)));
        }
        let mut placement = Placement::new(disks, drive.blocks());
        let targets = placing.map(|placing| self.targets(placing, &files, drive, seed));
        for (number, &(file, start)) in fragments.iter().enumerate() {
            let blocks = Blocks::new(FRAGMENT);
            let place = match &targets {
                None => {
                    let place = Place { disk: file, start: Lbn::new(start) };
                    placement.reserve_at(place, blocks);
                    place
                }
                Some(targets) => {
                    placement.reserve(targets[number], blocks).expect("disks of the trace's size")
                }
            };
            let id = ExtentId(number as u32);
            placement.insert(id, Extent { file: FileId(file), blocks, place });
        }
        FileMap::new(files, placement, drive.blocks())
    }

    /// A disk for each fragment.
    fn targets(
        &self,
        placing: Placing,
        files: &[MappedFile],
        drive: &Drive,
        seed: u64,
    ) -> Vec<u32> {
        let HeatAmount::HeadTime(cost) = head_time(drive, 0.6) else { unreachable!() };
        let count: u32 = files.iter().map(|file| file.width).sum();
        let mut heats = vec![0.0; count as usize];
        for request in &self.requests {
            let at = request.first / FRAGMENT;
            let extent = files[request.file as usize].first_extent.0 + at as u32;
            heats[extent as usize] += cost.access_s(request.blocks);
        }
        let disks = files.len();
        let mut targets = vec![0; count as usize];
        let mut order: Vec<usize> = (0..count as usize).collect();
        order.sort_by(|&a, &b| heats[b].total_cmp(&heats[a]));
        let prng = &mut Prng::new(seed, "tr96 random places of fragments");
        let mut loads = vec![(0.0f64, 0u64); disks];
        let most = drive.blocks().get() / FRAGMENT;
        for (turn, &fragment) in order.iter().enumerate() {
            let open = |disk: &usize| loads[*disk].1 < most;
            let disk = match placing {
                Placing::ByHeat => {
                    let coolest = |a: &usize, b: &usize| loads[*a].0.total_cmp(&loads[*b].0);
                    (0..disks).filter(open).min_by(coolest).expect("there is room")
                }
                Placing::Random => {
                    let first = prng.below(disks as u64) as usize;
                    (0..disks).map(|at| (first + at) % disks).find(open).expect("there is room")
                }
                // All fragments have one size: equal bytes is equal count.
                _ => turn % disks,
            };
            loads[disk].0 += heats[fragment];
            loads[disk].1 += 1;
            targets[fragment] = disk as u32;
        }
        targets
    }
}

/// The threshold of tables 6 and 7.
const DELTA: f64 = 0.05;
/// With the threshold of 5 %, fragments move to and fro at light load.
const DELTA_OF_FRAGMENTS: f64 = 0.15;

/// Figure 8.
pub(crate) fn fig8(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let trace = DISKSIM_ASCII.open(context)?;
    let devices = Devices::read(trace.path())?;
    let spec = library::spec(DRIVE)?;
    let count = devices.blocks.len() as u32;
    let disks = unsynchronised(&spec, count).expect("a drive of the library");
    let setting =
        |requests, speedup, warm_up| Setting { disks: disks.clone(), requests, speedup, warm_up };
    let as_traced = || devices.place(None, &disks[0], 0);
    let factor = peak_factor(&setting(devices.peak(), 1.0, 0.0), &as_traced)?;
    let requests = devices.with_peak(factor);
    let peak_start = requests[(requests.len() as f64 * PEAK_FROM) as usize].arrival;
    let peak = setting(requests.clone(), 1.0, PEAK_FROM);
    let all = setting(requests, 1.0, 0.0);
    let amount = head_time(&disks[0], 0.6);
    let with_threshold = |delta| Some(cooling(amount, CoolingUnit::Fragments, delta, 100));
    let cooled = || with_threshold(DELTA_OF_FRAGMENTS);
    let old = peak.run(&as_traced(), None)?;
    let new = peak.run(&as_traced(), cooled())?;
    let (old_all, new_all) = (all.run(&as_traced(), None)?, all.run(&as_traced(), cooled())?);
    let light = setting(devices.requests.clone(), 1.0, 0.2);
    let (light_old, light_new) =
        (light.run(&as_traced(), None)?, light.run(&as_traced(), cooled())?);
    let eager = light.run(&as_traced(), with_threshold(DELTA))?;
    let ratio_of_eager = mean_ms(&eager.0) / mean_ms(&light_old.0);
    let busy_at_peak = [hottest_at_peak(&devices, &setting, factor, &as_traced())?, {
        let map = as_traced();
        all.run(&map, cooled())?;
        hottest_at_peak(&devices, &setting, factor, &map)?
    }];
    let during = new.1.ends.iter().filter(|end| **end >= peak_start).count();
    let before = new.1.moves as usize - during;
    let gain = mean_ms(&old.0) / mean_ms(&new.0);
    let mut rows = vec![
        context
            .row_in("peak: response not cooled over cooled", "", [2.0, MOST], gain)
            .noted(format!(
                "{:.1} to {:.1} ms; hottest disk {:.2} to {:.2} busy; {} moves, {:.0} MiB; peak {factor:.1} times the trace's load",
                mean_ms(&old.0),
                mean_ms(&new.0),
                busy_at_peak[0],
                busy_at_peak[1],
                new.1.moves,
                new.1.blocks.get() as f64 / 2048.0
            )),
        context.row_in(
            "moves during the peak over moves before",
            "",
            [0.0, 0.5],
            during as f64 / before.max(1) as f64,
        ),
        context.measured(
            "whole run: response not cooled over cooled",
            "",
            mean_ms(&old_all.0) / mean_ms(&new_all.0),
        ),
        context
            .row_in(
                "light load alone: response cooled over not cooled",
                "",
                [0.0, 1.02],
                mean_ms(&light_new.0) / mean_ms(&light_old.0),
            )
            .noted(said(&[&light_old], &[&light_new])),
        context
            .measured("light load alone, threshold of 5 %: the same", "", ratio_of_eager)
            .noted(said(&[&light_old], &[&eager])),
    ];
    for (name, placing) in OTHERS.into_iter().filter(|other| other.0 != "equal count") {
        let map = devices.place(Some(placing), &disks[0], context.seed);
        let result = peak.run(&map, None)?;
        rows.push(context.measured(
            &format!("peak: response with {name}"),
            "ms",
            mean_ms(&result.0),
        ));
    }
    let declared = |row: Row| match trace.is_generated() {
        true => row.generated(&trace.words),
        false => row.standing_in(&trace.words),
    };
    Ok(Outcome { rows: rows.into_iter().map(declared).collect(), figures: Vec::new() })
}

/// How busy the hottest disk is in the peak alone, with files where `map` has them.
fn hottest_at_peak(
    devices: &Devices,
    setting: &dyn Fn(Vec<FileRequest>, f64, f64) -> Setting,
    factor: f64,
    map: &FileMap,
) -> Result<f64, ConfigError> {
    Ok(hottest(&setting(devices.peak(), factor, 0.0).run(map, None)?.0))
}

/// How much faster than the trace the peak is, so that its hottest disk is as busy as it should be.
fn peak_factor(peak: &Setting, map: &dyn Fn() -> FileMap) -> Result<f64, ConfigError> {
    let busy = |speedup: f64| {
        let setting = Setting {
            disks: peak.disks.clone(),
            requests: peak.requests.clone(),
            speedup,
            warm_up: 0.0,
        };
        Ok::<f64, ConfigError>(hottest(&setting.run(&map(), None)?.0))
    };
    let (mut low, mut high): (f64, f64) = (1.0, 40.0);
    for _ in 0..10 {
        let middle = (low * high).sqrt();
        if busy(middle)? < PEAK_BUSY { low = middle } else { high = middle }
    }
    Ok(low)
}
