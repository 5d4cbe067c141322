//! Freeblock Scheduling Outside of Disk Firmware (FAST 2002): a full scan behind transactions, and
//! what more can be had from outside.

use freewheel_freeblock::Rule;
use freewheel_host::{Conservatism, PredictionSpec, SameTrack};
use freewheel_model::sched::PolicySpec;
use freewheel_sim::black_box::JitterShape;
use freewheel_sim::config::ConfigError;
use freewheel_sim::{RunResult, library};
use freewheel_units::SimDuration;

use super::fast02::{BLACK_BOX, OutsideSetting, POLICIES, free_mb_per_second, mean_ms, percent};
use super::sustained::mean_sustained_mb_per_second;
use super::{Context, Outcome, Row};

/// The paper's setting. It does not say under which policy; SSTF gave it most.
pub(super) fn setting(quick: bool) -> OutsideSetting {
    OutsideSetting::of(quick, PolicySpec::Sstf, SimDuration::from_us(300))
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
    "the paper's two numbers do not fit together: 3.1 MB/s are 29 scans of 9.1 GB a day";

/// Part of the paper's numbers that counts as reproduced.
pub(super) const TOLERANCE: f64 = 0.1;

pub(super) fn scan(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let seed = context.seed;
    let setting = setting(context.options.quick);
    let alone = OutsideSetting { free: None, ..setting };
    let scheduler = PredictionSpec {
        same_track: SameTrack::Distinct,
        lead_time: PredictionSpec::default().lead_time,
        ..setting.scheduler
    };
    let best = OutsideSetting { free: Some(Rule::Paths), scheduler, ..setting };
    let results = context.run_all(&[setting, alone, best], |setting| setting.run(seed))?;
    let [with, without, best] = &results[..] else { unreachable!("three runs") };
    let bandwidth = delivered(with).map_or(free_mb_per_second(with), |bytes| bytes / 1e6);
    let spec = library::spec("atlas10k")?;
    let sustained = mean_sustained_mb_per_second(&library::build(&spec, "atlas10k")?);
    let foreground = with.bytes_per_second / 1e6;
    let lost = 100.0 * (1.0 - with.requests_per_second / without.requests_per_second);
    let times = (bandwidth + foreground) / foreground;
    let share = 100.0 * bandwidth / sustained;
    let row = |quantity: &str, unit, paper: f64, ours| {
        let band = [(1.0 - TOLERANCE) * paper, (1.0 + TOLERANCE) * paper];
        context.number_of_scan(quantity, unit, [paper; 2], band, ours)
    };
    let mut rows = vec![
        row("free bandwidth", "MB/s", 3.1, bandwidth),
        row("of the bandwidth of sequential reads", "%", 15.0, share),
        context.row_in("foreground lost", "%", LOST, lost),
        row("bandwidth used, times the foreground's", "x", 6.0, times).deviates(
            3.4,
            0.17,
            few_times(foreground),
        ),
        lost_hits(context, with, without),
    ];
    if !context.options.quick {
        let row = row("full scans", "a day", 37.0, scans(with));
        rows.push(row.deviates(31.7, 1.58, SCANS));
        let quantity = "full scans, several stops in a gap and tracks of the foreground included";
        rows.push(context.row_in(quantity, "a day", [37.0, 200.0], scans(best)).own());
    }
    let rows = rows.into_iter().map(|row| row.standing_in(BLACK_BOX)).collect();
    Ok(Outcome { rows, figures: Vec::new() })
}

/// With what the foreground reads in passing.
fn delivered(result: &RunResult) -> Option<f64> {
    result.background[0].tasks[0].bytes_per_second()
}

fn scans(result: &RunResult) -> f64 {
    result.background[0].tasks[0].rounds_a_day().unwrap_or(0.0)
}

/// Footnote 1: lost prefetching "will rarely eliminate subsequent media accesses". Taken as: of a hundred
/// reads, one at most.
fn lost_hits(context: &Context<'_>, with: &RunResult, without: &RunResult) -> Row {
    let lost = hits(without) - hits(with);
    let quantity = "reads that free work keeps from the drive's buffer, of all";
    context.row_in(quantity, "%", [-1.0, 1.0], lost).noted(format!(
        "{:.3} % of the reads come from the buffer without free work, {:.3} % with it. These requests are random; `beyond.price` has recorded loads, where hits are lost",
        hits(without),
        hits(with)
    ))
}

fn hits(result: &RunResult) -> f64 {
    percent(result.buffer_reads, result.read_response.count)
}

/// Jitter of the black box that the scheduler is to master beyond the paper, and its margin.
const BEYOND_JITTER: SimDuration = SimDuration::from_us(50);

pub(super) fn beyond(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let seed = context.seed;
    let scheduler = PredictionSpec {
        conservatism: Conservatism::Constant(BEYOND_JITTER + SimDuration::from_us(10)),
        same_track: SameTrack::Distinct,
        ..PredictionSpec::default()
    };
    let mut rows = Vec::new();
    for (name, policy) in [("FCFS", PolicySpec::Fcfs), POLICIES[0], POLICIES[1], POLICIES[2]] {
        let paper = OutsideSetting::paper(context, policy, SimDuration::ZERO);
        let ours = OutsideSetting {
            free: Some(Rule::Paths),
            scheduler,
            jitter: BEYOND_JITTER,
            shape: JitterShape::Even,
            ..paper
        };
        let alone = OutsideSetting { free: None, ..ours };
        let outside = context.run_all(&[ours, alone], |setting| setting.run(seed))?;
        // It has no jitter and no limits of a scheduler outside.
        let firmware = free_mb_per_second(&ours.run_in_firmware(seed)?);
        let [with, without] = &outside[..] else { unreachable!("two runs") };
        let part = part_of(with, firmware);
        let cost = 100.0 * (mean_ms(with) / mean_ms(without) - 1.0);
        // The paper had 65 % (section 7).
        rows.push(context.row_in(
            &format!("{name}: free bandwidth of that in firmware"),
            "%",
            [65.0, 120.0],
            part,
        ));
        rows.push(context.row_in(&format!("{name}: response above"), "%", [-10.0, 0.5], cost));
        // Two policies, for time.
        let is_compared = matches!(policy, PolicySpec::SptfSw { .. } | PolicySpec::Sptf);
        if is_compared && !context.options.quick {
            let as_paper = OutsideSetting {
                free: Some(Rule::Paths),
                scheduler: PredictionSpec { off_share: 0.0, ..PredictionSpec::default() },
                ..paper
            };
            let quantity = format!(
                "{name}, errors and commands as the paper's: free bandwidth of that in firmware"
            );
            let part = part_of(&as_paper.run(seed)?, firmware);
            rows.push(context.row(&quantity, "%", 65.0, 6.5, part));
        }
    }
    let what = "an emulated Atlas 10K with its reading ahead, whose seeks vary by 50 us either way";
    let rows = rows.into_iter().map(|row| row.standing_in(what)).collect();
    Ok(Outcome { rows, figures: Vec::new() })
}

fn part_of(outside: &RunResult, firmware: f64) -> f64 {
    100.0 * free_mb_per_second(outside) / firmware
}
