//! Pictures as data: lines over axes and bars of head time. The crate `report` draws them.

use freewheel_model::stats::Distribution;
use freewheel_sim::HeadTime;

use crate::HeadUse;

/// A chart: what is drawn, without how.
pub enum Figure {
    /// A bar for each run.
    HeadTime(Vec<HeadTimeBar>),
    /// Lines over common axes.
    Lines(Vec<Line>, Axes),
}

/// How the head of one run spent its time.
pub struct HeadTimeBar {
    /// Name of the run.
    pub label: String,
    /// Its head time.
    pub head_time: HeadTime,
    /// Rotational latency among it that nobody can use, where that is told apart.
    pub writing_back_rotate_ns: u128,
    /// Somebody else's rotational share (a paper's), drawn as a mark.
    pub rotate_share_elsewhere: Option<f64>,
    /// Text behind the bar.
    pub note: String,
}

/// What the head of one run did with all its time.
pub struct HeadUseBar {
    /// Name of the run.
    pub label: String,
    /// Shares of all time.
    pub head_use: HeadUse,
    /// With free work, or as it would be without.
    pub with: bool,
}

/// A line of a chart.
#[derive(Clone)]
pub struct Line {
    /// Its name in the legend.
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

/// What a line chart's axes say.
pub struct Axes {
    /// Name and unit.
    pub x: &'static str,
    /// Name and unit.
    pub y: &'static str,
    /// Powers of ten along x.
    pub log_x: bool,
}
