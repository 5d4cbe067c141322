//! Words of [`freewheel_report`] for what a server and its clients say of it.

use std::ops::Range;

use freewheel_freeblock::tasks::TaskKind;
use freewheel_host::MarginInUse;
use freewheel_host::tasks::TaskState;
use freewheel_live::backup::ChangesByCause;
use freewheel_live::control::{
    BlockRange, Decisions, Durations, Refresh, SampleReport, SampleResult, ServerReport,
    ServerStatus, ShareEstimate, Task,
};
use freewheel_model::stats::Summary;
use freewheel_report::{
    ExpectedEnd, RefreshedBlocks, ServedChanges, ServedDecisions, ServedMargins, ServedSample,
    ServedShare, ServedTask, ServedTenths, ServerNumbers, TaskStage, block_range,
};

use crate::control::InWords;

impl InWords for BlockRange {
    fn in_words(&self) -> String {
        block_range(&range(self))
    }
}

/// A task that is over.
impl InWords for Task {
    fn in_words(&self) -> String {
        task_numbers(self).summary()
    }
}

/// A server that runs, and its tasks.
impl InWords for ServerStatus {
    fn in_words(&self) -> String {
        let seen = &self.scheduling;
        let tasks = self.tasks.iter().map(|task| {
            let remaining_ns = task.remaining_ns.filter(|_| !self.starves(task));
            ServedTask { remaining_ns, ..task_numbers(task) }
        });
        let numbers = ServerNumbers {
            drive: self.drive.clone(),
            elapsed_ns: self.uptime_ns,
            responses: summary(&self.responses),
            prediction_errors: summary(&self.prediction_errors),
            surprises: seen.surprises,
            part_sector_writes: seen.part_sector_writes,
            sector_bytes: self.sectors.physical_bytes.into(),
            gaps: seen.gaps,
            gaps_used: seen.gaps_used,
            gaps_left: seen.gaps_left,
            free_blocks: seen.free_blocks,
            delay_ns: seen.delay_ns as f64,
            lost_hits: seen.lost_hits,
            lost_hit_ns: seen.lost_hit_ns as f64,
            measured_cost: self.free_cost.map(|cost| cost.to_string()),
            decisions: decision_numbers(&self.decisions),
            tasks: tasks.collect(),
            ..ServerNumbers::default()
        };
        numbers.status()
    }
}

/// A server that has ended.
impl InWords for ServerReport {
    fn in_words(&self) -> String {
        let seen = &self.host;
        let numbers = ServerNumbers {
            elapsed_ns: self.elapsed_ns,
            responses: self.responses,
            prediction_errors: self.prediction_errors,
            predicted: seen.predicted,
            within_150us: seen.within_150us,
            late: seen.late,
            surprises: seen.surprises,
            part_sector_writes: seen.part_sector_writes,
            gaps: seen.gaps,
            gaps_used: seen.gaps_used,
            gaps_left: seen.gaps_left,
            delay_ns: seen.delay_ns as f64,
            lost_hits: seen.lost_hits,
            lost_hit_ns: seen.lost_hit_ns as f64,
            measured_cost: self.free_cost.map(|cost| cost.to_string()),
            decisions: decision_numbers(&self.decisions),
            margins: margin_numbers(&self.margins),
            tasks: self.tasks.iter().map(task_numbers).collect(),
            ..ServerNumbers::default()
        };
        numbers.summary()
    }
}

/// Changes between two scrubs.
impl InWords for ChangesByCause {
    fn in_words(&self) -> String {
        let changes = ServedChanges {
            written: ranges(&self.written),
            silently: ranges(&self.silently),
            unknown: ranges(&self.unknown),
            not_comparable: ranges(&self.not_comparable),
        };
        changes.text()
    }
}

/// A sample, and what it says of all blocks.
impl InWords for (&SampleReport, &SampleResult) {
    fn in_words(&self) -> String {
        let (report, result) = self;
        let tenths = result.bias.as_ref().map(|bias| ServedTenths {
            relative: bias.relative.clone(),
            chi_square: bias.chi_square,
            chi_square_by_chance: bias.chi_square_by_chance,
        });
        let sample = ServedSample {
            seed: report.seed,
            unit_bytes: report.unit_bytes,
            population: report.population,
            drawn: report.drawn,
            drawn_blocks: result.drawn_blocks,
            delivered_blocks: result.delivered_blocks,
            tenths,
            zero: share_numbers(&result.zero),
            unreadable: share_numbers(&result.unreadable),
        };
        sample.text()
    }
}

fn range(range: &BlockRange) -> Range<u64> {
    range.first_block..range.first_block + range.blocks
}

fn ranges(all: &[BlockRange]) -> Vec<Range<u64>> {
    all.iter().map(range).collect()
}

fn task_numbers(task: &Task) -> ServedTask {
    let stage = match task.state {
        TaskState::Waiting => TaskStage::Waiting,
        TaskState::Running if task.promoted => TaskStage::Promoted,
        TaskState::Running => TaskStage::Running,
        TaskState::Done | TaskState::Aborted | TaskState::Failed | TaskState::Lost => {
            TaskStage::Over
        }
    };
    let expectations = task.expectations.iter().map(|expectation| ExpectedEnd {
        percent: expectation.percent,
        expected_ns: expectation.expected_ns,
        in_fact: expectation.took_ns.zip(expectation.error),
    });
    ServedTask {
        id: task.id,
        kind: task.kind.word(),
        state: task.state.word(),
        stage,
        copies_before_writes: task.kind == TaskKind::Backup,
        rounds: task.rounds,
        done: task.done(),
        blocks_read: task.blocks_read,
        copied_blocks: task.copied_blocks,
        elapsed_ns: task.elapsed_ns,
        remaining_ns: task.remaining_ns,
        unreadable: ranges(&task.unreadable),
        unreadable_blocks: task.unreadable_blocks,
        refresh: task.refresh.as_ref().map(refresh_numbers),
        expectations: expectations.collect(),
    }
}

fn refresh_numbers(refresh: &Refresh) -> RefreshedBlocks {
    RefreshedBlocks {
        superseded: refresh.superseded_blocks,
        busy: refresh.busy_blocks,
        differing: ranges(&refresh.differing),
        unwritten: ranges(&refresh.unwritten),
    }
}

fn decision_numbers(decisions: &Decisions) -> ServedDecisions {
    let &Decisions { count, exhausted, nodes, before_ns, times } = decisions;
    let Durations { p50_ns, p99_ns, max_ns, .. } = times;
    ServedDecisions { count, exhausted, nodes, before_ns, p50_ns, p99_ns, max_ns }
}

fn margin_numbers(margins: &[MarginInUse]) -> Option<ServedMargins> {
    Some(ServedMargins {
        least_ns: margins.iter().map(|margin| margin.margin_ns).min()?,
        most_ns: margins.iter().map(|margin| margin.margin_ns).max()?,
        movements: margins.iter().map(|margin| margin.movements).sum(),
        late: margins.iter().map(|margin| margin.late).sum(),
    })
}

fn share_numbers(estimate: &ShareEstimate) -> ServedShare {
    let ShareEstimate { share, low, high, least, most } = *estimate;
    let estimate = share.zip(low).zip(high).map(|((share, low), high)| [share, low, high]);
    ServedShare { estimate, bounds: [least, most] }
}

fn summary(times: &Durations) -> Summary {
    Summary {
        count: times.count,
        mean_ns: times.mean_ns,
        p50_ns: times.p50_ns,
        p90_ns: times.p90_ns,
        p99_ns: times.p99_ns,
        p999_ns: times.p999_ns,
        max_ns: times.max_ns,
        ..Summary::default()
    }
}
