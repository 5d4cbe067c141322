//! Places of requests on a disk, and the distances that the arm moves between them.
//!
//! A disk whose busy files lie side by side seeks less than one on which they lie far apart. The
//! cylinders are divided into bands. A request goes to a band with the chance that the files there have,
//! and the next request goes to any other band with its chance:
//!
//! ```text
//!   requests/s   5   0   0   3   0      two files, three bands apart
//!   band         0   1   2   3   4
//!   mean seek over all pairs of requests: sum of r(i) r(j) seek(|i - j|), over (sum of r)²
//! ```
//! Sums over the pairs are kept, so that a file more or less costs its own bands and not all pairs.

use std::sync::Arc;

use freewheel_units::{Blocks, Lbn};

use crate::partition::Moments;
use crate::partition::disk::{TransferZone, mean_seek_s};
use freewheel_model::drive::Drive;

/// Bands of a disk.
const BANDS: usize = 128;
/// Distances that are sampled between two bands.
const SAMPLES: u32 = 64;

/// A drive as the balancer sees it.
#[derive(Debug, Clone)]
pub struct DriveModel {
    drive: Arc<Drive>,
    /// First and second moment of a seek between bands, by their distance.
    seeks: Vec<[f64; 2]>,
    zones: Vec<TransferZone>,
    rotation: Moments,
    cylinders: u32,
}

/// The bands of a file with its requests a second in each.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spread {
    first: usize,
    rates: Vec<f64>,
}

impl DriveModel {
    /// Works out the seeks of a drive; `read_share` of the requests read.
    pub fn new(drive: Arc<Drive>, read_share: f64) -> Self {
        let zones = drive.layout().zones();
        let cylinders = zones
            .iter()
            .map(|zone| zone.first_cylinder() + zone.cylinders())
            .max()
            .unwrap_or(1)
            .max(1);
        let width = f64::from(cylinders) / BANDS as f64;
        let seeks = (0..BANDS).map(|bands| {
            let mut sums = [0.0; 3];
            // The distance of two places is the bands' distance and the difference of two uniform
            // numbers, which has a triangular density.
            for (weight, seek) in (0..SAMPLES).map(|sample| {
                let shift = (2.0 * f64::from(sample) + 1.0) / f64::from(SAMPLES) - 1.0;
                let distance = (bands as f64 * width + shift * width).abs();
                let farthest = f64::from(cylinders - 1);
                let distance = libm::round(distance.min(farthest)) as u32;
                (1.0 - shift.abs(), mean_seek_s(&drive, read_share, distance))
            }) {
                sums[0] += weight;
                sums[1] += weight * seek;
                sums[2] += weight * seek * seek;
            }
            [sums[1] / sums[0], sums[2] / sums[0]]
        });
        let seeks = seeks.collect();
        let zones = zones.iter().map(|zone| TransferZone::of(&drive, zone)).collect();
        let rotation = Moments::uniform(drive.rotation().period().as_secs_f64());
        Self { seeks, zones, rotation, cylinders, drive }
    }

    /// Cylinders of a range of blocks: first, and one after the last.
    fn cylinders(&self, start: Lbn, blocks: Blocks) -> (u32, u32) {
        let last = Lbn::new((start + blocks).get() - 1);
        let [first, last] = [start, last].map(|lbn| self.drive.layout().locate(lbn).cylinder);
        (first.min(last), first.max(last) + 1)
    }

    /// `rate` requests a second, spread evenly over a range of blocks.
    pub(super) fn spread(&self, start: Lbn, blocks: Blocks, rate: f64) -> Spread {
        let (from, to) = self.cylinders(start, blocks);
        let band = |cylinder: u32| f64::from(cylinder) * BANDS as f64 / f64::from(self.cylinders);
        let (from, to) = (band(from), band(to));
        let first = (from as usize).min(BANDS - 1);
        let last = (libm::ceil(to) as usize).clamp(first + 1, BANDS);
        Spread {
            first,
            rates: (first..last)
                .map(|at| {
                    let inside = f64::min(to, at as f64 + 1.0) - f64::max(from, at as f64);
                    rate * inside / (to - from)
                })
                .collect(),
        }
    }

    /// The zone in which most of a range of blocks lies, about.
    pub(super) fn zone(&self, start: Lbn, blocks: Blocks) -> usize {
        let middle = start + Blocks::new(blocks.get() / 2);
        let layout = self.drive.layout();
        layout.run(middle, 1).zone
    }

    /// Time of a turn in seconds.
    pub(super) fn turn_s(&self) -> f64 {
        2.0 * self.rotation.mean
    }

    /// Rotational latency and transfer of `request` blocks in a zone.
    pub(super) fn after_seek(&self, zone: usize, request: Blocks) -> Moments {
        let transfer = self.zones[zone].transfer(request.get() as f64, self.turn_s());
        self.rotation.plus(transfer)
    }
}

#[cfg(test)]
impl Spread {
    /// Requests a second in each band of the disk.
    pub(super) fn by_band(&self) -> Vec<f64> {
        let mut all = vec![0.0; BANDS];
        all[self.first..self.first + self.rates.len()].copy_from_slice(&self.rates);
        all
    }
}

#[cfg(test)]
impl DriveModel {
    pub(super) fn seek(&self, bands: usize) -> [f64; 2] {
        self.seeks[bands]
    }
}

/// Requests by band, with the sums over all pairs of them.
#[derive(Debug, Clone)]
pub(super) struct Places {
    rate: f64,
    /// The highest rate so far, beside which rounding errors are to be seen.
    rate_max: f64,
    /// Over the other bands: rate times moment of the seek from this band.
    around: Vec<[f64; 2]>,
    pairs: [f64; 2],
}

impl Places {
    pub(super) fn new() -> Self {
        Self { rate: 0.0, rate_max: 0.0, around: vec![[0.0; 2]; BANDS], pairs: [0.0; 2] }
    }

    /// First and second moment of a seek.
    pub(super) fn seek(&self) -> [f64; 2] {
        self.mean(self.pairs, self.rate)
    }

    /// Seeks with one file more, or, for `sign` -1, with one less.
    pub(super) fn seek_with(&self, model: &DriveModel, file: &Spread, sign: f64) -> [f64; 2] {
        let own: f64 = file.rates.iter().sum();
        self.mean(self.pairs_with(model, file, sign), self.rate + sign * own)
    }

    fn pairs_with(&self, model: &DriveModel, file: &Spread, sign: f64) -> [f64; 2] {
        let mut pairs = self.pairs;
        let around = &self.around[file.first..];
        for (at, (&rate, around)) in file.rates.iter().zip(around).enumerate() {
            for moment in 0..2 {
                let others = 2.0 * sign * around[moment];
                let own: f64 = file
                    .rates
                    .iter()
                    .enumerate()
                    .map(|(other, other_rate)| other_rate * model.seeks[at.abs_diff(other)][moment])
                    .sum();
                pairs[moment] += rate * (others + own);
            }
        }
        pairs
    }

    /// Takes a file in, or, for `sign` -1, out.
    pub(super) fn add(&mut self, model: &DriveModel, file: &Spread, sign: f64) {
        self.pairs = self.pairs_with(model, file, sign);
        for (at, &rate) in file.rates.iter().enumerate() {
            let band = file.first + at;
            self.rate += sign * rate;
            self.rate_max = self.rate_max.max(self.rate);
            for (other, around) in self.around.iter_mut().enumerate() {
                let seek = model.seeks[band.abs_diff(other)];
                around[0] += sign * rate * seek[0];
                around[1] += sign * rate * seek[1];
            }
        }
    }

    fn mean(&self, pairs: [f64; 2], rate: f64) -> [f64; 2] {
        match rate > ROUNDING * self.rate_max {
            true => pairs.map(|sum| (sum / (rate * rate)).max(0.0)),
            false => [0.0; 2],
        }
    }
}

/// No requests have no seek. Of the highest rate that a disk had, rounding leaves less than this share when
/// its files have gone.
const ROUNDING: f64 = 1e-10;
