//! Towards Higher Disk Head Utilization (OSDI 2000), section 4: processor time of a decision.

use std::sync::Arc;

use freewheel_model::freeblock::Rule;
use freewheel_sim::config::ConfigError;
use freewheel_sim::library;

use super::{Context, Outcome, Row};
use crate::decisions::{DecisionCase, Fill, time_decisions};

/// Parts of the drive that are wanted, in %: the ends of the paper's range, and half.
const WANTED: [u32; 3] = [20, 50, 100];

/// Blocks of 512 B in a block of 4 KB, the paper's.
const BLOCK: u32 = 8;

/// "0-2.5ms on a 550MHz Intel Pentium III".
const PAPER_MS: [f64; 2] = [0.0, 2.5];

pub(super) fn sec4(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let drive = Arc::new(library::build(&library::spec("atlas10k")?, "atlas10k")?);
    let decisions = if context.options.quick { 1_000 } else { 5_000 };
    let rows = |wanted: u32| {
        let fill = Fill::Part(f64::from(wanted) / 100.0);
        let case = DecisionCase { drive: &drive, rule: Rule::Greedy, size: BLOCK, fill, decisions };
        let times = time_decisions(&case, |call| (context.timer)(call));
        let row = |what: &str, share: f64| -> Row {
            let quantity = format!("{wanted} % wanted: {what} of {decisions} decisions");
            let ms = times.quantile_ns(share) as f64 / 1e6;
            context.row_in(&quantity, "ms", PAPER_MS, ms).timing()
        };
        [row("median", 0.5), row("99th percentile", 0.99)]
    };
    Ok(Outcome { rows: WANTED.into_iter().flat_map(rows).collect(), figures: Vec::new() })
}
