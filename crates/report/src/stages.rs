//! Time of each stage, the same in a terminal and on a page.

use freewheel_sim::{HeadTime, RunResult};

use crate::numbers::{ms, percent};

/// The stages of a request in the order it goes through them.
pub struct StageTable {
    /// Heads of the columns: a stage's name, its time, and shares of head time.
    pub head: Vec<&'static str>,
    /// A row for each stage.
    pub rows: Vec<StageRow>,
}

/// A stage of requests.
pub struct StageRow {
    /// Name of the stage.
    pub stage: &'static str,
    /// Mean time of the stage in a request.
    pub ns_a_request: f64,
    /// Shares of head time; None for a stage in which no head takes part.
    pub shares: Option<Vec<f64>>,
}

/// The stages of this run.
pub fn stage_table(result: &RunResult) -> StageTable {
    let (stages, head) = (&result.stages, &result.head_time);
    let requests = result.response.count.max(1) as f64;
    let of_requests = stages.head_time();
    // Heads also write back, do what is promoted, pieces of requests that several arms serve, and
    // commands that a scheduler outside the drive makes for free work.
    let has_more = head != &of_requests;
    let wholes = [Some(&of_requests), has_more.then_some(head)];
    let row = |stage, ns: u128, share: Option<fn(&HeadTime) -> f64>| StageRow {
        stage,
        ns_a_request: ns as f64 / requests,
        shares: share.map(|share| wholes.into_iter().flatten().map(share).collect()),
    };
    let columns = ["stage", "ms a request", "of requests' head time", "of all that heads did"];
    StageTable {
        head: columns.into_iter().take(3 + usize::from(has_more)).collect(),
        rows: vec![
            row("queue", stages.queue_ns, None),
            row("overhead", stages.overhead_ns, None),
            row("seek", stages.seek_ns, Some(HeadTime::seek_share)),
            row("rotate", stages.rotate_ns, Some(HeadTime::rotate_share)),
            row("transfer", stages.transfer_ns, Some(HeadTime::transfer_share)),
            row("bus", stages.bus_ns, None),
        ],
    }
}

impl StageRow {
    /// Cells of the row in a table of this many columns.
    pub fn cells(&self, columns: usize) -> Vec<String> {
        let mut cells = vec![self.stage.to_owned(), ms(self.ns_a_request)];
        cells.extend(self.shares.iter().flatten().map(|&share| percent(share)));
        cells.resize(columns, String::new());
        cells
    }
}
