//! Blocks that come in pieces, and memory that is short.

use std::sync::Arc;

use freewheel_freeblock::{LayerKey, Options, Planner, Rule, Scheduler};
use freewheel_model::drive::{Departure, Drive, Position};
use freewheel_units::{Blocks, Op, Prng, SimDuration, SimTime};
use proptest::prelude::*;

use super::case::{Case, any_gap};
use freewheel_testkit::drives::any_drive;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..Default::default() })]

    /// With one layer no run covers a piece that was left out. A track has two pieces at most but
    /// for those with blocks elsewhere in between, which these drives have few of.
    #[test]
    fn multi_track_plan_has_room_in_memory(
        (spec, drive) in any_drive(), seed: u64, held_max in 0u64..90, greedy: bool,
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let held_bytes = Blocks::new(held_max).bytes();
        let rule = if greedy { Rule::Greedy } else { Rule::Paths };
        let options = Options { rule, held_max: held_bytes, ..Options::default() };
        let mut case = Case::with(spec, seed, options, 1);
        let cylinders = case.oracle.drive.seek().distance_max() + 1;
        for _ in 0..60 {
            let held = case.oracle.held();
            let (worth, best, _, runs) = case.gap_with(|oracle, scheduler, gap| {
                oracle.best_with(gap, |cylinder| scheduler.begins_on(cylinder))
            });
            prop_assert!(case.oracle.held() <= held_max, "{:?}", runs);
            prop_assert!(!greedy || worth <= best);
            // Room for all pieces that one track can have, or no block is begun.
            let size: u64 = case.oracle.layers.iter().map(|key| u64::from(key.size)).sum();
            let begins = (0..cylinders).any(|cylinder| case.scheduler.begins_on(cylinder));
            if greedy && (!begins || held + 8 * size <= held_max) {
                prop_assert_eq!(worth, best, "{:?}", runs);
            }
        }
    }
}

#[test]
fn full_memory_reopens_cylinders_at_eighth_free() {
    let spec = toml::from_str(include_str!("../../../../../drives/atlas10k.toml")).unwrap();
    let drive = Arc::new(Drive::build(&spec).unwrap());
    let (size, room) = (128, 40);
    let held_max = Blocks::new(room * size).bytes();
    let options = Options { rule: Rule::Greedy, held_max, ..Options::default() };
    let mut scheduler = Scheduler::new(&drive, options);
    let key = LayerKey { op: Op::Read, size: size as u32, offset: 0, weight: 1 };
    let layer = scheduler.layer(key);
    let blocks = drive.blocks().get() / size;
    let cylinders = u64::from(drive.seek().distance_max() + 1);
    let open = |scheduler: &Scheduler| {
        (0..cylinders).filter(|&cylinder| scheduler.begins_on(cylinder as u32)).count() as u64
    };
    let held = |scheduler: &Scheduler| scheduler.held().get() / (size * 512);
    let (prng, mut runs) = (&mut Prng::new(1, "begins"), Vec::new());
    let mut gap = |scheduler: &mut Scheduler| {
        let gap = any_gap(prng, &drive);
        scheduler.plan(&gap, &mut runs);
        runs.iter().for_each(|run| scheduler.done(run, gap.due));
    };
    scheduler.want(layer, 0, 30);
    gap(&mut scheduler);
    assert_eq!(open(&scheduler), cylinders, "there is memory for all of thirty blocks");
    scheduler.want(layer, 30, blocks);
    for gaps in 0.. {
        gap(&mut scheduler);
        if gaps > 0 && open(&scheduler) == 0 {
            break;
        }
        assert_eq!(open(&scheduler), gaps.min(cylinders));
    }
    assert_eq!(held(&scheduler), room, "nothing was closed before");
    let mut first = 0;
    while held(&scheduler) > room - room / 8 {
        gap(&mut scheduler);
        assert_eq!(open(&scheduler), 0, "{} of {room} held", held(&scheduler));
        scheduler.unwant(layer, first, first + 100);
        first += 100;
    }
    for gaps in 1..=8 {
        gap(&mut scheduler);
        assert_eq!(open(&scheduler), gaps);
    }
    scheduler.unwant(layer, 0, blocks);
    for _ in 0..cylinders {
        gap(&mut scheduler);
    }
    assert_eq!(open(&scheduler), cylinders);
}

#[test]
fn idle_time_begins_blocks_in_pieces() {
    let spec = toml::from_str(include_str!("../../../../../drives/atlas10k.toml")).unwrap();
    let drive = Arc::new(Drive::build(&spec).unwrap());
    // Longer than any track.
    let size = 1024;
    let held_max = Blocks::new(40 * size).bytes();
    let mut scheduler = Scheduler::new(&drive, Options { held_max, ..Options::default() });
    let key = LayerKey { op: Op::Read, size: size as u32, offset: 0, weight: 1 };
    let layer = scheduler.layer(key);
    let (half, all) = (drive.blocks().get() / size / 2, drive.blocks().get() / size);
    scheduler.want(layer, half, all);
    let head = Departure {
        begin: SimTime::ZERO,
        from: Position { cylinder: 0, surface: 0 },
        last_op: Op::Read,
        read_write_switch: SimDuration::ZERO,
    };
    let mut read = 0;
    for runs in 1..=20 {
        let run = scheduler.plan_idle(&head, 2048).expect("a thousand are wanted");
        scheduler.done(&run, SimTime::ZERO);
        read += u64::from(run.blocks);
        let open = (0..=drive.seek().distance_max()).filter(|&at| scheduler.begins_on(at)).count();
        // The first closes them all.
        assert_eq!(open, runs - 1, "cylinders after {runs} runs");
    }
    assert!(read >= 4 * size && scheduler.wanted(layer) < all - half, "{read} blocks of 512 B");
}
