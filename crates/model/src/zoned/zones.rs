//! Write pointers and conditions of all zones of a drive.

use freewheel_units::{Blocks, Lbn};
use thiserror::Error;

use crate::lru::LruList;
use crate::spec::zoned::{ZonedKind, ZonedSpec};

/// The zones of a drive: what has been written, what is open. Zones are numbered from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zones {
    kind: ZonedKind,
    blocks: u64,
    zone_blocks: u64,
    conventional: u32,
    max_open: u32,
    states: Vec<State>,
    implicitly_open: LruList,
    explicitly_open: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    condition: ZoneCondition,
    /// Blocks from the zone's start to its write pointer.
    written: u64,
}

/// A zone as REPORT ZONES describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone {
    /// Writes that the zone takes.
    pub zone_type: ZoneType,
    /// State of the zone.
    pub condition: ZoneCondition,
    /// First block of the zone.
    pub start: Lbn,
    /// The first block behind it.
    pub end: Lbn,
    /// Block at which the next write must begin. None for conventional and for full zones.
    pub write_pointer: Option<Lbn>,
}

/// Writes that a zone takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZoneType {
    /// Any.
    Conventional,
    /// At the write pointer only.
    SequentialWriteRequired,
    /// Any, but at the write pointer they cost least.
    SequentialWritePreferred,
}

/// The state of a zone's write pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZoneCondition {
    /// A conventional zone has no write pointer.
    NotWritePointer,
    /// No block is written since the last reset.
    Empty,
    /// Opened by a write. The drive may close it when it needs the room.
    ImplicitlyOpen,
    /// Opened by OPEN ZONE, and open until it is closed, finished, reset or full.
    ExplicitlyOpen,
    /// Written in part, and not open.
    Closed,
    /// Written to its end, or finished.
    Full,
}

/// Reason why a drive refuses a command, by the additional sense code it answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum ZoneError {
    /// LOGICAL BLOCK ADDRESS OUT OF RANGE.
    #[error("logical block address out of range: {start} + {blocks} blocks of {capacity}")]
    OutOfRange {
        /// First block of the command.
        start: Lbn,
        blocks: u64,
        capacity: u64,
    },
    /// UNALIGNED WRITE COMMAND: a sequential write required zone is written at its write pointer.
    #[error(
        "unaligned write command: {start} is not the write pointer of zone {zone}, {write_pointer}"
    )]
    UnalignedWrite {
        zone: u32,
        /// First block of the write.
        start: Lbn,
        /// Block at which the write should have begun.
        write_pointer: Lbn,
    },
    /// WRITE BOUNDARY VIOLATION: the write leaves its sequential write required zone, or leads
    /// from a conventional zone into one.
    #[error(
        "write boundary violation: the write ends at {end}, behind {boundary}, where zone {zone} or its kind ends"
    )]
    WriteBoundaryViolation {
        /// The zone it begins in.
        zone: u32,
        end: Lbn,
        /// Block at which the write should have ended.
        boundary: Lbn,
    },
    /// INVALID FIELD IN CDB: a full zone takes no write before it is reset.
    #[error("invalid field in CDB: zone {zone} is full")]
    Full { zone: u32 },
    /// INVALID FIELD IN CDB: the zone has no write pointer, or there is no such zone.
    #[error("invalid field in CDB: zone {zone} has no write pointer")]
    NoWritePointer { zone: u32 },
    /// INSUFFICIENT ZONE RESOURCES: the limit of explicitly open zones is reached.
    #[error("insufficient zone resources: {open} zones are explicitly open, as many as may be")]
    InsufficientZoneResources { open: u32 },
}

impl Zones {
    /// All zones empty. `spec` is one that [`crate::drive::Drive::build`] took for a drive of
    /// `blocks`. The zones of a drive-managed drive are conventional ones to its host.
    pub fn new(spec: &ZonedSpec, blocks: Blocks) -> Self {
        let count = blocks.get().div_ceil(spec.zone_blocks.get());
        let count = u32::try_from(count).expect("zones that were checked");
        let conventional =
            if spec.kind == ZonedKind::DriveManaged { count } else { spec.conventional_zones };
        Self {
            kind: spec.kind,
            blocks: blocks.get(),
            zone_blocks: spec.zone_blocks.get(),
            conventional,
            max_open: spec.max_open_zones,
            states: (0..count)
                .map(|zone| {
                    let has_none = zone < conventional;
                    let condition = if has_none {
                        ZoneCondition::NotWritePointer
                    } else {
                        ZoneCondition::Empty
                    };
                    State { condition, written: 0 }
                })
                .collect(),
            implicitly_open: LruList::new(count),
            explicitly_open: 0,
        }
    }

    /// Number of zones.
    pub fn count(&self) -> u32 {
        self.states.len() as u32
    }

    /// Zones that are open, implicitly or explicitly.
    pub fn open_count(&self) -> u32 {
        self.implicitly_open.len() + self.explicitly_open
    }

    /// The zone of a block. Panics beyond the drive.
    #[inline]
    pub fn zone_of(&self, block: Lbn) -> u32 {
        assert!(block.get() < self.blocks, "{block} is beyond the drive's {} blocks", self.blocks);
        (block.get() / self.zone_blocks) as u32
    }

    /// A zone as REPORT ZONES describes it. Panics when there is no such zone.
    pub fn zone(&self, zone: u32) -> Zone {
        let State { condition, written } = self.states[zone as usize];
        let zone_type = self.type_of(zone);
        let start = self.start_of(zone);
        let has_pointer = zone_type != ZoneType::Conventional && condition != ZoneCondition::Full;
        Zone {
            zone_type,
            condition,
            start: Lbn::new(start),
            end: Lbn::new(self.end_of(zone)),
            write_pointer: has_pointer.then(|| Lbn::new(start + written)),
        }
    }

    fn type_of(&self, zone: u32) -> ZoneType {
        if zone < self.conventional {
            ZoneType::Conventional
        } else if self.kind == ZonedKind::HostManaged {
            ZoneType::SequentialWriteRequired
        } else {
            ZoneType::SequentialWritePreferred
        }
    }

    fn start_of(&self, zone: u32) -> u64 {
        u64::from(zone) * self.zone_blocks
    }

    /// The last zone may be smaller than the others.
    fn end_of(&self, zone: u32) -> u64 {
        (self.start_of(zone) + self.zone_blocks).min(self.blocks)
    }

    /// True if the drive would take a write of `blocks` from `start` on. One of no blocks is always taken.
    #[inline]
    pub fn check(&self, start: Lbn, blocks: Blocks) -> Result<(), ZoneError> {
        let end = start.get().checked_add(blocks.get()).filter(|&end| end <= self.blocks);
        let Some(end) = end else {
            let (blocks, capacity) = (blocks.get(), self.blocks);
            return Err(ZoneError::OutOfRange { start, blocks, capacity });
        };
        if blocks == Blocks::ZERO {
            return Ok(());
        }
        let zone = self.zone_of(start);
        match self.type_of(zone) {
            ZoneType::Conventional => self.check_conventional(zone, end),
            ZoneType::SequentialWritePreferred => Ok(()),
            ZoneType::SequentialWriteRequired => self.check_sequential(zone, start, end),
        }
    }

    fn check_conventional(&self, zone: u32, end: u64) -> Result<(), ZoneError> {
        let boundary = self.start_of(self.conventional);
        if end > boundary && self.kind == ZonedKind::HostManaged {
            return Err(violation(zone, end, boundary));
        }
        Ok(())
    }

    fn check_sequential(&self, zone: u32, start: Lbn, end: u64) -> Result<(), ZoneError> {
        let State { condition, written } = self.states[zone as usize];
        let boundary = self.end_of(zone);
        if end > boundary {
            return Err(violation(zone, end, boundary));
        }
        if condition == ZoneCondition::Full {
            return Err(ZoneError::Full { zone });
        }
        let write_pointer = Lbn::new(self.start_of(zone) + written);
        if start != write_pointer {
            return Err(ZoneError::UnalignedWrite { zone, start, write_pointer });
        }
        self.check_room(zone)
    }

    /// True if the zone is open or could be opened.
    fn check_room(&self, zone: u32) -> Result<(), ZoneError> {
        let condition = self.states[zone as usize].condition;
        let opens = matches!(condition, ZoneCondition::Empty | ZoneCondition::Closed);
        if opens && self.is_limited() && self.explicitly_open >= self.max_open {
            return Err(ZoneError::InsufficientZoneResources { open: self.explicitly_open });
        }
        Ok(())
    }

    /// True if the number of open zones is more than advice.
    fn is_limited(&self) -> bool {
        self.kind == ZonedKind::HostManaged
    }

    /// Takes a write of `blocks` from `start` on, or refuses it and leaves everything as it was.
    #[inline]
    pub fn write(&mut self, start: Lbn, blocks: Blocks) -> Result<(), ZoneError> {
        self.check(start, blocks)?;
        if blocks == Blocks::ZERO {
            return Ok(());
        }
        let end = start + blocks;
        let last = self.zone_of(Lbn::new(end.get() - 1));
        for zone in self.zone_of(start).max(self.conventional)..=last {
            self.advance(zone, end.get().min(self.end_of(zone)));
        }
        Ok(())
    }

    /// A sequential zone has been written up to `end`.
    fn advance(&mut self, zone: u32, end: u64) {
        let start = self.start_of(zone);
        let is_full = end == self.end_of(zone);
        match self.states[zone as usize].condition {
            ZoneCondition::Full => return,
            ZoneCondition::ExplicitlyOpen => {}
            ZoneCondition::ImplicitlyOpen => {
                self.implicitly_open.remove(zone);
                self.implicitly_open.push(zone);
            }
            _ => self.open_as(zone, ZoneCondition::ImplicitlyOpen),
        }
        let state = &mut self.states[zone as usize];
        // A host-aware drive may be written behind its write pointer.
        state.written = state.written.max(end - start);
        if is_full {
            self.leave(zone, ZoneCondition::Full);
        }
    }

    /// Opens a zone that is not open, closing the one that was not written for longest if no more
    /// may be open.
    fn open_as(&mut self, zone: u32, condition: ZoneCondition) {
        if self.is_limited()
            && self.open_count() >= self.max_open
            && let Some(oldest) = self.implicitly_open.oldest()
        {
            self.leave(oldest, ZoneCondition::Closed);
        }
        self.states[zone as usize].condition = condition;
        match condition {
            ZoneCondition::ExplicitlyOpen => self.explicitly_open += 1,
            _ => self.implicitly_open.push(zone),
        }
    }

    /// Gives a zone a condition in which it is not open.
    fn leave(&mut self, zone: u32, condition: ZoneCondition) {
        match self.states[zone as usize].condition {
            ZoneCondition::ImplicitlyOpen => self.implicitly_open.remove(zone),
            ZoneCondition::ExplicitlyOpen => self.explicitly_open -= 1,
            _ => {}
        }
        self.states[zone as usize].condition = condition;
    }

    /// OPEN ZONE: keeps the zone open until it is closed, finished, reset or full. A full zone
    /// stays as it is.
    pub fn open(&mut self, zone: u32) -> Result<(), ZoneError> {
        self.check_write_pointer(zone)?;
        self.check_room(zone)?;
        match self.states[zone as usize].condition {
            ZoneCondition::Full | ZoneCondition::ExplicitlyOpen => {}
            ZoneCondition::ImplicitlyOpen => {
                self.implicitly_open.remove(zone);
                self.states[zone as usize].condition = ZoneCondition::ExplicitlyOpen;
                self.explicitly_open += 1;
            }
            _ => self.open_as(zone, ZoneCondition::ExplicitlyOpen),
        }
        Ok(())
    }

    /// CLOSE ZONE: an open zone is closed, or empty without blocks; others stay as they are.
    pub fn close(&mut self, zone: u32) -> Result<(), ZoneError> {
        self.check_write_pointer(zone)?;
        let State { condition, written } = self.states[zone as usize];
        if matches!(condition, ZoneCondition::ImplicitlyOpen | ZoneCondition::ExplicitlyOpen) {
            let to = if written == 0 { ZoneCondition::Empty } else { ZoneCondition::Closed };
            self.leave(zone, to);
        }
        Ok(())
    }

    /// FINISH ZONE: the zone is full, even without writes.
    pub fn finish(&mut self, zone: u32) -> Result<(), ZoneError> {
        self.check_write_pointer(zone)?;
        self.leave(zone, ZoneCondition::Full);
        Ok(())
    }

    /// RESET WRITE POINTER: the zone is empty.
    pub fn reset(&mut self, zone: u32) -> Result<(), ZoneError> {
        self.check_write_pointer(zone)?;
        self.leave(zone, ZoneCondition::Empty);
        self.states[zone as usize].written = 0;
        Ok(())
    }

    /// RESET WRITE POINTER for each zone that lies wholly within `blocks` from `start` on and has
    /// a write pointer.
    pub fn reset_within(&mut self, start: Lbn, blocks: Blocks) {
        let end = (start + blocks).get();
        let first = start.get().div_ceil(self.zone_blocks).max(u64::from(self.conventional));
        for zone in first..u64::from(self.count()) {
            let zone = zone as u32;
            if self.end_of(zone) > end {
                break;
            }
            self.reset(zone).expect("a zone with a write pointer");
        }
    }

    fn check_write_pointer(&self, zone: u32) -> Result<(), ZoneError> {
        if (self.conventional..self.count()).contains(&zone) {
            Ok(())
        } else {
            Err(ZoneError::NoWritePointer { zone })
        }
    }
}

fn violation(zone: u32, end: u64, boundary: u64) -> ZoneError {
    ZoneError::WriteBoundaryViolation { zone, end: Lbn::new(end), boundary: Lbn::new(boundary) }
}
