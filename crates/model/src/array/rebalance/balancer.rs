//! The search for the next move.

use std::collections::BTreeMap;

use freewheel_units::Blocks;
use thiserror::Error;

use super::copy_cost::{CopyCost, Side};
use super::load::QueueLoad;
use crate::array::partition::{DiskModel, Moments};

/// A disk of a JBOD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BalanceDisk {
    /// Which model it is: an index. Blocks of a model are blocks of 512 bytes here.
    pub model: usize,
    /// Its capacity.
    pub blocks: Blocks,
}

/// A file, or a folder whose files stay together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BalanceFile {
    /// Its size.
    pub blocks: Blocks,
    /// Mean size of a request.
    pub request: Blocks,
    /// Requests a second.
    pub rate: f64,
    /// The disk on which it is now; none for a file to come.
    pub disk: Option<u32>,
}

/// When a move is worth it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RebalanceSpec {
    /// Share of each disk that no move fills.
    pub free_share: f64,
    /// Blocks that one command of a copy reads or writes.
    pub piece: Blocks,
    /// Blocks a second that a copy takes at most.
    pub rate: Option<f64>,
    /// How long the load is expected to stay as it is: a move has to pay within this, in seconds.
    pub horizon_s: f64,
    /// Share of the mean response that a move has to save at least.
    pub gain_min: f64,
}

impl Default for RebalanceSpec {
    /// 5 % stay free, pieces of 1 MiB, no limit to the rate, 30 days, 1 % of the response.
    fn default() -> Self {
        Self {
            free_share: 0.05,
            piece: Blocks::new(2048),
            rate: None,
            horizon_s: 30.0 * 86_400.0,
            gain_min: 0.01,
        }
    }
}

/// A move with what it brings and costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankedMove {
    /// The file: an index.
    pub file: usize,
    /// Its disk.
    pub from: u32,
    /// Its disk afterwards.
    pub to: u32,
    /// What it makes the mean response of all clients shorter, in seconds.
    pub gain_s: f64,
    /// Seconds of waiting that it saves a second, summed over all clients.
    pub saved: f64,
    /// What the copy costs.
    pub cost: CopyCost,
}

impl RankedMove {
    /// When the move has saved as much waiting as its copy caused, in seconds after the copy.
    pub fn payback_s(&self) -> f64 {
        self.cost.waiting_s / self.saved
    }
}

/// Why no move is proposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NoMove {
    /// No file has requests on a disk.
    #[error("no file is used")]
    NoLoad,
    /// Every file that would help is larger than the room on every disk that could take it.
    #[error("no disk has room for a file that would help")]
    NoRoom,
    /// No move makes responses shorter, by enough.
    #[error("the best move saves too little")]
    TooLittleGain,
    /// No move pays within the horizon.
    #[error("no move pays within the horizon")]
    NoPayback,
}

/// Disks from which files are moved: those on which load is dearest.
const SOURCES: usize = 4;
/// Files of a source with the most load that are looked at, and files sampled evenly from the others.
const HOTTEST: usize = 192;
const SAMPLED: usize = 64;

/// Files on disks, and the load of each disk.
#[derive(Debug, Clone)]
pub struct Balancer<'a> {
    models: &'a [DiskModel],
    disks: Vec<BalanceDisk>,
    files: Vec<BalanceFile>,
    loads: Vec<QueueLoad>,
    used: Vec<Blocks>,
    /// Files of each disk by falling head time.
    on_disk: Vec<Vec<usize>>,
    /// Service times by model and size of a request.
    services: BTreeMap<(usize, u64), Moments>,
}

impl<'a> Balancer<'a> {
    /// Files that have a disk are on it. Panics for a disk that there is not.
    pub fn new(models: &'a [DiskModel], disks: &[BalanceDisk], files: &[BalanceFile]) -> Self {
        let mut balancer = Self {
            models,
            disks: disks.to_vec(),
            files: files.to_vec(),
            loads: vec![QueueLoad::default(); disks.len()],
            used: vec![Blocks::ZERO; disks.len()],
            on_disk: vec![Vec::new(); disks.len()],
            services: BTreeMap::new(),
        };
        for file in balancer.by_head_time() {
            if let Some(disk) = balancer.files[file].disk {
                balancer.put(file, disk);
            }
        }
        balancer
    }

    /// Files by falling head time on the first model; equal ones by number.
    fn by_head_time(&mut self) -> Vec<usize> {
        let busy: Vec<f64> = (0..self.files.len()).map(|file| self.load_of(file, 0).busy).collect();
        let mut files: Vec<usize> = (0..self.files.len()).collect();
        files.sort_by(|&a, &b| busy[b].total_cmp(&busy[a]));
        files
    }

    /// The load of a file on disks of a model.
    fn load_of(&mut self, file: usize, model: usize) -> QueueLoad {
        let BalanceFile { request, rate, .. } = self.files[file];
        QueueLoad::new(rate, &self.service(model, request))
    }

    fn service(&mut self, model: usize, request: Blocks) -> Moments {
        let models = self.models;
        let new = || models[model].service(request.get().max(1) as f64);
        *self.services.entry((model, request.get())).or_insert_with(new)
    }

    fn put(&mut self, file: usize, disk: u32) {
        let at = disk as usize;
        let load = self.load_of(file, self.disks[at].model);
        self.loads[at] = self.loads[at].plus(&load);
        self.used[at] += self.files[file].blocks;
        self.on_disk[at].push(file);
        self.files[file].disk = Some(disk);
    }

    /// Gives every file that has no disk the one on which clients then wait least in all, hottest file
    /// first. Err with the first file for which no disk has room.
    pub fn place_new(&mut self, free_share: f64) -> Result<Vec<(usize, u32)>, usize> {
        let mut placed = Vec::new();
        for file in self.by_head_time() {
            if self.files[file].disk.is_some() {
                continue;
            }
            let disk = self.coolest_with_room(file, free_share).ok_or(file)?;
            self.put(file, disk);
            placed.push((file, disk));
        }
        Ok(placed)
    }

    /// Gives every file that has no disk the one with most room, in the order of the files. Err with the
    /// first file for which no disk has room.
    pub fn place_by_room(&mut self, free_share: f64) -> Result<(), usize> {
        for file in 0..self.files.len() {
            if self.files[file].disk.is_some() {
                continue;
            }
            let left = |disk: &u32| {
                let disk = *disk as usize;
                self.disks[disk].blocks.get() - self.used[disk].get()
            };
            let disk = (0..self.disks.len() as u32).max_by_key(left).ok_or(file)?;
            if !self.has_room(disk, self.files[file].blocks, free_share) {
                return Err(file);
            }
            self.insert(file, disk);
        }
        Ok(())
    }

    fn coolest_with_room(&mut self, file: usize, free_share: f64) -> Option<u32> {
        let mut best: Option<(f64, u32)> = None;
        for disk in 0..self.disks.len() as u32 {
            if !self.has_room(disk, self.files[file].blocks, free_share) {
                continue;
            }
            let more = self.more_present(file, disk);
            if best.is_none_or(|(least, _)| more < least) {
                best = Some((more, disk));
            }
        }
        best.map(|(_, disk)| disk)
    }

    /// Requests present on `disk` that a file adds.
    fn more_present(&mut self, file: usize, disk: u32) -> f64 {
        let at = disk as usize;
        let load = self.load_of(file, self.disks[at].model);
        self.loads[at].plus(&load).requests_present() - self.loads[at].requests_present()
    }

    fn has_room(&self, disk: u32, blocks: Blocks, free_share: f64) -> bool {
        let disk = disk as usize;
        let capacity = (1.0 - free_share) * self.disks[disk].blocks.get() as f64;
        (self.used[disk] + blocks).get() as f64 <= capacity
    }

    /// The load of each disk.
    pub fn loads(&self) -> &[QueueLoad] {
        &self.loads
    }

    /// Blocks of each disk that files take.
    pub fn used(&self) -> &[Blocks] {
        &self.used
    }

    /// The disk of each file.
    pub fn files(&self) -> &[BalanceFile] {
        &self.files
    }

    fn rate(&self) -> f64 {
        self.loads.iter().map(|load| load.rate).sum()
    }

    /// Mean response of all clients in seconds. None while a disk cannot serve its load.
    pub fn response_s(&self) -> Option<f64> {
        self.loads.iter().all(QueueLoad::is_sustained).then(|| self.compared_response_s())
    }

    /// The response that moves are compared by: finite for overloaded disks, too.
    fn compared_response_s(&self) -> f64 {
        self.loads.iter().map(QueueLoad::requests_present).sum::<f64>() / self.rate()
    }

    /// The move that saves most within the horizon, its cost deducted.
    pub fn next_move(&mut self, spec: &RebalanceSpec) -> Result<RankedMove, NoMove> {
        let rate = self.rate();
        if rate <= 0.0 {
            return Err(NoMove::NoLoad);
        }
        let least_saved = spec.gain_min * self.compared_response_s() * rate;
        let (mut best, mut refused): (Option<RankedMove>, _) = (None, NoMove::TooLittleGain);
        let net = |wanted: &RankedMove| wanted.saved * spec.horizon_s - wanted.cost.waiting_s;
        for (file, from) in self.candidates() {
            let gone = self.less_present(file, from);
            if gone < least_saved {
                continue;
            }
            for to in (0..self.disks.len() as u32).filter(|&to| to != from) {
                let saved = gone - self.more_present(file, to);
                if saved < least_saved.max(f64::MIN_POSITIVE) {
                    continue;
                }
                if !self.has_room(to, self.files[file].blocks, spec.free_share) {
                    refused = NoMove::NoRoom;
                    continue;
                }
                // The cost takes longest to work out, and is never negative.
                if best.as_ref().is_some_and(|best| saved * spec.horizon_s <= net(best)) {
                    continue;
                }
                let cost = self.copy_cost(file, from, to, spec);
                let wanted = RankedMove { file, from, to, gain_s: saved / rate, saved, cost };
                if net(&wanted) <= 0.0 {
                    refused = NoMove::NoPayback;
                } else if best.as_ref().is_none_or(|best| net(&wanted) > net(best)) {
                    best = Some(wanted);
                }
            }
        }
        best.ok_or(refused)
    }

    /// Requests present on `disk` that go away with a file.
    fn less_present(&mut self, file: usize, disk: u32) -> f64 {
        let at = disk as usize;
        let load = self.load_of(file, self.disks[at].model);
        self.loads[at].requests_present() - self.loads[at].minus(&load).requests_present()
    }

    /// Files that may move, with their disks.
    fn candidates(&self) -> Vec<(usize, u32)> {
        let mut sources: Vec<u32> = (0..self.disks.len() as u32).collect();
        let price = |disk: &u32| price_of_load(&self.loads[*disk as usize]);
        sources.sort_by(|a, b| price(b).total_cmp(&price(a)));
        let of_disk = |&disk: &u32| {
            let files = &self.on_disk[disk as usize];
            let (hottest, others) = files.split_at(files.len().min(HOTTEST));
            let sampled = others.iter().step_by(others.len().div_ceil(SAMPLED).max(1));
            hottest.iter().chain(sampled).map(|&file| (file, disk)).collect::<Vec<_>>()
        };
        sources.iter().take(SOURCES).flat_map(of_disk).collect()
    }

    /// What the copy of a file from one disk to another costs.
    pub fn copy_cost(&mut self, file: usize, from: u32, to: u32, spec: &RebalanceSpec) -> CopyCost {
        let blocks = self.files[file].blocks;
        let piece = spec.piece.min(blocks).max(Blocks::new(1));
        let mut side = |disk: u32| {
            let disk = disk as usize;
            let piece = self.service(self.disks[disk].model, piece);
            Side { load: self.loads[disk], piece }
        };
        let (source, target) = (side(from), side(to));
        let pieces = blocks.get().div_ceil(piece.get()) as f64;
        let least_cycle_s = spec.rate.map_or(0.0, |rate| piece.get() as f64 / rate);
        CopyCost::of(&source, &target, pieces, least_cycle_s)
    }

    /// Moves a file.
    pub fn apply(&mut self, wanted: &RankedMove) {
        self.relocate(wanted.file, wanted.to);
    }

    /// Gives a file another disk.
    pub fn relocate(&mut self, file: usize, to: u32) {
        let from = self.files[file].disk.expect("a file that is on a disk") as usize;
        let load = self.load_of(file, self.disks[from].model);
        self.loads[from] = self.loads[from].minus(&load);
        self.used[from] = self.used[from] - self.files[file].blocks;
        self.on_disk[from].retain(|&other| other != file);
        self.insert(file, to);
    }

    /// Puts a file on a disk, where files stay in the order of their load.
    fn insert(&mut self, file: usize, disk: u32) {
        self.put(file, disk);
        let at = disk as usize;
        let model = self.disks[at].model;
        let mut files = std::mem::take(&mut self.on_disk[at]);
        files.pop();
        let busy = self.load_of(file, model).busy;
        let before = files.partition_point(|&other| self.load_of(other, model).busy >= busy);
        files.insert(before, file);
        self.on_disk[at] = files;
    }
}

/// Requests present that the last hundredth of a disk's load adds, for a second of head time.
fn price_of_load(load: &QueueLoad) -> f64 {
    if load.busy <= 0.0 {
        return 0.0;
    }
    (load.requests_present() - load.times(0.99).requests_present()) / (0.01 * load.busy)
}
