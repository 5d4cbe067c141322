//! Sweeps: many configurations of one experiment, all combinations of some values of its keys.
//!
//! ```
//! use freewheel::SimConfig;
//! use freewheel::sweeps::{Sweep, sweep};
//!
//! let text = r#"
//!     drive = "atlas10k"
//!     workload = { kind = "closed", requests = 500 }
//! "#;
//! let over = ["scheduler.policy=fcfs,sptf", "workload.outstanding=1,4,16"];
//! let keys = over.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
//! let all = Sweep::new(keys, |overrides| SimConfig::parse(text, "example", overrides))?;
//! let done = sweep(&all, None, None, &|_, _| {})?;
//! assert_eq!(done.rows.len(), 6);
//! # Ok::<(), freewheel::Error>(())
//! ```

use std::path::Path;

use freewheel_study::sweep::SweepProgressSink;

use crate::Error;

pub use freewheel_study::sweep::{
    Column, Sweep, SweepChunk, SweepDone, SweepLoads, SweepRows, SweptKey,
};

/// Runs an experiment with all combinations of some values of its keys, into one table.
///
/// They run on `threads` threads, all cores if none are given. `output` is a Parquet file, with a row for each.
/// A sweep that was killed goes on where it was. `progress` is told done and total.
pub fn sweep(
    sweep: &Sweep,
    output: Option<&Path>,
    threads: Option<usize>,
    progress: SweepProgressSink<'_>,
) -> Result<SweepDone, Error> {
    Ok(sweep.run(output, threads, progress)?)
}
