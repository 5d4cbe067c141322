//! Random errors of seeks.

use freewheel_model::drive::Drive;
use freewheel_units::Prng;

/// Differences between real seeks and the curve, drawn within the drive's tolerance. Each access of a
/// command draws one error, with or without free work, so free work changes no later draw.
pub struct SeekErrors {
    prng: Prng,
    tolerance_ns: u64,
}

impl SeekErrors {
    /// The errors of one arm, from a separate random stream.
    pub fn new(drive: &Drive, seed: u64, arm: u32) -> Self {
        let stream = if arm == 0 { "seek errors".into() } else { format!("seek errors {arm}") };
        Self { prng: Prng::new(seed, &stream), tolerance_ns: drive.seek_tolerance().ns() }
    }

    /// Time by which the next seek takes longer than the curve says, in nanoseconds.
    #[inline]
    pub(crate) fn draw(&mut self) -> i64 {
        self.draw_within(self.tolerance_ns)
    }

    /// Like [`Self::draw`], within `tolerance_ns` instead of the drive's tolerance.
    #[inline]
    pub(crate) fn draw_within(&mut self, tolerance_ns: u64) -> i64 {
        if tolerance_ns == 0 {
            return 0;
        }
        self.prng.below(2 * tolerance_ns + 1) as i64 - tolerance_ns as i64
    }

    /// Like [`Self::draw`], from a normal distribution with this standard deviation.
    pub(crate) fn draw_normal(&mut self, sd_ns: u64) -> i64 {
        self.prng.normal(0.0, sd_ns as f64) as i64
    }

    /// Greatest difference either way.
    pub(crate) fn tolerance_ns(&self) -> u64 {
        self.tolerance_ns
    }
}
