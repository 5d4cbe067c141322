//! Poisson arrivals of requests to files.

use freewheel_units::{Blocks, Op, Prng, SimDuration, SimTime};

use super::map::{FileMap, VolumeRequest};
use super::new_files::{NewFiles, NewFilesWork};
use crate::config::{Drift, LaterRate};

/// Use of a file by clients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FileLoad {
    /// Blocks of the file.
    pub blocks: Blocks,
    /// Size of a request; one of the file's size or more is for the whole file.
    pub request: Blocks,
    /// Requests a second.
    pub rate: f64,
    /// Share of them that read.
    pub reads: f64,
}

/// Movement of the hot set.
struct Drifting<'a> {
    every: SimDuration,
    /// Share of each class's files that change at once.
    files: f64,
    /// The class of each file; those of a class have numbers that follow each other.
    class_of: &'a [u32],
    changes_max: u32,
    prng: Prng,
    next: SimTime,
    work: DriftWork,
}

/// Changes of the hot set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DriftWork {
    /// Changes.
    pub changes: u64,
    /// Files that took another's share of the requests, counted each time.
    pub files: u64,
}

/// Requests to files: independent of each other, each file at its own rate.
pub struct FileRequests<'a> {
    map: &'a FileMap,
    sizes: Vec<Blocks>,
    /// Requests a second of each file.
    rate_of: Vec<f64>,
    drift: Option<Drifting<'a>>,
    /// Files that are created and deleted; rates are those of slots then.
    new_files: Option<NewFiles<'a>>,
    /// Sums of the rates up to each file.
    rates: Vec<f64>,
    /// Share of each file's requests that read.
    reads: Vec<f64>,
    mean_gap_ns: f64,
    /// Rates to come, ascending by time.
    later: &'a [LaterRate],
    align: u64,
    prng: Prng,
    next: SimTime,
    issued: u64,
    requests: u64,
}

impl<'a> FileRequests<'a> {
    /// `requests` in all. Panics without a file that is used.
    pub fn new(map: &'a FileMap, loads: &[FileLoad], requests: u64, seed: u64) -> Self {
        let rate_of: Vec<f64> = loads.iter().map(|load| load.rate).collect();
        let rates = sums(&rate_of);
        let sum = rates.last().copied().unwrap_or_default();
        assert!(sum > 0.0, "no file is used");
        let sizes = loads.iter().map(|load| load.request.min(load.blocks)).collect();
        let mut source = Self {
            map,
            sizes,
            rate_of,
            drift: None,
            new_files: None,
            rates,
            reads: loads.iter().map(|load| load.reads).collect(),
            mean_gap_ns: 1e9 / sum,
            later: &[],
            align: 1,
            prng: Prng::new(seed, "file requests"),
            next: SimTime::ZERO,
            issued: 0,
            requests,
        };
        source.advance();
        source
    }

    /// Requests begin at multiples of `align` within their files.
    pub fn aligned(self, align: Blocks) -> Self {
        Self { align: align.get(), ..self }
    }

    /// Every so often files of the same class change their rates. A stream of random numbers of its own: without
    /// drift, requests are the same.
    pub(super) fn drifting(self, drift: &Drift, class_of: &'a [u32], seed: u64) -> Self {
        let Drift { every, files, changes_max } = *drift;
        let (prng, next) = (Prng::new(seed, "drift of files"), SimTime::ZERO + every);
        let work = DriftWork::default();
        let drift = Drifting { every, files, class_of, changes_max, prng, next, work };
        Self { drift: Some(drift), ..self }
    }

    /// All files' rates change together at these times. A gap that is under way ends first.
    pub(super) fn changing(self, later: &'a [LaterRate]) -> Self {
        Self { later, ..self }
    }

    /// Creates files, of which these are the uses.
    pub(super) fn creating(mut self, new_files: NewFiles<'a>, loads: &[FileLoad]) -> Self {
        self.sizes.extend(loads.iter().map(|load| load.request.min(load.blocks)));
        self.reads.extend(loads.iter().map(|load| load.reads));
        Self { new_files: Some(new_files), ..self }
    }

    /// Files created and deleted so far; None where there are none.
    pub(super) fn created(&self) -> Option<NewFilesWork> {
        self.new_files.as_ref().map(NewFiles::work)
    }

    /// Changes of the hot set so far; None without drift.
    pub(super) fn drifted(&self) -> Option<DriftWork> {
        self.drift.as_ref().map(|drift| drift.work)
    }

    fn advance(&mut self) {
        while let Some((LaterRate { rate, .. }, after)) =
            self.later.split_first().filter(|(later, _)| SimTime::ZERO + later.from <= self.next)
        {
            (self.mean_gap_ns, self.later) = (1e9 / rate, after);
        }
        self.next += SimDuration::from_ns(self.prng.exponential(self.mean_gap_ns) as u64);
        let Some(drift) = &mut self.drift else { return };
        if drift.next > self.next {
            return;
        }
        // After many changes at once nothing is left of the old order, so more change no more.
        let passed = 1 + (self.next - drift.next).ns() / drift.every.ns();
        for _ in 0..passed.min(u64::from(drift.changes_max)) {
            drift.change(&mut self.rate_of);
        }
        drift.next += SimDuration::from_ns(passed * drift.every.ns());
        self.rates = sums(&self.rate_of);
    }

    pub(super) fn next_arrival(&self) -> Option<SimTime> {
        let created = self.new_files.as_ref().and_then(NewFiles::next_at);
        let next = created.map_or(self.next, |at| at.min(self.next));
        (self.issued < self.requests).then_some(next)
    }

    pub(super) fn take(&mut self) -> VolumeRequest {
        if let Some(new_files) =
            self.new_files.as_mut().filter(|new| new.next_at().is_some_and(|at| at <= self.next))
        {
            let file = new_files.create();
            let (start, tag) = (self.map.address(file as u32, 0), self.issued);
            self.issued += 1;
            let blocks = self.map.files()[file].blocks;
            return VolumeRequest { op: Op::Write, start, blocks, tag };
        }
        let slot = self.draw_file();
        let file = self.new_files.as_mut().map_or(slot, |new| new.file(slot));
        let (whole, blocks) = (self.map.files()[file].blocks, self.sizes[file]);
        let room = whole.get() - blocks.get();
        let first = match room / self.align {
            0 => 0,
            last => self.align * self.prng.below(last + 1),
        };
        let op = if self.prng.chance(self.reads[file]) { Op::Read } else { Op::Write };
        let tag = self.issued;
        self.issued += 1;
        self.advance();
        let start = self.map.address(file as u32, first);
        VolumeRequest { op, start, blocks, tag }
    }

    pub(super) fn progress(&self) -> (u64, u64) {
        (self.issued, self.requests)
    }

    /// A file, or its slot, with a chance in proportion to its rate.
    fn draw_file(&mut self) -> usize {
        let all = self.rates[self.rates.len() - 1];
        let at = self.prng.unit() * all;
        // A file that is not used has no width here, so it is never found.
        self.rates.partition_point(|&sum| sum <= at).min(self.rates.len() - 1)
    }
}

impl Drifting<'_> {
    /// In each class, a share of its files is drawn; each of them takes the rate of the next one.
    fn change(&mut self, rate_of: &mut [f64]) {
        let mut left = rate_of;
        for class in self.class_of.chunk_by(|a, b| a == b) {
            let (files, rest) = left.split_at_mut(class.len());
            left = rest;
            // A share too small for two files still changes some now and then.
            let wanted = self.files * files.len() as f64;
            let count = wanted as usize + usize::from(self.prng.chance(wanted.fract()));
            // The drawn ones gather at the front of a list of numbers: none is drawn twice.
            let mut numbers: Vec<usize> = (0..files.len()).collect();
            for at in 0..count {
                let other = at + self.prng.below((files.len() - at) as u64) as usize;
                numbers.swap(at, other);
            }
            for pair in numbers[..count].windows(2) {
                files.swap(pair[0], pair[1]);
            }
            // One file alone has no other to change with.
            self.work.files += if count > 1 { count as u64 } else { 0 };
        }
        self.work.changes += 1;
    }
}

/// The sum of the rates up to each file.
fn sums(rate_of: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    rate_of
        .iter()
        .map(|rate| {
            sum += rate;
            sum
        })
        .collect()
}
