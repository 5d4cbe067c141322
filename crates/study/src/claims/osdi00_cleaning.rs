//! Towards Higher Disk Head Utilization (OSDI 2000): section 5, free cleaning of LFS segments.
//!
//! The paper ran MIT's LLD with computing times measured on the machine of its authors, and prints
//! neither those nor the size of the cache nor how LLD reads what it cleans. What stands in for
//! them is in [`Setting::default`], and [`alternatives`] measures what each assumption does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use freewheel_model::array::Striping;
use freewheel_model::drive::Drive;
use freewheel_model::log_disk::{CleanReads, LogDiskSpec};
use freewheel_model::sched::PolicySpec;
use freewheel_sim::config::ConfigError;
use freewheel_sim::postmark::{
    CpuTimes, MetadataWrites, NoFreeReads, Pass, PostmarkProcess, PostmarkSpec, used_blocks,
};
use freewheel_sim::{Arm, Mechanics, SeekErrors, Servo, library, run};
use freewheel_units::SimDuration;
use rayon::prelude::*;

use super::{Context, Figure, Outcome};
use crate::chart::{Axes, Line};

/// What one run of PostMark assumes.
#[derive(Clone, Copy)]
struct Setting {
    files: u32,
    clean_reads: CleanReads,
    metadata: MetadataWrites,
    cpu: CpuTimes,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            files: 0,
            clean_reads: LogDiskSpec::OSDI00.clean_reads,
            // Assumed: what Minix, the file system that LLD was made for, does with its option
            // ROBUST.
            metadata: MetadataWrites::Immediate,
            // Assumed. A block is copied twice, into the cache and out of it, at the 160 MB/s or
            // so that a memory of 100 MHz allows; an operation is a few calls and look-ups.
            cpu: CpuTimes { operation: SimDuration::from_us(100), block: SimDuration::from_us(50) },
        }
    }
}

/// How full the log is over the second pass, in %.
const UTILISATIONS: [u32; 12] = [5, 10, 20, 30, 40, 50, 60, 70, 80, 85, 90, 93];

/// The pool with which the second pass fills the log to this share. Chance moves it by more than a
/// half percent, in which the cost of cleaning changes by a twentieth.
fn files_at(utilisation: u32, seed: u64) -> u32 {
    /// Blocks of a file, nearly, those of its inode and its entry included.
    const FILE_BLOCKS: f64 = 2.55;
    const TRIALS: u32 = 8;
    let capacity = f64::from(LogDiskSpec::OSDI00.capacity_blocks());
    let wanted = f64::from(utilisation) / 100.0 * capacity;
    let (mut files, mut best, mut best_off) = (wanted / FILE_BLOCKS, 0, f64::INFINITY);
    for _ in 0..TRIALS {
        let off = wanted - used_blocks(PostmarkSpec::osdi00(files as u32), 2, seed);
        if off.abs() < best_off {
            (best, best_off) = (files as u32, off.abs());
        }
        if best_off < capacity / 1000.0 {
            break;
        }
        files += off / FILE_BLOCKS;
    }
    best
}

/// The Atlas 10K with one surface, as the paper modified it. Its defects are places on the whole
/// specimen and are left out.
fn one_surface() -> Result<Arc<Drive>, ConfigError> {
    let mut spec = library::spec("atlas10k")?;
    spec.surfaces = 1;
    for zone in &mut spec.zones {
        zone.slips.clear();
    }
    Ok(Arc::new(library::build(&spec, "atlas10k with one surface")?))
}

/// The second of two passes, which is what the paper measures.
fn second_pass(
    context: &Context<'_>,
    drive: &Arc<Drive>,
    setting: &Setting,
) -> Result<Pass, ConfigError> {
    let seed = context.options.seed;
    let disk = LogDiskSpec { clean_reads: setting.clean_reads, ..LogDiskSpec::OSDI00 };
    let spec = PostmarkSpec::osdi00(setting.files);
    let mut process =
        PostmarkProcess::new(spec, disk, setting.metadata, setting.cpu, 2, NoFreeReads, seed);
    let device = Mechanics::new(drive, Servo::new(SeekErrors::new(drive, seed, 0)));
    let policy = PolicySpec::Fcfs.build().expect("a policy without parameters");
    let mut arms = [Arm { drive: Arc::clone(drive), policy, device }];
    run(&Striping::single(drive.blocks()), None, &mut arms, &mut process, &mut |_| {})?;
    Ok(process.passes()[1])
}

fn run_all(context: &Context<'_>, settings: &[Setting]) -> Result<Vec<Pass>, ConfigError> {
    let drive = one_surface()?;
    let done = AtomicU64::new(0);
    settings
        .par_iter()
        .map(|setting| {
            let pass = second_pass(context, &drive, setting)?;
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            (context.progress)(done, settings.len() as u64);
            Ok(pass)
        })
        .collect()
}

/// ORIGINAL over IDEAL, in %.
fn original_percent(pass: &Pass) -> f64 {
    100.0 * pass.rate() / pass.rate_without_cleaning()
}

/// Other assumptions, each alone.
fn alternatives() -> [(&'static str, Setting); 5] {
    let usual = Setting::default();
    let cpu_block =
        |us| Setting { cpu: CpuTimes { block: SimDuration::from_us(us), ..usual.cpu }, ..usual };
    [
        (
            "metadata written when the cache runs out of room",
            Setting { metadata: MetadataWrites::Delayed, ..usual },
        ),
        (
            "live blocks side by side cleaned with one read",
            Setting { clean_reads: CleanReads::Run, ..usual },
        ),
        ("segments cleaned with one read", Setting { clean_reads: CleanReads::Segment, ..usual }),
        ("20 us of computing a block", cpu_block(20)),
        ("100 us of computing a block", cpu_block(100)),
    ]
}

/// A quick run leaves out the points that only the chart shows: a pass is the paper's in any case.
pub(super) fn fig7(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let compared = [60, 85];
    let is_run = |utilisation: &&u32| !context.options.quick || compared.contains(utilisation);
    let utilisations: Vec<u32> = UTILISATIONS.iter().filter(is_run).copied().collect();
    let files_at = |&utilisation: &u32| files_at(utilisation, context.options.seed);
    let pools: Vec<u32> = utilisations.par_iter().map(files_at).collect();
    let find = |utilisation| utilisations.iter().position(|&u| u == utilisation).expect("is run");
    let mut settings: Vec<Setting> =
        pools.iter().map(|&files| Setting { files, ..Setting::default() }).collect();
    for (_, setting) in alternatives() {
        settings.extend(compared.map(|at| Setting { files: pools[find(at)], ..setting }));
    }
    let passes = run_all(context, &settings)?;
    let (passes, others) = passes.split_at(pools.len());
    let at = |utilisation| &passes[find(utilisation)];
    let mut rows = vec![
        context.row("ORIGINAL over IDEAL, 60 % full", "%", 50.0, 10.0, original_percent(at(60))),
        context.row("ORIGINAL over IDEAL, 85 % full", "%", 25.0, 5.0, original_percent(at(85))),
    ];
    for (row, number) in rows.iter_mut().zip(0..) {
        let of = |(index, (name, _)): (usize, &(&str, Setting))| {
            format!("{name}: {:.0} %", original_percent(&others[2 * index + number]))
        };
        let list: Vec<String> = alternatives().iter().enumerate().map(of).collect();
        row.stands_in = Some(
            "computing times are assumed (100 us an operation, 50 us a block), the cache is derived (32 MiB)".into(),
        );
        row.note = Some(format!("{ASSUMED} Otherwise: {}.", list.join("; ")));
    }
    let line = |name: &str, rate: fn(&Pass) -> f64| Line {
        name: name.into(),
        points: passes.iter().map(|pass| (100.0 * pass.utilisation, rate(pass))).collect(),
        dots: false,
    };
    let paper = |utilisation, share: f64| {
        (f64::from(utilisation), share * at(utilisation).rate_without_cleaning())
    };
    let lines = vec![
        line("IDEAL", Pass::rate_without_cleaning),
        line("without the cleaner's reads", Pass::rate_with_free_reads),
        line("ORIGINAL", Pass::rate),
        Line {
            name: "paper's ORIGINAL, as a share of our IDEAL".into(),
            points: vec![paper(60, 0.5), paper(85, 0.25)],
            dots: true,
        },
    ];
    let axes = Axes { x: "blocks in use, %", y: "transactions a second", log_x: false };
    Ok(Outcome { rows, figures: vec![Figure::Lines(lines, axes)] })
}

const ASSUMED: &str = "The paper does not say how LLD reads what it cleans, nor when its file system writes inodes and directories. Assumed: one live block at a time, as everything else there is read, and at once, as Minix, the file system that LLD was made for, does with its option ROBUST.";
