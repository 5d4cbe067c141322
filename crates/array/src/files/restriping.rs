//! Stripes that change during a run (tr96 section 2.3): when the load has changed so much that another number of
//! disks a request is best, the hottest files are copied to new stripes.
//!
//! A copy is a move between two layouts of one file. The mover sees them as two disks: a file lies at its
//! address on the one or on the other, and requests to these reach the extents of the valid layout or the next.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use crate::allocation::{Allocator, NewExtent};
use crate::partition::{
    ArrayModel, FileProfile, Load, NotTriggered, Repartitioner, Restriped, Rules, Starts,
    StripedFile, Stripes,
};
use crate::placement::{Extent, ExtentId, FileId, Place, Placement};
use freewheel_units::{Blocks, Lbn, SimDuration, SimTime, VolumeBlock};

use super::map::FileMap;
use super::moved_map::MovedMap;

/// Files between their layouts.
pub struct Layouts<'a> {
    map: &'a FileMap,
    /// Each file on one of two disks that stand for layouts, at its address.
    places: RefCell<Placement>,
}

impl<'a> Layouts<'a> {
    /// Every file in the layout that it has.
    pub fn new(map: &'a FileMap) -> Self {
        let files = map.files();
        let all: u64 = files.iter().map(|file| file.blocks.get()).sum();
        let mut places = Placement::new(2, Blocks::new(all));
        for (number, file) in (0..).zip(files.iter()) {
            let place = Place { disk: 0, start: Lbn::new(map.address(number, 0).get()) };
            let (file, blocks) = (FileId(number), file.blocks);
            places.reserve_at(place, blocks);
            places.insert(ExtentId(number), Extent { file, blocks, place });
        }
        Self { map, places: RefCell::new(places) }
    }
}

impl MovedMap for Layouts<'_> {
    fn file_map(&self) -> &FileMap {
        self.map
    }

    fn places(&self) -> &RefCell<Placement> {
        &self.places
    }

    fn part_on(&self, start: VolumeBlock, blocks: Blocks, part: ExtentId) -> Option<(u64, u64)> {
        let file = self.map.file_at(start);
        (file == part.0).then(|| (start.get() - self.map.address(file, 0).get(), blocks.get()))
    }

    fn for_each_part(
        &self,
        start: VolumeBlock,
        blocks: Blocks,
        each: &mut dyn FnMut(ExtentId, u64, u64),
    ) {
        let file = self.map.file_at(start);
        each(ExtentId(file), start.get() - self.map.address(file, 0).get(), blocks.get());
    }

    fn copy_address(&self, part: ExtentId, place: Place) -> VolumeBlock {
        let address = VolumeBlock::new(place.start.get());
        match self.places.borrow().extent(part).place.disk == place.disk {
            true => address,
            false => self.map.next_layout_address(address),
        }
    }

    /// The layout was set when it was chosen.
    fn begin(&self, _: ExtentId, _: Place) {}

    fn relocated(&self, part: ExtentId) {
        self.map.switch_layout(part.0);
    }

    fn finished(&self, part: ExtentId) {
        self.map.drop_old_layout(part.0);
    }
}

/// File of the extents of a layout while they are being placed. The old layout of their file may have extents on
/// the same disks.
const NEXT_LAYOUT: FileId = FileId(u32::MAX);

#[derive(Debug, Clone)]
pub(super) struct RestripeSpec {
    /// Time from one check to the next.
    pub every: SimDuration,
    pub check: Repartitioner,
    pub array: ArrayModel,
    pub rules: Rules,
    /// Units are multiples of this.
    pub sector: Blocks,
    /// Places the extents of new layouts.
    pub allocator: Allocator,
}

/// Checks of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RestripeWork {
    /// Checks.
    pub checks: u64,
    /// Checks after which files were to be striped anew.
    pub triggered: u64,
    /// Files with new stripes that no disks had room for.
    pub without_room: u64,
}

/// Measures the load, and names the files to stripe anew.
pub struct Restriper {
    spec: RestripeSpec,
    /// Requests to each file since the last check, and their blocks.
    counted: BTreeMap<u32, (u64, u64)>,
    checked: SimTime,
    waiting: VecDeque<Restriped>,
    /// Blocks a second of each file, by the last check, and of each disk.
    file_loads: BTreeMap<u32, f64>,
    disk_loads: Vec<f64>,
    work: RestripeWork,
}

impl Restriper {
    pub(super) fn new(spec: RestripeSpec) -> Self {
        Self {
            spec,
            counted: BTreeMap::new(),
            checked: SimTime::ZERO,
            waiting: VecDeque::new(),
            file_loads: BTreeMap::new(),
            disk_loads: Vec::new(),
            work: RestripeWork::default(),
        }
    }

    /// Files of a list, on so many disks; the load is not looked at.
    #[cfg(test)]
    pub(super) fn of_list(files: Vec<Restriped>, disks: u32) -> Self {
        use crate::allocation::{DiskOrder, NewHeat, Passes};
        use crate::partition::{DiskModel, DiskUse, RepartitionSpec, RepartitionTrigger};
        let spec = include_str!("../../../../drives/tr96.toml");
        let drive = freewheel_model::drive::Drive::build(&toml::from_str(spec).unwrap()).unwrap();
        let usage =
            DiskUse { filled_share: 0.5, read_share: 0.5, block: freewheel_units::Bytes::new(512) };
        let spec = RestripeSpec {
            every: SimDuration::from_secs(3600),
            check: Repartitioner::new(RepartitionSpec {
                least_change_s: 0.0,
                files_max: 0,
                trigger: RepartitionTrigger::Worsened,
            }),
            array: ArrayModel { disk: DiskModel::of(&drive, &usage), disks },
            rules: Rules::default(),
            sector: Blocks::new(1),
            allocator: Allocator::new(DiskOrder::Coolest, Passes::FreeOnly, NewHeat::AtOnce),
        };
        let disk_loads = vec![0.0; disks as usize];
        Self { waiting: files.into(), disk_loads, ..Self::new(spec) }
    }

    pub(super) fn every(&self) -> SimDuration {
        self.spec.every
    }

    pub(super) fn work(&self) -> RestripeWork {
        self.work
    }

    /// A client's request to a file.
    pub(super) fn count(&mut self, file: u32, blocks: Blocks) {
        let (requests, all) = self.counted.entry(file).or_default();
        *requests += 1;
        *all += blocks.get();
    }

    /// Compares the load since the last check with that before. Files that were waiting are those of an older
    /// load.
    pub(super) fn check(&mut self, map: &FileMap, now: SimTime) {
        let seconds = (now - self.checked).as_secs_f64();
        self.checked = now;
        let counted = std::mem::take(&mut self.counted);
        let (requests, blocks) =
            counted.values().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        if requests == 0 || seconds <= 0.0 {
            return;
        }
        let request = blocks as f64 / requests as f64;
        let load = Load { rate: requests as f64 / seconds, request };
        self.measure(map, &counted, seconds);
        let files: Vec<StripedFile> = counted
            .iter()
            .filter(|(number, _)| map.is_there(**number))
            .map(|(&number, &(requests, blocks))| {
                let known = map.file(number);
                let profile = FileProfile {
                    blocks: known.blocks.get(),
                    request: blocks as f64 / requests as f64,
                    starts: Starts::Anywhere,
                };
                let stripes = Stripes { unit: known.unit.get(), width: known.width };
                let rate = requests as f64 / seconds;
                StripedFile { file: FileId(number), profile, rate, stripes }
            })
            .collect();
        let RestripeSpec { check, array, rules, .. } = &mut self.spec;
        self.work.checks += 1;
        match check.check(array, &load, rules, &files) {
            Ok(restriped) => {
                self.work.triggered += u64::from(!restriped.is_empty());
                self.waiting = restriped.into();
            }
            Err(NotTriggered::SameParallelism | NotTriggered::SmallChange) => {}
            Err(NotTriggered::FirstInvocation | NotTriggered::Overload) => self.waiting.clear(),
        }
    }

    /// Loads of files that are there, and of the disks that they lie on.
    fn measure(&mut self, map: &FileMap, counted: &BTreeMap<u32, (u64, u64)>, seconds: f64) {
        let there = counted.iter().filter(|(number, _)| map.is_there(**number));
        self.file_loads =
            there.map(|(&number, &(_, blocks))| (number, blocks as f64 / seconds)).collect();
        let placement = map.placement().borrow();
        self.disk_loads = vec![0.0; placement.disks() as usize];
        for (&number, load) in &self.file_loads {
            let file = map.file(number);
            for id in (file.first_extent.0..file.first_extent.0 + file.width).map(ExtentId) {
                let extent = placement.extent(id);
                let share = extent.blocks.get() as f64 / file.blocks.get() as f64;
                self.disk_loads[extent.place.disk as usize] += load * share;
            }
        }
    }

    fn load_of(&self, file: u32) -> f64 {
        self.file_loads.get(&file).copied().unwrap_or(0.0)
    }

    /// The next file to copy, and the layout to which it goes. Its extents have got places.
    pub(super) fn next(&mut self, map: &FileMap, layouts: &Placement) -> Option<(ExtentId, u32)> {
        while let Some(Restriped { file, stripes }) = self.waiting.pop_front() {
            if map.is_there(file.0) && self.place(map, file, &stripes) {
                let part = ExtentId(file.0);
                return Some((part, 1 - layouts.extent(part).place.disk));
            }
        }
        None
    }

    /// Finds room for a file's new stripes. False where it has these already, or there is no room.
    fn place(&mut self, map: &FileMap, file: FileId, stripes: &Stripes) -> bool {
        let (known, sector) = (map.file(file.0), self.spec.sector.get());
        let unit = Blocks::new(stripes.unit.div_ceil(sector) * sector);
        let runs = known.blocks.get().div_ceil(unit.get());
        let width = u64::from(self.spec.array.disks).min(runs) as u32;
        if (unit, width) == (known.unit, known.width) {
            return false;
        }
        let layout = map.new_layout(file.0, unit, width);
        let mut placement = map.placement().borrow_mut();
        let (first, before) = (layout.first_extent.0, self.disk_loads.clone());
        for number in 0..width {
            let blocks = layout.extent_blocks(number);
            let heat = self.load_of(file.0) * blocks.get() as f64 / known.blocks.get() as f64;
            let new = NewExtent { id: ExtentId(first + number), file: NEXT_LAYOUT, blocks, heat };
            let placed = self.spec.allocator.place(&mut placement, &mut self.disk_loads, &new);
            if placed.is_none() {
                self.disk_loads = before;
                (first..first + number).for_each(|id| _ = placement.remove(ExtentId(id)));
                self.work.without_room += 1;
                return false;
            }
        }
        for id in (first..first + width).map(ExtentId) {
            let extent = placement.remove(id);
            placement.reserve_at(extent.place, extent.blocks);
            placement.insert(id, Extent { file, ..extent });
        }
        drop(placement);
        map.begin_layout(file.0, layout);
        true
    }
}
