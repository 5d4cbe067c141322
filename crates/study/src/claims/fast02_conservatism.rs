//! Freeblock Scheduling Outside of Disk Firmware (FAST 2002): what is read for free and what that costs
//! by conservatism, figures 9 and 10.

use freewheel_model::sched::PolicySpec;
use freewheel_sim::RunResult;
use freewheel_sim::config::ConfigError;
use freewheel_units::SimDuration;

use super::fast02::{BLACK_BOX, POLICIES, Setting, free_mb_per_second, line, mean_ms, stands_in};
use super::{Context, Figure, Outcome, Row};
use crate::chart::{Axes, Line};

/// Conservatisms of figures 9 and 10, in microseconds.
fn conservatisms(context: &Context<'_>) -> &'static [u64] {
    if context.options.quick { &[300, 400] } else { &[0, 100, 200, 300, 400, 500, 600, 700, 800] }
}

/// The runs behind figure 9.
struct Margins {
    /// In microseconds.
    margins: &'static [u64],
    /// Of every policy one without free work, and one with each margin.
    results: Vec<RunResult>,
}

impl Margins {
    fn run(context: &Context<'_>) -> Result<Self, ConfigError> {
        let margins = conservatisms(context);
        let seed = context.options.seed;
        let mut settings = Vec::new();
        for (_, policy) in POLICIES {
            let paper = Setting::paper(context, policy, SimDuration::ZERO);
            settings.push(Setting { free: None, ..paper });
            for &margin in margins {
                settings.push(Setting::paper(context, policy, SimDuration::from_us(margin)));
            }
        }
        let results = context.run_all(&settings, |setting| setting.run(seed))?;
        Ok(Self { margins, results })
    }

    fn of(&self, policy: usize) -> &[RunResult] {
        let runs = self.margins.len() + 1;
        &self.results[policy * runs..(policy + 1) * runs]
    }

    fn at(&self, policy: usize, margin: u64) -> &RunResult {
        let found = self.margins.iter().position(|&known| known == margin);
        &self.of(policy)[1 + found.expect("a margin that is run")]
    }

    /// Foreground throughput that free work costs, in %.
    fn cost(&self, policy: usize, margin: u64) -> f64 {
        let alone = self.of(policy)[0].requests_per_second;
        100.0 * (1.0 - self.at(policy, margin).requests_per_second / alone)
    }

    fn free(&self, policy: usize, margin: u64) -> f64 {
        free_mb_per_second(self.at(policy, margin))
    }

    /// By how much the mean response is above SPTF's, in %.
    fn slower(&self, policy: usize) -> f64 {
        100.0 * (mean_ms(self.at(policy, 400)) / mean_ms(self.at(SPTF, 400)) - 1.0)
    }

    /// Requests a second fewer than under SPTF, in %.
    fn fewer(&self, policy: usize) -> f64 {
        let most = self.at(SPTF, 400).requests_per_second;
        100.0 * (1.0 - self.at(policy, 400).requests_per_second / most)
    }

    fn figures(&self) -> Vec<Figure> {
        let drawn = |value: fn(&RunResult) -> f64| -> Vec<Line> {
            let points = |results: &[RunResult]| {
                let margins = self.margins.iter().map(|&margin| margin as f64 / 1e3);
                margins.zip(&results[1..]).map(|(margin, result)| (margin, value(result))).collect()
            };
            let named = POLICIES.iter().enumerate();
            named.map(|(number, (name, _))| line(name, points(self.of(number)))).collect()
        };
        let axes = |y| Axes { x: "conservatism, ms", y, log_x: false };
        vec![
            Figure::Lines(
                drawn(|result| result.requests_per_second),
                axes("foreground requests a second"),
            ),
            Figure::Lines(drawn(free_mb_per_second), axes("free bandwidth, MB/s")),
        ]
    }
}

/// Places in [`POLICIES`].
const SSTF: usize = 0;
const BETWEEN: usize = 1;
const SPTF: usize = 2;

pub(super) fn fig9(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let runs = Margins::run(context)?;
    let mut rows = Vec::new();
    for (number, (name, _)) in POLICIES.iter().enumerate() {
        let what = |margin: &str| format!("{name}: foreground lost at {margin} ms");
        rows.push(context.row_in(&what("0.3"), "%", [-5.0, 2.0], runs.cost(number, 300)));
        rows.push(context.row_in(&what("0.4"), "%", [-5.0, 0.6], runs.cost(number, 400)));
    }
    let third = |paper: f64| [paper * 2.0 / 3.0, paper * 4.0 / 3.0];
    let wide = |least: f64, most: f64| [third(least)[0], third(most)[1]];
    let above = wide(13.0, 15.0);
    rows.push(context.row_in("SSTF: response above SPTF's", "%", above, runs.slower(SSTF)));
    rows.push(context.row_in(
        "SSTF: free bandwidth over SPTF's",
        "x",
        wide(2.1, 2.6),
        runs.free(SSTF, 400) / runs.free(SPTF, 400),
    ));
    let note = format!(
        "in requests a second {:.1} % fewer, and {:.1} % under SSTF: neither measure gives both of \
         the paper's figures",
        runs.fewer(BETWEEN),
        runs.fewer(SSTF)
    );
    let (what, above) = ("SPTF-SW60%: response above SPTF's", wide(5.0, 6.0));
    let row = context.row_in(what, "%", above, runs.slower(BETWEEN));
    rows.push(Row { note: Some(note), ..row });
    rows.push(context.row_in(
        "SPTF-SW60%: free bandwidth of SSTF's",
        "%",
        [80.0, 100.0],
        100.0 * runs.free(BETWEEN, 400) / runs.free(SSTF, 400),
    ));
    rows.push(context.row_in(
        "SPTF-SW60%: free bandwidth lost from 0.3 to 0.4 ms",
        "%",
        third(7.2),
        100.0 * (1.0 - runs.free(BETWEEN, 400) / runs.free(BETWEEN, 300)),
    ));
    let rows = rows.into_iter().map(|row| stands_in(row, BLACK_BOX)).collect();
    Ok(Outcome { rows, figures: runs.figures() })
}

pub(super) fn fig10(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let margins = conservatisms(context);
    let (seed, policy) = (context.options.seed, PolicySpec::SptfSw { window: 0.6 });
    let us = SimDuration::from_us;
    let settings: Vec<Setting> =
        margins.iter().map(|&margin| Setting::paper(context, policy, us(margin))).collect();
    let external = context.run_all(&settings, |setting| setting.run(seed))?;
    // With seeks as its curve says, a scheduler outside is as good as one inside that does without
    // the same tracks.
    let exact: Vec<Setting> =
        settings.iter().map(|setting| Setting { jitter: SimDuration::ZERO, ..*setting }).collect();
    let no_track = context.run_all(&exact, |setting| setting.run(seed))?;
    let firmware = Setting::paper(context, policy, SimDuration::ZERO).run_in_firmware(seed)?;
    let at = |margin: u64| margins.iter().position(|&known| known == margin).expect("it is run");
    let free = |results: &[RunResult], margin| free_mb_per_second(&results[at(margin)]);
    let below = 100.0 * (1.0 - free(&external, 300) / free_mb_per_second(&firmware));
    let apart = |margin| 100.0 * (free(&no_track, margin) / free(&external, margin) - 1.0);
    let rows = vec![
        context.row("free bandwidth below that in firmware, at 0.3 ms", "%", 35.0, 5.0, below),
        context.row("below that without same-track requests, at 0.3 ms", "%", 2.5, 5.0, apart(300)),
        context.row("below that without same-track requests, at 0.4 ms", "%", 2.5, 5.0, apart(400)),
    ];
    let rows = rows.into_iter().map(|row| stands_in(row, BLACK_BOX)).collect();
    let points = |results: &[RunResult]| -> Vec<(f64, f64)> {
        let margins = margins.iter().map(|&margin| margin as f64 / 1e3);
        margins.zip(results).map(|(margin, result)| (margin, free_mb_per_second(result))).collect()
    };
    let most = free_mb_per_second(&firmware);
    let lines = vec![
        line("in firmware, no conservatism", vec![(0.0, most), (0.8, most)]),
        line("without same-track requests", points(&no_track)),
        line("outside", points(&external)),
    ];
    let axes = Axes { x: "conservatism, ms", y: "free bandwidth, MB/s", log_x: false };
    Ok(Outcome { rows, figures: vec![Figure::Lines(lines, axes)] })
}
