//! How much prefetching is best (tr03 figures 5 to 7, A-2 to A-15).

use freewheel_model::cache::{OpportunisticSpec, PrefetchSpec};
use freewheel_sim::config::ConfigError;
use freewheel_units::Bytes;

use super::tr03::{
    Bench, Expected, NO_WORSE, Runs, Variant, gains, line, lines_log, values, with_traces,
};
use super::tr03_measure::{READ_MISSES, READ_RESPONSE};
use super::tr03_system::{Base, System};
use super::tr03_traces::Class;
use super::{Context, Outcome, Row};
use freewheel_study::figure::Figure;

/// Amounts in KiB.
const UNITS: [u64; 6] = [8, 16, 32, 64, 128, 256];
const READ_AHEADS: [u64; 6] = [8, 16, 32, 64, 128, 256];
const SEGMENTS: [u64; 5] = [4, 8, 16, 32, 64];
const TRIGGERS: [u32; 3] = [1, 2, 3];
const PREEMPTIBLE: [u64; 5] = [32, 64, 128, 256, 512];

/// The place of the paper's 32 KB among the amounts of read-ahead, and of 128 KB among the preemptible ones.
const AHEAD_CHOSEN: usize = 2;
const PREEMPTIBLE_CHOSEN: usize = 2;

/// A base that prefetches this alone, and reads on in idle time to this many KiB.
fn variant(
    base: Base,
    prefetch: impl Fn(Class) -> PrefetchSpec + Sync + 'static,
    idle_kib: u64,
) -> Variant<'static> {
    Variant::new(base, move |system, trace| {
        system.without_prefetch();
        system.cache.prefetch = prefetch(trace.class);
        system.cache.opportunistic = OpportunisticSpec {
            read_ahead: Bytes::from_kib(idle_kib),
            ..OpportunisticSpec::default()
        };
    })
}

fn unit(kib: u64) -> PrefetchSpec {
    PrefetchSpec::LargeFetchUnit { unit: Bytes::from_kib(kib) }
}

fn ahead(kib: u64) -> PrefetchSpec {
    PrefetchSpec::ReadAhead { amount: Bytes::from_kib(kib) }
}

fn conditional(class: Class, with_trigger: u32, with_backward: bool) -> PrefetchSpec {
    let mut config = System::conditional(class);
    if let PrefetchSpec::Conditional { trigger, backward, .. } = &mut config {
        (*trigger, *backward) = (with_trigger, with_backward);
    }
    config
}

/// The runs of a base, in the order of [`variants`].
struct Swept<'a> {
    bench: &'a Bench<'a>,
    base: Base,
    nothing: &'a Runs,
    units: &'a [Runs],
    ahead: &'a [Runs],
    segments: &'a [Runs],
    triggers: &'a [Runs],
    backward: &'a Runs,
    preemptible: &'a [Runs],
    hybrid: &'a [Runs],
}

fn variants(base: Base) -> Vec<Variant<'static>> {
    let nothing = [variant(base, |_| PrefetchSpec::Off, 0)].into_iter();
    let hybrid = PREEMPTIBLE.map(|kib| variant(base, |_| ahead(READ_AHEADS[AHEAD_CHOSEN]), kib));
    nothing
        .chain(UNITS.map(|kib| variant(base, move |_| unit(kib), 0)))
        .chain(READ_AHEADS.map(|kib| variant(base, move |_| ahead(kib), 0)))
        .chain(
            SEGMENTS.map(|kib| {
                variant(base, move |_| PrefetchSpec::conditional(Bytes::from_kib(kib)), 0)
            }),
        )
        .chain(TRIGGERS.map(|it| variant(base, move |class| conditional(class, it, false), 0)))
        .chain([variant(base, |class| conditional(class, 1, true), 0)])
        .chain(PREEMPTIBLE.map(|kib| variant(base, |_| PrefetchSpec::Off, kib)))
        .chain(hybrid)
        .collect()
}

pub(super) fn fig5(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    with_traces(context, |bench| {
        let all: Vec<Variant<'_>> = Base::BOTH.into_iter().flat_map(variants).collect();
        let runs = bench.run(&all)?;
        let (mut rows, mut figures) = (Vec::new(), Vec::new());
        for (base, runs) in Base::BOTH.into_iter().zip(runs.chunks_exact(all.len() / 2)) {
            let swept = Swept::of(bench, base, runs);
            rows.extend(swept.rows());
            figures.extend(swept.figures());
        }
        Ok(Outcome { rows, figures })
    })
}

fn said(amounts: &[impl std::fmt::Display], gains: &[f64], unit: &str) -> String {
    let pairs = amounts.iter().zip(gains);
    let each = pairs.map(|(amount, gain)| format!("{amount}{unit} {gain:.1} %"));
    each.collect::<Vec<String>>().join(", ")
}

/// Cuts the first `count` runs off.
fn take<'a>(runs: &mut &'a [Runs], count: usize) -> &'a [Runs] {
    let (first, rest) = runs.split_at(count);
    *runs = rest;
    first
}

impl<'a> Swept<'a> {
    fn of(bench: &'a Bench<'a>, base: Base, mut runs: &'a [Runs]) -> Self {
        let runs = &mut runs;
        Self {
            bench,
            base,
            nothing: &take(runs, 1)[0],
            units: take(runs, UNITS.len()),
            ahead: take(runs, READ_AHEADS.len()),
            segments: take(runs, SEGMENTS.len()),
            triggers: take(runs, TRIGGERS.len()),
            backward: &take(runs, 1)[0],
            preemptible: take(runs, PREEMPTIBLE.len()),
            hybrid: take(runs, PREEMPTIBLE.len()),
        }
    }

    /// Improvement of read response over no prefetching, trace by trace.
    fn each(&self, runs: &Runs) -> Vec<f64> {
        gains(self.nothing, runs, READ_RESPONSE)
    }

    fn gain(&self, runs: &Runs) -> f64 {
        self.bench.mean(&self.each(runs))
    }

    /// The same over the traces of personal computers, or over the others.
    fn gain_of(&self, is_personal: bool, runs: &Runs) -> f64 {
        let traces = self.bench.traces.iter();
        let of_class = traces.zip(self.each(runs)).map(|(trace, gain)| {
            if trace.class.is_personal() == is_personal { gain } else { f64::NAN }
        });
        self.bench.mean(&of_class.collect::<Vec<f64>>())
    }

    fn named(&self, what: &str) -> String {
        format!("{}: {what}", self.base.name())
    }

    /// The amount with the best read response, within a factor of two of the paper's; None without traces of
    /// the class.
    fn best(&self, what: &str, amounts: &[u64], gains: &[f64], paper: f64) -> Option<Row> {
        if gains.iter().any(|gain| gain.is_nan()) {
            return None;
        }
        let best = (0..gains.len()).max_by(|&a, &b| gains[a].total_cmp(&gains[b]))?;
        let expected = Expected { paper: [paper; 2], band: [paper / 2.0, 2.0 * paper] };
        let row = self.bench.single_in(&self.named(what), "KiB", expected, amounts[best] as f64);
        Some(row.also(&said(amounts, gains, " KiB")))
    }

    fn rows(&self) -> Vec<Row> {
        let all = |runs: &[Runs]| runs.iter().map(|runs| self.gain(runs)).collect::<Vec<f64>>();
        let of = |is_personal, runs: &[Runs]| {
            runs.iter().map(|runs| self.gain_of(is_personal, runs)).collect::<Vec<f64>>()
        };
        let best = [
            self.best("best fetch unit", &UNITS, &all(self.units), 64.0).map(|row| {
                row.also(&format!("servers alone {}", said(&UNITS, &of(false, self.units), " KiB")))
            }),
            self.best("best read-ahead", &READ_AHEADS, &all(self.ahead), 32.0).map(|row| {
                row.also(&format!(
                    "servers alone {}",
                    said(&READ_AHEADS, &of(false, self.ahead), " KiB")
                ))
            }),
            self.best(
                "personal computers: best segment",
                &SEGMENTS,
                &of(true, self.segments),
                16.0,
            ),
            self.best("servers: best segment", &SEGMENTS, &of(false, self.segments), 8.0),
        ];
        let best = best.into_iter().flatten();
        best.chain(self.conditional_rows()).chain(self.preemptible_rows()).collect()
    }

    fn conditional_rows(&self) -> [Row; 2] {
        let triggers: Vec<f64> = self.triggers.iter().map(|runs| self.gain(runs)).collect();
        let falls = triggers.windows(2).all(|pair| pair[0] > pair[1]);
        let of_servers: Vec<f64> =
            self.triggers.iter().map(|runs| self.gain_of(false, runs)).collect();
        let forward = &self.triggers[0];
        let more: Vec<f64> = gains(forward, self.backward, READ_RESPONSE);
        [
            self.bench
                .holds(&self.named("the lower the trigger, the better"), falls)
                .noted(said(&TRIGGERS, &triggers, ""))
                .also(&format!("servers alone {}", said(&TRIGGERS, &of_servers, ""))),
            self.bench.at_most(&self.named("backward prefetching on top"), 2.0, &more),
        ]
    }

    fn preemptible_rows(&self) -> [Row; 3] {
        let amounts: Vec<f64> = self.preemptible.iter().map(|runs| self.gain(runs)).collect();
        let never_falls = amounts.windows(2).all(|pair| pair[1] >= pair[0] + NO_WORSE);
        let best = |runs: &[Runs]| {
            runs.iter().map(|runs| self.gain(runs)).fold(f64::NEG_INFINITY, f64::max)
        };
        let (alone, with_misses) = (best(self.preemptible), best(self.ahead));
        let hybrid = &self.hybrid[PREEMPTIBLE_CHOSEN];
        let below = best(self.hybrid) - self.gain(hybrid);
        let largest = self.bench.each(&self.each(&self.hybrid[PREEMPTIBLE.len() - 1]));
        let chosen = self.bench.each(&self.each(hybrid));
        [
            self.bench
                .holds(&self.named("more preemptible read-ahead never hurts"), never_falls)
                .noted(said(&PREEMPTIBLE, &amounts, " KiB")),
            self.bench
                .holds(
                    &self.named("preemptible read-ahead alone is weaker than that with misses"),
                    alone < with_misses,
                )
                .noted(format!(
                    "at their best amounts {alone:.1} % and {with_misses:.1} %; at 128 KiB and 32 KiB {} and {}",
                    self.bench.each(&self.each(&self.preemptible[PREEMPTIBLE_CHOSEN])),
                    self.bench.each(&self.each(&self.ahead[AHEAD_CHOSEN]))
                )),
            self.bench
                .single_at_most(&self.named("with both, 128 KB below the best limit"), 5.0, below)
                .also(&format!("at 128 KiB {chosen}; at 512 KiB {largest}")),
        ]
    }

    fn figures(&self) -> [Figure; 2] {
        let points = |amounts: &[u64], runs: &[Runs], y: &dyn Fn(&Runs) -> f64| {
            amounts.iter().zip(runs).map(|(&amount, runs)| (amount as f64, y(runs))).collect()
        };
        let swept = [
            ("large fetch unit", &UNITS[..], self.units),
            ("read-ahead", &READ_AHEADS[..], self.ahead),
            ("conditional, by segment", &SEGMENTS[..], self.segments),
            ("preemptible alone", &PREEMPTIBLE[..], self.preemptible),
            ("read-ahead and preemptible", &PREEMPTIBLE[..], self.hybrid),
        ];
        let drawn = |label: &'static str, y: &dyn Fn(&Runs) -> f64| {
            let all = swept.map(|(name, amounts, runs)| line(name, points(amounts, runs, y)));
            lines_log("amount, KiB", label, all.into())
        };
        [
            drawn("improvement of read response, %", &|runs| self.gain(runs)),
            drawn("reads that miss, %", &|runs| {
                100.0 * self.bench.mean(&values(runs, READ_MISSES))
            }),
        ]
    }
}
