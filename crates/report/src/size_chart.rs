//! A small chart of values by a size in bytes, which also fits a phone.
//!
//! Colours are classes of the page's style, so that they follow its light and dark scheme.

use maud::{Markup, html};

use crate::legend::{self, Key};
use crate::numbers::size;

/// A line of a chart.
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
    /// Quantity and unit.
    pub title: &'a str,
    /// Name of the axis that has the size.
    pub axis: &'a str,
    pub lines: &'a [SizeLine],
    /// Value without a cache, drawn as a dashed line.
    pub without_cache: Option<f64>,
}

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 44.0;

/// Most names along the axis of sizes.
const SIZE_TICKS_MAX: usize = 5;

/// Scale of values in the picture.
struct Scale {
    low: f64,
    high: f64,
    top: f64,
    step: f64,
}

impl Scale {
    /// None without a point.
    fn new(chart: &SizeChart<'_>) -> Option<Self> {
        let points = || chart.lines.iter().flat_map(|line| &line.points);
        let sizes = || points().map(|point| point.size_bytes);
        let low = libm::log2(sizes().min()? as f64);
        let high = libm::log2(sizes().max()? as f64);
        let values = points().map(|point| point.value).chain(chart.without_cache);
        let largest = values.fold(f64::MIN_POSITIVE, f64::max);
        let step = step(largest);
        Some(Self { low, high, top: (largest / step).ceil() * step, step })
    }

    fn x(&self, size_bytes: u64) -> f64 {
        let span = self.high - self.low;
        // One size alone stands in the middle.
        let share =
            if span > 0.0 { (libm::log2(size_bytes as f64) - self.low) / span } else { 0.5 };
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - value / self.top * (HEIGHT - TOP - BOTTOM)
    }

    /// Values with a name, from 0 to the top.
    fn value_ticks(&self) -> Vec<f64> {
        let count = (self.top / self.step).round() as u32;
        (0..=count).map(|number| f64::from(number) * self.step).collect()
    }

    /// Powers of two with a name: the first, and each at the same distance.
    fn size_ticks(&self) -> Vec<u64> {
        let (first, last) = (self.low.ceil() as u32, self.high.floor() as u32);
        let span = last.saturating_sub(first) as usize;
        let stride = span.div_ceil(SIZE_TICKS_MAX - 1).max(1);
        (first..=last).step_by(stride).map(|power| 1 << power).collect()
    }
}

/// A round step that leads to the largest value in five steps at most.
fn step(largest: f64) -> f64 {
    let least = largest / 5.0;
    let power = 10f64.powi(libm::log10(least).floor() as i32);
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|digit| digit * power);
    steps.into_iter().find(|&step| step >= least).unwrap_or(10.0 * power)
}

/// A value of an axis, without zeros at its end.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The chart. Empty without points.
pub(crate) fn draw(chart: &SizeChart<'_>) -> Markup {
    let Some(scale) = Scale::new(chart) else { return html! {} };
    let view = format!("0 0 {WIDTH} {HEIGHT}");
    html! {
        figure {
            figcaption { (chart.title) }
            svg.sizes viewBox=(view) role="img" aria-label=(format!("{} by {}", chart.title, chart.axis)) {
                (grid(&scale, chart.axis))
                @if let Some(value) = chart.without_cache { (without_cache(&scale, value)) }
                @for line in chart.lines { (polyline(&scale, line)) }
                @for line in chart.lines { (dots(&scale, line)) }
            }
        }
    }
}

fn grid(scale: &Scale, axis: &str) -> Markup {
    let base = HEIGHT - BOTTOM;
    html! {
        @for value in scale.value_ticks() {
            @let y = at(scale.y(value));
            line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(y) y2=(y) {}
            text x=(LEFT - 6.0) y=(y) dy="4" text-anchor="end" { (short(value)) }
        }
        @for bytes in scale.size_ticks() {
            @let x = at(scale.x(bytes));
            line.tick x1=(x) x2=(x) y1=(base) y2=(base + 4.0) {}
            text x=(x) y=(base + 18.0) text-anchor="middle" { (size(bytes)) }
        }
        text x=((LEFT + WIDTH - RIGHT) / 2.0) y=(HEIGHT - 6.0) text-anchor="middle" { (axis) }
    }
}

fn without_cache(scale: &Scale, value: f64) -> Markup {
    let y = at(scale.y(value));
    html! { line.without x1=(LEFT) x2=(WIDTH - RIGHT) y1=(y) y2=(y) {} }
}

/// A coordinate with one digit after the point.
fn at(coordinate: f64) -> String {
    format!("{coordinate:.1}")
}

fn polyline(scale: &Scale, line: &SizeLine) -> Markup {
    let points: Vec<String> = line
        .points
        .iter()
        .map(|point| format!("{:.1},{:.1}", scale.x(point.size_bytes), scale.y(point.value)))
        .collect();
    html! { polyline class=(legend::line_colour(line.colour)) points=(points.join(" ")) {} }
}

/// Dots name line, size and value to a pointer.
fn dots(scale: &Scale, line: &SizeLine) -> Markup {
    html! {
        @for point in &line.dots {
            circle class=(legend::line_colour(line.colour)) r="2.5"
                cx=(at(scale.x(point.size_bytes))) cy=(at(scale.y(point.value))) {
                title { (line.name) ", " (size(point.size_bytes)) ": " (short(point.value)) }
            }
        }
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
    fn values_stand_where_memory_and_the_axes_put_them() {
        let svg = drawn(&[(1 << 20, 100.0), (4 << 20, 0.0)], None);
        // From the left end at the top to the right end at the bottom.
        assert!(svg.contains(r#"points="46.0,10.0 416.0,236.0""#), "{svg}");
        assert!(svg.contains("1 MiB") && svg.contains("2 MiB") && svg.contains("4 MiB"));
        assert!(svg.contains("<title>LRU, 1 MiB: 100</title>"));
    }

    #[test]
    fn a_line_without_a_cache_lies_within_the_picture() {
        let svg = drawn(&[(1 << 20, 3.0), (2 << 20, 2.0)], Some(8.1));
        assert!(svg.contains(r#"class="without""#) && svg.contains(">10<"), "{svg}");
    }

    #[test]
    fn one_size_is_a_dot_in_the_middle_and_no_size_is_no_picture() {
        assert!(drawn(&[(4096, 1.0)], None).contains(r#"cx="231.0""#));
        assert_eq!(drawn(&[], None), "");
    }

    #[test]
    fn an_axis_has_at_most_six_round_values_and_five_sizes() {
        for largest in [0.003, 0.14, 1.0, 8.1, 11.6, 99.0, 100.0, 12_345.0] {
            let step = step(largest);
            let count = (largest / step).ceil();
            assert!((2.0..=5.0).contains(&count), "{largest}: {count} steps of {step}");
        }
        for powers in [0, 3, 4, 5, 11, 19] {
            let line = [line(&[(4096, 1.0), (4096 << powers, 1.0)])];
            let chart = SizeChart { title: "", axis: "", lines: &line, without_cache: None };
            let ticks = Scale::new(&chart).unwrap().size_ticks();
            assert!(!ticks.is_empty() && ticks.len() <= SIZE_TICKS_MAX, "{ticks:?}");
        }
    }
}
