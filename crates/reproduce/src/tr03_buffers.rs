//! Write buffers of tr03: bursts (figure 9), repeated writes (10), marks and age (11 to 13, A-18).

use freewheel_model::cache::WriteBufferSpec;
use freewheel_sim::config::ConfigError;
use freewheel_study::fit::{Form, fit};
use freewheel_units::{Bytes, SimDuration};

use super::tr03::{
    Bench, Expected, Runs, Variant, dots, gains, line, lines, lines_log, values, with_traces,
};
use super::tr03_caches::{power_row, sampled, share};
use super::tr03_measure::{Measure, WRITE_MISSES, WRITE_RESPONSE, WRITE_SERVICE};
use super::tr03_system::{Base, System};
use super::{Context, Outcome, Row};

fn buffer(system: &mut System, change: impl Fn(&mut WriteBufferSpec)) {
    system.cache.write_buffer.iter_mut().for_each(change);
}

fn marks(low: f64, high: f64) -> impl Fn(&mut WriteBufferSpec) {
    move |buffer| (buffer.low_mark, buffer.high_mark) = (low, high)
}

/// Buffers of figure 9a in KiB, and of figure 9b in per cent of the storage used.
const KIBIBYTES: [f64; 8] = [128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 32_768.0];
const PERCENTAGES: [f64; 8] = [0.003, 0.006, 0.012, 0.025, 0.05, 0.1, 0.2, 0.8];

/// A burst is absorbed where the improvement of the largest buffer is no more than this many points away.
const ABSORBED: f64 = 5.0;

pub(super) fn fig9(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_traces(context, |bench| {
        let absolute = KIBIBYTES.map(|size| {
            Variant::new(Base::Poor, move |system, _| {
                buffer(system, marks(0.0, 0.0));
                buffer(system, |buffer| buffer.size = Bytes::from_kib(size as u64));
            })
        });
        let relative = PERCENTAGES.map(|size| {
            Variant::new(Base::Rich, move |system, trace| {
                buffer(system, marks(0.0, 0.0));
                buffer(system, |buffer| buffer.size = share(trace, size));
            })
        });
        let through =
            Base::BOTH.map(|base| Variant::new(base, |system, _| system.cache.write_buffer = None));
        let runs =
            bench.run(&through.into_iter().chain(absolute).chain(relative).collect::<Vec<_>>())?;
        let (through, runs) = runs.split_at(2);
        let (absolute, relative) = runs.split_at(KIBIBYTES.len());
        let mut rows = Vec::new();
        for (is_personal, name, kib, percent) in [
            (true, "personal computers", [1024.0; 2], [0.01; 2]),
            (false, "servers", [4096.0, 8192.0], [0.05, 0.1]),
        ] {
            let by_size = absorbing(bench, is_personal, &through[0], absolute, &KIBIBYTES);
            let by_share = absorbing(bench, is_personal, &through[1], relative, &PERCENTAGES);
            rows.extend(burst_row(
                bench,
                &format!("{name}: buffer that absorbs bursts"),
                "KiB",
                kib,
                &by_size,
            ));
            let quantity = format!("{name}: buffer that absorbs bursts, of the storage used");
            rows.extend(burst_row(bench, &quantity, "%", percent, &by_share));
        }
        let ours = |through: &Runs, sizes: &[f64], runs: &[Runs]| {
            line(
                "ours",
                sizes
                    .iter()
                    .zip(runs)
                    .map(|(&size, runs)| (size, bench.mean(&gains(through, runs, WRITE_RESPONSE))))
                    .collect(),
            )
        };
        let y = "improvement of write response, %";
        let figures = vec![
            lines_log("buffer, KiB", y, vec![ours(&through[0], &KIBIBYTES, absolute)]),
            lines_log(
                "buffer, % of the storage used",
                y,
                vec![ours(&through[1], &PERCENTAGES, relative)],
            ),
        ];
        Ok(Outcome { rows, figures })
    })
}

/// The smallest buffer of each trace of personal computers, or of the others, that absorbs its bursts.
fn absorbing(
    bench: &Bench<'_>,
    is_personal: bool,
    through: &Runs,
    runs: &[Runs],
    sizes: &[f64],
) -> Vec<f64> {
    let by_size: Vec<Vec<f64>> =
        runs.iter().map(|runs| gains(through, runs, WRITE_RESPONSE)).collect();
    let of_class = (0..bench.traces.len())
        .filter(|trace| bench.traces[*trace].class.is_personal() == is_personal);
    of_class
        .map(|trace| {
            let best = by_size[sizes.len() - 1][trace];
            by_size
                .iter()
                .position(|gains| absorbs(gains, trace, best))
                .map_or(f64::INFINITY, |at| sizes[at])
        })
        .collect()
}

fn absorbs(gains: &[f64], trace: usize, best: f64) -> bool {
    gains[trace] >= best - ABSORBED
}

/// The median over the traces, within a factor of two; None without traces of the class.
fn burst_row(
    bench: &Bench<'_>,
    quantity: &str,
    unit: &'static str,
    paper: [f64; 2],
    sizes: &[f64],
) -> Option<Row> {
    let mut sorted = sizes.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = *sorted.get(sorted.len() / 2)?;
    let band = [paper[0] / 2.0, paper[1] * 2.0];
    let all: Vec<String> = sizes.iter().map(|size| format!("{size}")).collect();
    let row = bench.single_in(quantity, unit, Expected { paper, band }, median);
    Some(row.also(&format!("median of {}", all.join(", "))))
}

/// Buffers of figure 10b in per cent of the storage used.
const REPEATED: [f64; 7] = [0.006, 0.012, 0.025, 0.05, 0.1, 0.4, 1.6];

pub(super) fn fig10(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_traces(context, |bench| {
        let runs = bench.run(&REPEATED.map(|size| {
            Variant::new(Base::Rich, move |system, trace| {
                buffer(system, marks(1.0, 1.0));
                buffer(system, |buffer| buffer.size = share(trace, size));
            })
        }))?;
        let eliminated = values(&runs[4], |run| 100.0 * (1.0 - run.writes.miss_ratio));
        let expected = Expected { paper: [60.0, 75.0], band: [40.0, 85.0] };
        let mut rows = vec![bench.row(
            "writes that a buffer of 0.1 % of the storage used eliminates",
            "%",
            expected,
            &eliminated,
        )];
        let misses: Vec<(f64, f64)> = REPEATED
            .iter()
            .zip(&runs)
            .map(|(&size, runs)| (size, 100.0 * bench.mean(&values(runs, WRITE_MISSES))))
            .collect();
        let curve = fit(Form::Power, &misses);
        rows.extend(
            curve.as_ref().map(|fit| power_row(bench, "write misses over size", -0.2, fit)),
        );
        let fitted = curve.map(|fit| dots("fitted power law", sampled(&misses, &fit)));
        let all = [line("ours", misses)].into_iter().chain(fitted).collect();
        let figures = vec![lines_log("buffer, % of the storage used", "writes that miss, %", all)];
        Ok(Outcome { rows, figures })
    })
}

/// High marks of figures 11 to 13, with a low mark of 0.2.
const HIGH_MARKS: [f64; 6] = [0.2, 0.4, 0.6, 0.8, 0.9, 1.0];

/// Ages of figure A-18; the last is no limit.
const AGES_S: [Option<u64>; 4] = [Some(30), Some(600), Some(3600), None];

pub(super) fn fig11(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_traces(context, |bench| {
        let high = HIGH_MARKS.map(|high| {
            Variant::new(Base::Rich, move |system, _| buffer(system, marks(0.2, high)))
        });
        let level = Variant::new(Base::Rich, |system, _| buffer(system, marks(0.8, 0.8)));
        let ages = AGES_S.map(|age| {
            Variant::new(Base::Rich, move |system, _| {
                buffer(system, |buffer| buffer.max_age = age.map(SimDuration::from_secs));
            })
        });
        let runs = bench.run(&high.into_iter().chain([level]).chain(ages).collect::<Vec<_>>())?;
        let [m06, m08, m09, m10] = [&runs[2], &runs[3], &runs[4], &runs[5]];
        let (level, ages) = (&runs[6], &runs[7..]);
        let rows = vec![
            bench.at_most(
                "fewer writes miss with highMark 0.9 than with 0.6",
                10.0,
                &gains(m06, m09, WRITE_MISSES),
            ),
            bench
                .holds(
                    "write response rises from highMark 0.8 to 1",
                    bench.mean(&losses(m08, m10, WRITE_RESPONSE)) > 0.0,
                )
                .noted(bench.each(&losses(m08, m10, WRITE_RESPONSE))),
            bench
                .holds(
                    "without hysteresis write service rises",
                    bench.mean(&losses(m08, level, WRITE_SERVICE)) > 0.0,
                )
                .noted(bench.each(&losses(m08, level, WRITE_SERVICE))),
            bench.at_most(
                "writes that miss at an age of 1 h, above those without a limit",
                10.0,
                &losses(&ages[3], &ages[2], WRITE_MISSES),
            ),
        ];
        let by_mark = |of| {
            HIGH_MARKS
                .iter()
                .zip(&runs)
                .map(|(&mark, runs)| (mark, bench.mean(&values(runs, of))))
                .collect()
        };
        let figures = vec![
            lines("highMark", "write miss ratio", vec![line("ours", by_mark(WRITE_MISSES))]),
            lines("highMark", "write response, ms", vec![line("ours", by_mark(WRITE_RESPONSE))]),
            lines("highMark", "write service, ms", vec![line("ours", by_mark(WRITE_SERVICE))]),
        ];
        Ok(Outcome { rows, figures })
    })
}

fn losses(from: &Runs, to: &Runs, of: Measure) -> Vec<f64> {
    gains(from, to, of).into_iter().map(|gain| -gain).collect()
}
