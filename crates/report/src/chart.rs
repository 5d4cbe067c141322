//! The charts of a report, as SVG text to put into a page.
//!
//! One look for all of them: the drawing itself is `plotters`' work.

use freewheel_study::figure::{Axes, Figure, HeadTimeBar, HeadUseBar, Line, Series};
use freewheel_units::four_digits;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Colours of the parts of head time, the same in every chart.
const SEEK: RGBColor = RGBColor(0x6b, 0x8f, 0xc7);
const ROTATE: RGBColor = RGBColor(0xe8, 0x9c, 0x31);
const TRANSFER: RGBColor = RGBColor(0x2a, 0x9d, 0x7c);
/// The parts of head time. What is wasted comes first, so that it is easy to compare.
const HEAD_TIME: [(&str, RGBColor); 4] = [
    ("rotational latency", ROTATE),
    ("latency while writing back", RGBColor(0xf6, 0xd9, 0xae)),
    ("seek", SEEK),
    ("transfer", TRANSFER),
];
/// The parts of all time: latency first again, then the other needs of requests, then free work.
const HEAD_USE: [(&str, RGBColor); 6] = [
    ("rotational latency", ROTATE),
    ("seek", SEEK),
    ("extra seek", RGBColor(0xb9, 0xcd, 0xe8)),
    ("transfer", TRANSFER),
    ("free transfer", RGBColor(0x8f, 0xd3, 0xbb)),
    ("work in idle time", RGBColor(0xcc, 0x79, 0xa7)),
];
const INK: RGBColor = RGBColor(0x1f, 0x29, 0x33);
/// Words on coloured bars, which are the same on light and dark pages.
const ON_BAR: RGBColor = RGBColor(0x10, 0x18, 0x20);
const FAINT: RGBColor = RGBColor(0x6b, 0x77, 0x85);
const GRID: RGBColor = RGBColor(0xe3, 0xe8, 0xee);
const FONT: &str = "system-ui, sans-serif";

/// Colours of lines that have no meaning of their own, distinguishable with any colour vision
/// (Okabe and Ito 2008).
const LINES: [RGBColor; 9] = [
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

/// The chart as SVG text.
pub(crate) fn draw(figure: &Figure) -> String {
    match figure {
        Figure::HeadTime { bars } => head_time(bars),
        Figure::HeadUse { bars } => head_use(bars),
        Figure::Lines { lines: all, axes } => lines(all, axes),
        Figure::Columns { labels, series } => columns(labels, series),
        Figure::Values { quantity, bars } => values(quantity, bars),
    }
}

/// Horizontal bars of shares of head time: osdi00's figure 2 and its kin.
pub(crate) fn head_time(all: &[HeadTimeBar]) -> String {
    let bar = |bar: &HeadTimeBar| {
        let time = &bar.head_time;
        let unusable = bar.writing_back_rotate_ns as f64 / time.total_ns().max(1) as f64;
        let usable = time.rotate_share() - unusable;
        Bar {
            label: bar.label.clone(),
            shares: vec![usable, unusable, time.seek_share(), time.transfer_share()],
            whole: 1.0,
            mark: bar.rotate_share_elsewhere,
            note: bar.note.clone(),
        }
    };
    some_bars(&HEAD_TIME, &all.iter().map(bar).collect::<Vec<_>>())
}

/// Horizontal bars of shares of all time: osdi00's figures 8 (a) and (c).
pub(crate) fn head_use(all: &[HeadUseBar]) -> String {
    let bar = |bar: &HeadUseBar| {
        let head = &bar.head_use;
        let (left, extra, free, idle_work) = if bar.with {
            (head.rotate_left(), head.extra_seek, head.free_transfer, head.idle_work)
        } else {
            (head.rotate, 0.0, 0.0, 0.0)
        };
        let shares = vec![left, head.seek, extra, head.transfer, free, idle_work];
        let idle = 1.0 - shares.iter().sum::<f64>();
        let note = format!("not busy {:.0} %", idle * 100.0);
        Bar { label: bar.label.clone(), shares, whole: 1.0, mark: None, note }
    };
    some_bars(&HEAD_USE, &all.iter().map(bar).collect::<Vec<_>>())
}

/// Where the time of one pass of PostMark's transactions went, in seconds.
pub(crate) struct PassBar {
    pub label: String,
    /// Transactions without cleaning.
    pub work: f64,
    pub reading: f64,
    pub copying: f64,
    /// Text to the right of the bar.
    pub note: String,
}

/// Horizontal bars of time, of which the longest has the whole width.
pub(crate) fn passes(all: &[PassBar]) -> String {
    const PARTS: [(&str, RGBColor); 3] = [
        ("transactions", RGBColor(0x56, 0xb4, 0xe9)),
        ("reads of cleaning", RGBColor(0xd5, 0x5e, 0x00)),
        ("copies of cleaning", RGBColor(0xf0, 0xe4, 0x42)),
    ];
    let times = |bar: &PassBar| [bar.work, bar.reading, bar.copying];
    let totals: Vec<f64> = all.iter().map(|bar| times(bar).iter().sum()).collect();
    let longest = max_of(&totals).copied().unwrap_or(0.0).max(f64::MIN_POSITIVE);
    let bar = |(bar, total): (&PassBar, &f64)| Bar {
        label: bar.label.clone(),
        shares: times(bar).iter().map(|time| time / longest).collect(),
        whole: total / longest,
        mark: None,
        note: bar.note.clone(),
    };
    some_bars(&PARTS, &all.iter().zip(&totals).map(bar).collect::<Vec<_>>())
}

/// Horizontal bars, of which the longest has the whole width.
fn values(quantity: &str, all: &[(String, f64)]) -> String {
    let longest = all.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
    let bar = |(label, value): &(String, f64)| Bar {
        label: label.clone(),
        shares: vec![value / longest],
        // Shares would repeat the lengths: the value itself is to the right.
        whole: f64::INFINITY,
        mark: None,
        note: four_digits(*value),
    };
    some_bars(&[(quantity, SEEK)], &all.iter().map(bar).collect::<Vec<_>>())
}

/// A horizontal bar of shares of a whole.
struct Bar {
    label: String,
    /// Parts of the width.
    shares: Vec<f64>,
    /// The part of the width that labels are shares of.
    whole: f64,
    /// A share that is marked.
    mark: Option<f64>,
    /// Text to the right of the bar.
    note: String,
}

/// Bars in which what does not happen in any of them has no name either.
fn some_bars(parts: &[(&str, RGBColor)], all: &[Bar]) -> String {
    let happens = |part: usize| all.iter().any(|bar| bar.shares[part] != 0.0);
    let happening: Vec<usize> = (0..parts.len()).filter(|&part| happens(part)).collect();
    let some = |bar: &Bar| Bar {
        shares: happening.iter().map(|&part| bar.shares[part]).collect(),
        label: bar.label.clone(),
        note: bar.note.clone(),
        ..*bar
    };
    let named: Vec<(&str, RGBColor)> = happening.iter().map(|&part| parts[part]).collect();
    bars(&named, &all.iter().map(some).collect::<Vec<_>>())
}

fn bars(parts: &[(&str, RGBColor)], bars: &[Bar]) -> String {
    let height = 48 + 34 * bars.len() as u32;
    svg(860, height, |area| {
        let long = parts.len() > 3;
        legend(area, parts, if long { BAR_LEFT - 140 } else { BAR_LEFT })?;
        for (row, bar) in bars.iter().enumerate() {
            draw_bar(area, parts, bar, 40 + 34 * row as i32)?;
        }
        Ok(())
    })
}

const BAR_LEFT: i32 = 150;
const BAR_WIDTH: f64 = 500.0;

fn draw_bar(area: &Area<'_>, parts: &[(&str, RGBColor)], bar: &Bar, top: i32) -> Drawn {
    text(area, &bar.label, (BAR_LEFT - 10, top + 12), 14, INK, HPos::Right)?;
    let mut left = f64::from(BAR_LEFT);
    for (share, (_, colour)) in bar.shares.iter().zip(parts) {
        let right = left + share * BAR_WIDTH;
        let corners = [(left as i32, top), (right as i32, top + 24)];
        area.draw(&Rectangle::new(corners, colour.filled()))?;
        if *share > 0.045 && bar.whole.is_finite() {
            let label = format!("{:.0} %", share / bar.whole * 100.0);
            let middle = ((left + right) / 2.0) as i32;
            text(area, &label, (middle, top + 12), 13, ON_BAR, HPos::Center)?;
        }
        left = right;
    }
    if let Some(share) = bar.mark {
        let at = BAR_LEFT + (share * BAR_WIDTH) as i32;
        let line = vec![(at, top - 4), (at, top + 28)];
        area.draw(&PathElement::new(line, INK.stroke_width(2)))?;
    }
    text(area, &bar.note, (BAR_LEFT + BAR_WIDTH as i32 + 12, top + 12), 13, FAINT, HPos::Left)
}

/// Groups of columns, a group for each label and a column in it for each series; heights in %.
pub(crate) fn columns(labels: &[String], series: &[Series]) -> String {
    const COLOURS: [RGBColor; 2] = [SEEK, ROTATE];
    const LEFT: i32 = 30;
    const WIDTH: i32 = 810;
    const TOP: i32 = 44;
    const HEIGHT: f64 = 170.0;
    let highest = series.iter().flat_map(|one| &one.shares).fold(0.01, |a: f64, b| a.max(*b));
    svg(860, 250, |area| {
        let named: Vec<(&str, RGBColor)> =
            series.iter().zip(COLOURS).map(|(one, colour)| (one.name, colour)).collect();
        legend(area, &named, LEFT)?;
        let group = WIDTH / labels.len().max(1) as i32;
        let column = (group - 12) / series.len().max(1) as i32;
        let base = TOP + HEIGHT as i32;
        for (g, label) in labels.iter().enumerate() {
            let x = LEFT + g as i32 * group;
            for (k, (Series { shares, .. }, (_, colour))) in series.iter().zip(&named).enumerate() {
                let (share, left) = (shares[g], x + 6 + k as i32 * column);
                let top = base - (share / highest * HEIGHT) as i32;
                area.draw(&Rectangle::new(
                    [(left, top), (left + column - 2, base)],
                    colour.filled(),
                ))?;
                if share >= 0.005 {
                    let words = format!("{:.0}", share * 100.0);
                    text(area, &words, (left + column / 2, top - 8), 11, FAINT, HPos::Center)?;
                }
            }
            text(area, label, (x + group / 2, base + 16), 12, INK, HPos::Center)?;
        }
        let axis = vec![(LEFT, base), (LEFT + WIDTH, base)];
        area.draw(&PathElement::new(axis, FAINT.stroke_width(1)))
    })
}

/// Height of a row of the legend.
const ROW: i32 = 20;

/// Place of each name of a legend, in rows that fit the width.
fn legend_places(names: &[&str], left: i32, width: i32) -> Vec<(i32, i32)> {
    let (mut x, mut y) = (left, 12);
    let place = |name: &&str| {
        let long = 44 + 7 * name.len() as i32;
        if x > left && x + long > width {
            (x, y) = (left, y + ROW);
        }
        let at = (x, y);
        x += long;
        at
    };
    names.iter().map(place).collect()
}

fn legend(area: &Area<'_>, parts: &[(&str, RGBColor)], left: i32) -> Drawn {
    let names: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
    let places = legend_places(&names, left, area.dim_in_pixel().0 as i32);
    for ((name, colour), (x, y)) in parts.iter().zip(places) {
        area.draw(&Rectangle::new([(x, y), (x + 13, y + 13)], colour.filled()))?;
        text(area, name, (x + 19, y + 6), 13, INK, HPos::Left)?;
    }
    Ok(())
}

/// Width of a chart of lines, and where its legend begins.
const LINES_WIDTH: i32 = 860;
const LEGEND_LEFT: i32 = 64;

/// Lines over a common pair of axes. Empty without points.
pub(crate) fn lines(lines: &[Line], axes: &Axes) -> String {
    lines_labelled(lines, axes, &|y| short(*y), 10)
}

/// The same with powers of ten along y, so that small shares are seen. What is 0 is left out.
pub(crate) fn lines_over_log_y(lines: &[Line], axes: &Axes) -> String {
    let logarithms = |line: &Line| {
        let positive = line.points.iter().filter(|point| point.1 > 0.0);
        let points = positive.map(|&(x, y)| (x, libm::log10(y))).collect();
        Line { points, ..line.clone() }
    };
    let lines: Vec<Line> = lines.iter().map(logarithms).collect();
    // A label for each power of ten.
    let all = || lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
    let (least, most) =
        (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
    let powers = if most > least { (most - least).ceil() as usize + 1 } else { 1 };
    lines_labelled(&lines, axes, &|y| short(10f64.powf(*y)), powers)
}

fn lines_labelled(
    lines: &[Line],
    axes: &Axes,
    y_label: &dyn Fn(&f64) -> String,
    y_labels: usize,
) -> String {
    let points = || lines.iter().flat_map(|line| line.points.iter());
    let usable = |x: f64| !axes.log_x || x > 0.0;
    // What is nowhere drawn is not named either.
    let is_drawn = |line: &Line| line.points.iter().any(|point| usable(point.0));
    let coloured = lines.iter().zip(LINES.iter().cycle());
    let drawn: Vec<(&Line, RGBColor)> =
        coloured.filter(|(line, _)| is_drawn(line)).map(|(line, colour)| (line, *colour)).collect();
    let xs: Vec<f64> = points().map(|p| p.0).filter(|&x| usable(x)).collect();
    let (Some(&low), Some(&high)) = (min_of(&xs), max_of(&xs)) else { return String::new() };
    let ys: Vec<f64> = points().map(|p| p.1).collect();
    let top = max_of(&ys).copied().unwrap_or(1.0).max(f64::MIN_POSITIVE) * 1.05;
    let bottom = min_of(&ys).map_or(0.0, |low| low.min(0.0) * 1.05);
    let named: Vec<(&str, RGBColor)> =
        drawn.iter().map(|(line, colour)| (line.name.as_str(), *colour)).collect();
    let names: Vec<&str> = named.iter().map(|(name, _)| *name).collect();
    let last_row = legend_places(&names, LEGEND_LEFT, LINES_WIDTH).last().map_or(0, |at| at.1);
    let head = last_row + 18;
    svg(LINES_WIDTH as u32, (370 + head) as u32, |area| {
        let (names, plot) = area.split_vertically(head);
        legend(&names, &named, LEGEND_LEFT)?;
        let mut builder = ChartBuilder::on(&plot);
        builder.margin(10).margin_right(24).x_label_area_size(46).y_label_area_size(62);
        if axes.log_x {
            let high = high.max(low * 1.01);
            let range = (low..high).log_scale().with_key_points(log_ticks(low, high));
            let mut chart = builder.build_cartesian_2d(range, bottom..top)?;
            mesh(chart.configure_mesh(), axes, y_label, y_labels)?;
            drawn.iter().try_for_each(|(line, colour)| {
                let points = line.points.iter().copied().filter(|p| usable(p.0)).collect();
                draw_line(&mut chart, points, line.dots, *colour)
            })
        } else {
            let range = low.min(0.0)..high.max(low + f64::MIN_POSITIVE);
            let mut chart = builder.build_cartesian_2d(range, bottom..top)?;
            mesh(chart.configure_mesh(), axes, y_label, y_labels)?;
            drawn.iter().try_for_each(|(line, colour)| {
                draw_line(&mut chart, line.points.clone(), line.dots, *colour)
            })
        }
    })
}

/// Places along an axis of powers of ten that have names: powers where they are several, else what
/// lies between them too, and on a short axis equal steps.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    const ENOUGH: usize = 4;
    let between = |digits: &[f64]| -> Vec<f64> {
        let powers = libm::log10(low).floor() as i32..=libm::log10(high).ceil() as i32;
        let all =
            powers.flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)));
        all.filter(|tick| (low..=high).contains(tick)).collect()
    };
    let ways = [&[1.0][..], &[1.0, 2.0, 5.0], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]];
    let found = ways.into_iter().map(between).find(|ticks| ticks.len() >= ENOUGH);
    found.unwrap_or_else(|| {
        let power = 10f64.powf(libm::log10((high - low) / ENOUGH as f64).floor());
        let count = |step: f64| (high / step).floor() - (low / step).ceil() + 1.0;
        let steps = [5.0, 2.0, 1.0].map(|digit| digit * power);
        let step = steps.into_iter().find(|&step| count(step) >= ENOUGH as f64).unwrap_or(power);
        let first = (low / step).ceil();
        (0..count(step) as u32).map(|number| (first + f64::from(number)) * step).collect()
    })
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
    axes: &Axes,
    y_label: &'b dyn Fn(&f64) -> String,
    y_labels: usize,
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
        .y_label_formatter(y_label)
        .y_labels(y_labels)
        .axis_style(FAINT)
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .draw()
}

fn draw_line<'a, X>(
    chart: &mut Chart<'a, X>,
    points: Vec<(f64, f64)>,
    dots: bool,
    colour: RGBColor,
) -> Drawn
where
    X: plotters::coord::ranged1d::Ranged<ValueType = f64> + 'a,
{
    // A line of one point would not be seen.
    if dots || points.len() == 1 {
        chart.draw_series(points.iter().map(|&p| Circle::new(p, 4, colour.filled())))?;
    } else {
        chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
    }
    Ok(())
}

/// Draws into SVG text that scales with the page.
fn svg(width: u32, height: u32, content: impl FnOnce(&Area<'_>) -> Drawn) -> String {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
        // Drawing into memory fails only by a mistake in this file.
        content(&area).and_then(|()| area.present()).expect("drawing into memory");
    }
    let size = format!("width=\"{width}\" height=\"{height}\" ");
    let named = [(INK, "var(--ink)"), (FAINT, "var(--faint)"), (GRID, "var(--line)")];
    named
        .iter()
        .fold(svg.replacen(&size, "", 1), |svg, (colour, name)| svg.replace(&hex(*colour), name))
}

/// A colour as charts write it.
fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

fn text(
    area: &Area<'_>,
    words: &str,
    at: (i32, i32),
    size: u32,
    colour: RGBColor,
    side: HPos,
) -> Drawn {
    let style = (FONT, size).into_font().color(&colour).pos(Pos::new(side, VPos::Center));
    area.draw(&Text::new(words.to_string(), at, style))
}

/// A number on an axis: four digits, but for zeros at the end.
fn short(value: f64) -> String {
    let trimmed = |digits: &str| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits.to_owned(),
    };
    if value.abs() >= 10_000.0 {
        let text = format!("{value:.3e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{power}", trimmed(digits));
    }
    // Four digits that say something.
    let decimals = (3 - libm::log10(value.abs().max(0.1)).floor() as i32) as usize;
    trimmed(&format!("{value:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_scales_with_the_page_and_refers_to_nothing_outside() {
        let line = Line { name: "a".into(), points: vec![(1.0, 2.0), (10.0, 3.0)], dots: false };
        let svg = lines(&[line], &Axes { x: "x", y: "y", log_x: true });
        assert!(svg.starts_with("<svg viewBox="), "{}", &svg[..80]);
        assert!(!svg.contains("href"));
    }

    #[test]
    fn a_line_that_an_axis_has_no_place_for_is_not_named() {
        let line = |name: &str, x: f64| Line {
            name: name.into(),
            points: vec![(x, 50.0), (2.0 * x, 100.0)],
            dots: false,
        };
        let svg = |log_x| {
            lines(&[line("reads", 3.0), line("writes", 0.0)], &Axes { x: "x", y: "y", log_x })
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
    fn every_name_of_a_legend_stands_within_the_chart_in_a_place_of_its_own() {
        let names: Vec<String> = (0..12).map(|at| "a policy".repeat(1 + at % 3)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let places = legend_places(&names, LEGEND_LEFT, LINES_WIDTH);
        let ends = |at: usize| places[at].0 + 19 + 7 * names[at].len() as i32;
        assert!((0..names.len()).all(|at| ends(at) <= LINES_WIDTH), "{places:?}");
        assert!(
            (1..names.len())
                .all(|at| places[at].1 > places[at - 1].1 || places[at].0 > ends(at - 1))
        );
        assert!(places[11].1 > places[0].1);
    }

    #[test]
    fn nothing_to_draw_is_nothing() {
        assert_eq!(lines(&[], &Axes { x: "x", y: "y", log_x: false }), "");
    }
}
