//! A study as a row of the fleet's table.

use serde::{Deserialize, Serialize};

use super::member::FleetMember;
use crate::changes::{Changes, Goal, NOTICEABLE, Part, Tried};
use crate::journal::JournalRow;
use crate::scrub::{IdleScrub, SCRUB_SECONDS_MAX};
use crate::study::Study;

/// A drive of the fleet with what its study says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FleetRow {
    /// Number in the fleet, from 0.
    pub number: usize,
    /// The drive, its trace and its place.
    pub member: FleetMember,
    /// Reason why it could not be studied.
    pub fault: Option<String>,
    /// Numbers of the study; None without one.
    pub numbers: Option<FleetNumbers>,
}

/// Numbers of a drive's study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct FleetNumbers {
    pub requests: u64,
    pub read_share: f64,
    /// From the first arrival to the last.
    pub span_ns: u64,
    /// Share of the time in which the drive works.
    pub utilisation: f64,
    /// True if the drive does not keep up with the load.
    pub is_overloaded: bool,
    pub response_ns_mean: f64,
    /// The 99th percentile of all responses.
    pub response_ns_p99: u64,
    /// The 99th percentile of the responses of reads.
    pub read_response_ns_p99: u64,
    /// Mean response that the trace records, where it does.
    pub recorded_response_ns_mean: Option<f64>,
    /// Most requests at once.
    pub outstanding_max: u64,
    /// The best change that helps for sure; None where there is none, or none was tried.
    pub advice: Option<FleetAdvice>,
    /// The first change of the ranking that would help, had it not turned at the second look.
    pub turned: Option<TurnedAdvice>,
    /// The best change of each part that helps for sure.
    pub parts: Vec<PartAdvice>,
    /// A scrub in idle time.
    pub idle_scrub: Option<FleetIdleScrub>,
    /// A scrub in the rotational gaps.
    pub gap_scrub: Option<FleetGapScrub>,
}

/// A change that helps, by the replay under which it helps less.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FleetAdvice {
    /// Name of the change.
    pub title: String,
    /// Class of its price: 0 a setting, 1 a program, 2 memory, 3 memory that lasts, 4 drives.
    pub cost_class: u32,
    /// Change of the goal as (new - old) / old.
    pub goal: f64,
    /// Change of the 99th percentile of reads.
    pub reads_p99: f64,
    /// The second look at it; None where it had none.
    pub checks: Option<AdviceChecks>,
}

/// The second look at a change: in other circumstances.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AdviceChecks {
    /// Circumstances in which it was tried again.
    pub tried: u64,
    /// Change of the goal where it helps most.
    pub best: f64,
    /// Change of the goal where it helps least.
    pub worst: f64,
}

/// A change that is no advice, as it turns at the second look.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnedAdvice {
    /// Name of the change.
    pub title: String,
    /// The first circumstance in which it harms.
    pub circumstance: String,
}

/// The best change of a part of the system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct PartAdvice {
    pub part: Part,
    pub advice: FleetAdvice,
}

/// A scrub in idle time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FleetIdleScrub {
    /// Pause after which it begins.
    pub pause_ns: u64,
    /// Time of the whole drive; None where it would take longer than 5 years.
    pub seconds: Option<f64>,
    /// True if requests notice it after every pause that was tried.
    pub is_noticed: bool,
    /// Change of the mean response.
    pub mean: f64,
    /// Change of the 99th percentile of reads.
    pub reads_p99: f64,
}

/// A scrub in the rotational gaps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FleetGapScrub {
    /// Time until the gaps reach no more; None without gaps.
    pub seconds: Option<f64>,
    /// Share of the drive that is read by then.
    pub read_share: f64,
}

/// Parts of the system, in the order of the table, with the names of their columns.
pub(super) const PARTS: [(Part, &str); 6] = [
    (Part::Order, "order"),
    (Part::DriveWriteCache, "drive_write_cache"),
    (Part::ReadCache, "read_cache"),
    (Part::Prefetch, "prefetch"),
    (Part::WriteBuffer, "write_buffer"),
    (Part::Drives, "drives"),
];

impl FleetRow {
    pub(super) fn of(number: usize, member: &FleetMember, study: Result<&Study, String>) -> Self {
        let (numbers, fault) = match study {
            Ok(study) => (Some(FleetNumbers::new(study)), None),
            Err(fault) => (None, Some(fault)),
        };
        Self { number, member: member.clone(), fault, numbers }
    }
}

impl FleetNumbers {
    fn new(study: &Study) -> Self {
        let (info, result) = (&study.trace.info, &study.baseline().result);
        let requests = info.reads + info.writes;
        let part = &study.measured;
        let recorded = [part.recorded_reads, part.recorded_writes];
        let count: u64 = recorded.iter().map(|of| of.count).sum();
        let sum: u128 = recorded.iter().map(|of| of.sum_ns).sum();
        // In an overload responses are those of the queue, and the next hour has others.
        let changes = study.changes.as_ref().filter(|_| study.overload().is_none());
        let parts = changes.map_or(Vec::new(), parts);
        Self {
            requests,
            read_share: info.reads as f64 / requests.max(1) as f64,
            span_ns: info.span_ns,
            utilisation: result.utilisation,
            is_overloaded: study.overload().is_some(),
            response_ns_mean: result.response.mean_ns,
            response_ns_p99: result.response.p99_ns,
            read_response_ns_p99: result.read_response.p99_ns,
            recorded_response_ns_mean: (count > 0).then(|| sum as f64 / count as f64),
            outstanding_max: result.outstanding_max,
            // Cheap ones come first, as in the report; what needs further drives is no advice for this one.
            advice: changes.and_then(|changes| {
                let mut ranking = changes.ranking().into_iter();
                let first = ranking.find(|tried| {
                    tried.change.part() != Part::Drives && helps(tried, changes.goal)
                });
                first.map(|tried| advice(tried, changes.goal))
            }),
            turned: changes.and_then(turned),
            parts,
            idle_scrub: study.idle_scrub.as_ref().and_then(idle_scrub),
            gap_scrub: study.scrub.as_ref().map(|scrub| FleetGapScrub {
                seconds: scrub.seconds(),
                read_share: scrub.read_share(),
            }),
        }
    }
}

/// None where no pause was tried.
fn idle_scrub(idle: &IdleScrub) -> Option<FleetIdleScrub> {
    let fit = idle.fit(SCRUB_SECONDS_MAX);
    let tried = fit.or(idle.pauses.last())?;
    Some(FleetIdleScrub {
        pause_ns: tried.pause_ns,
        seconds: fit.and_then(|fit| fit.seconds),
        is_noticed: tried.is_noticed(),
        mean: tried.mean,
        reads_p99: tried.reads_p99,
    })
}

/// True if a change helps under both replays, its tail does not pay for that, and it turns in no circumstance in
/// which it was tried again.
fn helps(tried: &Tried, goal: Goal) -> bool {
    helps_here(tried, goal) && tried.turning_variants(goal).next().is_none()
}

fn helps_here(tried: &Tried, goal: Goal) -> bool {
    let mut effects = std::iter::once(&tried.effect).chain(&tried.other_replay);
    let is_paid = effects.any(|effect| effect.is_paid_by_tail(goal));
    tried.surest(goal) <= -NOTICEABLE && !is_paid
}

fn turned(changes: &Changes) -> Option<TurnedAdvice> {
    let ranking = changes.ranking().into_iter();
    let mut of_drive = ranking.filter(|tried| tried.change.part() != Part::Drives);
    of_drive.find_map(|tried| {
        let turning = tried.turning_variants(changes.goal).next()?;
        helps_here(tried, changes.goal)
            .then(|| TurnedAdvice { title: tried.title.clone(), circumstance: turning.words() })
    })
}

fn parts(changes: &Changes) -> Vec<PartAdvice> {
    let best = PARTS.iter().filter_map(|&(part, _)| {
        let best = changes.best_of(part).filter(|tried| helps(tried, changes.goal))?;
        Some(PartAdvice { part, advice: advice(best, changes.goal) })
    });
    best.collect()
}

fn advice(tried: &Tried, goal: Goal) -> FleetAdvice {
    let effects = std::iter::once(&tried.effect).chain(&tried.other_replay);
    FleetAdvice {
        title: tried.title.clone(),
        cost_class: tried.cost.class(),
        goal: tried.surest(goal),
        reads_p99: effects.map(|effect| effect.reads_p99).fold(f64::NEG_INFINITY, f64::max),
        checks: checks(tried, goal),
    }
}

fn checks(tried: &Tried, goal: Goal) -> Option<AdviceChecks> {
    let goals = || tried.variants.iter().map(|of| of.effect.of(goal));
    (!tried.variants.is_empty()).then(|| AdviceChecks {
        tried: tried.variants.len() as u64,
        best: goals().fold(f64::INFINITY, f64::min),
        worst: goals().fold(f64::NEG_INFINITY, f64::max),
    })
}

impl JournalRow for FleetRow {
    const JOB: &'static str = "fleet";

    fn number(&self) -> usize {
        self.number
    }

    /// TOML, whose numbers come back exactly, on one line: backslashes and line breaks have two letters.
    fn text(&self) -> String {
        let text = toml::Value::try_from(self).map_or(String::new(), |value| value.to_string());
        text.replace('\\', "\\b").replace('\n', "\\n")
    }

    fn parse(text: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Line {
            row: FleetRow,
        }
        let text = text.replace("\\n", "\n").replace("\\b", "\\");
        toml::from_str(&format!("row = {text}")).ok().map(|Line { row }| row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> FleetRow {
        let advice = FleetAdvice {
            title: "Read cache of 1 MiB \"LRU\"\n\\n".into(),
            cost_class: 2,
            goal: -0.1 - 0.2,
            reads_p99: 0.0,
            checks: Some(AdviceChecks { tried: 5, best: -0.3, worst: -0.1 / 3.0 }),
        };
        FleetRow {
            number: 3,
            member: FleetMember {
                name: "web1/3".into(),
                trace: "web1/3.csv".into(),
                server: "web1".into(),
                bay: "3".into(),
                drive: "tr96".into(),
            },
            fault: None,
            numbers: Some(FleetNumbers {
                requests: 20_000,
                read_share: 1.0 / 3.0,
                span_ns: 1 << 40,
                utilisation: f64::MIN_POSITIVE,
                is_overloaded: false,
                response_ns_mean: 1e7 / 3.0,
                response_ns_p99: 7,
                read_response_ns_p99: 8,
                recorded_response_ns_mean: None,
                outstanding_max: 3,
                parts: vec![PartAdvice { part: Part::ReadCache, advice: advice.clone() }],
                advice: Some(advice),
                turned: Some(TurnedAdvice { title: "SPTF".into(), circumstance: "on tr96".into() }),
                idle_scrub: None,
                gap_scrub: Some(FleetGapScrub { seconds: None, read_share: 0.7 }),
            }),
        }
    }

    #[test]
    fn fleet_row_round_trips_exactly() {
        let row = example();
        let text = row.text();
        assert!(!text.contains('\n'), "{text}");
        assert_eq!(FleetRow::parse(&text), Some(row));
        let failed = FleetRow { numbers: None, fault: Some("no trace".into()), ..example() };
        assert_eq!(FleetRow::parse(&failed.text()), Some(failed));
    }
}
