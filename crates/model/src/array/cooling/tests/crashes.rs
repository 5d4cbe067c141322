//! Moves under clients' writes: after every single step the machine could stop, and the map and the disks
//! that are left must hold every write that was acknowledged. Disks have a volatile cache, which loses what the
//! mover wrote since their last flush. Clients write through it.

use std::collections::BTreeMap;

use freewheel_units::{Blocks, Prng, SimTime};

use crate::array::cooling::*;
use crate::array::placement::{Extent, ExtentId, FileId, Place, Placement};

const DISKS: u32 = 3;
/// So little that freed room is soon used again.
const CAPACITY: u64 = 20;

/// What a block holds: a block of an extent in some version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Content {
    extent: ExtentId,
    block: u64,
    version: u64,
}

/// A client's write on its way.
struct ClientWrite {
    extent: ExtentId,
    span: Span,
    version: u64,
    /// Places that it has not reached yet.
    left: Vec<Place>,
    /// All its places.
    places: Vec<Place>,
}

/// Everything, and what of it survives.
struct Machine {
    /// Durable.
    disks: BTreeMap<(u32, u64), Content>,
    /// What a crash takes from the disks' caches.
    cached: BTreeMap<(u32, u64), Content>,
    /// Durable.
    journal: Vec<Relocated>,
    /// Durable: the map before the journal.
    saved: Placement,
    placement: Placement,
    mover: Mover,
    /// The action under way, and whether its effect has come about.
    action: Option<(MoveAction, bool)>,
    read: Vec<Content>,
    writes: Vec<ClientWrite>,
    acknowledged: BTreeMap<(ExtentId, u64), u64>,
    next_version: u64,
    moves: u64,
    cancelled: u64,
}

impl Machine {
    fn new(prng: &mut Prng) -> Self {
        let mut placement = Placement::new(DISKS, Blocks::new(CAPACITY));
        let mut disks = BTreeMap::new();
        let mut acknowledged = BTreeMap::new();
        for id in 0..6 {
            let (extent, blocks) = (ExtentId(id), Blocks::new(3 + prng.below(4)));
            let place = placement.reserve(id % DISKS, blocks).unwrap();
            placement.insert(extent, Extent { file: FileId(id), blocks, place });
            for block in 0..blocks.get() {
                let content = Content { extent, block, version: 0 };
                disks.insert((place.disk, place.start.get() + block), content);
                acknowledged.insert((extent, block), 0);
            }
        }
        Self {
            disks,
            cached: BTreeMap::new(),
            journal: Vec::new(),
            saved: placement.clone(),
            placement,
            mover: Mover::new(MoverSpec { piece: Blocks::new(2), rate: None }),
            action: None,
            read: Vec::new(),
            writes: Vec::new(),
            acknowledged,
            next_version: 1,
            moves: 0,
            cancelled: 0,
        }
    }

    /// One smallest step of something.
    fn step(&mut self, prng: &mut Prng) {
        match prng.below(10) {
            0..3 => self.begin_client_write(prng),
            3..6 => self.go_on_with_a_client_write(prng),
            6 if prng.chance(0.01) => _ = self.mover.cancel(),
            _ => self.go_on_with_the_move(prng),
        }
    }

    fn begin_client_write(&mut self, prng: &mut Prng) {
        let extent = ExtentId(prng.below(6) as u32);
        let known = *self.placement.extent(extent);
        let first = prng.below(known.blocks.get());
        let span = Span { first, blocks: 1 + prng.below(known.blocks.get() - first) };
        // Clients order their own overlapping writes.
        if self.writes.iter().any(|other| other.extent == extent && other.span.overlaps(&span)) {
            return;
        }
        let places = match self.mover.route(extent, span) {
            Route::Wait => return,
            Route::Valid => vec![known.place],
            Route::Both(copy) => vec![known.place, copy],
        };
        let version = self.next_version;
        self.next_version += 1;
        self.writes.push(ClientWrite { extent, span, version, left: places.clone(), places });
    }

    fn go_on_with_a_client_write(&mut self, prng: &mut Prng) {
        if self.writes.is_empty() {
            return;
        }
        let number = prng.below(self.writes.len() as u64) as usize;
        // Some writes take long: a room that was freed too early has another owner by then.
        if self.writes[number].version.is_multiple_of(8) && prng.chance(0.9) {
            return;
        }
        let write = &mut self.writes[number];
        let (extent, span, version) = (write.extent, write.span, write.version);
        if write.left.is_empty() {
            for block in span.first..span.end() {
                self.acknowledged.insert((extent, block), version);
            }
            self.writes.remove(number);
            return;
        }
        let place = write.left.swap_remove(prng.below(write.left.len() as u64) as usize);
        for block in span.first..span.end() {
            let content = Content { extent, block, version };
            let at = (place.disk, place.start.get() + block);
            self.disks.insert(at, content);
            self.cached.remove(&at);
        }
    }

    fn go_on_with_the_move(&mut self, prng: &mut Prng) {
        match self.action {
            None => self.next_action(prng),
            Some((action, false)) => {
                if self.take_effect(&action) {
                    self.action = Some((action, true));
                }
            }
            Some((_, true)) => {
                self.action = None;
                if prng.chance(0.02) {
                    return self.mover.failed();
                }
                match self.mover.done(&mut self.placement) {
                    Progress::Finished(_) => self.moves += 1,
                    Progress::Cancelled(_) => self.cancelled += 1,
                    _ => {}
                }
            }
        }
    }

    fn next_action(&mut self, prng: &mut Prng) {
        match self.mover.poll(SimTime::ZERO) {
            MoverState::Do(action) => self.action = Some((action, false)),
            MoverState::Idle => {
                let extent = ExtentId(prng.below(6) as u32);
                _ = self.mover.start(&mut self.placement, extent, prng.below(DISKS.into()) as u32);
            }
            other => panic!("{other:?}"),
        }
    }

    /// Whether the action could be done now.
    fn take_effect(&mut self, action: &MoveAction) -> bool {
        let moved = self.mover.current().unwrap();
        let address = |part: &Part, block: u64| (part.place.disk, part.place.start.get() + block);
        match action {
            MoveAction::Quiesce(span) => {
                let mut writes = self.writes.iter();
                return writes.all(|w| w.extent != moved.extent || !w.span.overlaps(span));
            }
            MoveAction::Read(part) => {
                let blocks = 0..part.blocks.get();
                self.read = blocks.map(|block| self.found(address(part, block))).collect();
            }
            MoveAction::Write(part) => {
                for (block, content) in self.read.iter().enumerate() {
                    self.cached.insert(address(part, block as u64), *content);
                }
            }
            MoveAction::Flush(disk) => {
                let cached = std::mem::take(&mut self.cached).into_iter();
                let (flushed, left): (BTreeMap<_, _>, _) =
                    cached.partition(|(at, _)| at.0 == *disk);
                self.disks.extend(flushed);
                self.cached = left;
            }
            MoveAction::Record(record) => {
                // A record that is written a second time is the same.
                if self.journal.last() != Some(record) {
                    self.journal.push(*record);
                }
            }
            MoveAction::Drain(part) => {
                let mut writes = self.writes.iter();
                return writes.all(|w| !w.places.contains(&part.place));
            }
        }
        true
    }

    /// What a read finds.
    fn found(&self, at: (u32, u64)) -> Content {
        *self.cached.get(&at).unwrap_or_else(|| &self.disks[&at])
    }

    /// Whether `placement` leads to every acknowledged write, or to a later one on its way, with what `read`
    /// finds on the disks.
    fn check(&self, placement: &Placement, read: &dyn Fn((u32, u64)) -> Content) {
        assert_eq!(placement.faults(), Vec::<String>::new());
        assert_eq!(placement.extents().count(), 6);
        for (extent, known) in placement.extents() {
            for block in 0..known.blocks.get() {
                let at = (known.place.disk, known.place.start.get() + block);
                let found = read(at);
                let acknowledged = self.acknowledged[&(extent, block)];
                assert_eq!((found.extent, found.block), (extent, block), "at {at:?}");
                let is_on_its_way = |w: &ClientWrite| {
                    let covers = w.span.overlaps(&Span { first: block, blocks: 1 });
                    w.extent == extent && w.version == found.version && covers
                };
                assert!(
                    found.version == acknowledged || self.writes.iter().any(is_on_its_way),
                    "{extent} block {block}: version {} for {acknowledged}",
                    found.version
                );
            }
        }
    }

    /// The map as it would be after a crash now.
    fn recovered(&self) -> Placement {
        let mut recovered = self.saved.clone();
        replay(&mut recovered, &self.journal).unwrap();
        recovered
    }
}

#[test]
fn every_extent_has_one_valid_place_after_a_crash_between_any_two_steps() {
    let (mut moves, mut cancelled) = (0, 0);
    for seed in 0..48 {
        let prng = &mut Prng::new(seed, "crashes");
        let mut machine = Machine::new(prng);
        let free = |placement: &Placement| -> u64 {
            (0..DISKS).map(|disk| placement.space(disk).free().get()).sum()
        };
        let room = free(&machine.placement);
        for _ in 0..10_000 {
            machine.step(prng);
            let recovered = machine.recovered();
            machine.check(&recovered, &|at| machine.disks[&at]);
            assert_eq!(free(&recovered), room, "no room is lost");
            // Reads of the running machine find the same.
            machine.check(&machine.placement, &|at| machine.found(at));
        }
        moves += machine.moves;
        cancelled += machine.cancelled;
    }
    assert!(moves > 100 && cancelled > 100, "{moves} moves, {cancelled} given up");
}
