//! AMP: prefetching that learns for each stream how much to fetch, and how early (Gill and Bathen,
//! "AMP: Adaptive Multi-stream Prefetching in a Shared Cache", FAST 2007).
//!
//! The problem: a set of blocks that is too small costs a stream many accesses, and one that is too
//! large is evicted before it is read. Both depend on the stream's pace and on the others in the cache.
//! Each stream has a degree p, the size of its next set, and a trigger distance g. The next set is
//! fetched when the reader is g blocks or less before the end of the last one:
//!
//! ```text
//!            read        last set       next set
//!   ########|----------------------~|==============|
//!                 trigger at -> |<- g ->|<----- p ---->|
//! ```
//!
//! | event | p | g |
//! |---|---|---|
//! | the last block of a set is read from memory | grows by the read | |
//! | a block of the stream is evicted unread | falls by it | falls by it |
//! | a read waits for a set on its way | | grows by the read |
//!
//! Worked example, with sets of 64 blocks at first and reads of 8. The second read, of blocks 8 to 15,
//! shows a stream: it misses, and blocks 16 to 79 follow it. The read of blocks 72 to 79 ends that set,
//! so p becomes 72, and as g is 0 the set from 80 to 151 is fetched now. The read of blocks 80 to 87
//! comes before it and waits: g becomes 8. So the read of blocks 136 to 143, 8 before the end, fetches
//! blocks 152 to 223.

use std::collections::VecDeque;
use std::ops::Range;

/// The smallest set: a page of 4 KiB.
const SMALLEST: u64 = 8;

/// Sequential streams, least recently read first. They are few, so they are searched from end to end.
#[derive(Debug, Clone)]
pub(super) struct Amp {
    /// Blocks of a stream's first set.
    initial: u64,
    /// Blocks of the largest set.
    maximum: u64,
    /// Streams that are known at a time.
    streams_max: usize,
    capacity: u64,
    streams: Vec<Stream>,
}

#[derive(Debug, Clone)]
struct Stream {
    /// The block after the last one read.
    next: u64,
    /// True if a second read has continued the first.
    is_sequential: bool,
    /// Ends of the sets that are not read to their end, in ascending order.
    sets: VecDeque<u64>,
    /// p, the size of the next set.
    degree: u64,
    /// g: how long before the end of its last set the next one is fetched.
    distance: u64,
}

impl Stream {
    /// A set is fetched when a part of the last one is read, not before.
    fn distance_max(&self) -> u64 {
        self.degree.saturating_sub(SMALLEST)
    }
}

impl Amp {
    /// No streams, on a disk of `capacity` blocks. Sets have `initial` blocks at first, and `maximum` at most.
    pub fn new([initial, maximum]: [u64; 2], streams_max: usize, capacity: u64) -> Self {
        let streams = Vec::with_capacity(streams_max);
        Self { initial, maximum, streams_max, capacity, streams }
    }

    /// A read arrives. Its stream becomes the last one.
    pub fn read(&mut self, blocks: &Range<u64>) {
        if let Some(at) = self.streams.iter().rposition(|stream| continues(stream, blocks)) {
            let mut stream = self.streams.remove(at);
            stream.next = blocks.end;
            stream.is_sequential = true;
            return self.streams.push(stream);
        }
        if self.streams.len() == self.streams_max && self.streams_max > 0 {
            self.streams.remove(0);
        }
        self.streams.push(Stream {
            next: blocks.end,
            is_sequential: false,
            sets: VecDeque::new(),
            degree: self.initial,
            distance: 0,
        });
    }

    /// The stream of the read that has just arrived, if it is one.
    fn current(&mut self) -> Option<&mut Stream> {
        self.streams.last_mut().filter(|stream| stream.is_sequential)
    }

    /// The read that has just arrived needs a fetch up to `end`: returns where the set behind it ends.
    pub fn missed(&mut self, end: u64) -> u64 {
        let capacity = self.capacity;
        let Some(stream) = self.current() else { return end };
        // The sets are gone, or were never there.
        stream.sets.clear();
        let set_end = (end + stream.degree).min(capacity);
        stream.sets.push_back(set_end);
        set_end
    }

    /// The read that has just arrived, of `blocks` blocks, finds its data in memory or on their way:
    /// returns the set to fetch now.
    pub fn hit(&mut self, blocks: u64) -> Option<Range<u64>> {
        let Self { maximum, capacity, .. } = *self;
        let stream = self.current()?;
        let last_end = *stream.sets.back()?;
        while stream.sets.front().is_some_and(|&end| end <= stream.next) {
            stream.sets.pop_front();
            stream.degree = (stream.degree + blocks).min(maximum);
        }
        if last_end > stream.next + stream.distance || last_end == capacity {
            // The end of the disk stays the last set, so that no block is fetched behind it.
            if stream.sets.is_empty() {
                stream.sets.push_back(last_end);
            }
            return None;
        }
        let start = last_end.max(stream.next);
        let end = (start + stream.degree).min(capacity);
        stream.sets.push_back(end);
        (start < end).then_some(start..end)
    }

    /// The read that has just arrived, of `blocks` blocks, waits for a set on its way.
    pub fn waited(&mut self, blocks: u64) {
        if let Some(stream) = self.current() {
            stream.distance = (stream.distance + blocks).min(stream.distance_max());
        }
    }

    /// Blocks have left memory unread.
    pub fn wasted(&mut self, blocks: &Range<u64>) {
        let count = blocks.end - blocks.start;
        for stream in self.streams.iter_mut().filter(|stream| {
            let end = stream.sets.back().copied().unwrap_or(stream.next);
            stream.next < blocks.end && blocks.start < end
        }) {
            stream.degree = stream.degree.saturating_sub(count).max(SMALLEST);
            stream.distance = stream.distance.saturating_sub(count).min(stream.distance_max());
        }
    }
}

/// A read that repeats the end of the last one continues the stream, too.
fn continues(stream: &Stream, blocks: &Range<u64>) -> bool {
    (blocks.start..blocks.end).contains(&stream.next)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: u64 = 1_000_000;

    /// Sets of 64 to 2,048 blocks, for this many streams.
    fn amp(streams: usize) -> Amp {
        Amp::new([64, 2048], streams, CAPACITY)
    }

    /// A read of 8 blocks that misses: where its set ends.
    fn miss(amp: &mut Amp, start: u64) -> u64 {
        amp.read(&(start..start + 8));
        amp.missed(start + 8)
    }

    /// A read of 8 blocks that hits: the set to fetch.
    fn hit(amp: &mut Amp, start: u64) -> Option<Range<u64>> {
        amp.read(&(start..start + 8));
        amp.hit(8)
    }

    #[test]
    fn amp_stream_learns_degree_and_distance() {
        let mut amp = amp(64);
        assert_eq!([miss(&mut amp, 0), miss(&mut amp, 8)], [8, 80], "two reads make a stream");
        (2..9).for_each(|n| assert_eq!(hit(&mut amp, 8 * n), None));
        assert_eq!(hit(&mut amp, 72), Some(80..152), "the set was read to its end: 8 more");
        assert_eq!(hit(&mut amp, 80), None);
        amp.waited(8);
        (11..17).for_each(|n| assert_eq!(hit(&mut amp, 8 * n), None, "{n}"));
        assert_eq!(hit(&mut amp, 136), Some(152..224), "8 before the end");
        // Set after set the degree grows to its maximum.
        let mut longest = 0;
        for n in 18..60_000 {
            longest = hit(&mut amp, 8 * n).map_or(longest, |set| set.end - set.start);
        }
        assert_eq!(longest, 2048);
    }

    #[test]
    fn amp_unread_evictions_shrink_and_delay_sets() {
        let mut amp = amp(64);
        miss(&mut amp, 0);
        miss(&mut amp, 8);
        (0..3).for_each(|_| amp.waited(8));
        // Blocks that were read already, and those of others, are no evidence.
        amp.wasted(&(0..8));
        amp.wasted(&(80..88));
        assert_eq!((amp.streams[0].degree, amp.streams[0].distance), (64, 24));
        amp.wasted(&(64..80));
        assert_eq!((amp.streams[0].degree, amp.streams[0].distance), (48, 8));
        amp.wasted(&(16..64));
        assert_eq!((amp.streams[0].degree, amp.streams[0].distance), (8, 0));
        // The stream continues where its blocks are gone.
        assert_eq!(miss(&mut amp, 16), 32);
    }

    #[test]
    fn amp_interleaved_streams_learn_apart_oldest_forgotten() {
        let mut amp = amp(3);
        for n in 0..2 {
            (0..3).for_each(|stream| _ = miss(&mut amp, stream * 10_000 + 8 * n));
        }
        amp.wasted(&(10_032..10_048));
        let next = |amp: &mut Amp, start| miss(amp, start) - start - 8;
        assert_eq!([0, 10_000, 20_000].map(|at| next(&mut amp, at + 16)), [64, 48, 64]);
        assert_eq!(next(&mut amp, 500_000), 0, "one read is no stream");
        assert_eq!(next(&mut amp, 24), 0, "the first stream was forgotten");
    }

    #[test]
    fn amp_skips_random_reads_and_disk_end() {
        let mut random = amp(64);
        for n in 0..1_000 {
            let start = n * 7_919 % 1_000 * 900;
            assert_eq!(miss(&mut random, start), start + 8);
        }
        let mut last = amp(64);
        miss(&mut last, CAPACITY - 32);
        assert_eq!(miss(&mut last, CAPACITY - 24), CAPACITY);
        assert_eq!([16, 8].map(|before| hit(&mut last, CAPACITY - before)), [None, None]);
    }
}
