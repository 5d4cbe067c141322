//! Freeblock Scheduling Outside of Disk Firmware (FAST 2002), section 5.4: processor time.
//!
//! Transactions of the paper run on an emulated drive in virtual time, and the whole run is timed. The
//! emulated drive's own arithmetic is in it, so the figure is an upper bound of the scheduler's.

use freewheel_freeblock::Rule;
use freewheel_host::PredictionSpec;
use freewheel_model::sched::PolicySpec;
use freewheel_sim::config::ConfigError;
use freewheel_units::SimDuration;

use super::fast02::OutsideSetting;
use super::{Context, Outcome};

/// The goal: of one core, in %.
const CORE_MAX: f64 = 2.0;

/// What is run, and the paper's figure for a Pentium III of 550 MHz, in %.
type Case = (&'static str, Option<Rule>, Option<[f64; 2]>);

/// Of both schedulers the technical report says 8 % and the paper 9 %.
const ROWS: [Case; 3] = [
    ("foreground scheduler", None, Some([0.3; 2])),
    ("both schedulers, greedy rule", Some(Rule::Greedy), Some([8.0, 9.0])),
    ("both schedulers, several stops in a gap", Some(Rule::Paths), None),
];

const STANDS_IN: &str = "transactions in place of the paper's reads of small files, and all arithmetic of the run in place of the difference of utilisations that the paper measured; the emulated drive is without electronics";

pub(super) fn cpu(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let mut rows = Vec::new();
    for (name, free, paper) in ROWS {
        let setting = OutsideSetting {
            free,
            rounds: None,
            requests: if context.options.quick { 4_000 } else { 20_000 },
            jitter: SimDuration::ZERO,
            electronics: false,
            scheduler: PredictionSpec { off_share: 0.0, ..PredictionSpec::default() },
            ..OutsideSetting::paper(context, PolicySpec::Sptf, SimDuration::ZERO)
        };
        let experiment = setting.experiment(context.seed)?;
        // Warms the caches.
        let mut result = experiment.run()?;
        let took = (context.timer)(&mut || result = experiment.run().expect("it ran before"));
        let share = 100.0 * took.ns() as f64 / result.elapsed_ns as f64;
        let row = context.row_in(name, "% of a core", [0.0, CORE_MAX], share).timing();
        let row = paper.map_or(row.clone(), |paper| row.of_paper(paper));
        rows.push(row.standing_in(STANDS_IN).noted(format!(
            "{:.1} us a request, {:.1} requests a second",
            took.ns() as f64 / 1e3 / result.requests as f64,
            result.requests_per_second
        )));
    }
    Ok(Outcome { rows, figures: Vec::new() })
}
