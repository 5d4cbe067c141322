//! A scan behind a load of one's own, to hold estimates to whole scans.

use freewheel_freeblock::{Options, Rule};
use freewheel_sim::RunResult;
use freewheel_sim::config::{ConfigError, TraceWorkload};
use freewheel_sim::experiment::Experiment;
use freewheel_sim::source::Source;

use super::curve;
use super::effort::{self, SCRUB_EFFORT};
use super::measure::{block_size, load, rest, sample};
use super::projection::{PACE, Pace, ProjectedScan};
use super::scan::{Scanned, ScrubProgress, scan};

/// A scan behind a source of one's own, to hold estimates to whole scans: of the arm of a drive that
/// has one.
pub struct BackgroundScan {
    scan: Scanned,
    /// Rotational latency in a nanosecond of the load.
    gap_share: f64,
}

impl BackgroundScan {
    /// Simulated gap by gap, for at most this many requests, or else in the leaps of the estimate behind a
    /// trace.
    pub fn new<S: Source>(
        experiment: &Experiment,
        source: &mut S,
        whole: Option<u64>,
    ) -> Result<Self, ConfigError> {
        let setting = setting(experiment, Rule::Paths, whole);
        let (scan, result) = Self::scan(experiment, source, setting, &|_, _| {})?;
        let potential_ns = result.free.map_or(0, |free| free.time.potential_ns);
        let gap_share = potential_ns as f64 / result.elapsed_ns.max(1) as f64;
        Ok(Self { scan, gap_share })
    }

    /// Trace that the estimate runs: pieces of the experiment's trace with a rest between them, and the
    /// latency in a second that the whole trace has.
    pub fn trace(
        experiment: &Experiment,
        trace: &TraceWorkload,
        rule: Rule,
        whole: Option<u64>,
        progress: ScrubProgress<'_>,
    ) -> Result<Self, ConfigError> {
        let (load, gap_shares) = load(experiment)?;
        let sample = sample(experiment, trace)?;
        let mut source = experiment.replay(trace, sample.for_ever(rest(experiment, &load)))?;
        let setting = setting(experiment, rule, whole);
        let (scan, _) = Self::scan(experiment, &mut source, setting, progress)?;
        Ok(Self { scan, gap_share: gap_shares[0] })
    }

    fn scan<S: Source>(
        experiment: &Experiment,
        source: &mut S,
        setting: ProjectedScan,
        progress: ScrubProgress<'_>,
    ) -> Result<(Scanned, RunResult), ConfigError> {
        let (mut scans, result) = scan(experiment, source, setting, None, progress)?;
        Ok((scans.remove(0), result))
    }

    /// Part of the blocks that were read.
    pub fn read_share(&self) -> f64 {
        let left = self.scan.bursts.last().map_or(self.scan.blocks, |burst| burst.to);
        1.0 - left as f64 / self.scan.blocks as f64
    }

    /// Seconds until this part of the blocks is read. None when it is not reached.
    pub fn seconds_until(&self, read_share: f64) -> Option<f64> {
        // What is read is a whole number of blocks.
        let left = ((1.0 - read_share) * self.scan.blocks as f64).round() as u64;
        let potential_ns = curve::potential_until(&self.scan.bursts, left)?;
        Some(potential_ns / self.gap_share / 1e9)
    }

    /// Rate of the gaps after this part of the blocks, over their first rate. None when no more is
    /// read.
    pub fn rate_after(&self, read_share: f64) -> Option<f64> {
        let bursts = &self.scan.bursts;
        let (first, last) = (bursts.first()?, bursts.last()?);
        let left = ((1.0 - read_share) * self.scan.blocks as f64).round() as u64;
        let blocks = left.checked_sub(last.to).filter(|&blocks| blocks > 0)?;
        let rate = blocks as f64
            / (curve::potential_until(bursts, last.to)? - curve::potential_until(bursts, left)?);
        Some(rate / curve::rate(first))
    }

    /// Gaps that were simulated.
    pub fn gaps(&self) -> u64 {
        self.scan.bursts.iter().map(|burst| burst.gaps).sum()
    }
}

/// Setting of a whole scan of this many requests at most, or of the estimate.
fn setting(experiment: &Experiment, rule: Rule, whole: Option<u64>) -> ProjectedScan {
    let block_size = block_size(&experiment.drive);
    match whole {
        Some(requests) => {
            let pace = Pace { requests, ..NO_LEAPS };
            ProjectedScan { block_size, decisions: Options { rule, ..Options::default() }, pace }
        }
        None => ProjectedScan { block_size, decisions: usual(rule), pace: PACE },
    }
}

/// Decisions of an estimate, unless another effort is asked for.
fn usual(rule: Rule) -> Options {
    effort::decisions(rule, effort::nodes_max(SCRUB_EFFORT))
}

/// A whole scan, for the requests that are asked for.
const NO_LEAPS: Pace = Pace {
    gaps: 1500,
    gaps_max: 1500,
    leaps: u64::MAX / 2,
    step_max: 0.0,
    last_gaps: u64::MAX,
    requests: 0,
    work_ns: u64::MAX,
};

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use freewheel_model::sched::PolicySpec;
    use freewheel_sim::background::GapShares;
    use freewheel_sim::config::SimConfig;
    use freewheel_sim::source::{Closed, Fit, Pattern, PatternSpec, ThinkTime};
    use freewheel_units::{Bytes, SimDuration};

    use super::super::burst::Burst;
    use super::super::estimate::{ArmScrub, ScrubPoint};
    use super::super::measure::Counted;
    use super::super::projection::{End, Watch};
    use super::super::scan::Until;
    use super::*;

    fn experiment(workload: &str) -> Experiment {
        experiment_on("atlas10k", workload)
    }

    fn experiment_on(drive: &str, workload: &str) -> Experiment {
        let text = format!(
            "drive = \"{drive}\"\nelectronics = false\nqueue_depth = 1\n[workload]\n{workload}"
        );
        Experiment::new(SimConfig::parse(&text, "test", &[]).unwrap()).unwrap()
    }

    /// Ten clients with random requests, as in osdi00 section 6.
    fn clients(experiment: &Experiment) -> Closed {
        let kib = Bytes::from_kib;
        let spec = PatternSpec { size: kib(8), align: kib(4), ..PatternSpec::default() };
        let pattern = Pattern::new(spec, experiment.striping.blocks(), 1).unwrap();
        Closed::new(pattern, 10, ThinkTime::Constant(SimDuration::from_ms(30)), u64::MAX, 1)
    }

    /// A scan behind them.
    fn behind_clients(experiment: &Experiment, block_size: Bytes, pace: Pace) -> BackgroundScan {
        let setting = ProjectedScan { block_size, decisions: usual(Rule::Paths), pace };
        let source = &mut clients(experiment);
        let (scan, result) = BackgroundScan::scan(experiment, source, setting, &|_, _| {}).unwrap();
        let potential_ns = result.free.unwrap().time.potential_ns;
        BackgroundScan { scan, gap_share: potential_ns as f64 / result.elapsed_ns as f64 }
    }

    #[test]
    fn estimate_progress_follows_gaps() {
        use std::sync::Mutex;
        let experiment = experiment("kind = \"closed\"");
        let said = Mutex::new(Vec::new());
        let tell = |done, total| said.lock().unwrap().push((done, total));
        let size = Bytes::from_kib(8);
        let setting = ProjectedScan { block_size: size, decisions: usual(Rule::Paths), pace: PACE };
        let (scans, _) =
            scan(&experiment, &mut clients(&experiment), setting, None, &tell).unwrap();
        let said = said.into_inner().unwrap();
        assert!(said.is_sorted() && said.last().unwrap().0 == said[0].1, "{said:?}");
        // It reports again after at most that number of gaps, so its reports tell how many there were.
        let gaps: u64 = scans[0].bursts.iter().map(|burst| burst.gaps).sum();
        assert!(said.len() as u64 > gaps / 500, "{} times in {gaps} gaps", said.len());
    }

    /// The first three zones of the Atlas 10K, whose tracks are of one size: one media rate.
    fn drive_of_one_rate() -> tempfile::NamedTempFile {
        use std::io::Write;
        let text = freewheel_sim::library::text("atlas10k").unwrap();
        let zones: Vec<&str> = text.split("[[zones]]").collect();
        let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        file.write_all(zones[..4].join("[[zones]]").as_bytes()).unwrap();
        file
    }

    fn arm_of(scan: &BackgroundScan, experiment: &Experiment, block_size: Bytes) -> ArmScrub {
        let media_rate = experiment.drive.mean_media_rate_bytes_per_second();
        ArmScrub::new(&scan.scan, block_size, scan.gap_share, media_rate)
    }

    #[test]
    fn estimate_shares_of_potential_add_up() {
        let file = drive_of_one_rate();
        let experiment = experiment_on(file.path().to_str().unwrap(), "kind = \"closed\"");
        // No block is read in pieces.
        let size = Bytes::new(512);
        let pace = Pace { requests: 60_000, ..PACE };
        let scan = behind_clients(&experiment, size, pace);
        let arm = arm_of(&scan, &experiment, size);
        let shares = |at: fn(&GapShares) -> f64| arm.course.iter().map(move |p| at(&p.shares));
        // From hardly anything left over to hardly anything used.
        assert!(shares(|s| s.transfer_share).any(|share| share > 0.8));
        assert!(shares(|s| s.transfer_share).any(|share| share < 0.3));
        for point in &arm.course {
            let GapShares { transfer_share, extra_seek_share, unused_share } = point.shares;
            let sum = transfer_share + extra_seek_share + unused_share;
            assert!((sum - 1.0).abs() < 1e-12, "{point:?}");
            assert_eq!(point.potential_bytes_per_second, arm.potential_bytes_per_second);
            let used = point.bytes_per_second / point.potential_bytes_per_second;
            assert!((used / transfer_share - 1.0).abs() < 1e-3, "{used} {point:?}");
        }
        // What has been read until then is what came in gaps and what passed anyway.
        let last = arm.course.last().unwrap();
        let bytes = last.read_share * (arm.blocks * size.get()) as f64;
        let efficiency = bytes / (last.seconds * last.potential_bytes_per_second);
        assert!((last.efficiency.unwrap() / efficiency - 1.0).abs() < 1e-9, "{last:?}");
        assert_eq!((arm.efficiency, arm.course[0].efficiency), (last.efficiency, None));
    }

    #[test]
    fn estimate_potential_independent_of_wanted_blocks() {
        let experiment = experiment("kind = \"closed\"");
        let requests = 12_000;
        let scan = |pace: Pace| {
            let pace = Pace { requests, ..pace };
            behind_clients(&experiment, Bytes::from_kib(8), pace)
        };
        // So that it gets far within these requests.
        let pace = Pace { step_max: 0.3, gaps: 1500, gaps_max: 1500, ..PACE };
        let (whole, leaping) = (scan(NO_LEAPS), scan(pace));
        let all = |behind: &BackgroundScan, part: fn(&Burst) -> u64| {
            behind.scan.bursts.iter().map(part).sum::<u64>()
        };
        // The same gaps, however long bursts are, with ever less wanted in those of the leaping scan.
        for part in [|burst: &Burst| burst.gaps, |burst: &Burst| burst.time.potential_ns] {
            assert_eq!(all(&whole, part), all(&leaping, part));
        }
        let transfer = |behind| all(behind, |burst| burst.time.transfer_ns);
        assert!(10 * transfer(&leaping) < 7 * transfer(&whole));
        let mut nothing = Counted::default();
        let watch = Watch::default();
        watch.unfinished.store(1, Ordering::Relaxed);
        let mut source = Until { source: &mut clients(&experiment), watch: &watch, requests };
        experiment
            .new_run()
            .with_planners(vec![&mut nothing])
            .simulate_source(&mut source)
            .unwrap();
        assert_eq!(all(&whole, |burst| burst.time.potential_ns), nothing.0.potential_ns);
    }

    /// Shares around this part of the blocks: between points of the course, in proportion.
    fn shares_at(course: &[ScrubPoint], read_share: f64) -> [f64; 3] {
        let next = course.iter().position(|at| at.read_share >= read_share).unwrap().max(1);
        let [before, after] = [&course[next - 1], &course[next]];
        let part = (read_share - before.read_share) / (after.read_share - before.read_share);
        let of = |share: fn(&GapShares) -> f64| {
            (1.0 - part) * share(&before.shares) + part * share(&after.shares)
        };
        [of(|s| s.transfer_share), of(|s| s.extra_seek_share), of(|s| s.unused_share)]
    }

    #[test]
    fn estimate_latency_matches_scrub_experiment() {
        let pattern = "pattern = { size = \"8KiB\", align = \"4KiB\" }";
        let experiment = experiment(&format!(
            "kind = \"closed\"\noutstanding = 10\nthink_time = \"30ms\"\nrequests = 1\n{pattern}\n\
             [freeblock]\nrule = \"paths\"\n[[freeblock.tasks]]\nkind = \"scrub\"\nblock_size = \"8KiB\"\nrounds = 1"
        ));
        let result = experiment.run().unwrap();
        let round = &result.background[0].tasks[0].rounds[0];
        let size = Bytes::from_kib(8);
        let scan = behind_clients(&experiment, size, PACE);
        let arm = arm_of(&scan, &experiment, size);
        assert!(arm.simulated_gaps * 3 < result.free.unwrap().time.gaps);
        // Until 95 % are read, leaps included; how long the last blocks take is chance. Free transfers
        // are 0.038 off, as leaps are some hundredths too short.
        let bursts = &scan.scan.bursts;
        let bursts = &bursts[..bursts.iter().position(|b| b.to < arm.blocks / 20).unwrap()];
        let read = arm.blocks - bursts.last().unwrap().to;
        let gaps = round.progress.iter().find(|at| at.blocks >= read).unwrap().gaps;
        let of = |s: GapShares| [s.transfer_share, s.extra_seek_share, s.unused_share];
        for (ours, exact) in of(curve::shares(bursts)).into_iter().zip(of(gaps.shares())) {
            assert!((ours - exact).abs() < 0.05, "{ours} {exact} until {read} are read");
        }
        assert_eq!(arm.shares, Some(curve::shares(&scan.scan.bursts)));
        let [.., all] = arm.parts.as_slice() else { panic!("{arm:?}") };
        assert_eq!((all.read_share, Some(all.seconds)), (1.0, arm.seconds));
        assert_eq!((Some(all.rounds_a_day), all.efficiency), (arm.rounds_a_day, arm.efficiency));
        let half = arm.parts.iter().find(|part| part.read_share == 0.5).unwrap();
        assert_eq!(half.seconds, arm.seconds_50_percent.unwrap());
        assert!(arm.parts.windows(2).all(|pair| pair[0].efficiency >= pair[1].efficiency));
        assert_eq!(arm.last_5_percent_of_read, arm.last_5_percent);
        let gaps_at = |part: f64| {
            let blocks = (part * arm.blocks as f64) as u64;
            round.progress.iter().find(|at| at.blocks >= blocks).unwrap().gaps
        };
        // Towards the end they fall faster within a leap than a straight line: 0.11 off at 90 %.
        for percent in (5..=80).step_by(5) {
            let part = f64::from(percent) / 100.0;
            let simulated = gaps_at(part + 0.02).since(&gaps_at(part - 0.02)).shares();
            let GapShares { transfer_share, extra_seek_share, unused_share } = simulated;
            let estimated = shares_at(&arm.course, part);
            let pairs = estimated.into_iter().zip([transfer_share, extra_seek_share, unused_share]);
            for (ours, exact) in pairs {
                assert!((ours - exact).abs() < 0.05, "{percent} %: {estimated:?} {simulated:?}");
            }
        }
    }

    #[test]
    fn estimate_near_whole_scan_random_requests() {
        let experiment = experiment("kind = \"closed\"");
        let scan = |pace: Pace| behind_clients(&experiment, Bytes::from_kib(8), pace);
        let (whole, leaping) = (scan(Pace { requests: 1_000_000, ..NO_LEAPS }), scan(PACE));
        assert!([&whole, &leaping].iter().all(|scan| scan.scan.end == End::Complete));
        assert!(leaping.gaps() * 3 < whole.gaps());
        for (part, band) in [(0.5, 0.08), (0.95, 0.08), (1.0, 0.15)] {
            let ratio = leaping.seconds_until(part).unwrap() / whole.seconds_until(part).unwrap();
            assert!((1.0 - band..1.0 + band).contains(&ratio), "{ratio} at {part}");
        }
    }

    #[test]
    fn estimate_near_whole_scan_partial_load() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/recorded/");
        let file = format!("{folder}fileserver-ext4.csv.zst").into();
        let trace = TraceWorkload { file, fit: Fit::Scale, ..TraceWorkload::default() };
        let workload = "kind = \"closed\"";
        let mut config = experiment(workload).config;
        config.workload = freewheel_sim::config::Workload::Trace(trace.clone());
        config.scheduler = PolicySpec::Fcfs;
        let experiment = Experiment::new(config).unwrap();
        let scan = |whole| {
            BackgroundScan::trace(&experiment, &trace, Rule::Paths, whole, &|_, _| {}).unwrap()
        };
        let (whole, leaping) = (scan(Some(300_000)), scan(None));
        let read = whole.read_share();
        assert!((0.05..0.9).contains(&read), "{read}");
        assert_ne!(leaping.scan.end, End::Complete, "the gaps reach a part of the drive only");
        for part in [0.25, 0.5, 0.75, 1.0] {
            let at = |scan: &BackgroundScan| scan.seconds_until(part * read).unwrap();
            let ratio = at(&leaping) / at(&whole);
            assert!((0.7..1.3).contains(&ratio), "{ratio} at {part} of {read}");
        }
    }
}
