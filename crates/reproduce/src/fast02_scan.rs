//! Freeblock Scheduling Outside of Disk Firmware (FAST 2002): a full scan behind transactions, and
//! what more can be had from outside.

use freewheel_freeblock::Rule;
use freewheel_host::{Conservatism, PredictionSpec, SameTrack};
use freewheel_model::sched::PolicySpec;
use freewheel_sim::black_box::JitterShape;
use freewheel_sim::config::ConfigError;
use freewheel_sim::source::SizeDistribution;
use freewheel_sim::{RunResult, library};
use freewheel_units::SimDuration;

use super::fast02::{BLACK_BOX, POLICIES, Setting, free_mb_per_second, mean_ms};
use super::sizes::{SIZES, with_other_sizes};
use super::sustained::mean_sustained_mb_per_second;
use super::{Context, Outcome, Row};

/// The paper's setting. It does not say under which policy; SSTF gave it most.
pub(super) fn setting(quick: bool) -> Setting {
    Setting::of(quick, PolicySpec::Sstf, SimDuration::from_us(300))
}

/// Part of the foreground's requests that the scan may take, in per cent.
pub(super) const LOST: [f64; 2] = [-5.0, 2.0];

/// Why the two bandwidths together are no six times the foreground's.
fn few_times(foreground_mb: f64) -> String {
    format!(
        "six times need a foreground of 0.62 MB/s beside the paper's 3.1, 76 requests of 8 KB a second; ten clients make {foreground_mb:.2} MB/s under SSTF here. The paper says it of SPTF-SW60% at 0.4 ms, which reads less"
    )
}

/// Why there are fewer scans a day.
const SCANS: &str =
    "the paper's two numbers exclude each other: 3.1 MB/s are 29 scans of 9.1 GB a day";

/// Part of the paper's numbers that counts as reproduced.
pub(super) const TOLERANCE: f64 = 0.1;

pub(super) fn scan(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let seed = context.seed;
    let setting = setting(context.options.quick);
    let alone = Setting { free: None, ..setting };
    let scheduler = PredictionSpec {
        same_track: SameTrack::Distinct,
        lead_time: PredictionSpec::default().lead_time,
        ..setting.scheduler
    };
    let best = Setting { free: Some(Rule::Paths), scheduler, ..setting };
    let results = context.run_all(&[setting, alone, best], |setting| setting.run(seed))?;
    let [with, without, best] = &results[..] else { unreachable!("three runs") };
    // With what the foreground reads in passing.
    let delivered = |result: &RunResult| result.background[0].tasks[0].bytes_per_second();
    let bandwidth = delivered(with).map_or(free_mb_per_second(with), |bytes| bytes / 1e6);
    let spec = library::spec("atlas10k")?;
    let sustained = mean_sustained_mb_per_second(&library::build(&spec, "atlas10k")?);
    let foreground = with.bytes_per_second / 1e6;
    let lost = 100.0 * (1.0 - with.requests_per_second / without.requests_per_second);
    let times = (bandwidth + foreground) / foreground;
    let share = 100.0 * bandwidth / sustained;
    let least = |paper: f64| (1.0 - TOLERANCE) * paper;
    let (sequential, used) =
        ("of the bandwidth of sequential reads", "bandwidth used, times the foreground's");
    let mut rows = vec![
        context.of_scan("free bandwidth", "MB/s", [least(3.1), 20.0], bandwidth),
        context.of_scan(sequential, "%", [least(15.0), 100.0], share),
        context.row_in("foreground lost", "%", LOST, lost),
        context.of_scan(used, "x", [least(6.0), 20.0], times).deviates(
            3.4,
            0.15,
            few_times(foreground),
        ),
    ];
    if !context.options.quick {
        let scans =
            |result: &RunResult| result.background[0].tasks[0].rounds_a_day().unwrap_or(0.0);
        let row = context.row_in("full scans", "a day", [least(37.0), 100.0], scans(with));
        rows.push(row.deviates(32.0, 1.2, SCANS));
        rows.push(context.row_in(
            "full scans, several stops in a gap and tracks of the foreground included",
            "a day",
            [37.0, 200.0],
            scans(best),
        ));
    }
    let rows = rows.into_iter().map(|row| row.standing_in(BLACK_BOX)).collect();
    Ok(Outcome { rows, figures: Vec::new() })
}

/// Jitter of the black box that the scheduler is to master beyond the paper, and its margin.
const BEYOND_JITTER: SimDuration = SimDuration::from_us(50);

pub(super) fn beyond(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let rows = beyond_rows(context, SIZES)?;
    let rows = with_other_sizes(context, rows, |sizes| beyond_rows(context, sizes))?;
    Ok(Outcome { rows, figures: Vec::new() })
}

fn beyond_rows(context: &Context<'_>, sizes: SizeDistribution) -> Result<Vec<Row>, ConfigError> {
    let seed = context.seed;
    let scheduler = PredictionSpec {
        conservatism: Conservatism::Constant(BEYOND_JITTER + SimDuration::from_us(10)),
        same_track: SameTrack::Distinct,
        ..PredictionSpec::default()
    };
    let mut rows = Vec::new();
    for (name, policy) in [("FCFS", PolicySpec::Fcfs), POLICIES[0], POLICIES[1], POLICIES[2]] {
        let paper = Setting::paper(context, policy, SimDuration::ZERO);
        let ours = Setting {
            free: Some(Rule::Paths),
            scheduler,
            jitter: BEYOND_JITTER,
            shape: JitterShape::Even,
            sizes,
            ..paper
        };
        let alone = Setting { free: None, ..ours };
        let outside = context.run_all(&[ours, alone], |setting| setting.run(seed))?;
        let part_of = |outside: &RunResult, setting: &Setting| -> Result<f64, ConfigError> {
            let firmware = setting.run_in_firmware(seed)?;
            Ok(100.0 * free_mb_per_second(outside) / free_mb_per_second(&firmware))
        };
        let [with, without] = &outside[..] else { unreachable!("two runs") };
        let part = part_of(with, &ours)?;
        let cost = 100.0 * (mean_ms(with) / mean_ms(without) - 1.0);
        // The paper had 65 % (section 7).
        rows.push(context.row_in(
            &format!("{name}: free bandwidth of that in firmware"),
            "%",
            [65.0, 120.0],
            part,
        ));
        rows.push(context.row_in(&format!("{name}: response above"), "%", [-10.0, 0.5], cost));
        if !context.options.quick {
            let as_paper = Setting {
                free: Some(Rule::Paths),
                scheduler: PredictionSpec { off_share: 0.0, ..PredictionSpec::default() },
                sizes,
                ..paper
            };
            let quantity = format!(
                "{name}, errors and commands as the paper's: free bandwidth of that in firmware"
            );
            let part = part_of(&as_paper.run(seed)?, &as_paper)?;
            rows.push(context.row(&quantity, "%", 65.0, 6.5, part));
        }
    }
    let what = "an emulated Atlas 10K with its reading ahead, whose seeks vary by 50 us either way";
    Ok(rows.into_iter().map(|row| row.standing_in(what)).collect())
}
