//! The first pass over a trace: what must be known of all its records before the first is delivered.
//!
//! | question | why it cannot be told on the way |
//! |---|---|
//! | Does the clock start again? Are records in order, nearly, or far from it? | a record far behind would have been delivered before |
//! | How fine is the clock? | requests of one granule are spread over it |
//! | Do numbers name blocks or objects? | objects get places of their own |
//!
//! Goals: one answer for all readers of a trace; memory does not grow with its length.
//! Non-goals: errors, which the reader reports: the pass ends where strict reading ends.

use std::collections::BTreeMap;

use freewheel_units::{Op, SimDuration, SimTime};
use serde::Serialize;

use crate::Record;
use crate::format::{Clock, How, Numbers, ObjectPlaces};
use crate::source::{ClockRuns, EventTimes, Found, Position, ReorderBuffer, Source, Stop};

/// Records that wait for one that arrived before them: about 400 KiB.
pub(crate) const WINDOW_RECORDS: usize = 4096;
/// The finest granule that a disk's service time would feel.
const COARSE_NS: u64 = 1_000_000;
/// A clock is coarse for its trace where one request in this many comes at the time of the one before.
const SHARED_ONE_IN: u64 = 100;
/// Objects that are looked at to tell what numbers name.
const OBJECTS_MAX: usize = 1 << 20;
/// Fewer objects tell nothing but by their neighbours.
const OBJECTS_SURE: usize = 100;
/// Blocks of 512 bytes in a page of 4 KiB.
const PAGE_BLOCKS: u64 = 8;
/// No disk or volume has so many blocks of 512 bytes: 8 PiB.
const ADDRESSES_MAX: u64 = 1 << 44;
/// Numbers name objects where this share of them reaches over a number within the next page.
const OVERLAP_SHARE: f64 = 0.1;
/// Numbers name objects where no place within a page has more than this share of whole pages.
const ALIGNED_SHARE: f64 = 0.25;

/// What a first pass found out about a trace.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Survey {
    /// Recordings in the file, each with a clock that starts again. They follow one another.
    pub recordings: u64,
    /// Line of the second one; its record in binary formats. Absent where there is one recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_recording_at: Option<u64>,
    /// Requests whose time lies before the latest of those in front of them in the file. They were put in
    /// their order.
    pub moved_requests: u64,
    /// The longest time that such a request lies before the latest one.
    pub moved_ns_max: u64,
    /// Step of the clock, where it is 1 ms or longer and requests share times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granule_ns: Option<u64>,
    /// Requests that have the time of the one in front of them.
    pub shared_times: u64,
    /// What numbers name, in formats of cache simulators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbers: Option<NumbersFound>,
    #[serde(skip)]
    pub(crate) order: RecordOrder,
    #[serde(skip)]
    pub(crate) events_need_merge: bool,
    #[serde(skip)]
    pub(crate) objects: Option<ObjectPlaces>,
}

/// What the numbers of a trace name, and what tells so.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NumbersFound {
    /// What they name.
    pub name: Numbers,
    /// What tells so.
    pub because: NumbersReason,
}

/// What tells the meaning of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NumbersReason {
    /// The person said so.
    Asked,
    /// Objects reach over the number of the next one.
    Overlap,
    /// Objects of whole pages begin anywhere in a page.
    Unaligned,
    /// Numbers lie beyond the end of any disk.
    BeyondDisks,
    /// Nothing speaks for objects.
    Aligned,
}

/// How the records of a trace are put in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum RecordOrder {
    #[default]
    InOrder,
    /// As far as a window reaches.
    Window,
    /// By sorted pieces.
    Merge,
}

/// What to find out about the numbers of a trace of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumbersQuestion {
    /// What they name.
    Open,
    /// Nothing: the person said what they name.
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
        let mut runs = runs.then(|| ClockRuns::new(SimDuration::ZERO));
        let (mut recorded, mut order) = (AsRecorded::default(), OrderCheck::default());
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
                    order.observe(record.arrival);
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
        recorded.finish(&times, order.finish(), found, objects)
    }

    /// Whether requests come in bunches that only the clock made.
    pub fn is_coarse(&self) -> bool {
        self.granule_ns.is_some()
    }

    /// What a reader has to be told.
    pub(crate) fn instruct(&self, how: How) -> How {
        let run_gap = SimDuration::from_ns(self.granule_ns.unwrap_or_default());
        let needs_merge = self.events_need_merge;
        How { needs_merge, run_gap, objects: self.objects, ..how }
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
            // A step below a millisecond is fine enough, and needs no more divisions.
            if self.step_ns == 0 || self.step_ns >= COARSE_NS {
                self.step_ns = gcd(time.ns().abs_diff(self.last.ns()), self.step_ns);
            }
        }
        self.latest = self.latest.max(time);
        self.last = time;
        self.requests += 1;
    }

    fn finish(
        self,
        times: &EventTimes,
        order: RecordOrder,
        numbers: Option<NumbersFound>,
        objects: Option<ObjectPlaces>,
    ) -> Survey {
        let is_coarse = self.step_ns >= COARSE_NS && self.shared * SHARED_ONE_IN >= self.requests;
        let line = |at: Position| at.line.unwrap_or(at.record);
        Survey {
            recordings: times.runs.max(1),
            second_recording_at: times.second.map(line),
            moved_requests: self.moved,
            moved_ns_max: self.moved_ns_max,
            granule_ns: is_coarse.then_some(self.step_ns),
            shared_times: self.shared,
            numbers,
            order,
            events_need_merge: times.needs_merge,
            objects,
        }
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Whether records are in order, and whether a window puts them there.
#[derive(Debug, Default)]
struct OrderCheck {
    waiting: ReorderBuffer<SimTime>,
    latest_in: SimTime,
    latest_out: SimTime,
    order: RecordOrder,
}

impl OrderCheck {
    #[inline]
    fn observe(&mut self, time: SimTime) {
        if self.order == RecordOrder::Merge {
            return;
        }
        if self.waiting.len() == WINDOW_RECORDS {
            let out = self.waiting.pop();
            self.take(out);
        }
        if time < self.latest_in {
            self.order = self.order.max(RecordOrder::Window);
        }
        self.latest_in = self.latest_in.max(time);
        self.waiting.push(time, time);
    }

    fn take(&mut self, out: Option<SimTime>) {
        let Some(out) = out else { return };
        if out < self.latest_out {
            self.order = RecordOrder::Merge;
        }
        self.latest_out = self.latest_out.max(out);
    }

    fn finish(mut self) -> RecordOrder {
        while self.order == RecordOrder::Window && self.waiting.len() > 0 {
            let out = self.waiting.pop();
            self.take(out);
        }
        self.order
    }
}

/// Numbers of blocks or objects, with their sizes.
#[derive(Debug)]
struct Numbered {
    question: NumbersQuestion,
    /// The most blocks of each number.
    blocks: BTreeMap<u64, u64>,
    blocks_max: u64,
    largest: u64,
}

impl Numbered {
    fn new(question: NumbersQuestion) -> Self {
        Self { question, blocks: BTreeMap::new(), blocks_max: 0, largest: 0 }
    }

    fn observe(&mut self, record: &Record) {
        if record.op == Op::Flush {
            return;
        }
        let (number, blocks) = (record.start.get(), record.blocks.get());
        self.largest = self.largest.max(number);
        self.blocks_max = self.blocks_max.max(blocks);
        if self.blocks.len() < OBJECTS_MAX || self.blocks.contains_key(&number) {
            let known = self.blocks.entry(number).or_default();
            *known = blocks.max(*known);
        }
    }

    fn finish(self) -> (Option<NumbersFound>, Option<ObjectPlaces>) {
        let found = self.found();
        let are_objects = found.name == Numbers::Objects;
        (Some(found), are_objects.then(|| ObjectPlaces::for_objects_of(self.blocks_max)))
    }

    fn found(&self) -> NumbersFound {
        let objects = |because| NumbersFound { name: Numbers::Objects, because };
        match self.question {
            NumbersQuestion::Answered(name) => NumbersFound { name, because: NumbersReason::Asked },
            NumbersQuestion::Open if self.largest > ADDRESSES_MAX => {
                objects(NumbersReason::BeyondDisks)
            }
            NumbersQuestion::Open if self.overlap() => objects(NumbersReason::Overlap),
            NumbersQuestion::Open if self.begin_anywhere() => objects(NumbersReason::Unaligned),
            NumbersQuestion::Open => {
                NumbersFound { name: Numbers::Addresses, because: NumbersReason::Aligned }
            }
        }
    }

    /// Whether numbers within a page of each other are reached over: requests to a disk that overlap do so
    /// by pages.
    fn overlap(&self) -> bool {
        let pairs = self.blocks.iter().zip(self.blocks.keys().skip(1));
        let reached = pairs.filter(|((number, blocks), next)| {
            *next - *number < PAGE_BLOCKS && *number + *blocks > **next
        });
        reached.count() as f64 > OVERLAP_SHARE * self.blocks.len() as f64
    }

    /// Whether nearly all objects are whole pages that begin anywhere in a page, as no file system has them.
    fn begin_anywhere(&self) -> bool {
        let whole = || self.blocks.iter().filter(|(_, blocks)| blocks.is_multiple_of(PAGE_BLOCKS));
        let mut places = [0usize; PAGE_BLOCKS as usize];
        whole().for_each(|(number, _)| places[(number % PAGE_BLOCKS) as usize] += 1);
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
        let (unit, run_gap) = (TimeUnit::Nanoseconds, SimDuration::ZERO);
        let how =
            How { unit, clock, run_gap, needs_merge: false, cache_hits: false, objects: None };
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
    fn requests_moved_are_counted_and_not_steps() {
        let second = [10, 20, 30, 40, 10, 20, 30, 40];
        let survey = of_times(&second, Clock::Absolute);
        assert_eq!((survey.moved_requests, survey.moved_ns_max), (3, 30));
        assert_eq!((survey.recordings, survey.order), (1, RecordOrder::Window));
        let survey = of_times(&second, Clock::FromStart);
        assert_eq!((survey.moved_requests, survey.recordings), (3, 2));
        assert_eq!(survey.order, RecordOrder::InOrder);
    }

    #[test]
    fn what_lies_farther_apart_than_the_window_needs_a_merge() {
        let of_volumes = |requests: u64| -> Vec<u64> {
            [0, 1].into_iter().flat_map(|_| (0..requests).map(|at| at * 10)).collect()
        };
        let order = |requests| of_times(&of_volumes(requests), Clock::Absolute).order;
        assert_eq!(order(WINDOW_RECORDS as u64 / 2), RecordOrder::Window);
        assert_eq!(order(WINDOW_RECORDS as u64 * 2), RecordOrder::Merge);
    }

    #[test]
    fn the_step_of_a_clock_counts_where_requests_share_times() {
        let granule = |times: &[u64]| of_times(times, Clock::FromStart).granule_ns;
        let second = 1_000_000_000;
        assert_eq!(granule(&[5, 5, 5 + second, 5 + 3 * second]), Some(second));
        // The timer of Windows ticks every 15.625 ms.
        assert_eq!(granule(&[0, 15_625_000, 15_625_000, 62_500_000]), Some(15_625_000));
        assert_eq!(granule(&[0, 999_999, 999_999, 1_999_998]), None);
        // One request a second is no bunch.
        assert_eq!(granule(&[0, second, 2 * second]), None);
        assert_eq!(granule(&[7, 7, 7]), None);
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
    fn pages_that_begin_anywhere_and_hashes_name_objects() {
        let mut prng = Prng::new(1, "numbers");
        let sparse: Vec<_> = (0..500).map(|_| (prng.below(10_000_000), 8)).collect();
        assert_eq!(numbers(&sparse), NumbersReason::Unaligned);
        assert_eq!(numbers(&[(7, 8), (1 << 50, 8)]), NumbersReason::BeyondDisks);
    }

    #[test]
    fn requests_to_a_partition_that_overlap_name_blocks() {
        // 4 KiB at whole pages from block 63, with longer ones that reach over the next.
        let mut prng = Prng::new(1, "numbers");
        let of_disk = (0..5000).map(|_| (63 + 8 * prng.below(20_000), 8 * (1 + prng.below(32))));
        assert_eq!(numbers(&of_disk.collect::<Vec<_>>()), NumbersReason::Aligned);
    }

    proptest! {
        #[test]
        fn a_window_is_enough_where_it_puts_the_times_in_order(
            times in prop::collection::vec(0u64..60, 1..80),
        ) {
            // The slow way: sort, and see whether it was sorted.
            let order = of_times(&times, Clock::Absolute).order;
            prop_assert_eq!(order == RecordOrder::InOrder, times.is_sorted());
            prop_assert_ne!(order, RecordOrder::Merge);
            let latest = |at: usize| times[..at].iter().max().copied().unwrap_or(0);
            let moved = (0..times.len()).filter(|&at| times[at] < latest(at)).count() as u64;
            prop_assert_eq!(of_times(&times, Clock::Absolute).moved_requests, moved);
        }
    }
}
