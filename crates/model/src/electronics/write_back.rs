//! Written data on its way from the buffer to the media: what waits, and what goes next.

use freewheel_units::{Lbn, SimTime};

use super::buffer::Buffer;

/// The dirty segments that wait for the media, oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct WriteBack {
    waiting: Vec<Destage>,
    issued: u64,
}

/// A dirty segment that waits for the media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Destage {
    /// Ascending in order of writing.
    pub id: u64,
    pub segment: usize,
    /// When all of its data are in the buffer.
    pub ready: SimTime,
}

impl WriteBack {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The number that it gets.
    pub(super) fn push(&mut self, segment: usize, ready: SimTime) -> u64 {
        self.issued += 1;
        self.waiting.push(Destage { id: self.issued, segment, ready });
        self.issued
    }

    /// More data for a segment that waits, with this number: all of it is in the buffer at `ready`.
    pub(super) fn postpone(&mut self, segment: usize, ready: SimTime) -> Option<u64> {
        let destage = self.waiting.iter_mut().find(|d| d.segment == segment)?;
        destage.ready = destage.ready.max(ready);
        Some(destage.id)
    }

    pub(super) fn oldest(&self) -> Option<&Destage> {
        self.waiting.first()
    }

    /// The newest that has been issued so far: a flush waits for all up to it.
    pub(super) fn newest_id(&self) -> u64 {
        self.issued
    }

    /// Whether one issued no later than `id` still waits.
    pub(super) fn waits_up_to(&self, id: u64) -> bool {
        self.waiting.first().is_some_and(|destage| destage.id <= id)
    }

    /// The segment that a write of `start..end` can join. Data of one block leave in the order they
    /// were written, so it is none older than another with one of these blocks.
    pub(super) fn joinable(
        &self,
        buffer: &Buffer,
        start: Lbn,
        end: Lbn,
        combine: bool,
    ) -> Option<usize> {
        let overlaps = |d: &Destage| buffer.segment(d.segment).overlaps(start, end);
        let oldest = self.waiting.iter().rposition(overlaps).unwrap_or(0);
        let segments = self.waiting[oldest..].iter().map(|destage| destage.segment);
        segments.filter(|&segment| buffer.can_join(segment, start, end, combine)).min()
    }

    /// Which goes first so that blocks of `start..end` can go; None when none of them waits.
    pub(super) fn in_the_way(&self, buffer: &Buffer, start: Lbn, end: Lbn) -> Option<usize> {
        let index = self.overlapping(buffer, start, end)?;
        Some(self.first_before(buffer, index))
    }

    /// The oldest whose segment has a block of `start..end`.
    fn overlapping(&self, buffer: &Buffer, start: Lbn, end: Lbn) -> Option<usize> {
        self.waiting.iter().position(|d| buffer.segment(d.segment).overlaps(start, end))
    }

    /// Data of one block leave in the order they were written, so an older one that overlaps this
    /// one goes first.
    fn first_before(&self, buffer: &Buffer, mut index: usize) -> usize {
        loop {
            let held = buffer.segment(self.waiting[index].segment);
            match self.overlapping(buffer, held.start, held.end) {
                Some(older) if older < index => index = older,
                _ => return index,
            }
        }
    }

    /// Of those up to `newest` the one with the smallest `cost`, or what must go before it.
    pub(super) fn cheapest(
        &self,
        buffer: &Buffer,
        newest: u64,
        mut cost: impl FnMut(&Destage) -> u64,
    ) -> Option<usize> {
        let all = self.waiting.iter().take_while(|destage| destage.id <= newest).enumerate();
        let (best, _) = all.min_by_key(|(_, destage)| cost(destage))?;
        Some(self.first_before(buffer, best))
    }

    pub(super) fn take(&mut self, index: usize) -> Destage {
        self.waiting.remove(index)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use freewheel_units::Prng;
    use proptest::prelude::*;

    use super::*;
    use crate::spec::electronics::BufferSpec;

    /// The buffer with, beside it, which write put each block of each segment there.
    struct Traced {
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
                    segment
                }
                None => {
                    let Some(segment) = self.buffer.claim(SimTime::ZERO, from, to, true) else {
                        return;
                    };
                    self.write_back.push(segment, SimTime::ZERO);
                    self.segments[segment].clear();
                    segment
                }
            };
            self.segments[segment].extend((start..end).map(|block| (block, version)));
        }

        /// False when older data come after newer ones.
        fn destage(&mut self, index: usize) -> bool {
            let segment = self.write_back.take(index).segment;
            self.buffer.destage(segment, SimTime::ZERO);
            self.segments[segment].iter().all(|(&block, &version)| {
                self.on_media.insert(block, version).is_none_or(|before| before < version)
            })
        }
    }

    proptest! {
        #[test]
        fn data_of_a_block_leave_in_the_order_they_were_written(seed: u64) {
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
                    write_back.cheapest(buffer, u64::MAX, |_| prng.below(10))
                } else {
                    write_back.in_the_way(buffer, Lbn::new(start), Lbn::new(end))
                };
                if let Some(index) = next {
                    prop_assert!(traced.destage(index));
                }
            }
        }
    }
}
