//! The search for the next move.

use std::collections::BTreeMap;

use freewheel_units::{Blocks, Lbn};
use thiserror::Error;

use super::copy_cost::{CopyCost, Side};
use super::load::QueueLoad;
use super::places::{DriveModel, Places, Spread};
use crate::partition::Moments;
use crate::space::FreeSpace;

/// A disk of a JBOD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BalanceDisk {
    /// Index of the drive's model.
    pub model: usize,
    /// Capacity of the disk.
    pub blocks: Blocks,
}

/// A file, or a folder whose files stay together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BalanceFile {
    /// Blocks of the file.
    pub blocks: Blocks,
    /// Mean size of a request.
    pub request: Blocks,
    /// Requests a second.
    pub rate: f64,
    /// The disk on which it is now; none for a file to come.
    pub disk: Option<u32>,
}

/// Conditions that a move must meet to be worth its cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RebalanceSpec {
    /// Share of each disk that no move fills.
    pub free_share: f64,
    /// Blocks that one command of a copy reads or writes.
    pub piece: Blocks,
    /// Blocks a second that a copy takes at most.
    pub rate: Option<f64>,
    /// Time that the load is expected to stay as it is: copy and payback have to fit in, in seconds.
    pub horizon_s: f64,
    /// Share by which a move has to make the mean response of its disk's clients shorter, the target's losses
    /// deducted. A disk with less waiting than the mean disk counts as that one.
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

/// A move with its gain and cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankedMove {
    /// The file: an index.
    pub file: usize,
    /// Disk before the move.
    pub from: u32,
    /// Disk after the move.
    pub to: u32,
    /// Time by which the move makes the mean response of all clients shorter, in seconds.
    pub gain_s: f64,
    /// Seconds of waiting that it saves a second, summed over all clients.
    pub saved: f64,
    /// Cost of the copy.
    pub cost: CopyCost,
}

impl RankedMove {
    /// Seconds of waiting that it saves within the horizon, which begins with the copy.
    pub fn net(&self, horizon_s: f64) -> f64 {
        self.saved * (horizon_s - self.cost.copy_s).max(0.0) - self.cost.waiting_s
    }

    /// Time after the copy at which the move has saved as much waiting as the copy caused, in seconds.
    pub fn payback_s(&self) -> f64 {
        self.cost.waiting_s / self.saved
    }
}

/// Reason why no move is proposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NoMove {
    /// No file has requests on a disk.
    #[error("no file is used")]
    NoLoad,
    /// No disk has room for the file whose move would save most.
    #[error("no disk has room for file {file}, which would save most")]
    NoRoom {
        /// The file: an index.
        file: usize,
    },
    /// The disk to which a move would save most has no room, and those that have it would save too little.
    #[error("disk {to} has no room for file {file}, which would save most there")]
    TargetFull {
        /// The file: an index.
        file: usize,
        /// The disk.
        to: u32,
    },
    /// No move makes responses shorter, by enough.
    #[error("the best move saves too little")]
    TooLittleGain,
    /// No move pays within the horizon.
    #[error("no move pays within the horizon")]
    NoPayback,
}

/// Disks that are looked at together: first those on which load is dearest.
const SOURCES: usize = 12;
/// Files of a source with the most load that are looked at, and files sampled evenly from the others.
const HOTTEST: usize = 192;
const SAMPLED: usize = 64;
/// Targets that are looked at: those of each drive on which load is cheapest.
const TARGETS: usize = 16;

/// Files on disks, and the load of each disk.
#[derive(Debug, Clone)]
pub struct Balancer<'a> {
    models: &'a [DriveModel],
    disks: Vec<BalanceDisk>,
    files: Vec<BalanceFile>,
    /// First block of each file that has a disk.
    starts: Vec<Lbn>,
    /// Files that a move was applied to: they stay, so that each is copied once.
    has_moved: Vec<bool>,
    /// Files that ask more than any disk can serve. No place helps them.
    hopeless: Vec<bool>,
    states: Vec<DiskState>,
    /// Times after the seek by model, zone, and size of a request.
    services: BTreeMap<(usize, usize, u64), Moments>,
}

/// Contents and load of a disk.
#[derive(Debug, Clone)]
struct DiskState {
    /// Requests to the disk, without their seeks.
    work: QueueLoad,
    places: Places,
    space: FreeSpace,
    /// Files by falling head time.
    files: Vec<usize>,
    /// Number of files on it that ask more than any disk can serve.
    hopeless: usize,
}

impl DiskState {
    fn load(&self) -> QueueLoad {
        self.work.after(self.places.seek())
    }
}

/// A file at a place: what it adds to the disk.
struct Part {
    work: QueueLoad,
    spread: Spread,
}

/// Outcome of a search for the next move.
struct Search {
    /// Least saving of a move from each disk.
    least_saved: Vec<f64>,
    best: Option<RankedMove>,
    refused: NoMove,
    /// Saving of the move that `refused` is about.
    refused_saves: f64,
}

impl Search {
    fn new(least_saved: Vec<f64>) -> Self {
        Self { least_saved, best: None, refused: NoMove::TooLittleGain, refused_saves: 0.0 }
    }

    /// Keeps why the move is not possible that would save most.
    fn refuse(&mut self, saved: f64, why: NoMove) {
        // Of all reasons the user reads one: that of the move that would have helped most.
        if saved > self.refused_saves {
            (self.refused, self.refused_saves) = (why, saved);
        }
    }
}

impl<'a> Balancer<'a> {
    /// Files that have a disk are on it, one after the other. Panics for a disk that there is not, and
    /// for one that cannot hold its files.
    pub fn new(models: &'a [DriveModel], disks: &[BalanceDisk], files: &[BalanceFile]) -> Self {
        let mut balancer = Self {
            models,
            disks: disks.to_vec(),
            files: files.to_vec(),
            starts: vec![Lbn::new(0); files.len()],
            has_moved: vec![false; files.len()],
            hopeless: Vec::new(),
            states: disks
                .iter()
                .map(|disk| DiskState {
                    work: QueueLoad::default(),
                    places: Places::new(),
                    space: FreeSpace::new(disk.blocks),
                    files: Vec::new(),
                    hopeless: 0,
                })
                .collect(),
            services: BTreeMap::new(),
        };
        // Before files are put: `put` counts the hopeless ones of each disk.
        balancer.hopeless = (0..files.len()).map(|file| balancer.is_too_much(file)).collect();
        for (number, file) in files.iter().enumerate() {
            if let Some(disk) = file.disk {
                balancer.put(number, disk);
            }
        }
        // Once at the end: sorting at each file would cost the square of their number.
        balancer.sort_files();
        balancer
    }

    fn sort_files(&mut self) {
        for disk in 0..self.states.len() {
            let files = std::mem::take(&mut self.states[disk].files);
            let mut keyed: Vec<(f64, usize)> =
                files.iter().map(|file| (self.busy(*file), *file)).collect();
            // A stable sort with a total order: equal files keep their order on every machine.
            keyed.sort_by(|a, b| b.0.total_cmp(&a.0));
            self.states[disk].files = keyed.into_iter().map(|(_, file)| file).collect();
        }
    }

    /// Head time that a file asks for, by which files are ordered. Seeks hang on the others, so it counts
    /// each as one turn.
    fn busy(&self, file: usize) -> f64 {
        let BalanceFile { request, rate, disk, .. } = self.files[file];
        // A new file has no disk yet; any model orders files about the same.
        let model = &self.models[disk.map_or(0, |disk| self.disks[disk as usize].model)];
        // A turn replaces the seek, whose length depends on the disk's other files.
        rate * (model.turn_s() + model.after_seek(0, request).mean)
    }

    /// New files by falling head time; equal ones by number.
    fn new_files(&self) -> Vec<usize> {
        let new = (0..self.files.len()).filter(|&file| self.files[file].disk.is_none());
        let mut files: Vec<(f64, usize)> = new.map(|file| (self.busy(file), file)).collect();
        files.sort_by(|a, b| b.0.total_cmp(&a.0));
        files.into_iter().map(|(_, file)| file).collect()
    }

    /// True if a file alone keeps every disk that could hold it busy all the time, at its beginning, where
    /// disks are fastest and all seeks are the file's own.
    fn is_too_much(&mut self, file: usize) -> bool {
        // Disks of one model are alike here.
        let mut holders: Vec<u32> = Vec::new();
        for disk in 0..self.disks.len() as u32 {
            // Each model is tried once, as this looks at no other file of the disk.
            let is_known = holders
                .iter()
                .any(|&known| self.disks[known as usize].model == self.disks[disk as usize].model);
            if !is_known && self.can_hold(disk, file) {
                holders.push(disk);
            }
        }
        let has_holder = !holders.is_empty();
        has_holder
            && holders.into_iter().all(|disk| {
                let part = self.part(file, disk, Lbn::new(0));
                let model = &self.models[self.disks[disk as usize].model];
                // Alone on the disk: with other files the load could only be greater.
                let seek = Places::new().seek_with(model, &part.spread, 1.0);
                !part.work.after(seek).is_sustained()
            })
    }

    /// The files that ask more than any disk can serve. They stay. Their disks are left out of the mean
    /// response; other files only leave them.
    pub fn hopeless(&self) -> impl Iterator<Item = usize> {
        self.hopeless.iter().enumerate().filter(|(_, is)| **is).map(|(file, _)| file)
    }

    /// True if a disk holds such a file.
    pub fn is_lost(&self, disk: u32) -> bool {
        self.states[disk as usize].hopeless > 0
    }

    /// Disks that hold no such file.
    fn served(&self) -> impl Iterator<Item = &DiskState> {
        self.states.iter().filter(|disk| disk.hopeless == 0)
    }

    /// Load that a file adds to a disk on which it begins at `start`.
    fn part(&mut self, file: usize, disk: u32, start: Lbn) -> Part {
        let BalanceFile { blocks, request, rate, .. } = self.files[file];
        let number = self.disks[disk as usize].model;
        let model = &self.models[number];
        let service = self.service(number, model.zone(start, blocks), request);
        Part { work: QueueLoad::new(rate, &service), spread: model.spread(start, blocks, rate) }
    }

    fn service(&mut self, model: usize, zone: usize, request: Blocks) -> Moments {
        let of_model = &self.models[model];
        // Few different sizes and zones occur, and the moments take long to compute.
        *self
            .services
            .entry((model, zone, request.get()))
            .or_insert_with(|| of_model.after_seek(zone, request))
    }

    /// Puts a file where there is room.
    fn put(&mut self, file: usize, disk: u32) {
        let blocks = self.files[file].blocks;
        let taken = self.states[disk as usize].space.take(blocks);
        let start = taken.unwrap_or_else(|| panic!("disk {disk} has no room for file {file}"));
        let part = self.part(file, disk, start);
        let model = &self.models[self.disks[disk as usize].model];
        let state = &mut self.states[disk as usize];
        // Sums of rates and moments: a file comes and goes without a look at the others.
        state.work = state.work.plus(&part.work);
        state.places.add(model, &part.spread, 1.0);
        state.files.push(file);
        state.hopeless += usize::from(self.hopeless[file]);
        self.files[file].disk = Some(disk);
        self.starts[file] = start;
    }

    /// Takes a file away from its disk.
    fn take(&mut self, file: usize) {
        let disk = self.files[file].disk.expect("a file that is on a disk");
        let part = self.part(file, disk, self.starts[file]);
        let model = &self.models[self.disks[disk as usize].model];
        let state = &mut self.states[disk as usize];
        // The same part that `put` added, as it follows from the file's place alone.
        state.work = state.work.minus(&part.work);
        state.places.add(model, &part.spread, -1.0);
        state.space.give(self.starts[file], self.files[file].blocks);
        state.files.retain(|&other| other != file);
        state.hopeless -= usize::from(self.hopeless[file]);
        self.files[file].disk = None;
    }

    /// Gives every file that has no disk the one on which clients then wait least in all, hottest file
    /// first; an unused file the disk with most room. Err with the first file for which no disk has room.
    pub fn place_new(&mut self, free_share: f64) -> Result<Vec<(usize, u32)>, usize> {
        let mut placed = Vec::new();
        for file in self.new_files() {
            // The hottest first: later, colder files fill what these leave uneven.
            let disk = self.coolest_with_room(file, free_share).ok_or(file)?;
            self.insert(file, disk);
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
            let disk = self.emptiest_with_room(file, free_share).ok_or(file)?;
            self.insert(file, disk);
        }
        Ok(())
    }

    fn emptiest_with_room(&self, file: usize, free_share: f64) -> Option<u32> {
        let blocks = self.files[file].blocks;
        (0..self.disks.len() as u32)
            .filter(|disk| self.has_room(*disk, blocks, free_share))
            .max_by_key(|disk| self.states[*disk as usize].space.free())
    }

    fn coolest_with_room(&mut self, file: usize, free_share: f64) -> Option<u32> {
        // It adds no load anywhere, so room decides.
        if self.files[file].rate <= 0.0 {
            return self.emptiest_with_room(file, free_share);
        }
        let mut best: Option<(f64, u32)> = None;
        for disk in 0..self.disks.len() as u32 {
            if !self.has_room(disk, self.files[file].blocks, free_share) || self.is_lost(disk) {
                continue;
            }
            // Waiting on the disk counts, and not its utilisation: fast disks may be busier.
            let more = self.more_present(file, disk);
            if best.is_none_or(|(least, _)| more < least) {
                best = Some((more, disk));
            }
        }
        // Beside a hopeless file where all disks have one.
        best.map(|(_, disk)| disk).or_else(|| self.emptiest_with_room(file, free_share))
    }

    /// Requests present on `disk` that a file adds there; at its beginning if it has no room.
    pub(super) fn more_present(&mut self, file: usize, disk: u32) -> f64 {
        let with = self.load_with_file(disk, file).compared_present();
        with - self.states[disk as usize].load().compared_present()
    }

    fn load_with_file(&mut self, disk: u32, file: usize) -> QueueLoad {
        let space = &self.states[disk as usize].space;
        // Without room the answer still tells how much the move would save if there was some.
        let start = space.shortest(self.files[file].blocks).unwrap_or(Lbn::new(0));
        let part = self.part(file, disk, start);
        self.load_with(disk, &part, 1.0)
    }

    /// Requests present on `disk` that go away with a file.
    pub(super) fn less_present(&mut self, file: usize, disk: u32) -> f64 {
        let part = self.part(file, disk, self.starts[file]);
        let without = self.load_with(disk, &part, -1.0).compared_present();
        self.states[disk as usize].load().compared_present() - without
    }

    /// The load of `disk` with a part more, or, for `sign` -1, one less.
    fn load_with(&self, disk: u32, part: &Part, sign: f64) -> QueueLoad {
        let state = &self.states[disk as usize];
        let model = &self.models[self.disks[disk as usize].model];
        // Seeks come last: they depend on all places together, and not on each file alone.
        let work = match sign > 0.0 {
            true => state.work.plus(&part.work),
            false => state.work.minus(&part.work),
        };
        work.after(state.places.seek_with(model, &part.spread, sign))
    }

    /// True if an empty disk could hold a file.
    pub(super) fn can_hold(&self, disk: u32, file: usize) -> bool {
        self.files[file].blocks <= self.disks[disk as usize].blocks
    }

    /// True if a disk has room in one piece, and keeps its free share.
    pub fn has_room(&self, disk: u32, blocks: Blocks, free_share: f64) -> bool {
        let space = &self.states[disk as usize].space;
        let kept = free_share * self.disks[disk as usize].blocks.get() as f64;
        let left = space.free().get() as f64 - blocks.get() as f64;
        // Enough room in all may still be in pieces, and files are not cut.
        left >= kept && space.shortest(blocks).is_some()
    }

    /// The load of each disk.
    pub fn loads(&self) -> Vec<QueueLoad> {
        self.states.iter().map(DiskState::load).collect()
    }

    /// Blocks of each disk that files take.
    pub fn used(&self) -> Vec<Blocks> {
        self.disks
            .iter()
            .zip(&self.states)
            .map(|(disk, state)| disk.blocks - state.space.free())
            .collect()
    }

    /// The files, with their disks.
    pub fn files(&self) -> &[BalanceFile] {
        &self.files
    }

    /// First block of each file on its disk.
    pub fn starts(&self) -> &[Lbn] {
        &self.starts
    }

    /// Capacity and free blocks of a disk.
    pub(super) fn room(&self, disk: u32) -> (Blocks, Blocks) {
        (self.disks[disk as usize].blocks, self.states[disk as usize].space.free())
    }

    /// Files of a disk that have not moved, by rising load.
    pub(super) fn coldest(&self, disk: u32) -> impl Iterator<Item = usize> {
        let files = self.states[disk as usize].files.iter().rev().copied();
        files.filter(|&file| !self.has_moved[file])
    }

    pub(super) fn rate(&self) -> f64 {
        self.served().map(|state| state.work.rate).sum()
    }

    /// Mean response of all clients in seconds, but for those of disks with a hopeless file. None while
    /// another disk cannot serve its load, and without any other client.
    pub fn response_s(&self) -> Option<f64> {
        // Little's law: requests present over their rate is the mean response.
        let present =
            self.served().map(|state| state.load().requests_present()).sum::<Option<f64>>()?;
        Some(present / self.rate()).filter(|response_s| response_s.is_finite())
    }

    /// Requests a second to disks with a hopeless file: they wait without end.
    pub fn lost_rate(&self) -> f64 {
        let lost = self.states.iter().filter(|disk| disk.hopeless > 0);
        lost.map(|state| state.work.rate).sum()
    }

    /// The move that saves most within the horizon, its cost deducted. A file that has moved stays. Files
    /// beside a hopeless one leave first: only that ends their wait.
    pub fn next_move(&mut self, spec: &RebalanceSpec) -> Result<RankedMove, NoMove> {
        match self.next_rescue(spec) {
            Ok(rescued) => Ok(rescued),
            // Endless waits first: any gain elsewhere is small beside them.
            Err(None) => self.next_gain(spec),
            // Where no other move is left, that is the reason.
            Err(Some(file)) => self.next_gain(spec).or(Err(NoMove::NoRoom { file })),
        }
    }

    /// The move between disks without hopeless files that saves most within the horizon.
    fn next_gain(&mut self, spec: &RebalanceSpec) -> Result<RankedMove, NoMove> {
        if self.rate() <= 0.0 {
            return Err(NoMove::NoLoad);
        }
        let mut search = Search::new(self.least_saved(spec));
        let cheapest_first = self.cheapest_first();
        let targets = self.targets(&cheapest_first);
        // Where no file of the dearest disks may move, one of the next ones may.
        // Moves from the dearest disks save most, so the others are looked at only if these have none.
        for sources in cheapest_first.rchunks(SOURCES) {
            for (file, from) in self.candidates(sources) {
                self.consider(file, from, &targets, spec, &mut search);
            }
            if let Some(best) = search.best {
                return Ok(best);
            }
        }
        match search.refused {
            // The few targets above may be full while a disk that was not looked at has room.
            NoMove::TargetFull { file, to } => self.elsewhere(file, to, spec),
            refused => Err(refused),
        }
    }

    /// The best move of a file to any disk with room, where the one to `full` would have saved most.
    fn elsewhere(
        &mut self,
        file: usize,
        full: u32,
        spec: &RebalanceSpec,
    ) -> Result<RankedMove, NoMove> {
        let from = self.files[file].disk.expect("a file that is on a disk");
        let blocks = self.files[file].blocks;
        let targets: Vec<u32> = (0..self.disks.len() as u32)
            .filter(|disk| {
                *disk != from
                    && !self.is_lost(*disk)
                    && self.has_room(*disk, blocks, spec.free_share)
            })
            .collect();
        let mut search = Search::new(self.least_saved(spec));
        self.consider(file, from, &targets, spec, &mut search);
        match (search.best, search.refused) {
            (Some(best), _) => Ok(best),
            _ if targets.is_empty() => Err(NoMove::NoRoom { file }),
            (None, NoMove::TooLittleGain) => Err(NoMove::TargetFull { file, to: full }),
            (None, refused) => Err(refused),
        }
    }

    /// The file beside a hopeless one that most requests ask for and that another disk can serve, and the
    /// disk on which clients then wait least in all. Err with the first such file that only lacks room.
    fn next_rescue(&mut self, spec: &RebalanceSpec) -> Result<RankedMove, Option<usize>> {
        let mut lacks_room = None;
        for (file, from) in self.beside_hopeless() {
            let targets = self.rescuers(file);
            let blocks = self.files[file].blocks;
            let with_room: Vec<u32> = targets
                .iter()
                .copied()
                .filter(|to| self.has_room(*to, blocks, spec.free_share))
                .collect();
            // The first that another disk can take: files of a disk come by falling load.
            if let Some(rescued) = self.rescue(file, from, &with_room, spec) {
                return Ok(rescued);
            }
            if with_room.is_empty() && !targets.is_empty() {
                lacks_room = lacks_room.or(Some(file));
            }
        }
        Err(lacks_room)
    }

    /// Files with requests that lie beside a hopeless one and have not moved, with their disks; of each disk
    /// the one with the most load first.
    pub(super) fn beside_hopeless(&self) -> Vec<(usize, u32)> {
        let lost = (0..self.disks.len() as u32).filter(|&disk| self.is_lost(disk));
        lost.flat_map(|disk| {
            let files = self.states[disk as usize].files.iter().copied().filter(|&file| {
                !self.hopeless[file] && !self.has_moved[file] && self.files[file].rate > 0.0
            });
            files.map(move |file| (file, disk))
        })
        .collect()
    }

    /// Disks that could hold a file and serve it beside their files, whether or not they have room.
    pub(super) fn rescuers(&mut self, file: usize) -> Vec<u32> {
        let mut rescuers = Vec::new();
        for to in 0..self.disks.len() as u32 {
            let may_take = !self.is_lost(to) && self.can_hold(to, file);
            // A disk that the file overloads would only be the next one with endless waits.
            if may_take && self.load_with_file(to, file).is_sustained() {
                rescuers.push(to);
            }
        }
        rescuers
    }

    fn rescue(
        &mut self,
        file: usize,
        from: u32,
        targets: &[u32],
        spec: &RebalanceSpec,
    ) -> Option<RankedMove> {
        let present = targets.iter().map(|&to| (self.more_present(file, to), to));
        let (more, to) = present.min_by(|a, b| a.0.total_cmp(&b.0))?;
        let saved = self.less_present(file, from) - more;
        let cost = self.copy_cost(file, from, to, spec);
        // No gain in seconds: the wait before was endless, and a difference to it has no number.
        let wanted = RankedMove { file, from, to, gain_s: 0.0, saved, cost };
        (wanted.net(spec.horizon_s) > 0.0).then_some(wanted)
    }

    /// Waiting that a move from each disk has to save at least, in seconds a second.
    pub(super) fn least_saved(&self, spec: &RebalanceSpec) -> Vec<f64> {
        let present = |state: &DiskState| state.load().compared_present();
        let served = self.served().count().max(1);
        let mean = self.served().map(present).sum::<f64>() / served as f64;
        // Noise must not look like a gain, not even on idle disks: hence the mean, and above zero.
        self.states
            .iter()
            .map(|state| (spec.gain_min * present(state).max(mean)).max(f64::MIN_POSITIVE))
            .collect()
    }

    /// Looks at every move of a file that saves at least this much.
    fn consider(
        &mut self,
        file: usize,
        from: u32,
        targets: &[u32],
        spec: &RebalanceSpec,
        search: &mut Search,
    ) {
        let (gone, least_saved) =
            (self.less_present(file, from), search.least_saved[from as usize]);
        // No target gives more than the source loses.
        if gone < least_saved
            || !search
                .best
                .as_ref()
                .is_none_or(|best| gone * spec.horizon_s > best.net(spec.horizon_s))
        {
            return;
        }
        for &to in targets {
            if to == from || !self.can_hold(to, file) {
                continue;
            }
            // Waiting that leaves the source, less the waiting that comes to the target.
            let saved = gone - self.more_present(file, to);
            if saved < least_saved {
                continue;
            }
            if !self.has_room(to, self.files[file].blocks, spec.free_share) {
                search.refuse(saved, NoMove::TargetFull { file, to });
                continue;
            }
            // The cost takes longest to work out, and is never negative.
            if search
                .best
                .as_ref()
                .is_some_and(|best| saved * spec.horizon_s <= best.net(spec.horizon_s))
            {
                continue;
            }
            let cost = self.copy_cost(file, from, to, spec);
            let wanted = RankedMove { file, from, to, gain_s: saved / self.rate(), saved, cost };
            // A move must pay for its copy within the horizon.
            if wanted.net(spec.horizon_s) <= 0.0 {
                search.refuse(saved, NoMove::NoPayback);
            } else if search
                .best
                .as_ref()
                .is_none_or(|best| wanted.net(spec.horizon_s) > best.net(spec.horizon_s))
            {
                search.best = Some(wanted);
            }
        }
    }

    /// Disks without hopeless files, by the price of load.
    pub(super) fn cheapest_first(&self) -> Vec<u32> {
        let prices: Vec<f64> = self.states.iter().map(price_of_load).collect();
        let all = 0..self.disks.len() as u32;
        let mut disks: Vec<u32> = all.filter(|&disk| !self.is_lost(disk)).collect();
        disks.sort_by(|&a, &b| prices[a as usize].total_cmp(&prices[b as usize]));
        disks
    }

    /// Disks to which files may move, by number.
    pub(super) fn targets(&self, cheapest_first: &[u32]) -> Vec<u32> {
        let mut of_model = vec![0; self.models.len()];
        let is_cheap = |disk: &u32| {
            let count = &mut of_model[self.disks[*disk as usize].model];
            *count += 1;
            // By model, since a slow empty disk may be worse than a fast busy one.
            *count <= TARGETS
        };
        let mut targets: Vec<u32> = cheapest_first.iter().copied().filter(is_cheap).collect();
        targets.sort_unstable();
        targets
    }

    /// Files of some disks that may move, with their disks.
    pub(super) fn candidates(&self, sources: &[u32]) -> Vec<(usize, u32)> {
        let of_disk = |&disk: &u32| {
            let files = &self.states[disk as usize].files;
            // Hot files save most alone; a sample of the others finds small ones that still fit.
            let (hottest, others) = files.split_at(files.len().min(HOTTEST));
            let sampled = others.iter().step_by(others.len().div_ceil(SAMPLED).max(1));
            let files = hottest.iter().chain(sampled).filter(|&&file| !self.has_moved[file]);
            files.map(|&file| (file, disk)).collect::<Vec<_>>()
        };
        sources.iter().rev().flat_map(of_disk).collect()
    }

    /// Cost of copying a file from one disk to another.
    pub fn copy_cost(&mut self, file: usize, from: u32, to: u32, spec: &RebalanceSpec) -> CopyCost {
        let blocks = self.files[file].blocks;
        let piece = spec.piece.min(blocks).max(Blocks::new(1));
        let mut side = |disk: u32| {
            let model = self.disks[disk as usize].model;
            let state = &self.states[disk as usize];
            let load = state.load();
            let [mean, second] = state.places.seek();
            // The target's place is the one that `put` would take.
            let start = match disk == from {
                true => self.starts[file],
                false => state.space.shortest(blocks).unwrap_or(Lbn::new(0)),
            };
            let zone = self.models[model].zone(start, blocks);
            // A piece is sought from where clients' requests left the arm, as one more of these.
            let seek = Moments { mean, second, third: 0.0 };
            Side { load, piece: seek.plus(self.service(model, zone, piece)) }
        };
        let (source, target) = (side(from), side(to));
        let pieces = blocks.get().div_ceil(piece.get()) as f64;
        let least_cycle_s = spec.rate.map_or(0.0, |rate| piece.get() as f64 / rate);
        CopyCost::of(&source, &target, pieces, least_cycle_s)
    }

    /// Moves a file.
    pub fn apply(&mut self, wanted: &RankedMove) {
        self.relocate(wanted.file, wanted.to);
        self.has_moved[wanted.file] = true;
    }

    /// Gives a file another disk. Panics where that has no room.
    pub fn relocate(&mut self, file: usize, to: u32) {
        self.take(file);
        self.insert(file, to);
    }

    /// Puts a file on a disk, where files stay in the order of their load.
    fn insert(&mut self, file: usize, disk: u32) {
        self.put(file, disk);
        let mut files = std::mem::take(&mut self.states[disk as usize].files);
        files.pop();
        let busy = self.busy(file);
        // Behind equal ones, as the stable sort has them.
        let before = files.partition_point(|&other| self.busy(other) >= busy);
        files.insert(before, file);
        self.states[disk as usize].files = files;
    }
}

/// Requests present that the last hundredth of a disk's load adds, for a second of head time.
fn price_of_load(disk: &DiskState) -> f64 {
    let load = disk.load();
    if load.busy <= 0.0 {
        return 0.0;
    }
    let part =
        QueueLoad { rate: 0.01 * load.rate, busy: 0.01 * load.busy, second: 0.01 * load.second };
    (load.compared_present() - load.minus(&part).compared_present()) / part.busy
}
