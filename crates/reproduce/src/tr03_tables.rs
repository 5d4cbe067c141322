//! Tables of tr03 with one optimisation each: caching (2), write buffering (6), scheduling (7, 8),
//! striping (9).

use freewheel_model::sched::PolicySpec;
use freewheel_sim::config::ConfigError;
use freewheel_units::{Bytes, four_digits};

use super::tr03::{Compared, NO_WORSE, Variant, values, with_traces, without_and_with};
use super::tr03_measure::{
    READ_MISSES, READ_RESPONSE, READ_SERVICE, RESPONSE, SERVICE, WRITE_MISSES, WRITE_RESPONSE,
    WRITE_SERVICE,
};
use super::tr03_system::Base;
use super::{Context, Outcome};

/// Cache that a system without one still needs to pass data on.
const SPEED_MATCHING: Bytes = Bytes::from_kib(512);

/// Read caching, all prefetching off.
pub(super) fn caching(base: Base) -> [Variant<'static>; 2] {
    let without = Variant::new(base, |system, _| {
        system.without_prefetch();
        system.cache.size = SPEED_MATCHING;
    });
    [without, Variant::new(base, |system, _| system.without_prefetch())]
}

pub(super) fn tab2(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_traces(context, |bench| {
        without_and_with(bench, caching, |compared| {
            let paper = match compared.base {
                Base::Poor => [2.26, 9.01],
                Base::Rich => [20.6, 55.7],
            };
            let band = [paper[0] * 2.0 / 3.0, paper[1] * 4.0 / 3.0];
            vec![
                compared.row("read response", READ_RESPONSE, paper, band),
                compared.on_all("read response no worse on any trace", READ_RESPONSE, NO_WORSE),
                compared.on_all("no more reads miss on any trace", READ_MISSES, 0.0),
            ]
        })
    })
}

/// Write-through, and the buffer of the base.
pub(super) fn buffering(base: Base) -> [Variant<'static>; 2] {
    let without = Variant::new(base, |system, _| system.cache.write_buffer = None);
    [without, Variant::unchanged(base)]
}

pub(super) fn tab6(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_traces(context, |bench| {
        without_and_with(bench, buffering, |compared| {
            let (service, eliminated) = match compared.base {
                Base::Poor => ([65.2, 78.2], [39.4, 48.0]),
                Base::Rich => ([81.0, 90.5], [57.6, 70.7]),
            };
            vec![
                compared.row("write response", WRITE_RESPONSE, [90.1, 98.5], [80.0, 100.0]),
                compared.on_all("write response 80 % better on every trace", WRITE_RESPONSE, 80.0),
                compared.row("write service", WRITE_SERVICE, service, widened(service)),
                compared.row("writes eliminated", WRITE_MISSES, eliminated, widened(eliminated)),
            ]
        })
    })
}

fn widened([least, most]: [f64; 2]) -> [f64; 2] {
    [least - 10.0, most + 5.0]
}

/// FCFS, and the policy of the base.
pub(super) fn tab7(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_traces(context, |bench| {
        without_and_with(
            bench,
            |base| {
                let fcfs = Variant::new(base, |system, _| system.scheduler = PolicySpec::Fcfs);
                [fcfs, Variant::unchanged(base)]
            },
            |compared| {
                // Means over the paper's five classes.
                let [response, writes, reads] = match compared.base {
                    Base::Poor => [21.7, 26.3, 4.04],
                    Base::Rich => [20.4, 37.3, 3.29],
                };
                vec![
                    compared.near("response", RESPONSE, response),
                    compared.near("write service", WRITE_SERVICE, writes),
                    compared.near("read service", READ_SERVICE, reads),
                    compared.on_all("response no worse on any trace", RESPONSE, NO_WORSE),
                    compared.on_all("write service no worse on any trace", WRITE_SERVICE, NO_WORSE),
                ]
            },
        )
    })
}

/// Depth 1, and the depth of the base.
pub(super) fn scheduling(base: Base) -> [Variant<'static>; 2] {
    let without = Variant::new(base, |system, _| system.cache.queue_depth = 1);
    [without, Variant::unchanged(base)]
}

/// Depths of table 8.
const DEPTHS: [u32; 5] = [1, 2, 4, 8, 16];

pub(super) fn tab8(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_traces(context, |bench| {
        let variants: Vec<Variant<'_>> = Base::BOTH
            .into_iter()
            .flat_map(|base| {
                DEPTHS.map(|depth| {
                    Variant::new(base, move |system, _| system.cache.queue_depth = depth)
                })
            })
            .collect();
        let runs = bench.run(&variants)?;
        let mut rows = Vec::new();
        for (base, runs) in Base::BOTH.into_iter().zip(runs.chunks_exact(DEPTHS.len())) {
            let at = |i: usize| Compared { bench, base, without: &runs[0], with: &runs[i] };
            // Table 8's columns of 8 and 16, means over its five classes.
            let papers = match base {
                Base::Poor => [26.5, 28.1],
                Base::Rich => [27.4, 28.1],
            };
            for (i, paper) in [3, 4].into_iter().zip(papers) {
                rows.push(at(i).near(&format!("depth {}: response", DEPTHS[i]), RESPONSE, paper));
            }
            let quantity = "depth 8: response no worse than at depth 1 on any trace";
            rows.push(at(3).on_all(quantity, RESPONSE, NO_WORSE));
            let service = "depth 8: service no worse than at depth 1 on any trace";
            rows.push(at(3).on_all(service, SERVICE, NO_WORSE));
        }
        Ok(Outcome { rows, figures: Vec::new() })
    })
}

/// One disk, and four.
pub(super) fn striping(base: Base) -> [Variant<'static>; 2] {
    [Variant::unchanged(base), Variant::new(base, |system, _| system.drives = 4)]
}

pub(super) fn tab9(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_traces(context, |bench| {
        without_and_with(bench, striping, |compared| {
            // Means over the paper's five classes.
            let [read, write, reads, writes, misses] = match compared.base {
                Base::Poor => [46.8, 65.7, 29.5, 13.5, 20.9],
                Base::Rich => [40.1, 46.1, 23.3, 14.9, 15.2],
            };
            let of_one = 100.0 * compared.bench.mean(&values(compared.without, READ_MISSES));
            let also = format!("with one disk {} % miss", four_digits(of_one));
            vec![
                compared.near("read response", READ_RESPONSE, read),
                compared.near("write response", WRITE_RESPONSE, write),
                compared.near("read service", READ_SERVICE, reads),
                compared.near("write service", WRITE_SERVICE, writes),
                compared.near("read misses", READ_MISSES, misses).also(&also),
            ]
        })
    })
}
