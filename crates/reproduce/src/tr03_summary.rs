//! Table 10 of tr03: every optimisation taken away from each base, with its spread over slices.

use freewheel_sim::config::ConfigError;

use super::tr03::{Bench, Compared, Variant, with_traces};
use super::tr03_measure::{
    Measure, Measured, READ_MISSES, READ_RESPONSE, READ_SERVICE, WRITE_MISSES, WRITE_RESPONSE,
    WRITE_SERVICE, improvement, standard_error,
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

/// Improvements of mean responses and services, in per cent. Zeros of the table name what a technique does not touch,
/// and are no claims.
#[derive(Clone, Copy)]
struct Improvements {
    read: Option<Improvement>,
    write: Option<Improvement>,
}

#[derive(Clone, Copy)]
struct Improvement {
    response: f64,
    service: f64,
}

const fn of(response: f64, service: f64) -> Improvement {
    Improvement { response, service }
}

const fn reads(read: Improvement) -> Improvements {
    Improvements { read: Some(read), write: None }
}

const fn writes(write: Improvement) -> Improvements {
    Improvements { read: None, write: Some(write) }
}

const fn both(read: Improvement, write: Improvement) -> Improvements {
    Improvements { read: Some(read), write: Some(write) }
}

const TECHNIQUES: [Technique; 5] = [
    Technique {
        name: "caching",
        variants: caching,
        poor: reads(of(4.49, 4.14)),
        rich: reads(of(37.4, 36.1)),
    },
    Technique {
        name: "prefetching",
        variants: prefetching,
        poor: reads(of(46.6, 46.1)),
        rich: reads(of(51.1, 50.3)),
    },
    Technique {
        name: "buffering",
        variants: buffering,
        poor: writes(of(93.8, 71.8)),
        rich: writes(of(96.0, 86.2)),
    },
    Technique {
        name: "scheduling",
        variants: scheduling,
        poor: both(of(16.2, 2.8), of(49.9, 30.5)),
        rich: both(of(17.0, 1.8), of(46.2, 38.4)),
    },
    Technique {
        name: "striping",
        variants: striping,
        poor: both(of(46.8, 29.5), of(65.7, 13.5)),
        rich: both(of(40.0, 23.3), of(46.1, 14.9)),
    },
];

/// Numbers of the paper that lie closer together have no order.
const TIED: f64 = 5.0;

pub(super) fn tab10(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_traces(context, |bench| {
        let variants: Vec<Variant<'_>> = Base::BOTH
            .into_iter()
            .flat_map(|base| TECHNIQUES.into_iter().flat_map(move |it| (it.variants)(base)))
            .collect();
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
        let read = read.map(|Improvement { response, service }| {
            let row = self.row("read response", READ_RESPONSE, response, |run| &run.reads_by_slice);
            [self.also_misses(row, READ_MISSES), self.near("read service", READ_SERVICE, service)]
        });
        let write = write.map(|Improvement { response, service }| {
            let slices: fn(&Measured) -> &Vec<f64> = |run| &run.writes_by_slice;
            let row = self.row("write response", WRITE_RESPONSE, response, slices);
            [
                self.also_misses(row, WRITE_MISSES),
                self.near("write service", WRITE_SERVICE, service),
            ]
        });
        read.into_iter().chain(write).flatten().collect()
    }

    fn near(&self, what: &str, of: Measure, paper: f64) -> Row {
        self.compared.near(&format!("{}, {what}", self.technique.name), of, paper)
    }

    /// Within a factor of two of the paper's number.
    fn row(&self, what: &str, of: Measure, paper: f64, slices: fn(&Measured) -> &Vec<f64>) -> Row {
        let row = self.near(what, of, paper);
        row.also(&format!("standard error by slices {:.1}", self.error_by_slices(slices)))
    }

    /// Standard error of the mean over the classes, when slices of a trace are its samples.
    fn error_by_slices(&self, slices: fn(&Measured) -> &Vec<f64>) -> f64 {
        let Compared { bench, without, with, .. } = &self.compared;
        let errors = without.iter().zip(with.iter()).zip(bench.weights());
        let errors = errors.map(|((without, with), weight)| {
            let pairs = slices(without).iter().zip(slices(with));
            let there = pairs.filter(|(old, new)| **old > 0.0 && **new > 0.0);
            let samples = there.map(|(&old, &new)| improvement(old, new)).collect::<Vec<f64>>();
            weight * standard_error(&samples)
        });
        errors.map(|error| error * error).sum::<f64>().sqrt()
    }

    fn also_misses(&self, row: Row, misses: Measure) -> Row {
        let misses = self.compared.bench.mean(&self.compared.gains(misses));
        row.also(&format!("misses {misses:.1} % fewer"))
    }

    fn reads(&self) -> Option<(f64, f64)> {
        let gains = self.compared.gains(READ_RESPONSE);
        Some((self.papers().read?.response, self.compared.bench.mean(&gains)))
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
