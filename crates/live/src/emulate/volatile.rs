//! A drive's volatile write cache: what has been written and not flushed, kept in memory.
//!
//! No data here reach the store before it is flushed, forced or destaged. As in a real drive, the cache
//! has the newest data of each block, and destages in any order, sector by sector. Which ones it destages
//! early, and which survive a power cut, follows from the seed and the order of the requests.

use std::collections::BTreeMap;
use std::io;

use freewheel_units::{Bytes, Prng};

use super::store::Store;

/// Memory of a piece beside its data.
const PIECE_BYTES: u64 = 512;
/// Parts of a piece that survive a power cut apart from each other, at most.
const PARTS_MAX: u64 = 4096;

/// Contents of the cache at a power cut, and the part that reached the media.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PowerCut {
    /// Written and neither flushed nor destaged.
    pub cached: Bytes,
    /// Survived of that.
    pub kept: Bytes,
}

/// Writes and zeroes that are not in the store.
pub(super) struct Volatile {
    /// By their first byte; no two of them overlap.
    pieces: BTreeMap<u64, WrittenBytes>,
    /// The first bytes of all pieces, in no order, to choose one by chance.
    places: Vec<u64>,
    /// The memory that all of them take, and may take.
    weight: u64,
    room: u64,
    /// Bytes that reach the media as a whole.
    sector: u64,
    prng: Prng,
}

/// Bytes that follow on each other.
struct WrittenBytes {
    length: u64,
    what: Written,
    /// Index of the piece in [`Volatile::places`].
    place: usize,
}

/// Content of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Written {
    Data(Vec<u8>),
    /// Zeroes, for which the room is kept or not.
    Zeroes {
        keep: bool,
    },
}

impl Written {
    /// Keeps what is before a byte; what is from there on.
    fn split_off(&mut self, at: u64) -> Self {
        match self {
            Self::Data(data) => Self::Data(data.split_off(at as usize)),
            zeroes @ Self::Zeroes { .. } => zeroes.clone(),
        }
    }
}

impl WrittenBytes {
    fn weight(&self) -> u64 {
        match &self.what {
            Written::Data(data) => data.len() as u64 + PIECE_BYTES,
            Written::Zeroes { .. } => PIECE_BYTES,
        }
    }

    fn store(&self, store: &Store, offset: u64) -> io::Result<()> {
        match &self.what {
            Written::Data(data) => store.write(offset, data),
            Written::Zeroes { keep } => store.zero(offset, self.length, *keep),
        }
    }
}

impl Volatile {
    /// An empty one that takes about `room` bytes, of a drive with sectors of `sector` bytes.
    pub fn new(room: u64, sector: u64, seed: u64) -> Self {
        Self {
            pieces: BTreeMap::new(),
            places: Vec::new(),
            weight: 0,
            room,
            sector,
            prng: Prng::new(seed, "volatile cache"),
        }
    }

    /// Takes a write, in place of its older data of these bytes. Data beyond the room are destaged by
    /// chance, and some may be destaged although there is room.
    pub fn write(
        &mut self,
        store: &Store,
        offset: u64,
        length: u64,
        what: Written,
    ) -> io::Result<()> {
        // More than that is here only after it could not be destaged.
        self.make_room(store)?;
        self.drop_range(offset, offset + length);
        self.insert(offset, length, what);
        self.make_room(store)?;
        if self.prng.below(2) == 0
            && let Some((from, to)) = self.choose(true)
        {
            // What fails stays here, and a flush will say so.
            let _ = self.destage(store, from, to);
        }
        Ok(())
    }

    /// Pieces of the cache in the bytes `from..to`, cut to them.
    pub fn overlay(&self, from: u64, to: u64) -> Vec<(u64, u64, Written)> {
        let before = self.pieces.range(..from).next_back();
        let all = before.into_iter().chain(self.pieces.range(from..to));
        let overlapping = all.filter(|&(start, piece)| start + piece.length > from);
        overlapping
            .map(|(&start, piece)| {
                let (first, end) = (start.max(from), (start + piece.length).min(to));
                let what = match &piece.what {
                    Written::Data(data) => {
                        Written::Data(data[(first - start) as usize..(end - start) as usize].into())
                    }
                    zeroes => zeroes.clone(),
                };
                (first, end - first, what)
            })
            .collect()
    }

    /// Puts its data of the bytes `from..to` into the store. What cannot be stored stays here.
    pub fn destage(&mut self, store: &Store, from: u64, to: u64) -> io::Result<()> {
        for start in self.isolate(from, to) {
            self.pieces[&start].store(store, start)?;
            self.remove(start);
        }
        Ok(())
    }

    /// Puts everything into the store.
    pub fn flush(&mut self, store: &Store) -> io::Result<()> {
        self.destage(store, 0, u64::MAX)
    }

    /// The power goes: of each write all, none or some sectors reach the store, by chance. The cache is
    /// empty then.
    pub fn cut(&mut self, store: &Store) -> io::Result<PowerCut> {
        let cached: u64 = self.pieces.values().map(|piece| piece.length).sum();
        let lost = self.lost_by_chance();
        lost.into_iter().for_each(|(from, to)| self.drop_range(from, to));
        let kept = self.pieces.values().map(|piece| piece.length).sum();
        let stored = self.flush(store);
        self.drop_range(0, u64::MAX);
        stored.map(|()| PowerCut { cached: Bytes::new(cached), kept: Bytes::new(kept) })
    }

    /// Ranges of whole sectors that do not survive.
    fn lost_by_chance(&mut self) -> Vec<(u64, u64)> {
        let Self { pieces, sector, prng, .. } = self;
        let (mut lost, mut decided) = (Vec::new(), 0);
        for (start, piece) in pieces {
            // A sector of two writes has one fate.
            let from = (start / *sector * *sector).max(decided);
            let to = (start + piece.length).next_multiple_of(*sector);
            let sectors = to.saturating_sub(from) / *sector;
            let step = sectors.div_ceil(PARTS_MAX).max(1) * *sector;
            let fate = prng.below(3);
            for at in (from..to).step_by(step as usize) {
                let is_lost = match fate {
                    0 => true,
                    1 => false,
                    _ => prng.below(2) == 0,
                };
                if is_lost {
                    lost.push((at, (at + step).min(to)));
                }
            }
            decided = to;
        }
        lost
    }

    fn make_room(&mut self, store: &Store) -> io::Result<()> {
        while self.weight > self.room
            && let Some((from, to)) = self.choose(false)
        {
            self.destage(store, from, to)?;
        }
        Ok(())
    }

    /// The whole sectors of a piece chosen by chance, or of a part of one; `None` when there is none.
    fn choose(&mut self, in_part: bool) -> Option<(u64, u64)> {
        if self.places.is_empty() {
            return None;
        }
        let start = self.places[self.prng.below(self.places.len() as u64) as usize];
        let first = start / self.sector;
        let end = (start + self.pieces[&start].length).div_ceil(self.sector);
        let (mut from, mut to) = (first, end);
        if in_part && self.prng.below(2) == 0 {
            from += self.prng.below(end - first);
            to = from + 1 + self.prng.below(end - from);
        }
        Some((from * self.sector, to.min(end) * self.sector))
    }

    /// Cuts pieces at both ends, and lists those between.
    fn isolate(&mut self, from: u64, to: u64) -> Vec<u64> {
        self.split(from);
        self.split(to);
        self.pieces.range(from..to).map(|(&start, _)| start).collect()
    }

    fn split(&mut self, at: u64) {
        let Some((&start, piece)) = self.pieces.range_mut(..at).next_back() else { return };
        let end = start + piece.length;
        if end <= at {
            return;
        }
        let before = piece.weight();
        piece.length = at - start;
        let rest = piece.what.split_off(at - start);
        self.weight = self.weight - before + piece.weight();
        self.insert(at, end - at, rest);
    }

    fn drop_range(&mut self, from: u64, to: u64) {
        self.isolate(from, to).into_iter().for_each(|start| self.remove(start));
    }

    fn insert(&mut self, start: u64, length: u64, what: Written) {
        let piece = WrittenBytes { length, what, place: self.places.len() };
        self.weight += piece.weight();
        self.places.push(start);
        self.pieces.insert(start, piece);
    }

    fn remove(&mut self, start: u64) {
        let Some(piece) = self.pieces.remove(&start) else { return };
        self.weight -= piece.weight();
        self.places.swap_remove(piece.place);
        if let Some(moved) = self.places.get(piece.place) {
            self.pieces.get_mut(moved).expect("it has a place").place = piece.place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTORS: u64 = 64;

    /// A cache and its store, and which version of each sector may be found.
    struct World {
        store: Store,
        cache: Volatile,
        sector: u64,
        /// A promised version, and those that were written since.
        versions: Vec<Vec<u64>>,
        /// Sectors that each version was written to.
        writes: Vec<(u64, u64)>,
    }

    /// Effect of a loss on the writes.
    #[derive(Debug, Default, PartialEq, Eq)]
    struct Losses {
        lost: u64,
        reordered: u64,
        torn: u64,
    }

    impl World {
        fn new(seed: u64, sector: u64, room: u64) -> Self {
            Self {
                store: Store::anonymous(Bytes::new(SECTORS * sector)).unwrap(),
                cache: Volatile::new(room, sector, seed),
                sector,
                versions: vec![vec![0]; SECTORS as usize],
                writes: vec![(0, SECTORS)],
            }
        }

        /// A write of data, or of zeroes as version 0; with FUA sometimes.
        fn write(&mut self, requests: &mut Prng) {
            let version = self.writes.len() as u64;
            let first = requests.below(SECTORS);
            let count = 1 + requests.below((SECTORS - first).min(8));
            let (offset, length) = (first * self.sector, count * self.sector);
            let is_zero = requests.below(6) == 0;
            let what = if is_zero {
                Written::Zeroes { keep: requests.below(2) == 0 }
            } else {
                Written::Data(version.to_le_bytes().repeat(length as usize / 8))
            };
            self.cache.write(&self.store, offset, length, what).unwrap();
            let fua = requests.below(8) == 0;
            if fua {
                self.cache.destage(&self.store, offset, offset + length).unwrap();
            }
            for sector in &mut self.versions[first as usize..(first + count) as usize] {
                if fua {
                    sector.clear();
                }
                sector.push(if is_zero { 0 } else { version });
            }
            self.writes.push((first, if is_zero { 0 } else { count }));
        }

        fn flush(&mut self) {
            self.cache.flush(&self.store).unwrap();
            for sector in &mut self.versions {
                sector.drain(..sector.len() - 1);
            }
        }

        /// The version of each sector, each of one write, in the store alone.
        fn stored(&self) -> Vec<u64> {
            let mut data = vec![0; (SECTORS * self.sector) as usize];
            self.store.read(0, &mut data).unwrap();
            data.chunks(self.sector as usize)
                .map(|sector| {
                    let word = &sector[..8];
                    assert!(sector.chunks(8).all(|other| other == word), "a torn sector");
                    u64::from_le_bytes(word.try_into().unwrap())
                })
                .collect()
        }

        /// Panics where a sector holds forbidden data after a loss.
        fn losses(&self) -> Losses {
            let stored = self.stored();
            let mut losses = Losses::default();
            // The newest versions of all sectors, without any loss, and whether they are there.
            let mut newest: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
            for (held, versions) in stored.iter().zip(&self.versions) {
                assert!(versions.contains(held), "{held} is none of {versions:?}");
                let last = *versions.last().unwrap();
                let (there, gone) = newest.entry(last).or_default();
                *(if last == *held { there } else { gone }) += 1;
            }
            newest.remove(&0);
            losses.lost = newest.values().filter(|(_, gone)| *gone > 0).count() as u64;
            losses.torn =
                newest.values().filter(|(there, gone)| *gone > 0 && *there > 0).count() as u64;
            let first_gone = newest.iter().find(|(_, (there, _))| *there == 0).map(|(at, _)| *at);
            let after = newest.range(first_gone.unwrap_or(u64::MAX)..);
            losses.reordered = after.filter(|(_, (_, gone))| *gone == 0).count() as u64;
            losses
        }
    }

    /// Forty writes with a flush among them, then a cut or just the death of the process.
    fn run(seed: u64, sector: u64, is_cut: bool) -> (Losses, Vec<u64>) {
        let mut world = World::new(seed, sector, 1 << 20);
        let mut requests = Prng::new(seed, "requests");
        let flush = requests.below(40);
        for at in 0..40 {
            if at == flush {
                world.flush();
            }
            world.write(&mut requests);
        }
        if is_cut {
            let cut = world.cache.cut(&world.store).unwrap();
            assert!(
                cut.kept <= cut.cached && world.cache.weight == 0 && world.cache.places.is_empty()
            );
        }
        (world.losses(), world.stored())
    }

    #[test]
    fn volatile_cache_loses_only_unflushed_writes() {
        for (sector, is_cut) in [(512, true), (512, false), (4096, true), (4096, false)] {
            let all: Vec<Losses> = (0..100).map(|seed| run(seed, sector, is_cut).0).collect();
            let having = |what: fn(&Losses) -> u64| all.iter().filter(|of| what(of) > 0).count();
            let counts = [having(|of| of.lost), having(|of| of.reordered), having(|of| of.torn)];
            println!(
                "sectors of {sector}, a cut {is_cut}: {counts:?} of 100 lost, reordered, torn"
            );
            assert!(counts.iter().all(|&count| count > 30), "{counts:?}");
        }
    }

    #[test]
    fn volatile_cache_losses_depend_on_seed() {
        for is_cut in [true, false] {
            let stored = |seed| run(seed, 512, is_cut).1;
            assert_eq!(stored(7), stored(7));
            let of_cache = |seed| {
                let mut world = World::new(seed, 512, 1 << 20);
                let mut requests = Prng::new(1, "requests");
                (0..40).for_each(|_| world.write(&mut requests));
                world.stored()
            };
            assert_ne!(of_cache(1), of_cache(2));
        }
    }

    #[test]
    fn volatile_cache_destages_when_full() {
        let mut world = World::new(3, 512, 20_000);
        let mut requests = Prng::new(3, "requests");
        for _ in 0..2000 {
            world.write(&mut requests);
            assert!(world.cache.weight <= 20_000, "{}", world.cache.weight);
            let counted: u64 = world.cache.pieces.values().map(WrittenBytes::weight).sum();
            assert_eq!(
                (counted, world.cache.places.len()),
                (world.cache.weight, world.cache.pieces.len())
            );
            let mut seen = world.stored();
            for (at, length, what) in world.cache.overlay(0, SECTORS * 512) {
                let words = match what {
                    Written::Data(data) => data,
                    Written::Zeroes { .. } => vec![0; length as usize],
                };
                for (sector, word) in (at / 512..).zip(words.chunks(512)) {
                    seen[sector as usize] = u64::from_le_bytes(word[..8].try_into().unwrap());
                }
            }
            let last: Vec<u64> = world.versions.iter().map(|all| *all.last().unwrap()).collect();
            assert_eq!(seen, last);
        }
    }

    #[test]
    fn volatile_cache_reads_parts_of_writes() {
        let mut cache = Volatile::new(1 << 20, 512, 1);
        let data: Vec<u8> = (0..8).flat_map(|sector| [sector; 512]).collect();
        cache.insert(512, 4096, Written::Data(data.clone()));
        for (from, to) in [(0, 1024), (512, 4608), (1024, 2048), (4096, 9000), (3000, 3001)] {
            let (first, end) = (512.max(from), 4608.min(to));
            let part = data[first - 512..end - 512].to_vec();
            let seen = (first as u64, (end - first) as u64, Written::Data(part));
            assert_eq!(cache.overlay(from as u64, to as u64), [seen]);
        }
        assert_eq!((cache.overlay(0, 512), cache.overlay(4608, 9000)), (Vec::new(), Vec::new()));
    }

    #[test]
    fn volatile_cache_keeps_shared_sector_whole() {
        for seed in 0..60 {
            let store = Store::anonymous(Bytes::from_kib(64)).unwrap();
            let mut cache = Volatile::new(1 << 20, 4096, seed);
            for (at, byte) in [(0, 1), (2048, 2)] {
                let what = Written::Data(vec![byte; 2048]);
                cache.insert(at, 2048, what);
            }
            if seed % 2 == 0 {
                let (from, to) = cache.choose(true).unwrap();
                cache.destage(&store, from, to).unwrap();
                assert_eq!((from, to, cache.weight), (0, 4096, 0));
            }
            cache.cut(&store).unwrap();
            let mut sector = [0; 4096];
            store.read(0, &mut sector).unwrap();
            assert_eq!(sector[0] == 1, sector[4095] == 2, "seed {seed}");
        }
    }

    #[test]
    fn volatile_cache_zeroes_take_no_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let store = Store::open(&path, Bytes::new(4 << 30)).unwrap();
        let mut cache = Volatile::new(1 << 20, 512, 1);
        cache.insert(0, 4 << 30, Written::Zeroes { keep: false });
        cache.write(&store, 1 << 30, 4096, Written::Data(vec![7; 4096])).unwrap();
        assert!(cache.weight < 8 * (4096 + 2 * PIECE_BYTES));
        // A file that was cut short takes no write.
        std::fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        let before = cache.pieces.len();
        assert!(before > 0 && cache.flush(&store).is_err());
        assert_eq!(cache.pieces.len(), before);
    }
}
