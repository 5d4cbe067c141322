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
    let (beyond, papers): (Vec<_>, Vec<_>) =
        reproductions.iter().partition(|reproduction| reproduction.id.starts_with(BEYOND));
    [
        (!papers.is_empty())
            .then(|| html("What the papers claim, and what Freewheel finds", &papers, options)),
        (!beyond.is_empty())
            .then(|| html("Beyond the papers: goals and results of Freewheel", &beyond, options)),
    ]
}

fn html(title: &str, reproductions: &[&Reproduction], options: &ReproduceOptions) -> String {
    let counts = Counts::of(reproductions.iter().flat_map(|reproduction| &reproduction.rows));
    let runs = if options.quick { "short runs" } else { "runs as long as each claim says" };
    let seeds = match &options.seeds[..] {
        [seed] => format!("Seed {seed}"),
        [first, .., last] => {
            format!("Medians of {} seeds, {first} to {last}", options.seeds.len())
        }
        [] => String::new(),
    };
    page::page(
        title,
        &format!("{}. {seeds}, {runs}.", counts.words()),
        &html! {
            p.note { (LEGEND) }
            (exceptions(reproductions))
            @for reproduction in reproductions { (part(reproduction)) }
        },
    )
}

/// Meaning of the verdicts.
const LEGEND: &str = "Reproduced: a paper's number inside a band on either side of it, predicted. Holds: an order, a shape or a limit of a paper. Calibrated: inside, but a free parameter was chosen so that this number comes out, so it is no evidence. Known deviation: outside, within the tolerance of the value recorded for it, with a reason. Unsteady: the verdict hangs on the seed, inside on some seeds and outside on others, or so near the band that others may be inside. Goal reached: a goal of Freewheel, or a time. Measured: a number without a band. Stand-in: a number of a generated trace in place of a public one that is missing, compared with nothing. Anything else is a failure. On recorded traces a seed stands for a fifth of the trace that is left out: the range says what hangs on one fifth, and other seeds leave out the same fifths.";

/// Every row outside its band, with its reason; empty when there is none.
fn exceptions(reproductions: &[&Reproduction]) -> Markup {
    let rows = reproductions.iter().flat_map(|reproduction| &reproduction.rows);
    let rows: Vec<&Row> =
        rows.filter(|row| !row.inside && row.verdict != Verdict::Unsteady).collect();
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
    let remarks: Vec<&Row> = rows
        .iter()
        .filter(|row| row.stands_in.is_some() || row.note.is_some() || row.calibrated.is_some())
        .collect();
    html! {
        div.scroll {
            table {
                thead { tr { th { "quantity" } th { "ours" } th { "over seeds" } th { "verdict" } th { "band" } th { "paper" } } }
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
    match (row.paper, row.paper_to) {
        (Some(least), Some(most)) => format!("{} to {}", four_digits(least), value(row, most)),
        (Some(paper), None) => value(row, paper),
        _ => "-".into(),
    }
}

/// The least and the largest over the seeds; where they disagree about a band, how many lie inside.
fn range(row: &Row) -> String {
    let ends =
        row.range.map(|[low, high]| format!("{} to {}", four_digits(low), four_digits(high)));
    let held = (row.verdict == Verdict::Unsteady)
        .then(|| format!("inside on {} of {}", row.seeds_inside, row.seeds));
    ends.into_iter().chain(held).collect::<Vec<String>>().join("; ")
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
            td { (range(row)) }
            td {
                @match row.verdict {
                    Verdict::Measured | Verdict::Calibrated | Verdict::StandIn | Verdict::Unsteady => (title),
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
