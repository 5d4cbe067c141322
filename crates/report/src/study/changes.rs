//! What would help: the finding, and the ranking of changes on the page.

use freewheel_study::Study;
use freewheel_study::changes::{ChangeCost, Changes, Combination, Effect, Part, Tried};
use freewheel_units::grouped;
use maud::{Markup, html};

use super::signed;
use crate::finding::{Confidence, Finding, Topic, Unit};
use crate::numbers::{ms, percent};
use crate::page::marked_table;

/// Of a change that makes a slice better and another one worse.
pub(super) const DISPUTED: &str = "slices disagree";

/// Rows of the ranking before the fold.
const ROWS: usize = 8;

/// None without changes that were tried.
pub(super) fn finding(study: &Study) -> Option<Finding> {
    let changes = study.changes.as_ref()?;
    let headline = match &changes.together {
        Some(together) => headline_together(study, changes, together),
        None => headline_nothing(changes),
    };
    let finding = Finding::new(Topic::Changes, Confidence::Simulated, headline);
    let finding = match &changes.together {
        Some(together) => finding
            .number(
                "mean response with them",
                together.measured.response.mean_ns,
                Unit::Nanoseconds,
            )
            .detail(steps(together))
            .detail(independence(together)),
        None => finding,
    };
    let stripes = best_of(changes, Part::Drives).filter(|tried| tried.effect.mean < 0.0);
    let stripes = stripes.map(|tried| {
        format!(
            "With more drives: {} changes the mean response by {}.",
            tried.title,
            signed(tried.effect.mean)
        )
    });
    Some(finding.detail(stripes.unwrap_or_default()).detail(counted(study, changes)))
}

fn headline_together(study: &Study, changes: &Changes, together: &Combination) -> String {
    let [old, new] = [&changes.today, &together.measured].map(|run| ms(run.response.mean_ns));
    let names: Vec<&str> = together.steps.iter().map(|step| step.title.as_str()).collect();
    let overload = if study.overload().is_some() { "In this overload: " } else { "" };
    format!(
        "{overload}{}: mean response {old} to {new} ms, {}.",
        names.join(" + "),
        signed(together.effect.mean)
    )
}

fn headline_nothing(changes: &Changes) -> String {
    let tried = changes.tried.len();
    let mean = ms(changes.today.response.mean_ns);
    format!(
        "None of {tried} changes without further drives lowers the mean response of {mean} ms by 2 %."
    )
}

fn steps(together: &Combination) -> String {
    let step = |step: &freewheel_study::changes::Step| {
        format!(
            "{} ({}) {} alone and {} on top of those before it",
            step.title,
            cost(&step.cost),
            signed(step.alone),
            signed(step.on_top)
        )
    };
    format!("{}.", together.steps.iter().map(step).collect::<Vec<_>>().join("; "))
}

fn independence(together: &Combination) -> String {
    if together.steps.len() < 2 {
        return String::new();
    }
    format!(
        "Independent changes would give {} together; these give {}.",
        signed(together.if_independent),
        signed(together.effect.mean)
    )
}

/// Why the mean response here is not that of the whole trace.
fn measured_from(study: &Study, changes: &Changes) -> String {
    let share = changes.warm_up_requests as f64 / study.trace.info.requests.max(1) as f64;
    let mean = ms(changes.today.response.mean_ns);
    format!(
        "Today it is {mean} ms, without the first {} of the requests, which fill the caches.",
        percent(share)
    )
}

fn counted(study: &Study, changes: &Changes) -> String {
    format!(
        "The first {} of {} requests fill the caches and do not count. The rest is cut into {} slices, which give the spread.",
        grouped(changes.warm_up_requests),
        grouped(study.trace.info.requests),
        changes.today.by_slice.len()
    )
}

fn best_of(changes: &Changes, part: Part) -> Option<&Tried> {
    changes.tried.iter().find(|tried| tried.change.part() == part)
}

/// The best change of each part, and then the next best, in order of effect.
pub(super) fn shown(changes: &Changes) -> Vec<&Tried> {
    let all = &changes.tried;
    let parts = [Part::Order, Part::ReadCache, Part::Prefetch, Part::WriteBuffer, Part::Drives];
    let mut list: Vec<&Tried> = parts.iter().filter_map(|&part| best_of(changes, part)).collect();
    let others = all.iter().filter(|tried| {
        !tried.effect.is_within_noise() && best_of(changes, tried.change.part()) != Some(tried)
    });
    list.extend(others.take(ROWS.saturating_sub(list.len())));
    list.sort_by(|a, b| a.effect.mean.total_cmp(&b.effect.mean));
    list
}

/// The ranking, with all changes behind a fold.
pub(super) fn card(study: &Study, changes: &Changes) -> Markup {
    let rows = shown(changes);
    let scale = Scale::of(rows.iter().map(|tried| &tried.effect));
    html! {
        p.lead {
            "Change of the mean response by each change alone. The thin line is its spread over "
            (changes.today.by_slice.len()) " slices of the trace. "
            (measured_from(study, changes))
            @if let Some(together) = &changes.together {
                " " strong {
                    "Best together without further drives: "
                    (together.steps.iter().map(|step| step.title.clone()).collect::<Vec<_>>().join(" + "))
                    ": " (signed(together.effect.mean)) "."
                }
            }
        }
        ol.ranking {
            @for tried in rows { (row(tried, scale)) }
        }
        details {
            summary { "All " (changes.tried.len()) " changes tried" }
            (table(changes))
            p.note { "Changes of times as (new - old) / old, so -40 % is 40 % less. Least and most: over the slices. Each change replaces the system's own value of its part; the others stay as they are." }
        }
    }
}

/// Where 0 % lies on a bar's width, and how wide a whole is.
#[derive(Clone, Copy)]
struct Scale {
    least: f64,
    most: f64,
}

impl Scale {
    /// Effects worse than this are drawn as this.
    const WORST: f64 = 0.5;

    fn of<'a>(effects: impl Iterator<Item = &'a Effect>) -> Self {
        let mut scale = Self { least: -0.1, most: 0.1 };
        for effect in effects {
            scale.least = scale.least.min(effect.least);
            scale.most = scale.most.max(effect.most.min(Self::WORST));
        }
        scale
    }

    /// Place from the left, in % of the width.
    fn at(self, share: f64) -> f64 {
        (share.clamp(self.least, self.most) - self.least) / (self.most - self.least) * 100.0
    }
}

fn row(tried: &Tried, scale: Scale) -> Markup {
    let effect = &tried.effect;
    let (zero, end) = (scale.at(0.0), scale.at(effect.mean));
    let kind = match (effect.is_within_noise(), effect.mean < 0.0) {
        (true, _) => "same",
        (false, true) => "better",
        (false, false) => "worse",
    };
    let disputed = effect.is_disputed();
    let spread = (scale.at(effect.least), scale.at(effect.most));
    let words = if kind == "same" { "within noise".into() } else { signed(effect.mean) };
    html! {
        li {
            span.name { (tried.title) small { (cost(&tried.cost)) } }
            span.bar aria-hidden="true" {
                i.(kind).disputed[disputed] style=(format!("left:{:.1}%;width:{:.1}%", zero.min(end), (end - zero).abs())) {}
                u style=(format!("left:{:.1}%;width:{:.1}%", spread.0, spread.1 - spread.0)) {}
                b style=(format!("left:{zero:.1}%")) {}
            }
            span.value {
                (words)
                small { "p99 " (signed(effect.p99)) }
                @if disputed { small { (DISPUTED) } }
            }
        }
    }
}

fn table(changes: &Changes) -> Markup {
    let head = ["change", "cost", "mean, ms", "mean", "least", "most", "p99", "reads", "writes"];
    let row = |tried: &Tried| {
        let Effect { mean, least, most, p99, reads, writes } = tried.effect;
        let shares = [mean, least, most, p99, reads, writes].map(signed);
        let first = [tried.title.clone(), cost(&tried.cost), ms(tried.measured.response.mean_ns)];
        first.into_iter().chain(shares).collect()
    };
    marked_table(&head, &changes.tried.iter().map(row).collect::<Vec<_>>(), "")
}

/// The cost in words.
pub(super) fn cost(cost: &ChangeCost) -> String {
    match cost {
        ChangeCost::Setting => "a setting".into(),
        ChangeCost::Software => "software in the host".into(),
        ChangeCost::Memory { .. } => "memory".into(),
        ChangeCost::NonVolatileMemory { .. } => "non-volatile memory".into(),
        ChangeCost::Drives { more: 1 } => "1 more drive".into(),
        ChangeCost::Drives { more } => format!("{more} more drives"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_begins_at_zero_and_what_is_far_worse_is_cut() {
        let effect =
            Effect { mean: 3.0, least: -0.4, most: 9.0, p99: 0.0, reads: 0.0, writes: 0.0 };
        let scale = Scale::of([effect].iter());
        assert_eq!((scale.least, scale.most), (-0.4, Scale::WORST));
        assert_eq!([scale.at(-0.4), scale.at(9.0)], [0.0, 100.0]);
        assert!((scale.at(0.0) - 44.4).abs() < 0.1);
    }
}
