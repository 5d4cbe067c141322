//! Progress of a study, and the rest of its time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A part of some work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount {
    /// Done so far.
    pub done: u64,
    /// Estimate of the whole.
    pub total: u64,
}

impl Amount {
    /// The rest as a multiple of what is done; None at the beginning.
    fn left(self) -> Option<f64> {
        let left = self.total.saturating_sub(self.done);
        (self.done > 0).then(|| left as f64 / self.done as f64)
    }
}

/// Progress of a study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StudyProgress {
    /// First pass over the trace, in bytes of the file.
    Reading(Amount),
    /// Fitting the drive, in drives tried of the most that may be.
    Fitting(Amount),
    /// Work that follows.
    Working(StudyWork),
}

/// Work of a study after its first pass. The estimate of a scrub is one long run on a separate core; the
/// runs of the trace share the others, and all cores when it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StudyWork {
    /// Runs of the trace, in thousandths of a run. The total falls when a search ends early.
    pub runs: Amount,
    /// The estimate of a scrub, in no unit; None where none is made.
    pub scrub: Option<Amount>,
}

impl StudyWork {
    fn is_scrubbing(&self) -> bool {
        self.scrub.is_some_and(|scrub| scrub.done < scrub.total)
    }
}

/// Predicts how much longer a study works. The time is an argument.
#[derive(Debug)]
pub struct RemainingWork {
    threads: f64,
    scrub_ended: Option<Duration>,
}

impl Default for RemainingWork {
    /// A prediction for a study on the threads of this process.
    fn default() -> Self {
        Self::new(rayon::current_num_threads())
    }
}

impl RemainingWork {
    /// A prediction for a study that runs on this many threads.
    pub fn new(threads: usize) -> Self {
        Self { threads: threads.max(1) as f64, scrub_ended: None }
    }

    /// Time left at `now`, counted from the beginning of the work. None before the first runs, and on one
    /// thread before the end of the scrub.
    pub fn after(&mut self, now: Duration, work: StudyWork) -> Option<Duration> {
        let scrubbed = if work.is_scrubbing() {
            now
        } else {
            *self.scrub_ended.get_or_insert(if work.scrub.is_some() { now } else { Duration::ZERO })
        };
        let (now, scrubbed) = (now.as_secs_f64(), scrubbed.as_secs_f64());
        // Processor time of the runs until now, and of those left at the same price.
        let runs_had = self.threads * now - scrubbed;
        let runs_left = runs_had * work.runs.left()?;
        let scrub_left = match work.scrub.filter(|_| work.is_scrubbing()) {
            Some(scrub) => now * scrub.left()?,
            None => 0.0,
        };
        // The scrub cannot be divided, so it may be what all wait for.
        let left = scrub_left.max((scrub_left + runs_left) / self.threads);
        (runs_had > 0.0).then(|| Duration::try_from_secs_f64(left).ok()).flatten()
    }
}

/// Progress may be reported from several threads.
pub type ProgressSink<'a> = &'a (dyn Fn(StudyProgress) + Sync);

/// Thousandths of a run.
const RUN: u64 = 1_000;

/// Receives how far the runs and the scrub are together, from any thread.
pub(crate) struct WorkCounter<'a> {
    runs_done: AtomicU64,
    runs_total: AtomicU64,
    /// Done and total of the estimate of a scrub, where one is made.
    scrub: Option<[AtomicU64; 2]>,
    report: ProgressSink<'a>,
}

impl<'a> WorkCounter<'a> {
    /// Work with the estimate of a scrub or without one.
    pub fn new(has_scrub: bool, report: ProgressSink<'a>) -> Self {
        let (runs_done, runs_total) = Default::default();
        let scrub = has_scrub.then(|| [AtomicU64::new(0), AtomicU64::new(1)]);
        Self { runs_done, runs_total, scrub, report }
    }

    /// Adds runs to those to come.
    pub fn expect(&self, runs: usize) {
        self.runs_total.fetch_add(runs as u64 * RUN, Ordering::Relaxed);
    }

    /// Takes runs away that were expected and are not made.
    pub fn forgo(&self, runs: usize) {
        self.runs_total.fetch_sub(runs as u64 * RUN, Ordering::Relaxed);
        self.report();
    }

    /// Begins an expected run, which counts as this number of them.
    pub fn begin(&self, runs: usize) -> OneRun<'_> {
        OneRun { counter: self, whole: runs as u64 * RUN, reported: AtomicU64::new(0) }
    }

    /// Reports the scrub, in any unit.
    pub fn scrub_at(&self, done: u64, total: u64) {
        if let Some([of_done, of_total]) = &self.scrub {
            of_done.store(done, Ordering::Relaxed);
            of_total.store(total, Ordering::Relaxed);
        }
        self.report();
    }

    fn report(&self) {
        let runs = amount(&self.runs_done, &self.runs_total);
        let scrub = self.scrub.as_ref().map(|[done, total]| amount(done, total));
        (self.report)(StudyProgress::Working(StudyWork { runs, scrub }));
    }
}

fn amount(done: &AtomicU64, total: &AtomicU64) -> Amount {
    Amount { done: done.load(Ordering::Relaxed), total: total.load(Ordering::Relaxed) }
}

/// A run under way. It counts as whole when it is dropped.
pub(crate) struct OneRun<'a> {
    counter: &'a WorkCounter<'a>,
    whole: u64,
    reported: AtomicU64,
}

impl OneRun<'_> {
    /// Reports the run, in any unit.
    pub fn at(&self, done: u64, total: u64) {
        let thousandths =
            u128::from(done.min(total)) * u128::from(self.whole) / u128::from(total.max(1));
        self.count(thousandths as u64);
    }

    fn count(&self, thousandths: u64) {
        let before = self.reported.fetch_max(thousandths, Ordering::Relaxed);
        let more = thousandths.saturating_sub(before);
        if more > 0 {
            self.counter.runs_done.fetch_add(more, Ordering::Relaxed);
            self.counter.report();
        }
    }
}

impl Drop for OneRun<'_> {
    fn drop(&mut self) {
        self.count(self.whole);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Plays a study on a simulated clock: runs with their lengths in seconds, and a scrub beside them.
    /// Checks every prediction after a tenth of the whole. Until eight tenths of the runs are done, `forgone`
    /// more are expected: then the rest may seem longer, but not shorter.
    fn play(threads: usize, scrub_s: Option<f64>, runs_s: &[f64], forgone: usize) {
        const STEP_S: f64 = 0.01;
        let (mut waiting, mut now) = (runs_s.iter().copied(), 0.0);
        let mut predicted = Vec::new();
        let mut remaining = RemainingWork::new(threads);
        let (mut active, mut runs_done, mut scrub_s_done) = (Vec::<(f64, f64)>::new(), 0.0, 0.0);
        loop {
            let is_scrubbing = scrub_s.is_some_and(|whole| scrub_s_done < whole);
            let cores = threads - usize::from(is_scrubbing);
            while active.len() < cores {
                let Some(run_s) = waiting.next() else { break };
                active.push((run_s, run_s));
            }
            if active.is_empty() && !is_scrubbing {
                break;
            }
            now += STEP_S;
            scrub_s_done += STEP_S;
            for (left, whole) in &mut active {
                *left -= STEP_S;
                runs_done += STEP_S / *whole;
            }
            active.retain(|&(left, _)| left > 1e-9);
            let is_certain = runs_done > 0.8 * runs_s.len() as f64;
            let expected = runs_s.len() + if is_certain { 0 } else { forgone };
            let amount = |done: f64, total: f64| Amount {
                done: (1000.0 * done.min(total)).round() as u64,
                total: (1000.0 * total) as u64,
            };
            let work = StudyWork {
                runs: amount(runs_done, expected as f64),
                scrub: scrub_s.map(|whole| amount(scrub_s_done / whole, 1.0)),
            };
            let too_long = if is_certain || forgone == 0 { 4.0 / 3.0 } else { f64::INFINITY };
            predicted.push((now, too_long, remaining.after(Duration::from_secs_f64(now), work)));
        }
        let end = now;
        for (now, too_long, left) in predicted {
            let is_due = now > 0.1 * end && now < 0.95 * end;
            let Some(left) = left.filter(|_| is_due) else {
                assert!(!is_due, "nothing is known at {now} of {end} s");
                continue;
            };
            let (left, truth) = (left.as_secs_f64(), end - now);
            let right = 2.0 / 3.0 * truth..=too_long * truth;
            let margin = runs_s.iter().copied().fold(0.0, f64::max);
            let near = right.contains(&left) || (left - truth).abs() < margin;
            assert!(near, "{left} s left at {now} s, where {truth} s are left");
        }
    }

    #[test]
    fn progress_time_left_within_third() {
        let alike = [0.3; 60];
        let unlike: Vec<f64> = (0..60).map(|run| 0.1 + 0.05 * f64::from(run * 7 % 13)).collect();
        for runs in [&alike[..], &unlike] {
            for threads in [2, 4, 8] {
                // Longer than the runs, as long, shorter, and none.
                for scrub_s in [Some(40.0), Some(10.0), Some(2.0), None] {
                    play(threads, scrub_s, runs, 0);
                }
                play(threads, Some(5.0), runs, 10);
            }
        }
        play(1, None, &alike, 0);
    }

    #[test]
    fn progress_silent_before_first_evidence() {
        let mut remaining = RemainingWork::new(2);
        let work = |runs, scrub| StudyWork {
            runs: Amount { done: runs, total: 10 },
            scrub: Some(Amount { done: scrub, total: 10 }),
        };
        let now = Duration::from_secs(1);
        assert_eq!(remaining.after(now, work(0, 1)), None);
        assert_eq!(remaining.after(now, work(1, 0)), None);
        assert_eq!(remaining.after(now, work(1, 1)), Some(Duration::from_secs(9)));
        assert_eq!(RemainingWork::new(1).after(now, work(1, 1)), None, "the scrub had the core");
    }

    #[test]
    fn progress_adds_runs_of_any_unit() {
        let last = Mutex::new(None);
        let report = |progress: StudyProgress| *last.lock().unwrap() = Some(progress);
        let counter = WorkCounter::new(false, &report);
        counter.expect(3);
        let first = counter.begin(1);
        first.at(1, 4);
        drop(counter.begin(1));
        let runs = |done, total| {
            let runs = Amount { done, total };
            Some(StudyProgress::Working(StudyWork { runs, scrub: None }))
        };
        assert_eq!(*last.lock().unwrap(), runs(1_250, 3_000));
        counter.forgo(1);
        first.at(u64::MAX, u64::MAX);
        drop(first);
        assert_eq!(*last.lock().unwrap(), runs(2_000, 2_000));
    }
}
