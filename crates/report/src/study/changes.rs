//! Changes that would help: the finding, and the ranking of changes on the page.

use freewheel_model::stats::Summary;
use freewheel_study::Study;
use freewheel_study::changes::{
    ChangeCost, Changes, Combination, Effect, Goal, Part, Tried, Variant,
};
use freewheel_units::{Bytes, grouped};
use maud::{Markup, html};

use super::few::uncertainty;
use super::recorded::is_unlike_recorded;
use super::verdict::{Verdict, between, effects, longer, range, range_of, verdict, warnings};
use super::{bought, noticeable, signed};
use crate::drawing::length;
use crate::finding::{Confidence, Finding, Topic, Unit};
use crate::numbers::{percent, whole_percent};
use crate::page::{NotedRow, noted_table, prose};

/// None without changes that were tried.
pub(super) fn finding(study: &Study) -> Option<Finding> {
    let changes = study.changes.as_ref()?;
    let headline = match &changes.together {
        _ if is_idle(study) => {
            return Some(Finding::new(Topic::Changes, Confidence::Simulated, headline_idle(study)));
        }
        Some(together) => headline_together(study, changes, together),
        None => headline_nothing(study, changes),
    };
    let finding = Finding::new(Topic::Changes, Confidence::Simulated, headline);
    let finding = match &changes.together {
        Some(together) => finding
            .number("saved of the mean response", -together.effect.mean, Unit::Share)
            .detail(steps(together))
            .detail(independence(changes.goal, together)),
        None => finding,
    };
    let goal = changes.goal;
    let stripes = changes.best_of(Part::Drives).filter(|tried| tried.surest(goal) < 0.0);
    let stripes = stripes.map(|tried| {
        format!(
            "With more drives: {} changes the {} by {}.",
            tried.title,
            goal.quantity(),
            range(tried, goal)
        )
    });
    Some(finding.detail(stripes.unwrap_or_default()).detail(counted(study, changes)))
}

/// A drive is idle with a smaller mean number of outstanding requests, and a p99 below this number of turns. A
/// longer p99 is that of bursts.
const IDLE: (f64, u64) = (0.01, 5);

/// True if no change is needed: as requests are outstanding in so small a part of the time, a system without
/// any response time would save no more than that.
pub(super) fn is_idle(study: &Study) -> bool {
    let baseline = study.baseline();
    // Of few requests the mean may be this much longer, and then more are outstanding in proportion.
    let at_most = 1.0 + uncertainty(&baseline.result.response);
    baseline.result.outstanding_mean * at_most < IDLE.0
        && is_quick(&baseline.result.response, study)
        && baseline.other_replay.as_ref().is_none_or(|response| is_quick(response, study))
        && study.other_replay.as_ref().is_none_or(|other| !other.has_growing_queue)
}

fn is_quick(response: &Summary, study: &Study) -> bool {
    response.p99_ns < IDLE.1 * study.drive.rotation_period_ns
}

fn headline_idle(study: &Study) -> String {
    let result = &study.baseline().result;
    // What the recorded system waited for is not in the drive that is simulated.
    let here = if is_unlike_recorded(study) { "On this drive nothing" } else { "Nothing" };
    format!(
        "{here} is needed: requests are outstanding in at most {} of the time, and no faster system could save more time than that.",
        percent(result.outstanding_mean)
    )
}

fn headline_together(study: &Study, changes: &Changes, together: &Combination) -> String {
    let goal = changes.goal;
    let names: Vec<&str> = together.steps.iter().map(|step| step.title.as_str()).collect();
    let overload = if study.overload().is_some() { "In this overload: " } else { "" };
    format!(
        "{overload}{}: {} {}{}{}.{}",
        names.join(" + "),
        goal.quantity(),
        signed(together.effect.of(goal)),
        under_other_replay(study, goal, together.other_replay.as_ref()),
        turning_together(changes, together),
        longer_tail(study, goal, together)
    )
}

/// Change of the goal under the other replay, in brackets.
fn under_other_replay(study: &Study, goal: Goal, effect: Option<&Effect>) -> String {
    let both = effect.zip(study.other_replay.as_ref());
    let words =
        both.map(|(effect, replay)| format!(" ({} {})", signed(effect.of(goal)), replay.words()));
    words.unwrap_or_default()
}

/// Words for a combination that does not help.
fn turning_together(changes: &Changes, together: &Combination) -> String {
    let words: Vec<String> = together.turning_variants(changes.goal).map(Variant::words).collect();
    if words.is_empty() { String::new() } else { format!("; it harms {}", words.join(", ")) }
}

/// A shorter mean that is paid with longer waits is half of the truth.
fn longer_tail(study: &Study, goal: Goal, together: &Combination) -> String {
    let worse = longer(study, goal, together);
    if worse.is_empty() { String::new() } else { format!(" But: {}.", worse.join(", ")) }
}

fn headline_nothing(study: &Study, changes: &Changes) -> String {
    let tried = changes.tried.iter().filter(|tried| tried.change.part() != Part::Drives).count();
    let both = if changes.today_other_replay.is_some() { " under both replays" } else { "" };
    let best = changes.ranking().into_iter().find(|tried| tried.change.part() != Part::Drives);
    let best = best
        .filter(|tried| tried.surest(changes.goal) < 0.0)
        .map(|tried| format!(" The most is {}, by {}.", range(tried, changes.goal), tried.title));
    let overload = if study.overload().is_some() { "In this overload none" } else { "None" };
    format!(
        "{overload} of {tried} changes without further drives lowers the {} by {}{both}.{}",
        changes.goal.quantity(),
        noticeable(),
        best.unwrap_or_default()
    )
}

fn steps(together: &Combination) -> String {
    format!(
        "{}.",
        together
            .steps
            .iter()
            .map(|step| {
                format!(
                    "{} ({}) {} alone and {} on top of those before it",
                    step.title,
                    cost(&step.cost),
                    signed(step.alone),
                    signed(step.on_top)
                )
            })
            .collect::<Vec<_>>()
            .join("; ")
    )
}

fn independence(goal: Goal, together: &Combination) -> String {
    if together.steps.len() < 2 {
        return String::new();
    }
    format!(
        "Independent changes would give {} together; these give {}.",
        signed(together.if_independent),
        signed(together.effect.of(goal))
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

/// The ranking, with all changes behind a fold.
pub(super) fn card(study: &Study, changes: &Changes) -> Markup {
    if is_idle(study) {
        return html! {
            p.lead { strong { (headline_idle(study)) } }
            details {
                summary { "What changes would do all the same" }
                (ranking(study, changes))
            }
        };
    }
    ranking(study, changes)
}

fn ranking(study: &Study, changes: &Changes) -> Markup {
    let rows = changes.ranking();
    let goal = changes.goal;
    let scale = Scale::of(rows.iter().map(|tried| spread(tried, goal)));
    html! {
        p.lead {
            "Change of the " (goal.quantity()) " by each change alone, cheapest kind first."
            @if let Some(together) = &changes.together {
                " " strong {
                    "Best together without further drives: "
                    (together.steps.iter().map(|step| step.title.clone()).collect::<Vec<_>>().join(" + "))
                    ": " (signed(together.effect.of(goal)))
                    (under_other_replay(study, goal, together.other_replay.as_ref()))
                    (turning_together(changes, together)) "."
                    (longer_tail(study, goal, together))
                }
            }
        }
        ol.ranking {
            (axis(scale))
            @for tried in rows { (row(tried, goal, scale)) }
        }
        p.note { (prose(&spread_words(changes))) @if let Some(words) = without_help(changes) { " " (words) } }
        (bought::card(study, changes))
        details {
            summary { "All " (changes.tried.len()) " changes tried" }
            (table(changes))
            p.note { "Each is compared with the system as it is, on the same requests." }
            p.note { "Changes of times as (new - old) / old, so -40 % is 40 % less. In slices: the least and the largest change of the mean. Drive time: head time of a drive for each read or write of the load, writing back and reading ahead included, but not what a write buffer still holds at the end. The other replay's column is of the goal. All but the column of the other replay are of the replay that this page shows. Each change replaces the system's own value of its part; the others stay as they are. A cache takes at most " (grouped(study.options.cache_depth)) " requests at once. `--configs FOLDER` writes each as an experiment for `freewheel sim`." }
            p.note { (search_words()) }
        }
    }
}

/// Kinds of changes of which none helps; None where something of every part helps.
pub(super) fn without_help(changes: &Changes) -> Option<String> {
    let words: Vec<String> = changes
        .without_help()
        .map(|tried| format!("{} ({})", tried.title, range(tried, changes.goal)))
        .collect();
    (!words.is_empty()).then(|| format!("The best of its kind, and no help: {}.", words.join(", ")))
}

/// Words for the search of the best combination, and for effects that count as equal.
fn search_words() -> String {
    let least = noticeable();
    format!(
        "The best together grows from the best change by the one that takes most off on top, until none takes {least} of today's value off. Of effects that differ by less than {least} the cheapest is taken; below {least} a change is within noise."
    )
}

/// Meaning of the thin lines.
fn spread_words(changes: &Changes) -> String {
    let mut over = Vec::new();
    if changes.goal == Goal::Mean {
        over.push(format!("{} slices of the trace", changes.today.by_slice.len()));
    }
    if changes.today_other_replay.is_some() {
        over.push("both ways to replay it".to_owned());
    }
    if !changes.variants.is_empty() {
        over.push("for five of them other circumstances (\"How sure is this?\")".to_owned());
    }
    let ends = if changes.today_other_replay.is_some() {
        " Bars end at the smaller gain of the two replays; p99 and drive time are of both where they differ."
    } else {
        ""
    };
    format!("Thin lines span {}.{ends}", over.join(", "))
}

/// Place of 0 % on a bar's width, and width of a whole.
#[derive(Clone, Copy)]
struct Scale {
    least: f64,
    most: f64,
}

impl Scale {
    /// Effects worse than this are drawn as this.
    const WORST: f64 = 0.5;

    fn of(spreads: impl Iterator<Item = (f64, f64)>) -> Self {
        let mut scale = Self { least: -0.1, most: 0.1 };
        for (least, most) in spreads {
            scale.least = scale.least.min(least);
            scale.most = scale.most.max(most.min(Self::WORST));
        }
        scale
    }

    /// Place from the left, as a share of the width.
    fn at(self, share: f64) -> f64 {
        (share.clamp(self.least, self.most) - self.least) / (self.most - self.least)
    }
}

/// Marks at no change, and at both ends of the bars.
fn axis(scale: Scale) -> Markup {
    // An arrow behind a bar says that it continues.
    let most = format!("+{}", whole_percent(scale.most));
    // Words are as wide as about a quarter of the axis.
    let zero = scale.at(0.0);
    html! {
        li.axis aria-hidden="true" {
            span {}
            span.bar {
                @if zero > 0.25 { small style="left:0" { (whole_percent(scale.least)) } }
                small style=(format!("left:{};transform:translateX(-50%)", length(zero))) { "0" }
                @if zero < 0.75 { small style="right:0" { (most) } }
            }
            span {}
        }
    }
}

/// The smallest and the largest change of the goal, in any slice, under any replay, in any circumstances.
fn spread(tried: &Tried, goal: Goal) -> (f64, f64) {
    let all = || {
        let elsewhere = tried.variants.iter().map(|of| of.effect.of(goal));
        let here = effects(tried).map(|effect| effect.spread(goal));
        here.chain(elsewhere.map(|value| (value, value)))
    };
    (
        all().map(|(least, _)| least).fold(f64::INFINITY, f64::min),
        all().map(|(_, most)| most).fold(f64::NEG_INFINITY, f64::max),
    )
}

fn row(tried: &Tried, goal: Goal, scale: Scale) -> Markup {
    let worse = tried.surest(goal);
    let (zero, end) = (scale.at(0.0), scale.at(worse));
    let warnings = warnings(tried, goal);
    let kind = match verdict(tried, goal) {
        Verdict::Same => "same",
        Verdict::Better => "better",
        Verdict::Worse => "worse",
    };
    let (least, most) = spread(tried, goal);
    let (from, to) = (scale.at(least), scale.at(most));
    let words = range(tried, goal);
    html! {
        li {
            span.name {
                (tried.title) small { (cost(&tried.cost)) (against(tried)) (as_safe(tried, goal)) }
                @if !warnings.is_empty() { small.warning { (warnings.join(", ")) } }
            }
            span.bar aria-hidden="true" {
                i.(kind).doubtful[!warnings.is_empty()] style=(extent(zero.min(end), zero.max(end))) {}
                u style=(extent(from, to)) {}
                @if most > Scale::WORST { em { "›" } }
                b style=(format!("left:{}", length(zero))) {}
            }
            span.value { (words) }
            span.value { small { "p99 " (range_of(tried, |effect| effect.p99)) } small title="head time for each read or write" { "drive time " (range_of(tried, |effect| effect.drive_time)) } }
        }
    }
}

/// Style of a part of a bar, by shares of its width.
fn extent(from: f64, to: f64) -> String {
    format!("left:{};width:{}", length(from), length(to - from))
}

/// Effect of a write buffer against a system that loses as little in a power cut.
fn as_safe(tried: &Tried, goal: Goal) -> String {
    let words = tried.as_safe.as_ref().map(|effect| {
        let change = signed(effect.of(goal));
        let quantity = goal.quantity();
        format!(", safe in a power cut ({quantity} {change} against the drive's write cache off)")
    });
    words.unwrap_or_default()
}

/// System with which a change is compared, where that is not the system as it is.
pub(super) fn against(tried: &Tried) -> String {
    let control = tried.control.as_ref();
    control.map_or(String::new(), |control| format!(", against {control}"))
}

fn table(changes: &Changes) -> Markup {
    let goal = changes.goal;
    let head = [
        "change",
        "mean",
        "other replay",
        "in slices",
        "p99",
        "longest",
        "reads",
        "p99 of reads",
        "writes",
        "drive time",
    ];
    noted_table(
        &head,
        &changes
            .tried
            .iter()
            .map(|tried| {
                let Effect {
                    mean,
                    least,
                    most,
                    p99,
                    longest,
                    reads,
                    reads_p99,
                    writes,
                    drive_time,
                } = tried.effect;
                let other =
                    tried.other_replay.map_or_else(|| "-".into(), |other| signed(other.of(goal)));
                let first = [signed(mean), other, between(least, most)];
                let shares = [p99, longest, reads, reads_p99, writes, drive_time].map(signed);
                NotedRow {
                    name: tried.title.clone(),
                    note: cost_with_size(&tried.cost) + &against(tried),
                    warning: warnings(tried, goal).join(", "),
                    cells: first.into_iter().chain(shares).collect(),
                }
            })
            .collect::<Vec<_>>(),
    )
}

/// The cost in words, with how much of it.
pub(super) fn cost_with_size(of: &ChangeCost) -> String {
    match of {
        ChangeCost::Memory { bytes } | ChangeCost::NonVolatileMemory { bytes } => {
            format!("{} of {}", Bytes::human(*bytes), cost(of))
        }
        _ => cost(of),
    }
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
    fn change_bar_begins_at_zero() {
        let scale = Scale::of([(-0.4, 9.0)].into_iter());
        assert_eq!((scale.least, scale.most), (-0.4, Scale::WORST));
        assert_eq!([scale.at(-0.4), scale.at(9.0)], [0.0, 1.0]);
        assert!((scale.at(0.0) - 0.444).abs() < 0.001);
    }
}
