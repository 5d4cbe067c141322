//! Table 10 of tr03: every optimisation taken away from each base, with its spread over slices.

use freewheel_sim::config::ConfigError;

use super::tr03::{Bench, Compared, Variant, with_traces};
use super::tr03_measure::{
    Measure, Measured, READ_MISSES, READ_RESPONSE, READ_SERVICE, WRITE_MISSES, WRITE_RESPONSE,
    WRITE_SERVICE, improvement, mean, standard_error,
};
use super::tr03_prefetch::prefetching;
use super::tr03_system::Base;
use super::tr03_tables::{buffering, caching, scheduling, striping};
use super::{Context, Outcome, Row};
use freewheel_study::figure::Figure;

/// An optimisation, and what table 10 says of it.
struct Technique {
    name: &'static str,
    /// A base without it and with it.
    variants: fn(Base) -> [Variant<'static>; 2],
    poor: Improvements,
    rich: Improvements,
}

/// Improvements of mean responses, in per cent. Zeros of the table name what a technique does not touch,
/// and are no claims.
#[derive(Clone, Copy)]
struct Improvements {
    read: Option<f64>,
    write: Option<f64>,
}

const fn reads(read: f64) -> Improvements {
    Improvements { read: Some(read), write: None }
}

const fn writes(write: f64) -> Improvements {
    Improvements { read: None, write: Some(write) }
}

const fn both(read: f64, write: f64) -> Improvements {
    Improvements { read: Some(read), write: Some(write) }
}

const TECHNIQUES: [Technique; 5] = [
    Technique { name: "caching", variants: caching, poor: reads(4.49), rich: reads(37.4) },
    Technique { name: "prefetching", variants: prefetching, poor: reads(46.6), rich: reads(51.1) },
    Technique { name: "buffering", variants: buffering, poor: writes(93.8), rich: writes(96.0) },
    Technique {
        name: "scheduling",
        variants: scheduling,
        poor: both(16.2, 49.9),
        rich: both(17.0, 46.2),
    },
    Technique {
        name: "striping",
        variants: striping,
        poor: both(46.8, 65.7),
        rich: both(40.0, 46.1),
    },
];

/// Numbers of the paper that lie closer together have no order.
const TIED: f64 = 5.0;

pub(super) fn tab10(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_traces(context, |bench| {
        let of = |base: Base| TECHNIQUES.into_iter().flat_map(move |it| (it.variants)(base));
        let variants: Vec<Variant<'_>> = Base::BOTH.into_iter().flat_map(of).collect();
        let runs = bench.run(&variants)?;
        let (mut rows, mut figures) = (Vec::new(), Vec::new());
        for (base, runs) in Base::BOTH.into_iter().zip(runs.chunks_exact(2 * TECHNIQUES.len())) {
            let pairs = TECHNIQUES.iter().zip(runs.chunks_exact(2)).map(|(technique, pair)| {
                let compared = Compared { bench, base, without: &pair[0], with: &pair[1] };
                Effect { technique, compared }
            });
            let effects: Vec<Effect<'_>> = pairs.collect();
            rows.extend(effects.iter().flat_map(Effect::rows));
            rows.push(order_of_reads(bench, base, &effects));
            figures.push(reads_by_technique(&effects));
        }
        Ok(Outcome { rows, figures })
    })
}

/// A technique on a base.
struct Effect<'a> {
    technique: &'a Technique,
    compared: Compared<'a>,
}

impl Effect<'_> {
    fn papers(&self) -> Improvements {
        match self.compared.base {
            Base::Poor => self.technique.poor,
            Base::Rich => self.technique.rich,
        }
    }

    fn rows(&self) -> Vec<Row> {
        let Improvements { read, write } = self.papers();
        let read = read.map(|paper| {
            let row = self.row("read response", READ_RESPONSE, paper, |run| &run.reads_by_slice);
            self.also(row, READ_SERVICE, READ_MISSES)
        });
        let write = write.map(|paper| {
            let row = self.row("write response", WRITE_RESPONSE, paper, |run| &run.writes_by_slice);
            self.also(row, WRITE_SERVICE, WRITE_MISSES)
        });
        read.into_iter().chain(write).collect()
    }

    /// Within a factor of two of the paper's number.
    fn row(&self, what: &str, of: Measure, paper: f64, slices: fn(&Measured) -> &Vec<f64>) -> Row {
        let quantity = format!("{}, {what}", self.technique.name);
        let band = [paper / 2.0, (2.0 * paper).min(100.0)];
        let row = self.compared.row(&quantity, of, [paper; 2], band);
        row.also(&format!("standard error by slices {:.1}", self.error_by_slices(slices)))
    }

    /// Standard error of the mean over the traces, when slices of a trace are its samples.
    fn error_by_slices(&self, slices: fn(&Measured) -> &Vec<f64>) -> f64 {
        let Compared { without, with, .. } = &self.compared;
        let errors = without.iter().zip(with.iter()).map(|(without, with)| {
            let pairs = slices(without).iter().zip(slices(with));
            let there = pairs.filter(|(old, new)| **old > 0.0 && **new > 0.0);
            standard_error(&there.map(|(&old, &new)| improvement(old, new)).collect::<Vec<f64>>())
        });
        errors.map(|error| error * error).sum::<f64>().sqrt() / without.len() as f64
    }

    fn also(&self, row: Row, service: Measure, misses: Measure) -> Row {
        let [service, misses] = [service, misses].map(|of| mean(&self.compared.gains(of)));
        row.also(&format!("service {service:.1} %, misses {misses:.1} % fewer"))
    }

    fn reads(&self) -> Option<(f64, f64)> {
        Some((self.papers().read?, mean(&self.compared.gains(READ_RESPONSE))))
    }
}

/// Whether techniques help reads in the paper's order.
fn order_of_reads(bench: &Bench<'_>, base: Base, effects: &[Effect<'_>]) -> Row {
    let all: Vec<(f64, f64)> = effects.iter().filter_map(Effect::reads).collect();
    let is_kept = all
        .iter()
        .all(|&(paper, ours)| all.iter().all(|other| paper - other.0 < TIED || ours > other.1));
    bench.holds(&format!("{}: order of the techniques for reads", base.name()), is_kept)
}

fn reads_by_technique(effects: &[Effect<'_>]) -> Figure {
    let bars = effects.iter().filter_map(|effect| {
        let (paper, ours) = effect.reads()?;
        let label = format!("{}: {}", effect.compared.base.name(), effect.technique.name);
        Some([(format!("{label}, paper"), paper), (label, ours)])
    });
    Figure::Values { quantity: "improvement of read response, %", bars: bars.flatten().collect() }
}
