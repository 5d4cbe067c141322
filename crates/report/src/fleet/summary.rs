//! Counts over a fleet, and the drives that differ from the others.

use std::collections::BTreeMap;

use freewheel_study::changes::Part;
use freewheel_study::fleet::{FleetAdvice, FleetNumbers, FleetRow};
use serde::Serialize;

/// A 99th percentile this many times the median of the same drives is far above it.
const FAR: f64 = 3.0;

/// Spans that differ by more than this factor are told apart: a share of the time of ten minutes is no share of a
/// week.
const SPAN_FACTOR: u64 = 4;

/// Fewer drives have no tenth of which a time is worth saying.
const MANY: usize = 10;

/// A recorded mean response is near a simulated one within this factor.
const NEAR: f64 = 1.5;

/// Counts over a fleet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Summary {
    /// Drives with a study.
    pub studied: usize,
    /// Drives without one, as their traces could not be read.
    pub failed: usize,
    /// Drives that do not keep up with their load.
    pub overloaded: usize,
    /// Drives that are hot, overloaded ones included.
    pub hot: usize,
    /// Median of the share of time in which a drive works.
    pub utilisation_median: Option<f64>,
    /// Drives whose traces have a recorded mean response.
    pub recorded: usize,
    /// Drives of these whose recorded mean is far from the simulated one.
    pub unlike_recorded: usize,
    /// A scrub in idle time, on drives that keep up with their load.
    pub idle_scrub: IdleScrubs,
    /// Changes, the one that pays on most drives first.
    pub changes: Vec<ChangeCount>,
    /// Drives by the span of their traces, the shortest first.
    pub spans: Vec<SpanGroup>,
}

/// Scrubs in idle time over a fleet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct IdleScrubs {
    /// Drives on which one was tried.
    pub tried: usize,
    /// Drives whose requests do not notice it, and on which it ends within five years.
    pub unnoticed: usize,
    /// Drives whose requests notice it after every pause that was tried.
    pub noticed: usize,
    /// Drives on which it takes longer than five years.
    pub endless: usize,
    /// Median of its time where it is not noticed.
    pub seconds_median: Option<f64>,
    /// Time that a tenth of these drives exceeds.
    pub seconds_p90: Option<f64>,
}

/// Drives on which a part of the system can be changed with gain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ChangeCount {
    pub part: Part,
    /// Name of the change on most of these drives.
    pub title: String,
    /// Drives on which it has that name.
    pub of_title: usize,
    /// Drives on which a change of the part pays.
    pub drives: usize,
    /// Median of the change of the goal on these drives.
    pub change_median: f64,
    /// The least gain among these drives.
    pub change_least: f64,
    /// Class of the price, the most that one of them has.
    pub cost_class: u32,
}

/// Drives whose traces are about as long.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct SpanGroup {
    pub least_ns: u64,
    pub most_ns: u64,
    pub drives: usize,
    pub utilisation_median: f64,
}

impl Summary {
    pub(super) fn new(rows: &[FleetRow], hot_share: f64) -> Self {
        let all: Vec<&FleetNumbers> = rows.iter().filter_map(|row| row.numbers.as_ref()).collect();
        let count = |is: &dyn Fn(&FleetNumbers) -> bool| all.iter().filter(|of| is(of)).count();
        Self {
            studied: all.len(),
            failed: rows.len() - all.len(),
            overloaded: count(&|of| of.is_overloaded),
            hot: count(&|of| is_hot(of, hot_share)),
            utilisation_median: quantile(all.iter().map(|of| of.utilisation), 0.5),
            recorded: count(&|of| of.recorded_response_ns_mean.is_some()),
            unlike_recorded: count(&is_unlike_recorded),
            idle_scrub: idle_scrubs(&all),
            changes: changes(&all),
            spans: spans(&all),
        }
    }
}

fn is_unlike_recorded(of: &FleetNumbers) -> bool {
    of.recorded_response_ns_mean.is_some_and(|recorded| {
        let times = of.response_ns_mean / recorded;
        !(1.0 / NEAR..=NEAR).contains(&times)
    })
}

pub(super) fn is_hot(of: &FleetNumbers, hot_share: f64) -> bool {
    of.is_overloaded || of.utilisation >= hot_share
}

/// The smallest value that this share of all values does not exceed; None of none.
pub(super) fn quantile(values: impl Iterator<Item = f64>, share: f64) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let at = (share * values.len() as f64).ceil() as usize;
    values.get(at.saturating_sub(1)).copied()
}

fn idle_scrubs(all: &[&FleetNumbers]) -> IdleScrubs {
    // An overload leaves no idle time that lasts.
    let kept_up = all.iter().filter(|of| !of.is_overloaded);
    let tried: Vec<_> = kept_up.filter_map(|of| of.idle_scrub).collect();
    let ends: Vec<_> = tried.iter().filter(|of| of.seconds.is_some()).collect();
    let unnoticed: Vec<f64> =
        ends.iter().filter(|of| !of.is_noticed).filter_map(|of| of.seconds).collect();
    IdleScrubs {
        tried: tried.len(),
        unnoticed: unnoticed.len(),
        noticed: ends.iter().filter(|of| of.is_noticed).count(),
        endless: tried.len() - ends.len(),
        seconds_median: quantile(unnoticed.iter().copied(), 0.5),
        seconds_p90: quantile(unnoticed.iter().copied(), 0.9).filter(|_| unnoticed.len() >= MANY),
    }
}

fn changes(all: &[&FleetNumbers]) -> Vec<ChangeCount> {
    let mut by_part: Vec<(Part, Vec<&FleetAdvice>)> = Vec::new();
    for of in all.iter().flat_map(|of| &of.parts) {
        match by_part.iter_mut().find(|(part, _)| *part == of.part) {
            Some((_, advices)) => advices.push(&of.advice),
            None => by_part.push((of.part, vec![&of.advice])),
        }
    }
    let mut counts: Vec<ChangeCount> = by_part.into_iter().filter_map(count).collect();
    counts.sort_by(|a, b| b.drives.cmp(&a.drives).then(a.cost_class.cmp(&b.cost_class)));
    counts
}

/// None of no advice.
fn count((part, advices): (Part, Vec<&FleetAdvice>)) -> Option<ChangeCount> {
    let mut titles: BTreeMap<&str, usize> = BTreeMap::new();
    for advice in &advices {
        *titles.entry(&advice.title).or_default() += 1;
    }
    let (title, of_title) = titles.into_iter().max_by_key(|(_, count)| *count)?;
    Some(ChangeCount {
        part,
        title: title.to_owned(),
        of_title,
        drives: advices.len(),
        change_median: quantile(advices.iter().map(|advice| advice.goal), 0.5)?,
        change_least: advices.iter().map(|advice| advice.goal).fold(f64::NEG_INFINITY, f64::max),
        cost_class: advices.iter().map(|advice| advice.cost_class).max()?,
    })
}

/// Groups by length: each begins with the shortest trace that is too long for the group before.
fn spans(all: &[&FleetNumbers]) -> Vec<SpanGroup> {
    let mut sorted = all.to_vec();
    sorted.sort_by_key(|of| of.span_ns);
    let mut groups: Vec<Vec<&FleetNumbers>> = Vec::new();
    for of in sorted {
        match groups.last_mut() {
            Some(group) if !is_far(&group[0], &of) => group.push(of),
            _ => groups.push(vec![of]),
        }
    }
    groups
        .into_iter()
        .filter_map(|group| {
            let utilisation_median = quantile(group.iter().map(|of| of.utilisation), 0.5)?;
            let (least_ns, most_ns) = (group.first()?.span_ns, group.last()?.span_ns);
            Some(SpanGroup { least_ns, most_ns, drives: group.len(), utilisation_median })
        })
        .collect()
}

fn is_far(first: &&FleetNumbers, of: &&FleetNumbers) -> bool {
    of.span_ns > first.span_ns.saturating_mul(SPAN_FACTOR)
}

pub(super) fn worth_a_look(rows: &[FleetRow], hot_share: f64, most: usize) -> Vec<usize> {
    let mut found: Vec<(bool, bool, f64, usize)> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let Some(of) = &row.numbers else { continue };
        let times = times_of_median(rows, row, of);
        let (overloaded, hot) = (of.is_overloaded, is_hot(of, hot_share));
        if hot || times >= FAR {
            let weight = if hot { of.utilisation } else { times };
            found.push((overloaded, hot, weight, at));
        }
    }
    found.sort_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)).then(b.2.total_cmp(&a.2)));
    found.into_iter().take(most).map(|(.., at)| at).collect()
}

/// The 99th percentile of a drive as a multiple of the median of all drives of its model.
pub(super) fn times_of_median(rows: &[FleetRow], row: &FleetRow, of: &FleetNumbers) -> f64 {
    let same = rows.iter().filter(|other| other.member.drive == row.member.drive);
    let all = same.filter_map(|other| other.numbers.as_ref()).map(|of| of.response_ns_p99 as f64);
    let median = quantile(all, 0.5).unwrap_or_default();
    if median > 0.0 { of.response_ns_p99 as f64 / median } else { 1.0 }
}

#[cfg(test)]
pub(super) mod tests {
    use freewheel_study::fleet::{FleetIdleScrub, FleetMember, PartAdvice};

    use super::*;

    /// A drive that is busy for this share of a span.
    pub(crate) fn row(number: usize, utilisation: f64, span_s: u64) -> FleetRow {
        let advice = FleetAdvice {
            title: format!("Write buffer of {} MiB", 16 << (number % 2)),
            cost_class: 3,
            goal: -0.1 * (1 + number) as f64,
            reads_p99: -0.01,
            checks: None,
        };
        let idle = FleetIdleScrub {
            pause_ns: 20_000_000,
            seconds: Some(86_400.0 * (1 + number) as f64),
            is_noticed: number == 0,
            mean: 0.001,
            reads_p99: 0.002,
        };
        FleetRow {
            number,
            member: FleetMember {
                name: format!("web{}/{}", number / 2, number % 2),
                trace: format!("{number}.csv").into(),
                server: format!("web{}", number / 2),
                bay: (number % 2).to_string(),
                drive: "tr96".into(),
            },
            fault: None,
            numbers: Some(FleetNumbers {
                requests: 1_000,
                read_share: 0.5,
                span_ns: span_s * 1_000_000_000,
                utilisation,
                is_overloaded: utilisation > 0.95,
                response_ns_mean: 1e7,
                response_ns_p99: 20_000_000 + 100_000_000 * u64::from(number == 2),
                read_response_ns_p99: 20_000_000,
                recorded_response_ns_mean: None,
                outstanding_max: 9,
                parts: vec![PartAdvice { part: Part::WriteBuffer, advice: advice.clone() }],
                advice: Some(advice),
                turned: None,
                idle_scrub: Some(idle),
                gap_scrub: None,
            }),
        }
    }

    pub(crate) fn failed(number: usize) -> FleetRow {
        let row = row(number, 0.0, 1);
        FleetRow { numbers: None, fault: Some("x.csv: no trace".into()), ..row }
    }

    #[test]
    fn fleet_counts_match_rows() {
        let mut rows: Vec<FleetRow> = [0.6, 0.1, 0.2, 0.99].map(|busy| row(0, busy, 600)).into();
        for (number, row) in rows.iter_mut().enumerate() {
            *row = self::row(number, row.numbers.as_ref().unwrap().utilisation, 600);
        }
        rows.push(row(4, 0.0, 86_400));
        rows.push(failed(5));
        let summary = Summary::new(&rows, 0.5);
        let Summary { studied, failed, overloaded, hot, .. } = summary;
        assert_eq!((studied, failed, overloaded, hot), (5, 1, 1, 2));
        assert_eq!(summary.utilisation_median, Some(0.2));
        let scrub = &summary.idle_scrub;
        // Not on the overloaded one.
        assert_eq!((scrub.tried, scrub.unnoticed, scrub.noticed), (4, 3, 1));
        assert_eq!((scrub.seconds_median, scrub.seconds_p90), (Some(3.0 * 86_400.0), None));
        assert_eq!((summary.recorded, summary.unlike_recorded), (0, 0));
        let [change] = &summary.changes[..] else { panic!("{summary:?}") };
        assert_eq!(
            (change.drives, change.of_title, &*change.title),
            (5, 3, "Write buffer of 16 MiB")
        );
        assert!(
            (change.change_median + 0.3).abs() < 1e-9 && (change.change_least + 0.1).abs() < 1e-9
        );
        let spans: Vec<(u64, usize)> =
            summary.spans.iter().map(|of| (of.most_ns / 1_000_000_000, of.drives)).collect();
        assert_eq!(spans, [(600, 4), (86_400, 1)]);
        // Overloaded, hot, and six times as long a 99th percentile as the others.
        assert_eq!(worth_a_look(&rows, 0.5, 10), [3, 0, 2]);
        assert_eq!(worth_a_look(&rows, 0.5, 1), [3]);
    }

    #[test]
    fn fleet_quantiles_are_existing_values() {
        let values = [4.0, 1.0, 3.0, 2.0];
        let at = |share| quantile(values.into_iter(), share);
        assert_eq!([at(0.0), at(0.5), at(0.51), at(1.0)], [1.0, 2.0, 3.0, 4.0].map(Some));
        assert_eq!(quantile(std::iter::empty(), 0.5), None);
    }
}
