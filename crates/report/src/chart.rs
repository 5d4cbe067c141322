//! The charts of a report, drawn for a wide and for a narrow place: the page shows the one that fits.
//!
//! One look for all of them: the drawing itself is `plotters`' work, and bars are HTML.

use freewheel_study::figure::{Axes, Figure, Line, Series};
use maud::{Markup, PreEscaped, html};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::bars;
use crate::legend::{self, Key, LINE_COLOURS, legend};

const INK: RGBColor = RGBColor(0x1f, 0x29, 0x33);
const FAINT: RGBColor = RGBColor(0x6b, 0x77, 0x85);
const GRID: RGBColor = RGBColor(0xe3, 0xe8, 0xee);
const FONT: &str = "system-ui, sans-serif";

/// Colours of lines that have no meaning of their own, distinguishable with any colour vision
/// (Okabe and Ito 2008). The page's style has the same with the same numbers, for light and dark.
const LINES: [RGBColor; LINE_COLOURS] = [
    INK,
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x99, 0x99, 0x99),
    RGBColor(0x8c, 0x56, 0x4b),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// A place for a chart.
struct Place {
    /// Class by which the page shows it or not.
    class: &'static str,
    width: i32,
    /// Height of a chart of lines.
    height: i32,
    /// Most names along the horizontal axis.
    names: usize,
}

const PLACES: [Place; 2] = [
    Place { class: "wide", width: 860, height: 370, names: 12 },
    Place { class: "narrow", width: 400, height: 260, names: 6 },
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
fn for_every_place(keys: &[Key<'_>], svg: impl Fn(&Place) -> String) -> Markup {
    html! {
        div.chart {
            (legend(keys))
            @for place in &PLACES { div.(place.class) { (PreEscaped(svg(place))) } }
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

fn columns_in(place: &Place, labels: &[String], series: &[Series]) -> String {
    const TOP: i32 = 20;
    const HEIGHT: f64 = 170.0;
    /// A label or number has this width for each of its letters.
    const LETTER: f64 = 8.0;
    let highest = series.iter().flat_map(|one| &one.shares).fold(0.01, |a: f64, b| a.max(*b));
    let group = f64::from(place.width) / labels.len().max(1) as f64;
    let column = group * 0.86 / series.len().max(1) as f64;
    let longest = labels.iter().map(|label| label.len()).max().unwrap_or(0) as f64;
    let stride = (longest * LETTER / group).ceil().max(1.0) as usize;
    let base = TOP + HEIGHT as i32;
    svg(place.width, base + 30, |area| {
        for (g, label) in labels.iter().enumerate() {
            let x = g as f64 * group;
            for (k, (Series { shares, .. }, line)) in series.iter().zip(COLUMN_LINES).enumerate() {
                let (share, left) = (shares[g], x + group * 0.07 + k as f64 * column);
                let top = base - (share / highest * HEIGHT) as i32;
                let corners = [(left as i32, top), ((left + column) as i32 - 1, base)];
                area.draw(&Rectangle::new(corners, LINES[line].filled()))?;
                if share >= 0.005 && column >= 2.0 * LETTER {
                    let words = format!("{:.0}", share * 100.0);
                    let middle = (left + column / 2.0) as i32;
                    text(area, &words, (middle, top - 8), FAINT)?;
                }
            }
            if g.is_multiple_of(stride) {
                text(area, label, ((x + group / 2.0) as i32, base + 16), INK)?;
            }
        }
        let axis = vec![(0, base), (place.width, base)];
        area.draw(&PathElement::new(axis, FAINT.stroke_width(1)))
    })
}

/// Lines over a common pair of axes. Empty without points.
pub(crate) fn lines(lines: &[Line], axes: &Axes) -> Markup {
    lines_labelled(lines, axes, &Names { text: &|y| short(*y), most: 10 })
}

/// Lines with powers of ten along y, so that small shares are seen. What is 0 is left out.
pub(crate) fn lines_over_log_y(lines: &[Line], axes: &Axes) -> Markup {
    let lines: Vec<Line> = lines
        .iter()
        .map(|line| {
            let positive = line.points.iter().filter(|point| point.1 > 0.0);
            let points = positive.map(|&(x, y)| (x, libm::log10(y))).collect();
            Line { points, ..line.clone() }
        })
        .collect();
    // A label for each power of ten.
    let all = || lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
    let (least, most) =
        (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
    let powers = if most > least { (most - least).ceil() as usize + 1 } else { 1 };
    lines_labelled(&lines, axes, &Names { text: &|y| short(power_of_ten(*y)), most: powers })
}

/// Names along the vertical axis.
struct Names<'a> {
    text: &'a dyn Fn(&f64) -> String,
    most: usize,
}

fn lines_labelled(lines: &[Line], axes: &Axes, names: &Names<'_>) -> Markup {
    let drawn: Vec<(usize, &Line)> =
        lines.iter().enumerate().filter(|(_, line)| is_drawn(line, axes)).collect();
    if drawn.is_empty() {
        return html! {};
    }
    let keys: Vec<Key<'_>> =
        drawn.iter().map(|(number, line)| legend::line(&line.name, *number)).collect();
    for_every_place(&keys, |place| lines_in(place, &drawn, axes, names))
}

/// What is nowhere drawn is not named either.
fn is_drawn(line: &Line, axes: &Axes) -> bool {
    line.points.iter().any(|point| is_usable(axes, point))
}

/// True if an axis has a place for this.
fn is_usable(axes: &Axes, point: &(f64, f64)) -> bool {
    !axes.log_x || point.0 > 0.0
}

/// Lines with the numbers of their colours.
fn lines_in(place: &Place, lines: &[(usize, &Line)], axes: &Axes, names: &Names<'_>) -> String {
    let all: Vec<(f64, f64)> = lines.iter().flat_map(|(_, line)| points(line, axes)).collect();
    let (xs, ys): (Vec<f64>, Vec<f64>) = all.into_iter().unzip();
    let (Some(&low), Some(&high)) = (min_of(&xs), max_of(&xs)) else { return String::new() };
    let top = max_of(&ys).copied().unwrap_or(1.0).max(f64::MIN_POSITIVE) * 1.05;
    let bottom = min_of(&ys).map_or(0.0, |low| low.min(0.0) * 1.05);
    svg(place.width, place.height, |area| {
        let mut builder = ChartBuilder::on(area);
        builder.margin(10).margin_right(24).x_label_area_size(46).y_label_area_size(62);
        if axes.log_x {
            let high = high.max(low * 1.01);
            let ticks = log_ticks(low, high);
            let stride = ticks.len().div_ceil(place.names);
            let ticks: Vec<f64> = ticks.into_iter().step_by(stride).collect();
            let range = (low..high).log_scale().with_key_points(ticks);
            let mut chart = builder.build_cartesian_2d(range, bottom..top)?;
            mesh(chart.configure_mesh(), place, axes, names)?;
            draw_lines(&mut chart, lines, |line| points(line, axes))
        } else {
            let range = low.min(0.0)..high.max(low + f64::MIN_POSITIVE);
            let mut chart = builder.build_cartesian_2d(range, bottom..top)?;
            mesh(chart.configure_mesh(), place, axes, names)?;
            draw_lines(&mut chart, lines, |line| points(line, axes))
        }
    })
}

fn points(line: &Line, axes: &Axes) -> Vec<(f64, f64)> {
    line.points.iter().copied().filter(|point| is_usable(axes, point)).collect()
}

/// Places along an axis of powers of ten that have names: powers where they are several, else what
/// lies between them too, and on a short axis equal steps.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    const ENOUGH: usize = 4;
    let ways = [&[1.0][..], &[1.0, 2.0, 5.0], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]];
    let found = ways
        .into_iter()
        .map(|digits| -> Vec<f64> {
            let powers = libm::log10(low).floor() as i32..=libm::log10(high).ceil() as i32;
            let all =
                powers.flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)));
            all.filter(|tick| (low..=high).contains(tick)).collect()
        })
        .find(|ticks| ticks.len() >= ENOUGH);
    found.unwrap_or_else(|| {
        let power = power_of_ten(libm::log10((high - low) / ENOUGH as f64).floor());
        let count = |step: f64| (high / step).floor() - (low / step).ceil() + 1.0;
        let steps = [5.0, 2.0, 1.0].map(|digit| digit * power);
        let step = steps.into_iter().find(|&step| count(step) >= ENOUGH as f64).unwrap_or(power);
        let first = (low / step).ceil();
        (0..count(step) as u32).map(|number| (first + f64::from(number)) * step).collect()
    })
}

/// Whole powers for the axes of charts.
#[expect(clippy::disallowed_methods, reason = "`libm::pow(10.0, -5.0)` is no power of ten")]
fn power_of_ten(power: f64) -> f64 {
    10f64.powf(power)
}

fn min_of(list: &[f64]) -> Option<&f64> {
    list.iter().min_by(|a, b| a.total_cmp(b))
}

fn max_of(list: &[f64]) -> Option<&f64> {
    list.iter().max_by(|a, b| a.total_cmp(b))
}

type Chart<'a, X> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, F64>>;
type Mesh<'a, 'b, X> = plotters::chart::MeshStyle<'a, 'b, X, F64, SVGBackend<'a>>;
type F64 = plotters::coord::types::RangedCoordf64;

fn mesh<'a, 'b, X>(
    mut mesh: Mesh<'a, 'b, X>,
    place: &Place,
    axes: &Axes,
    names: &'b Names<'_>,
) -> Drawn
where
    X: plotters::coord::ranged1d::Ranged<ValueType = f64>
        + plotters::coord::ranged1d::ValueFormatter<f64>,
{
    mesh.x_desc(axes.x)
        .y_desc(axes.y)
        .axis_desc_style((FONT, 14).into_font().color(&INK))
        .label_style((FONT, 13).into_font().color(&FAINT))
        .x_label_formatter(&|x| short(*x))
        .x_labels(place.names)
        .y_label_formatter(&names.text)
        .y_labels(names.most)
        .axis_style(FAINT)
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .draw()
}

fn draw_lines<'a, X>(
    chart: &mut Chart<'a, X>,
    lines: &[(usize, &Line)],
    points: impl Fn(&Line) -> Vec<(f64, f64)>,
) -> Drawn
where
    X: plotters::coord::ranged1d::Ranged<ValueType = f64> + 'a,
{
    for &(number, line) in lines {
        let (points, colour) = (points(line), LINES[number % LINE_COLOURS]);
        // A line of one point would not be seen.
        if line.dots || points.len() == 1 {
            chart.draw_series(points.iter().map(|&p| Circle::new(p, 4, colour.filled())))?;
        } else {
            chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
        }
    }
    Ok(())
}

/// Draws into SVG text that scales with the page and has the colours of its style.
fn svg(width: i32, height: i32, content: impl FnOnce(&Area<'_>) -> Drawn) -> String {
    let mut svg = String::new();
    {
        let size = (width as u32, height as u32);
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        // Drawing into memory fails only by a mistake in this file.
        content(&area).and_then(|()| area.present()).expect("drawing into memory");
    }
    let size = format!("width=\"{width}\" height=\"{height}\" ");
    let named =
        [(INK, "ink"), (FAINT, "faint"), (GRID, "line")].map(|(of, name)| (of, name.into()));
    let lines =
        LINES.iter().enumerate().skip(1).map(|(number, &of)| (of, legend::line_colour(number)));
    named.into_iter().chain(lines).fold(svg.replacen(&size, "", 1), |svg, (colour, name)| {
        svg.replace(&hex(colour), &format!("var(--{name})"))
    })
}

/// A colour as charts write it.
fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// Words in the middle of a place.
fn text(area: &Area<'_>, words: &str, at: (i32, i32), colour: RGBColor) -> Drawn {
    let middle = Pos::new(HPos::Center, VPos::Center);
    let style = (FONT, 13).into_font().color(&colour).pos(middle);
    area.draw(&Text::new(words.to_string(), at, style))
}

/// A number on an axis: four digits, but for zeros at the end.
fn short(value: f64) -> String {
    if value.abs() >= 10_000.0 {
        let text = format!("{value:.3e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{power}", trimmed(digits));
    }
    // Four digits that say something.
    let decimals = (3 - libm::log10(value.abs().max(0.1)).floor() as i32) as usize;
    trimmed(&format!("{value:.decimals$}"))
}

fn trimmed(digits: &str) -> String {
    if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        digits.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_drawn_for_every_place_and_refers_to_nothing_outside() {
        let line = Line { name: "a".into(), points: vec![(1.0, 2.0), (10.0, 3.0)], dots: false };
        let html = lines(&[line], &Axes { x: "x", y: "y", log_x: true }).into_string();
        for Place { class, width, height, .. } in PLACES {
            let begin = format!("<div class=\"{class}\"><svg viewBox=\"0 0 {width} {height}\"");
            assert!(html.contains(&begin), "{html}");
        }
        assert!(!html.contains("href"));
    }

    #[test]
    fn colours_are_those_of_the_style() {
        let line = |name: &str| Line { name: name.into(), points: vec![(1.0, 2.0)], dots: true };
        let html = lines(&[line("a"), line("b")], &Axes { x: "x", y: "y", log_x: false });
        let html = html.into_string();
        assert!(html.contains("fill=\"var(--c1)\"") && html.contains("class=\"swatch c1\""));
        assert!(!html.contains("\"#"), "{html}");
    }

    #[test]
    fn names_of_columns_stand_apart() {
        let labels: Vec<String> =
            (0..20).map(|bin| format!("{:.2}", f64::from(bin) / 20.0)).collect();
        let series = [Series { name: "reads", shares: vec![0.05; 20] }];
        let names = |place| columns_in(place, &labels, &series).matches("\n0.").count();
        assert_eq!([names(&PLACES[0]), names(&PLACES[1])], [20, 10]);
    }

    #[test]
    fn a_line_that_an_axis_has_no_place_for_is_not_named() {
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
    fn an_axis_of_powers_of_ten_has_several_ticks_however_short_it_is() {
        for (low, high) in
            [(1e-3, 1e6), (0.03, 110.0), (30.0, 110.0), (25.0, 61.0), (60.0, 61.0), (101.0, 102.01)]
        {
            let ticks = log_ticks(low, high);
            assert!((4..=12).contains(&ticks.len()), "{low} to {high}: {ticks:?}");
            assert!(ticks.iter().all(|tick| (low..=high).contains(tick)), "{ticks:?}");
            let names: Vec<String> = ticks.iter().map(|&tick| short(tick)).collect();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        }
        assert_eq!(log_ticks(0.5, 2000.0), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(log_ticks(30.0, 110.0)[..3], [30.0, 40.0, 50.0]);
    }

    #[test]
    fn labels_a_step_apart_differ() {
        for step in [0.005, 0.05, 0.25, 0.5, 2.0, 5000.0, 40_000.0] {
            let labels: Vec<String> = (0..100).map(|at| short(f64::from(at) * step)).collect();
            assert!(labels.windows(2).all(|pair| pair[0] != pair[1]), "{labels:?}");
        }
        assert_eq!([0.1 + 0.2, 1.0 - 1e-9, 15_000.0].map(short), ["0.3", "1", "1.5e4"]);
    }

    #[test]
    fn nothing_to_draw_is_nothing() {
        let nothing = lines(&[], &Axes { x: "x", y: "y", log_x: false });
        assert_eq!(nothing.into_string(), "");
    }
}
