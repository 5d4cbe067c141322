//! Arms of tr03: the age factor (figure 14), stripes (15, 16), and what responses are made of (25).

use freewheel_model::sched::PolicySpec;
use freewheel_sim::config::ConfigError;
use freewheel_units::Bytes;

use super::tr03::{Bench, Expected, Runs, Variant, gains, line, lines_log, values, with_traces};
use super::tr03_measure::{Measure, READ_RESPONSE, RESPONSE, WRITE_RESPONSE, improvement};
use super::tr03_system::Base;
use super::{Context, Outcome, Row};

/// Age factors; the paper finds no change below 0.03.
const AGE_FACTORS: [f64; 8] = [0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0];

/// How many of them are at most 0.03.
const FLAT: usize = 4;

pub(super) fn fig14(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_traces(context, |bench| {
        let (mut rows, mut figures) = (Vec::new(), Vec::new());
        for base in Base::BOTH {
            let runs = bench.run(&AGE_FACTORS.map(|age_factor| {
                Variant::new(base, move |system, _| {
                    system.scheduler = PolicySpec::Asatf { age_factor };
                })
            }))?;
            let relative = relative_to(bench, &runs[0], &runs, RESPONSE);
            let most = relative[..FLAT].iter().map(|it| 100.0 * (it - 1.0).abs());
            let quantity = format!("{}: response for W up to 0.03, away from W = 0", base.name());
            rows.push(bench.single_at_most(&quantity, 5.0, most.fold(0.0, f64::max)));
            let variations: Vec<f64> =
                runs.iter().map(|runs| bench.mean(&values(runs, |run| run.variation))).collect();
            let least =
                (0..AGE_FACTORS.len()).min_by(|&a, &b| variations[a].total_cmp(&variations[b]));
            let least = AGE_FACTORS[least.expect("there are some")];
            let quantity = format!("{}: W with the least variation of responses", base.name());
            rows.push(bench.single(&quantity, "", least));
            figures.push(lines_log(
                "age factor W",
                "of that at W = 0, and coefficient of variation",
                vec![line("response", points(&relative)), line("variation", points(&variations))],
            ));
        }
        Ok(Outcome { rows, figures })
    })
}

fn points(of: &[f64]) -> Vec<(f64, f64)> {
    AGE_FACTORS.iter().zip(of).skip(1).map(|(&x, &y)| (x, y)).collect()
}

/// Mean over the classes of a number over that of the first runs, for each of `runs`.
fn relative_to(bench: &Bench<'_>, first: &Runs, runs: &[Runs], of: Measure) -> Vec<f64> {
    runs.iter()
        .map(|runs| {
            let pairs = first.iter().zip(runs);
            bench.mean(
                &pairs
                    .map(
                        |(first, run)| if of(first) > 0.0 { of(run) / of(first) } else { f64::NAN },
                    )
                    .collect::<Vec<f64>>(),
            )
        })
        .collect()
}

/// Stripe units in KiB, up to where most of a trace lies on one disk.
const UNITS_KIB: [u64; 7] = [64, 256, 1024, 2048, 8192, 65_536, 524_288];

/// Places of 2 MB and 64 MB among them.
const CHOSEN: usize = 3;
const LARGE: usize = 5;

/// Disks of figure 16.
const DISKS: [u32; 4] = [1, 2, 4, 8];

pub(super) fn fig15(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_traces(context, |bench| {
        let (mut rows, mut figures) = (Vec::new(), Vec::new());
        for base in Base::BOTH {
            let units = UNITS_KIB.map(|unit| {
                Variant::new(base, move |system, _| {
                    system.drives = 4;
                    system.stripe_unit = Bytes::from_kib(unit);
                })
            });
            let disks =
                DISKS.map(|drives| Variant::new(base, move |system, _| system.drives = drives));
            let runs = bench.run(&units.into_iter().chain(disks).collect::<Vec<_>>())?;
            let (units, disks) = runs.split_at(UNITS_KIB.len());
            rows.extend(unit_rows(bench, base, units));
            rows.push(disks_row(bench, base, disks));
            figures.push(lines_log(
                "stripe unit, MiB",
                "response of that with 2 MiB",
                vec![
                    line(
                        "reads",
                        by_unit(relative_to(bench, &units[CHOSEN], units, READ_RESPONSE)),
                    ),
                    line(
                        "writes",
                        by_unit(relative_to(bench, &units[CHOSEN], units, WRITE_RESPONSE)),
                    ),
                ],
            ));
        }
        Ok(Outcome { rows, figures })
    })
}

fn by_unit(of: Vec<f64>) -> Vec<(f64, f64)> {
    UNITS_KIB.iter().zip(of).map(|(&unit, y)| (unit as f64 / 1024.0, y)).collect()
}

fn unit_rows(bench: &Bench<'_>, base: Base, units: &[Runs]) -> [Row; 2] {
    let reads = relative_to(bench, &units[CHOSEN], units, READ_RESPONSE);
    let best = reads.iter().copied().fold(f64::INFINITY, f64::min);
    let quantity = |what: &str| format!("{}: read response at a unit of {what}", base.name());
    let worse: Vec<f64> =
        gains(&units[CHOSEN], &units[LARGE], READ_RESPONSE).iter().map(|gain| -gain).collect();
    [
        bench.single_at_most(&quantity("2 MB above the best"), 10.0, 100.0 * (1.0 / best - 1.0)),
        bench.at_most(&quantity("64 MB above 2 MB"), 20.0, &worse),
    ]
}

fn disks_row(bench: &Bench<'_>, base: Base, disks: &[Runs]) -> Row {
    let responses = relative_to(bench, &disks[0], disks, READ_RESPONSE);
    let of_eight = improvement(1.0, responses[2]) / improvement(1.0, responses[3]);
    let quantity =
        format!("{}: improvement of read response by 4 disks, of that by 8", base.name());
    bench
        .single_in(
            &quantity,
            "%",
            Expected { paper: [80.0, 100.0], band: [70.0, 110.0] },
            100.0 * of_eight,
        )
        .also(&format!(
            "4 disks {}; 8 disks {}",
            bench.each(&gains(&disks[0], &disks[2], READ_RESPONSE)),
            bench.each(&gains(&disks[0], &disks[3], READ_RESPONSE))
        ))
}

pub(super) fn fig25(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_traces(context, |bench| {
        let runs = bench.run(&Base::BOTH.map(Variant::unchanged))?;
        let parts: [(&str, Measure, [f64; 2], [f64; 2]); 6] = [
            ("read response: rotation", |run| run.read_parts.rotate, [30.0, 40.0], [20.0, 50.0]),
            ("read response: seek", |run| run.read_parts.seek, [25.0; 2], [15.0, 35.0]),
            ("read response: waiting", |run| run.read_parts.wait, [20.0, 45.0], [10.0, 60.0]),
            ("write service: seek", |run| run.write_parts.seek, [45.0; 2], [30.0, 60.0]),
            ("write service: rotation", |run| run.write_parts.rotate, [30.0, 40.0], [20.0, 50.0]),
            ("write service: transfer", |run| run.write_parts.transfer, [10.0; 2], [5.0, 20.0]),
        ];
        let pairs = Base::BOTH.into_iter().zip(&runs);
        let rows = pairs.flat_map(|(base, runs)| {
            let named = |what: &str| format!("{}: {what}", base.name());
            let parts = parts.map(|(what, of, paper, band)| {
                bench.row(&named(what), "%", Expected { paper, band }, &values(runs, of))
            });
            // "Less than 5 %": a limit, and no number.
            let transfers = values(runs, |run| run.read_parts.transfer);
            let transfer = bench.at_most(&named("read response: transfer"), 5.0, &transfers);
            parts.into_iter().chain([transfer])
        });
        Ok(Outcome { rows: rows.collect(), figures: Vec::new() })
    })
}
