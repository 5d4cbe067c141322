//! The two readings of the sizes that osdi00 states for its transactions.

use freewheel_sim::config::ConfigError;
use freewheel_sim::source::SizeDistribution;
use freewheel_units::four_digits;

use super::{Context, HOLDS, Row};

/// How sizes of transactions vary. The paper says "multiples of 4 KB, exponential mean 8 KB". Its
/// authors ran DiskSim, whose generator rounds an exponential of mean 8 KB up; the mean is 10.2 KB then.
/// So does this. Figure 8's share of transfers without free work speaks for the other reading.
pub(super) const SIZES: SizeDistribution = SizeDistribution::Exponential;

/// The other reading of that sentence: the mean is 8 KB after rounding.
const OTHER_SIZES: SizeDistribution = SizeDistribution::Geometric;

/// The rows, each with what the other reading of the paper's sizes gives in its note. A quick run does
/// without.
pub(super) fn with_other_sizes(
    context: &Context<'_>,
    rows: Vec<Row>,
    run: impl FnOnce(SizeDistribution) -> Result<Vec<Row>, ConfigError>,
) -> Result<Vec<Row>, ConfigError> {
    if context.options.quick {
        return Ok(rows);
    }
    let others = run(OTHER_SIZES)?;
    Ok(rows
        .into_iter()
        .map(|row| match others.iter().find(|other| other.quantity == row.quantity) {
            Some(other) if row.unit != HOLDS => {
                let ours = four_digits(other.ours);
                row.also(&format!("{ours} with sizes whose mean is 8 KB after rounding"))
            }
            _ => row,
        })
        .collect())
}
