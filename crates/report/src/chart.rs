//! The charts of a report, drawn for a wide and for a narrow place: the page shows the one that fits.

use freewheel_study::figure::{Axes, Figure, Line, Series};
use maud::{Markup, html};

use crate::axis::{log_ticks, ticks};
use crate::bars;
use crate::drawing::{at, short, whole_percent};
use crate::frame::{Frame, Tick};
use crate::legend::{self, Key, legend};

struct Place {
    /// Class by which the page shows it or not.
    class: &'static str,
    width: f64,
    /// Height of a chart of lines.
    height: f64,
    /// Most names along the horizontal axis.
    names: usize,
}

const PLACES: [Place; 2] = [
    Place { class: "wide", width: 860.0, height: 370.0, names: 12 },
    Place { class: "narrow", width: 400.0, height: 260.0, names: 6 },
];

pub(crate) fn draw(figure: &Figure) -> Markup {
    match figure {
        Figure::HeadTime { bars } => bars::head_time(bars),
        Figure::HeadUse { bars } => bars::head_use(bars),
        Figure::Lines { lines: all, axes } => lines(all, axes),
        Figure::Columns { labels, series } => columns(labels, series),
        Figure::Values { quantity, bars } => bars::values(quantity, bars),
    }
}

/// A chart for every place, under its legend.
fn for_every_place(keys: &[Key<'_>], picture: impl Fn(&Place) -> Markup) -> Markup {
    html! {
        div.chart {
            (legend(keys))
            @for place in &PLACES { div.(place.class) { (picture(place)) } }
        }
    }
}

/// Groups of columns, a group for each label and a column in it for each series; heights in %.
pub(crate) fn columns(labels: &[String], series: &[Series]) -> Markup {
    let keys: Vec<Key<'_>> = series
        .iter()
        .zip(&COLUMN_LINES)
        .map(|(one, number)| legend::area(one.name, &legend::line_colour(*number)))
        .collect();
    for_every_place(&keys, |place| columns_in(place, labels, series))
}

/// Numbers of the lines whose colours columns have.
const COLUMN_LINES: [usize; 2] = [2, 1];

fn columns_in(place: &Place, labels: &[String], series: &[Series]) -> Markup {
    /// Height of the highest column.
    const HEIGHT: f64 = 170.0;
    /// A label or number has this width for each of its letters.
    const LETTER: f64 = 8.0;
    let frame = Frame {
        width: place.width,
        height: 20.0 + HEIGHT + 30.0,
        left: 0.0,
        right: 0.0,
        top: 20.0,
        bottom: 30.0,
    };
    let highest = series.iter().flat_map(|one| &one.shares).fold(0.01, |a: f64, b| a.max(*b));
    let group = place.width / labels.len().max(1) as f64;
    let column = group * 0.86 / series.len().max(1) as f64;
    let longest = labels.iter().map(|label| label.len()).max().unwrap_or(0) as f64;
    let stride = (longest * LETTER / group).ceil().max(1.0) as usize;
    let base = frame.y(0.0);
    let content = html! {
        @for (g, label) in labels.iter().enumerate() {
            @let x = g as f64 * group;
            @for (k, (Series { shares, .. }, line)) in series.iter().zip(COLUMN_LINES).enumerate() {
                @let (left, top) = (x + group * 0.07 + k as f64 * column, frame.y(shares[g] / highest));
                rect class=(format!("column {}", legend::line_colour(line))) x=(at(left)) y=(at(top))
                    width=(at((column - 1.0).max(0.5))) height=(at(base - top)) {}
                @if shares[g] >= 0.005 && column >= 2.0 * LETTER {
                    text x=(at(left + column / 2.0)) y=(at(top - 5.0)) text-anchor="middle" {
                        (whole_percent(shares[g]))
                    }
                }
            }
            @if g.is_multiple_of(stride) {
                text.axis x=(at(x + group / 2.0)) y=(at(base + 20.0)) text-anchor="middle" { (label) }
            }
        }
        line.tick x1="0" x2=(place.width) y1=(at(base)) y2=(at(base)) {}
    };
    let names: Vec<&str> = series.iter().map(|one| one.name).collect();
    frame.picture(&names.join(", "), &content)
}

/// Lines over a common pair of axes. Empty without points.
pub(crate) fn lines(lines: &[Line], axes: &Axes) -> Markup {
    lines_over(lines, axes, &|low, high| named(&ticks(low, high, 10), short))
}

/// Lines with powers of ten along y, so that small shares are seen. What is 0 is left out.
pub(crate) fn lines_over_log_y(lines: &[Line], axes: &Axes) -> Markup {
    /// Most names of powers of ten.
    const POWERS: usize = 10;
    let lines: Vec<Line> = lines
        .iter()
        .map(|line| {
            let positive = line.points.iter().filter(|point| point.1 > 0.0);
            let points = positive.map(|&(x, y)| (x, libm::log10(y))).collect();
            Line { points, ..line.clone() }
        })
        .collect();
    lines_over(&lines, axes, &|low, high| {
        let powers = (high.floor() - low.ceil()).max(0.0) as usize + 1;
        let stride = powers.div_ceil(POWERS);
        let all = (0..powers).step_by(stride).map(|number| low.ceil() + number as f64);
        named(&all.collect::<Vec<_>>(), |power| short(10f64.powi(power as i32)))
    })
}

/// Values of an axis with their names.
fn named(values: &[f64], name: impl Fn(f64) -> String) -> Vec<(f64, String)> {
    values.iter().map(|&value| (value, name(value))).collect()
}

/// Named values of a vertical axis between its ends.
type NamesUp<'a> = &'a dyn Fn(f64, f64) -> Vec<(f64, String)>;

fn lines_over(lines: &[Line], axes: &Axes, names: NamesUp<'_>) -> Markup {
    // What is nowhere drawn is not named either.
    let drawn: Vec<(usize, &Line)> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.points.iter().any(|point| is_usable(axes, point)))
        .collect();
    if drawn.is_empty() {
        return html! {};
    }
    let keys: Vec<Key<'_>> =
        drawn.iter().map(|(number, line)| legend::line(&line.name, *number)).collect();
    for_every_place(&keys, |place| lines_in(place, &drawn, axes, names))
}

/// True if an axis has a place for this.
fn is_usable(axes: &Axes, point: &(f64, f64)) -> bool {
    !axes.log_x || point.0 > 0.0
}

/// Lines with the numbers of their colours.
fn lines_in(place: &Place, lines: &[(usize, &Line)], axes: &Axes, names: NamesUp<'_>) -> Markup {
    let frame = Frame {
        width: place.width,
        height: place.height,
        left: 66.0,
        right: 24.0,
        top: 10.0,
        bottom: 48.0,
    };
    let scale = Scale::new(lines, axes);
    let up = names(scale.bottom, scale.top);
    let up: Vec<Tick> = up.into_iter().map(|(value, name)| (scale.up(value), name)).collect();
    let across: Vec<Tick> =
        scale.values_across(place).iter().map(|&x| (scale.across(x), short(x))).collect();
    let content = html! {
        (frame.axes(&across, &up))
        (frame.name_across(axes.x))
        (frame.name_up(axes.y))
        @for &(number, line) in lines {
            @let points = || line.points.iter().filter(|point| is_usable(axes, point));
            @let share = |&(x, y): &(f64, f64)| (scale.across(x), scale.up(y));
            // A line of one point would not be seen.
            @if line.dots || points().count() == 1 {
                @for point in points() { (frame.dot(number, 4.0, share(point), "")) }
            } @else {
                (frame.polyline(number, points().map(share)))
            }
        }
    };
    frame.picture(&format!("{} by {}", axes.y, axes.x), &content)
}

/// Ends of the axes of lines.
struct Scale {
    left: f64,
    right: f64,
    bottom: f64,
    top: f64,
    is_log: bool,
}

impl Scale {
    fn new(lines: &[(usize, &Line)], axes: &Axes) -> Self {
        let points = || lines.iter().flat_map(|(_, line)| &line.points);
        let (low, high) =
            ends(points().filter(|point| is_usable(axes, point)).map(|point| point.0));
        let (least, most) =
            ends(points().filter(|point| is_usable(axes, point)).map(|point| point.1));
        let (left, right) = match axes.log_x {
            true => (low, high.max(low * 1.01)),
            false => (low.min(0.0), high),
        };
        let top = most.max(f64::MIN_POSITIVE) * 1.05;
        Self { left, right, bottom: least.min(0.0) * 1.05, top, is_log: axes.log_x }
    }

    /// Place of a value as a share of the horizontal axis.
    fn across(&self, x: f64) -> f64 {
        let place = |value: f64| if self.is_log { libm::log10(value) } else { value };
        let (left, right) = (place(self.left), place(self.right));
        (place(x) - left) / (right - left).max(f64::MIN_POSITIVE)
    }

    /// Place of a value as a share of the vertical axis.
    fn up(&self, y: f64) -> f64 {
        (y - self.bottom) / (self.top - self.bottom)
    }

    /// Values of the horizontal axis that have names.
    fn values_across(&self, place: &Place) -> Vec<f64> {
        if !self.is_log {
            return ticks(self.left, self.right, place.names);
        }
        let ticks = log_ticks(self.left, self.right);
        let stride = ticks.len().div_ceil(place.names);
        ticks.into_iter().step_by(stride).collect()
    }
}

/// The least and the largest of some values.
fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing::hundredths;

    #[test]
    fn chart_drawn_for_every_place() {
        let line = Line { name: "a".into(), points: vec![(1.0, 2.0), (10.0, 3.0)], dots: false };
        let html = lines(&[line], &Axes { x: "x", y: "y", log_x: true }).into_string();
        for Place { class, width, height, .. } in PLACES {
            let begin = format!(
                "<div class=\"{class}\"><svg class=\"plot\" viewBox=\"0 0 {width} {height}\""
            );
            assert!(html.contains(&begin), "{html}");
        }
        assert!(!html.contains("href"));
    }

    #[test]
    fn chart_colours_match_style() {
        let line = |name: &str| Line { name: name.into(), points: vec![(1.0, 2.0)], dots: true };
        let html = lines(&[line("a"), line("b")], &Axes { x: "x", y: "y", log_x: false });
        let html = html.into_string();
        assert!(html.contains("<circle class=\"c1\"") && html.contains("class=\"swatch c1\""));
        assert!(!html.contains("\"#"), "{html}");
    }

    #[test]
    fn chart_points_follow_axes() {
        let line = Line { name: "a".into(), points: vec![(0.0, 0.0), (4.0, 8.0)], dots: false };
        let html = lines(&[line], &Axes { x: "x", y: "y", log_x: false }).into_string();
        // From the lower left corner to the right end, a twentieth below the top.
        assert!(html.contains("points=\"66.0,322.0 836.0,24.9\""), "{html}");
        assert!(html.contains(">8</text>") && html.contains(">4</text>"), "{html}");
    }

    #[test]
    fn chart_log_shares_name_each_power() {
        let points = vec![(1.0, 100.0), (2.0, 1.0), (3.0, 0.001)];
        let line = Line { name: "a".into(), points, dots: false };
        let html = lines_over_log_y(&[line], &Axes { x: "x", y: "y", log_x: false }).into_string();
        let named = ["100", "10", "1", "0.1", "0.01", "0.001"];
        assert!(named.iter().all(|name| html.contains(&format!(">{name}</text>"))), "{html}");
    }

    #[test]
    fn chart_column_names_stand_apart() {
        let labels: Vec<String> = (0..20).map(|bin| hundredths(f64::from(bin) / 20.0)).collect();
        let series = [Series { name: "reads", shares: vec![0.05; 20] }];
        let drawn = |place| columns_in(place, &labels, &series).into_string();
        let names = |place| drawn(place).matches(">0.").count();
        assert_eq!([names(&PLACES[0]), names(&PLACES[1])], [20, 10]);
    }

    #[test]
    fn chart_omits_line_off_axis() {
        let line = |name: &str, x: f64| Line {
            name: name.into(),
            points: vec![(x, 50.0), (2.0 * x, 100.0)],
            dots: false,
        };
        let svg = |log_x| {
            let axes = Axes { x: "x", y: "y", log_x };
            lines(&[line("reads", 3.0), line("writes", 0.0)], &axes).into_string()
        };
        assert!(svg(true).contains("reads") && !svg(true).contains("writes"));
        assert!(svg(false).contains("writes"));
    }

    #[test]
    fn chart_of_nothing_is_nothing() {
        let nothing = lines(&[], &Axes { x: "x", y: "y", log_x: false });
        assert_eq!(nothing.into_string(), "");
    }
}
