//! The end of a background task that is predicted when hardly anything has been read, against the end.

use freewheel_freeblock::uses;
use freewheel_sim::config::{ConfigError, SimConfig};
use freewheel_sim::experiment::Experiment;
use freewheel_units::{Blocks, Bytes};

use super::{Context, Outcome, Row};

/// Foreground requests after which the end is predicted.
const REQUESTS: u64 = 300;

/// Largest error that the documents state for predicted ends, in percent of the truth.
const WITHIN: f64 = 25.0;

const REPEATED: &str = "the scrub begins anew before the backup has its last blocks, wants everything \
     again, and takes most of the gaps for another round";

/// The drive: of a larger one a whole scan takes hours to simulate.
const DRIVE: &str = "atlas10k";

/// Tasks behind a load.
struct EndsSetting {
    name: &'static str,
    policy: &'static str,
    workload: &'static str,
    read_share: f64,
    /// The first task, and what else there is.
    task: &'static str,
    beside: &'static str,
    /// Its result and the reason, where it is known not to be within that.
    differs: Option<(f64, &'static str)>,
}

const CLIENTS: &str = "kind = \"closed\"\noutstanding = 10\nthink_time = \"30ms\"";
const ONE: &str = "kind = \"closed\"\noutstanding = 1";
const OPEN: &str = "kind = \"open\"\nmean_gap = \"16ms\"";
const MINING: &str = "[[freeblock.tasks]]\nkind = \"scan\"\nblock_size = \"4KiB\"";
const SCRUB: &str = "[[freeblock.tasks]]\nkind = \"scrub\"\nblock_size = \"16KiB\"";

const BASE: EndsSetting = EndsSetting {
    name: "",
    policy: "{ policy = \"fcfs\" }",
    workload: CLIENTS,
    read_share: 1.0,
    task: "scrub",
    beside: "",
    differs: None,
};

const SETTINGS: [EndsSetting; 8] = [
    EndsSetting { name: "Atlas 10K, scrub, ten clients", ..BASE },
    EndsSetting {
        name: "Atlas 10K, scrub, ten clients under SPTF-SW60%",
        policy: "{ policy = \"sptf-sw\", window = 0.6 }",
        ..BASE
    },
    EndsSetting { name: "Atlas 10K, scrub, one request at a time", workload: ONE, ..BASE },
    EndsSetting { name: "Atlas 10K, scrub, 62 arrivals a second", workload: OPEN, ..BASE },
    EndsSetting { name: "Atlas 10K, every block handed on", task: "scan", ..BASE },
    EndsSetting { name: "Atlas 10K, scrub beside scan in other blocks", beside: MINING, ..BASE },
    EndsSetting {
        name: "Atlas 10K, backup, a third writes",
        task: "backup",
        read_share: 0.667,
        ..BASE
    },
    EndsSetting {
        name: "Atlas 10K, backup beside a scrub, a third writes",
        task: "backup",
        read_share: 0.667,
        beside: SCRUB,
        differs: Some((52.0, REPEATED)),
        ..BASE
    },
];

impl EndsSetting {
    /// Until this many requests have come, or this many rounds are complete.
    fn config(
        &self,
        requests: u64,
        rounds: Option<u64>,
        seed: u64,
    ) -> Result<SimConfig, ConfigError> {
        let Self { policy, workload, read_share, task, beside, .. } = self;
        let block = self.block(seed)?;
        let rounds = rounds.map_or(String::new(), |rounds| format!("rounds = {rounds}\n"));
        let text = format!(
            "drive = \"{DRIVE}\"\nelectronics = false\nseed = {seed}\nscheduler = {policy}\n\
             [workload]\n{workload}\nrequests = {requests}\n\
             pattern = {{ size = \"8KiB\", align = \"4KiB\", read_share = {read_share} }}\n\
             [freeblock]\nrule = \"paths\"\n[[freeblock.tasks]]\nkind = \"{task}\"\nblock_size = \"{block}\"\n{rounds}{beside}"
        );
        SimConfig::parse(&text, "beyond.ends", &[])
    }

    /// The usual size of a task's blocks.
    fn block(&self, seed: u64) -> Result<Bytes, ConfigError> {
        let text = format!("drive = \"{DRIVE}\"\nseed = {seed}\n[workload]\n{}", self.workload);
        let experiment = Experiment::new(SimConfig::parse(&text, "beyond.ends", &[])?)?;
        Ok(uses::usual_block(&experiment.drive, Blocks::new(1)).bytes())
    }

    /// Nanoseconds at which the first task is expected to end, after these requests.
    fn predicted(&self, seed: u64) -> Result<Option<u64>, ConfigError> {
        let result = Experiment::new(self.config(REQUESTS, None, seed)?)?.run()?;
        Ok(result.background[0].tasks[0].expected_end_ns)
    }

    fn truth(&self, seed: u64) -> Result<Option<f64>, ConfigError> {
        let result = Experiment::new(self.config(REQUESTS, Some(1), seed)?)?.run()?;
        let first = result.background[0].tasks[0].rounds.first();
        Ok(first.map(|round| round.elapsed_ns as f64))
    }

    fn row(&self, context: &Context<'_>) -> Result<Row, ConfigError> {
        let seed = context.seed;
        let (predicted, truth) = (self.predicted(seed)?, self.truth(seed)?);
        let band = [100.0 - WITHIN, 100.0 + WITHIN];
        let (Some(predicted), Some(truth)) = (predicted, truth) else {
            return Ok(context.row_in(self.name, "% of the true time", band, f64::NAN));
        };
        let percent = 100.0 * predicted as f64 / truth;
        let row = context.row_in(self.name, "% of the true time", band, percent);
        let [predicted, truth] = [predicted as f64, truth].map(|ns| ns / 1e9);
        let row = row.noted(format!("{predicted:.0} s predicted, {truth:.0} s taken"));
        Ok(match self.differs {
            Some((value, why)) => row.deviates(value, 2.6, why),
            None => row,
        })
    }
}

pub(super) fn ends(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let settings = if context.options.quick { &SETTINGS[..1] } else { &SETTINGS[..] };
    let rows = context.run_all(settings, |setting| setting.row(context))?;
    Ok(Outcome { rows, figures: Vec::new() })
}
