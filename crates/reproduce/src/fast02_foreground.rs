//! Freeblock Scheduling Outside of Disk Firmware (FAST 2002): foreground policies outside the drive and
//! inside, figure 8.

use freewheel_model::electronics::spec::QueueSpec;
use freewheel_model::sched::PolicySpec;
use freewheel_sim::RunResult;
use freewheel_sim::config::{ConfigError, Workload};
use freewheel_sim::experiment::Experiment;
use freewheel_units::SimDuration;
use rayon::prelude::*;

use super::fast02::{BLACK_BOX, OutsideSetting, POLICIES, line, mean_ms, on_ultra2};
use super::{Context, Outcome, Row};
use freewheel_study::figure::{Axes, Figure, Line};

/// Clients that do not think, without free work.
fn setting(context: &Context<'_>, policy: PolicySpec, outstanding: u32) -> OutsideSetting {
    OutsideSetting {
        free: None,
        outstanding,
        think_time: SimDuration::ZERO,
        requests: context.requests() / 2,
        ..OutsideSetting::paper(context, policy, SimDuration::ZERO)
    }
}

/// The drives of the paper that choose among their commands.
const DRIVES: [&str; 2] = ["atlas10k", "cheetah18lp"];

/// Requests on one of [`DRIVES`], whose scheduler has all of them where `policy` is none.
fn run(
    context: &Context<'_>,
    drive: &str,
    policy: Option<PolicySpec>,
    outstanding: u32,
    read_share: f64,
) -> Result<RunResult, ConfigError> {
    let mut setting = setting(context, policy.unwrap_or(PolicySpec::Fcfs), outstanding);
    if policy.is_none() {
        setting.scheduler.queue_depth = outstanding;
    }
    let mut config = setting.config(context.seed);
    config.drive = drive.into();
    if let Workload::Closed { pattern, .. } = &mut config.workload {
        pattern.read_share = read_share;
    }
    let mut experiment = Experiment::new(config)?;
    on_ultra2(&mut experiment.spec);
    if policy.is_none() {
        let queue = experiment.spec.electronics.queue.unwrap_or_default();
        let queue = QueueSpec { scheduler: PolicySpec::Sptf, ..queue };
        experiment.spec.electronics.queue = Some(queue);
    }
    experiment.run()
}

/// Reads of the paper's transactions.
const READS: f64 = 2.0 / 3.0;

/// By how much SPTF outside answers later than the drive's own, in %.
fn difference(outside: &RunResult, inside: &RunResult) -> f64 {
    100.0 * (mean_ms(outside) / mean_ms(inside) - 1.0)
}

/// The same for other requests than those of the figure.
fn difference_of(
    context: &Context<'_>,
    drive: &str,
    depth: u32,
    reads: f64,
) -> Result<f64, ConfigError> {
    Ok(difference(
        &run(context, drive, Some(PolicySpec::Sptf), depth, reads)?,
        &run(context, drive, None, depth, reads)?,
    ))
}

pub(super) fn fig8(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let depths: &[u32] = if context.options.quick { &[4, 16] } else { &[1, 2, 4, 8, 12, 16] };
    let lines = |policy| {
        let runs = depths.par_iter().map(|&depth| run(context, DRIVES[0], policy, depth, READS));
        runs.collect::<Result<Vec<RunResult>, ConfigError>>()
    };
    let outside = POLICIES
        .iter()
        .map(|&(_, policy)| lines(Some(policy)))
        .collect::<Result<Vec<_>, ConfigError>>()?;
    let inside = lines(None)?;
    let sptf = &outside[2];
    let row = |what: &str, ours| context.row(what, "%", 0.0, 2.0, ours);
    let mut rows: Vec<Row> = Vec::new();
    // With one there is no choice, inside or outside.
    for (at, depth) in depths.iter().enumerate().filter(|(_, depth)| **depth > 1) {
        let what = format!("SPTF outside over the drive's own, queue of {depth}");
        let row = row(&what, difference(&sptf[at], &inside[at])).derived().standing_in(BLACK_BOX);
        rows.push(match depth {
            2 => {
                let reads = difference_of(context, DRIVES[0], 2, 1.0)?;
                row.deviates(REORDERED_AT_2, 0.168, REORDERS_WRITES)
                    .noted(format!("{reads:.2} % with reads alone"))
            }
            _ => row,
        });
    }
    let deepest = depths[depths.len() - 1];
    let what = format!("Cheetah: SPTF outside over the drive's own, queue of {deepest}");
    let of_cheetah = difference_of(context, DRIVES[1], deepest, READS)?;
    rows.push(row(&what, of_cheetah).derived().standing_in(CHEETAH));
    let last = depths.len() - 1;
    let ordered = mean_ms(&outside[2][last]) < mean_ms(&outside[1][last])
        && mean_ms(&outside[1][last]) < mean_ms(&outside[0][last]);
    rows.push(context.holds("SPTF before SPTF-SW60% before SSTF", ordered));
    let points = |results: &[RunResult]| {
        depths.iter().zip(results).map(|(&depth, result)| (depth.into(), mean_ms(result))).collect()
    };
    let mut lines: Vec<Line> = POLICIES
        .iter()
        .zip(&outside)
        .map(|((name, _), results)| line(&format!("{name} outside"), points(results)))
        .collect();
    lines.push(line("the drive's own SPTF", points(&inside)));
    let axes = Axes { x: "requests outstanding", y: "mean response, ms", log_x: false };
    Ok(Outcome { rows, figures: vec![Figure::lines(lines, axes)] })
}

/// What stands in for the paper's second drive.
const CHEETAH: &str = "an emulated Cheetah 18LP without a buffer, of which nothing is published; errors of its seeks are normal, with the Atlas's standard deviation of 105 us; its own policy is SPTF";

/// How much slower SPTF outside is with two outstanding, in %.
const REORDERED_AT_2: f64 = 3.36;

/// Why the drive's own SPTF gains even where there is no choice.
const REORDERS_WRITES: &str = "the drive's own serves a read that arrives while a write's data are on \
                               the bus, which nobody outside can; with reads alone both are equal";
