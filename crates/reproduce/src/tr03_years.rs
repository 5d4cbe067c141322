//! What years of better disks bring (tr03 section 5, table 11), and larger ones (table A-3).

use freewheel_model::drive::scale::{Scaling, YearlyRates};
use freewheel_sim::config::ConfigError;
use freewheel_study::fit::{Fit, Form, fit};

use super::tr03::{
    Bench, Compared, Expected, Runs, Variant, dots, gains, gains_by_new, line, lines, values,
    with_server_traces, with_traces,
};
use super::tr03_measure::{Measure, READ_SERVICE, RESPONSE, SERVICE, WRITE_SERVICE};
use super::tr03_system::Base;
use super::{Context, Outcome, Row};

/// A dimension of table 11, with its yearly improvements of response and service.
struct Dimension {
    name: &'static str,
    rates: YearlyRates,
    poor: Yearly,
    rich: Yearly,
}

#[derive(Clone, Copy)]
struct Yearly {
    response: f64,
    service: f64,
}

const fn yearly(response: f64, service: f64) -> Yearly {
    Yearly { response, service }
}

const NO_CHANGE: YearlyRates =
    YearlyRates { seek: 0.0, rpm: 0.0, linear_density: 0.0, track_density: 0.0 };
const HISTORICAL: YearlyRates = YearlyRates::HISTORICAL;
const LINEAR: YearlyRates = YearlyRates { linear_density: HISTORICAL.linear_density, ..NO_CHANGE };
const TRACKS: YearlyRates = YearlyRates { track_density: HISTORICAL.track_density, ..NO_CHANGE };
const AREAL: YearlyRates = YearlyRates { track_density: HISTORICAL.track_density, ..LINEAR };
const SEEKS: YearlyRates = YearlyRates { seek: HISTORICAL.seek, ..NO_CHANGE };
const SPEED: YearlyRates = YearlyRates { rpm: HISTORICAL.rpm, ..NO_CHANGE };
const MECHANICAL: YearlyRates = YearlyRates { rpm: HISTORICAL.rpm, ..SEEKS };

const DIMENSIONS: [Dimension; 7] = [
    Dimension {
        name: "linear density",
        rates: LINEAR,
        poor: yearly(6.21, 5.39),
        rich: yearly(7.08, 6.73),
    },
    Dimension {
        name: "track density",
        rates: TRACKS,
        poor: yearly(3.48, 3.28),
        rich: yearly(3.42, 3.29),
    },
    Dimension {
        name: "areal density",
        rates: AREAL,
        poor: yearly(8.58, 7.97),
        rich: yearly(9.31, 9.07),
    },
    Dimension { name: "seeks", rates: SEEKS, poor: yearly(3.24, 3.39), rich: yearly(3.08, 3.18) },
    Dimension {
        name: "rotation",
        rates: SPEED,
        poor: yearly(5.08, 5.11),
        rich: yearly(5.41, 5.30),
    },
    Dimension {
        name: "mechanics",
        rates: MECHANICAL,
        poor: yearly(8.24, 8.49),
        rich: yearly(8.33, 8.45),
    },
    Dimension {
        name: "all",
        rates: HISTORICAL,
        poor: yearly(15.4, 14.9),
        rich: yearly(15.3, 15.9),
    },
];

impl Dimension {
    fn paper(&self, base: Base) -> Yearly {
        match base {
            Base::Poor => self.poor,
            Base::Rich => self.rich,
        }
    }

    /// A base after years of this alone.
    fn after(&self, base: Base, years: f64) -> Variant<'static> {
        let rates = self.rates;
        Variant::new(base, move |system, _| system.scaling = Scaling::by_years(years, &rates))
    }

    /// Points on either side of the paper's number.
    fn within(&self) -> f64 {
        if self.name == "all" { 4.0 } else { 2.0 }
    }
}

pub(super) fn tab11(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_traces(context, |bench| {
        let variants: Vec<Variant<'_>> = Base::BOTH
            .into_iter()
            .flat_map(|base| {
                let years = DIMENSIONS.iter().map(move |dimension| dimension.after(base, 1.0));
                [Variant::unchanged(base)].into_iter().chain(years)
            })
            .collect();
        let runs = bench.run(&variants)?;
        let mut rows = Vec::new();
        for (base, runs) in Base::BOTH.into_iter().zip(runs.chunks_exact(1 + DIMENSIONS.len())) {
            let (now, later) = runs.split_first().expect("the base was run");
            for (dimension, later) in DIMENSIONS.iter().zip(later) {
                rows.extend(year_rows(bench, base, dimension, [now, later]));
            }
        }
        Ok(Outcome { rows, figures: Vec::new() })
    })
}

fn year_rows(
    bench: &Bench<'_>,
    base: Base,
    dimension: &Dimension,
    [now, later]: [&Runs; 2],
) -> [Row; 2] {
    let Yearly { response, service } = dimension.paper(base);
    let row = |what: &str, of: Measure, paper: f64| {
        let band = [paper - dimension.within(), paper + dimension.within()];
        let quantity = format!("{}: a year of {}, {what}", base.name(), dimension.name);
        let expected = Expected { paper: [paper; 2], band };
        bench.row(&quantity, "% a year", expected, &gains_by_new(now, later, of))
    };
    [row("response", RESPONSE, response), row("service", SERVICE, service)]
}

/// Capacities of table A-3, for each of the base.
const CAPACITIES: [u32; 5] = [1, 2, 3, 4, 5];

/// Seeks of the stand-in for personal computers cross 4 % of its disk, and are no evidence here.
pub(super) fn tab_a3(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_server_traces(context, |bench| {
        let variants: Vec<Variant<'_>> = Base::BOTH
            .into_iter()
            .flat_map(|base| {
                CAPACITIES.map(|times| Variant::new(base, move |system, _| system.surfaces = times))
            })
            .collect();
        let runs = bench.run(&variants)?;
        let (mut rows, mut figures) = (Vec::new(), Vec::new());
        for (base, runs) in Base::BOTH.into_iter().zip(runs.chunks_exact(CAPACITIES.len())) {
            let compared = Compared { bench, base, without: &runs[0], with: &runs[3] };
            let [read, write] = match base {
                Base::Poor => [[11.9, 15.8], [16.8, 22.1]],
                Base::Rich => [[11.4, 14.7], [18.1, 22.2]],
            };
            rows.push(compared.row(
                "4 times the capacity, read service",
                READ_SERVICE,
                read,
                widened(read),
            ));
            rows.push(compared.row(
                "4 times the capacity, write service",
                WRITE_SERVICE,
                write,
                widened(write),
            ));
            let ours = |of: Measure| {
                CAPACITIES
                    .iter()
                    .zip(runs)
                    .map(|(&times, runs)| {
                        (f64::from(times), bench.mean(&gains(compared.without, runs, of)))
                    })
                    .collect()
            };
            figures.push(lines(
                "capacity, times that of the base",
                "improvement of service, %",
                vec![
                    line("reads", ours(READ_SERVICE)),
                    line("writes", ours(WRITE_SERVICE)),
                    dots("paper, servers, reads", servers_a3(base)[0].to_vec()),
                    dots("paper, servers, writes", servers_a3(base)[1].to_vec()),
                ],
            ));
        }
        Ok(Outcome { rows, figures })
    })
}

fn widened([least, most]: [f64; 2]) -> [f64; 2] {
    [least - 5.0, most + 5.0]
}

/// Table A-3's S-Avg. at 2 to 5 times the capacity: reads and writes.
fn servers_a3(base: Base) -> [[(f64, f64); 4]; 2] {
    match base {
        Base::Poor => [
            [(2.0, 10.2), (3.0, 13.8), (4.0, 15.8), (5.0, 16.9)],
            [(2.0, 13.1), (3.0, 18.2), (4.0, 20.6), (5.0, 23.6)],
        ],
        Base::Rich => [
            [(2.0, 9.45), (3.0, 13.0), (4.0, 14.7), (5.0, 15.7)],
            [(2.0, 14.3), (3.0, 20.4), (4.0, 22.2), (5.0, 25.8)],
        ],
    }
}

/// What the maker advertises: mean seek of a read, and half a turn at 10,000 a minute.
const ADVERTISED_SEEK_MS: f64 = 4.9;
const HALF_TURN_MS: f64 = 3.0;

/// Seeks of the stand-in for personal computers cross 4 % of its disk, and are no evidence here.
pub(super) fn fig24(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_server_traces(context, |bench| {
        let runs = bench.run(&Base::BOTH.map(Variant::unchanged))?;
        let mut rows = Vec::new();
        for (base, runs) in Base::BOTH.into_iter().zip(&runs) {
            let seeks = values(runs, |run| 100.0 * run.access.seek_ms / ADVERTISED_SEEK_MS);
            let waits = values(runs, |run| 100.0 * run.access.rotate_ms / HALF_TURN_MS);
            let expected = |paper, band| Expected { paper: [paper; 2], band };
            let quantity = format!("{}: seek, of the advertised mean", base.name());
            rows.push(bench.row(&quantity, "%", expected(35.0, [20.0, 60.0]), &seeks));
            let quantity = format!("{}: rotational latency, of half a turn", base.name());
            rows.push(bench.row(&quantity, "%", expected(60.0, [45.0, 75.0]), &waits));
        }
        Ok(Outcome { rows, figures: Vec::new() })
    })
}

/// Years of figures 18 to 23.
const YEARS: [f64; 6] = [0.5, 1.0, 2.0, 3.0, 4.0, 5.0];

/// Figures with years: seeks (18), rotation (19), linear density (21), track density (22), all (23).
const FIGURES: [&Dimension; 5] =
    [&DIMENSIONS[3], &DIMENSIONS[4], &DIMENSIONS[0], &DIMENSIONS[1], &DIMENSIONS[6]];

pub(super) fn fits(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_traces(context, |bench| {
        let variants = [Variant::unchanged(Base::Rich)].into_iter();
        let runs =
            bench.run(
                &variants
                    .chain(FIGURES.into_iter().flat_map(|dimension| {
                        YEARS.map(|years| dimension.after(Base::Rich, years))
                    }))
                    .collect::<Vec<_>>(),
            )?;
        let (now, later) = runs.split_first().expect("the base was run");
        let (mut rows, mut figures) = (Vec::new(), Vec::new());
        for (dimension, runs) in FIGURES.into_iter().zip(later.chunks_exact(YEARS.len())) {
            let points: Vec<(f64, f64)> = YEARS
                .iter()
                .zip(runs)
                .map(|(&years, runs)| (years, bench.mean(&gains(now, runs, SERVICE))))
                .collect();
            let form = if dimension.name == "seeks" { Form::Linear } else { Form::Saturating };
            let Some(curve) = fit(form, &points) else { continue };
            rows.push(first_year(bench, dimension, &curve));
            figures.push(lines(
                "years",
                "improvement of service, %",
                vec![
                    line(dimension.name, points.clone()),
                    dots(
                        "fitted",
                        points.iter().map(|&(years, _)| (years, curve.at(years))).collect(),
                    ),
                    dots("paper", vec![(1.0, by_old(dimension.rich.service))]),
                ],
            ));
        }
        Ok(Outcome { rows, figures })
    })
}

/// Table 11 divides by the new value; the figures do not.
fn by_old(percent_by_new: f64) -> f64 {
    100.0 * percent_by_new / (100.0 + percent_by_new)
}

/// What the fitted curve says of the first year, which the paper's table takes from its own.
fn first_year(bench: &Bench<'_>, dimension: &Dimension, curve: &Fit) -> Row {
    let paper = by_old(dimension.rich.service);
    let band = [paper - dimension.within(), paper + dimension.within()];
    let quantity = format!("rich: fitted first year of {}, service", dimension.name);
    bench
        .single_in(&quantity, "%", Expected { paper: [paper; 2], band }, curve.at(1.0))
        .derived()
        .also(&curve.words())
}
