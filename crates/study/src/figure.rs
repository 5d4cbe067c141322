//! Pictures as data: lines over axes and bars of head time. The crate `report` draws them.

use freewheel_model::stats::Distribution;
use freewheel_sim::HeadTime;
use serde::Serialize;

use crate::head_use::HeadUse;

/// A chart as data.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Figure {
    /// Head time at work: a bar for each run.
    HeadTime {
        /// The runs, from top to bottom.
        bars: Vec<HeadTimeBar>,
    },
    /// Time of the heads: a bar for each case.
    HeadUse {
        /// The cases, from top to bottom.
        bars: Vec<HeadUseBar>,
    },
    /// Lines over common axes.
    Lines {
        /// The lines, in the order of the legend.
        lines: Vec<Line>,
        axes: Axes,
    },
    Columns {
        labels: Vec<String>,
        /// Heights, one for each group.
        series: Vec<Series>,
    },
    /// A horizontal bar for each value.
    Values { quantity: &'static str, bars: Vec<(String, f64)> },
}

impl Figure {
    /// A bar for each run.
    pub fn head_time(bars: Vec<HeadTimeBar>) -> Self {
        Self::HeadTime { bars }
    }

    /// Lines over common axes.
    pub fn lines(lines: Vec<Line>, axes: Axes) -> Self {
        Self::Lines { lines, axes }
    }
}

/// Columns of one colour.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Name in the legend.
    pub name: &'static str,
    /// Heights as shares of 1.
    pub shares: Vec<f64>,
}

/// Head time of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeadTimeBar {
    /// Name of the run.
    pub label: String,
    /// Head time by stage.
    pub head_time: HeadTime,
    /// Rotational latency while writing back, which free work cannot use; 0 where it is not told apart.
    pub writing_back_rotate_ns: u128,
    /// Rotational share that a paper states, drawn as a mark.
    pub rotate_share_elsewhere: Option<f64>,
    /// Text to the right of the bar.
    pub note: String,
}

/// Time of one run's head, by use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeadUseBar {
    /// Name of the run.
    pub label: String,
    /// Shares of all time.
    pub head_use: HeadUse,
    /// With free work, or as it would be without.
    pub with: bool,
}

/// A line of a chart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// x and y.
    pub points: Vec<(f64, f64)>,
    /// Points only, as for values read off a paper.
    pub dots: bool,
}

/// Points of a distribution that a chart can show.
const CUMULATIVE_POINTS: usize = 300;

impl Line {
    /// Response times in ms against the share of requests in % that take no longer.
    pub fn cumulative_ms(name: &str, distribution: &Distribution) -> Self {
        let all = distribution.cumulative();
        let step = all.len().div_ceil(CUMULATIVE_POINTS).max(1);
        let thinned = all.iter().step_by(step).copied().chain(all.last().copied());
        let points = thinned.map(|(ns, share)| (ns as f64 / 1e6, share * 100.0)).collect();
        Self { name: name.into(), points, dots: false }
    }
}

impl Line {
    /// Response times in ms against the share of requests in % that take longer, the tail of which falls to a single
    /// request.
    pub fn longer_ms(name: &str, distribution: &Distribution) -> Self {
        let cumulative = Self::cumulative_ms(name, distribution);
        let longer = cumulative.points.iter().map(|&(ms, share)| (ms, 100.0 - share));
        // What remains of the last share is rounding.
        let points = longer.filter(|&(_, share)| share > 1e-9).collect();
        Self { points, ..cumulative }
    }
}

/// Names of the axes of a line chart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Axes {
    pub x: &'static str,
    pub y: &'static str,
    /// Powers of ten along x.
    pub log_x: bool,
}
