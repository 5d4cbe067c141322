//! The course of a scan: figures 9 and 10 of osdi00 from the progress of one run.

use freewheel_sim::background::{GapShares, Gaps, Progress, Round, TaskResult};

use crate::figure::Line;

/// Stretches of a scan's time over which what happens then is averaged: enough to see its
/// course, and few enough that the noise of single steps does not cover it.
const STRETCHES: u64 = 20;

/// A scan from its beginning on.
pub struct Course<'a> {
    round: &'a Round,
    is_over: bool,
    /// Blocks that make it.
    blocks: f64,
    block_bytes: f64,
    media_bytes_per_second: f64,
}

/// Events in a stretch of the time.
struct Segment {
    end: Progress,
    elapsed_ns: u64,
    blocks: u64,
    gaps: Gaps,
}

impl<'a> Course<'a> {
    /// Course of the first scan of a task on an arm, whether or not it came to its end.
    pub fn new(task: &'a TaskResult, media_bytes_per_second: u64) -> Self {
        Self {
            round: task.rounds.first().unwrap_or(&task.unfinished),
            is_over: !task.rounds.is_empty(),
            blocks: task.blocks as f64,
            block_bytes: task.block_bytes as f64,
            media_bytes_per_second: media_bytes_per_second as f64,
        }
    }

    /// True if the scan came to its end.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Duration of the scan, or its duration so far.
    pub fn elapsed_ns(&self) -> u64 {
        self.round.elapsed_ns
    }

    /// Figure 9 (a): what was delivered, and what the potential would have been enough for, in % of
    /// the blocks against % of the time.
    pub fn progress(&self) -> [Line; 2] {
        let percent = |bytes: f64| 100.0 * bytes / (self.blocks * self.block_bytes);
        let potential = |at: &Progress| percent(self.potential_bytes(at.gaps));
        // The potential ends with all blocks.
        let all = self.round.progress.iter().position(|at| potential(at) > 100.0);
        let until = all.unwrap_or(self.round.progress.len());
        [
            line(
                "delivered",
                self.points(&self.round.progress, |at: &Progress| {
                    percent(at.blocks as f64 * self.block_bytes)
                }),
            ),
            line("potential", self.points(&self.round.progress[..until], potential)),
        ]
    }

    /// Figure 9 (b): bandwidth in MB/s against % of the time.
    pub fn bandwidth(&self) -> [Line; 2] {
        [
            line(
                "delivered",
                self.over(|stretch| per_second(stretch.blocks as f64 * self.block_bytes, stretch)),
            ),
            line(
                "potential",
                self.over(|stretch| per_second(self.potential_bytes(stretch.gaps), stretch)),
            ),
        ]
    }

    /// Figure 9 (c): shares of the latency in % against % of the time.
    pub fn shares(&self) -> [Line; 3] {
        latency_lines(&self.over(|stretch| stretch.gaps.shares()))
    }

    /// Figure 10: what was delivered over the potential until then, in % against the part of the
    /// blocks in %. A sample of this many of the blocks would end there.
    pub fn efficiency(&self) -> Line {
        let progress = self.round.progress.iter().filter(|at| at.gaps.potential_ns > 0);
        line(
            "efficiency",
            progress
                .map(|at| {
                    let efficiency = 100.0 * self.delivered(at) / self.potential_bytes(at.gaps);
                    (100.0 * at.blocks as f64 / self.blocks, efficiency)
                })
                .collect(),
        )
    }

    fn delivered(&self, at: &Progress) -> f64 {
        at.blocks as f64 * self.block_bytes
    }

    fn potential_bytes(&self, gaps: Gaps) -> f64 {
        gaps.potential_ns as f64 / 1e9 * self.media_bytes_per_second
    }

    fn over<T>(&self, value: impl Fn(&Segment) -> T) -> Vec<(f64, T)> {
        let stretches = self.stretches();
        stretches.iter().map(|stretch| (self.percent(&stretch.end), value(stretch))).collect()
    }

    fn points(&self, progress: &[Progress], value: impl Fn(&Progress) -> f64) -> Vec<(f64, f64)> {
        progress.iter().map(|at| (self.percent(at), value(at))).collect()
    }

    /// Share of the scan's time, in percent.
    fn percent(&self, at: &Progress) -> f64 {
        100.0 * at.elapsed_ns as f64 / self.round.elapsed_ns as f64
    }

    /// Ends are steps of the progress; stretches without a gap are left out.
    fn stretches(&self) -> Vec<Segment> {
        let Round { elapsed_ns, progress, .. } = self.round;
        let length_ns = elapsed_ns / STRETCHES;
        let start = Progress { elapsed_ns: 0, blocks: 0, gaps: Gaps::default() };
        (1..=STRETCHES)
            .filter_map(|number| {
                let until = u128::from(*elapsed_ns) * u128::from(number) / u128::from(STRETCHES);
                let end = *last_by(until as u64, progress)?;
                let from = last_by(end.elapsed_ns.saturating_sub(length_ns), progress).copied();
                let from = from.unwrap_or(start);
                let gaps = end.gaps.since(&from.gaps);
                let elapsed_ns = end.elapsed_ns - from.elapsed_ns;
                let blocks = end.blocks - from.blocks;
                (gaps.potential_ns > 0).then_some(Segment { end, elapsed_ns, blocks, gaps })
            })
            .collect()
    }
}

fn per_second(bytes: f64, stretch: &Segment) -> f64 {
    bytes / stretch.elapsed_ns as f64 * 1e3
}

fn last_by(ns: u64, progress: &[Progress]) -> Option<&Progress> {
    progress.iter().rfind(|at| at.elapsed_ns <= ns)
}

/// Points of all rounds of a task together that a chart can show.
const POINTS: usize = 400;

/// Progress of a task over a run: part of its blocks in % against minutes, each round from 0.
pub fn over_the_run(task: &TaskResult) -> Line {
    let steps: usize = task.all_rounds().map(|round| round.progress.len()).sum();
    let every = steps.div_ceil(POINTS).max(1);
    let (mut points, mut began_ns) = (Vec::new(), 0);
    // Where a run ends with a round there is no further one.
    for round in task.all_rounds().filter(|round| round.elapsed_ns > 0) {
        let point = |at: &Progress| {
            (minutes(began_ns + at.elapsed_ns), 100.0 * at.blocks as f64 / task.blocks as f64)
        };
        points.push((minutes(began_ns), 0.0));
        points.extend(round.progress.iter().step_by(every).map(point));
        points.extend(round.progress.last().map(point));
        began_ns += round.elapsed_ns;
    }
    line(&task.name, points)
}

fn minutes(ns: u64) -> f64 {
    ns as f64 / 60e9
}

/// Shares of the latency in %, against anything.
pub fn latency_lines(points: &[(f64, GapShares)]) -> [Line; 3] {
    let of = |name, share: fn(&GapShares) -> f64| {
        line(name, points.iter().map(|(x, shares)| (*x, 100.0 * share(shares))).collect())
    };
    [
        of("free transfer", |shares| shares.transfer_share),
        of("extra seeks", |shares| shares.extra_seek_share),
        of("latency left", |shares| shares.unused_share),
    ]
}

/// A line of the figure.
pub fn line(name: &str, points: Vec<(f64, f64)>) -> Line {
    Line { name: name.into(), points, dots: false }
}

#[cfg(test)]
mod tests {
    use freewheel_freeblock::tasks::{RoundKind, TaskKind};
    use freewheel_sim::background::Deliveries;

    use super::*;

    /// 100 blocks of 1 MB in 200 s: the first half of them in 50 s, then a third as fast. Half of the
    /// time is latency, at a media rate of 4 MB/s, of which the first half used all.
    fn task() -> TaskResult {
        let deliveries = Deliveries { in_gaps: 100, ..Deliveries::default() };
        let elapsed_ns = 200_000_000_000;
        let mut round = Round { elapsed_ns, deliveries, ..Round::default() };
        for blocks in 1..=100u64 {
            let seconds = if blocks <= 50 { blocks } else { 50 + (blocks - 50) * 3 };
            let used = blocks.min(50) + blocks.saturating_sub(50) / 2;
            let gaps = Gaps {
                potential_ns: seconds * 500_000_000,
                transfer_ns: used * 500_000_000,
                extra_seek_ns: 0,
            };
            round.progress.push(Progress { elapsed_ns: seconds * 1_000_000_000, blocks, gaps });
        }
        TaskResult {
            name: "scan".into(),
            kind: RoundKind::whole(TaskKind::Scan),
            blocks: 100,
            block_bytes: 1_000_000,
            deadline_ns: None,
            rounds: vec![round],
            unfinished: Round::default(),
            expected_end_ns: None,
            used: None,
        }
    }

    fn at(line: &Line, x: f64) -> f64 {
        let near = |point: &&(f64, f64)| (point.0 - x).abs() < 0.01;
        line.points.iter().find(near).unwrap_or_else(|| panic!("{:?}", line.points)).1
    }

    #[test]
    fn course_ends_with_all_blocks() {
        let task = task();
        let [delivered, potential] = Course::new(&task, 4_000_000).progress();
        assert_eq!((at(&delivered, 25.0), at(&delivered, 100.0)), (50.0, 100.0));
        // 2 MB/s: all 100 MB after 50 s.
        assert_eq!(at(&potential, 25.0), 100.0);
        assert_eq!(potential.points.last().unwrap().0, 25.0);
    }

    #[test]
    fn course_bandwidth_is_of_each_stretch() {
        let task = task();
        let course = Course::new(&task, 4_000_000);
        let [delivered, potential] = course.bandwidth();
        assert_eq!((at(&delivered, 5.0), at(&potential, 5.0)), (1.0, 2.0));
        assert_eq!(delivered.points.len() as u64, STRETCHES);
        assert!((at(&delivered, 100.0) - 1.0 / 3.0).abs() < 1e-9);
        let [transfer, seeks, left] = course.shares();
        assert_eq!((at(&transfer, 5.0), at(&seeks, 5.0), at(&left, 5.0)), (100.0, 0.0, 0.0));
        assert!(at(&left, 100.0) > 80.0);
    }

    #[test]
    fn course_efficiency_falls_with_enough_share() {
        let task = task();
        let efficiency = Course::new(&task, 4_000_000).efficiency();
        assert_eq!((at(&efficiency, 50.0), at(&efficiency, 100.0)), (50.0, 25.0));
    }

    #[test]
    fn course_absent_before_scan_begins() {
        let task = TaskResult { rounds: Vec::new(), ..task() };
        let course = Course::new(&task, 4_000_000);
        assert!(course.progress().iter().chain(&course.bandwidth()).all(|l| l.points.is_empty()));
    }

    #[test]
    fn course_of_round_begins_with_nothing() {
        let (one, mut two) = (task(), task());
        two.rounds.extend(one.rounds.clone());
        let line = over_the_run(&two);
        // 200 s each.
        let minutes = 200.0 / 60.0;
        assert_eq!((line.points[0], at(&line, minutes)), ((0.0, 0.0), 100.0));
        let again = line.points.iter().rposition(|point| point.1 == 0.0).unwrap();
        assert!((line.points[again].0 - minutes).abs() < 0.01, "{:?}", line.points[again]);
        assert_eq!(line.points.last().map(|point| point.1), Some(100.0));
        let mut many = task();
        many.rounds = vec![one.rounds[0].clone(); 50];
        assert!(over_the_run(&many).points.len() < POINTS + 3 * 50);
    }
}
