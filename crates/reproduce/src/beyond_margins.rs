//! Margins that are learned for a budget, beside constant ones (fast02 section 4.2).

use freewheel_freeblock::Rule;
use freewheel_host::{Conservatism, PredictionSpec, SameTrack};
use freewheel_sim::black_box::JitterShape;
use freewheel_sim::config::ConfigError;
use freewheel_sim::{HeadTime, RunResult};
use freewheel_units::SimDuration;

use super::fast02::{OutsideSetting, POLICIES, free_mb_per_second, line, mean_ms};
use super::{Context, Outcome, Row};
use freewheel_study::figure::{Axes, Figure, Line};

/// Constant margins to choose the best of, in microseconds. The last is fast02's choice.
const CONSTANTS: [u64; 8] = [25, 50, 60, 75, 100, 150, 200, 300];

/// By how much free work may delay the foreground: milliseconds for each second of the head's time.
const BUDGET: f64 = 5.0;

/// A drive whose times have to be predicted.
struct Hidden {
    name: &'static str,
    what: &'static str,
    electronics: bool,
    jitter_us: u64,
    far_us: Option<u64>,
}

const DRIVES: [Hidden; 3] = [
    Hidden {
        name: "bare",
        what: "an emulated Atlas 10K without electronics, whose seeks vary by 50 us either way",
        electronics: false,
        jitter_us: 50,
        far_us: None,
    },
    Hidden {
        name: "reads ahead",
        what: "an emulated Atlas 10K with its reading ahead, whose seeks vary by 50 us either way",
        electronics: true,
        jitter_us: 50,
        far_us: None,
    },
    Hidden {
        name: "jitter grows",
        what: "an emulated Atlas 10K with its reading ahead, whose seeks vary by 10 us either way over \
               a cylinder, by 250 us over all of them, and between by distance",
        electronics: true,
        jitter_us: 10,
        far_us: Some(250),
    },
];

/// The runs on a drive.
struct MarginRuns {
    alone: RunResult,
    constants: Vec<RunResult>,
    learned: RunResult,
    firmware: RunResult,
}

impl Hidden {
    fn setting(&self, context: &Context<'_>, conservatism: Conservatism) -> OutsideSetting {
        let us = SimDuration::from_us;
        let scheduler = PredictionSpec {
            conservatism,
            budget: BUDGET / 1e3,
            same_track: SameTrack::Distinct,
            off_share: 0.0,
            ..PredictionSpec::default()
        };
        let (_, policy) = POLICIES[1];
        OutsideSetting {
            free: Some(Rule::Paths),
            scheduler,
            jitter: us(self.jitter_us),
            shape: JitterShape::Even,
            jitter_far: self.far_us.map(us),
            electronics: self.electronics,
            ..OutsideSetting::paper(context, policy, us(0))
        }
    }

    fn run(&self, context: &Context<'_>) -> Result<MarginRuns, ConfigError> {
        let seed = context.seed;
        let learned = self.setting(context, Conservatism::Learned);
        let mut settings = vec![learned, OutsideSetting { free: None, ..learned }];
        settings.extend(CONSTANTS.iter().map(|us| self.setting(context, constant(us))));
        let mut results = context.run_all(&settings, |setting| setting.run(seed))?;
        let constants = results.split_off(2);
        let firmware = learned.run_in_firmware(seed)?;
        let alone = results.pop().expect("a run without free work");
        let learned = results.pop().expect("a run with learned margins");
        Ok(MarginRuns { alone, constants, learned, firmware })
    }
}

fn constant(us: &u64) -> Conservatism {
    Conservatism::Constant(SimDuration::from_us(*us))
}

/// By how much free work delayed the foreground: milliseconds for each second of the head's time.
fn delayed(result: &RunResult) -> f64 {
    let delay_ns = result.host.map_or(0, |host| host.delay_ns);
    let HeadTime { seek_ns, rotate_ns, transfer_ns } = result.head_time;
    1e3 * delay_ns as f64 / (seek_ns + rotate_ns + transfer_ns) as f64
}

impl MarginRuns {
    /// Free bandwidth of that in firmware, in %.
    fn share(&self, result: &RunResult) -> f64 {
        100.0 * free_mb_per_second(result) / free_mb_per_second(&self.firmware)
    }

    fn slower(&self, result: &RunResult) -> f64 {
        100.0 * (mean_ms(result) / mean_ms(&self.alone) - 1.0)
    }

    /// Place of the constant with most free bandwidth among those that hold the budget.
    fn best(&self) -> usize {
        (0..CONSTANTS.len())
            .filter(|&at| delayed(&self.constants[at]) <= BUDGET)
            .max_by(|a, b| self.free(a).total_cmp(&self.free(b)))
            .unwrap_or(CONSTANTS.len() - 1)
    }

    fn free(&self, &at: &usize) -> f64 {
        free_mb_per_second(&self.constants[at])
    }

    fn rows(&self, drive: &Hidden, context: &Context<'_>) -> Vec<Row> {
        let best = self.best();
        let named = [
            ("learned".to_string(), &self.learned),
            (format!("best constant, {} us", CONSTANTS[best]), &self.constants[best]),
            ("300 us".to_string(), &self.constants[CONSTANTS.len() - 1]),
        ];
        let mut rows = Vec::new();
        for (margin, result) in &named {
            let row = |of: &str, unit, ours| {
                context.measured(&format!("{}, {margin}: {of}", drive.name), unit, ours)
            };
            let share = self.share(result);
            rows.push(row("free bandwidth of that in firmware", "%", share));
            rows.push(row("foreground delayed", "ms/s", delayed(result)).within([0.0, BUDGET]));
            rows.push(row("response above", "%", self.slower(result)));
        }
        let what = |of: &str| format!("{}: free bandwidth, learned over {of}", drive.name);
        let (of_best, of_default) = (
            100.0 * free_mb_per_second(&self.learned) / free_mb_per_second(&self.constants[best]),
            100.0 * free_mb_per_second(&self.learned) / free_mb_per_second(named[2].1),
        );
        rows.push(context.measured(&what("the best constant"), "%", of_best));
        // The paper's constant is to be beaten.
        rows.push(context.row_in(&what("300 us"), "%", [100.0, 200.0], of_default));
        let first = rows.remove(0);
        rows.insert(0, first.standing_in(drive.what));
        rows
    }

    /// A measure by conservatism, and that of learned margins over all of it.
    fn lines(&self, drive: &Hidden, measure: impl Fn(&RunResult) -> f64) -> [Line; 2] {
        let points = CONSTANTS.iter().zip(&self.constants);
        let constants = points.map(|(&us, result)| (us as f64, measure(result))).collect();
        let learned = measure(&self.learned);
        let ends = [CONSTANTS[0], CONSTANTS[CONSTANTS.len() - 1]];
        [
            line(&format!("{}, constant", drive.name), constants),
            line(&format!("{}, learned", drive.name), ends.map(|us| (us as f64, learned)).into()),
        ]
    }
}

pub(super) fn margins(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let (mut rows, mut free, mut delays) = (Vec::new(), Vec::new(), Vec::new());
    for drive in &DRIVES {
        let runs = drive.run(context)?;
        rows.extend(runs.rows(drive, context));
        // Without electronics it is much the same.
        if drive.electronics {
            free.extend(runs.lines(drive, |result| runs.share(result)));
            delays.extend(runs.lines(drive, delayed));
        }
    }
    let figures = vec![
        Figure::lines(
            free,
            Axes {
                x: "conservatism, us",
                y: "free bandwidth, % of that in firmware",
                log_x: false,
            },
        ),
        Figure::lines(
            delays,
            Axes {
                x: "conservatism, us",
                y: "foreground delayed, ms per s of head time",
                log_x: false,
            },
        ),
    ];
    Ok(Outcome { rows, figures })
}
