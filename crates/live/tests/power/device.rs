//! A disk with a volatile write cache, in virtual time.
//!
//! A sector is one number, its *value*: 0 for zeroes, otherwise what [`value`] makes of the write and of the
//! sector's own number, so that a sector in the wrong place is seen.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use freewheel_live::serve::backend::{
    Abilities, DeviceCommand, DeviceError, DeviceErrorKind, DeviceOp,
};
use freewheel_model::sched::CommandMark;
use freewheel_sim::black_box::{self, EmulatedDrive};
use freewheel_units::{BLOCK_BYTES, Op, Prng, SimDuration, SimTime};

/// Bytes of a sector of the test: a block.
pub const SECTOR: usize = BLOCK_BYTES as usize;

/// The value of a sector that is no whole value: a write that was torn inside it.
pub const GARBAGE: u64 = u64::MAX;

/// Value that write `number` puts into sector `lbn`.
pub fn value(number: u64, lbn: u64) -> u64 {
    number << 24 | lbn
}

/// The bytes of sectors.
pub fn bytes_of(values: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.size_hint().0 * SECTOR);
    for value in values {
        let mut sector = [0; SECTOR];
        let word = value.to_le_bytes();
        sector.chunks_exact_mut(word.len()).for_each(|part| part.copy_from_slice(&word));
        bytes.extend_from_slice(&sector);
    }
    bytes
}

/// The values of sectors.
pub fn values_of(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.chunks(SECTOR).map(|sector| {
        let first = sector.first_chunk().map_or(GARBAGE, |first| u64::from_le_bytes(*first));
        let is_whole = sector.len() == SECTOR && sector[8..] == sector[..SECTOR - 8];
        if is_whole { first } else { GARBAGE }
    })
}

/// Character of a disk.
#[derive(Debug, Clone)]
pub struct Character {
    pub abilities: Abilities,
    /// Sectors that a power cut tears a write between.
    pub torn_sectors: u64,
    /// Chance of an error of a command.
    pub errors: f64,
    /// Chance that a flush fails, which loses a part of the data to be kept.
    pub failed_flushes: f64,
    /// Says that it can erase, and refuses.
    pub refuses: bool,
    /// Sectors that cannot be read until they are written.
    pub bad: BTreeSet<u64>,
}

/// A value in the volatile cache.
#[derive(Debug, Clone, Copy)]
struct Cached {
    value: u64,
    /// Number of the command that wrote it.
    command: u64,
    /// Number of commands that had completed when it did.
    completed: Option<u64>,
    /// Set if it never reaches the media, since a flush failed.
    is_lost: bool,
}

/// A command at the disk.
struct Inside {
    command: DeviceCommand,
    /// Time at which it completes; none where the drive's mechanics decide.
    at: Option<SimTime>,
    /// Set when it has taken effect.
    is_applied: bool,
    /// Number of commands that had completed before a flush came.
    behind: u64,
    /// Set for an erasure: the sectors lose their data.
    erases: bool,
}

/// A command that has completed.
pub struct Completed {
    pub id: u64,
    pub at: SimTime,
    pub what: DeviceOp,
    pub start: u64,
    pub result: Result<Vec<u8>, DeviceError>,
}

/// Counts of what happened, for the summary.
#[derive(Debug, Clone, Default)]
pub struct Happened {
    pub failed_flushes: u64,
    pub failed_reads: u64,
    pub failed_writes: u64,
    pub refused_erasures: u64,
    pub device_flushes: u64,
    pub device_fua: u64,
    pub trims: u64,
    pub zeroes: u64,
    pub lost_sectors: u64,
    pub torn_writes: u64,
}

pub struct Disk {
    pub character: Character,
    pub media: Vec<u64>,
    cache: BTreeMap<u64, Vec<Cached>>,
    inside: BTreeMap<u64, Inside>,
    /// Mechanics that time reads and writes; without them times are by chance.
    drive: Option<EmulatedDrive>,
    ready: VecDeque<(u64, SimTime)>,
    next: u64,
    completed: u64,
    /// A flush covers this many completions less: for a planted fault.
    pub flush_backdated: u64,
    /// The server has been told that a flush failed.
    pub has_failed_flush: bool,
    prng: Prng,
    pub happened: Happened,
}

impl Disk {
    pub fn new(character: Character, media: Vec<u64>, prng: Prng) -> Self {
        let (drive, ready) = (None, VecDeque::new());
        Self {
            character,
            media,
            cache: BTreeMap::new(),
            inside: BTreeMap::new(),
            drive,
            ready,
            next: 0,
            completed: 0,
            flush_backdated: 0,
            has_failed_flush: false,
            prng,
            happened: Happened::default(),
        }
    }

    /// Power is on, and no command is under way.
    pub fn start(&mut self, drive: Option<EmulatedDrive>) {
        self.drive = drive;
        self.has_failed_flush = false;
    }

    /// Value that a read brings now.
    pub fn current(&self, lbn: u64) -> u64 {
        let last = self.cache.get(&lbn).and_then(|cached| cached.last());
        last.map_or(self.media[lbn as usize], |cached| cached.value)
    }

    fn some_time(&mut self, now: SimTime) -> SimTime {
        let us = match self.prng.below(20) {
            0 => self.prng.below(200_000),
            1..8 => self.prng.below(300),
            _ => self.prng.below(12_000),
        };
        now + SimDuration::from_us(us)
    }

    /// Takes a command that begins later, by `after`.
    pub fn submit(&mut self, now: SimTime, after: SimDuration, command: DeviceCommand) {
        self.advance(now);
        let key = self.next;
        self.next += 1;
        let blocks = (command.data.len() / SECTOR) as u32;
        let op = match command.what {
            DeviceOp::Read => Some(Op::Read),
            DeviceOp::Write { .. } => Some(Op::Write),
            _ => None,
        };
        let mechanics =
            self.drive.as_ref().is_some_and(EmulatedDrive::has_room) && after == SimDuration::ZERO;
        let at = match op.filter(|_| mechanics) {
            None => Some(self.some_time(now + after)),
            Some(op) => {
                let (id, start, fua) = (key, command.start, false);
                let drive = self.drive.as_mut().expect("it has mechanics");
                drive.submit(
                    now,
                    black_box::Command { id, op, start, blocks, fua, mark: CommandMark::None },
                );
                None
            }
        };
        let behind = self.completed.saturating_sub(self.flush_backdated);
        let erases = self.prng.chance(0.7);
        let mut inside = Inside { command, at, is_applied: false, behind, erases };
        // It may take effect at once, although it completes later.
        let is_early = after == SimDuration::ZERO && self.prng.chance(0.4);
        if is_early && inside.command.what != DeviceOp::Flush {
            self.apply(key, &mut inside);
        }
        self.inside.insert(key, inside);
    }

    /// Time of its next event.
    pub fn next_event(&self) -> Option<SimTime> {
        let ready = self.ready.iter().map(|(_, at)| *at);
        let timed = self.inside.values().filter_map(|inside| inside.at);
        let drive = self.drive.as_ref().and_then(EmulatedDrive::next_event);
        ready.chain(timed).chain(drive.map(|event| event.time())).min()
    }

    fn advance(&mut self, now: SimTime) {
        while let Some(drive) = &mut self.drive
            && let Some(event) = drive.next_event().filter(|event| event.time() <= now)
        {
            let reply = drive.advance(event.time());
            self.ready.extend(reply.map(|reply| (reply.id, reply.at)));
        }
    }

    /// A command that has completed by now.
    pub fn completion(&mut self, now: SimTime) -> Option<Completed> {
        self.advance(now);
        let timed = self.inside.iter().filter_map(|(&key, inside)| Some((key, inside.at?)));
        let first = self.ready.iter().copied().chain(timed).min_by_key(|&(key, at)| (at, key));
        let (key, at) = first.filter(|(_, at)| *at <= now)?;
        self.ready.retain(|(ready, _)| *ready != key);
        let inside = self.inside.remove(&key).expect("it has not completed");
        let (id, what, start) =
            (inside.command.id, inside.command.what, inside.command.start.get());
        let result = self.complete(key, inside);
        Some(Completed { id, at, what, start, result })
    }

    fn error(kind: DeviceErrorKind, message: &str) -> DeviceError {
        DeviceError { kind, message: message.into() }
    }

    fn complete(&mut self, key: u64, mut inside: Inside) -> Result<Vec<u8>, DeviceError> {
        let fails = self.prng.chance(self.character.errors);
        let io = |message| Err(Self::error(DeviceErrorKind::Io, message));
        let (start, what) = (inside.command.start.get(), inside.command.what);
        match what {
            DeviceOp::Read => {
                let sectors = (inside.command.data.len() / SECTOR) as u64;
                let is_bad = self.character.bad.range(start..start + sectors).next().is_some();
                if fails || is_bad {
                    self.happened.failed_reads += 1;
                    return io("it cannot be read");
                }
            }
            DeviceOp::Flush => {
                if self.prng.chance(self.character.failed_flushes) {
                    self.fail_flush(inside.behind);
                    return io("a write was lost");
                }
                self.flush(inside.behind);
                self.completed += 1;
                return Ok(Vec::new());
            }
            DeviceOp::Trim { .. } | DeviceOp::WriteZeroes { .. } if self.character.refuses => {
                self.happened.refused_erasures += 1;
                return Err(Self::error(DeviceErrorKind::NotSupported, "it cannot erase"));
            }
            _ if fails => {
                self.happened.failed_writes += 1;
                // The error may be that of its sync, which the system reports once.
                if what == (DeviceOp::Write { fua: true }) && self.prng.chance(0.5) {
                    self.lose(self.completed);
                }
                if !inside.is_applied && self.prng.chance(0.5) {
                    self.apply(key, &mut inside);
                }
                self.settle(key);
                return io("it cannot be written");
            }
            _ => {}
        }
        if !inside.is_applied {
            self.apply(key, &mut inside);
        }
        self.settle(key);
        if what == (DeviceOp::Write { fua: true }) {
            self.happened.device_fua += 1;
            self.keep(key);
        }
        self.completed += 1;
        Ok(std::mem::take(&mut inside.command.data))
    }

    /// A command takes effect: of a read on its data, of others on the cache.
    fn apply(&mut self, key: u64, inside: &mut Inside) {
        inside.is_applied = true;
        let (start, data) = (inside.command.start.get(), &mut inside.command.data);
        match inside.command.what {
            DeviceOp::Read => {
                let sectors = (data.len() / SECTOR) as u64;
                *data = bytes_of((start..start + sectors).map(|lbn| self.current(lbn)));
            }
            DeviceOp::Write { .. } => {
                for (lbn, value) in (start..).zip(values_of(data)) {
                    self.put(key, lbn, value);
                }
            }
            DeviceOp::Trim { blocks } => {
                self.happened.trims += 1;
                if inside.erases && !self.character.refuses {
                    (start..start + blocks).for_each(|lbn| self.put(key, lbn, 0));
                }
            }
            DeviceOp::WriteZeroes { blocks, .. } => {
                self.happened.zeroes += 1;
                if !self.character.refuses {
                    (start..start + blocks).for_each(|lbn| self.put(key, lbn, 0));
                }
            }
            DeviceOp::Flush => {}
        }
    }

    fn put(&mut self, command: u64, lbn: u64, value: u64) {
        if lbn >= self.media.len() as u64 {
            return;
        }
        self.character.bad.remove(&lbn);
        let cached = Cached { value, command, completed: None, is_lost: false };
        self.cache.entry(lbn).or_default().push(cached);
    }

    /// A command has completed: a later flush covers it.
    fn settle(&mut self, command: u64) {
        let now = self.completed;
        for cached in self.cache.values_mut().flatten() {
            if cached.command == command {
                cached.completed = Some(now);
            }
        }
    }

    /// Brings the writes among the first `behind` completions to the media.
    fn flush(&mut self, behind: u64) {
        self.happened.device_flushes += 1;
        self.bring(|cached| cached.completed.is_some_and(|completed| completed < behind));
    }

    /// Brings what a command wrote to the media.
    fn keep(&mut self, command: u64) {
        self.bring(|cached| cached.command == command);
    }

    fn bring(&mut self, covers: impl Fn(&Cached) -> bool) {
        let media = &mut self.media;
        self.cache.retain(|&lbn, cached| {
            if let Some(last) = cached.iter().rposition(&covers) {
                let kept = cached[..=last].iter().rposition(|cached| !cached.is_lost);
                if let Some(kept) = kept {
                    media[lbn as usize] = cached[kept].value;
                    cached.drain(..=kept);
                }
                // What is lost is read until the power goes.
            }
            !cached.is_empty()
        });
    }

    /// A flush has failed.
    fn fail_flush(&mut self, behind: u64) {
        self.happened.failed_flushes += 1;
        self.has_failed_flush = true;
        self.lose(behind);
    }

    /// Some of what had completed before this number of commands had never reaches the media.
    fn lose(&mut self, behind: u64) {
        let prng = &mut self.prng;
        for cached in self.cache.values_mut().flatten() {
            let is_covered = cached.completed.is_some_and(|completed| completed < behind);
            cached.is_lost |= is_covered && prng.chance(0.7);
        }
    }

    /// The power goes: of each sector the cache keeps something by chance, not older than what the media
    /// have. Writes are torn between sectors.
    pub fn power_cut(&mut self) {
        for (key, mut inside) in std::mem::take(&mut self.inside) {
            if !inside.is_applied && inside.command.what != DeviceOp::Read && self.prng.chance(0.5)
            {
                self.apply(key, &mut inside);
            }
        }
        (self.drive, self.ready) = (None, VecDeque::new());
        // Mostly some of it; sometimes none, or all of it.
        let kept = match self.prng.below(6) {
            0 => Some(0),
            1 => Some(u64::MAX),
            _ => None,
        };
        let mut fates: BTreeMap<u64, (bool, bool)> = BTreeMap::new();
        let (mut group, mut by_chance) = (u64::MAX, 0);
        for (lbn, cached) in std::mem::take(&mut self.cache) {
            if lbn / self.character.torn_sectors != group {
                group = lbn / self.character.torn_sectors;
                by_chance = self.prng.next_u64();
            }
            let left: Vec<&Cached> = cached.iter().filter(|cached| !cached.is_lost).collect();
            let many = left.len() as u64;
            let first = kept.map_or(by_chance % (many + 1), |kept| kept.min(many));
            if first > 0 {
                self.media[lbn as usize] = left[first as usize - 1].value;
            }
            self.happened.lost_sectors += u64::from(first < cached.len() as u64);
            for (at, cached) in left.iter().enumerate() {
                let fate = fates.entry(cached.command).or_default();
                let is_kept = (at as u64) < first;
                (fate.0, fate.1) = (fate.0 | is_kept, fate.1 | !is_kept);
            }
        }
        self.happened.torn_writes +=
            fates.values().filter(|(kept, lost)| *kept && *lost).count() as u64;
    }
}
