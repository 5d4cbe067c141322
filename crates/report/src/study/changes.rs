//! What would help: the finding, and the ranking of changes on the page.

use freewheel_model::stats::Summary;
use freewheel_study::Study;
use freewheel_study::changes::{
    ChangeCost, Changes, Combination, Effect, Measured, NOTICEABLE, Part, Tried,
};
use freewheel_units::grouped;
use maud::{Markup, html};

use super::signed;
use crate::finding::{Confidence, Finding, Topic, Unit};
use crate::numbers::{ms, percent};
use crate::page::marked_table;

/// Rows of the ranking before the fold.
const ROWS: usize = 8;

/// None without changes that were tried.
pub(super) fn finding(study: &Study) -> Option<Finding> {
    let changes = study.changes.as_ref()?;
    let headline = match &changes.together {
        _ if is_idle(study) => {
            return Some(Finding::new(Topic::Changes, Confidence::Simulated, headline_idle(study)));
        }
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
        format!("With more drives: {} changes the mean response by {}.", tried.title, range(tried))
    });
    Some(finding.detail(stripes.unwrap_or_default()).detail(counted(study, changes)))
}

/// A drive is idle with a smaller mean number of outstanding requests, and a p99 below this number of turns. A
/// longer p99 is that of bursts.
const IDLE: (f64, u64) = (0.01, 5);

/// Whether nothing is needed: as requests are outstanding in so small a part of the time, a system without
/// any response time would save no more than that.
pub(super) fn is_idle(study: &Study) -> bool {
    let baseline = study.baseline();
    let is_quick = |response: &Summary| response.p99_ns < IDLE.1 * study.drive.rotation_period_ns;
    baseline.result.outstanding_mean < IDLE.0
        && is_quick(&baseline.result.response)
        && baseline.other_replay.as_ref().is_none_or(is_quick)
        && study.other_replay.as_ref().is_none_or(|other| !other.has_growing_queue)
}

fn headline_idle(study: &Study) -> String {
    let result = &study.baseline().result;
    format!(
        "Nothing is needed: requests are outstanding in at most {} of the time, and no faster system could save more time than that.",
        percent(result.outstanding_mean)
    )
}

fn headline_together(study: &Study, changes: &Changes, together: &Combination) -> String {
    let [old, new] = [&changes.today, &together.measured].map(|run| ms(run.response.mean_ns));
    let names: Vec<&str> = together.steps.iter().map(|step| step.title.as_str()).collect();
    let overload = if study.overload().is_some() { "In this overload: " } else { "" };
    format!(
        "{overload}{}: mean response {old} to {new} ms, {}{}.{}",
        names.join(" + "),
        signed(together.effect.mean),
        under_other_replay(study, together.other_replay.as_ref()),
        longer_tail(changes, together)
    )
}

/// What the mean does under the other replay, in brackets.
fn under_other_replay(study: &Study, effect: Option<&Effect>) -> String {
    let both = effect.zip(study.other_replay.as_ref());
    let words =
        both.map(|(effect, replay)| format!(" ({} {})", signed(effect.mean), replay.words()));
    words.unwrap_or_default()
}

/// A shorter mean that is paid with longer waits is half of the truth.
fn longer_tail(changes: &Changes, together: &Combination) -> String {
    let (effect, old, new) = (&together.effect, &changes.today, &together.measured);
    let from_to = |name: &str, change: f64, time: fn(&Measured) -> u64| {
        let [old, new] = [old, new].map(|run| ms(time(run) as f64));
        (change >= NOTICEABLE).then(|| format!("{name} goes from {old} to {new} ms"))
    };
    let worse = [
        from_to("the p99", effect.p99, |run| run.response.p99_ns),
        from_to("the p99 of reads", effect.reads_p99, |run| run.read_response.p99_ns),
        from_to("the longest response", effect.longest, |run| run.response.max_ns),
    ];
    let worse: Vec<String> = worse.into_iter().flatten().collect();
    if worse.is_empty() { String::new() } else { format!(" But {}.", worse.join(", ")) }
}

fn headline_nothing(changes: &Changes) -> String {
    let is_here = |tried: &&Tried| tried.change.part() != Part::Drives;
    let tried = changes.tried.iter().filter(is_here).count();
    let both = match changes.today_other_replay.is_some() {
        true => ", under both replays",
        false => "",
    };
    let mean = ms(changes.today.response.mean_ns);
    format!(
        "None of {tried} changes without further drives lowers the mean response of {mean} ms by 2 %{both}."
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

/// The best change of each part, and then the next best, cheapest kind first and then in order of what is
/// certain of their effect.
pub(super) fn shown(changes: &Changes) -> Vec<&Tried> {
    let all = &changes.tried;
    let parts = [Part::Order, Part::ReadCache, Part::Prefetch, Part::WriteBuffer, Part::Drives];
    let mut list: Vec<&Tried> = parts.iter().filter_map(|&part| best_of(changes, part)).collect();
    let others = all.iter().filter(|tried| {
        !is_within_noise(tried) && best_of(changes, tried.change.part()) != Some(tried)
    });
    list.extend(others.take(ROWS.saturating_sub(list.len())));
    list.sort_by(|a, b| {
        let by_cost = class(&a.cost).cmp(&class(&b.cost));
        by_cost.then(a.worse_mean().total_cmp(&b.worse_mean()))
    });
    list
}

/// What kind of thing one pays with: nothing, a program, memory, memory that lasts, drives.
fn class(cost: &ChangeCost) -> u32 {
    match cost {
        ChangeCost::Setting => 0,
        ChangeCost::Software => 1,
        ChangeCost::Memory { .. } => 2,
        ChangeCost::NonVolatileMemory { .. } => 3,
        ChangeCost::Drives { .. } => 4,
    }
}

fn effects(tried: &Tried) -> impl Iterator<Item = &Effect> {
    std::iter::once(&tried.effect).chain(&tried.other_replay)
}

fn is_within_noise(tried: &Tried) -> bool {
    effects(tried).all(Effect::is_within_noise)
}

/// The change of the mean; of both replays where they differ.
pub(super) fn range(tried: &Tried) -> String {
    let means = || effects(tried).map(|effect| effect.mean);
    let (least, most) =
        (means().fold(f64::INFINITY, f64::min), means().fold(f64::NEG_INFINITY, f64::max));
    match most - least < NOTICEABLE {
        true if is_within_noise(tried) => "within noise".into(),
        true => signed(tried.effect.mean),
        false => {
            let (least, most) = (signed(least), signed(most));
            // One unit for both.
            let least = if most.ends_with('%') { least.trim_end_matches(" %") } else { &least };
            format!("{least} to {most}")
        }
    }
}

/// The change of the 99th percentile under the replay under which it is worse.
pub(super) fn worse_p99(tried: &Tried) -> f64 {
    effects(tried).map(|effect| effect.p99).fold(f64::NEG_INFINITY, f64::max)
}

/// Why a change should be looked at twice.
pub(super) fn warnings(tried: &Tried) -> Vec<String> {
    let mut words = Vec::new();
    if tried.turns() {
        words.push("turns with the replay".to_owned());
    }
    if effects(tried).any(Effect::is_disputed) {
        words.push("slices disagree".to_owned());
    }
    let paid = || effects(tried).filter(|effect| effect.is_paid_by_tail());
    let most = |tail: fn(&Effect) -> f64| paid().map(tail).fold(0.0, f64::max);
    let (all, reads) = (most(|effect| effect.p99), most(|effect| effect.reads_p99));
    if paid().next().is_some() {
        words.push(match reads > all {
            true => format!("p99 of reads up to {}", signed(reads)),
            false => format!("p99 up to {}", signed(all)),
        });
    }
    words
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
    let rows = shown(changes);
    let scale = Scale::of(rows.iter().flat_map(|tried| effects(tried)));
    html! {
        p.lead {
            "Change of the mean response by each change alone, cheapest kind first. The thin line is its spread over "
            (changes.today.by_slice.len()) " slices of the trace"
            @if changes.today_other_replay.is_some() { " and both ways to replay it; the bar ends at the smaller gain, and the p99 is the worse one" }
            ". " (measured_from(study, changes))
            @if let Some(together) = &changes.together {
                " " strong {
                    "Best together without further drives: "
                    (together.steps.iter().map(|step| step.title.clone()).collect::<Vec<_>>().join(" + "))
                    ": " (signed(together.effect.mean))
                    (under_other_replay(study, together.other_replay.as_ref())) "."
                    (longer_tail(changes, together))
                }
            }
        }
        ol.ranking {
            (axis(scale))
            @for tried in rows { (row(tried, scale)) }
        }
        details {
            summary { "All " (changes.tried.len()) " changes tried" }
            (table(changes))
            p.note { "Changes of times as (new - old) / old, so -40 % is 40 % less. Least and most: over the slices. All but the column of the other replay are of the replay that this page shows. Each change replaces the system's own value of its part; the others stay as they are. A cache takes at most " (grouped(study.options.cache_depth)) " requests at once." }
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

/// Marks at no change, and at both ends of the bars.
fn axis(scale: Scale) -> Markup {
    let most = match scale.most >= Scale::WORST {
        true => format!("{} and more", signed(scale.most)),
        false => signed(scale.most),
    };
    // Words are as wide as about a quarter of the axis.
    let zero = scale.at(0.0);
    html! {
        li.axis aria-hidden="true" {
            span {}
            span.bar {
                @if zero > 25.0 { small style="left:0" { (signed(scale.least)) } }
                small style=(format!("left:{zero:.1}%;transform:translateX(-50%)")) { "0" }
                @if zero < 65.0 { small style="right:0" { (most) } }
            }
            span {}
        }
    }
}

fn row(tried: &Tried, scale: Scale) -> Markup {
    let worse = tried.worse_mean();
    let (zero, end) = (scale.at(0.0), scale.at(worse));
    let warnings = warnings(tried);
    let kind = match worse {
        _ if is_within_noise(tried) => "same",
        worse if worse < 0.0 => "better",
        worse if worse < NOTICEABLE => "same",
        _ => "worse",
    };
    let least = effects(tried).map(|effect| effect.least).fold(f64::INFINITY, f64::min);
    let most = effects(tried).map(|effect| effect.most).fold(f64::NEG_INFINITY, f64::max);
    let spread = (scale.at(least), scale.at(most));
    let words = range(tried);
    html! {
        li {
            span.name {
                (tried.title) small { (cost(&tried.cost)) (against(tried)) }
                @if !warnings.is_empty() { small.warning { (warnings.join(", ")) } }
            }
            span.bar aria-hidden="true" {
                i.(kind).doubtful[!warnings.is_empty()] style=(format!("left:{:.1}%;width:{:.1}%", zero.min(end), (end - zero).abs())) {}
                u style=(format!("left:{:.1}%;width:{:.1}%", spread.0, spread.1 - spread.0)) {}
                b style=(format!("left:{zero:.1}%")) {}
            }
            span.value {
                (words)
                small { "p99 " (signed(worse_p99(tried))) }
            }
        }
    }
}

/// What a change is compared with, where that is not the system as it is.
pub(super) fn against(tried: &Tried) -> String {
    let control = tried.control.as_ref();
    control.map_or(String::new(), |control| format!(", against {control}"))
}

fn table(changes: &Changes) -> Markup {
    let head = [
        "change",
        "cost",
        "mean, ms",
        "mean",
        "other replay",
        "least",
        "most",
        "p99",
        "longest",
        "reads",
        "p99 of reads",
        "writes",
    ];
    let row = |tried: &Tried| {
        let Effect { mean, least, most, p99, longest, reads, reads_p99, writes } = tried.effect;
        let shares = [least, most, p99, longest, reads, reads_p99, writes].map(signed);
        let other = tried.other_replay.map_or_else(|| "-".into(), |other| signed(other.mean));
        let first = [
            tried.title.clone() + &against(tried),
            cost(&tried.cost),
            ms(tried.measured.response.mean_ns),
            signed(mean),
            other,
        ];
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
        let effect = Effect { mean: 3.0, least: -0.4, most: 9.0, ..Effect::default() };
        let scale = Scale::of([effect].iter());
        assert_eq!((scale.least, scale.most), (-0.4, Scale::WORST));
        assert_eq!([scale.at(-0.4), scale.at(9.0)], [0.0, 100.0]);
        assert!((scale.at(0.0) - 44.4).abs() < 0.1);
    }
}
