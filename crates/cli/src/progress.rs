//! Progress bars on stderr; hidden when it is not a terminal.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

const TEMPLATE: &str = "{msg:24} [{bar:32}] {percent:>3} %  {eta} left";
/// The time left is shown anew this often, also when nothing was reported.
const REDRAW: Duration = Duration::from_millis(250);

/// A bar for each task that has reported, in order of their first report. All vanish at the end.
#[derive(Default)]
pub struct Bars {
    screen: MultiProgress,
    by_task: Mutex<BTreeMap<String, ProgressBar>>,
}

impl Bars {
    /// `task` has done so much; its bar vanishes when that is all. From any thread.
    pub fn set(&self, task: &str, done: u64, total: u64) {
        if done >= total {
            return self.finish(task);
        }
        let mut bars = self.by_task.lock().unwrap_or_else(PoisonError::into_inner);
        let bar = bars.entry(task.to_owned()).or_insert_with(|| self.start(task, total));
        bar.set_length(total);
        bar.set_position(done);
    }

    /// `task` is done.
    pub fn finish(&self, task: &str) {
        let bars = self.by_task.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = bars.get(task) {
            bar.finish_and_clear();
        }
    }

    fn start(&self, task: &str, total: u64) -> ProgressBar {
        let style = ProgressStyle::with_template(TEMPLATE).expect("a constant template");
        let bar = self.screen.add(ProgressBar::new(total));
        bar.set_style(style.progress_chars("=> "));
        bar.set_message(task.to_owned());
        bar.enable_steady_tick(REDRAW);
        bar
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        let bars = self.by_task.get_mut().unwrap_or_else(PoisonError::into_inner);
        bars.values().for_each(ProgressBar::finish_and_clear);
    }
}
