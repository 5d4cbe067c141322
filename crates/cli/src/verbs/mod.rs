//! The verbs, one file each.

mod backup;
mod cache;
mod choice;
mod control;
mod drive;
mod emulate;
mod emulated;
mod extract;
mod fleet;
mod free_space;
mod listen;
mod plan;
mod read_args;
mod refresh;
mod reproduce;
mod restore;
mod sample;
mod scan;
mod scrub;
mod selection;
mod serve;
mod sim;
mod study;
mod sweep;
mod target;
mod tasks;
mod tls;
mod trace;
mod trace_args;

use clap::Subcommand;

use crate::failure::Failure;
use crate::interrupts;

#[derive(Subcommand)]
pub enum Verb {
    Study(study::StudyArgs),
    Cache(cache::CacheArgs),
    #[command(subcommand)]
    Plan(plan::PlanVerb),
    Sim(sim::SimArgs),
    Sweep(sweep::SweepArgs),
    Fleet(fleet::FleetArgs),
    Reproduce(reproduce::ReproduceArgs),
    Emulate(emulate::EmulateArgs),
    Serve(serve::ServeArgs),
    Scan(scan::ScanArgs),
    Scrub(scrub::ScrubArgs),
    Backup(backup::BackupArgs),
    Refresh(refresh::RefreshArgs),
    Restore(restore::RestoreArgs),
    Tasks(tasks::TasksArgs),
    Abort(tasks::AbortArgs),
    Promote(tasks::PromoteArgs),
    Extract(extract::ExtractArgs),
    #[command(subcommand)]
    Drive(drive::DriveVerb),
    #[command(subcommand)]
    Trace(trace::TraceVerb),
}

impl Verb {
    /// True if it is ended by signals, and not in a planned order, while it may write a file.
    fn needs_cleaning(&self) -> bool {
        match self {
            Self::Study(_) | Self::Cache(_) | Self::Plan(_) | Self::Sim(_) => true,
            Self::Sweep(_) | Self::Fleet(_) => true,
            Self::Reproduce(_) | Self::Drive(_) | Self::Trace(_) => true,
            Self::Emulate(_) | Self::Serve(_) | Self::Extract(_) => false,
            Self::Scan(_) | Self::Scrub(_) | Self::Backup(_) => false,
            Self::Refresh(_) | Self::Restore(_) => false,
            Self::Tasks(_) | Self::Abort(_) | Self::Promote(_) => false,
        }
    }

    pub fn run(self) -> Result<(), Failure> {
        if self.needs_cleaning() {
            let caught = interrupts::remove_temporary_files_first();
            caught.map_err(|error| Failure::failed(format!("signals: {error}")))?;
        }
        match self {
            Self::Study(args) => args.run(),
            Self::Cache(args) => args.run(),
            Self::Plan(verb) => verb.run(),
            Self::Sim(args) => args.run(),
            Self::Sweep(args) => args.run(),
            Self::Fleet(args) => args.run(),
            Self::Reproduce(args) => args.run(),
            Self::Emulate(args) => args.run(),
            Self::Serve(args) => args.run(),
            Self::Scan(args) => args.run(),
            Self::Scrub(args) => args.run(),
            Self::Backup(args) => args.run(),
            Self::Refresh(args) => args.run(),
            Self::Restore(args) => args.run(),
            Self::Tasks(args) => args.run(),
            Self::Abort(args) => args.run(),
            Self::Promote(args) => args.run(),
            Self::Extract(args) => args.run(),
            Self::Drive(verb) => verb.run(),
            Self::Trace(verb) => verb.run(),
        }
    }
}

/// The largest seed that TOML can hold, for the resolved experiment is repeated as TOML.
const SEED_MAX: u64 = i64::MAX as u64;

fn seed(text: &str) -> Result<u64, String> {
    whole(text, SEED_MAX)
}

/// The number of a device in a trace.
fn device(text: &str) -> Result<u32, String> {
    let device = whole(text, u32::MAX.into())?;
    Ok(u32::try_from(device).expect("it was checked"))
}

fn whole(text: &str, max: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| *number <= max);
    number.ok_or_else(|| format!("write a whole number of 0 to {max}"))
}

/// A number that may have a fraction.
fn decimal(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| "write a number, as 1.5".into())
}

/// A share from 0 to below 1, written in per cent.
fn share(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse().ok());
    let share = number.filter(|percent| (0.0..100.0).contains(percent));
    let share = share.map(|percent: f64| percent / 100.0);
    share.ok_or_else(|| "write a share from 0% to below 100%, as 43%".into())
}
