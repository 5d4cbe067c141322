//! A fleet in words: the same sentences in a terminal and at the head of the page.

use freewheel_study::changes::Part;
use freewheel_study::fleet::FleetMember;
use freewheel_units::grouped;

use super::summary::{ChangeCount, IdleScrubs, SpanGroup, Summary, is_hot};
use super::{FleetReport, REPORTS};
use crate::numbers::{about, percent, response, span};
use crate::rows::Rows;
use crate::study::signed;

pub(super) fn text(report: &FleetReport) -> String {
    let summary = report.summary();
    let mut lines = vec![format!("{}.", title(&summary))];
    lines.extend(sentences(report, &summary));
    let resumed = match report.resumed {
        0 => String::new(),
        resumed => format!("{} drives were studied by an earlier call.\n", grouped(resumed as u64)),
    };
    let looks = look_table(report);
    let looks = if looks.rows.is_empty() { String::new() } else { format!("\n{}", looks.text(2)) };
    format!("{}\n{}{looks}{resumed}", lines.join("\n"), faults(report))
}

const FAULTS: usize = 3;

/// The first drives without a study, and why.
fn faults(report: &FleetReport) -> String {
    let all = report.rows.iter().filter_map(|row| Some((&row.member.name, row.fault.as_ref()?)));
    let lines = all.take(FAULTS).map(|(name, fault)| format!("  {name}: {fault}\n"));
    lines.collect()
}

/// The answer in one line.
pub(super) fn title(summary: &Summary) -> String {
    let studied = match summary.failed {
        0 => drives(summary.studied),
        failed => format!("{} of {}", summary.studied, drives(summary.studied + failed)),
    };
    let hot = match summary.hot {
        0 => "none is hot".to_owned(),
        1 => "1 is hot".to_owned(),
        hot => format!("{} are hot", grouped(hot as u64)),
    };
    let scrub = &summary.idle_scrub;
    let fits = match scrub.tried {
        0 => String::new(),
        _ => format!(", a scrub fits unnoticed on {}", grouped(scrub.unnoticed as u64)),
    };
    format!("{studied}: {hot}{fits}")
}

/// What follows, a sentence or two for each part.
pub(super) fn sentences(report: &FleetReport, summary: &Summary) -> Vec<String> {
    let all = [
        failed(summary),
        recorded(summary),
        spans(&summary.spans),
        hot(report, summary),
        scrub(&summary.idle_scrub),
        change(&summary.changes, summary.studied),
        second_look(report),
    ];
    all.into_iter().flatten().collect()
}

/// A drive by its place, or by its name where that is not known.
pub(super) fn label(member: &FleetMember) -> String {
    if member.server.is_empty() {
        member.name.clone()
    } else {
        format!("{} / {}", member.server, member.bay)
    }
}

pub(super) fn drives(count: usize) -> String {
    match count {
        1 => "1 drive".to_owned(),
        count => format!("{} drives", grouped(count as u64)),
    }
}

fn failed(summary: &Summary) -> Option<String> {
    (summary.failed > 0).then(|| format!("{} could not be studied.", drives(summary.failed)))
}

/// None where drives answer about as recorded, as far as that is known.
fn recorded(summary: &Summary) -> Option<String> {
    let unlike = summary.unlike_recorded;
    (unlike > 0).then(|| {
        format!(
            "{} of {} with recorded responses answered otherwise than the drive named here: their means are not within half as much again. Name the right drives with `--drive` or `--list`.",
            grouped(unlike as u64),
            drives(summary.recorded)
        )
    })
}

/// None where all traces are about as long.
fn spans(groups: &[SpanGroup]) -> Option<String> {
    let [first, .., last] = groups else { return None };
    Some(format!(
        "Traces last from {} to {}. Compare shares of time only between drives whose traces are about as long.",
        span(first.least_ns as f64 / 1e9),
        span(last.most_ns as f64 / 1e9)
    ))
}

fn hot(report: &FleetReport, summary: &Summary) -> Option<String> {
    let median = summary.utilisation_median?;
    let overloaded = match summary.overloaded {
        0 => String::new(),
        1 => "; 1 of them does not keep up with its load".to_owned(),
        many => format!("; {} of them do not keep up with their load", grouped(many as u64)),
    };
    Some(format!(
        "Hot, busy {} of the time or more: {}{overloaded}. The median drive is busy {}.",
        percent(report.hot_share),
        drives(summary.hot),
        percent(median)
    ))
}

fn scrub(of: &IdleScrubs) -> Option<String> {
    if of.tried == 0 {
        return None;
    }
    let median =
        of.seconds_median.map(|median| format!(" and takes {} in the median", about(median)));
    let tenth = of.seconds_p90.map(|p90| format!("; on a tenth of them {} or more", about(p90)));
    let mut text = format!(
        "A scrub in idle time is not noticed on {} of {} that keep up{}{}.",
        grouped(of.unnoticed as u64),
        drives(of.tried),
        median.unwrap_or_default(),
        tenth.unwrap_or_default()
    );
    if of.noticed > 0 {
        text += &format!(" On {} requests notice it.", drives(of.noticed));
    }
    if of.endless > 0 {
        text += &format!(" On {} it takes longer than 5 years.", drives(of.endless));
    }
    Some(text)
}

fn change(changes: &[ChangeCount], studied: usize) -> Option<String> {
    let first = changes.iter().find(|change| change.part != Part::Drives)?;
    Some(format!(
        "{} pays on {} of {}: {} in the median.",
        part_name(first.part),
        grouped(first.drives as u64),
        drives(studied),
        signed(first.change_median)
    ))
}

/// What was left out for time, with the way to it.
fn second_look(report: &FleetReport) -> Option<String> {
    (report.options.changes && !report.options.checks).then(|| {
        "Changes were tried on the named drive alone; `--checks` tries them on another one and with other assumed values too.".to_owned()
    })
}

pub(super) fn part_name(part: Part) -> &'static str {
    match part {
        Part::Order => "Another order of requests",
        Part::DriveWriteCache => "Another setting of the drive's write cache",
        Part::ReadCache => "A read cache",
        Part::Prefetch => "Prefetching",
        Part::WriteBuffer => "A non-volatile write buffer",
        Part::Drives => "Striping over further drives",
    }
}

/// The drives that are worth a look.
fn look_table(report: &FleetReport) -> Rows {
    let rows = report.worth_a_look(REPORTS).into_iter().filter_map(|at| {
        let row = &report.rows[at];
        let of = row.numbers.as_ref()?;
        let why = match (of.is_overloaded, is_hot(of, report.hot_share)) {
            (true, _) => "overloaded",
            (_, true) => "hot",
            _ => "long tail",
        };
        Some([
            label(&row.member),
            why.to_owned(),
            percent(of.utilisation),
            response(of.response_ns_mean),
            response(of.response_ns_p99 as f64),
        ])
    });
    Rows::new(["worth a look", "why", "busy", "mean", "p99"], rows)
}
