//! Towards Higher Disk Head Utilization (OSDI 2000), section 4: processor time of a decision.

use std::sync::Arc;

use freewheel_freeblock::Rule;
use freewheel_sim::config::ConfigError;
use freewheel_sim::library;

use super::{Context, Outcome};
use crate::decisions::{DecisionCase, Fill, time_decisions};

/// Parts of the drive that are wanted, in %: the ends of the paper's range, and half.
const WANTED: [u32; 3] = [20, 50, 100];

/// Blocks of 512 B in a block of 4 KB, the paper's.
const BLOCK: u32 = 8;

/// "0-2.5ms on a 550MHz Intel Pentium III": the longest.
const PAPER_MS: f64 = 2.5;

/// Goals for a core of today: 10 us in the median, 100 us for 99 of 100.
const GOALS: [(&str, f64, f64); 2] = [("median", 0.5, 0.01), ("99th percentile", 0.99, 0.1)];

pub(super) fn sec4(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let drive = Arc::new(library::build(&library::spec("atlas10k")?, "atlas10k")?);
    let decisions = if context.options.quick { 1_000 } else { 5_000 };
    let rows = |wanted: u32| {
        let fill = Fill::Part(f64::from(wanted) / 100.0);
        let case = DecisionCase { drive: &drive, rule: Rule::Greedy, size: BLOCK, fill, decisions };
        let times = time_decisions(&case, |call| (context.timer)(call));
        let row = |(what, share, most): (&str, f64, f64)| {
            let quantity = format!("{wanted} % wanted: {what} of {decisions} decisions");
            let ms = times.quantile_ns(share) as f64 / 1e6;
            let row = context.row_in(&quantity, "ms", [0.0, most], ms).timing();
            row.of_paper([PAPER_MS; 2])
        };
        GOALS.map(row)
    };
    Ok(Outcome { rows: WANTED.into_iter().flat_map(rows).collect(), figures: Vec::new() })
}
