//! Progress of a run, on stderr: bars on a terminal, and elsewhere a line now and then.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{HumanDuration, MultiProgress, ProgressBar, ProgressState, ProgressStyle};

use crate::output;

const TEMPLATE: &str = "{msg:20} [{bar:20}] {percent:>3} %{left}";
/// Interval at which the time left is shown anew, even without a report.
const REDRAW: Duration = Duration::from_millis(250);
/// Least time between two lines of a task without a terminal: a shorter task prints none.
const SAY_EVERY: Duration = Duration::from_secs(10);

/// Basis of a task's remaining time.
#[derive(Debug, Clone, Copy, Default)]
pub enum RemainingTime {
    /// Progress alone.
    #[default]
    ByMeanRate,
    /// Too little has come to tell.
    Unknown,
    /// Somebody knows better.
    Expected(Duration),
    /// As things are it never ends, and why.
    Endless(&'static str),
}

/// A bar for each task that has reported, in order of their first report. All vanish at the end.
#[derive(Default)]
pub struct Bars {
    screen: MultiProgress,
    by_task: Mutex<BTreeMap<String, Task>>,
}

struct Task {
    bar: ProgressBar,
    said: LastUpdate,
    shown: Arc<Mutex<DisplayedState>>,
}

/// The shown state of a task besides its progress.
struct DisplayedState {
    /// Progress at the first report: earlier work has taken no time here.
    first: u64,
    rest: RemainingTime,
    remark: String,
}

/// Time of a task's last report, since its beginning.
#[derive(Default)]
struct LastUpdate(Duration);

impl LastUpdate {
    /// True if the next report is due.
    fn is_due(&mut self, elapsed: Duration) -> bool {
        let is_due = elapsed.saturating_sub(self.0) >= SAY_EVERY;
        if is_due {
            self.0 = elapsed;
        }
        is_due
    }
}

impl Bars {
    /// Reports that `done` of `total` of `task` are done; its bar vanishes at `total`. From any thread.
    pub fn set(&self, task: &str, done: u64, total: u64) {
        self.expect(task, done, total, RemainingTime::ByMeanRate);
    }

    /// Sets the progress of a task with this prediction of its remaining time.
    pub fn expect(&self, task: &str, done: u64, total: u64, rest: RemainingTime) {
        self.show(task, (done, total), rest, "");
    }

    /// Reports a task of which only the time is known. `left` is told how long it has taken, and says
    /// how much longer it takes, if anything tells.
    pub fn time(&self, task: &str, left: impl FnOnce(Duration) -> Option<Duration>) {
        let taken = {
            let tasks = self.by_task.lock().unwrap_or_else(PoisonError::into_inner);
            tasks.get(task).map_or(Duration::ZERO, |task| task.bar.elapsed())
        };
        match left(taken) {
            Some(left) => {
                let (done, total) = (taken.as_millis() as u64, (taken + left).as_millis() as u64);
                self.expect(task, done, total.max(done + 1), RemainingTime::Expected(left));
            }
            None => self.expect(task, 0, 1, RemainingTime::Unknown),
        }
    }

    /// Sets the progress, with a remark after the time left.
    pub fn remark(&self, task: &str, done: u64, total: u64, remark: &str) {
        self.show(task, (done, total), RemainingTime::ByMeanRate, remark);
    }

    fn show(&self, task: &str, (done, total): (u64, u64), rest: RemainingTime, remark: &str) {
        if done >= total {
            return self.finish(task);
        }
        let mut tasks = self.by_task.lock().unwrap_or_else(PoisonError::into_inner);
        let known = tasks.entry(task.to_owned()).or_insert_with(|| self.start(task, done, total));
        let Task { bar, said, shown } = known;
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.rest = rest;
        remark.clone_into(&mut shown.remark);
        if self.screen.is_hidden() && said.is_due(bar.elapsed()) {
            output::aside(&shown.line(task, done, total, bar.elapsed()));
        }
        // It may be drawn at once.
        drop(shown);
        bar.set_length(total);
        bar.set_position(done);
    }

    /// A remark beside the bars.
    pub fn say(&self, text: &str) {
        self.screen.suspend(|| output::note(text));
    }

    /// `task` is done.
    pub fn finish(&self, task: &str) {
        let tasks = self.by_task.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = tasks.get(task) {
            task.bar.finish_and_clear();
        }
    }

    fn start(&self, task: &str, first: u64, total: u64) -> Task {
        let style = ProgressStyle::with_template(TEMPLATE).expect("a constant template");
        let bar = self.screen.add(ProgressBar::new(total));
        let shown = DisplayedState { first, rest: RemainingTime::default(), remark: String::new() };
        let shown = Arc::new(Mutex::new(shown));
        let drawn = Arc::clone(&shown);
        let style = style.with_key("left", move |state: &ProgressState, text: &mut dyn Write| {
            // A bar that cannot be drawn is lost without harm.
            let total = state.len().unwrap_or_default();
            let drawn = drawn.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = text.write_str(&drawn.rest(state.pos(), total, state.elapsed()));
        });
        bar.set_style(style.progress_chars("=> "));
        bar.set_message(task.to_owned());
        bar.enable_steady_tick(REDRAW);
        Task { bar, said: LastUpdate::default(), shown }
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        let tasks = self.by_task.get_mut().unwrap_or_else(PoisonError::into_inner);
        tasks.values().for_each(|task| task.bar.finish_and_clear());
    }
}

impl DisplayedState {
    /// Progress of a task, in words.
    fn line(&self, task: &str, done: u64, total: u64, elapsed: Duration) -> String {
        let percent = 100 * u128::from(done) / u128::from(total);
        format!("{task}: {percent} %{}\n", self.rest(done, total, elapsed))
    }

    /// The text after the percentage.
    fn rest(&self, done: u64, total: u64, elapsed: Duration) -> String {
        let separator = if self.remark.is_empty() { "" } else { ", " };
        format!("{}{separator}{}", self.left(done, total, elapsed), self.remark)
    }

    /// The predicted time left, or the time at the mean rate so far; empty while neither is known. The rate
    /// of the last seconds would mislead where one step takes as long as a hundred others.
    fn left(&self, done: u64, total: u64, elapsed: Duration) -> String {
        let here = done.saturating_sub(self.first);
        let mean = elapsed.as_secs_f64() * (total.saturating_sub(done) as f64 / here as f64);
        let rest = match self.rest {
            RemainingTime::Endless(why) => return format!(", no end in sight: {why}"),
            RemainingTime::Unknown => return ", time left not known yet".into(),
            RemainingTime::Expected(rest) => Some(rest),
            RemainingTime::ByMeanRate => {
                Duration::try_from_secs_f64(mean).ok().filter(|_| here > 0)
            }
        };
        rest.map_or(String::new(), |rest| format!(", {} left", HumanDuration(rest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_update_due_every_long_interval() {
        let mut said = LastUpdate::default();
        let spoke: Vec<u64> =
            (0..400).filter(|tenth| said.is_due(Duration::from_millis(100 * tenth))).collect();
        assert_eq!(spoke, [100, 200, 300]);
        // Reports that come seldom: counted from the last line.
        let mut said = LastUpdate::default();
        let spoke: Vec<u64> =
            (0..60).step_by(7).filter(|&s| said.is_due(Duration::from_secs(s))).collect();
        assert_eq!(spoke, [14, 28, 42, 56]);
    }

    #[test]
    fn progress_line_has_share_and_time_left() {
        let line = |rest, done, total| {
            let shown = DisplayedState { first: 0, rest, remark: String::new() };
            shown.line("scrub", done, total, Duration::from_secs(60))
        };
        assert_eq!(line(RemainingTime::ByMeanRate, 1, 3), "scrub: 33 %, 2 minutes left\n");
        assert_eq!(line(RemainingTime::ByMeanRate, 0, 3), "scrub: 0 %\n");
        let expected = RemainingTime::Expected(Duration::from_secs(7200));
        assert_eq!(line(expected, 1, 3), "scrub: 33 %, 2 hours left\n");
        let endless = RemainingTime::Endless("no gaps");
        assert_eq!(line(endless, 1, 3), "scrub: 33 %, no end in sight: no gaps\n");
        assert_eq!(line(RemainingTime::Unknown, 1, 3), "scrub: 33 %, time left not known yet\n");
        let last = line(RemainingTime::ByMeanRate, u64::MAX - 1, u64::MAX);
        assert_eq!(last, "scrub: 99 %, 0 seconds left\n");
    }

    #[test]
    fn progress_rate_excludes_work_before_resume() {
        let remark = String::from("70 commands");
        let shown = DisplayedState { first: 60, rest: RemainingTime::ByMeanRate, remark };
        let line = |done| shown.line("zones", done, 100, Duration::from_secs(600));
        assert_eq!(line(70), "zones: 70 %, 30 minutes left, 70 commands\n");
        assert_eq!(line(60), "zones: 60 %, 70 commands\n");
    }
}
