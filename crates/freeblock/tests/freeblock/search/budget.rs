//! Effect of a budget of nodes on reads and writes.

use std::sync::Arc;

use freewheel_freeblock::{LayerKey, Options, Rule, Scheduler, SearchProgress};
use freewheel_model::drive::{Drive, Position};
use freewheel_units::{Op, Prng};

use super::case::{gap_between, plan_in_steps};

/// Number of thirty gaps that hold a write, if searches have this budget of nodes and end as soon as
/// `go_on` is false. Reads are wanted everywhere; writes, which are worth more, in one place on the way.
fn gaps_with_writes(
    drive: &Arc<Drive>,
    budget: u64,
    go_on: impl Fn(SearchProgress) -> bool,
) -> u32 {
    let options = Options { rule: Rule::Paths, budget, ..Options::default() };
    let mut scheduler = Scheduler::new(drive, options);
    let key = |op, weight| LayerKey { op, size: 8, offset: 0, weight };
    let (reads, writes) = (scheduler.layer(key(Op::Read, 1)), scheduler.layer(key(Op::Write, 16)));
    let prng = &mut Prng::new(1, "budget");
    let blocks = drive.blocks().get() / 8;
    for _ in 0..blocks / 50 {
        let block = prng.below(blocks);
        scheduler.want(reads, block, block + 1);
    }
    scheduler.want(writes, blocks / 2, blocks / 2 + 2000);
    let mut gap = || {
        let at = |cylinder| Position { cylinder: cylinder as u32, surface: 0 };
        let (from, to) = (at(prng.below(2000)), at(7000 + prng.below(2000)));
        let mut runs = Vec::new();
        let gap = gap_between(drive, prng, from, to);
        plan_in_steps(&mut scheduler, &gap, &go_on, &mut runs);
        runs.iter().any(|run| run.op == Op::Write)
    };
    (0..30).map(|_| u32::from(gap())).sum()
}

#[test]
fn reads_leave_node_budget_for_writes() {
    let spec = toml::from_str(include_str!("../../../../../drives/atlas10k.toml")).unwrap();
    let drive = Arc::new(Drive::build(&spec).unwrap());
    let written = gaps_with_writes(&drive, u64::MAX, |_| true);
    assert!(written >= 5, "{written}");
    // To one cylinder in each direction: eight levels of the tree, and a few more nodes.
    assert!(gaps_with_writes(&drive, 24, |_| true) * 2 > written);
    // A caller knows how many directions are to come.
    let in_parts = |so_far: SearchProgress| so_far.searches * so_far.nodes < 24;
    assert!(gaps_with_writes(&drive, u64::MAX, in_parts) * 2 > written);
}
