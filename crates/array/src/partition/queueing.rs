//! Phase B of tr96 section 2.2: response times of an open queueing model.
//!
//! Each disk is an M/G/1 queue. A request waits for the slowest of its P subrequests; a correction to the
//! mean response of one subrequest estimates that (24).

use super::moments::Moments;

/// A disk as an M/G/1 queue in first-come first-served order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiskQueue {
    rate: f64,
    service: Moments,
}

/// Ratio of the slowest of P subrequests to the mean one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForkJoin {
    /// (25): normal response times without correlation. It jumps from 0.89 standard deviations at P = 3
    /// to 1.67 at P = 4, and overestimates everywhere above.
    #[default]
    Paper,
    /// Mean maxima of P normal or exponential times instead of the two branches of (25), and only the part
    /// of the wait's variance that the subrequests of one request do not share.
    SharedWaits,
}

impl DiskQueue {
    /// A queue with `rate` arrivals a second (18). None when it would grow without end.
    pub fn new(rate: f64, service: Moments) -> Option<Self> {
        (rate * service.mean < 1.0).then_some(Self { rate, service })
    }

    /// rho (20): share of time in which the disk is busy.
    pub fn utilisation(&self) -> f64 {
        self.rate * self.service.mean
    }

    /// Moments of the service time.
    pub fn service(&self) -> Moments {
        self.service
    }

    /// Mean of the wait in seconds: the second term of (21).
    pub fn wait_s(&self) -> f64 {
        let idle = 1.0 - self.utilisation();
        let variation = 1.0 + self.service.squared_variation();
        self.utilisation() * self.service.mean * variation / (2.0 * idle)
    }

    /// E\[t_resp\] in seconds (21).
    pub fn response_s(&self) -> f64 {
        self.service.mean + self.wait_s()
    }

    /// Variance of the wait in s²: (23) without its first term.
    pub fn wait_variance(&self) -> f64 {
        let idle = 1.0 - self.utilisation();
        let second = self.rate * self.service.second / (2.0 * idle);
        self.rate * self.service.third / (3.0 * idle) + second * second
    }

    /// VAR\[t_resp\] in s² (23).
    pub fn response_variance(&self) -> f64 {
        self.service.variance() + self.wait_variance()
    }

    /// E\[T_resp\] in seconds of a request with `parallelism` subrequests on that many of `disks` equal
    /// disks.
    pub fn request_response_s(&self, parallelism: u32, disks: u32, correction: ForkJoin) -> f64 {
        let p = f64::from(parallelism);
        let longer_s = match correction {
            ForkJoin::Paper => self.response_variance().sqrt() * paper_deviations(p),
            ForkJoin::SharedWaits => {
                let apart = 1.0 - self.shared_wait(p, f64::from(disks));
                let (served, waited) =
                    (normal_maximum(parallelism), self.wait_maximum(parallelism));
                let service = served * served * self.service.variance();
                (service + waited * waited * apart * self.wait_variance()).sqrt()
            }
        };
        self.response_s() + longer_s
    }

    /// Mean of the longest of `count` waits, in standard deviations above the mean. Waits of a busy disk
    /// have an exponential tail: the mean maximum of exponential times is the harmonic number. Those of
    /// an idle one hang on few requests, and vary like service times.
    fn wait_maximum(&self, count: u32) -> f64 {
        let exponential: f64 = (2..=count).map(|number| 1.0 / f64::from(number)).sum();
        let normal = normal_maximum(count);
        normal + self.utilisation() * (exponential - normal)
    }

    /// Correlation between the waits on two disks of one request. With P of D disks a request, a second
    /// disk receives a share (P-1)/(D-1) of the first one's arrivals. Common arrivals carry the part
    /// 1/(1+c²) of the work's variance; the rest comes from service times, which differ.
    fn shared_wait(&self, parallelism: f64, disks: f64) -> f64 {
        if disks <= 1.0 {
            return 0.0;
        }
        (parallelism - 1.0) / ((disks - 1.0) * (1.0 + self.service.squared_variation()))
    }
}

/// Standard deviations of (25); the logarithm is the natural one.
fn paper_deviations(p: f64) -> f64 {
    if p <= 3.0 { (p - 1.0) / (2.0 * p - 1.0).sqrt() } else { (2.0 * libm::log(p)).sqrt() }
}

/// Mean of the largest of `count` independent standard normal numbers.
///
/// It is the area above F^count right of zero less the area of F^count left of zero.
pub fn normal_maximum(count: u32) -> f64 {
    const STEPS: u32 = 2000;
    const FAR: f64 = 9.0;
    let power = |x: f64| libm::pow(0.5 * libm::erfc(-x / std::f64::consts::SQRT_2), count.into());
    let height = |step: u32| {
        let x = FAR * f64::from(step) / f64::from(STEPS);
        1.0 - power(x) - power(-x)
    };
    let middle: f64 = (1..STEPS).map(height).sum();
    (middle + 0.5 * (height(0) + height(STEPS))) * FAR / f64::from(STEPS)
}

/// Stripe unit in blocks that Chen et al. derive from a closed model (1): `latency_s` is L, the mean seek
/// and rotation; `blocks_per_second` X; `multiprogramming` M; `request` R in blocks.
pub fn closed_model_unit(
    latency_s: f64,
    blocks_per_second: f64,
    multiprogramming: f64,
    request: f64,
    disks: u32,
) -> f64 {
    let waiting = (multiprogramming - 1.0).max(0.0);
    (latency_s * blocks_per_second * waiting * request / f64::from(disks)).sqrt()
}
