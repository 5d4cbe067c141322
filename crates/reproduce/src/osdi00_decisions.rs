//! Towards Higher Disk Head Utilization (OSDI 2000), sections 3.3 and 4: processor time of a decision.

use std::sync::Arc;

use freewheel_freeblock::Rule;
use freewheel_model::drive::{Drive, Position};
use freewheel_model::sched::{CommandMark, Moment, PolicySpec, Waiting};
use freewheel_sim::config::ConfigError;
use freewheel_sim::library;
use freewheel_units::{Blocks, Lbn, Op, Prng, SimDuration, SimTime};

use super::{Context, Outcome, Row};
use crate::decisions::{DecisionCase, Fill, time_decisions};

/// Parts of the drive that are wanted, in %: the ends of the paper's range, and half.
const WANTED: [u32; 3] = [20, 50, 100];

/// Blocks of 512 B in a block of 4 KB, the paper's.
const BLOCK: u32 = 8;

/// "0-2.5ms on a 550MHz Intel Pentium III": the longest.
const PAPER_MS: f64 = 2.5;

/// Goals for a core of today: 10 us in the median, 100 us for 99 of 100.
const GOALS: [(&str, f64, f64); 2] = [("median", 0.5, 0.01), ("99th percentile", 0.99, 0.1)];

/// Decisions that are timed.
fn decisions(context: &Context<'_>) -> usize {
    if context.options.quick { 1_000 } else { 5_000 }
}

pub(super) fn sec4(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let drive = Arc::new(library::build(&library::spec("atlas10k")?, "atlas10k")?);
    let decisions = decisions(context);
    let timed = |fill| {
        let case = DecisionCase { drive: &drive, rule: Rule::Greedy, size: BLOCK, fill, decisions };
        time_decisions(&case, |call| (context.timer)(call))
    };
    let mut rows = Vec::new();
    let mut nodes = Vec::new();
    for wanted in WANTED {
        let times = timed(Fill::Part(f64::from(wanted) / 100.0));
        for (what, share, most) in GOALS {
            let quantity = format!("{wanted} % wanted: {what} of {decisions} decisions");
            let row = context
                .row_in(&quantity, "ms", [0.0, most], times.quantile_ns(share) as f64 / 1e6)
                .timing();
            rows.push(row.of_paper([PAPER_MS; 2]));
        }
        nodes.push(times.nodes_mean);
    }
    // The paper's worst case: many small requests, evenly over all cylinders.
    let worst = timed(Fill::OneATrack);
    for (what, share, _) in GOALS {
        let quantity = format!("a block on every track: {what} of {decisions} decisions");
        rows.push(
            context.measured(&quantity, "ms", worst.quantile_ns(share) as f64 / 1e6).timing(),
        );
    }
    let quantity = "a block on every track: nodes of a search, over those with 20 % wanted";
    let row = context.measured(quantity, "x", worst.nodes_mean / nodes[0]);
    rows.push(row.noted(format!(
        "{:.1} nodes against {:.1}: the paper's search takes longest there, and ours leaves out what bounds rule out",
        worst.nodes_mean, nodes[0]
    )));
    rows.push(window_cost(context, &drive)?);
    Ok(Outcome { rows, figures: Vec::new() })
}

/// Requests that wait at a choice: those of figure 6.
const WAITING: usize = 20;

/// "Its measured computational overhead is only 2-5 % higher than that of SPTF" (section 3.3), in %.
const PAPER_COST: [f64; 2] = [2.0, 5.0];

/// From one choice to the next: about an access.
const BETWEEN: SimDuration = SimDuration::from_ms(5);

/// A read of a block anywhere.
fn waiting(drive: &Drive, prng: &mut Prng, sequence: u64) -> Waiting {
    let blocks = u64::from(BLOCK);
    let start = Lbn::new(prng.below(drive.blocks().get() / blocks) * blocks);
    Waiting {
        target: drive.target(start, Blocks::new(blocks), Op::Read),
        arrival: SimTime::ZERO,
        sequence,
        fua: false,
        mark: CommandMark::None,
    }
}

/// What SPTF-SW40% costs to choose, above SPTF.
fn window_cost(context: &Context<'_>, drive: &Drive) -> Result<Row, ConfigError> {
    let chosen = 4 * decisions(context);
    let ns = |spec: PolicySpec| -> Result<f64, ConfigError> {
        let mut policy = spec.build()?;
        let mut prng = Prng::new(context.seed, "requests that wait");
        let mut requests = (0..).map(|sequence| waiting(drive, &mut prng, sequence));
        let mut next: Vec<Waiting> = requests.by_ref().take(WAITING + chosen).collect();
        next.drain(..WAITING).for_each(|waiting| policy.push(waiting));
        let (mut now, mut head) = (SimTime::ZERO, Position::default());
        let took = (context.timer)(&mut || {
            for &waiting in &next {
                let chosen = policy.pick(&Moment { now, head, drive }).expect("some wait");
                (now, head) = (now + BETWEEN, chosen.target.at);
                policy.push(waiting);
            }
        });
        Ok(took.ns() as f64)
    };
    let above = 100.0 * (ns(PolicySpec::SptfSw { window: 0.4 })? / ns(PolicySpec::Sptf)? - 1.0);
    let quantity = "SPTF-SW40%: time to choose among 20, above SPTF's";
    let row = context.measured(quantity, "%", above).timing().of_paper(PAPER_COST);
    Ok(row.noted("the paper's makes one pass over all that wait; ours makes two, each over those that a bound leaves"))
}
