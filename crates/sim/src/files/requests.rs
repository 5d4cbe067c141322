//! Poisson arrivals of requests to files.

use freewheel_units::{Blocks, Op, Prng, SimDuration, SimTime};

use crate::file_map::FileMap;
use crate::source::{Request, Source, SourceError};

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

/// Requests to files: independent of each other, each file at its own rate.
pub struct FileRequests<'a> {
    map: &'a FileMap,
    sizes: Vec<Blocks>,
    /// Sums of the rates up to each file.
    rates: Vec<f64>,
    /// Share of each file's requests that read.
    reads: Vec<f64>,
    mean_gap_ns: f64,
    align: u64,
    prng: Prng,
    next: SimTime,
    issued: u64,
    requests: u64,
}

impl<'a> FileRequests<'a> {
    /// `requests` in all. Panics without a file that is used.
    pub fn new(map: &'a FileMap, loads: &[FileLoad], requests: u64, seed: u64) -> Self {
        let mut sum = 0.0;
        let mut add = |load: &FileLoad| {
            sum += load.rate;
            sum
        };
        let rates: Vec<f64> = loads.iter().map(&mut add).collect();
        assert!(sum > 0.0, "no file is used");
        let sizes = loads.iter().map(|load| load.request.min(load.blocks)).collect();
        let mut source = Self {
            map,
            sizes,
            rates,
            reads: loads.iter().map(|load| load.reads).collect(),
            mean_gap_ns: 1e9 / sum,
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

    fn advance(&mut self) {
        self.next += SimDuration::from_ns(self.prng.exponential(self.mean_gap_ns) as u64);
    }

    /// A file, with a chance in proportion to its rate.
    fn draw_file(&mut self) -> usize {
        let all = self.rates[self.rates.len() - 1];
        let at = self.prng.unit() * all;
        // A file that is not used has no width here, so it is never found.
        self.rates.partition_point(|&sum| sum <= at).min(self.rates.len() - 1)
    }
}

impl Source for FileRequests<'_> {
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        Ok((self.issued < self.requests).then_some(self.next))
    }

    fn take(&mut self) -> Request {
        let file = self.draw_file();
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
        Request { op, start, blocks, fua: false, tag }
    }

    fn completed(&mut self, _: u64, _: SimTime) {}

    fn progress(&self) -> (u64, u64) {
        (self.issued, self.requests)
    }
}
