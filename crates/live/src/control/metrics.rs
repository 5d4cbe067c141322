//! The server in the text format of Prometheus.

use std::fmt::{Display, Write};

use freewheel_host::tasks::TaskState;

use super::api::{Durations, FreeCost, Margin, MovementDirection, MovementEnd, ServerStatus, Task};

/// Media type of Prometheus' text format.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) fn text(status: &ServerStatus) -> String {
    let mut text = Text::default();
    let seen = &status.scheduling;
    let decided = &status.decisions;
    text.gauge(
        "freewheel_uptime_seconds",
        "Time since the server began.",
        seconds(status.uptime_ns),
    );
    for (name, help, value) in [
        ("gaps_total", "Gaps between foreground requests, by prediction.", seen.gaps),
        ("gaps_used_total", "Gaps in which free work was done.", seen.gaps_used),
        ("free_bytes_total", "Bytes moved for free work.", seen.free_blocks * 512),
        (
            "free_written_bytes_total",
            "Bytes of these that were written.",
            seen.free_written_blocks * 512,
        ),
        ("free_commands_total", "Commands of free work alone.", seen.free_commands),
        (
            "merged_commands_total",
            "Foreground commands with free work in them.",
            seen.merged_commands,
        ),
        ("predicted_commands_total", "Commands whose end was predicted.", seen.predicted_commands),
        ("late_commands_total", "Commands that ended one or more turns late.", seen.late_commands),
        ("decisions_exhausted_total", "Decisions that ran out of time.", decided.exhausted),
        ("decision_nodes_total", "Nodes that the searches of decisions visited.", decided.nodes),
        ("surprises_total", "Commands whose end the media cannot explain.", seen.surprises),
        ("lost_hits_total", "Buffer hits that free work has taken, by chance.", seen.lost_hits),
        ("gaps_left_total", "Gaps left to the drive because of their price.", seen.gaps_left),
        (
            "part_sector_writes_total",
            "Writes of parts of physical sectors.",
            seen.part_sector_writes,
        ),
    ] {
        text.counter(&format!("freewheel_{name}"), help, value);
    }
    let potential = "Rotational latency in gaps.";
    text.counter("freewheel_potential_seconds_total", potential, seconds(seen.potential_ns));
    let lost = "Time that lost buffer hits took longer.";
    text.counter("freewheel_lost_hit_seconds_total", lost, seconds(seen.lost_hit_ns));
    let delay = "Delays of requests by free work.";
    text.counter("freewheel_delay_seconds_total", delay, seconds(seen.delay_ns));
    free_cost(&mut text, status.free_cost.as_ref());
    let transfer = "Time of wanted blocks under the head in gaps.";
    text.counter("freewheel_transfer_seconds_total", transfer, seconds(seen.transfer_ns));
    text.summary("freewheel_response_seconds", "Response times of requests.", &status.responses);
    let errors = "Prediction errors of commands, without their sign.";
    text.summary("freewheel_prediction_error_seconds", errors, &status.prediction_errors);
    text.summary(
        "freewheel_decision_seconds",
        "Durations of decisions about gaps, with or without a task.",
        &decided.times,
    );
    margins(&mut text, &status.margins);
    tasks(&mut text, &status.tasks);
    text.0
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Cost of free work to clients; absent while too few requests tell.
fn free_cost(text: &mut Text, measured: Option<&FreeCost>) {
    let Some(FreeCost { cost: Some(cost), standard_error: Some(error), .. }) = measured else {
        return;
    };
    let help = "Share by which free work lengthens the mean response, as measured.";
    text.gauge("freewheel_free_cost_ratio", help, *cost);
    let help = "Standard error of freewheel_free_cost_ratio.";
    text.gauge("freewheel_free_cost_standard_error", help, *error);
}

fn margins(text: &mut Text, margins: &[Margin]) {
    type Value = fn(&Margin) -> f64;
    let rows: [(&str, &str, &str, Value); 3] = [
        ("seconds", "gauge", "Learned margin of movements to and from free work.", |margin| {
            margin.margin_ns as f64 / 1e9
        }),
        ("movements_total", "counter", "Movements that the margin was learned from.", |margin| {
            margin.movements as f64
        }),
        ("late_total", "counter", "Of these, movements that were a turn late.", |margin| {
            margin.late as f64
        }),
    ];
    for (name, kind, help, value) in rows {
        let name = format!("freewheel_margin_{name}");
        text.head(&name, kind, help);
        for margin in margins {
            let op = if margin.op == MovementEnd::Write { "write" } else { "read" };
            let from = margin.cylinders_min;
            let direction = match margin.direction {
                Some(MovementDirection::Inward) => "inward",
                Some(MovementDirection::Outward) => "outward",
                None => "none",
            };
            let labels = format!("op=\"{op}\",direction=\"{direction}\",cylinders_from=\"{from}\"");
            text.line(&format!("{name}{{{labels}}}"), value(margin));
        }
    }
}

fn tasks(text: &mut Text, tasks: &[Task]) {
    type Value = fn(&Task) -> Option<f64>;
    let rows: [(&str, &str, &str, Value); 9] = [
        ("running", "gauge", "Whether the task runs.", |task| {
            Some(f64::from(u8::from(task.state == TaskState::Running)))
        }),
        ("read_bytes_total", "counter", "Bytes read for the task.", |task| {
            Some((task.blocks_read * 512) as f64)
        }),
        ("left_bytes", "gauge", "Bytes still to be read in this round.", |task| {
            Some((task.blocks_left * 512) as f64)
        }),
        ("rounds_total", "counter", "Rounds that are complete.", |task| Some(task.rounds as f64)),
        ("unreadable_bytes", "gauge", "Bytes that could not be read.", |task| {
            Some((task.unreadable_blocks * 512) as f64)
        }),
        (
            "superseded_bytes_total",
            "counter",
            "Bytes that clients wrote before a refresh did.",
            |task| Some((task.refresh.as_ref()?.superseded_blocks * 512) as f64),
        ),
        ("differing_bytes", "gauge", "Bytes that a refresh read back differently.", |task| {
            Some((task.refresh.as_ref()?.differing_blocks * 512) as f64)
        }),
        ("unwritten_bytes", "gauge", "Bytes that a refresh could not write.", |task| {
            Some((task.refresh.as_ref()?.unwritten_blocks * 512) as f64)
        }),
        ("remaining_seconds", "gauge", "Predicted rest of the round.", |task| {
            task.remaining_ns.map(|ns| ns as f64 / 1e9)
        }),
    ];
    for (name, kind, help, value) in rows {
        let name = format!("freewheel_task_{name}");
        text.head(&name, kind, help);
        for task in tasks {
            if let Some(value) = value(task) {
                let kind = format!("{:?}", task.kind).to_lowercase();
                let labels = format!("{{task=\"{}\",kind=\"{kind}\"}}", task.id);
                text.line(&format!("{name}{labels}"), value);
            }
        }
    }
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // A string takes all that is written to it.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, value: impl Display) {
        let _ = writeln!(self.0, "{name} {value}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "gauge", help);
        self.line(name, value);
    }

    fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "counter", help);
        self.line(name, value);
    }

    fn summary(&mut self, name: &str, help: &str, durations: &Durations) {
        self.head(name, "summary", help);
        for (quantile, ns) in [
            ("0.5", durations.p50_ns),
            ("0.9", durations.p90_ns),
            ("0.99", durations.p99_ns),
            ("0.999", durations.p999_ns),
        ] {
            self.line(&format!("{name}{{quantile=\"{quantile}\"}}"), ns as f64 / 1e9);
        }
        self.line(&format!("{name}_sum"), durations.mean_ns * durations.count as f64 / 1e9);
        self.line(&format!("{name}_count"), durations.count);
    }
}
