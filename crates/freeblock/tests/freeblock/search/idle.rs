//! Work in idle time.

use std::sync::Arc;

use freewheel_freeblock::{LayerKey, Options, Planner, Scheduler};
use freewheel_model::drive::{Departure, Drive};
use freewheel_units::{Blocks, Lbn, Op, Prng, SimTime};
use proptest::prelude::*;

use super::case::any_gap;
use super::oracle::Oracle;
use freewheel_testkit::drives::any_drive;

/// Time at which the first sector of a piece reaches the head that goes there.
fn begins(drive: &Drive, head: &Departure, first: u64, op: Op) -> SimTime {
    let target = drive.target(Lbn::new(first), Blocks::new(1), op);
    let access = drive.media_access_from(head, &target, 0);
    head.begin + access.seek + access.rotate
}

proptest! {
    #[test]
    fn idle_time_takes_nearest_until_done(
        (_, drive) in any_drive(), seed: u64,
    ) {
        // Room for a block of every size.
        prop_assume!(drive.blocks() > Blocks::new(9));
        let drive = Arc::new(drive);
        let prng = &mut Prng::new(seed, "idle");
        let mut scheduler = Scheduler::new(&drive, Options::default());
        let mut oracle = Oracle::new(&drive);
        for op in [Op::Read, Op::Write] {
            let size = 1 + prng.below(9) as u32;
            let key = LayerKey { op, size, offset: 0, weight: 1 };
            let layer = scheduler.layer(key);
            oracle.layers.push(key);
            for _ in 0..prng.below(20) {
                let block = prng.below(drive.blocks().get() / u64::from(size));
                scheduler.want(layer, block, block + 1);
                oracle.want(layer, block);
            }
        }
        let gap = any_gap(prng, &drive);
        let mut head = gap.departure();
        let most = 1 + prng.below(12) as u32;
        while let Some(run) = scheduler.plan_idle(&head, most) {
            let wanted = || oracle.wanted.iter().flat_map(|(&(layer, _), pieces)| {
                let op = oracle.layers[layer].op;
                pieces.iter().map(move |piece| (op, *piece))
            });
            let side = |cylinder: u32| {
                let here = head.from.cylinder;
                (here.abs_diff(cylinder), cylinder < here)
            };
            let nearest = wanted().map(|(_, piece)| side(piece.at.cylinder)).min().unwrap();
            let on_it = wanted().filter(|(_, piece)| side(piece.at.cylinder) == nearest);
            let first = on_it.map(|(op, piece)| begins(&drive, &head, piece.first, op)).min();
            let start = run.start.get();
            prop_assert_eq!(Some(begins(&drive, &head, start, run.op)), first);
            let at = drive.layout().locate(run.start);
            prop_assert_eq!(side(at.cylinder), nearest);
            let access = run.access(&drive, &head);
            head = head.after(&access, run.op);
            scheduler.done(&run, head.begin);
            let (worth, _) = oracle.take(start, start + u64::from(run.blocks), run.op);
            prop_assert!(worth >= run.blocks.into(), "all of it was wanted");
            prop_assert!(run.blocks <= most.max(9));
        }
        prop_assert!(oracle.wanted.is_empty());
    }
}
