//! Phase of the spindle in a trace, and the gain of a simulation that knew it.
//!
//! If it does not, a simulated and a measured rotational latency are two independent ones, and the
//! standard deviation of their difference is sqrt(2) times that of one, under any model. That is
//! the floor of the error request by request.

use freewheel_model::drive::Drive;
use freewheel_model::electronics::DriveUnit;
use freewheel_units::{Op, SimDuration, SimTime};
use serde::Serialize;

use super::circular::Coherence;
use super::exchange::{Exchange, Request, with_gaps_one_later};
use super::spindle::{
    Distance, Pair, Period, coherence_of, measured_period, pairs, variance,
    variance_over_phases_ms2, visits,
};

/// Results of the phase analysis of a trace. Times in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseAnalysis {
    /// The answer in a sentence.
    pub verdict: String,
    /// The reading of the trace's gaps that the rest is about: the one that is more coherent.
    pub gaps: GapReading,
    /// Time by which a turn takes longer by the trace's clock than the drive file says, in ppm; None where
    /// the phase is not recoverable.
    pub period_deviation_ppm: Option<f64>,
    /// Standard deviation of the difference of two independent rotational latencies, taken over
    /// all requests, those of the buffer with none.
    pub floor_sd_ms: f64,
    /// Standard deviation of ours less measured.
    pub achieved_sd_ms: f64,
    /// Standard deviation with our spindle set to the trace's at every visit to the media; None where the
    /// phase is not recoverable.
    pub resynchronised_sd_ms: Option<f64>,
    /// By what our model did.
    pub classes: Vec<PhaseClass>,
    /// Requests that visit the media, by where the visit before was.
    pub distances: Vec<PhaseDistance>,
    /// The distance that the rest is about: same track or next track, where more pairs are.
    pub main_distance: Distance,
    /// Pairs at the main distance by what the two requests were.
    pub operations: Vec<PhaseOperations>,
    /// Pairs at the main distance by how many visits lie between, 1 for none.
    pub lags: Vec<PhaseLag>,
    /// Differences of phase at the main distance.
    pub histogram: PhaseHistogram,
}

/// To which request the gap belongs that a trace gives with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GapReading {
    /// As the trace's format says.
    AsRecorded,
    /// The gap recorded before a request is the one behind it.
    OneLater,
}

/// Requests that our model serves alike.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseClass {
    /// Reads or writes, hits or misses.
    pub name: &'static str,
    /// Number of requests.
    pub requests: u64,
    /// Floor with an unknown phase; 0 for those that the buffer serves.
    pub floor_sd_ms: f64,
    /// Standard deviation of ours less measured.
    pub achieved_sd_ms: f64,
    /// Standard deviation with the phase resynchronised.
    pub resynchronised_sd_ms: Option<f64>,
}

/// Requests on the media whose visit before was as far away.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseDistance {
    /// Distance of the visit before.
    pub distance: Distance,
    /// Coherence with the gaps as recorded.
    pub as_recorded: Coherence,
    /// Coherence with the gaps one request later.
    pub one_later: Coherence,
    /// Floor with an unknown phase.
    pub floor_sd_ms: f64,
    /// Standard deviation of ours less measured.
    pub achieved_sd_ms: f64,
    /// Median of the error's size, which a turn missed now and then does not move.
    pub achieved_median_ms: f64,
    /// The standard deviation with the phase resynchronised.
    pub resynchronised_sd_ms: Option<f64>,
    /// The median with the phase resynchronised.
    pub resynchronised_median_ms: Option<f64>,
}

/// Pairs of visits by their operations.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct PhaseOperations {
    pub before: &'static str,
    pub after: &'static str,
    /// Agreement of the angles.
    pub coherence: Coherence,
}

/// Pairs of visits by how many visits lie between.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseLag {
    /// 1 for visits that follow each other.
    pub lag: u64,
    /// Agreement of the angles.
    pub coherence: Coherence,
}

/// Shares of the differences of phase in equal parts of a turn, the first around 0.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseHistogram {
    /// With the gaps as recorded.
    pub as_recorded: Vec<f64>,
    /// With the gaps one request later.
    pub one_later: Vec<f64>,
}

/// Parts of a turn in a histogram.
const BINS: usize = 20;
/// Lags looked at.
const LAGS: usize = 8;
/// Least probability by chance that still counts as chance.
const CHANCE: f64 = 1e-3;
/// Least resultant length at which a phase is worth knowing: the spread of a wrapped normal
/// distribution is then 0.19 turn, two thirds of that of no knowledge at all.
const RECOVERABLE: f64 = 0.5;

/// The trace under one reading of its gaps.
struct Reading {
    gaps: GapReading,
    exchanges: Vec<Exchange>,
    period: Option<Period>,
    nominal_ns: f64,
    /// Visits that follow each other.
    pairs: Vec<Pair>,
}

impl Reading {
    fn new(drive: &Drive, gaps: GapReading, exchanges: Vec<Exchange>) -> Self {
        let nominal_ns = drive.rotation().period().ns() as f64;
        let pairs = pairs(&visits(drive, &exchanges), 1);
        let period = measured_period(&pairs, nominal_ns);
        Self { gaps, exchanges, period, nominal_ns, pairs }
    }

    fn is_coherent(&self) -> bool {
        self.period.is_some_and(|period| is_recoverable(&period.coherence))
    }

    /// The period to use: measured where the trace tells one.
    fn period_ns(&self) -> f64 {
        let measured = self.period.filter(|_| self.is_coherent());
        measured.map_or(self.nominal_ns, |period| period.ns)
    }

    /// Coherence of the pairs that lie so far apart.
    fn at(&self, distance: Distance) -> Option<Coherence> {
        coherence_of(&self.pairs, self.period_ns(), |pair| pair.distance == distance)
    }

    fn p_value(&self) -> f64 {
        self.period.map_or(1.0, |period| period.coherence.p_value)
    }

    fn histogram(&self, distance: Distance) -> Vec<f64> {
        let mut bins = vec![0.0; BINS];
        let chosen: Vec<&Pair> = self.pairs.iter().filter(|p| p.distance == distance).collect();
        for pair in &chosen {
            let turns = pair.difference_turns(self.period_ns()).rem_euclid(1.0);
            bins[(turns * BINS as f64).round() as usize % BINS] += 1.0 / chosen.len() as f64;
        }
        bins
    }
}

fn is_recoverable(coherence: &Coherence) -> bool {
    coherence.p_value < CHANCE && coherence.resultant_length >= RECOVERABLE
}

/// A trace under both readings of its gaps.
pub(super) struct Readings {
    recorded: Reading,
    later: Reading,
}

impl Readings {
    /// `recorded` are the requests as the format says.
    pub fn new(drive: &Drive, recorded: &[Exchange]) -> Self {
        let later = Reading::new(drive, GapReading::OneLater, one_later(recorded));
        let recorded = Reading::new(drive, GapReading::AsRecorded, recorded.to_vec());
        Self { recorded, later }
    }

    fn better(&self) -> &Reading {
        better(&self.recorded, &self.later)
    }

    /// The reading under which the trace keeps the spindle's phase; None where neither does.
    pub fn tell(&self) -> Option<GapReading> {
        let better = self.better();
        better.is_coherent().then_some(better.gaps)
    }

    /// Phase of the spindle in `exchanges`, which are those of one of the readings. `unit` is our drive as
    /// it was before the first request; `classes` names what our model did, in the order of `class_of`.
    pub fn analyse(
        &self,
        unit: &DriveUnit,
        exchanges: &[Exchange],
        classes: &[&'static str],
        class_of: impl Fn(&Exchange) -> usize,
    ) -> PhaseAnalysis {
        let drive = unit.drive();
        let best = self.better();
        let resynchronised = best.is_coherent().then(|| {
            resynchronise(unit.restarted(), &best.exchanges, best.period_ns() / best.nominal_ns)
        });
        let variances: Vec<f64> = exchanges.iter().map(|e| floor_variance_ms2(drive, e)).collect();
        let errors = Errors {
            achieved: exchanges.iter().map(Exchange::error_ms).collect(),
            resynchronised,
            floor_variances: variances,
        };
        let main = best.period.map_or(Distance::SameTrack, |period| period.distance);
        let distances = distances(&self.recorded, &self.later, &errors);
        let all = errors.of(0..exchanges.len());
        let deviation_ppm = (best.period_ns() / best.nominal_ns - 1.0) * 1e6;
        PhaseAnalysis {
            verdict: verdict(best, &distances),
            gaps: best.gaps,
            period_deviation_ppm: best.is_coherent().then_some(deviation_ppm),
            floor_sd_ms: all.floor,
            achieved_sd_ms: all.achieved,
            resynchronised_sd_ms: all.resynchronised,
            classes: by_class(exchanges, classes, class_of, &errors),
            distances,
            main_distance: main,
            operations: operations(best, main),
            lags: lags(drive, best, main),
            histogram: PhaseHistogram {
                as_recorded: self.recorded.histogram(main),
                one_later: self.later.histogram(main),
            },
        }
    }
}

/// Exchanges with every gap taken for the one behind its request.
fn one_later(exchanges: &[Exchange]) -> Vec<Exchange> {
    let requests: Vec<Request> = exchanges.iter().map(|exchange| exchange.request).collect();
    let later = with_gaps_one_later(&requests).into_iter();
    later.zip(exchanges).map(|(request, exchange)| Exchange { request, ..*exchange }).collect()
}

/// The reading that is less likely by chance; the recorded one where they do not differ.
fn better<'a>(recorded: &'a Reading, later: &'a Reading) -> &'a Reading {
    let length = |r: &Reading| r.period.map_or(0.0, |period| period.coherence.resultant_length);
    let less_likely = later.p_value().total_cmp(&recorded.p_value()).is_lt();
    let both_certain = later.p_value() == 0.0 && recorded.p_value() == 0.0;
    let longer = both_certain && length(later) > length(recorded);
    if less_likely || longer { later } else { recorded }
}

/// Errors in ms, ours less measured, of a replay in which our spindle stands where the trace's
/// does: after a visit to the media our completion has the phase of the measured one without a correction, and
/// the next visit begins as long after it as measured, what the buffer served in between included.
/// `turn_ratio` is the time of a turn by the trace's clock over ours.
fn resynchronise(mut unit: DriveUnit, exchanges: &[Exchange], turn_ratio: f64) -> Vec<f64> {
    let mut anchor = (SimTime::ZERO, SimTime::ZERO);
    let mut free = SimTime::ZERO;
    let mut errors = Vec::with_capacity(exchanges.len());
    for Exchange { request, .. } in exchanges {
        let measured_ns = (request.arrival - anchor.1).ns() as f64;
        let elapsed = SimDuration::from_ns((measured_ns / turn_ratio).round() as u64);
        let now = (anchor.0 + elapsed).max(free);
        let served = unit.serve(now, request.op, request.start, request.blocks);
        free = served.end;
        if !served.hit {
            anchor = (served.end, request.completion);
        }
        errors.push((served.end - now).as_ms_f64() - request.measured().as_ms_f64());
    }
    errors
}

/// Variance in ms^2 of a request's error when the phase is unknown: of the difference of two
/// independent times.
fn floor_variance_ms2(drive: &Drive, exchange: &Exchange) -> f64 {
    if exchange.served.hit {
        return 0.0;
    }
    2.0 * variance_over_phases_ms2(drive, &exchange.request)
}

/// Contributions of requests to the standard deviations.
struct Errors {
    achieved: Vec<f64>,
    /// May be one shorter, for want of the last gap.
    resynchronised: Option<Vec<f64>>,
    floor_variances: Vec<f64>,
}

/// Standard deviations, and medians of the errors' sizes, in ms.
struct Deviations {
    floor: f64,
    achieved: f64,
    achieved_median: f64,
    resynchronised: Option<f64>,
    resynchronised_median: Option<f64>,
}

impl Errors {
    fn of(&self, requests: impl IntoIterator<Item = usize>) -> Deviations {
        let requests: Vec<usize> = requests.into_iter().collect();
        let floors = chosen(&self.floor_variances, &requests);
        let floor = floors.iter().sum::<f64>() / floors.len().max(1) as f64;
        let sd = |values: &[f64]| variance(&chosen(values, &requests)).sqrt();
        let median = |values: &[f64]| median_size(&chosen(values, &requests));
        Deviations {
            floor: floor.sqrt(),
            achieved: sd(&self.achieved),
            achieved_median: median(&self.achieved),
            resynchronised: self.resynchronised.as_deref().map(sd),
            resynchronised_median: self.resynchronised.as_deref().map(median),
        }
    }
}

fn chosen(values: &[f64], requests: &[usize]) -> Vec<f64> {
    requests.iter().filter_map(|&index| values.get(index).copied()).collect()
}

/// Median of the absolute values; 0 without values.
fn median_size(values: &[f64]) -> f64 {
    let mut sizes: Vec<f64> = values.iter().map(|value| value.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.get(sizes.len() / 2).copied().unwrap_or(0.0)
}

fn by_class(
    exchanges: &[Exchange],
    names: &[&'static str],
    class_of: impl Fn(&Exchange) -> usize,
    errors: &Errors,
) -> Vec<PhaseClass> {
    let class = |(number, &name): (usize, &&'static str)| {
        let requests: Vec<usize> =
            (0..exchanges.len()).filter(|&index| class_of(&exchanges[index]) == number).collect();
        let sd = errors.of(requests.iter().copied());
        PhaseClass {
            name,
            requests: requests.len() as u64,
            floor_sd_ms: sd.floor,
            achieved_sd_ms: sd.achieved,
            resynchronised_sd_ms: sd.resynchronised,
        }
    };
    let all = names.iter().enumerate().map(class);
    all.filter(|class| class.requests > 0).collect()
}

fn distances(recorded: &Reading, later: &Reading, errors: &Errors) -> Vec<PhaseDistance> {
    Distance::ALL
        .into_iter()
        .filter_map(|distance| {
            let of_row = recorded.pairs.iter().filter(|pair| pair.distance == distance);
            let sd = errors.of(of_row.map(|pair| pair.index));
            Some(PhaseDistance {
                distance,
                as_recorded: recorded.at(distance)?,
                one_later: later.at(distance)?,
                floor_sd_ms: sd.floor,
                achieved_sd_ms: sd.achieved,
                achieved_median_ms: sd.achieved_median,
                resynchronised_sd_ms: sd.resynchronised,
                resynchronised_median_ms: sd.resynchronised_median,
            })
        })
        .collect()
}

fn operations(reading: &Reading, main: Distance) -> Vec<PhaseOperations> {
    let of = |before: Op, after: Op| {
        let coherence = coherence_of(&reading.pairs, reading.period_ns(), |p| {
            p.distance == main && p.ops == (before, after)
        })?;
        Some(PhaseOperations { before: name(before), after: name(after), coherence })
    };
    let all = [Op::Read, Op::Write].map(|before| [Op::Read, Op::Write].map(|op| of(before, op)));
    all.into_iter().flatten().flatten().collect()
}

fn name(op: Op) -> &'static str {
    if op == Op::Write { "write" } else { "read" }
}

fn lags(drive: &Drive, reading: &Reading, main: Distance) -> Vec<PhaseLag> {
    let visits = visits(drive, &reading.exchanges);
    (1..=LAGS)
        .filter_map(|lag| {
            let pairs = pairs(&visits, lag);
            let coherence = coherence_of(&pairs, reading.period_ns(), |p| p.distance == main)?;
            Some(PhaseLag { lag: lag as u64, coherence })
        })
        .collect()
}

impl PhaseAnalysis {
    /// R at the main distance by what the two requests were and by how many visits lie between.
    pub fn pairs_in_words(&self) -> String {
        let length = |c: &Coherence| format!("{:.3} ({})", c.resultant_length, c.pairs);
        let operations: Vec<String> = self
            .operations
            .iter()
            .map(|o| format!("{} after {} {}", o.after, o.before, length(&o.coherence)))
            .collect();
        let lags: Vec<String> = self
            .lags
            .iter()
            .map(|lag| format!("{}. {}", lag.lag, length(&lag.coherence)))
            .collect();
        format!(
            "R of {}, in brackets the pairs: {}; with the n-th visit before: {}.",
            self.main_distance.name(),
            operations.join(", "),
            lags.join(", ")
        )
    }
}

impl GapReading {
    /// The reading in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::AsRecorded => "gaps as recorded",
            Self::OneLater => "gaps one request later",
        }
    }

    /// Side on which the gap of a record lies, in a word.
    pub fn side(self) -> &'static str {
        match self {
            Self::AsRecorded => "before",
            Self::OneLater => "after",
        }
    }
}

impl PhaseDistance {
    /// Coherence under a reading.
    pub fn coherence(&self, gaps: GapReading) -> &Coherence {
        match gaps {
            GapReading::AsRecorded => &self.as_recorded,
            GapReading::OneLater => &self.one_later,
        }
    }
}

fn verdict(best: &Reading, distances: &[PhaseDistance]) -> String {
    let Some(period) = best.period else {
        return "Not to be told: no two visits to the media lie on the same or the next track."
            .into();
    };
    let found = period.coherence;
    if !best.is_coherent() {
        return format!(
            "No: for {} pairs on the {} R is {:.3}, chance alone gives {:.3} (p = {:.2}).",
            found.pairs,
            period.distance.name(),
            found.resultant_length,
            found.resultant_length_by_chance,
            found.p_value
        );
    }
    let (yes, no): (Vec<&PhaseDistance>, Vec<&PhaseDistance>) =
        distances.iter().partition(|row| is_recoverable(row.coherence(best.gaps)));
    let proviso = match best.gaps {
        GapReading::AsRecorded => "",
        GapReading::OneLater => ", when each gap is taken for the one behind its request",
    };
    let beyond = if no.is_empty() {
        String::new()
    } else {
        format!(
            " Not elsewhere ({}): the gaps are alike there, so it is the drive file's angles or buffer that do not hold.",
            list(&no, best)
        )
    };
    format!("Yes{proviso}: the clock and the spindle keep step (R: {}).{beyond}", list(&yes, best))
}

fn list(rows: &[&PhaseDistance], best: &Reading) -> String {
    rows.iter()
        .map(|row| {
            let length = row.coherence(best.gaps).resultant_length;
            format!("{length:.3} {}", row.distance.name())
        })
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::validate::exchange::replay;
    use freewheel_sim::library;
    use freewheel_units::{Lbn, Prng};

    const TURN_NS: u64 = 5_980_265;

    fn unit() -> DriveUnit {
        let (spec, drive) = library::drive("cheetah4lp").unwrap();
        DriveUnit::new(&Arc::new(drive), &spec.electronics_as_measured()).unwrap()
    }

    /// A trace of our own drive: reads that jump to a track and back on it, gaps of 20 to 60 ms.
    /// `jitter_ns` is what the clock of the trace may be off, anew at every gap.
    fn trace(jitter_ns: u64) -> Vec<Request> {
        let (mut unit, mut random) = (unit(), Prng::new(7, "trace"));
        let (mut now, mut recorded) = (SimTime::ZERO, SimTime::ZERO);
        let mut requests = Vec::new();
        for _ in 0..150 {
            let track = random.below(unit.drive().blocks().get() / 200 - 1) * 200;
            for within in [100, 60, 20] {
                let start = Lbn::new(track + within);
                let served = unit.serve(now, Op::Read, start, 8);
                let completion = recorded + (served.end - now);
                requests.push(Request {
                    op: Op::Read,
                    start,
                    blocks: 8,
                    fua: false,
                    arrival: recorded,
                    completion,
                });
                let gap = SimDuration::from_ns(20_000_000 + random.below(40_000_000));
                now = served.end + gap;
                recorded = completion + gap + SimDuration::from_ns(random.below(jitter_ns + 1));
            }
        }
        requests
    }

    fn analysed(requests: &[Request]) -> PhaseAnalysis {
        let unit = unit();
        let exchanges = replay(unit.restarted(), requests);
        let readings = Readings::new(unit.drive(), &exchanges);
        readings.analyse(&unit, &exchanges, &["hits", "misses"], |e| usize::from(!e.served.hit))
    }

    /// The gap before every request recorded with the request in front of it, as if a format had
    /// meant it so.
    fn gaps_one_earlier(requests: &[Request]) -> Vec<Request> {
        let mut moved = requests.to_vec();
        let mut now = SimTime::ZERO;
        for index in 0..moved.len() {
            let completion = now + requests[index].measured();
            (moved[index].arrival, moved[index].completion) = (now, completion);
            let gap = requests.get(index + 1..index + 3);
            now = completion
                + gap.map_or(SimDuration::ZERO, |two| two[1].arrival - two[0].completion);
        }
        moved
    }

    #[test]
    fn phase_of_own_trace_is_coherent() {
        let found = analysed(&trace(0));
        assert!(found.verdict.starts_with("Yes:"), "{}", found.verdict);
        assert_eq!((found.gaps, found.period_deviation_ppm), (GapReading::AsRecorded, Some(0.0)));
        for row in &found.distances {
            assert!(row.as_recorded.resultant_length > 0.9999, "{row:?}");
            assert!(row.one_later.p_value > 1e-4, "{row:?}");
        }
        assert!(found.resynchronised_sd_ms.unwrap() < 1e-5, "{found:?}");
    }

    #[test]
    fn phase_is_incoherent_after_random_gaps() {
        let found = analysed(&trace(TURN_NS));
        assert!(found.verdict.starts_with("No:"), "{}", found.verdict);
        assert_eq!((found.period_deviation_ppm, found.resynchronised_sd_ms), (None, None));
        // Only the phase differs, so the error is as large as the floor says.
        let misses = found.classes.iter().find(|class| class.name == "misses").unwrap();
        let ratio = misses.achieved_sd_ms / misses.floor_sd_ms;
        assert!((0.9..1.1).contains(&ratio), "{misses:?}");
    }

    #[test]
    fn gaps_recorded_early_are_recognised() {
        let found = analysed(&gaps_one_earlier(&trace(0)));
        assert_eq!(found.gaps, GapReading::OneLater);
        assert!(found.verdict.starts_with("Yes, when each gap"), "{}", found.verdict);
        let near = found.distances.iter().find(|row| row.distance == found.main_distance).unwrap();
        assert!(near.resynchronised_median_ms.unwrap() < 1e-5, "{near:?}");
    }

    #[test]
    fn fast_clock_is_measured_and_corrected() {
        let fast = |time: SimTime| SimTime::from_ns(time.ns() + time.ns() / 100);
        let slow_clock = |request: &Request| {
            let measured = request.measured();
            let arrival = fast(request.arrival);
            Request { arrival, completion: arrival + measured, ..*request }
        };
        let requests: Vec<Request> = trace(0).iter().map(slow_clock).collect();
        let found = analysed(&requests);
        let ppm = found.period_deviation_ppm.unwrap();
        assert!((ppm - 10_000.0).abs() <= 1500.0, "{ppm}");
        assert!(found.verdict.starts_with("Yes:"), "{}", found.verdict);
    }

    #[test]
    fn floor_of_sector_read_is_two_latencies() {
        let unit = unit();
        let request = Request {
            op: Op::Read,
            start: Lbn::new(0),
            blocks: 1,
            fua: false,
            arrival: SimTime::ZERO,
            completion: SimTime::ZERO,
        };
        let sd_ms = (2.0 * variance_over_phases_ms2(unit.drive(), &request)).sqrt();
        let expected_ms = TURN_NS as f64 / 1e6 / 6f64.sqrt();
        assert!((sd_ms / expected_ms - 1.0).abs() < 0.01, "{sd_ms} {expected_ms}");
    }
}
