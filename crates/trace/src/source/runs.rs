//! Recordings one after another in one file, whose clock starts again with each.
//!
//! Goals: a second recording comes after the first, also where only its times tell that it is one; a single
//! item that was logged late is no second recording; memory for some items only.
//! Non-goals: recordings that ran at the same time on clocks of their own.
//!
//! A second recording shows by a header that comes again, or by a step back to the beginning: an item
//! before the latest one, in the first tenth of the recording's time or before it, from which the next items
//! go on, of a device that was there. Items that were logged late do not: after them the times return to
//! the latest one. The recording begins after the end of the one before it, by that one's mean time between
//! items.
//!
//! ```text
//! in the file   0 10 20 30 | 2 12 22         the clock starts again at the 2
//! delivered     0 10 20 30  40 50 60         30 + the mean gap of 10
//! ```

use std::collections::{BTreeSet, VecDeque};

use freewheel_units::{SimDuration, SimTime};

use super::{Position, Stop};
use crate::timed::Timed;

/// Items looked at to tell a second recording from an item that was logged late.
const AHEAD: usize = 16;
/// The first part of a recording, one in this many, counts as its beginning.
const BEGINNING_ONE_IN: u64 = 10;
/// Time from a recording of one item to the next recording.
const GAP_OF_ONE_ITEM: SimDuration = SimDuration::from_secs(1);

/// An item of a file, and where it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found<T> {
    pub item: T,
    pub at: Position,
    /// True if a header, or the end of a recording, stands in front of it.
    pub begins: bool,
}

/// Rules that tell recordings apart.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunOptions {
    /// The step of a coarse clock: recordings lie at least so far apart, and on one grid of steps. 0 for a
    /// fine clock.
    pub granule: SimDuration,
    /// True if a step back need not lead to the beginning.
    pub any_step_back: bool,
}

/// Puts the recordings of a file one after another.
#[derive(Debug)]
pub(crate) struct ClockRuns<T> {
    ahead: VecDeque<Found<T>>,
    run: Option<Run>,
    options: RunOptions,
    runs: u64,
    second: Option<Position>,
    /// Reason why no more could be read, until the items ahead are given.
    stop: Option<Stop>,
}

/// One recording so far, on its own clock but for `begin` and `end`.
#[derive(Debug)]
struct Run {
    first: SimTime,
    earliest: SimTime,
    latest: SimTime,
    last: SimTime,
    items: u64,
    /// Items that lie before the one in front of them.
    steps_back: u64,
    devices: BTreeSet<u32>,
    /// Place of `first` on the clock of all recordings.
    begin: SimTime,
    /// The latest time or end there.
    end: SimTime,
}

impl Run {
    fn new(first: SimTime, begin: SimTime) -> Self {
        Self {
            first,
            earliest: first,
            latest: first,
            last: first,
            items: 0,
            steps_back: 0,
            devices: BTreeSet::new(),
            begin,
            end: begin,
        }
    }

    fn take<T: Timed>(&mut self, item: T) -> T {
        self.items += 1;
        self.steps_back += u64::from(item.time() < self.last);
        self.last = item.time();
        if !self.devices.contains(&item.device()) {
            self.devices.insert(item.device());
        }
        self.earliest = self.earliest.min(item.time());
        self.latest = self.latest.max(item.time());
        let (first, begin) = (self.first, self.begin);
        let item = item.shifted(|time| shifted(time, first, begin));
        self.end = self.end.max(item.end().unwrap_or_else(|| item.time()));
        item
    }

    /// Mean time between its items.
    fn gap(&self) -> SimDuration {
        match self.items {
            0 | 1 => GAP_OF_ONE_ITEM,
            items => {
                let span = self.latest.saturating_since(self.earliest).ns();
                SimDuration::from_ns(span / (items - 1))
            }
        }
    }

    /// True if a time belongs to the beginning of this recording.
    fn begins_at(&self, time: SimTime) -> bool {
        let span = self.latest.saturating_since(self.earliest).ns();
        time.saturating_since(self.earliest).ns() <= span / BEGINNING_ONE_IN
    }
}

/// `time` on a clock on which `first` is `begin`. A time that has no place there stays at the border.
fn shifted(time: SimTime, first: SimTime, begin: SimTime) -> SimTime {
    let ns = match time.ns().checked_sub(first.ns()) {
        Some(after) => begin.ns().saturating_add(after),
        None => begin.ns().saturating_sub(first.ns() - time.ns()),
    };
    SimTime::from_ns(ns)
}

/// The first time from `begin` on that lies on the steps of a clock on which `time` lies.
fn on_grid(begin: u64, time: SimTime, granule: SimDuration) -> SimTime {
    let step = granule.ns().max(1);
    let (is, wanted) = (begin % step, time.ns() % step);
    let later = if wanted >= is { wanted - is } else { wanted + (step - is) };
    SimTime::from_ns(begin.saturating_add(later))
}

impl<T: Timed> ClockRuns<T> {
    pub fn new(options: RunOptions) -> Self {
        let ahead = VecDeque::with_capacity(AHEAD);
        Self { ahead, run: None, options, runs: 0, second: None, stop: None }
    }

    /// Recordings begun so far.
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// Place where the second recording begins.
    pub fn second(&self) -> Option<Position> {
        self.second
    }

    /// The next item of `read` that is due, with its times moved.
    pub fn next(
        &mut self,
        mut read: impl FnMut() -> Result<Option<Found<T>>, Stop>,
    ) -> Result<Option<(T, Position)>, Stop> {
        while self.stop.is_none() && self.ahead.len() < AHEAD {
            match read() {
                Ok(Some(found)) => self.ahead.push_back(found),
                Ok(None) => break,
                Err(stop) => self.stop = Some(stop),
            }
        }
        match self.pop() {
            Some(next) => Ok(Some(next)),
            None => self.stop.take().map_or(Ok(None), Err),
        }
    }

    fn pop(&mut self) -> Option<(T, Position)> {
        let found = self.ahead.pop_front()?;
        if self.begins_run(&found) {
            self.begin_run(&found);
        }
        let run = self.run.as_mut().expect("a recording has begun");
        Some((run.take(found.item), found.at))
    }

    fn begins_run(&self, found: &Found<T>) -> bool {
        let Some(run) = &self.run else { return true };
        let time = found.item.time();
        if time >= run.latest {
            return false;
        }
        let is_at_beginning = self.options.any_step_back || run.begins_at(time);
        found.begins || is_at_beginning && self.goes_on_from(run, &found.item)
    }

    /// True if the items ahead go on from `item`, which steps back to the beginning of `run`.
    fn goes_on_from(&self, run: &Run, item: &T) -> bool {
        // On one clock no request is logged that ended after something that was logged before it began.
        if item.end().is_some_and(|end| end >= run.latest) {
            return false;
        }
        // Other devices on one clock may follow one another, and so may a list in no order.
        if !run.devices.contains(&item.device()) || run.steps_back * 4 > run.items {
            return false;
        }
        let times = || {
            let ahead = self.ahead.iter().map(|found| found.item.time());
            std::iter::once(item.time()).chain(ahead)
        };
        let steps = || times().zip(times().skip(1));
        let before_latest = times().take_while(|&time| time < run.latest).count();
        // Where the times pass the latest in one leap, they return to where they were.
        let leap = steps().nth(before_latest - 1).map(|(from, to)| to.saturating_since(from));
        let back = run.latest.saturating_since(item.time());
        let returns = leap.is_some_and(|leap| leap.ns() > back.ns() / 2);
        let ascending = steps().filter(|(from, to)| from <= to).count();
        before_latest > 1 && !returns && ascending * 4 >= steps().count() * 3
    }

    fn begin_run(&mut self, found: &Found<T>) {
        let time = found.item.time();
        self.run = Some(match &self.run {
            None => Run::new(time, time),
            Some(before) => {
                let gap = before.gap().max(self.options.granule);
                let begin = before.end.ns().saturating_add(gap.ns());
                self.second = self.second.or(Some(found.at));
                Run::new(time, on_grid(begin, time, self.options.granule))
            }
        });
        self.runs += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Timed for (u64, Option<u64>) {
        fn time(&self) -> SimTime {
            SimTime::from_ns(self.0)
        }

        fn end(&self) -> Option<SimTime> {
            self.1.map(SimTime::from_ns)
        }

        fn device(&self) -> u32 {
            0
        }

        fn shifted(self, shift: impl Fn(SimTime) -> SimTime) -> Self {
            let shift = |ns| shift(SimTime::from_ns(ns)).ns();
            (shift(self.0), self.1.map(shift))
        }
    }

    fn run(items: &[(u64, Option<u64>, bool)]) -> (Vec<u64>, u64) {
        let mut runs = ClockRuns::new(RunOptions::default());
        let mut left = items.iter();
        let mut times = Vec::new();
        let found =
            |&(time, end, begins)| Found { item: (time, end), at: Position::default(), begins };
        while let Some(((time, _), _)) = runs.next(|| Ok(left.next().map(found))).unwrap() {
            times.push(time);
        }
        (times, runs.runs())
    }

    fn of_times(times: &[u64]) -> (Vec<u64>, u64) {
        let items: Vec<_> = times.iter().map(|&time| (time, None, false)).collect();
        run(&items)
    }

    #[test]
    fn restarted_clock_continues_after_mean_gap() {
        assert_eq!(of_times(&[5, 15, 25, 35, 2, 12, 22]), (vec![5, 15, 25, 35, 45, 55, 65], 2));
        // The gap of the second recording, and no longer that of the first, leads to the third.
        let (times, runs) = of_times(&[0, 100, 200, 3, 13, 23, 33, 1, 2]);
        assert_eq!((times, runs), (vec![0, 100, 200, 300, 310, 320, 330, 340, 341], 3));
    }

    #[test]
    fn late_items_start_no_recording() {
        for times in [
            &[0, 10, 20, 1][..],
            &[0, 50, 3, 51, 52],
            &[0, 100, 3, 4, 101, 102],
            &[0, 100, 50, 51, 52, 53],
            // Logged in no order, as by many threads.
            &[63, 5, 17, 2, 40, 33, 11, 60, 64, 70],
        ] {
            assert_eq!(of_times(times), (times.to_vec(), 1));
        }
    }

    #[test]
    fn overlapping_item_stays_on_same_clock() {
        // Logged by completion: eight requests waited for the first one that was logged.
        let items = [(90, 95)].into_iter().chain((0..8).map(|at| (at, 100 + at)));
        let items: Vec<_> = items.map(|(time, end)| (time, Some(end), false)).collect();
        assert_eq!(run(&items).1, 1);
        let again: Vec<_> = items.iter().map(|&(time, ..)| (time, Some(time), false)).collect();
        assert_eq!(run(&again).1, 2);
    }

    #[test]
    fn coarse_clock_recordings_stay_on_steps() {
        let granule = SimDuration::from_ns(10);
        let mut runs = ClockRuns::new(RunOptions { granule, ..RunOptions::default() });
        let items =
            [(0, Some(3), false), (20, Some(27), false), (10, Some(15), true), (20, None, false)];
        let mut left = items.into_iter();
        let found =
            |(time, end, begins)| Found { item: (time, end), at: Position::default(), begins };
        let mut times = Vec::new();
        while let Some(((time, _), _)) = runs.next(|| Ok(left.next().map(found))).unwrap() {
            times.push(time);
        }
        // 27 and a mean gap of 20 is 47, and 50 the next step.
        assert_eq!(times, [0, 20, 50, 60]);
    }

    #[test]
    fn repeated_header_begins_recording_when_clock_rewinds() {
        let of = |second| run(&[(0, None, false), (10, None, false), (second, None, true)]);
        assert_eq!(of(9), (vec![0, 10, 20], 2));
        // A log in two files on one clock.
        assert_eq!(of(15), (vec![0, 10, 15], 1));
    }

    #[test]
    fn recording_begins_after_previous_completion() {
        let items = [(0, Some(1), false), (10, Some(500), false), (0, Some(1), true)];
        assert_eq!(run(&items), (vec![0, 10, 510], 2));
    }

    proptest! {
        #[test]
        fn joined_recordings_follow_one_another(
            gaps in prop::collection::vec(prop::collection::vec(1u64..1000, 8..60), 1..5),
            starts in prop::collection::vec(0u64..100, 5),
        ) {
            let recording = |(start, gaps): (&u64, &Vec<u64>)| -> Vec<u64> {
                gaps.iter().scan(*start, |time, gap| { *time += gap; Some(*time) }).collect()
            };
            let recordings: Vec<Vec<u64>> = starts.iter().zip(&gaps).map(recording).collect();
            // A clock that begins anew within the first tenth, and several items before the end, tell it.
            let begins = |pair: &[Vec<u64>]| {
                let (before, after) = (&pair[0], &pair[1]);
                let (span, end) = (before.last().unwrap() - before[0], *before.last().unwrap());
                let leap = after.windows(2).find(|step| step[1] >= end);
                after[0].saturating_sub(before[0]) <= span / BEGINNING_ONE_IN
                    && after[1] < end
                    && leap.is_none_or(|step| step[1] - step[0] <= (end - after[0]) / 2)
            };
            prop_assume!(recordings.windows(2).all(begins));
            // The slow way: each recording alone, moved as a whole.
            let mut expected: Vec<u64> = recordings[0].clone();
            for pair in recordings.windows(2) {
                let (before, after) = (&pair[0], &pair[1]);
                let gap = (before.last().unwrap() - before[0]) / (before.len() as u64 - 1);
                let begin = expected.last().unwrap() + gap;
                expected.extend(after.iter().map(|time| begin + time - after[0]));
            }
            prop_assert_eq!(of_times(&recordings.concat()), (expected, recordings.len() as u64));
        }
    }
}
