//! Pattern of generated requests: operation, size and place.

use freewheel_model::drive::Divisor;
use freewheel_units::{Blocks, Bytes, Op, Prng, VolumeBlock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Request;

/// The mix of requests of osdi00 section 3: defaults are its *random* workload.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PatternSpec {
    /// Share of reads, 0 to 1.
    pub read_share: f64,
    /// Share of the writes with force unit access, 0 to 1: done when they are on the media.
    pub fua_share: f64,
    /// Size of a request, or its mean.
    pub size: Bytes,
    /// Distribution of request sizes.
    pub size_distribution: SizeDistribution,
    /// Starts are multiples of this, and sizes that vary.
    pub align: Bytes,
    /// Share of requests that start near the one before: normal around its start.
    pub local_share: f64,
    /// Standard deviation of the local ones.
    pub local_sd: Bytes,
}

/// Distribution of request sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SizeDistribution {
    /// All the same.
    #[default]
    Fixed,
    /// Exponential with the mean `size`, then rounded up to a multiple of `align`: the mean becomes
    /// `align` / (1 - exp(-`align` / `size`)), 10.2 KiB for 8 KiB in multiples of 4 KiB.
    Exponential,
    /// Multiples of `align` whose mean is `size`: the exponential distribution of whole multiples.
    Geometric,
}

impl Default for PatternSpec {
    fn default() -> Self {
        Self {
            read_share: 2.0 / 3.0,
            fua_share: 0.0,
            size: Bytes::from_kib(4),
            size_distribution: SizeDistribution::Fixed,
            align: Bytes::from_kib(4),
            local_share: 0.0,
            local_sd: Bytes::from_kib(4096),
        }
    }
}

/// Most blocks of a request: a block count within a request is 32 bits wide.
const BLOCKS_MAX: u64 = u32::MAX as u64;

impl PatternSpec {
    /// Checks the pattern on a volume of this capacity, and returns the fault with its key.
    pub(crate) fn check(&self, capacity: Blocks) -> Result<(), String> {
        share("read_share", self.read_share)?;
        share("fua_share", self.fua_share)?;
        share("local_share", self.local_share)?;
        let (align, size) = (blocks("align", self.align)?, blocks("size", self.size)?);
        if self.local_share > 0.0 && self.local_sd.blocks_rounded_up() > capacity {
            let capacity = capacity.bytes().human_decimal();
            let sd = self.local_sd;
            return Err(format!("`local_sd` is {sd}, but the drive holds {capacity}"));
        }
        if size > BLOCKS_MAX || align > BLOCKS_MAX {
            let size = self.size.max(self.align);
            return Err(format!("a request of {size} is too large: below 2TiB is allowed"));
        }
        if self.size_distribution == SizeDistribution::Geometric && size < align {
            let Self { size, align, .. } = self;
            return Err(format!(
                "`size` is {size}, less than `align` with {align}: the mean of multiples of `align` is at least `align`; make `size` larger or `align` smaller"
            ));
        }
        if size > capacity.get() || align > capacity.get() {
            let capacity = capacity.bytes().human_decimal();
            return Err(format!("`size` is {}, but the drive holds {capacity}", self.size));
        }
        Ok(())
    }
}

fn share(key: &str, value: f64) -> Result<(), String> {
    let fits = (0.0..=1.0).contains(&value);
    fits.then_some(()).ok_or(format!("`{key}` is {value}: a share of 0 to 1 is needed"))
}

fn blocks(key: &str, bytes: Bytes) -> Result<u64, String> {
    let fits = bytes.get() > 0 && bytes.get().is_multiple_of(512);
    let count = bytes.blocks_rounded_up().get();
    fits.then_some(count).ok_or(format!("`{key}` is {bytes}: a multiple of 512B is needed"))
}

/// Draws requests; operations, sizes and places from streams of their own.
#[derive(Debug, Clone)]
pub struct Pattern {
    spec: PatternSpec,
    capacity: u64,
    align: Divisor,
    size: u64,
    ops: Prng,
    fua: Prng,
    sizes: Prng,
    places: Prng,
    last_start: u64,
}

impl Pattern {
    /// Requests within `capacity`. Err says which key of the spec does not fit.
    pub fn new(spec: PatternSpec, capacity: Blocks, seed: u64) -> Result<Self, String> {
        spec.check(capacity)?;
        let [align, size] = [spec.align, spec.size].map(|bytes| bytes.blocks_rounded_up().get());
        Ok(Self {
            spec,
            capacity: capacity.get(),
            align: Divisor::new(align),
            size,
            ops: Prng::new(seed, "pattern operations"),
            fua: Prng::new(seed, "pattern force unit access"),
            sizes: Prng::new(seed, "pattern sizes"),
            places: Prng::new(seed, "pattern places"),
            last_start: 0,
        })
    }

    /// The next request.
    #[inline]
    pub fn draw(&mut self, tag: u64) -> Request {
        let op = if self.ops.chance(self.spec.read_share) { Op::Read } else { Op::Write };
        let fua = op == Op::Write && self.draw_fua();
        let blocks = self.draw_size();
        let start = self.draw_start(blocks);
        self.last_start = start;
        Request { op, start: VolumeBlock::new(start), blocks: Blocks::new(blocks), fua, tag }
    }

    #[inline]
    fn draw_fua(&mut self) -> bool {
        self.spec.fua_share > 0.0 && self.fua.chance(self.spec.fua_share)
    }

    #[inline]
    fn draw_size(&mut self) -> u64 {
        match self.spec.size_distribution {
            SizeDistribution::Fixed => self.size,
            SizeDistribution::Exponential => {
                let blocks = self.sizes.exponential(self.size as f64);
                self.whole((blocks / self.align.get() as f64).ceil().max(1.0) as u64)
            }
            SizeDistribution::Geometric => {
                let multiples = self.sizes.geometric(self.align.get() as f64 / self.size as f64);
                self.whole(multiples)
            }
        }
    }

    /// `multiples` of `align` in blocks, limited to the largest request.
    #[inline]
    fn whole(&self, multiples: u64) -> u64 {
        let most = self.align.divide(self.capacity.min(BLOCKS_MAX)).0;
        multiples.min(most) * self.align.get()
    }

    #[inline]
    fn draw_start(&mut self, blocks: u64) -> u64 {
        let slots = self.align.divide(self.capacity - blocks).0 + 1;
        if self.spec.local_share > 0.0 && self.places.chance(self.spec.local_share) {
            return self.draw_local(slots);
        }
        self.places.below(slots) * self.align.get()
    }

    /// Near the last start; drawn again when it falls off the drive.
    fn draw_local(&mut self, slots: u64) -> u64 {
        let sd = self.spec.local_sd.get() as f64 / 512.0;
        loop {
            let start = self.places.normal(self.last_start as f64, sd);
            let slot = (start / self.align.get() as f64).round();
            if slot >= 0.0 && slot < slots as f64 {
                return slot as u64 * self.align.get();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_requests_aligned_within_drive() {
        for size_distribution in [SizeDistribution::Exponential, SizeDistribution::Geometric] {
            let size = Bytes::from_kib(512);
            let spec =
                PatternSpec { size, size_distribution, local_share: 0.5, ..PatternSpec::default() };
            let mut pattern = Pattern::new(spec, Blocks::new(10_001), 1).unwrap();
            for tag in 0..20_000 {
                let Request { start, blocks, .. } = pattern.draw(tag);
                assert!((start + blocks).get() <= 10_001);
                assert!(start.get().is_multiple_of(8) && blocks.get().is_multiple_of(8));
            }
        }
    }

    #[test]
    fn geometric_sizes_have_given_mean() {
        let spec = PatternSpec {
            size: Bytes::from_kib(8),
            size_distribution: SizeDistribution::Geometric,
            ..PatternSpec::default()
        };
        let mut pattern = Pattern::new(spec, Blocks::new(1 << 24), 1).unwrap();
        let sizes: Vec<u64> = (0..100_000).map(|tag| pattern.draw(tag).blocks.get() / 8).collect();
        let mean = sizes.iter().sum::<u64>() as f64 / 1e5;
        // In multiples of 4 KiB: mean 2 and variance 2, so the mean of 100,000 has a deviation of
        // 0.0045.
        assert!((mean - 2.0).abs() < 0.02, "mean of {mean} times 4 KiB");
        let smallest = sizes.iter().filter(|&&size| size == 1).count() as f64 / 1e5;
        assert!((smallest - 0.5).abs() < 0.007, "{smallest}");
    }

    #[test]
    fn geometric_size_below_alignment_refused() {
        let spec = PatternSpec {
            size: Bytes::from_kib(2),
            size_distribution: SizeDistribution::Geometric,
            ..PatternSpec::default()
        };
        let error = Pattern::new(spec, Blocks::new(1 << 24), 1).unwrap_err();
        assert!(error.contains("`size` is 2KiB, less than `align` with 4KiB"), "{error}");
    }

    #[test]
    fn fua_share_marks_writes_only() {
        let drawn = |fua_share| {
            let spec = PatternSpec { fua_share, ..PatternSpec::default() };
            let mut pattern = Pattern::new(spec, Blocks::new(1 << 24), 1).unwrap();
            (0..30_000).map(|tag| pattern.draw(tag)).collect::<Vec<Request>>()
        };
        let (plain, forced) = (drawn(0.0), drawn(0.25));
        let unmarked = |request: &Request| Request { fua: false, ..*request };
        assert_eq!(plain, forced.iter().map(unmarked).collect::<Vec<_>>());
        assert!(forced.iter().all(|request| !request.fua || request.op == Op::Write));
        // A quarter of a third of 30,000.
        let count = forced.iter().filter(|request| request.fua).count();
        assert!((2300..2700).contains(&count), "{count}");
    }

    #[test]
    fn pattern_read_share_and_exponential_mean() {
        let spec = PatternSpec {
            size: Bytes::from_kib(8),
            size_distribution: SizeDistribution::Exponential,
            ..PatternSpec::default()
        };
        let mut pattern = Pattern::new(spec, Blocks::new(1 << 24), 1).unwrap();
        let requests: Vec<Request> = (0..100_000).map(|tag| pattern.draw(tag)).collect();
        let reads = requests.iter().filter(|r| r.op == Op::Read).count() as f64;
        assert!((reads / 1e5 - 2.0 / 3.0).abs() < 0.005);
        // Rounding an exponential of mean m up to multiples of a gives a / (1 - exp(-a/m)):
        // 4 KiB / (1 - exp(-0.5)) = 10.17 KiB.
        let mean = requests.iter().map(|r| r.blocks.get() as f64 / 2.0).sum::<f64>() / 1e5;
        assert!((mean - 10.166).abs() < 0.1, "mean of {mean} KiB");
    }
}
