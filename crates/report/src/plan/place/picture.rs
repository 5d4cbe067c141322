//! Load of each disk before and after, with the moves as arrows.

use std::collections::BTreeMap;

use freewheel_study::plan::PlacePlan;
use maud::{Markup, html};

use crate::drawing::at;
use crate::numbers::percent;

const WIDTH: f64 = 440.0;
const ROW: f64 = 34.0;
const LEFT: f64 = 92.0;
/// Place in the picture at which bars end and arrows begin.
const BARS_END: f64 = 336.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 26.0;

/// Most disks that fit into a picture.
const DISKS_MAX: usize = 24;

/// Disks in the picture: those of the moves first, then the busiest; in the order of the snapshot.
fn shown(plan: &PlacePlan) -> Vec<usize> {
    let mut disks: Vec<usize> = (0..plan.disks.len()).collect();
    disks.sort_by(|a, b| {
        (moves(b, plan) > 0)
            .cmp(&(moves(a, plan) > 0))
            .then(busy(b, plan).total_cmp(&busy(a, plan)))
    });
    disks.truncate(DISKS_MAX);
    disks.sort_unstable();
    disks
}

fn moves(disk: &usize, plan: &PlacePlan) -> usize {
    let name = &plan.disks[*disk].name;
    plan.moves.iter().filter(|wanted| wanted.from == *name || wanted.to == *name).count()
}

fn busy(disk: &usize, plan: &PlacePlan) -> f64 {
    plan.before.disks[*disk].busy
}

/// Disks that the picture leaves out.
pub(super) fn left_out(plan: &PlacePlan) -> usize {
    plan.disks.len() - shown(plan).len()
}

pub(super) fn draw(plan: &PlacePlan) -> Markup {
    let disks = shown(plan);
    let height = TOP + ROW * disks.len() as f64 + BOTTOM;
    let busiest = disks.iter().map(|&disk| plan.before.disks[disk].busy).fold(1.0, f64::max);
    let x = |busy: f64| LEFT + (BARS_END - LEFT - 44.0) * (busy / busiest);
    let full = x(1.0);
    html! {
        svg.plot.sizes viewBox=(format!("0 0 {WIDTH} {height}")) role="img"
            aria-label="Share of time in which each disk is busy before and after, and the moves" {
            defs {
                marker #tip viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto" {
                    path d="M0 0 8 4 0 8z" fill="var(--accent)" {}
                }
            }
            line.tick x1=(full) x2=(full) y1=(TOP) y2=(height - BOTTOM) {}
            text x=(full) y=(height - 8.0) text-anchor="middle" { "100 % busy" }
            @for (row, &disk) in disks.iter().enumerate() {
                @let y = TOP + ROW * row as f64;
                @let (before, after) = (plan.before.disks[disk].busy, plan.after.disks[disk].busy);
                text x=(LEFT - 8.0) y=(y + 20.0) text-anchor="end" fill="var(--ink)" {
                    (short(&plan.disks[disk].name))
                }
                rect x=(LEFT) y=(y + 4.0) width=(width(x(before) - LEFT)) height="11"
                    fill=(if before >= 1.0 { "var(--bad)" } else { "var(--faint)" }) opacity="0.55" {}
                rect x=(LEFT) y=(y + 16.0) width=(width(x(after) - LEFT)) height="11"
                    fill=(if after >= 1.0 { "var(--bad)" } else { "var(--good)" }) {}
                text x=(x(before) + 4.0) y=(y + 13.5) font-size="11" { (percent(before)) }
                text x=(x(after) + 4.0) y=(y + 26.0) font-size="11" { (percent(after)) }
            }
            @for ((from, to), count) in arrows(plan, &disks) {
                @let middle = |row: usize| TOP + ROW * row as f64 + 15.0;
                @let (start, end) = (middle(from), middle(to));
                @let far = at(BARS_END + 24.0 + 70.0 * ((end - start).abs() / height));
                @let [start, end] = [start, end].map(at);
                path d=(format!("M{BARS_END} {start} C{far} {start} {far} {end} {BARS_END} {end}"))
                    fill="none" stroke="var(--accent)" stroke-width=(1.2 + 0.4 * f64::from(count.min(8)))
                    marker-end="url(#tip)" {}
            }
        }
    }
}

/// A bar has no negative width, and an idle disk a thin line.
fn width(width: f64) -> String {
    at(width.max(1.0))
}

/// Moves between each pair of rows.
fn arrows(plan: &PlacePlan, disks: &[usize]) -> BTreeMap<(usize, usize), u32> {
    let mut arrows = BTreeMap::new();
    for wanted in &plan.moves {
        if let (Some(from), Some(to)) =
            (row(&wanted.from, disks, plan), row(&wanted.to, disks, plan))
        {
            *arrows.entry((from, to)).or_default() += 1;
        }
    }
    arrows
}

fn row(name: &str, disks: &[usize], plan: &PlacePlan) -> Option<usize> {
    disks.iter().position(|&disk| plan.disks[disk].name == name)
}

/// A name that fits before its bar.
fn short(name: &str) -> String {
    const FITS: usize = 12;
    match name.chars().count() {
        count if count > FITS => {
            let end: String = name.chars().skip(count - FITS + 1).collect();
            format!("\u{2026}{end}")
        }
        _ => name.to_owned(),
    }
}
