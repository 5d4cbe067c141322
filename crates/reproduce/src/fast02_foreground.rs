//! Freeblock Scheduling Outside of Disk Firmware (FAST 2002): foreground policies outside the drive and
//! inside, figure 8.

use freewheel_host::PredictionSpec;
use freewheel_model::electronics::spec::QueueSpec;
use freewheel_model::sched::PolicySpec;
use freewheel_sim::RunResult;
use freewheel_sim::config::{ConfigError, Experiment};
use freewheel_units::SimDuration;

use super::fast02::{BLACK_BOX, POLICIES, Setting, line, mean_ms, on_ultra2};
use super::{Context, Outcome, Row};
use freewheel_study::figure::{Axes, Figure, Line};

pub(super) fn fig8(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let depths: &[u32] = if context.options.quick { &[4, 16] } else { &[1, 2, 4, 8, 12, 16] };
    let setting = |policy, outstanding| Setting {
        free: None,
        outstanding,
        think_time: SimDuration::ZERO,
        requests: context.requests() / 2,
        ..Setting::paper(context, policy, SimDuration::ZERO)
    };
    let seed = context.seed;
    let lines = |policy| {
        let settings: Vec<Setting> = depths.iter().map(|&depth| setting(policy, depth)).collect();
        context.run_all(&settings, |setting| setting.run(seed))
    };
    let outside = POLICIES
        .iter()
        .map(|&(_, policy)| lines(policy))
        .collect::<Result<Vec<_>, ConfigError>>()?;
    // All requests are the drive's, which has its own SPTF.
    let inside: Vec<Setting> = depths
        .iter()
        .map(|&depth| {
            let setting = setting(PolicySpec::Fcfs, depth);
            let scheduler = PredictionSpec { queue_depth: depth, ..setting.scheduler };
            Setting { scheduler, ..setting }
        })
        .collect();
    let inside = context.run_all(&inside, |setting| {
        let mut experiment = Experiment::new(setting.config(seed))?;
        on_ultra2(&mut experiment.spec);
        let queue = experiment.spec.electronics.queue.unwrap_or_default();
        let queue = QueueSpec { scheduler: PolicySpec::Sptf, ..queue };
        experiment.spec.electronics.queue = Some(queue);
        experiment.run()
    })?;
    let sptf = &outside[2];
    let difference = |at: usize| 100.0 * (mean_ms(&sptf[at]) / mean_ms(&inside[at]) - 1.0);
    let mut rows: Vec<Row> = depths
        .iter()
        .enumerate()
        .map(|(at, depth)| {
            let what = format!("SPTF outside over the drive's own, queue of {depth}");
            let row = context.row_in(&what, "%", [-2.0, 2.0], difference(at));
            let row = row.standing_in(BLACK_BOX);
            match depth {
                2 => row.deviates(REORDERED_AT_2, 0.16, REORDERS_WRITES),
                _ => row,
            }
        })
        .collect();
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

/// How much slower SPTF outside is with two outstanding, in %.
const REORDERED_AT_2: f64 = 3.4;

/// Why the drive's own SPTF gains even where there is no choice.
const REORDERS_WRITES: &str = "the drive's own serves a read that arrives while a write's data are on \
                               the bus, which nobody outside can; with reads alone both are equal";
