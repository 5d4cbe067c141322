//! A small chart of values by a size in bytes, which also fits a phone.

use maud::{Markup, html};

use crate::axis::{STEPS, round_step};
use crate::drawing::{at, short};
use crate::frame::{Frame, Tick};
use crate::legend::{self, Key};
use crate::numbers::size;

pub(crate) struct SizeLine {
    pub name: String,
    /// Number of its colour.
    pub colour: usize,
    pub points: Vec<SizePoint>,
    /// Sizes that were simulated, which have a dot each.
    pub dots: Vec<SizePoint>,
}

/// A value at a size.
#[derive(Clone, Copy)]
pub(crate) struct SizePoint {
    pub size_bytes: u64,
    pub value: f64,
}

/// Lines over powers of two of the size, from 0 upwards.
pub(crate) struct SizeChart<'a> {
    pub title: &'a str,
    pub axis: &'a str,
    pub lines: &'a [SizeLine],
    /// Value without a cache, drawn as a dashed line.
    pub without_cache: Option<f64>,
}

const FRAME: Frame =
    Frame { width: 440.0, height: 280.0, left: 46.0, right: 24.0, top: 10.0, bottom: 44.0 };

/// Most names along the axis of sizes.
const SIZE_TICKS_MAX: usize = 5;

/// Most names along the axis of values.
const VALUE_TICKS_MAX: usize = 6;

/// Ends of the axes.
struct Scale {
    /// Powers of two.
    low: f64,
    high: f64,
    top: f64,
    step: f64,
}

impl Scale {
    /// None without a point.
    fn new(chart: &SizeChart<'_>) -> Option<Self> {
        let sizes =
            || chart.lines.iter().flat_map(|line| &line.points).map(|point| point.size_bytes);
        let low = libm::log2(sizes().min()? as f64);
        let high = libm::log2(sizes().max()? as f64);
        let values = chart
            .lines
            .iter()
            .flat_map(|line| &line.points)
            .map(|point| point.value)
            .chain(chart.without_cache);
        let largest = values.fold(f64::MIN_POSITIVE, f64::max);
        let step = round_step(largest / (VALUE_TICKS_MAX - 1) as f64, &STEPS);
        Some(Self { low, high, top: (largest / step).ceil() * step, step })
    }

    /// Place of a size as a share of the axis.
    fn across(&self, size_bytes: u64) -> f64 {
        let span = self.high - self.low;
        // One size alone stands in the middle.
        match span > 0.0 {
            true => (libm::log2(size_bytes as f64) - self.low) / span,
            false => 0.5,
        }
    }

    /// Place of a point as shares of the axes.
    fn place(&self, point: &SizePoint) -> (f64, f64) {
        (self.across(point.size_bytes), point.value / self.top)
    }

    /// Values with a name, from 0 to the top.
    fn value_ticks(&self) -> Vec<Tick> {
        let count = (self.top / self.step).round() as u32;
        let values = (0..=count).map(|number| f64::from(number) * self.step);
        values.map(|value| (value / self.top, short(value))).collect()
    }

    /// Powers of two with a name: the first, and each at the same distance.
    fn size_ticks(&self) -> Vec<Tick> {
        let (first, last) = (self.low.ceil() as u32, self.high.floor() as u32);
        let span = last.saturating_sub(first) as usize;
        let stride = span.div_ceil(SIZE_TICKS_MAX - 1).max(1);
        let sizes = (first..=last).step_by(stride).map(|power| 1 << power);
        sizes.map(|bytes| (self.across(bytes), size(bytes))).collect()
    }
}

/// The chart. Empty without points.
pub(crate) fn draw(chart: &SizeChart<'_>) -> Markup {
    let Some(scale) = Scale::new(chart) else { return html! {} };
    let content = html! {
        (FRAME.axes(&scale.size_ticks(), &scale.value_ticks()))
        (FRAME.name_across(chart.axis))
        @if let Some(value) = chart.without_cache { (without_cache(value / scale.top)) }
        @for line in chart.lines {
            (FRAME.polyline(line.colour, line.points.iter().map(|point| scale.place(point))))
        }
        @for line in chart.lines { (dots(&scale, line)) }
    };
    html! {
        figure.sizes {
            figcaption { (chart.title) }
            (FRAME.picture(&format!("{} by {}", chart.title, chart.axis), &content))
        }
    }
}

fn without_cache(share: f64) -> Markup {
    let y = at(FRAME.y(share));
    html! { line.without x1=(at(FRAME.x(0.0))) x2=(at(FRAME.x(1.0))) y1=(y) y2=(y) {} }
}

/// Dots name line, size and value to a pointer.
fn dots(scale: &Scale, line: &SizeLine) -> Markup {
    let says = |point: &SizePoint| {
        format!("{}, {}: {}", line.name, size(point.size_bytes), short(point.value))
    };
    html! {
        @for point in &line.dots { (FRAME.dot(line.colour, 2.5, scale.place(point), &says(point))) }
    }
}

/// Names of lines, each with its colour.
pub(crate) fn legend(lines: &[SizeLine], without_cache: bool) -> Markup {
    let names = lines.iter().map(|line| legend::line(&line.name, line.colour));
    let without = without_cache.then(|| Key { name: "no cache", mark: "swatch without".into() });
    legend::legend(&names.chain(without).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(values: &[(u64, f64)]) -> SizeLine {
        let point = |&(size_bytes, value): &(u64, f64)| SizePoint { size_bytes, value };
        let points: Vec<SizePoint> = values.iter().map(point).collect();
        SizeLine { name: "LRU".into(), colour: 0, dots: points.clone(), points }
    }

    fn drawn(values: &[(u64, f64)], without_cache: Option<f64>) -> String {
        draw(&SizeChart { title: "misses", axis: "memory", lines: &[line(values)], without_cache })
            .into_string()
    }

    #[test]
    fn size_chart_values_follow_axes() {
        let svg = drawn(&[(1 << 20, 100.0), (4 << 20, 0.0)], None);
        // From the left end at the top to the right end at the bottom.
        assert!(svg.contains(r#"points="46.0,10.0 416.0,236.0""#), "{svg}");
        assert!(svg.contains("1 MiB") && svg.contains("2 MiB") && svg.contains("4 MiB"));
        assert!(svg.contains("<title>LRU, 1 MiB: 100</title>"));
    }

    #[test]
    fn size_chart_line_without_cache_fits() {
        let svg = drawn(&[(1 << 20, 3.0), (2 << 20, 2.0)], Some(8.1));
        assert!(svg.contains(r#"class="without""#) && svg.contains(">10<"), "{svg}");
    }

    #[test]
    fn size_chart_of_one_size_centres_dot() {
        assert!(drawn(&[(4096, 1.0)], None).contains(r#"cx="231.0""#));
        assert_eq!(drawn(&[], None), "");
    }

    #[test]
    fn size_chart_axis_has_few_ticks() {
        for largest in [0.003, 0.14, 1.0, 8.1, 11.6, 99.0, 100.0, 12_345.0] {
            let line = [line(&[(4096, largest)])];
            let chart = SizeChart { title: "", axis: "", lines: &line, without_cache: None };
            let ticks = Scale::new(&chart).unwrap().value_ticks();
            assert!((3..=VALUE_TICKS_MAX).contains(&ticks.len()), "{largest}: {ticks:?}");
        }
        for powers in [0, 3, 4, 5, 11, 19] {
            let line = [line(&[(4096, 1.0), (4096 << powers, 1.0)])];
            let chart = SizeChart { title: "", axis: "", lines: &line, without_cache: None };
            let ticks = Scale::new(&chart).unwrap().size_ticks();
            assert!(!ticks.is_empty() && ticks.len() <= SIZE_TICKS_MAX, "{ticks:?}");
        }
    }
}
