//! The study on a terminal: what the page shows, in about 25 lines.

use freewheel_study::Study;
use freewheel_study::changes::{Changes, NOTICEABLE, Tried};
use freewheel_units::grouped;

use super::verdict::{self, Verdict};
use super::{beside, changes, doubts, overview};
use crate::finding::{Finding, Topic};
use crate::numbers::{ms, percent, span};
use crate::page::trace_name;
use crate::paint::Paint;

/// Title, first numbers, doubts, the ranking of changes, and a line a finding.
pub(super) fn text(study: &Study, findings: &[Finding], paint: Paint) -> String {
    let mut lines = head(study);
    let (first, others): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().partition(|finding| doubts::is_doubt(finding));
    lines.extend(paragraph(first.into_iter().flat_map(|finding| doubt(finding, paint))));
    let others_of = |topic| others.iter().copied().filter(move |finding| finding.topic == topic);
    match &study.changes {
        Some(_) if changes::is_idle(study) => {
            lines.extend(paragraph(others_of(Topic::Changes).map(|it| it.headline.clone())));
        }
        Some(changes) => {
            lines.extend(paragraph(ranking(changes, others_of(Topic::Changes), paint)))
        }
        None => {}
    }
    lines.extend(paragraph(beside::lines(study)));
    let others = others.into_iter().filter(|finding| finding.topic != Topic::Changes);
    lines.extend(paragraph(others.map(|finding| format!("- {}", finding.headline))));
    lines.join("\n") + "\n"
}

/// Lines after an empty one; nothing of nothing.
fn paragraph(lines: impl IntoIterator<Item = String>) -> Vec<String> {
    let lines: Vec<String> = lines.into_iter().collect();
    let empty = (!lines.is_empty()).then(String::new);
    empty.into_iter().chain(lines).collect()
}

fn head(study: &Study) -> Vec<String> {
    let response = &study.baseline().result.response;
    let result = &study.baseline().result;
    vec![
        format!("{} on {}", trace_name(&study.options.trace), study.drive.model),
        format!(
            "{} requests over {}: mean response {} ms, p99 {} ms; drive busy {}",
            grouped(study.trace.info.requests),
            span(study.trace.info.span_ns as f64 / 1e9),
            ms(response.mean_ns),
            ms(response.p99_ns as f64),
            percent(result.utilisation)
        ),
        overview::measured_part(study),
        format!("A request's time: {}", overview::stages_in_line(study)),
    ]
}

/// A doubt with what to do about it.
fn doubt(finding: &Finding, paint: Paint) -> Vec<String> {
    let headline = format!("! {}", paint.doubt(&finding.headline));
    let action = finding.action.iter().map(|action| format!("  {action}"));
    std::iter::once(headline).chain(action).collect()
}

/// The changes that the page ranks, and the best together.
fn ranking<'a>(
    changes: &Changes,
    together: impl Iterator<Item = &'a Finding>,
    paint: Paint,
) -> Vec<String> {
    let title = format!(
        "What would help (change of the {}, under both replays where they differ; p99; cost)",
        changes.goal.quantity()
    );
    let rows = changes.ranking().into_iter().map(|tried| row(changes, tried, paint));
    let together = together.map(|finding| format!("Best together: {}", finding.headline));
    let without = changes::without_help(changes);
    std::iter::once(title).chain(rows).chain(without).chain(together).collect()
}

fn row(changes: &Changes, tried: &Tried, paint: Paint) -> String {
    let goal = changes.goal;
    let range = verdict::range(tried, goal);
    let p99 = verdict::range_of(tried, |effect| effect.p99);
    let (after_range, after_p99) = (spaces(&range, 18), spaces(&p99, 16));
    let range = match verdict::verdict(tried, goal) {
        Verdict::Better => paint.help(&range),
        Verdict::Same => range,
        Verdict::Worse => paint.harm(&range),
    };
    let is_longer = verdict::effects(tried).any(|effect| effect.p99 >= NOTICEABLE);
    let p99 = if is_longer { paint.harm(&p99) } else { p99 };
    let warnings = verdict::warnings(tried, goal).join(", ");
    let line = format!(
        "{range}{after_range} p99 {p99}{after_p99} {} ({}{})  {}",
        tried.title,
        changes::cost(&tried.cost),
        changes::against(tried),
        paint.doubt(&warnings)
    );
    line.trim_end().to_owned()
}

fn spaces(words: &str, columns: usize) -> String {
    " ".repeat(columns.saturating_sub(words.len()))
}
