//! The first pass over a trace: what must be known of all its records before the first is delivered.
//!
//! | question | why it cannot be told on the way |
//! |---|---|
//! | Does the clock start again? Are records in order, nearly, or far from it? | a record far behind would have been delivered before |
//! | How fine is the clock? | requests of one granule are spread over it |
//! | Did the block layer merge requests? | then those are read that it sent to the drive |
//! | Do numbers name blocks or objects? | objects get places of their own |
//!
//! Goals: one answer for all readers of a trace; memory is bounded: a window of records, and 2^20 numbers of
//! objects.
//! Non-goals: errors, which the reader reports: the pass ends where strict reading ends.

use std::collections::BTreeMap;

use freewheel_units::{Op, SimDuration, SimTime};
use serde::Serialize;

use crate::Record;
use crate::format::{Clock, How, Layer, Numbers, ObjectPlaces, PAGE_BLOCKS};
use crate::source::{
    ClockRuns, Deliver, EventTimes, Found, LayerCounts, Position, Source, Stop, Window,
};

/// Records that wait for one that arrived before them: about 400 KiB.
pub(crate) const WINDOW_RECORDS: usize = 4096;
/// The finest granule that a disk's service time would feel.
const COARSE_NS: u64 = 1_000_000;
/// A clock is coarse for its trace where one request in this many comes at the time of the one before.
const SHARED_ONE_IN: u64 = 100;
/// No clock is coarser than a minute.
const STEP_MAX_NS: u64 = 60_000_000_000;
/// Fewer steps of a clock may be whole by chance, unless the format says what its steps are.
const STEPS_SURE: u64 = 2;
/// Objects that are looked at to tell what numbers name.
const OBJECTS_MAX: usize = 1 << 20;
/// Fewer objects are evidence only by their neighbours.
const OBJECTS_SURE: usize = 100;
/// No disk or volume has this number of blocks of 512 bytes: 512 TiB.
const ADDRESSES_MAX: u64 = 1 << 40;
/// Numbers name objects where this share of them reaches over a number within the next page.
const OVERLAP_SHARE: f64 = 0.1;
/// Numbers name objects where no place within a page has more than this share of whole pages.
const ALIGNED_SHARE: f64 = 0.25;

/// The requests are read that were issued where one queued in this many was merged. Fewer make no change
/// that could be told from the spread of a replay.
const MERGED_ONE_IN: u64 = 100;

/// Results of a first pass over a trace.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Survey {
    /// Recordings in the file, each with a clock that starts again. They follow one another.
    pub recordings: u64,
    /// Line of the second one; its record in binary formats. Absent where there is one recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_recording_at: Option<u64>,
    /// Requests whose time lies before the latest of those in front of them in the file, of whichever
    /// recording.
    pub moved_requests: u64,
    /// The longest time that such a request lies before the latest one.
    pub moved_ns_max: u64,
    /// Requests behind a later request of their own recording: they were sorted.
    pub sorted_requests: u64,
    /// The longest time that such a request lies before the latest one.
    pub sorted_ns_max: u64,
    /// Step of the clock, where it is 1 ms or longer and requests share times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granule_ns: Option<u64>,
    /// Requests that have the time of the one in front of them.
    pub shared_times: u64,
    /// Meaning of numbers, in formats of cache simulators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbers: Option<NumbersFound>,
    /// Requests that a block layer queued, merged and issued, in formats of its events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<LayersFound>,
    #[serde(skip)]
    pub(crate) order: RecordOrder,
    #[serde(skip)]
    pub(crate) events_need_merge: bool,
    #[serde(skip)]
    pub(crate) objects: Option<ObjectPlaces>,
}

/// Requests on their way through a block layer, and which of them are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LayersFound {
    /// Counts of requests.
    #[serde(flatten)]
    pub counts: LayerCounts,
    /// Layer that was read: the queued or the issued requests.
    pub read: Layer,
}

impl LayersFound {
    fn new(counts: LayerCounts, asked: Layer) -> Self {
        let found = Self { counts, read: asked };
        let read = match asked {
            Layer::Auto if counts.issued > 0 && found.are_merged() => Layer::Issued,
            Layer::Auto => Layer::Queued,
            asked => asked,
        };
        Self { read, ..found }
    }

    /// True if the recorded system merged enough requests to matter.
    pub fn are_merged(&self) -> bool {
        self.counts.merged > 0
            && self.counts.merged.saturating_mul(MERGED_ONE_IN) >= self.counts.queued
    }
}

/// Meaning of a trace's numbers, and the reason for it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NumbersFound {
    /// Meaning of the numbers.
    pub name: Numbers,
    /// Reason for that meaning.
    pub because: NumbersReason,
    /// Evidence for objects where the person said addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<NumbersReason>,
    /// Share of the numbers that reach over another one less than a page behind, as numbers of objects do and
    /// few requests to a disk.
    pub reached_over: f64,
}

/// Reason for a meaning of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NumbersReason {
    /// The person said so.
    Asked,
    /// Objects reach over the number of the next one.
    Overlap,
    /// Objects of whole pages begin anywhere in a page.
    Unaligned,
    /// Most sizes are no whole blocks.
    OddSizes,
    /// Numbers lie beyond the end of any disk.
    BeyondDisks,
    /// No evidence speaks for objects.
    Aligned,
}

/// Order in which the records of a trace are put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum RecordOrder {
    #[default]
    InOrder,
    /// As far as a window reaches.
    Window,
    /// By sorted pieces.
    Merge,
}

/// Question about the numbers of a trace of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumbersQuestion {
    /// Unknown meaning.
    Open,
    /// Nothing: the person gave their meaning.
    Answered(Numbers),
}

impl Survey {
    /// Passes over the records of `source`, which reads as `how` says. `numbers` is a question in formats
    /// of objects. `report` is called for each record.
    pub(crate) fn of(
        source: &mut dyn Source,
        how: &How,
        lenient: bool,
        numbers: Option<NumbersQuestion>,
        mut report: impl FnMut(),
    ) -> Self {
        let are_events = source.event_times().is_some();
        let runs = !are_events && how.clock == Clock::FromStart;
        let mut runs = runs.then(|| ClockRuns::new(how.clock_runs()));
        let (mut recorded, mut order) = (AsRecorded::default(), OrderCheck::new(WINDOW_RECORDS));
        let mut numbered = numbers.map(Numbered::new);
        loop {
            let mut found = || {
                let record = source.next()?;
                record.iter().for_each(|record| recorded.observe(record));
                let (at, begins) = (source.position(), source.begins_run());
                Ok(record.map(|item| Found { item, at, begins }))
            };
            let next = match &mut runs {
                Some(runs) => runs.next(found),
                None => found().map(|found| found.map(|found| (found.item, found.at))),
            };
            match next {
                Ok(Some((record, _))) => {
                    order.observe(record);
                    numbered.iter_mut().for_each(|numbered| numbered.observe(&record));
                }
                Err(Stop::Fault(_)) if lenient => {}
                // The reader meets an error again, and tells it.
                Ok(None) | Err(_) => break,
            }
            report();
        }
        let of_runs = runs.map(|runs| EventTimes {
            runs: runs.runs(),
            second: runs.second(),
            needs_merge: false,
        });
        let times = source.event_times().or(of_runs).unwrap_or_default();
        let (found, objects) = numbered.map_or((None, None), Numbered::finish);
        Self {
            recordings: times.runs.max(1),
            second_recording_at: times.second.map(|at| at.line.unwrap_or(at.record)),
            moved_requests: recorded.moved,
            moved_ns_max: recorded.moved_ns_max,
            sorted_requests: order.late,
            sorted_ns_max: order.late_ns_max,
            granule_ns: recorded.granule_ns(how.known_step_ns),
            shared_times: recorded.shared,
            numbers: found,
            layers: source.layers().map(|counts| LayersFound::new(counts, how.layer)),
            order: order.finish(),
            events_need_merge: times.needs_merge,
            objects,
        }
    }

    /// True if requests come in bunches that only the clock made.
    pub fn is_coarse(&self) -> bool {
        self.granule_ns.is_some()
    }

    /// Reading with the results of the first pass.
    pub(crate) fn instruct(&self, how: How) -> How {
        let granule = SimDuration::from_ns(self.granule_ns.unwrap_or_default());
        let needs_merge = self.events_need_merge;
        let deliver = if self.reads_issued() { Deliver::Issued } else { Deliver::Queued };
        How { needs_merge, granule, deliver, objects: self.objects, ..how }
    }

    /// True if the issued requests of a block layer are read.
    pub(crate) fn reads_issued(&self) -> bool {
        self.layers.is_some_and(|layers| layers.read == Layer::Issued)
    }
}

/// Times as they stand in the file.
#[derive(Debug, Default)]
struct AsRecorded {
    requests: u64,
    latest: SimTime,
    last: SimTime,
    moved: u64,
    moved_ns_max: u64,
    /// Greatest common divisor of the steps of the clock; 0 before the first step.
    step_ns: u64,
    /// Steps of the clock.
    steps: u64,
    shared: u64,
}

impl AsRecorded {
    #[inline]
    fn observe(&mut self, record: &Record) {
        let time = record.arrival;
        if self.requests > 0 {
            let behind_ns = self.latest.saturating_since(time).ns();
            self.moved += u64::from(behind_ns > 0);
            self.moved_ns_max = self.moved_ns_max.max(behind_ns);
            self.shared += u64::from(time == self.last);
            self.steps += u64::from(time != self.last);
            // A step below a millisecond is fine enough, and needs no more divisions.
            if self.step_ns == 0 || self.step_ns >= COARSE_NS {
                self.step_ns = gcd(time.ns().abs_diff(self.last.ns()), self.step_ns);
            }
        }
        self.latest = self.latest.max(time);
        self.last = time;
        self.requests += 1;
    }

    /// The step of the clock, where it is coarse.
    fn granule_ns(&self, known_step_ns: Option<u64>) -> Option<u64> {
        let known = known_step_ns.filter(|known| self.step_ns.is_multiple_of(*known));
        let found =
            (self.steps >= STEPS_SURE && self.step_ns <= STEP_MAX_NS).then_some(self.step_ns);
        let step = known.or(found).filter(|step| *step >= COARSE_NS);
        step.filter(|_| self.shared * SHARED_ONE_IN >= self.requests && self.shared > 0)
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Check of the records' order, and of a window that restores it.
struct OrderCheck {
    window: Window<Record>,
    latest: SimTime,
    /// Records behind a later one, and by how much at most.
    late: u64,
    late_ns_max: u64,
}

impl OrderCheck {
    fn new(window: usize) -> Self {
        let window = Window::of(window);
        Self { window, latest: SimTime::ZERO, late: 0, late_ns_max: 0 }
    }

    #[inline]
    fn observe(&mut self, record: Record) {
        let behind_ns = self.latest.saturating_since(record.arrival).ns();
        self.late += u64::from(behind_ns > 0);
        self.late_ns_max = self.late_ns_max.max(behind_ns);
        self.latest = self.latest.max(record.arrival);
        if self.window.is_too_short() {
            return;
        }
        if self.window.is_full() {
            self.window.pop();
        }
        self.window.push((record, Position::default()));
    }

    fn finish(mut self) -> RecordOrder {
        while self.window.pop().is_some() {}
        match (self.late, self.window.is_too_short()) {
            (0, _) => RecordOrder::InOrder,
            (_, false) => RecordOrder::Window,
            (_, true) => RecordOrder::Merge,
        }
    }
}

/// Numbers of blocks or objects, with their sizes.
#[derive(Debug)]
struct Numbered {
    question: NumbersQuestion,
    /// The most blocks of each number of a device.
    blocks: BTreeMap<(u32, u64), u64>,
    blocks_max: u64,
    largest: u64,
    requests: u64,
    /// Objects whose size is no whole block.
    odd: u64,
}

impl Numbered {
    fn new(question: NumbersQuestion) -> Self {
        let blocks = BTreeMap::new();
        Self { question, blocks, blocks_max: 0, largest: 0, requests: 0, odd: 0 }
    }

    fn observe(&mut self, record: &Record) {
        if record.op == Op::Flush {
            return;
        }
        let (number, blocks) = (record.start.get(), record.blocks.get());
        self.largest = self.largest.max(number);
        self.requests += 1;
        self.odd += u64::from(record.widened);
        self.blocks_max = self.blocks_max.max(blocks);
        let key = (record.device, number);
        if self.blocks.len() < OBJECTS_MAX || self.blocks.contains_key(&key) {
            let known = self.blocks.entry(key).or_default();
            *known = blocks.max(*known);
        }
    }

    fn finish(self) -> (Option<NumbersFound>, Option<ObjectPlaces>) {
        let found = self.found();
        let are_objects = found.name == Numbers::Objects;
        (Some(found), are_objects.then(|| ObjectPlaces::new(self.blocks_max, self.largest)))
    }

    fn found(&self) -> NumbersFound {
        let reached_over = self.reached_over();
        let (told, because) = self.meaning(reached_over);
        let open = NumbersFound { name: told, because, against: None, reached_over };
        match self.question {
            NumbersQuestion::Open => open,
            NumbersQuestion::Answered(name) => NumbersFound {
                name,
                because: NumbersReason::Asked,
                against: (name != told && told == Numbers::Objects).then_some(because),
                ..open
            },
        }
    }

    /// Meaning of numbers, as far as these tell.
    fn meaning(&self, reached_over: f64) -> (Numbers, NumbersReason) {
        let because = if self.largest > ADDRESSES_MAX {
            NumbersReason::BeyondDisks
        } else if self.odd * 2 > self.requests {
            NumbersReason::OddSizes
        } else if reached_over > OVERLAP_SHARE {
            NumbersReason::Overlap
        } else if self.begin_anywhere() {
            NumbersReason::Unaligned
        } else {
            return (Numbers::Addresses, NumbersReason::Aligned);
        };
        (Numbers::Objects, because)
    }

    /// Share of the numbers that reach over one within a page of them: requests to a disk that overlap do so by
    /// pages.
    fn reached_over(&self) -> f64 {
        let pairs = self.blocks.iter().zip(self.blocks.keys().skip(1));
        let reached = pairs.filter(|(((device, number), blocks), (next_device, next))| {
            device == next_device && next - number < PAGE_BLOCKS && number + *blocks > *next
        });
        reached.count() as f64 / self.blocks.len().max(1) as f64
    }

    /// True if nearly all objects are whole pages that begin anywhere in a page, as no file system has
    /// them.
    fn begin_anywhere(&self) -> bool {
        let mut places = [0usize; PAGE_BLOCKS as usize];
        self.blocks
            .iter()
            .filter(|(_, blocks)| blocks.is_multiple_of(PAGE_BLOCKS))
            .for_each(|((_, number), _)| places[(number % PAGE_BLOCKS) as usize] += 1);
        let pages: usize = places.iter().sum();
        let commonest = places.into_iter().max().unwrap_or_default();
        pages >= OBJECTS_SURE
            && pages * 10 >= self.blocks.len() * 9
            && (commonest as f64) < ALIGNED_SHARE * pages as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Extent;
    use crate::scan::{Number, TimeUnit};
    use freewheel_units::Prng;
    use proptest::prelude::*;
    use std::vec;

    struct List(vec::IntoIter<Record>);

    impl Source for List {
        fn next(&mut self) -> Result<Option<Record>, Stop> {
            Ok(self.0.next())
        }

        fn position(&self) -> Position {
            Position::default()
        }
    }

    fn survey(records: Vec<Record>, clock: Clock, numbers: Option<NumbersQuestion>) -> Survey {
        let how = How {
            unit: TimeUnit::Nanoseconds,
            clock,
            clock_is_asked: false,
            granule: SimDuration::ZERO,
            known_step_ns: None,
            needs_merge: false,
            cache_hits: false,
            layer: Layer::Auto,
            deliver: Deliver::Queued,
            objects: None,
            exact_objects: false,
        };
        Survey::of(&mut List(records.into_iter()), &how, false, numbers, || {})
    }

    fn record(time_ns: u64, start: u64, blocks: u64) -> Record {
        let number = |value| Number { name: "a number", value };
        let extent = Extent::of_blocks(number(start), number(blocks)).unwrap();
        extent.request(SimTime::from_ns(time_ns), Op::Read, 0)
    }

    fn of_times(times: &[u64], clock: Clock) -> Survey {
        survey(times.iter().map(|&time| record(time, 0, 8)).collect(), clock, None)
    }

    fn numbers(objects: &[(u64, u64)]) -> NumbersReason {
        let records = objects.iter().map(|&(start, blocks)| record(0, start, blocks)).collect();
        let found = survey(records, Clock::FromStart, Some(NumbersQuestion::Open)).numbers;
        found.unwrap().because
    }

    #[test]
    fn survey_counts_moved_requests_not_steps() {
        let second = [10, 20, 30, 40, 10, 20, 30, 40];
        let survey = of_times(&second, Clock::Absolute);
        assert_eq!((survey.moved_requests, survey.moved_ns_max), (3, 30));
        assert_eq!((survey.recordings, survey.order), (1, RecordOrder::Window));
        assert_eq!((survey.sorted_requests, survey.sorted_ns_max), (3, 30));
        let survey = of_times(&second, Clock::FromStart);
        assert_eq!((survey.moved_requests, survey.recordings, survey.sorted_requests), (3, 2, 0));
        assert_eq!(survey.order, RecordOrder::InOrder);
    }

    #[test]
    fn order_beyond_window_needs_merge() {
        let of_volumes = |requests: u64| -> Vec<u64> {
            [0, 1].into_iter().flat_map(|_| (0..requests).map(|at| at * 10)).collect()
        };
        let order = |requests| of_times(&of_volumes(requests), Clock::Absolute).order;
        assert_eq!(order(WINDOW_RECORDS as u64 / 2), RecordOrder::Window);
        assert_eq!(order(WINDOW_RECORDS as u64 * 2), RecordOrder::Merge);
    }

    #[test]
    fn clock_step_counts_with_shared_times() {
        let granule = |times: &[u64]| of_times(times, Clock::FromStart).granule_ns;
        let second = 1_000_000_000;
        assert_eq!(granule(&[5, 5, 5 + second, 5 + 3 * second]), Some(second));
        // The timer of Windows ticks every 15.625 ms.
        assert_eq!(granule(&[0, 15_625_000, 15_625_000, 62_500_000]), Some(15_625_000));
        assert_eq!(granule(&[0, 999_999, 999_999, 1_999_998]), None);
        // One request a second is no bunch.
        assert_eq!(granule(&[0, second, 2 * second]), None);
        assert_eq!(granule(&[7, 7, 7]), None);
        // Two bursts tell of no clock, and no clock has steps of five minutes.
        assert_eq!(granule(&[0, 0, 0, second, second]), None);
        assert_eq!(granule(&[0, 0, 300 * second, 600 * second, 900 * second]), None);
    }

    #[test]
    fn numbers_answer_against_evidence_detected() {
        let pages: Vec<(u64, u64)> = (0..100).map(|number| (number, 8)).collect();
        let found = |answer| {
            let records = pages.iter().map(|&(number, blocks)| record(0, number, blocks));
            let question = Some(NumbersQuestion::Answered(answer));
            survey(records.collect(), Clock::FromStart, question).numbers.unwrap()
        };
        let addresses = found(Numbers::Addresses);
        assert_eq!(addresses.because, NumbersReason::Asked);
        assert_eq!(addresses.against, Some(NumbersReason::Overlap));
        assert_eq!(addresses.reached_over, 0.99);
        assert_eq!(found(Numbers::Objects).against, None);
    }

    #[test]
    fn dense_numbers_of_pages_name_objects() {
        let pages: Vec<_> = (0..50).map(|number| (number, 8)).collect();
        assert_eq!(numbers(&pages), NumbersReason::Overlap);
        // Every third is used.
        let third: Vec<_> = (0..50).map(|number| (number * 3, 8)).collect();
        assert_eq!(numbers(&third), NumbersReason::Overlap);
        // Objects of one block do not reach over the next.
        let blocks: Vec<_> = (0..50).map(|number| (number, 1)).collect();
        assert_eq!(numbers(&blocks), NumbersReason::Aligned);
    }

    #[test]
    fn devices_have_numbers_of_their_own() {
        let of = |device: u32| {
            (0..50)
                .map(move |at| Record { device, ..record(0, 63 + u64::from(device) + 8 * at, 8) })
        };
        let found =
            survey(of(0).chain(of(1)).collect(), Clock::FromStart, Some(NumbersQuestion::Open));
        assert_eq!(found.numbers.unwrap().because, NumbersReason::Aligned);
    }

    #[test]
    fn unaligned_pages_and_hashes_name_objects() {
        let mut prng = Prng::new(1, "numbers");
        let sparse: Vec<_> = (0..500).map(|_| (prng.below(10_000_000), 8)).collect();
        assert_eq!(numbers(&sparse), NumbersReason::Unaligned);
        assert_eq!(numbers(&[(7, 8), (1 << 50, 8)]), NumbersReason::BeyondDisks);
    }

    #[test]
    fn sizes_off_blocks_are_of_objects() {
        let odd = |at: u64| Record { widened: true, ..record(0, at * 97, 3) };
        let found =
            survey((0..50).map(odd).collect(), Clock::FromStart, Some(NumbersQuestion::Open));
        assert_eq!(found.numbers.unwrap().because, NumbersReason::OddSizes);
    }

    #[test]
    fn overlapping_partition_requests_name_blocks() {
        // 4 KiB at whole pages from block 63, with longer ones that reach over the next.
        let mut prng = Prng::new(1, "numbers");
        let of_disk = (0..5000).map(|_| (63 + 8 * prng.below(20_000), 8 * (1 + prng.below(32))));
        assert_eq!(numbers(&of_disk.collect::<Vec<_>>()), NumbersReason::Aligned);
    }

    proptest! {
        #[test]
        fn window_suffices_when_sorting_all_times(
            times in prop::collection::vec(0u64..60, 1..80),
            window in 1usize..20,
        ) {
            let mut check = OrderCheck::new(window);
            times.iter().for_each(|&time| check.observe(record(time, 0, 8)));
            // The slow way: of the first `window` that are left, the earliest, again and again.
            let (mut left, mut out) = (times.clone(), Vec::new());
            while !left.is_empty() {
                let reach = window.min(left.len());
                let first = (0..reach).min_by_key(|&at| (left[at], at)).unwrap();
                out.push(left.remove(first));
            }
            let expected = match (times.is_sorted(), out.is_sorted()) {
                (true, _) => RecordOrder::InOrder,
                (_, true) => RecordOrder::Window,
                (_, false) => RecordOrder::Merge,
            };
            prop_assert_eq!(check.finish(), expected);
            let latest = |at: usize| times[..at].iter().max().copied().unwrap_or(0);
            let moved = (0..times.len()).filter(|&at| times[at] < latest(at)).count() as u64;
            prop_assert_eq!(of_times(&times, Clock::Absolute).moved_requests, moved);
        }
    }
}
