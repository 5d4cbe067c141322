//! Phase A of tr96 section 2.1: the degree of parallelism that serves one request alone the fastest.
//!
//! A request of R blocks is split over P disks. The slowest of P seeks and of P rotations grows with P, the
//! transfer of R/P blocks shrinks. Equation numbers are those of tr96.

use super::disk::{DiskModel, DiskSymbols};

/// Constants a and b of (7). At P = 1 they give 0.577 where the product of (6) is 2/3.
const A: f64 = 0.577;
const B_LN: f64 = -0.118;

/// Method that estimates the expected service time of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServiceEstimate {
    /// (16): the longest seek by the logarithm of (7) and a straight seek curve.
    #[default]
    ClosedForm,
    /// Method with the product of (6) for the longest seek distance.
    ExactDistance,
    /// (2): the longest sum of seek and rotation, by the drive's own curve and all its zones.
    JointMaximum,
}

impl DiskSymbols {
    /// E\[D_seek\] in cylinders: the mean of the longest of P seeks, by the product (6).
    pub fn seek_distance_exact(&self, parallelism: u32) -> f64 {
        self.cylinders
            * (1.0
                - (1..=parallelism)
                    .map(|i| 2.0 * f64::from(i) / (2.0 * f64::from(i) + 1.0))
                    .product::<f64>())
    }

    /// E\[D_seek\] in cylinders by the logarithm of (7).
    pub fn seek_distance(&self, parallelism: f64) -> f64 {
        self.cylinders * (1.0 - A - B_LN * libm::log(parallelism))
    }

    /// E\[T_seek\] in seconds (8) for a distance in cylinders.
    pub fn seek_s(&self, distance: f64) -> f64 {
        self.seek_slope_s * distance + self.seek_offset_s
    }

    /// E\[T_rot\] in seconds (11): the mean of the longest of P waits.
    pub fn longest_rotation_s(&self, parallelism: f64) -> f64 {
        parallelism / (parallelism + 1.0) * self.rotation_s
    }

    /// n_hs (13): ends of tracks within `blocks` blocks, changes of cylinder included. The right-hand
    /// side is exact for whole blocks; the middle form as printed gives the chance of no crossing.
    pub fn head_switches(&self, blocks: f64) -> f64 {
        (blocks - 1.0).max(0.0) / self.blocks_per_track
    }

    /// n_cs (14): ends of cylinders within `blocks` blocks.
    pub fn cylinder_switches(&self, blocks: f64) -> f64 {
        self.head_switches(blocks) / self.tracks_per_cylinder
    }

    /// E\[t_trans\] in seconds (12, 15) of the R/P blocks that each disk transfers.
    pub fn transfer_s(&self, request: f64, parallelism: f64) -> f64 {
        let blocks = request / parallelism;
        let cylinder_ends = self.cylinder_switches(blocks);
        (self.head_switches(blocks) - cylinder_ends) * self.head_switch_s
            + cylinder_ends * self.cylinder_switch_s
            + blocks / self.blocks_per_track * self.rotation_s
    }

    /// E\[T_serv(R, P)\] in seconds (16), for any real P of at least 1.
    pub fn service_s(&self, request: f64, parallelism: f64) -> f64 {
        self.seek_s(self.seek_distance(parallelism))
            + self.longest_rotation_s(parallelism)
            + self.transfer_s(request, parallelism)
    }
}

/// The published optimum, to hold the search to.
#[cfg(test)]
impl DiskSymbols {
    /// The derivative of (16) by P in seconds (17), for P up to R.
    pub fn service_slope_s(&self, request: f64, parallelism: f64) -> f64 {
        let [cube, square, linear, constant] = self.cubic(request);
        let p = parallelism;
        (((cube * p + square) * p + linear) * p + constant) / (p * p * (p + 1.0) * (p + 1.0))
    }

    /// Coefficients of the cubic in P whose root makes (17) zero, from P³ down:
    /// g P (P+1)² + ROT P² - K (P+1)², with g = -eCb and K = (R/B) (ROT + mean time of a track's end).
    pub fn cubic(&self, request: f64) -> [f64; 4] {
        let g = -self.seek_slope_s * self.cylinders * B_LN;
        let k = request / self.blocks_per_track * (self.rotation_s + self.crossing_s());
        [g, 2.0 * g + self.rotation_s - k, g - 2.0 * k, -k]
    }

    /// The real P that (16) is least at, without a bound by R or D. Infinite where longer seeks cost no
    /// time and rotation does not outweigh transfer.
    pub fn parallelism_real(&self, request: f64) -> f64 {
        let [cube, square, linear, constant] = self.cubic(request);
        // K is positive, so the signs change once whether 2K exceeds g or not: one positive root.
        let value = |p: f64| ((cube * p + square) * p + linear) * p + constant;
        let mut above = 1.0;
        while value(above) < 0.0 {
            above *= 2.0;
            if above > 1e15 {
                return f64::INFINITY;
            }
        }
        let mut below = 0.0;
        for _ in 0..200 {
            let middle = 0.5 * (below + above);
            if value(middle) < 0.0 { below = middle } else { above = middle }
        }
        0.5 * (below + above)
    }
}

impl DiskModel {
    /// E\[T_serv(R, P)\] in seconds of a request of `request` blocks on `parallelism` disks.
    pub fn service_s(&self, request: f64, parallelism: u32, estimate: ServiceEstimate) -> f64 {
        let symbols = self.symbols();
        let p = f64::from(parallelism);
        match estimate {
            ServiceEstimate::ClosedForm => symbols.service_s(request, p),
            ServiceEstimate::ExactDistance => {
                let seek_s = symbols.seek_s(symbols.seek_distance_exact(parallelism));
                seek_s + symbols.longest_rotation_s(p) + self.transfer(request / p).mean
            }
            ServiceEstimate::JointMaximum => {
                self.positioning().expected_max_s(parallelism) + self.transfer(request / p).mean
            }
        }
    }

    /// P_opt: the whole P up to `disks` and to R at which a request of `request` blocks is served the
    /// fastest; the least of equals.
    pub fn optimal_parallelism(&self, request: f64, disks: u32, estimate: ServiceEstimate) -> u32 {
        let most = (request.max(1.0) as u64).min(u64::from(disks)) as u32;
        (1..=most.max(1))
            .min_by(|a, b| {
                self.service_s(request, *a, estimate)
                    .total_cmp(&self.service_s(request, *b, estimate))
            })
            .unwrap_or(1)
    }
}
