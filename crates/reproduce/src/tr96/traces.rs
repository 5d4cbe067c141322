//! Table 7 and figure 8: cooling under traces. The paper's were never published. A day of a web server, which
//! ships, and a public trace of 14 disks stand in.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use freewheel_array::allocation::{Allocator, DiskOrder, NewHeat, Passes};
use freewheel_array::config::{CoolingRule, CoolingStep};
use freewheel_array::cooling::{CoolingSpec, CoolingUnit, MoverSpec};
use freewheel_array::files::{
    Cooling, CoolingWork, FileMap, FileOnDisks, FileRequest, LoggedFiles, MappedFile, place,
    unsynchronised,
};
use freewheel_array::heat::{HeadTimeCost, HeatAmount, HeatSpec, History};
use freewheel_array::partition::{DiskModel, DiskUse, stripes_of_unit};
use freewheel_array::placement::{Extent, ExtentId, FileId, Place, Placement};
use freewheel_model::drive::Drive;
use freewheel_model::sched::PolicySpec;
use freewheel_sim::Completion;
use freewheel_sim::config::{ConfigError, TraceWorkload, open};
use freewheel_sim::files::{Arrivals, FilesExperiment, LoggedUse, simulate, simulate_cooled};
use freewheel_sim::library;
use freewheel_units::{Blocks, Bytes, Lbn, Op, Prng, SimDuration, SimTime};
use rayon::prelude::*;

use super::over_time::{self, Watched};
use super::tables::hottest;
use super::workload::DISKS;
use crate::public_traces::DISKSIM_ASCII;
use crate::tr03::{line, lines};
use crate::{Context, HOLDS, Outcome, Row};

/// A gain above this is no gain but a fault.
const MOST: f64 = 1000.0;

/// A claim whose data are not there.
fn missing(context: &Context<'_>, what: &str, why: String) -> Outcome {
    let row = context.measured(&format!("{what}: it is there"), HOLDS, 0.0).not_run(why);
    Outcome { rows: vec![row], figures: Vec::new() }
}

/// Requests, and the disks on which they run.
struct TraceSetting {
    disks: Vec<Arc<Drive>>,
    requests: Vec<FileRequest>,
    speedup: f64,
    warm_up: f64,
}

impl TraceSetting {
    fn run(&self, map: &FileMap, cooling: Option<Cooling>) -> Result<Watched, ConfigError> {
        let experiment = FilesExperiment {
            disks: &self.disks,
            map,
            arrivals: Arrivals::Traced { requests: &self.requests, speedup: self.speedup },
            policy: PolicySpec::Fcfs,
            cache: None,
            warm_up: self.warm_up,
            seed: 1,
        };
        let mut responses = Vec::new();
        let observer = &mut |done: &Completion| {
            let arrival = (done.arrival - SimTime::ZERO).as_secs_f64();
            responses.push((arrival, done.response().as_ms_f64()));
        };
        let (result, work) = match cooling {
            Some(cooling) => simulate_cooled(&experiment, cooling, observer)?,
            None => (simulate(&experiment, observer)?, CoolingWork::default()),
        };
        Ok(Watched { result, work, responses })
    }
}

impl Watched {
    fn ms(&self) -> f64 {
        self.result.response.mean_ns / 1e6
    }

    fn hottest(&self) -> f64 {
        hottest(&self.result)
    }

    /// Responses, hottest disk and moves, against those of `old`, which was not cooled.
    fn against(&self, old: &Self) -> String {
        format!(
            "{:.1} to {:.1} ms; hottest disk {:.2} to {:.2} busy; {} moves, {:.0} MiB",
            old.ms(),
            self.ms(),
            old.hottest(),
            self.hottest(),
            self.work.moves,
            self.work.blocks.get() as f64 / 2048.0
        )
    }
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
        rule: CoolingRule::TargetStaysCooler,
        daemon: CoolingSpec {
            threshold,
            queue_veto: false,
            unit,
            candidates_max: 32,
            sources_max: 1,
            waits_factor: 1.5,
        },
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
        waits_arrivals: 256,
        copies_first: false,
        moves: 1,
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

/// The web log, in blocks of 512 bytes.
struct Web(LoggedUse);

impl Web {
    fn read(path: &Path) -> Result<Self, ConfigError> {
        Ok(Self(LoggedUse::read(path, Blocks::new(1))?))
    }

    /// Track striping among files that nobody asks for, which fill half of the disks.
    fn place(&self, placing: Placing, disks: &[Arc<Drive>], seed: u64) -> FileMap {
        const TRACK: u64 = 70;
        const COLD_BLOCKS: u64 = 2000;
        let capacities: Vec<Blocks> = disks.iter().map(|disk| disk.blocks()).collect();
        let capacity: u64 = capacities.iter().map(|blocks| blocks.get()).sum();
        let LoggedUse { files: logged, logged: LoggedFiles { sizes, .. }, .. } = &self.0;
        let used: u64 = sizes.iter().map(|blocks| blocks.get()).sum();
        let cold = ((capacity / 2).saturating_sub(used) / COLD_BLOCKS) as usize;
        let HeatAmount::HeadTime(cost) = head_time(&disks[0], 1.0) else { unreachable!() };
        let cold_file = FileOnDisks {
            blocks: Blocks::new(COLD_BLOCKS),
            unit: Blocks::new(COLD_BLOCKS),
            width: 1,
            boundary: Blocks::new(TRACK),
            heat: placing.heat(COLD_BLOCKS as f64, 0.0),
        };
        let asked = sizes.iter().zip(logged).map(|(blocks, file)| {
            let blocks = blocks.get();
            let stripes = stripes_of_unit(blocks, TRACK, DISKS);
            let of_run = cost.access_s(Blocks::new(blocks.div_ceil(u64::from(stripes.width))));
            let head_time = file.requests as f64 * of_run * f64::from(stripes.width);
            FileOnDisks {
                blocks: Blocks::new(blocks),
                unit: Blocks::new(TRACK),
                width: stripes.width,
                boundary: Blocks::new(TRACK),
                heat: placing.heat(blocks as f64, head_time),
            }
        });
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
const SPEEDUPS: [f64; 5] = [100.0, 400.0, HEAVY, 800.0, 1000.0];
/// The first of these at which Track takes more than [`TIMES_LIGHT`] times as long as at light load.
const HEAVY: f64 = 600.0;
/// About as much as table 7 has at its second highest load.
const TIMES_LIGHT: f64 = 6.0;
/// 100 s of the log have about this many requests.
const STEP_REQUESTS: u64 = 60;
/// Time of the log in which a move has to pay where its cost counts.
const PAYBACK_S: f64 = 3600.0;

/// The web log on the disks of table 1.
struct WebArray {
    web: Web,
    disks: Vec<Arc<Drive>>,
    seed: u64,
}

impl WebArray {
    fn run(
        &self,
        speedup: f64,
        placing: Placing,
        cooling: Option<Cooling>,
    ) -> Result<Watched, ConfigError> {
        let requests = self.web.0.logged.requests.clone();
        let setting = TraceSetting { disks: self.disks.clone(), requests, speedup, warm_up: 0.1 };
        setting.run(&self.web.place(placing, &self.disks, self.seed), cooling)
    }

    /// By heat in blocks as the paper has it, by heat in head time, and by that where a move's cost counts.
    fn coolings(&self, speedup: f64) -> [Cooling; 3] {
        let head_time = head_time(&self.disks[0], 1.0);
        let rule = CoolingRule::Variance(SimDuration::from_ms_f64(1e3 * PAYBACK_S / speedup));
        [
            cooling(HeatAmount::Blocks, CoolingUnit::Extents, DELTA, STEP_REQUESTS),
            cooling(head_time, CoolingUnit::Extents, DELTA, STEP_REQUESTS),
            Cooling { rule, ..cooling(head_time, CoolingUnit::Extents, DELTA, STEP_REQUESTS) },
        ]
    }

    /// Not cooled, and cooled in each way.
    fn all(&self, speedup: f64) -> Result<[Watched; 4], ConfigError> {
        let [blocks, head_time, priced] = self.coolings(speedup);
        Ok([
            self.run(speedup, Placing::RoundRobin, None)?,
            self.run(speedup, Placing::RoundRobin, Some(blocks))?,
            self.run(speedup, Placing::RoundRobin, Some(head_time))?,
            self.run(speedup, Placing::RoundRobin, Some(priced))?,
        ])
    }
}

/// Table 7 and figure 7.
pub(crate) fn tab7(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let path = match context.web_log(LOG) {
        Ok(path) => path,
        Err(why) => return Ok(missing(context, LOG, why)),
    };
    let web = Web::read(&path)?;
    let spec = library::spec("tr96")?;
    let disks = unsynchronised(&spec, DISKS).expect("a drive of the library");
    let array = WebArray { web, disks, seed: context.seed };
    let speedups = if context.options.quick { vec![SPEEDUPS[0], HEAVY] } else { SPEEDUPS.to_vec() };
    let runs: Vec<(f64, [Watched; 4])> = speedups
        .par_iter()
        .map(|&speedup| Ok((speedup, array.all(speedup)?)))
        .collect::<Result<_, ConfigError>>()?;
    let at = |speedup| &runs.iter().find(|run| run.0 == speedup).expect("it is one of them").1;
    let (light, heavy) = (at(SPEEDUPS[0]), at(HEAVY));
    let mut rows = web_rows(context, light, heavy);
    for (name, placing) in OTHERS {
        let quantity = format!("{HEAVY} times as fast: response with {name}");
        rows.push(context.measured(&quantity, "ms", array.run(HEAVY, placing, None)?.ms()));
    }
    let series =
        ["not cooled", "block heat", "head-time heat"].iter().enumerate().map(|(cooled, name)| {
            line(name, runs.iter().map(|(speedup, all)| (*speedup, all[cooled].ms())).collect())
        });
    let mut figures =
        vec![lines("times as fast as the server", "mean response, ms", series.collect())];
    figures.extend(over_time::figures([&heavy[0], &heavy[2]]));
    let rows = rows.into_iter().map(|row| row.standing_in(STANDING_IN)).collect();
    Ok(Outcome { rows, figures })
}

/// Rows at light and heavy load: not cooled, cooled by blocks, by head time, and by that with the cost.
fn web_rows(context: &Context<'_>, light: &[Watched; 4], heavy: &[Watched; 4]) -> Vec<Row> {
    let times = heavy[0].ms() / light[0].ms();
    let quantity = format!("{HEAVY} times as fast: response of Track over that at light load");
    let mut rows = vec![context.row_in(&quantity, "", [TIMES_LIGHT, MOST], times)];
    let names = ["block heat", "head-time heat", "head-time heat where a move's cost counts"];
    for (cooled, name) in (1..).zip(names) {
        let quantity = format!("{HEAVY} times as fast: response not cooled over cooled by {name}");
        let gain = heavy[0].ms() / heavy[cooled].ms();
        let row = match cooled {
            1 => context.measured(&quantity, "", gain),
            _ => context.row_in(&quantity, "", [2.0, MOST], gain),
        };
        let row = row.noted(heavy[cooled].against(&heavy[0]));
        rows.push(row.also("the paper's log: 203 to 29 ms at its highest load"));
        let quantity =
            format!("{} times as fast: response cooled by {name} over not cooled", SPEEDUPS[0]);
        let ratio = light[cooled].ms() / light[0].ms();
        rows.push(context.row_in(&quantity, "", [0.0, 1.02], ratio));
    }
    let quantity = format!(
        "{HEAVY} times as fast: response cooled by block heat over cooled by head-time heat"
    );
    rows.push(context.measured(&quantity, "", heavy[1].ms() / heavy[2].ms()));
    for (run, what, paper) in [(0, "", 0.67), (2, ", cooled by head-time heat", 0.39)] {
        let quantity = format!("{HEAVY} times as fast: hottest disk's utilisation{what}");
        rows.push(context.measured(&quantity, "", heavy[run].hottest()).of_paper([paper; 2]));
    }
    rows
}

const DRIVE: &str = "atlas10k";
/// Blocks of a fragment: 16 MiB.
const FRAGMENT: u64 = 32_768;
/// The last third of the requests comes at peak load.
const PEAK_FROM: f64 = 2.0 / 3.0;
/// How busy the hottest disk is at the peak, uncooled.
const PEAK_BUSY: f64 = 0.95;
/// Parts of the trace. Each of several seeds leaves another one out.
const PARTS: usize = 5;

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
        Ok(Self {
            blocks: blocks.iter().map(|end| end.div_ceil(FRAGMENT) * FRAGMENT).collect(),
            requests,
        })
    }

    /// Leaves one of the parts of the trace out, and the time that it took.
    fn leave_out(&mut self, part: usize) {
        let count = self.requests.len();
        let [first, end] = [part, part + 1].map(|part| count * part / PARTS);
        let gap = self.requests[end.min(count - 1)].arrival - self.requests[first].arrival;
        self.requests.drain(first..end);
        for request in &mut self.requests[first..] {
            request.arrival = SimTime::ZERO + (request.arrival - SimTime::ZERO).saturating_sub(gap);
        }
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
        self.requests[from..]
            .iter()
            .map(|request| {
                let arrival = SimTime::ZERO + (request.arrival - start);
                FileRequest { arrival, ..*request }
            })
            .collect()
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
            let disk = match placing {
                Placing::ByHeat => (0..disks)
                    .filter(|disk| loads[*disk].1 < most)
                    .min_by(|a, b| loads[*a].0.total_cmp(&loads[*b].0))
                    .expect("there is room"),
                Placing::Random => {
                    let first = prng.below(disks as u64) as usize;
                    (0..disks)
                        .map(|at| (first + at) % disks)
                        .find(|disk| loads[*disk].1 < most)
                        .expect("there is room")
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

/// What was chosen so that there is something to cool, and that cooling helps.
const CHOSEN: &str =
    "threshold of 15 %, k of 50, and a peak in which the hottest disk is busy for 95 % of the time";

/// The devices' requests on disks of their own, with the peak that keeps the hottest of them as busy as it
/// should be.
struct Bank {
    devices: Devices,
    disks: Vec<Arc<Drive>>,
    /// How much faster than the trace the peak is.
    factor: f64,
}

impl Bank {
    fn new(devices: Devices) -> Result<Self, ConfigError> {
        let spec = library::spec(DRIVE)?;
        let count = devices.blocks.len() as u32;
        let disks = unsynchronised(&spec, count).expect("a drive of the library");
        let mut bank = Self { devices, disks, factor: 1.0 };
        let (mut low, mut high): (f64, f64) = (1.0, 40.0);
        for _ in 0..10 {
            bank.factor = (low * high).sqrt();
            let busy = bank.at_peak(&bank.as_traced())?.hottest();
            if busy < PEAK_BUSY { low = bank.factor } else { high = bank.factor }
        }
        bank.factor = low;
        Ok(bank)
    }

    fn as_traced(&self) -> FileMap {
        self.devices.place(None, &self.disks[0], 0)
    }

    fn setting(&self, requests: Vec<FileRequest>, warm_up: f64) -> TraceSetting {
        TraceSetting { disks: self.disks.clone(), requests, speedup: 1.0, warm_up }
    }

    /// The peak alone, with files where `map` has them.
    fn at_peak(&self, map: &FileMap) -> Result<Watched, ConfigError> {
        let setting = self.setting(self.devices.peak(), 0.0);
        TraceSetting { speedup: self.factor, ..setting }.run(map, None)
    }

    /// Light load, then the peak. Of the responses those count that come after `warm_up` of the requests.
    fn through_peak(
        &self,
        warm_up: f64,
        map: &FileMap,
        cooling: Option<Cooling>,
    ) -> Result<Watched, ConfigError> {
        self.setting(self.devices.with_peak(self.factor), warm_up).run(map, cooling)
    }

    fn cooling(&self, threshold: f64) -> Cooling {
        cooling(head_time(&self.disks[0], 0.6), CoolingUnit::Fragments, threshold, 100)
    }
}

/// Figure 8.
pub(crate) fn fig8(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let trace = DISKSIM_ASCII.open(context)?;
    let mut devices = Devices::read(trace.path())?;
    if context.options.seeds.len() > 1 {
        devices.leave_out(context.sample % PARTS);
    }
    let bank = Bank::new(devices)?;
    let cooled_map = bank.as_traced();
    let old = bank.through_peak(0.0, &bank.as_traced(), None)?;
    let new = bank.through_peak(0.0, &cooled_map, Some(bank.cooling(DELTA_OF_FRAGMENTS)))?;
    let mut rows = peak_rows(context, &bank, &cooled_map)?;
    let whole = old.ms() / new.ms();
    rows.push(context.measured("whole run: response not cooled over cooled", "", whole));
    rows.extend(light_rows(context, &bank)?);
    let rows = rows
        .into_iter()
        .map(|row| {
            if trace.is_generated() {
                row.generated(&trace.words)
            } else {
                row.standing_in(&trace.words)
            }
        })
        .collect();
    Ok(Outcome { rows, figures: over_time::figures([&old, &new]) })
}

/// Rows of the peak; after a cooled run the files lie as `cooled_map` says.
fn peak_rows(
    context: &Context<'_>,
    bank: &Bank,
    cooled_map: &FileMap,
) -> Result<Vec<Row>, ConfigError> {
    let old = bank.through_peak(PEAK_FROM, &bank.as_traced(), None)?;
    let cooling = Some(bank.cooling(DELTA_OF_FRAGMENTS));
    let new = bank.through_peak(PEAK_FROM, &bank.as_traced(), cooling)?;
    let start = new.responses.iter().map(|at| at.0).fold(f64::INFINITY, f64::min);
    let during = new.work.ends.iter().filter(|end| (**end - SimTime::ZERO).as_secs_f64() >= start);
    let during = during.count();
    let busy = [&bank.as_traced(), cooled_map].map(|map| bank.at_peak(map));
    let [busy_old, busy_new] = busy;
    let note = format!(
        "{:.1} to {:.1} ms, the paper's 5.3 times shorter; hottest disk {:.2} to {:.2} busy; {} moves, {:.0} MiB; peak {:.1} times the trace's load",
        old.ms(),
        new.ms(),
        busy_old?.hottest(),
        busy_new?.hottest(),
        new.work.moves,
        new.work.blocks.get() as f64 / 2048.0,
        bank.factor
    );
    let gain = old.ms() / new.ms();
    let before = (new.work.moves as usize - during).max(1);
    let quantity = "peak: response not cooled over cooled";
    let mut rows = vec![
        context.row_in(quantity, "", [2.0, MOST], gain).calibrated_by(CHOSEN).noted(note),
        context.row_in(
            "moves during the peak over moves before",
            "",
            [0.0, 0.5],
            during as f64 / before as f64,
        ),
    ];
    for (name, placing) in OTHERS.into_iter().filter(|other| other.0 != "equal count") {
        let map = bank.devices.place(Some(placing), &bank.disks[0], context.seed);
        let ms = bank.through_peak(PEAK_FROM, &map, None)?.ms();
        let quantity = format!("peak: response cooled over that with {name}, not cooled");
        rows.push(context.measured(&quantity, "", new.ms() / ms).noted(format!("{ms:.1} ms")));
    }
    Ok(rows)
}

/// Rows of the trace at its own load.
fn light_rows(context: &Context<'_>, bank: &Bank) -> Result<[Row; 2], ConfigError> {
    let old = run(None, bank)?;
    let [new, eager] =
        [DELTA_OF_FRAGMENTS, DELTA].map(|delta| run(Some(bank.cooling(delta)), bank));
    let (new, eager) = (new?, eager?);
    let quantity = "light load alone: response cooled over not cooled";
    let limit = context.row_in(quantity, "", [0.0, 1.02], new.ms() / old.ms());
    let quantity = "light load alone, threshold of 5 %: the same";
    let free = context.measured(quantity, "", eager.ms() / old.ms());
    Ok([limit.calibrated_by(CHOSEN).noted(new.against(&old)), free.noted(eager.against(&old))])
}

fn run(cooling: Option<Cooling>, bank: &Bank) -> Result<Watched, ConfigError> {
    bank.setting(bank.devices.requests.clone(), 0.2).run(&bank.as_traced(), cooling)
}
