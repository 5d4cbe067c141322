//! Written data on its way from the buffer to the media: what waits, and what goes next.

use freewheel_units::{Lbn, SimTime};

use super::buffer::Buffer;
use crate::drive::Target;

/// The dirty segments that wait for the media.
#[derive(Debug, Clone, Default)]
pub(super) struct WriteBack {
    /// Numbers and segments, oldest first.
    waiting: Vec<(u64, usize)>,
    /// Cylinders and segments of those that wait, ascending.
    by_cylinder: Vec<(u32, usize)>,
    /// By segment; of those that wait none is absent.
    destages: Vec<Option<Destage>>,
    issued: u64,
}

/// A dirty segment that waits for the media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Destage {
    /// Ascending in order of writing.
    pub id: u64,
    pub segment: usize,
    /// Time at which all of its data are in the buffer.
    pub ready: SimTime,
    /// The write of its data.
    pub target: Target,
}

impl WriteBack {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The number that it gets.
    pub(super) fn push(&mut self, segment: usize, ready: SimTime, target: Target) -> u64 {
        self.issued += 1;
        self.waiting.push((self.issued, segment));
        if self.destages.len() <= segment {
            self.destages.resize(segment + 1, None);
        }
        self.set(Destage { id: self.issued, segment, ready, target });
        self.issued
    }

    fn set(&mut self, destage: Destage) {
        let place = (destage.target.at.cylinder, destage.segment);
        let rank = self.by_cylinder.partition_point(|other| *other < place);
        self.by_cylinder.insert(rank, place);
        self.destages[destage.segment] = Some(destage);
    }

    /// Takes it from its segment.
    fn unset(&mut self, segment: usize) -> Destage {
        let destage = self.destages[segment].take().expect("a dirty segment waits");
        let place = (destage.target.at.cylinder, segment);
        let rank = self.by_cylinder.partition_point(|other| *other < place);
        self.by_cylinder.remove(rank);
        destage
    }

    /// More data for a segment that waits, with this number: all of it is in the buffer at `ready`.
    pub(super) fn postpone(&mut self, segment: usize, ready: SimTime, target: Target) -> u64 {
        let destage = self.unset(segment);
        self.set(Destage { ready: destage.ready.max(ready), target, ..destage });
        destage.id
    }

    #[inline]
    pub(super) fn oldest(&self) -> Option<&Destage> {
        self.waiting.first().map(|&(_, segment)| self.of(segment))
    }

    #[inline]
    fn of(&self, segment: usize) -> &Destage {
        self.destages[segment].as_ref().expect("a dirty segment waits")
    }

    /// The newest that has been issued so far: a flush waits for all up to it.
    pub(super) fn newest_id(&self) -> u64 {
        self.issued
    }

    /// True if one issued no later than `id` still waits.
    #[inline]
    pub(super) fn waits_up_to(&self, id: u64) -> bool {
        self.waiting.first().is_some_and(|&(oldest, _)| oldest <= id)
    }

    /// The segment that a write of `start..end` can join. Data of one block leave in the order they
    /// were written, so it is none older than another with one of these blocks.
    #[inline]
    pub(super) fn joinable(
        &self,
        buffer: &Buffer,
        start: Lbn,
        end: Lbn,
        combine: bool,
    ) -> Option<usize> {
        if self.is_empty() {
            return None;
        }
        let near = buffer.dirty_near(start, end);
        let newest = near
            .clone()
            .filter(|&segment| buffer.segment(segment).overlaps(start, end))
            .map(|segment| self.of(segment).id)
            .max()
            .unwrap_or(0);
        near.filter(|&segment| {
            self.of(segment).id >= newest && buffer.can_join(segment, start, end, combine)
        })
        .min()
    }

    /// The segment that goes first so that blocks of `start..end` can go; None when none of them waits.
    #[inline]
    pub(super) fn in_the_way(&self, buffer: &Buffer, start: Lbn, end: Lbn) -> Option<usize> {
        if self.is_empty() {
            return None;
        }
        let segment = self.overlapping(buffer, start, end)?;
        Some(self.first_before(buffer, segment))
    }

    /// The oldest that has a block of `start..end`.
    #[inline]
    fn overlapping(&self, buffer: &Buffer, start: Lbn, end: Lbn) -> Option<usize> {
        let near = buffer.dirty_near(start, end);
        near.filter(|&segment| buffer.segment(segment).overlaps(start, end))
            .min_by_key(|&segment| self.of(segment).id)
    }

    /// Data of one block leave in the order they were written, so an older one that overlaps this
    /// one goes first.
    fn first_before(&self, buffer: &Buffer, mut segment: usize) -> usize {
        loop {
            let held = buffer.segment(segment);
            match self.overlapping(buffer, held.start, held.end) {
                Some(older) if older != segment => segment = older,
                _ => return segment,
            }
        }
    }

    /// Segment with the smallest `cost` among those up to `newest`, the oldest of equals, or the one that
    /// must go before it. `cost` is none for what cannot go yet; when none can, it is the oldest.
    ///
    /// The search goes outwards from `cylinder`. It ends when all that is left is so far away that it
    /// costs more: `floor` is the least cost of that distance or more. `cost` gets the least cost so
    /// far, and may be none for one that costs more than that.
    pub(super) fn cheapest(
        &self,
        buffer: &Buffer,
        newest: u64,
        cylinder: u32,
        floor: impl Fn(u32) -> u64,
        cost: impl Fn(&Destage, u64) -> Option<u64>,
    ) -> Option<usize> {
        let &(oldest, mut best) = self.waiting.first()?;
        if oldest > newest {
            return None;
        }
        let mut least = (u64::MAX, u64::MAX);
        let mut above = self.by_cylinder.partition_point(|place| place.0 < cylinder);
        let mut below = above;
        loop {
            let up = self.by_cylinder.get(above).map(|place| place.0 - cylinder);
            let down = below.checked_sub(1).map(|rank| cylinder - self.by_cylinder[rank].0);
            let upwards = down.is_none_or(|down| up.is_some_and(|up| up <= down));
            let Some(distance) = (if upwards { up } else { down }) else { break };
            if floor(distance) > least.0 {
                break;
            }
            below -= usize::from(!upwards);
            let segment = self.by_cylinder[if upwards { above } else { below }].1;
            above += usize::from(upwards);
            let destage = self.of(segment);
            if destage.id <= newest
                && let Some(cost) = cost(destage, least.0)
                && (cost, destage.id) < least
            {
                (least, best) = ((cost, destage.id), segment);
            }
        }
        Some(self.first_before(buffer, best))
    }

    /// Takes out what waits of a segment.
    pub(super) fn take(&mut self, segment: usize) -> Destage {
        let destage = self.unset(segment);
        let rank = self.waiting.partition_point(|&(id, _)| id < destage.id);
        self.waiting.remove(rank);
        destage
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use freewheel_units::{Blocks, Op, Prng};
    use proptest::prelude::*;

    use super::*;
    use crate::drive::Drive;
    use crate::spec::electronics::BufferSpec;

    fn drive() -> Drive {
        let text = include_str!("../../../../drives/atlas10k.toml");
        Drive::build(&toml::from_str(text).unwrap()).unwrap()
    }

    /// The buffer with, beside it, which write put each block of each segment there.
    struct Traced {
        drive: Drive,
        buffer: Buffer,
        write_back: WriteBack,
        combine: bool,
        segments: Vec<BTreeMap<u64, u64>>,
        on_media: BTreeMap<u64, u64>,
    }

    impl Traced {
        fn new(prng: &mut Prng) -> Self {
            let segments = 2 + prng.below(6) as u32;
            let segment_blocks = 8 + prng.below(20) as u32;
            let spec = BufferSpec { segments, segment_blocks, ..BufferSpec::default() };
            Self {
                drive: drive(),
                buffer: Buffer::new(&spec),
                write_back: WriteBack::default(),
                combine: prng.chance(0.5),
                segments: vec![BTreeMap::new(); segments as usize],
                on_media: BTreeMap::new(),
            }
        }

        fn write(&mut self, start: u64, end: u64, version: u64) {
            let (from, to) = (Lbn::new(start), Lbn::new(end));
            let segment = match self.write_back.joinable(&self.buffer, from, to, self.combine) {
                Some(segment) => {
                    self.buffer.join(segment, from, to);
                    let target = self.target_of(segment);
                    self.write_back.postpone(segment, SimTime::ZERO, target);
                    segment
                }
                None => {
                    let Some(segment) = self.buffer.claim(SimTime::ZERO, from, to, true) else {
                        return;
                    };
                    let target = self.target_of(segment);
                    self.write_back.push(segment, SimTime::ZERO, target);
                    self.segments[segment].clear();
                    segment
                }
            };
            self.segments[segment].extend((start..end).map(|block| (block, version)));
        }

        fn target_of(&self, segment: usize) -> Target {
            let held = self.buffer.segment(segment);
            self.drive.target(held.start, Blocks::new(held.end.get() - held.start.get()), Op::Write)
        }

        /// False when older data come after newer ones.
        fn destage(&mut self, segment: usize) -> bool {
            self.write_back.take(segment);
            self.buffer.destage(segment, SimTime::ZERO);
            self.segments[segment].iter().all(|(&block, &version)| {
                self.on_media.insert(block, version).is_none_or(|before| before < version)
            })
        }
    }

    proptest! {
        #[test]
        fn block_data_leave_in_write_order(seed: u64) {
            let prng = &mut Prng::new(seed, "destages");
            let mut traced = Traced::new(prng);
            for version in 0..100 {
                let start = prng.below(40);
                let end = start + 1 + prng.below(8);
                if prng.chance(0.7) {
                    traced.write(start, end, version);
                    continue;
                }
                let (write_back, buffer) = (&traced.write_back, &traced.buffer);
                let next = if prng.chance(0.5) {
                    let cost = |destage: &Destage, _: u64| Some(destage.id * 7 % 10);
                    write_back.cheapest(buffer, u64::MAX, 0, |_| 0, cost)
                } else {
                    write_back.in_the_way(buffer, Lbn::new(start), Lbn::new(end))
                };
                if let Some(segment) = next {
                    prop_assert!(traced.destage(segment));
                }
            }
        }

        #[test]
        fn outward_search_matches_full_scan(seed: u64) {
            let prng = &mut Prng::new(seed, "cheapest");
            let (drive, spec) = (drive(), BufferSpec { segments: 20, ..BufferSpec::default() });
            let (mut buffer, mut write_back) = (Buffer::new(&spec), WriteBack::default());
            for _ in 0..prng.below(20) {
                let start = Lbn::new(prng.below(drive.blocks().get() / 8) * 8);
                let end = start + Blocks::new(8);
                let segment = buffer.claim(SimTime::ZERO, start, end, true).unwrap();
                let target = drive.target(start, Blocks::new(8), Op::Write);
                write_back.push(segment, SimTime::ZERO, target);
            }
            let (newest, cylinder) = (prng.below(22), prng.below(10_000) as u32);
            let floor = |distance: u32| u64::from(distance / 1000);
            let cost = |destage: &Destage| {
                let distance = destage.target.at.cylinder.abs_diff(cylinder);
                (!destage.id.is_multiple_of(5)).then(|| floor(distance) + destage.id * 7 % 4)
            };
            let all: Vec<&Destage> = write_back.destages.iter().flatten().collect();
            let eligible = all.into_iter().filter(|destage| destage.id <= newest);
            let expected =
                eligible.min_by_key(|destage| (cost(destage).unwrap_or(u64::MAX), destage.id));
            prop_assert_eq!(
                write_back.cheapest(&buffer, newest, cylinder, floor, |destage, most| {
                    cost(destage).filter(|&cost| cost <= most)
                }),
                expected.map(|destage| destage.segment)
            );
        }
    }
}
