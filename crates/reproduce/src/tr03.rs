//! The Real Effect of I/O Optimizations and Disk Improvements (UCB/CSD-03-1263): systems on all
//! stand-in traces, and rows of what comes out.
//!
//! Two base systems are changed in one thing at a time. Each trace has its own runs. A row's number is the
//! mean over the classes of workloads, as in tr03, and a class is the mean over its traces; the note has the
//! traces and the classes one by one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use freewheel_sim::config::ConfigError;
use freewheel_sim::experiment::Experiment;
use freewheel_study::figure::{Axes, Figure, Line};
use freewheel_units::four_digits;
use rayon::prelude::*;

use super::tr03_deviations::with_known_deviation;
use super::tr03_measure::{Measure, Measured, TracedRun, improvement, improvement_by_new};
use super::tr03_system::{Base, SLICES, System};
use super::tr03_traces::{
    Class, QUICK, TraceHere, class_means, mean_over_classes, standing_in, traces,
};
use super::{Context, HOLDS, Outcome, Row};

/// A change of a system in front of a trace.
type Change<'a> = Box<dyn Fn(&mut System, &TraceHere) + Sync + 'a>;

/// A base system with a change.
pub(super) struct Variant<'a> {
    pub base: Base,
    change: Change<'a>,
}

impl<'a> Variant<'a> {
    pub fn new(base: Base, change: impl Fn(&mut System, &TraceHere) + Sync + 'a) -> Self {
        Self { base, change: Box::new(change) }
    }

    pub fn unchanged(base: Base) -> Self {
        Self::new(base, |_, _| {})
    }
}

/// One system on every trace, in the order of the traces.
pub(super) type Runs = Vec<Measured>;

/// The traces of a claim.
pub(super) struct Bench<'a> {
    pub context: &'a Context<'a>,
    pub traces: Vec<TraceHere>,
    /// Calls of [`Self::run`] so far.
    calls: AtomicUsize,
}

/// The runs of a claim on traces, by their order. Each sample of the claim leaves another part of them out, so
/// that all samples share the same runs.
#[derive(Default)]
pub(super) struct TracedRuns(Mutex<Vec<Arc<Vec<TracedRun>>>>);

impl TracedRuns {
    /// The runs of this call, from an earlier sample if there was one. Samples come one after the other.
    fn call(
        &self,
        call: usize,
        run: impl FnOnce() -> Result<Vec<TracedRun>, ConfigError>,
    ) -> Result<Arc<Vec<TracedRun>>, ConfigError> {
        let kept = self.0.lock().expect("no run panics").get(call).cloned();
        if let Some(kept) = kept {
            return Ok(kept);
        }
        let runs = Arc::new(run()?);
        self.0.lock().expect("no run panics").push(Arc::clone(&runs));
        Ok(runs)
    }
}

/// What the paper has, and what counts as reproduced.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    /// Least and largest number of the paper; the same for a single one.
    pub paper: [f64; 2],
    pub band: [f64; 2],
}

impl Expected {
    /// Within a factor of two of a number of the paper.
    pub fn near(paper: f64) -> Self {
        let (half, twice) = (paper / 2.0, (2.0 * paper).min(100.0));
        Self { paper: [paper; 2], band: [half.min(twice), half.max(twice)] }
    }
}

/// Runs a claim on the traces, or says which are missing.
pub(super) fn with_traces(
    context: &Context<'_>,
    claim: impl Fn(&Bench<'_>) -> Result<Outcome, ConfigError>,
) -> Result<Outcome, ConfigError> {
    with_these(context, &|_| true, claim)
}

/// The same on those that stand for servers.
pub(super) fn with_server_traces(
    context: &Context<'_>,
    claim: impl Fn(&Bench<'_>) -> Result<Outcome, ConfigError>,
) -> Result<Outcome, ConfigError> {
    with_these(context, &|class| !class.is_personal(), claim)
}

fn with_these(
    context: &Context<'_>,
    is_wanted: &dyn Fn(Class) -> bool,
    claim: impl Fn(&Bench<'_>) -> Result<Outcome, ConfigError>,
) -> Result<Outcome, ConfigError> {
    let traces = match traces(context, is_wanted)? {
        Ok(traces) => traces,
        Err(missing) => return Ok(missing),
    };
    let bench = Bench { context, traces, calls: AtomicUsize::new(0) };
    let Outcome { rows, figures } = claim(&bench)?;
    let what = standing_in(&bench.traces);
    let rows: Vec<Row> = rows
        .into_iter()
        .map(|row| {
            if bench.is_generated() {
                row.generated(&what)
            } else {
                with_known_deviation(row.standing_in(&what))
            }
        })
        .collect();
    let figures = if figures.is_empty() { points(&rows) } else { figures };
    Ok(Outcome { rows, figures })
}

/// A table as points over the numbers of its rows, with the paper's numbers and the ends of the bands.
fn points(rows: &[Row]) -> Vec<Figure> {
    let (mut ours, mut papers) = (Vec::new(), Vec::new());
    let (mut lows, mut highs) = (Vec::new(), Vec::new());
    for (number, row) in rows.iter().enumerate().filter(|(_, row)| row.unit != HOLDS) {
        let (x, Some([low, high])) = (number as f64 + 1.0, row.band) else { continue };
        ours.push((x, row.ours));
        papers.extend(row.paper.map(|paper| (x, paper)));
        lows.push((x, low));
        highs.push((x, high));
    }
    if ours.is_empty() {
        return Vec::new();
    }
    let lines = vec![
        dots("ours", ours),
        dots("paper", papers),
        line("band from", lows),
        line("band to", highs),
    ];
    vec![self::lines("row of the table below", "value of the row", lines)]
}

impl Bench<'_> {
    /// Whether a trace is generated in place of one that is missing, so that means are not those of the traces.
    fn is_generated(&self) -> bool {
        self.traces.iter().any(TraceHere::is_generated)
    }

    /// Every variant on every trace, without the part of the traces that this sample leaves out.
    pub fn run(&self, variants: &[Variant<'_>]) -> Result<Vec<Runs>, ConfigError> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let all = self.context.traced.call(call, || self.run_whole(variants))?;
        let sample =
            (self.context.options.seeds.len() > 1).then_some(self.context.sample % SLICES as usize);
        let measured: Vec<Measured> =
            all.iter().map(|run| Measured::without(run, sample)).collect();
        Ok(measured.chunks_exact(self.traces.len()).map(<[Measured]>::to_vec).collect())
    }

    /// Runs every variant on every trace, on all cores.
    fn run_whole(&self, variants: &[Variant<'_>]) -> Result<Vec<TracedRun>, ConfigError> {
        let firsts = self.firsts()?;
        let jobs: Vec<(&Variant<'_>, &TraceHere)> = variants
            .iter()
            .flat_map(|variant| self.traces.iter().map(move |trace| (variant, trace)))
            .collect();
        self.context.run_all(&jobs, |(variant, trace)| {
            let mut system = System::new(variant.base, trace);
            (variant.change)(&mut system, trace);
            let config = system.config(trace, self.context.seed);
            let place = self.traces.iter().position(|it| it.name == trace.name);
            let first = &firsts[place.expect("it is one of them")];
            Ok(TracedRun::of(&first.with_config(config)?.run()?))
        })
    }

    /// An experiment on each trace, from which all others take the streams and the inferred completions.
    fn firsts(&self) -> Result<Vec<Experiment>, ConfigError> {
        self.traces
            .par_iter()
            .map(|trace| {
                let config = System::new(Base::Poor, trace).config(trace, self.context.seed);
                Experiment::with_trace_info(config, Some(trace.info.clone()))
            })
            .collect()
    }

    /// The mean over the classes of their means over traces. Values that are no numbers do not count.
    pub fn mean(&self, values: &[f64]) -> f64 {
        mean_over_classes(&class_means(&self.classes(), values))
    }

    /// The class of each trace.
    fn classes(&self) -> Vec<Class> {
        self.traces.iter().map(|trace| trace.class).collect()
    }

    /// What a trace counts in [`Self::mean`].
    pub fn weights(&self) -> Vec<f64> {
        (0..self.traces.len())
            .map(|at| {
                self.mean(
                    &(0..self.traces.len())
                        .map(move |it| f64::from(u8::from(it == at)))
                        .collect::<Vec<f64>>(),
                )
            })
            .collect()
    }

    /// The mean over the classes, with all traces in its note.
    pub fn row(
        &self,
        quantity: &str,
        unit: &'static str,
        expected: Expected,
        values: &[f64],
    ) -> Row {
        self.judged(self.measured(quantity, unit, values), expected)
    }

    /// The row with its band, and the paper's number or range; a short run's and that of a generated trace are
    /// other numbers without them.
    fn judged(&self, row: Row, expected: Expected) -> Row {
        let Expected { paper: [least, most], band } = expected;
        if self.context.options.quick || self.is_generated() {
            return row;
        }
        row.within(band).of_paper([least, most])
    }

    /// The same without a band.
    pub fn measured(&self, quantity: &str, unit: &'static str, values: &[f64]) -> Row {
        let row = self.context.measured(&self.named(quantity), unit, self.mean(values));
        row.noted(self.each(values))
    }

    /// A number of all traces together.
    pub fn single(&self, quantity: &str, unit: &'static str, ours: f64) -> Row {
        self.context.measured(&self.named(quantity), unit, ours)
    }

    /// The same with a band.
    pub fn single_in(
        &self,
        quantity: &str,
        unit: &'static str,
        expected: Expected,
        ours: f64,
    ) -> Row {
        self.judged(self.single(quantity, unit, ours), expected)
    }

    /// Something that must hold on every trace: that no value is below `least`.
    pub fn holds_on_all(&self, quantity: &str, least: f64, values: &[f64]) -> Row {
        let holds = values.iter().all(|&value| value.is_nan() || value >= least);
        self.holds(quantity, holds).noted(self.each(values))
    }

    pub fn holds(&self, quantity: &str, truth: bool) -> Row {
        if self.context.options.quick {
            self.context.measured(&self.named(quantity), HOLDS, u8::from(truth).into())
        } else {
            self.context.holds(quantity, truth)
        }
    }

    /// A short run has one trace, so its numbers are others.
    fn named(&self, quantity: &str) -> String {
        if self.context.options.quick {
            format!("{quantity}, {QUICK} alone")
        } else {
            quantity.into()
        }
    }

    /// The traces with a value each.
    pub fn each(&self, values: &[f64]) -> String {
        let each = self.traces.iter().zip(values);
        let each = each.map(|(trace, &value)| said(&trace.label(), value));
        let each = each.collect::<Vec<String>>().join(", ");
        let means = class_means(&self.classes(), values);
        let classes: Vec<String> =
            means.into_iter().map(|(class, value)| said(class.name(), value)).collect();
        // A class with one trace has its number.
        match classes.len() {
            0 | 1 => each,
            _ => format!("{each}; {}", classes.join(", ")),
        }
    }

    /// A limit that the mean over the classes must not exceed.
    pub fn at_most(&self, quantity: &str, limit: f64, values: &[f64]) -> Row {
        let mean = self.mean(values);
        let row = self.single_at_most(quantity, limit, mean);
        row.also(&self.each(values))
    }

    /// The same of a number of all traces together.
    pub fn single_at_most(&self, quantity: &str, limit: f64, ours: f64) -> Row {
        let quantity = format!("{quantity}, at most {} %", four_digits(limit));
        self.holds(&quantity, ours <= limit).noted(format!("ours {} %", four_digits(ours)))
    }
}

fn said(name: &str, value: f64) -> String {
    if value.is_nan() { format!("{name} none") } else { format!("{name} {}", four_digits(value)) }
}

/// Improvements below this in size are no harm: other requests meet other rotational positions.
pub(super) const NO_WORSE: f64 = -1.0;

/// What a table compares on one base: the system without and with a technique.
pub(super) struct Compared<'a> {
    pub bench: &'a Bench<'a>,
    pub base: Base,
    pub without: &'a Runs,
    pub with: &'a Runs,
}

impl Compared<'_> {
    pub fn gains(&self, of: Measure) -> Vec<f64> {
        gains(self.without, self.with, of)
    }

    pub fn row(&self, quantity: &str, of: Measure, paper: [f64; 2], band: [f64; 2]) -> Row {
        let quantity = format!("{}: {quantity}", self.base.name());
        self.bench.row(&quantity, "%", Expected { paper, band }, &self.gains(of))
    }

    /// Within a factor of two of the mean over the paper's classes.
    pub fn near(&self, quantity: &str, of: Measure, paper: f64) -> Row {
        let quantity = format!("{}: {quantity}", self.base.name());
        self.bench.row(&quantity, "%", Expected::near(paper), &self.gains(of))
    }

    pub fn on_all(&self, quantity: &str, of: Measure, least: f64) -> Row {
        let quantity = format!("{}: {quantity}", self.base.name());
        self.bench.holds_on_all(&quantity, least, &self.gains(of))
    }
}

/// Runs both bases without and with a technique; `rows` makes rows of each.
pub(super) fn without_and_with(
    bench: &Bench<'_>,
    variants: impl Fn(Base) -> [Variant<'static>; 2],
    rows: impl Fn(&Compared<'_>) -> Vec<Row>,
) -> Result<Outcome, ConfigError> {
    let variants: Vec<Variant<'_>> = Base::BOTH.into_iter().flat_map(variants).collect();
    let runs = bench.run(&variants)?;
    let pairs = Base::BOTH.into_iter().zip(runs.chunks_exact(2));
    let rows = pairs.flat_map(|(base, pair)| {
        rows(&Compared { bench, base, without: &pair[0], with: &pair[1] })
    });
    Ok(Outcome { rows: rows.collect(), figures: Vec::new() })
}

/// Improvement of each trace from `old` to `new`, in per cent.
pub(super) fn gains(old: &Runs, new: &Runs, of: Measure) -> Vec<f64> {
    old.iter().zip(new).map(|(old, new)| improvement(of(old), of(new))).collect()
}

/// The same over the new value, as in table 11.
pub(super) fn gains_by_new(old: &Runs, new: &Runs, of: Measure) -> Vec<f64> {
    old.iter().zip(new).map(|(old, new)| improvement_by_new(of(old), of(new))).collect()
}

pub(super) fn values(runs: &Runs, of: Measure) -> Vec<f64> {
    runs.iter().map(of).collect()
}

pub(super) fn line(name: &str, points: Vec<(f64, f64)>) -> Line {
    Line { name: name.into(), points, dots: false }
}

pub(super) fn dots(name: &str, points: Vec<(f64, f64)>) -> Line {
    Line { name: name.into(), points, dots: true }
}

/// Lines over x, ours and the paper's, on a linear axis.
pub(super) fn lines(x: &'static str, y: &'static str, lines: Vec<Line>) -> Figure {
    Figure::lines(lines, Axes { x, y, log_x: false })
}

/// The same over powers of ten.
pub(super) fn lines_log(x: &'static str, y: &'static str, lines: Vec<Line>) -> Figure {
    Figure::lines(lines, Axes { x, y, log_x: true })
}
