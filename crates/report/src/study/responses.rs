//! Response times of today's system and of the best others: at most three curves.

use freewheel_study::Study;
use freewheel_study::changes::Changes;
use freewheel_study::figure::{Axes, Line};
use maud::{Markup, html};

use crate::chart;

/// The card of the page.
pub(super) fn card(study: &Study) -> Markup {
    let lines = match &study.changes {
        Some(changes) => of_changes(changes),
        None => of_policies(study),
    };
    let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    let axes = Axes { x: "response time, ms", y: "requests that take longer, %", log_x: true };
    html! {
        p.lead { "Share of requests that take longer than a time: " (names.join("; ")) ". Lower is better; 1 % is the p99." }
        (chart::lines_over_log_y(&lines, &axes))
    }
}

/// Today, the best change alone, and the best changes together where they are several.
fn of_changes(changes: &Changes) -> Vec<Line> {
    let mut lines = vec![Line::longer_ms("today", &changes.today.distribution)];
    let Some(together) = &changes.together else { return lines };
    let most = together.steps.iter().min_by(|a, b| a.alone.total_cmp(&b.alone));
    let Some(first) = most.map(|step| &step.title) else { return lines };
    if let Some(alone) = changes.tried.iter().find(|tried| tried.title == *first) {
        lines.push(Line::longer_ms(first, &alone.measured.distribution));
    }
    if together.steps.len() > 1 {
        lines.push(Line::longer_ms("best together", &together.measured.distribution));
    }
    lines
}

/// The baseline, and the best order where it is another.
fn of_policies(study: &Study) -> Vec<Line> {
    let (today, best) = (study.baseline(), study.surest_policy_or_today());
    if best.title == today.title { vec![line(today)] } else { vec![line(today), line(best)] }
}

fn line(run: &freewheel_study::PolicyRun) -> Line {
    Line::longer_ms(&run.title, &run.result.response_distribution)
}
