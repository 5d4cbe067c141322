//! Report of a server's work, in numbers for people and programs.

use freewheel_host::{Account, FreeCost, MarginInUse};
use freewheel_model::stats::Summary;
use freewheel_units::SimTime;
use serde::Serialize;

use super::api::{Decisions, Task};
use crate::nbd::Served;
use crate::serve::Report;

/// Work of a server from its start to its end. It serialises.
#[derive(Debug, Clone, Serialize)]
pub struct ServerReport {
    /// Time from start to end.
    pub elapsed_ns: u64,
    /// Response times of foreground requests.
    pub responses: Summary,
    /// Observations and work of the scheduler.
    pub host: Account,
    /// Learned margins of free work.
    pub margins: Vec<MarginInUse>,
    /// Cost of free work to clients, as measured in slots without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_cost: Option<FreeCost>,
    /// Cost of the decisions about gaps.
    pub decisions: Decisions,
    /// Distance of commands' ends from their predictions, either way.
    pub prediction_errors: Summary,
    /// Background tasks, in the order in which they were asked for.
    pub tasks: Vec<Task>,
    /// Connections of clients.
    pub connections: Served,
}

impl ServerReport {
    /// The report of a scheduler that has ended, and what became of its clients' connections.
    pub fn new(report: &Report, connections: Served) -> Self {
        let elapsed_ns = report.elapsed.as_nanos() as u64;
        let end = SimTime::from_ns(elapsed_ns);
        Self {
            elapsed_ns,
            responses: report.responses.summary(),
            host: report.account,
            margins: report.margins.clone(),
            free_cost: report.free_cost,
            decisions: Decisions::new(&report.decisions),
            prediction_errors: report.errors.summary(),
            tasks: report.tasks.iter().map(|task| Task::new(task, end)).collect(),
            connections,
        }
    }
}
