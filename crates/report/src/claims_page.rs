//! Reproduced claims as a page.

use maud::{Markup, html};

use crate::chart;
use crate::page::{self, section};
use freewheel_reproduce::{
    BEYOND, CLAIMS, Counts, HOLDS, ReproduceOptions, Reproduction, Row, Verdict,
};
use freewheel_units::four_digits;

/// Pages with the figures, ours and theirs: one of the papers' claims and one of what goes beyond them.
/// Either is there when some of its claims were run.
pub fn claims_html(
    reproductions: &[Reproduction],
    options: &ReproduceOptions,
) -> [Option<String>; 2] {
    let is_beyond = |reproduction: &&Reproduction| reproduction.id.starts_with(BEYOND);
    let (beyond, papers): (Vec<_>, Vec<_>) = reproductions.iter().partition(is_beyond);
    let page =
        |title, list: Vec<&Reproduction>| (!list.is_empty()).then(|| html(title, &list, options));
    [
        page("What the papers claim, and what Freewheel finds", papers),
        page("Beyond the papers: goals and results of Freewheel", beyond),
    ]
}

fn html(title: &str, reproductions: &[&Reproduction], options: &ReproduceOptions) -> String {
    let counts = Counts::of(reproductions.iter().flat_map(|reproduction| &reproduction.rows));
    let runs = if options.quick { "short runs" } else { "runs as long as each claim says" };
    page::page(
        title,
        &format!("{}. Seed {}, {runs}.", counts.words(), options.seed),
        &html! {
            p.note { (LEGEND) }
            (exceptions(reproductions))
            @for reproduction in reproductions { (part(reproduction)) }
        },
    )
}

/// What the verdicts mean.
const LEGEND: &str = "Reproduced: inside its band, predicted. Calibrated: inside, but a free parameter was chosen so that this number comes out, so it is no evidence. Known deviation: outside, within the tolerance of the value recorded for it, with a reason. Goal reached: a goal of Freewheel, of no paper. Measured: a number without a band. Stand-in: a number of a generated trace in place of a public one that is missing, compared with nothing. Anything else is a failure.";

/// Every row outside its band, with its reason; empty when there is none.
fn exceptions(reproductions: &[&Reproduction]) -> Markup {
    let rows = reproductions.iter().flat_map(|reproduction| &reproduction.rows);
    let rows: Vec<&Row> = rows.filter(|row| !row.inside).collect();
    if rows.is_empty() {
        return html! {};
    }
    section(
        "Outside their bands",
        &html! {
            div.scroll {
                table {
                    thead { tr { th { "number" } th { "ours" } th { "recorded value" } th { "band" } th { "paper" } } }
                    tbody { @for row in &rows { (exception(row)) } }
                }
            }
            details {
                summary { "Why" }
                @for (names, reason) in reasons(&rows) {
                    p.note { strong { (names.join("; ")) ": " } (reason) }
                }
            }
        },
    )
}

/// Each reason once, with the rows that it is of.
fn reasons<'a>(rows: &[&'a Row]) -> Vec<(Vec<String>, &'a str)> {
    let mut list: Vec<(Vec<String>, &str)> = Vec::new();
    for row in rows {
        let known = row.deviation.as_ref().map(|known| known.reason.as_str());
        let Some(reason) = known.or(row.note.as_deref()) else { continue };
        let name = format!("{} {}", row.id, row.quantity);
        match list.iter_mut().find(|(_, other)| *other == reason) {
            Some((names, _)) => names.push(name),
            None => list.push((vec![name], reason)),
        }
    }
    list
}

fn exception(row: &Row) -> Markup {
    let known = row.deviation.as_ref();
    let known = known
        .map(|known| format!("{} ± {}", four_digits(known.value), four_digits(known.tolerance)));
    html! {
        tr {
            td.words { (row.id) " " (row.quantity) }
            td { (value(row, row.ours)) }
            td {
                @match (row.verdict, known) {
                    (Verdict::KnownDeviation, Some(known)) => (known),
                    _ => span.outside { (row.verdict.title()) },
                }
            }
            td { (band(row)) }
            td { (paper(row)) }
        }
    }
}

fn part(reproduction: &Reproduction) -> Markup {
    let claim = CLAIMS.iter().find(|claim| claim.id == reproduction.id).expect("it was run");
    section(
        &format!("{}: {}", claim.id, claim.title),
        &html! {
            p.note { (claim.setting) }
            @for figure in &reproduction.figures { (chart::draw(figure)) }
            (table(&reproduction.rows))
        },
    )
}

fn table(rows: &[Row]) -> Markup {
    let said =
        |row: &&Row| row.stands_in.is_some() || row.note.is_some() || row.calibrated.is_some();
    let remarks: Vec<&Row> = rows.iter().filter(said).collect();
    html! {
        div.scroll {
            table {
                thead { tr { th { "quantity" } th { "ours" } th { "verdict" } th { "band" } th { "paper" } } }
                tbody { @for row in rows { (line(row)) } }
            }
        }
        @if !remarks.is_empty() {
            details {
                summary { "Stand-ins, calibrations and further numbers" }
                @for row in remarks {
                    @if let Some(parameter) = &row.calibrated {
                        p.note { strong { (row.quantity) ": " } "calibrated by " (parameter) }
                    }
                    @for text in row.stands_in.iter().chain(&row.note) {
                        p.note { strong { (row.quantity) ": " } (text) }
                    }
                }
            }
        }
    }
}

fn value(row: &Row, value: f64) -> String {
    match row.unit {
        _ if value.is_nan() => "-".into(),
        HOLDS if value == 1.0 => "holds".into(),
        HOLDS => "does not".into(),
        unit => format!("{} {unit}", four_digits(value)),
    }
}

fn paper(row: &Row) -> String {
    match (row.paper, row.band) {
        (Some(paper), _) => value(row, paper),
        (None, Some(_)) if !row.id.starts_with(BEYOND) => "a range".into(),
        _ => "-".into(),
    }
}

fn band(row: &Row) -> String {
    match row.band {
        Some([low, high]) if row.unit != HOLDS => {
            format!("{} to {}", four_digits(low), four_digits(high))
        }
        _ => String::new(),
    }
}

fn line(row: &Row) -> Markup {
    let title = row.verdict.title();
    html! {
        tr {
            td.words { (row.quantity) }
            td { (value(row, row.ours)) }
            td {
                @match row.verdict {
                    Verdict::Measured | Verdict::Calibrated | Verdict::StandIn => (title),
                    Verdict::KnownDeviation => span.known { (title) },
                    _ if row.inside => span.inside { (title) },
                    _ => span.outside { (title) },
                }
            }
            td { (band(row)) }
            td { (paper(row)) }
        }
    }
}
