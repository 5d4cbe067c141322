//! A server, its tasks and what they found, in words and tables.
//!
//! Servers lie in a layer that this crate does not see, so it takes their numbers.

mod blocks;
mod changes;
mod sample;
mod task;

use freewheel_model::stats::Summary;
use freewheel_units::{Bytes, grouped};

use crate::numbers::{average, ms, percent, short_time, span, spread};
use crate::table::Table;

use blocks::amount;
pub use blocks::block_range;
pub use changes::ServedChanges;
pub use sample::{ServedSample, ServedShare, ServedTenths};
pub use task::{ExpectedEnd, RefreshedBlocks, ServedTask, TaskStage};

/// Numbers of a server.
#[derive(Debug, Clone, Default)]
pub struct ServerNumbers {
    /// Name of the drive.
    pub drive: String,
    /// Time since its begin.
    pub elapsed_ns: u64,
    /// Response times of clients' requests.
    pub responses: Summary,
    /// Prediction errors of commands, without their sign.
    pub prediction_errors: Summary,
    /// Commands whose end was predicted.
    pub predicted: u64,
    /// Predicted commands that ended within 150 us of it.
    pub within_150us: u64,
    /// Predicted commands that ended turns late.
    pub late: u64,
    /// Commands whose end the media cannot explain.
    pub surprises: u64,
    /// Writes of parts of sectors.
    pub part_sector_writes: u64,
    /// Size of a sector of the media.
    pub sector_bytes: u64,
    /// Gaps between requests.
    pub gaps: u64,
    /// Gaps with free work.
    pub gaps_used: u64,
    /// Gaps that were left to the drive.
    pub gaps_left: u64,
    /// Blocks moved in gaps.
    pub free_blocks: u64,
    /// Delays of clients by free work.
    pub delay_ns: f64,
    /// Buffer hits that free work took from clients.
    pub lost_hits: u64,
    /// Time of these hits.
    pub lost_hit_ns: f64,
    /// Measured cost of free work in words.
    pub measured_cost: Option<String>,
    /// Cost of its decisions about gaps.
    pub decisions: ServedDecisions,
    /// Learned margins; None where none were.
    pub margins: Option<ServedMargins>,
    /// Background tasks.
    pub tasks: Vec<ServedTask>,
}

/// Decisions about gaps.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServedDecisions {
    /// Number of decisions.
    pub count: u64,
    /// Decisions that ran out of time.
    pub exhausted: u64,
    /// Nodes that the searches visited.
    pub nodes: u64,
    /// Time before the drive needs a command at which its decision begins.
    pub before_ns: u64,
    /// Median of the durations.
    pub p50_ns: u64,
    /// 99th percentile of the durations.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// Learned margins of all kinds of movements.
#[derive(Debug, Clone, Copy)]
pub struct ServedMargins {
    /// The smallest.
    pub least_ns: u64,
    /// The largest.
    pub most_ns: u64,
    /// Movements that they were learned from.
    pub movements: u64,
    /// Movements that were a turn late.
    pub late: u64,
}

impl ServerNumbers {
    /// A server that runs: what it has done, and its tasks.
    pub fn status(&self) -> String {
        let mut table = Table::new("ll");
        let served = span(self.elapsed_ns as f64 / 1e9);
        table.row(["drive", &format!("{}, served for {served}", self.drive)]);
        let responses = &self.responses;
        table.row(["responses", &format!("{}, {}", grouped(responses.count), times(responses))]);
        let [median, most] =
            [self.prediction_errors.p50_ns, self.prediction_errors.p99_ns].map(of_ns);
        let predictions = format!(
            "off by {median} in the median, by {most} at most in 99 of 100; {} surprises",
            grouped(self.surprises)
        );
        table.row(["predictions", &predictions]);
        if self.part_sector_writes > 0 {
            let size = Bytes::new(self.sector_bytes);
            let text = format!("{}: sectors are {size}", self.part_sectors());
            table.row(["part-sector writes", &text]);
        }
        let used_for = format!("{} for {}", self.gaps_used(), amount(self.free_blocks));
        table.row(["gaps", &used_for]);
        table.row(["left to the drive", &grouped(self.gaps_left)]);
        table.row(["charged", &self.charged()]);
        if let Some(cost) = &self.measured_cost {
            table.row(["measured", cost]);
        }
        if self.decisions.count > 0 {
            table.row(["decisions", &self.decisions.words()]);
        }
        if self.tasks.is_empty() {
            return format!("{table}no tasks\n");
        }
        let mut tasks = Table::new("rllrrrrr");
        tasks.row(task::HEAD);
        self.tasks.iter().for_each(|task| tasks.row(task.cells()));
        format!("{table}\n{tasks}")
    }

    /// A server that has ended: what it did, and what became of its tasks.
    pub fn summary(&self) -> String {
        let responses = &self.responses;
        let mut table = Table::new("ll");
        table.row(["foreground", &format!("{} requests", grouped(responses.count))]);
        if responses.count > 0 {
            table.row(["response", &times(responses)]);
        }
        if self.predicted > 0 {
            let [within, late] = [self.within_150us, self.late]
                .map(|count| percent(count as f64 / self.predicted as f64));
            let predicted = grouped(self.predicted);
            table.row([
                "predicted",
                &format!("{predicted}, {within} within 150 us, {late} turns late"),
            ]);
        }
        table.row(["surprises", &grouped(self.surprises)]);
        if self.part_sector_writes > 0 {
            table.row(["part-sector writes", &self.part_sectors()]);
        }
        table.row(["gaps", &self.gaps_used()]);
        if self.gaps_used > 0 {
            let left = grouped(self.gaps_left);
            table.row(["charged", &format!("{}; {left} gaps left to the drive", self.charged())]);
        }
        if self.decisions.count > 0 {
            table.row(["decisions", &self.decisions.words()]);
        }
        if let Some(margins) = &self.margins {
            table.row(["margins", &margins.words()]);
        }
        self.tasks.iter().for_each(|task| table.row(task.last_row()));
        if let Some(cost) = self.measured_cost.as_ref().filter(|_| self.gaps_used > 0) {
            table.row(["measured", cost]);
        }
        table.to_string()
    }

    fn part_sectors(&self) -> String {
        format!("{}, each a turn more", grouped(self.part_sector_writes))
    }

    fn gaps_used(&self) -> String {
        format!("{}, of them {} used", grouped(self.gaps), grouped(self.gaps_used))
    }

    fn charged(&self) -> String {
        let [delay, lost] = [self.delay_ns, self.lost_hit_ns].map(|ns| format!("{} ms", ms(ns)));
        format!("{delay} of delays, {lost} of {} lost buffer hits", grouped(self.lost_hits))
    }
}

impl ServedDecisions {
    fn words(&self) -> String {
        let Self { count, exhausted, nodes, before_ns, p50_ns, p99_ns, max_ns } = *self;
        let (all, exhausted) = (grouped(count), grouped(exhausted));
        let times = spread(p50_ns, p99_ns, max_ns);
        let nodes_mean = average(nodes as f64 / count.max(1) as f64);
        let before = short_time(before_ns);
        format!(
            "{all}, {times}; looking at {nodes_mean} nodes of the search on average, each a part of the \
             drive, {exhausted} stopped for want of time, begun {before} before the drive needs a command"
        )
    }
}

impl ServedMargins {
    fn words(&self) -> String {
        let [least, most] = [self.least_ns, self.most_ns].map(short_time);
        let [movements, late] = [self.movements, self.late].map(grouped);
        format!("{least} to {most}, learned from {movements} movements, {late} of them late")
    }
}

fn of_ns(ns: u64) -> String {
    format!("{} ms", ms(ns as f64))
}

/// Mean and quantiles of responses.
fn times(summary: &Summary) -> String {
    let [p50, p99] = [summary.p50_ns, summary.p99_ns].map(of_ns);
    format!("mean {} ms, p50 {p50}, p99 {p99}", ms(summary.mean_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> ServerNumbers {
        ServerNumbers {
            drive: "atlas10k".into(),
            elapsed_ns: 3_000_000_000,
            responses: Summary { count: 1200, mean_ns: 12_340_000.0, ..Summary::default() },
            predicted: 200,
            within_150us: 150,
            gaps: 1000,
            gaps_used: 10,
            delay_ns: 123_456.0,
            decisions: ServedDecisions {
                count: 4,
                nodes: 50,
                before_ns: 40_000,
                ..Default::default()
            },
            margins: Some(ServedMargins {
                least_ns: 50_000,
                most_ns: 320_500,
                movements: 9,
                late: 1,
            }),
            ..ServerNumbers::default()
        }
    }

    #[test]
    fn same_quantity_same_words_while_server_runs_and_when_it_has_ended() {
        let (status, summary) = (server().status(), server().summary());
        for words in [
            "mean 12.3 ms, p50 0.00 ms",
            "1,000, of them 10 used",
            "0.12 ms of delays, 0.00 ms of 0 lost buffer hits",
            "looking at 12.5 nodes of the search on average",
            "begun 40.0 us before the drive needs a command",
        ] {
            assert!(
                status.contains(words) && summary.contains(words),
                "{words}: {status}{summary}"
            );
        }
        assert!(status.contains("atlas10k, served for 3.0 s") && status.ends_with("no tasks\n"));
        assert!(summary.contains("200, 75 % within 150 us, 0 % turns late"), "{summary}");
        assert!(summary.contains("50.0 us to 320 us, learned from 9 movements"), "{summary}");
    }

    #[test]
    fn tasks_stand_in_rows_of_their_own() {
        let task = ServedTask { id: 3, kind: "scrub", state: "running", ..ServedTask::default() };
        let server = ServerNumbers { tasks: vec![task], ..server() };
        assert!(server.status().contains("task  kind   state"), "{}", server.status());
        assert!(server.summary().contains("scrub 3"), "{}", server.summary());
    }
}
