//! A `files` workload made ready: the disks, the files with their extents, and how clients use them.

use std::sync::Arc;

use crate::allocation::{Allocator, DiskOrder, NewHeat, Passes};
use crate::cooling::{CoolingSpec, MoverSpec};
use crate::heat::{HeadTimeCost, HeatAmount, HeatSpec, History};
use crate::partition::{
    ArrayModel, DiskModel, DiskUse, FileProfile, ForkJoin, Load, LoadLimit, Normalised,
    RepartitionSpec, RepartitionTrigger, Repartitioner, Rules, ServiceEstimate, Starts,
    effective_parallelism, stripes, stripes_of_unit,
};
use crate::placement::Extent;
use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::stats::Distribution;
use freewheel_units::{BLOCK_BYTES, Blocks, Bytes, Prng, SimTime};

use super::clients::Clients;
use super::cooled::{Choice, CooledRequests, Cooling, CoolingWork};
use super::gap_moves::SharedMover;
use super::map::FileMap;
use super::new_files::{NewFile, NewFiles};
use super::place::{FileOnDisks, Files, place};
use super::requests::{FileLoad, FileRequests};
use super::restriping::{RestripeSpec, Restriper};
use super::result::{
    ClassResult, ClassStripes, CoolingResult, DriftResult, FilesRun, NewFilesResult,
    RestripingResult,
};
use super::traced::FileRequest;
use crate::config::{
    CoolingConfig, FileClass, FileOrder, FilePlacement, FileSizes, FileStripes, FilesWorkload,
    HeatConfig, HotFiles, NewHeatConfig, RestripingConfig, RestripingTrigger,
};

/// The model's choice of stripes: as in `freewheel plan stripe`.
const RULES: Rules = Rules {
    fork_join: ForkJoin::SharedWaits,
    service: ServiceEstimate::JointMaximum,
    normalised: Normalised::Exact,
};

/// Disks, files and their use.
#[derive(Debug)]
pub struct FilesSetup {
    /// One for each kind of drive.
    specs: Vec<DriveSpec>,
    disks: Vec<Disk>,
    files: Vec<FileOnDisks>,
    /// In which order they are placed.
    order: Vec<usize>,
    placement: FilePlacement,
    file_order: FileOrder,
    /// True if no file is to be spread.
    is_whole: bool,
    seed: u64,
    /// Use of each file by clients; files that are created are the last ones.
    loads: Vec<FileLoad>,
    /// Files that are created during the run.
    created: Vec<NewFile>,
    new_heat: NewHeatConfig,
    /// The requests of a log; empty for classes.
    pub traced: Vec<FileRequest>,
    /// The class of each file; created ones are the last.
    pub class_of: Vec<u32>,
    /// Names of the classes.
    pub classes: Vec<String>,
    /// Head time of an access on a disk of the first kind.
    head_time: HeadTimeCost,
    /// The disks as the model of tr96 sees them.
    array: ArrayModel,
    sector: Blocks,
}

/// A disk that files lie on.
#[derive(Debug, Clone)]
pub struct Disk {
    /// Drive of the disk; each of its actuators is a disk.
    pub drive: Arc<Drive>,
    /// Number of its kind: index of its drive file.
    pub kind: usize,
}

/// Files that a log names, in whole sectors, and all requests to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedFiles {
    /// Size of each file.
    pub sizes: Vec<Blocks>,
    /// Requests by arrival.
    pub requests: Vec<FileRequest>,
}

/// Files and their use, before they are cut and placed.
#[derive(Default)]
struct FileClients {
    loads: Vec<FileLoad>,
    class_of: Vec<u32>,
    created: Vec<NewFile>,
    classes: Vec<String>,
    traced: Vec<FileRequest>,
}

impl FilesSetup {
    /// `disks` of the kinds `specs`, and the files of the workload's classes, or `logged` ones. Sizes are
    /// multiples of `sector`. Err for files that the disks cannot serve.
    pub fn new(
        workload: &FilesWorkload,
        (specs, disks): (Vec<DriveSpec>, Vec<Disk>),
        sector: Blocks,
        logged: Option<LoggedFiles>,
        seed: u64,
    ) -> Result<Self, String> {
        let clients = match logged {
            Some(logged) => FileClients::of_log(logged, workload),
            None => FileClients::of_classes(workload, sector, seed),
        };
        let first = &clients.loads[..clients.loads.len() - clients.created.len()];
        let model = ArrayModel { disk: model(&disks, first), disks: disks.len() as u32 };
        let head_time = HeadTimeCost::of(&model.disk, Blocks::new(1));
        let mut files = cut(workload, &model, first, &clients.loads, sector, &head_time)?;
        let order = order(workload.placement, &files[..first.len()], seed);
        let new_heat = workload.new_heat.unwrap_or_default();
        if workload.placement == FilePlacement::Heat && new_heat == NewHeatConfig::Class {
            clients.expect_means(&mut files);
        }
        let FileClients { loads, class_of, created, classes, traced } = clients;
        let placement = workload.placement;
        Ok(Self {
            created,
            new_heat,
            specs,
            disks,
            files,
            order,
            placement,
            file_order: workload.order,
            is_whole: workload.stripes == FileStripes::Whole,
            seed,
            loads,
            traced,
            class_of,
            classes,
            head_time,
            array: model,
            sector,
        })
    }

    /// Number of disks.
    pub fn disks(&self) -> u32 {
        self.disks.len() as u32
    }

    /// A disk's drive.
    pub fn drive(&self, disk: u32) -> &Arc<Drive> {
        &self.disks[disk as usize].drive
    }

    /// All disks' drives.
    pub fn drives(&self) -> Vec<Arc<Drive>> {
        self.disks.iter().map(|disk| Arc::clone(&disk.drive)).collect()
    }

    /// A disk's drive file.
    pub fn spec(&self, disk: u32) -> &DriveSpec {
        &self.specs[self.disks[disk as usize].kind]
    }

    /// Uses of the files that there are at the beginning.
    fn first_loads(&self) -> &[FileLoad] {
        &self.loads[..self.loads.len() - self.created.len()]
    }

    /// The class of each file that there is at the beginning.
    fn first_classes(&self) -> &[u32] {
        &self.class_of[..self.first_loads().len()]
    }

    /// Uses of the files that are created.
    fn created_loads(&self) -> &[FileLoad] {
        &self.loads[self.first_loads().len()..]
    }

    /// The files that are created, where there are some.
    fn new_files<'a>(&'a self, map: &'a FileMap) -> Option<NewFiles<'a>> {
        let at_once = self.new_heat != NewHeatConfig::AfterAccesses;
        (!self.created.is_empty()).then(|| {
            let allocator = self.allocator(Passes::FreeOnly);
            NewFiles::new(map, &self.files, &self.created, allocator, at_once)
        })
    }

    /// Files of each class at the beginning, and their bytes.
    fn class_sizes(&self) -> Vec<(u64, Bytes)> {
        let mut sizes = vec![(0, Blocks::ZERO); self.classes.len()];
        for (file, &class) in self.files.iter().zip(self.first_classes()) {
            let (count, blocks) = &mut sizes[class as usize];
            *count += 1;
            *blocks += file.blocks;
        }
        sizes.into_iter().map(|(count, blocks)| (count, blocks.bytes())).collect()
    }

    /// Stripes of the files of each class; None where every file is whole on one disk by its key.
    fn class_stripes(&self) -> Vec<Option<ClassStripes>> {
        let mut stripes = vec![None; self.classes.len()];
        if self.is_whole {
            return stripes;
        }
        for (file, &class) in self.files.iter().zip(&self.class_of) {
            let (unit, width) = (file.unit.bytes(), file.width);
            let own =
                ClassStripes { unit_min: unit, unit_max: unit, width_min: width, width_max: width };
            let known: &mut Option<ClassStripes> = &mut stripes[class as usize];
            *known = Some(known.map_or(own, |known| known.and(own)));
        }
        stripes
    }

    fn allocator(&self, passes: Passes) -> Allocator {
        let order = match self.placement {
            FilePlacement::Heat | FilePlacement::EqualBytes => DiskOrder::Coolest,
            FilePlacement::RoundRobin => DiskOrder::RoundRobin,
            FilePlacement::Random => DiskOrder::Shuffled { seed: self.seed },
        };
        Allocator::new(order, passes, NewHeat::AtOnce)
    }

    /// Places the files that there are at the beginning on empty disks.
    pub fn place(&self) -> Result<Files, String> {
        let allocator = &mut self.allocator(Passes::ByStatus);
        let capacities: Vec<Blocks> = self.disks.iter().map(|disk| disk.drive.blocks()).collect();
        let placed = place(&self.files, self.order.iter().copied(), &capacities, allocator);
        let placed = placed.map_err(|error| {
            let class = &self.classes[self.class_of[error.file] as usize];
            format!(
                "no disk has {} free for a file of class `{class}`: give more or larger drives, or fewer files",
                error.blocks.bytes().human_decimal()
            )
        })?;
        if self.file_order == FileOrder::HottestOutermost {
            let mut placement = placed.map.placement().borrow_mut();
            (0..self.disks()).for_each(|disk| {
                placement.lay_out(disk, |extent: &Extent| {
                    let FileLoad { rate, blocks, .. } = self.loads[extent.file.0 as usize];
                    rate * extent.blocks.get() as f64 / blocks.get() as f64
                })
            });
        }
        Ok(placed)
    }

    /// The checks of the load that say which files get other stripes.
    pub fn restriper(&self, config: &RestripingConfig) -> Restriper {
        let RestripingConfig { every, files, least_change, trigger, .. } = *config;
        let check = RepartitionSpec {
            least_change_s: least_change.as_secs_f64(),
            files_max: files as usize,
            trigger: match trigger {
                RestripingTrigger::Worsened => RepartitionTrigger::Worsened,
                RestripingTrigger::Gain => RepartitionTrigger::GainUnderNewLoad,
            },
        };
        Restriper::new(RestripeSpec {
            every,
            check: Repartitioner::new(check),
            array: self.array.clone(),
            rules: RULES,
            sector: self.sector,
            allocator: self.allocator(Passes::FreeOnly),
        })
    }

    /// Poisson arrivals, with drift if there is some.
    pub fn poisson<'a>(
        &'a self,
        workload: &'a FilesWorkload,
        map: &'a FileMap,
    ) -> FileRequests<'a> {
        let align = Blocks::new(workload.align.get() / BLOCK_BYTES);
        let all = FileRequests::new(map, self.first_loads(), workload.requests, self.seed);
        let all = all.aligned(align).changing(&workload.rates);
        let all = match &workload.drift {
            Some(drift) => all.drifting(drift, self.first_classes(), self.seed),
            None => all,
        };
        match self.new_files(map) {
            Some(new_files) => all.creating(new_files, self.created_loads()),
            None => all,
        }
    }

    /// Clients' requests with the daemon's moves among them, or in gaps.
    pub fn cooled<'a>(
        &self,
        clients: Clients<'a>,
        map: &'a FileMap,
        config: &CoolingConfig,
        in_gaps: Option<SharedMover>,
    ) -> CooledRequests<'a> {
        let cooling = self.cooling(config);
        let rate: f64 = self.first_loads().iter().map(|load| load.rate).sum();
        let reads: f64 = self.first_loads().iter().map(|load| load.rate * load.reads).sum();
        match in_gaps {
            None => {
                let choice = Choice::daemon(cooling, &self.drives(), map, reads / rate);
                CooledRequests::new(clients, map, choice, cooling.mover)
            }
            Some(mover) => {
                // A copy in gaps costs clients no time, so the rule needs no loads to weigh it.
                let choice = Choice::Daemon(Box::new(cooling), None);
                CooledRequests::new(clients, map, choice, cooling.mover).in_gaps(mover)
            }
        }
    }

    /// Results of a run, with the responses of each class.
    pub fn result(
        &self,
        map: &FileMap,
        by_class: &[Distribution],
        clients: &Clients<'_>,
        work: Option<CoolingWork>,
        is_restriped: bool,
    ) -> FilesRun {
        let (sizes, stripes) = (self.class_sizes(), self.class_stripes());
        let placement = map.placement().borrow();
        let filled = |disk: u32| {
            let capacity = self.drive(disk).blocks().get() as f64;
            1.0 - placement.space(disk).free().get() as f64 / capacity
        };
        FilesRun {
            classes: (0..self.classes.len())
                .map(|number| ClassResult {
                    name: self.classes[number].clone(),
                    files: sizes[number].0,
                    bytes: sizes[number].1,
                    stripes: stripes[number],
                    response: by_class[number].summary(),
                })
                .collect(),
            drives: (0..self.disks()).map(|disk| self.spec(disk).name.clone()).collect(),
            filled: (0..self.disks()).map(filled).collect(),
            drift: clients.drifted().map(DriftResult::of),
            new_files: clients.created().map(NewFilesResult::of),
            restriping: work.as_ref().filter(|_| is_restriped).map(RestripingResult::of),
            cooling: work.filter(|_| !is_restriped).map(CoolingResult::of),
        }
    }

    /// Settings of the cooling of disks.
    fn cooling(&self, config: &CoolingConfig) -> Cooling {
        let CoolingConfig { threshold, queue_veto, accesses, piece, rate, .. } = *config;
        Cooling {
            daemon: CoolingSpec {
                threshold,
                queue_veto,
                unit: config.unit,
                candidates_max: config.candidates,
                sources_max: config.moves,
                waits_factor: config.waits_factor,
            },
            rule: config.rule,
            heat: HeatSpec {
                accesses,
                accesses_min: (accesses / 5).max(2),
                history: History::Accesses,
                extents_max: EXTENTS_TRACKED,
            },
            amount: match config.heat {
                HeatConfig::Blocks => HeatAmount::Blocks,
                HeatConfig::HeadTime => HeatAmount::HeadTime(self.head_time),
            },
            step: config.every,
            near_hot: config.near_hot,
            waits: config.waits,
            waits_arrivals: config.waits_arrivals,
            copies_first: config.copies_first,
            moves: config.moves,
            mover: mover(piece, rate),
        }
    }
}

/// Extents whose heat is tracked at most.
const EXTENTS_TRACKED: usize = 1_000_000;

/// Settings of copies, from bytes.
pub fn mover(piece: Bytes, rate: Option<Bytes>) -> MoverSpec {
    MoverSpec { piece: in_blocks(piece), rate: rate.map(in_blocks) }
}

fn in_blocks(bytes: Bytes) -> Blocks {
    Blocks::new((bytes.get() / BLOCK_BYTES).max(1))
}

/// The first disk, as far as the files fill it and their requests read.
fn model(disks: &[Disk], loads: &[FileLoad]) -> DiskModel {
    let capacity: u64 = disks.iter().map(|disk| disk.drive.blocks().get()).sum();
    let used: u64 = loads.iter().map(|load| load.blocks.get()).sum();
    let filled_share = (used as f64 / capacity as f64).clamp(0.001, 1.0);
    let rate: f64 = loads.iter().map(|load| load.rate).sum();
    let reads: f64 = loads.iter().map(|load| load.rate * load.reads).sum();
    let read_share = (reads / rate).clamp(0.0, 1.0);
    DiskModel::of(
        &disks[0].drive,
        &DiskUse { filled_share, read_share, block: Bytes::new(BLOCK_BYTES) },
    )
}

impl FileClients {
    fn of_classes(workload: &FilesWorkload, sector: Blocks, seed: u64) -> Self {
        let mut clients = Self::default();
        let shares: f64 = workload.classes.iter().map(|class| class.share).sum();
        let rate = workload.rate.unwrap_or_default();
        for (number, class) in (0..).zip(&workload.classes) {
            clients.add(number, class, rate * class.share / shares, sector, seed);
        }
        clients.create(workload, sector, seed);
        clients
    }

    /// Files that are created until the last request: each class's are a Poisson process.
    fn create(&mut self, workload: &FilesWorkload, sector: Blocks, seed: u64) {
        let new: f64 = workload.classes.iter().map(|class| class.new_files).sum();
        if new == 0.0 {
            return;
        }
        let later = workload.rates.iter().map(|later| later.rate);
        let rate = later.fold(workload.rate.unwrap_or_default(), f64::min);
        let (requests, rate) = (workload.requests as f64, rate + new);
        // At the lowest rate their sum is a Poisson process, too: ten deviations above its mean no request is left.
        let end_s = (requests + 10.0 * requests.sqrt() + 10.0) / rate;
        let mut created = Vec::new();
        let mut first = 0;
        for (number, class) in (0..).zip(&workload.classes) {
            let prng = &mut Prng::new(seed, &format!("new files of class {number}"));
            let mut at_s = 0.0;
            if class.new_files > 0.0 {
                loop {
                    at_s += prng.exponential(1.0 / class.new_files);
                    if at_s > end_s {
                        break;
                    }
                    let blocks = whole_sectors(size_of(class, prng), sector);
                    let slot = first + prng.below(u64::from(class.files)) as u32;
                    let at = SimTime::from_ns((at_s * 1e9) as u64);
                    created.push((NewFile { at, slot }, number, blocks));
                }
            }
            first += class.files;
        }
        created.sort_by_key(|(new, number, _)| (new.at, *number));
        for (new, number, blocks) in created {
            let FileLoad { rate, reads, .. } = self.loads[new.slot as usize];
            let request = request_of(&workload.classes[number as usize], blocks, sector);
            self.loads.push(FileLoad { blocks, request, rate, reads });
            self.class_of.push(number);
            self.created.push(new);
        }
    }

    /// Created files count with the mean heat of their class's first ones.
    fn expect_means(&self, files: &mut [FileOnDisks]) {
        let first = files.len() - self.created.len();
        let mut sums = vec![(0.0, 0.0); self.classes.len()];
        for (file, &class) in files[..first].iter().zip(&self.class_of) {
            let (heat, count) = &mut sums[class as usize];
            *heat += file.heat;
            *count += 1.0;
        }
        for (file, &class) in files[first..].iter_mut().zip(&self.class_of[first..]) {
            let (heat, count) = sums[class as usize];
            file.heat = heat / count;
        }
    }

    fn add(&mut self, number: u32, class: &FileClass, rate: f64, sector: Blocks, seed: u64) {
        let name = class.name.clone().unwrap_or_else(|| (number + 1).to_string());
        let mut sizes = Prng::new(seed, &format!("file sizes of class {number}"));
        let shares = shares(class, &mut Prng::new(seed, &format!("ranks of class {number}")));
        for share in shares {
            let blocks = whole_sectors(size_of(class, &mut sizes), sector);
            let request = request_of(class, blocks, sector);
            self.loads.push(FileLoad { blocks, request, rate: rate * share, reads: class.reads });
            self.class_of.push(number);
        }
        self.classes.push(name);
    }

    /// The first requests of a log, at the workload's speed.
    fn of_log(logged: LoggedFiles, workload: &FilesWorkload) -> Self {
        let LoggedFiles { sizes, requests: mut traced } = logged;
        let speedup = workload.arrival_speedup;
        traced.truncate(usize::try_from(workload.requests).unwrap_or(usize::MAX));
        let span_s = traced.last().map_or(0.0, |last| last.arrival.ns() as f64 / 1e9) / speedup;
        let mut uses = vec![(0u64, 0u64); sizes.len()];
        for FileRequest { arrival, file, blocks, .. } in &mut traced {
            let (count, sum) = &mut uses[*file as usize];
            *count += 1;
            *sum += blocks.get();
            *arrival = SimTime::from_ns((arrival.ns() as f64 / speedup) as u64);
        }
        Self {
            loads: sizes
                .iter()
                .zip(uses)
                .map(|(&blocks, (count, sum))| {
                    let request = Blocks::new(sum.div_ceil(count.max(1)).max(1)).min(blocks);
                    let rate = count as f64 / span_s.max(1e-9);
                    FileLoad { blocks, request, rate, reads: 1.0 }
                })
                .collect(),
            class_of: vec![0; sizes.len()],
            classes: vec!["all".into()],
            traced,
            created: Vec::new(),
        }
    }
}

/// The share of a class's requests that each of its files gets. Ranks are drawn.
fn shares(class: &FileClass, prng: &mut Prng) -> Vec<f64> {
    let count = class.files as usize;
    let Some(HotFiles { files, requests }) = class.hot else {
        return vec![1.0 / count as f64; count];
    };
    let exponent = libm::log(requests) / libm::log(files);
    let mut shares = vec![0.0; count];
    for (rank, file) in shuffled(count, prng).into_iter().enumerate() {
        shares[file] = libm::pow((rank + 1) as f64 / count as f64, exponent)
            - libm::pow(rank as f64 / count as f64, exponent);
    }
    shares
}

fn shuffled(count: usize, prng: &mut Prng) -> Vec<usize> {
    let mut all: Vec<usize> = (0..count).collect();
    for at in (1..count).rev() {
        all.swap(at, prng.below(at as u64 + 1) as usize);
    }
    all
}

fn size_of(class: &FileClass, sizes: &mut Prng) -> Bytes {
    match class.sizes {
        FileSizes::Constant => class.size,
        FileSizes::Exponential => {
            Bytes::new((sizes.exponential(class.size.get() as f64) as u64).max(1))
        }
    }
}

/// Size of a request to a file of a class.
fn request_of(class: &FileClass, blocks: Blocks, sector: Blocks) -> Blocks {
    let request = class.request.map_or(blocks, |bytes| whole_sectors(bytes, sector));
    request.min(blocks)
}

/// The fewest whole sectors that hold some bytes, at least one.
pub fn whole_sectors(bytes: Bytes, sector: Blocks) -> Blocks {
    let sectors = bytes.get().div_ceil(BLOCK_BYTES * sector.get()).max(1);
    Blocks::new(sectors * sector.get())
}

/// Cuts each file of `all` into runs; the `loads` are those of the first files.
fn cut(
    workload: &FilesWorkload,
    model: &ArrayModel,
    loads: &[FileLoad],
    all: &[FileLoad],
    sector: Blocks,
    head_time: &HeadTimeCost,
) -> Result<Vec<FileOnDisks>, String> {
    let rate: f64 = loads.iter().map(|load| load.rate).sum();
    let blocks_rate: f64 = loads.iter().map(|load| load.rate * load.request.get() as f64).sum();
    let load = Load { rate, request: (blocks_rate / rate).max(1.0) };
    let limit = match workload.stripes {
        FileStripes::Best => LoadLimit::of(model, &load, &RULES).map(Some).ok_or_else(|| {
            format!(
                "`stripes` is \"best\", and {} disks cannot serve {rate:.1} requests a second however files are cut: lower `rate`, give more drives, or say `stripes`",
                model.disks
            )
        })?,
        FileStripes::Whole | FileStripes::Unit(_) | FileStripes::Chen(_) => None,
    };
    let cut = |file: &FileLoad| {
        let blocks = file.blocks.get();
        let stripes = match workload.stripes {
            FileStripes::Whole => stripes_of_unit(blocks, blocks, model.disks),
            FileStripes::Unit(unit) => {
                stripes_of_unit(blocks, whole_sectors(unit, sector).get(), model.disks)
            }
            FileStripes::Chen(multiprogramming) => {
                let unit = model.closed_model_unit(file.request.get() as f64, multiprogramming);
                let unit = Blocks::new(unit.max(1.0) as u64).bytes();
                stripes_of_unit(blocks, whole_sectors(unit, sector).get(), model.disks)
            }
            FileStripes::Best => {
                let request = file.request.get() as f64;
                let disks = effective_parallelism(model, request, limit.as_ref(), &RULES);
                let profile = FileProfile { blocks, request, starts: Starts::Anywhere };
                let unit = Blocks::new(stripes(&profile, disks, model.disks).unit).bytes();
                stripes_of_unit(blocks, whole_sectors(unit, sector).get(), model.disks)
            }
        };
        let piece = file.request.get().div_ceil(u64::from(stripes.width));
        let pieces = file.request.get().div_ceil(piece) as f64;
        FileOnDisks {
            blocks: file.blocks,
            unit: Blocks::new(stripes.unit),
            width: stripes.width,
            boundary: sector,
            heat: match workload.placement {
                FilePlacement::EqualBytes => blocks as f64,
                _ => file.rate * pieces * head_time.access_s(Blocks::new(piece)),
            },
        }
    };
    Ok(all.iter().map(cut).collect())
}

/// The order in which files are placed: where heat or bytes decide, the largest first.
fn order(placement: FilePlacement, files: &[FileOnDisks], seed: u64) -> Vec<usize> {
    let mut order = shuffled(files.len(), &mut Prng::new(seed, "order of files"));
    if matches!(placement, FilePlacement::Heat | FilePlacement::EqualBytes) {
        order.sort_by(|&a, &b| files[b].heat.total_cmp(&files[a].heat));
    }
    order
}
