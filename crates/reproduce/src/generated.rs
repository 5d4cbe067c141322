//! Traces that are generated where a public one is missing. They share its counts, span, devices, mix of
//! requests and footprint, and none of its requests.

use std::path::{Path, PathBuf};

use freewheel_sim::config::ConfigError;
use freewheel_sim::source::{Pattern, PatternSpec, SizeDistribution};
use freewheel_trace::{Record, TraceWriter};
use freewheel_units::{Blocks, Bytes, Prng, SimDuration, SimTime};
use tempfile::TempDir;

/// What a generated trace has in common with the public one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub requests: u64,
    /// From the first arrival to the last, in the mean over seeds.
    pub span: SimDuration,
    /// Requests that come soon after the one before.
    pub bursts: Bursts,
    /// Disks or volumes of the trace.
    pub devices: &'static [Device],
    pub read_share: f64,
    /// Mean size of requests.
    pub size: Bytes,
    /// Mean response time, where the trace records completions.
    pub response: Option<SimDuration>,
}

/// The times between arrivals within bursts; those between bursts fill the span.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bursts {
    /// Share of the requests that follow within a burst.
    pub share: f64,
    /// Mean time since the request before.
    pub gap: SimDuration,
}

/// A disk or volume of a trace.
#[derive(Debug)]
pub(super) struct Device {
    /// Its number in the trace.
    pub number: u32,
    /// Requests of the public trace, for its share of the generated ones.
    pub requests: u64,
    /// Blocks within which its requests lie.
    pub blocks: u64,
}

impl Form {
    /// Writes the trace of this seed into a temporary folder.
    pub fn write(&self, seed: u64) -> Result<GeneratedTrace, ConfigError> {
        let folder = tempfile::tempdir()
            .map_err(|source| ConfigError::Read { path: std::env::temp_dir(), source })?;
        let path = folder.path().join("generated.parquet");
        let mut writer = TraceWriter::create(&path)?;
        for record in self.records(seed) {
            writer.write(&record)?;
        }
        writer.finish()?;
        Ok(GeneratedTrace { _folder: folder, path })
    }

    fn records(&self, seed: u64) -> impl Iterator<Item = Record> {
        let mut patterns: Vec<Pattern> =
            self.devices.iter().map(|device| self.pattern(device, seed)).collect();
        let mut times = Prng::new(seed, "generated trace times");
        let mut choices = Prng::new(seed, "generated trace devices");
        let mut arrival = SimTime::ZERO;
        (0..self.requests).map(move |number| {
            if number > 0 {
                arrival += self.gap(&mut times);
            }
            let device = self.choose(&mut choices);
            let request = patterns[device].draw(number);
            Record {
                arrival,
                op: request.op,
                device: self.devices[device].number,
                start: request.start,
                blocks: request.blocks,
                widened: false,
                completion: self.response.map(|mean| arrival + exponential(&mut times, mean)),
                fua: false,
            }
        })
    }

    /// Each device has a seed of its own: otherwise all would get the same addresses.
    fn pattern(&self, device: &Device, seed: u64) -> Pattern {
        let spec = PatternSpec {
            read_share: self.read_share,
            size: self.size,
            size_distribution: SizeDistribution::Exponential,
            align: Bytes::new(512),
            ..PatternSpec::default()
        };
        let seed = seed.wrapping_mul(1000).wrapping_add(device.number.into());
        Pattern::new(spec, Blocks::new(device.blocks), seed).expect("a form of `public_traces`")
    }

    fn gap(&self, prng: &mut Prng) -> SimDuration {
        let Bursts { share, gap } = self.bursts;
        if prng.chance(share) {
            return exponential(prng, gap);
        }
        let mean_ns = self.span.ns() as f64 / self.requests as f64;
        let between_ns = (mean_ns - share * gap.ns() as f64) / (1.0 - share);
        exponential(prng, SimDuration::from_ns(between_ns as u64))
    }

    /// A device by its share of the requests.
    fn choose(&self, prng: &mut Prng) -> usize {
        let all = self.devices.iter().map(|device| device.requests).sum();
        let mut left = prng.below(all);
        self.devices
            .iter()
            .position(|device| match left.checked_sub(device.requests) {
                Some(rest) => {
                    left = rest;
                    false
                }
                None => true,
            })
            .expect("less than the sum")
    }
}

fn exponential(prng: &mut Prng, mean: SimDuration) -> SimDuration {
    SimDuration::from_ns(prng.exponential(mean.ns() as f64) as u64)
}

/// The file of a generated trace, which vanishes with it.
#[derive(Debug)]
pub(super) struct GeneratedTrace {
    _folder: TempDir,
    path: PathBuf,
}

impl GeneratedTrace {
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use freewheel_sim::config::{TraceWorkload, open};
    use freewheel_trace::TraceInfo;

    use super::*;
    use crate::public_traces::{DISKSIM_ASCII, HPLAJW, VSCSI};

    const FORMS: [&Form; 3] = [&DISKSIM_ASCII.form, &HPLAJW.form, &VSCSI.form];

    fn info(form: &Form) -> TraceInfo {
        let trace = form.write(1).unwrap();
        let workload = TraceWorkload { file: trace.path().into(), ..TraceWorkload::default() };
        TraceInfo::scan(&mut open(&workload, 1).unwrap()).unwrap()
    }

    fn is_near(ours: f64, wanted: f64, share: f64) -> bool {
        (ours / wanted - 1.0).abs() < share
    }

    #[test]
    fn generated_trace_matches_form() {
        for form in FORMS {
            let info = info(form);
            assert_eq!(info.requests, form.requests);
            assert_eq!(info.devices.len(), form.devices.len());
            assert_eq!(info.has_completions, form.response.is_some());
            let (reads, all) = (info.reads as f64, form.requests as f64);
            assert!(is_near(reads / all, form.read_share, 0.02), "{reads} of {form:?}");
            assert!(is_near(info.span_ns as f64, form.span.ns() as f64, 0.05), "{form:?}");
            // Sizes are rounded up to blocks, and cut at the end of small devices.
            let size = info.bytes as f64 / all;
            assert!(is_near(size, form.size.get() as f64 + 256.0, 0.03), "{size} of {form:?}");
        }
    }

    #[test]
    fn generated_devices_get_request_shares() {
        for form in FORMS {
            let found = info(form).devices;
            let all: u64 = form.devices.iter().map(|device| device.requests).sum();
            for device in form.devices {
                let info = &found[&device.number];
                assert!(info.end_block <= device.blocks, "{device:?}");
                let expected = form.requests as f64 * device.requests as f64 / all as f64;
                // Five standard deviations of a binomial.
                let off = (info.requests as f64 - expected).abs();
                assert!(off <= 5.0 * expected.sqrt(), "{off} of {device:?}");
            }
        }
    }

    #[test]
    fn generated_trace_depends_on_seed() {
        let of = |seed| VSCSI.form.records(seed).take(1000).collect::<Vec<_>>();
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn generated_devices_share_no_addresses() {
        let form = Form {
            devices: &[
                Device { number: 0, requests: 1, blocks: 1_000_000 },
                Device { number: 1, requests: 1, blocks: 1_000_000 },
            ],
            ..DISKSIM_ASCII.form
        };
        let starts = |device| {
            let of_device = form.records(1).filter(move |record| record.device == device);
            of_device.map(|record| record.start).take(10).collect::<Vec<_>>()
        };
        assert_ne!(starts(0), starts(1));
    }
}
