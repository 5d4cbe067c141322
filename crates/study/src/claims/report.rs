//! Reproduced claims as a page.

use maud::{Markup, html};

use super::{CLAIMS, Figure, HOLDS, ReproduceOptions, Reproduction, Row};
use crate::chart;
use crate::number::four_digits;
use crate::page::{self, section};

pub(super) fn html(reproductions: &[Reproduction], options: &ReproduceOptions) -> String {
    let rows = || reproductions.iter().flat_map(|reproduction| &reproduction.rows);
    let (inside, all) = (rows().filter(|row| row.inside).count(), rows().count());
    let lead = format!(
        "{inside} of {all} numbers are inside their bands; seed {}, {}.",
        options.seed,
        if options.quick { "short runs" } else { "runs as long as each claim says" }
    );
    page::page(
        "What the papers claim, and what we find",
        &lead,
        &html! {
            @for reproduction in reproductions { (part(reproduction)) }
        },
    )
}

fn part(reproduction: &Reproduction) -> Markup {
    let claim = CLAIMS.iter().find(|claim| claim.id == reproduction.id).expect("it was run");
    section(
        &format!("{}: {}", claim.id, claim.title),
        &html! {
            p.note { (claim.setting) }
            @for figure in &reproduction.figures { (page::chart(&draw(figure))) }
            (table(&reproduction.rows))
        },
    )
}

fn draw(figure: &Figure) -> String {
    match figure {
        Figure::HeadTime(bars) => chart::head_time(bars),
        Figure::Lines(lines, axes) => chart::lines(lines, axes),
    }
}

fn table(rows: &[Row]) -> Markup {
    html! {
        div.scroll {
            table {
                thead { tr { th { "quantity" } th { "paper" } th { "ours" } th { "band" } th { "inside" } } }
                tbody { @for row in rows { (line(row)) } }
            }
        }
        @for row in rows {
            @for text in row.stands_in.iter().chain(&row.note) {
                p.note { strong { (row.quantity) ": " } (text) }
            }
        }
    }
}

fn line(row: &Row) -> Markup {
    let value = |value: f64| match row.unit {
        HOLDS => if value == 1.0 { "holds" } else { "does not" }.into(),
        unit => format!("{value:.1} {unit}"),
    };
    let band = match row.unit {
        HOLDS => String::new(),
        _ => format!("{} to {}", four_digits(row.band[0]), four_digits(row.band[1])),
    };
    html! {
        tr {
            td.words { (row.quantity) }
            td { (row.paper.map_or("a range".into(), value)) }
            td { (value(row.ours)) }
            td { (band) }
            td { @if row.inside { span.inside { "yes" } } @else { span.outside { "no" } } }
        }
    }
}
