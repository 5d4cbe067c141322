//! Moves under clients' writes, on disks with a volatile write cache: after every single step the power could
//! fail, and the map and the disks that are left must hold every write that a client's flush has covered.

use std::collections::BTreeMap;

use freewheel_units::{Blocks, Prng, SimTime};

use crate::cooling::*;
use crate::placement::{Extent, ExtentId, FileId, Place, Placement};

const DISKS: u32 = 3;
/// So little that freed room is soon used again.
const CAPACITY: u64 = 20;

/// Content of a block: a block of an extent in some version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Content {
    extent: ExtentId,
    block: u64,
    version: u64,
}

/// A block of a disk with a volatile write cache.
#[derive(Default)]
struct Block {
    media: Option<Content>,
    /// Written since the disk's last flush, the newest last. Each of them may have reached the media, in any
    /// order, or none.
    cached: Vec<Content>,
}

impl Block {
    /// Content that a read returns.
    fn newest(&self) -> Option<Content> {
        self.cached.last().copied().or(self.media)
    }

    /// All that this block may hold after a power cut now; None where no write ever was.
    fn after_cut(&self) -> impl Iterator<Item = Option<Content>> {
        std::iter::once(self.media).chain(self.cached.iter().copied().map(Some))
    }
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

/// A client's flush on its way.
struct ClientFlush {
    /// Versions that it makes durable: those that were acknowledged when it began.
    covers: BTreeMap<(ExtentId, u64), u64>,
    /// Disks that it has not reached yet.
    left: Vec<u32>,
}

/// Everything, and what of it survives.
struct Machine {
    blocks: BTreeMap<(u32, u64), Block>,
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
    flush: Option<ClientFlush>,
    acknowledged: BTreeMap<(ExtentId, u64), u64>,
    /// Versions that a client's flush has covered.
    promised: BTreeMap<(ExtentId, u64), u64>,
    next_version: u64,
    moves: u64,
    cancelled: u64,
}

impl Machine {
    fn new(prng: &mut Prng) -> Self {
        let mut placement = Placement::new(DISKS, Blocks::new(CAPACITY));
        let mut blocks = BTreeMap::new();
        let mut acknowledged = BTreeMap::new();
        for id in 0..6 {
            let (extent, size) = (ExtentId(id), Blocks::new(3 + prng.below(4)));
            let place = placement.reserve(id % DISKS, size).unwrap();
            placement.insert(extent, Extent { file: FileId(id), blocks: size, place });
            for block in 0..size.get() {
                let media = Some(Content { extent, block, version: 0 });
                let at = (place.disk, place.start.get() + block);
                blocks.insert(at, Block { media, cached: Vec::new() });
                acknowledged.insert((extent, block), 0);
            }
        }
        Self {
            blocks,
            journal: Vec::new(),
            saved: placement.clone(),
            placement,
            mover: Mover::new(MoverSpec { piece: Blocks::new(2), rate: None }),
            action: None,
            read: Vec::new(),
            writes: Vec::new(),
            flush: None,
            promised: acknowledged.clone(),
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
            6 if prng.chance(0.2) => self.go_on_with_a_client_flush(prng),
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
            self.write((place.disk, place.start.get() + block), content);
        }
    }

    fn go_on_with_a_client_flush(&mut self, prng: &mut Prng) {
        let Some(flush) = &mut self.flush else {
            let covers = self.acknowledged.clone();
            self.flush = Some(ClientFlush { covers, left: (0..DISKS).collect() });
            return;
        };
        if flush.left.is_empty() {
            self.promised = self.flush.take().unwrap().covers;
        } else {
            let disk = flush.left.swap_remove(prng.below(flush.left.len() as u64) as usize);
            self.flush_disk(disk);
        }
    }

    fn write(&mut self, at: (u32, u64), content: Content) {
        self.blocks.entry(at).or_default().cached.push(content);
    }

    fn flush_disk(&mut self, disk: u32) {
        for (_, block) in self.blocks.range_mut((disk, 0)..(disk + 1, 0)) {
            block.media = block.newest();
            block.cached.clear();
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

    /// True if the action could be done now.
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
                let newest = |block| self.blocks[&address(part, block)].newest().unwrap();
                self.read = blocks.map(newest).collect();
            }
            MoveAction::Write(part) => {
                for (block, content) in (0..).zip(self.read.clone()) {
                    self.write(address(part, block), content);
                }
            }
            MoveAction::Flush(disk) => self.flush_disk(*disk),
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

    /// Checks that the map leads to every acknowledged write, or to a later one on its way.
    fn check_now(&self) {
        for_each_block(&self.placement, |extent, block, at| {
            let found = self.blocks[&at].newest().unwrap();
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
        });
    }

    /// Checks that the map after a power cut now leads to every promised write or a later one, whichever
    /// cached writes the cut has lost. Losses of one block are independent of those of all others.
    fn check_after_cut(&self, recovered: &Placement) {
        for_each_block(recovered, |extent, block, at| {
            let promised = self.promised[&(extent, block)];
            for found in self.blocks[&at].after_cut() {
                let is_right = found.is_some_and(|found| {
                    (found.extent, found.block) == (extent, block) && found.version >= promised
                });
                assert!(is_right, "{extent} block {block} at {at:?}: {found:?} for {promised}");
            }
        });
    }

    /// The map as it would be after a crash now.
    fn recovered(&self) -> Placement {
        let mut recovered = self.saved.clone();
        replay(&mut recovered, &self.journal).unwrap();
        recovered
    }
}

/// Calls `check` with each extent's blocks and their addresses on the disks.
fn for_each_block(placement: &Placement, mut check: impl FnMut(ExtentId, u64, (u32, u64))) {
    assert_eq!(placement.faults(), Vec::<String>::new());
    assert_eq!(placement.extents().count(), 6);
    for (extent, known) in placement.extents() {
        for block in 0..known.blocks.get() {
            check(extent, block, (known.place.disk, known.place.start.get() + block));
        }
    }
}

#[test]
fn extent_has_one_valid_place_after_crash() {
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
            machine.check_after_cut(&recovered);
            assert_eq!(free(&recovered), room, "no room is lost");
            machine.check_now();
        }
        moves += machine.moves;
        cancelled += machine.cancelled;
    }
    assert!(moves > 100 && cancelled > 50, "{moves} moves, {cancelled} given up");
}
