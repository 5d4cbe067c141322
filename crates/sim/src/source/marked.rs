//! Commands with marks for the drives' queues, beside a scrub from outside.

use std::collections::BTreeMap;

use freewheel_model::sched::CommandMark;
use freewheel_model::stats::{Distribution, Summary};
use freewheel_units::{Blocks, Op, SimTime, VolumeBlock};
use serde::Serialize;

use super::{Request, Source, SourceError};

/// Marks of a host's commands, and its own scrub.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marks {
    /// Mark of the source's reads.
    pub reads: CommandMark,
    /// Mark of the source's writes.
    pub writes: CommandMark,
    pub scrub: Option<ScrubReads>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ScrubReads {
    pub mark: CommandMark,
    /// First block of the scrub.
    pub start: VolumeBlock,
    pub run: Blocks,
    /// Reads at the drive at once.
    pub outstanding: usize,
    /// Reads after which the source issues no further request.
    pub most: u64,
}

/// Requests of a source, which get their marks, and the reads of a scrub, which are its own work. The scrub
/// ends with the source.
pub(crate) struct MarkedCommands<'a> {
    source: &'a mut dyn Source,
    marks: Marks,
    /// Requests of the source that are not done.
    inside: u64,
    scrub: Option<Scrub>,
    /// True if the scrub's read comes next.
    scrub_is_next: bool,
}

/// A scrub from outside.
struct Scrub {
    reads: ScrubReads,
    /// Blocks of the volume.
    end: Blocks,
    next: VolumeBlock,
    /// Reads that are not done: when each was issued, and its blocks.
    inside: BTreeMap<u64, (SimTime, Blocks)>,
    issued: u64,
    /// Earliest time of its next read.
    now: SimTime,
    work: OutsideScrubWork,
    response: Distribution,
}

/// Sums of a scrub from outside, warm-up included.
#[derive(Debug, Clone, Copy, Default)]
struct OutsideScrubWork {
    reads: u64,
    read_bytes: u64,
    aborted: u64,
}

/// Results of a scrub by the host, over the whole run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutsideScrub {
    /// Reads that delivered their data.
    pub reads: u64,
    /// Bytes of them.
    pub read_bytes: u64,
    /// Reads that a duration limit ended.
    pub aborted: u64,
    /// Time to the end of its last read.
    pub elapsed_ns: u64,
    /// Response times of its reads, without those that a limit ended.
    pub response: Summary,
}

impl OutsideScrub {
    /// Bytes a second.
    pub fn bytes_per_second(&self) -> f64 {
        self.read_bytes as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }
}

/// Tags of a scrub's reads; above the tags of any source.
const SCRUB_TAGS: u64 = 1 << 63;

impl<'a> MarkedCommands<'a> {
    /// Marks the requests of `source`; a scrub reads the `volume`.
    pub fn new(source: &'a mut dyn Source, marks: Marks, volume: Blocks) -> Self {
        let scrub = marks.scrub.map(|reads| Scrub {
            reads,
            end: volume,
            next: reads.start,
            inside: BTreeMap::new(),
            issued: 0,
            now: SimTime::ZERO,
            work: OutsideScrubWork::default(),
            response: Distribution::default(),
        });
        Self { source, marks, inside: 0, scrub, scrub_is_next: false }
    }

    /// Results of the scrub, if there was one.
    pub fn scrub(&self) -> Option<OutsideScrub> {
        let scrub = self.scrub.as_ref()?;
        let OutsideScrubWork { reads, read_bytes, aborted } = scrub.work;
        let (elapsed_ns, response) = (scrub.now.ns(), scrub.response.summary());
        Some(OutsideScrub { reads, read_bytes, aborted, elapsed_ns, response })
    }

    fn scrub_of(&mut self, tag: u64) -> Option<&mut Scrub> {
        self.scrub.as_mut().filter(|_| tag >= SCRUB_TAGS)
    }
}

impl Scrub {
    fn take(&mut self) -> Request {
        let tag = SCRUB_TAGS + self.issued;
        let start = self.next;
        let blocks = self.reads.run.min(Blocks::new(self.end.get() - start.get()));
        let behind = start + blocks;
        self.next = if behind.get() >= self.end.get() { VolumeBlock::ZERO } else { behind };
        self.issued += 1;
        self.inside.insert(tag, (self.now, blocks));
        Request { op: Op::Read, start, blocks, fua: false, tag }
    }

    fn ended(&mut self, tag: u64, now: SimTime, has_data: bool) {
        let (issued, blocks) = self.inside.remove(&tag).expect("it was issued");
        self.now = now;
        if has_data {
            self.work.reads += 1;
            self.work.read_bytes += blocks.bytes().get();
            self.response.record(now - issued);
        } else {
            self.work.aborted += 1;
        }
    }
}

impl Source for MarkedCommands<'_> {
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        let arrival = self.source.next_arrival()?;
        self.scrub_is_next = false;
        let Some(scrub) = &self.scrub else { return Ok(arrival) };
        if scrub.issued >= scrub.reads.most {
            return Ok(None);
        }
        let goes_on = arrival.is_some() || self.inside > 0;
        let has_room = scrub.inside.len() < scrub.reads.outstanding;
        if goes_on && has_room && arrival.is_none_or(|arrival| scrub.now < arrival) {
            self.scrub_is_next = true;
            return Ok(Some(scrub.now));
        }
        Ok(arrival)
    }

    fn take(&mut self) -> Request {
        match &mut self.scrub {
            Some(scrub) if self.scrub_is_next => scrub.take(),
            _ => {
                self.inside += 1;
                self.source.take()
            }
        }
    }

    fn completed(&mut self, tag: u64, now: SimTime) {
        if let Some(scrub) = self.scrub_of(tag) {
            return scrub.ended(tag, now, true);
        }
        self.inside -= 1;
        self.source.completed(tag, now);
    }

    fn aborted(&mut self, tag: u64, now: SimTime) {
        if let Some(scrub) = self.scrub_of(tag) {
            return scrub.ended(tag, now, false);
        }
        self.inside -= 1;
        self.source.aborted(tag, now);
    }

    fn progress(&self) -> (u64, u64) {
        self.source.progress()
    }

    fn is_own_work(&self, tag: u64) -> bool {
        tag >= SCRUB_TAGS
    }

    fn mark(&self, request: &Request) -> CommandMark {
        match &self.scrub {
            Some(scrub) if request.tag >= SCRUB_TAGS => scrub.reads.mark,
            _ if request.op == Op::Write => self.marks.writes,
            _ => self.marks.reads,
        }
    }

    fn arrival(&self, now: SimTime) -> SimTime {
        self.source.arrival(now)
    }
}
