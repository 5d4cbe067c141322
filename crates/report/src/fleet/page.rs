//! The page of a fleet: the answer, a map of servers and bays, changes, scrubs, drives worth a look.

use freewheel_study::WARM_UP;
use freewheel_study::fleet::{FleetNumbers, FleetRow};
use freewheel_units::grouped;
use maud::{Markup, html};

use super::summary::{Summary, is_hot, times_of_median};
use super::text::{drives, label, part_name, sentences, title};
use super::{FleetReport, REPORTS};
use crate::bars::{self, BarPart};
use crate::drawing::length;
use crate::numbers::{TIME_MAX_S, about, percent, ratio, response, span};
use crate::page::{self, NotedRow, fold, folds, noted_table, prose, section, table};
use crate::study::{noticeable, signed};

/// Bays in a row of the map where servers are not known.
const ROW: usize = 24;

pub(super) fn html(report: &FleetReport) -> String {
    let summary = report.summary();
    let part = if report.options.changes {
        format!("; the first {} of its requests fill caches", percent(WARM_UP))
    } else {
        String::new()
    };
    let lead = format!(
        "Each drive was studied with its own trace{part}. Seed {}, ranked by {}.",
        report.options.seed,
        report.options.goal.quantity()
    );
    page::page(
        &title(&summary),
        &lead,
        &html! {
            (section("What follows", &html! {
                @for sentence in sentences(report, &summary) { p { (prose(&sentence.replace(" %", "\u{a0}%"))) } }
            }))
            (section("How busy each drive is", &map(report)))
            div.panels {
                (section("Changes that pay", &changes(&summary)))
                (section("How long a scrub takes in idle time", &scrubs(&report.rows)))
            }
            (section("Drives worth a look", &look(report)))
            (failures(report))
            (folds(&html! {
                (fold("All drives", &all(report)))
                (fold("Traces by their length", &spans(&summary)))
                (fold("How drives were studied", &how(report)))
            }))
        },
    )
}

/// A cell for each drive, a row for each server.
fn map(report: &FleetReport) -> Markup {
    let rows = servers(&report.rows);
    html! {
        div.scroll.fleet {
            @for (server, cells) in &rows {
                div.server {
                    span.name { (server) }
                    @for (at, row) in cells { (cell(report, *at, row)) }
                }
            }
        }
        ul.legend {
            @for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
                li { span.cell style=(shade(share)) {} " " (percent(share)) }
            }
            li { span.cell.overloaded {} " overloaded" }
            @if report.rows.iter().any(|row| row.numbers.is_none()) { li { span.cell.none {} " no study" } }
        }
        p.note { "Each square is a drive; it is darker the more of the time the drive works. Its name and numbers come up when the pointer rests on it." }
    }
}

/// Share of the time from which a square is so dark that letters on it are light.
const DARK: f64 = 0.6;

type Cells<'a> = Vec<(usize, &'a FleetRow)>;

/// Drives by server, in the order of the rows; without servers in rows of equal length.
fn servers(rows: &[FleetRow]) -> Vec<(String, Cells<'_>)> {
    let all: Cells<'_> = rows.iter().enumerate().collect();
    if rows.iter().all(|row| row.member.server.is_empty()) {
        return all.chunks(ROW).map(|chunk| (String::new(), chunk.to_vec())).collect();
    }
    let mut servers: Vec<(String, Cells<'_>)> = Vec::new();
    for (at, row) in all {
        match servers.iter_mut().find(|(server, _)| *server == row.member.server) {
            Some((_, cells)) => cells.push((at, row)),
            None => servers.push((row.member.server.clone(), vec![(at, row)])),
        }
    }
    servers
}

fn shade(share: f64) -> String {
    format!("--share: {}", length(share.clamp(0.0, 1.0)))
}

fn cell(report: &FleetReport, at: usize, row: &FleetRow) -> Markup {
    let (class, style, words) = match &row.numbers {
        None => ("cell none", String::new(), row.fault.clone().unwrap_or_default()),
        Some(of) => {
            let class = match of.utilisation {
                _ if of.is_overloaded => "cell overloaded",
                share if share > DARK => "cell dark",
                _ => "cell",
            };
            let words = format!(
                "busy {}, mean {}, p99 {}",
                percent(of.utilisation),
                response(of.response_ns_mean),
                response(of.response_ns_p99 as f64)
            );
            (class, shade(of.utilisation), words)
        }
    };
    let title = format!("{} ({}): {words}", label(&row.member), row.member.name);
    // A longer name of a bay has no room.
    let bay = Some(&row.member.bay).filter(|bay| bay.chars().count() <= 2);
    html! {
        @match report.reports.get(&at) {
            Some(path) => a class=(class) style=(style) title=(title) href=(path) { @if let Some(bay) = bay { (bay) } },
            None => span class=(class) style=(style) title=(title) { @if let Some(bay) = bay { (bay) } },
        }
    }
}

fn changes(summary: &Summary) -> Markup {
    if summary.changes.is_empty() {
        return html! { p { "None of the changes that were tried pays on any drive." } };
    }
    let rows: Vec<NotedRow> = summary
        .changes
        .iter()
        .map(|change| NotedRow {
            name: part_name(change.part).to_owned(),
            note: format!(
                "{}; as {} on {}",
                price(change.cost_class),
                change.title,
                change.of_title
            ),
            warning: String::new(),
            cells: vec![
                grouped(change.drives as u64),
                signed(change.change_median),
                signed(change.change_least),
            ],
        })
        .collect();
    html! {
        (noted_table(&["change", "drives", "median", "least"], &rows))
        p.note { "A change pays where the goal gets better by " (noticeable()) " or more under each replay, and no 99th percentile gets worse by as much. Drives that do not keep up with their load are not counted." }
    }
}

fn price(class: u32) -> &'static str {
    match class {
        0 => "a setting",
        1 => "software",
        2 => "memory",
        3 => "non-volatile memory",
        _ => "drives",
    }
}

/// Upper ends of the classes of a scrub's time, in seconds.
const CLASSES: [(f64, &str); 5] = [
    (86_400.0, "up to a day"),
    (7.0 * 86_400.0, "up to a week"),
    (30.5 * 86_400.0, "up to a month"),
    (365.25 * 86_400.0, "up to a year"),
    (TIME_MAX_S, "up to 5 years"),
];

/// Name of the class behind the last one.
const ENDLESS: &str = "longer than 5 years";

/// Drives whose scrub takes about as long.
struct ScrubClass {
    name: &'static str,
    unnoticed: usize,
    noticed: usize,
}

impl ScrubClass {
    fn parts(&self, most: usize) -> [BarPart; 2] {
        let colour = if self.name == ENDLESS { "endless" } else { "unnoticed" };
        [(self.unnoticed, colour, "unnoticed on"), (self.noticed, "noticed", "noticed on")].map(
            |(count, colour, outcome)| BarPart {
                says: format!("{outcome} {}", drives(count)),
                colour,
                share: count as f64 / most as f64,
                words: String::new(),
            },
        )
    }
}

fn scrubs(rows: &[FleetRow]) -> Markup {
    let kept_up = || {
        let all = rows.iter().filter_map(|row| row.numbers.as_ref());
        all.filter(|of| !of.is_overloaded)
    };
    let total = kept_up().filter_map(|of| of.idle_scrub).count();
    if total == 0 {
        return html! { p { "No scrub was tried." } };
    }
    let rows: Vec<ScrubClass> = CLASSES
        .iter()
        .map(|(_, name)| *name)
        .chain([ENDLESS])
        .enumerate()
        .map(|(at, name)| {
            let here =
                || kept_up().filter_map(|of| of.idle_scrub).filter(|of| class(of.seconds) == at);
            let noticed = here().filter(|of| of.is_noticed).count();
            ScrubClass { name, unnoticed: here().count() - noticed, noticed }
        })
        .collect();
    // The fullest class takes the whole width.
    let most = rows.iter().map(|row| row.unnoticed + row.noticed).max().unwrap_or(0).max(1);
    html! {
        div.bars {
            @for row in &rows {
                div {
                    span.name { (row.name) }
                    (bars::one(&row.parts(most), None))
                    span.note { (drives(row.unnoticed + row.noticed)) }
                }
            }
        }
        ul.legend {
            li { span.key.unnoticed {} "requests do not notice it" }
            li { span.key.noticed {} "requests notice it after every pause that was tried" }
            li { span.key.endless {} "hardly any idle time is left" }
        }
    }
}

fn class(seconds: Option<f64>) -> usize {
    let at = seconds.and_then(|seconds| CLASSES.iter().position(|(end, _)| seconds <= *end));
    at.unwrap_or(CLASSES.len())
}

fn look(report: &FleetReport) -> Markup {
    let found = report.worth_a_look(REPORTS);
    if found.is_empty() {
        return html! { p { "No drive is hot, and no tail is far longer than those of the other drives of its model." } };
    }
    let head = ["drive", "why", "busy", "mean", "p99", "cheapest change that pays", "change"];
    html! {
        div.scroll.dense {
            table {
                thead { tr { @for cell in head { th.words[cell == "why"] { (cell) } } } }
                tbody {
                    @for at in found {
                        @let row = &report.rows[at];
                        @if let Some(of) = &row.numbers {
                            tr {
                                td {
                                    @match report.reports.get(&at) {
                                        Some(path) => a href=(path) { (label(&row.member)) },
                                        None => (label(&row.member)),
                                    }
                                    small { (row.member.name) ", " (row.member.drive) }
                                }
                                td.words { (why(report, row, of)) }
                                @for cell in numbers(of) { td { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn why(report: &FleetReport, row: &FleetRow, of: &FleetNumbers) -> String {
    let mut words = Vec::new();
    if of.is_overloaded {
        words.push("does not keep up with its load".to_owned());
    } else if is_hot(of, report.hot_share) {
        words.push("hot".to_owned());
    }
    let times = times_of_median(&report.rows, row, of);
    if times >= 2.0 {
        words.push(format!("p99 is {} times the median of its model", ratio(times)));
    }
    words.join("; ")
}

fn numbers(of: &FleetNumbers) -> [String; 5] {
    let (change, gain) = match &of.advice {
        Some(advice) => (advice.title.clone(), signed(advice.goal)),
        None if of.is_overloaded => ("not ranked in an overload".to_owned(), String::new()),
        None => ("none".to_owned(), String::new()),
    };
    let [mean, p99] = [of.response_ns_mean, of.response_ns_p99 as f64].map(response);
    [percent(of.utilisation), mean, p99, change, gain]
}

fn failures(report: &FleetReport) -> Markup {
    let failed =
        || report.rows.iter().filter_map(|row| Some((&row.member.name, row.fault.as_ref()?)));
    let list = || {
        html! { dl { @for (name, fault) in failed() { dt { (name) } dd { (fault) } } } }
    };
    html! {
        @if failed().next().is_some() { (section("Drives without a study", &list())) }
    }
}

fn all(report: &FleetReport) -> Markup {
    let head = [
        "drive",
        "model",
        "requests",
        "span",
        "busy",
        "mean",
        "p99",
        "best change",
        "mean with it",
        "scrub in idle time",
    ];
    let rows: Vec<Vec<String>> = report
        .rows
        .iter()
        .filter_map(|row| {
            let of = row.numbers.as_ref()?;
            let scrub = of.idle_scrub.map_or(String::new(), |scrub| match scrub.seconds {
                Some(seconds) => about(seconds),
                None => "longer than 5 years".to_owned(),
            });
            let mut cells = vec![
                label(&row.member),
                row.member.drive.clone(),
                grouped(of.requests),
                span(of.span_ns as f64 / 1e9),
            ];
            cells.extend(numbers(of));
            cells.push(scrub);
            Some(cells)
        })
        .collect();
    table(&head, &rows)
}

fn spans(summary: &Summary) -> Markup {
    let rows = summary.spans.iter().map(|group| {
        let [least, most] = [group.least_ns, group.most_ns].map(|ns| span(ns as f64 / 1e9));
        vec![
            format!("{least} to {most}"),
            grouped(group.drives as u64),
            percent(group.utilisation_median),
        ]
    });
    table(&["length", "drives", "busy in the median"], &rows.collect::<Vec<_>>())
}

fn how(report: &FleetReport) -> Markup {
    let options = &report.options;
    let rows = [
        ("hot from", percent(report.hot_share)),
        ("seed", options.seed.to_string()),
        ("changes tried", yes(options.changes).to_owned()),
        ("second look at the first changes (`--checks`)", yes(options.checks).to_owned()),
        ("scrub in the rotational gaps (`--gaps`)", yes(options.gaps).to_owned()),
    ];
    html! {
        dl { @for (name, value) in rows { dt { (prose(name)) } dd { (value) } } }
        p.note { "The report of a single drive is that of `freewheel study`, with everything." }
    }
}

fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

#[cfg(test)]
mod tests {
    use super::super::summary::tests::row;
    use super::*;

    #[test]
    fn scrub_bars_follow_numbers_of_drives() {
        let rows: Vec<FleetRow> = (0..4).map(|number| row(number, 0.1, 600)).collect();
        let html = scrubs(&rows).into_string();
        let bars: Vec<&str> = html.split("<svg").skip(1).collect();
        // One of a day that is noticed, and three of two to four days that are not.
        for (bar, rect) in [
            (
                0,
                "<g class=\"noticed\"><title>noticed on 1 drive</title><rect x=\"0.00%\" width=\"33.33%\"",
            ),
            (
                1,
                "<g class=\"unnoticed\"><title>unnoticed on 3 drives</title><rect x=\"0.00%\" width=\"100.00%\"",
            ),
        ] {
            assert!(bars[bar].contains(rect), "{html}");
        }
        assert!(!bars[2].contains("<rect"), "{html}");
    }
}
