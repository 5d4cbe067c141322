//! Tables of tr03 about prefetching: with reads that miss (3), in time that is lost (4), both (5).

use freewheel_model::cache::{OpportunisticSpec, PrefetchSpec};
use freewheel_sim::config::ConfigError;
use freewheel_units::Bytes;

use super::tr03::{Bench, Compared, NO_WORSE, Runs, Variant, gains, with_traces};
use super::tr03_measure::{READ_MISSES, READ_RESPONSE, READ_SERVICE};
use super::tr03_system::{Base, System};
use super::tr03_traces::TraceHere;
use super::{Context, Outcome, Row};

/// What is prefetched with a read that misses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    LargeFetchUnit,
    ReadAhead,
    Conditional,
}

impl Kind {
    const ALL: [Self; 3] = [Self::LargeFetchUnit, Self::ReadAhead, Self::Conditional];

    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::LargeFetchUnit => "large fetch unit",
            Self::ReadAhead => "read-ahead",
            Self::Conditional => "conditional",
        }
    }

    fn config(self, trace: &TraceHere) -> PrefetchSpec {
        match self {
            Self::Nothing => PrefetchSpec::Off,
            Self::LargeFetchUnit => PrefetchSpec::LargeFetchUnit { unit: Bytes::from_kib(64) },
            Self::ReadAhead => PrefetchSpec::ReadAhead { amount: Bytes::from_kib(32) },
            Self::Conditional => System::conditional(trace.class),
        }
    }
}

/// Reading on in idle time alone, as tr03 limits it.
const PREEMPTIBLE: OpportunisticSpec =
    OpportunisticSpec { free_blocks: false, ..OpportunisticSpec::tr03() };

/// Both opportunistic techniques of the bases.
const FREE_BLOCKS: OpportunisticSpec = OpportunisticSpec::tr03();

/// All three techniques: the head leaves late where it can read on, and takes free blocks elsewhere.
const JUST_IN_TIME: OpportunisticSpec =
    OpportunisticSpec { just_in_time_seek: true, ..FREE_BLOCKS };

const NO_IDLE_TIME: OpportunisticSpec =
    OpportunisticSpec { read_ahead: Bytes::ZERO, free_blocks: false, just_in_time_seek: false };

fn variant(base: Base, kind: Kind, opportunistic: OpportunisticSpec) -> Variant<'static> {
    Variant::new(base, move |system, trace| {
        system.cache.prefetch = kind.config(trace);
        system.cache.opportunistic = opportunistic;
    })
}

/// Runs one variant of each kind on each base, and `first` of each base before them.
fn by_kind(
    bench: &Bench<'_>,
    of: impl Fn(Base) -> Vec<Variant<'static>>,
    rows: impl Fn(Base, &[Runs]) -> Vec<Row>,
) -> Result<Outcome, ConfigError> {
    let variants: Vec<Variant<'_>> = Base::BOTH.into_iter().flat_map(of).collect();
    let runs = bench.run(&variants)?;
    let halves = Base::BOTH.into_iter().zip(runs.chunks_exact(variants.len() / 2));
    let rows = halves.flat_map(|(base, runs)| rows(base, runs)).collect();
    Ok(Outcome { rows, figures: Vec::new() })
}

/// Each kind with this in idle time, and before them a system that does not prefetch.
fn against_nothing(base: Base, opportunistic: OpportunisticSpec) -> Vec<Variant<'static>> {
    let kinds = Kind::ALL.map(|kind| variant(base, kind, opportunistic));
    [variant(base, Kind::Nothing, NO_IDLE_TIME)].into_iter().chain(kinds).collect()
}

pub(super) fn tab3(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_traces(context, |bench| {
        by_kind(
            bench,
            |base| against_nothing(base, NO_IDLE_TIME),
            |base, runs| {
                let papers = match base {
                    Base::Poor => [[25.7, 39.3], [32.4, 44.5], [33.4, 49.6]],
                    Base::Rich => [[15.7, 39.3], [30.7, 47.7], [33.3, 53.7]],
                };
                against_nothing_rows(bench, base, runs, papers, [10.0, 65.0])
            },
        )
    })
}

fn against_nothing_rows(
    bench: &Bench<'_>,
    base: Base,
    runs: &[Runs],
    papers: [[f64; 2]; 3],
    band: [f64; 2],
) -> Vec<Row> {
    let (nothing, kinds) = runs.split_first().expect("a system without prefetching was run");
    Kind::ALL
        .into_iter()
        .zip(kinds)
        .zip(papers)
        .map(|((kind, with), paper)| {
            let compared = Compared { bench, base, without: nothing, with };
            let row = compared.row(
                &format!("{}, read response", kind.name()),
                READ_RESPONSE,
                paper,
                band,
            );
            let service = bench.mean(&gains(nothing, with, READ_SERVICE));
            let misses = bench.each(&gains(nothing, with, READ_MISSES));
            row.also(&format!("read service {service:.1} %, misses fewer by {misses} %"))
        })
        .collect()
}

pub(super) fn tab4(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_traces(context, |bench| {
        let steps = [NO_IDLE_TIME, PREEMPTIBLE, FREE_BLOCKS, JUST_IN_TIME];
        by_kind(
            bench,
            |base| {
                let kinds = Kind::ALL.into_iter();
                kinds.flat_map(|kind| steps.map(|step| variant(base, kind, step))).collect()
            },
            |base, runs| {
                let kinds = Kind::ALL.into_iter().zip(runs.chunks_exact(steps.len()));
                kinds.flat_map(|(kind, runs)| opportunistic_rows(bench, base, kind, runs)).collect()
            },
        )
    })
}

/// What tables 4 and A-1 say of a kind, as means over their five classes: improvements over what prefetches
/// with misses alone.
struct Opportunistic {
    /// Of read response, by reading on in idle time.
    idle: f64,
    /// Of read response, by free blocks as well.
    free: f64,
    /// Of read service, by just-in-time seeks as well.
    late: f64,
}

fn tables_4(base: Base, kind: Kind) -> Opportunistic {
    let [idle, free, late] = match (base, kind) {
        (Base::Poor, Kind::LargeFetchUnit) => [6.05, 8.99, 23.2],
        (Base::Poor, Kind::ReadAhead) => [3.74, 17.2, 30.7],
        (Base::Poor, _) => [1.10, 13.8, 25.1],
        (Base::Rich, Kind::LargeFetchUnit) => [10.9, 16.1, 28.6],
        (Base::Rich, Kind::ReadAhead) => [11.9, 24.0, 37.0],
        (Base::Rich, _) => [8.46, 19.8, 31.0],
    };
    Opportunistic { idle, free, late }
}

fn opportunistic_rows(bench: &Bench<'_>, base: Base, kind: Kind, runs: &[Runs]) -> Vec<Row> {
    let [with_misses, preemptible, free_blocks, just_in_time] = runs else {
        unreachable!("every kind was run with each step")
    };
    let over = |with| Compared { bench, base, without: with_misses, with };
    let named = |what: &str| format!("{}, {what}", kind.name());
    let Opportunistic { idle, free, late } = tables_4(base, kind);
    let on_all = |what: &str, from: &[f64], to: &[f64]| {
        let differences: Vec<f64> = from.iter().zip(to).map(|(from, to)| to - from).collect();
        let quantity = format!("{}: {}", base.name(), named(what));
        bench.holds_on_all(&quantity, NO_WORSE, &differences)
    };
    let response =
        [preemptible, free_blocks, just_in_time].map(|with| over(with).gains(READ_RESPONSE));
    let service = [free_blocks, just_in_time].map(|with| over(with).gains(READ_SERVICE));
    let by_late_seeks = format!("read response {} %", bench.each(&response[2]));
    vec![
        over(preemptible).near(&named("idle reading, read response"), READ_RESPONSE, idle),
        over(free_blocks).near(&named("and free blocks, read response"), READ_RESPONSE, free),
        on_all("free blocks no worse than idle reading alone", &response[0], &response[1]),
        over(just_in_time)
            .near(&named("and just-in-time seeks, read service"), READ_SERVICE, late)
            .also(&by_late_seeks),
        on_all("just-in-time seeks no worse for read service", &service[0], &service[1]),
    ]
}

pub(super) fn tab5(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_traces(context, |bench| {
        by_kind(
            bench,
            |base| against_nothing(base, FREE_BLOCKS),
            |base, runs| {
                let papers = match base {
                    Base::Poor => [[30.6, 44.3], [40.8, 51.7], [42.1, 54.2]],
                    Base::Rich => [[26.2, 50.1], [46.5, 61.8], [46.1, 64.6]],
                };
                against_nothing_rows(bench, base, runs, papers, [20.0, 70.0])
            },
        )
    })
}

pub(super) fn prefetching(base: Base) -> [Variant<'static>; 2] {
    [Variant::new(base, |system, _| system.without_prefetch()), Variant::unchanged(base)]
}
