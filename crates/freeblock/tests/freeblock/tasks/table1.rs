//! osdi00 table 1 and the four characteristics that section 2.1 gives of it.

use freewheel_freeblock::tasks::{
    BLOCK_SIZE_MAX, BlockSelection, Counts, Event, Extent, LAYERS_MAX, Pace, Promoted,
    REPEATED_EXTENTS_MAX, TaskError, TaskSpec, Until,
};
use freewheel_freeblock::{Foreground, ForegroundEvent, ForegroundObserver, FreeRun, Planner};
use freewheel_model::drive::Drive;
use freewheel_units::{Blocks, Bytes, Lbn, Op, Prng, SimDuration, SimTime};

use super::arm::{Arm, READ, WRITE, delivered, is_done, plain_spec, spec_of};

const NOW: SimTime = SimTime::ZERO;

fn whole(arm: &Arm, size: u32) -> Vec<Extent> {
    vec![Extent::new(0, arm.capacity() / u64::from(size) * u64::from(size))]
}

/// Serves random foreground reads of two blocks until `enough`, at most `most` of them.
fn serve_until(arm: &mut Arm, most: u32, mut enough: impl FnMut(&[Event]) -> bool) -> Vec<Event> {
    let mut prng = Prng::new(1, "foreground");
    let mut events = Vec::new();
    for _ in 0..most {
        if enough(&events) {
            return events;
        }
        let start = prng.below(arm.capacity() - 2);
        arm.serve(READ, start, 2);
        events.extend(arm.events());
    }
    panic!("not enough after {most} foreground requests");
}

#[test]
fn callbacks_come_after_head_passed() {
    let mut arm = Arm::plain();
    let spec = TaskSpec { counts: Counts::NONE, ..TaskSpec::new(READ, 8, whole(&arm, 8)) };
    let task = arm.tasks.register(NOW, spec).unwrap();
    assert_eq!(arm.events(), [], "nothing is there at once");
    let gap = arm.plan(READ, 2000, 8);
    assert!(!gap.runs.is_empty());
    assert_eq!(arm.events(), [], "a plan is no transfer");
    let mut at = (gap.opportunity.begin, gap.opportunity.from);
    arm.run(&gap.runs[0], &mut at);
    let events = arm.events();
    let Event::Delivered { task: of, extent, at: when, .. } = events[0] else {
        panic!("{events:?}")
    };
    assert_eq!((of, when), (task, at.0));
    let run = &gap.runs[0];
    assert!(run.start <= extent.start && extent.blocks <= Blocks::new(run.blocks.into()));
}

#[test]
fn scan_calls_back_every_block_once() {
    for size in [1, 3, 8, 16, 128] {
        // 64 KiB are more than half of a track, and every third of them lies on two.
        let mut arm = Arm::new(Drive::build(&spec_of(20, 2, 200)).unwrap());
        let task = arm.tasks.register(NOW, TaskSpec::new(READ, size, whole(&arm, size))).unwrap();
        let events = serve_until(&mut arm, 40_000, |events| is_done(events, task));
        let mut blocks = delivered(&events, task, size.into());
        blocks.sort_unstable();
        let all = 0..arm.capacity() / u64::from(size);
        assert!(blocks.into_iter().eq(all.map(|n| n * u64::from(size))), "blocks of {size}");
        assert!(matches!(events.last(), Some(Event::Done { .. })));
        let unknown = Err(TaskError::Unknown { task });
        assert_eq!(arm.tasks.progress(task, arm.now), unknown, "it has ended");
    }
}

#[test]
fn write_callbacks_come_once_from_gaps() {
    let mut arm = Arm::plain();
    let extents = vec![Extent::new(5, 400), Extent::new(3000, 160)];
    let task = arm.tasks.register(NOW, TaskSpec::new(WRITE, 8, extents)).unwrap();
    let mut written = 0;
    let mut prng = Prng::new(1, "foreground");
    let mut blocks = Vec::new();
    while blocks.len() < 70 {
        let start = prng.below(arm.capacity());
        let gap = arm.plan(READ, start, 1);
        let mut at = (gap.opportunity.begin, gap.opportunity.from);
        for run in &gap.runs {
            assert_eq!(run.op, WRITE);
            written += run.blocks;
            arm.run(run, &mut at);
        }
        arm.finish(&gap, at);
        let events = arm.events();
        blocks.extend(delivered(&events, task, 8));
        assert_eq!(blocks.len() == 70, is_done(&events, task));
    }
    assert_eq!(written, 560, "every sector once");
}

#[test]
fn shared_block_moves_once_for_all_tasks() {
    let mut arm = Arm::plain();
    let extents = vec![Extent::new(0, 1280)];
    let spec = TaskSpec { counts: Counts::NONE, ..TaskSpec::new(READ, 8, extents) };
    let tasks = [0; 3].map(|_| arm.tasks.register(NOW, spec.clone()).unwrap());
    let mut moved = vec![0; 1280];
    let mut prng = Prng::new(1, "foreground");
    let mut events = Vec::new();
    while !tasks.iter().all(|&task| is_done(&events, task)) {
        let gap = arm.plan(READ, prng.below(arm.capacity()), 1);
        let mut at = (gap.opportunity.begin, gap.opportunity.from);
        for run in &gap.runs {
            let first = run.start.get() as usize;
            moved[first..first + run.blocks as usize].iter_mut().for_each(|n| *n += 1);
            arm.run(run, &mut at);
        }
        arm.finish(&gap, at);
        events.extend(arm.events());
    }
    assert_eq!(moved, vec![1; 1280]);
    let got = tasks.map(|task| delivered(&events, task, 8));
    assert_eq!(got[0].len(), 160);
    assert!(got[1] == got[0] && got[2] == got[0], "at the same times");
}

#[test]
fn transfer_serves_any_block_size_and_alignment() {
    let mut arm = Arm::plain();
    let mut register = |size, start, blocks| {
        let spec = TaskSpec::new(READ, size, vec![Extent::new(start, blocks)]);
        arm.tasks.register(NOW, spec).unwrap()
    };
    let tasks = [register(8, 0, 160), register(32, 0, 160), register(8, 4, 160), register(1, 9, 3)];
    arm.tasks.done(&FreeRun { start: Lbn::new(6), blocks: 58, op: READ }, NOW);
    let events = arm.events();
    let got = |n: usize, size| delivered(&events, tasks[n], size);
    assert_eq!(got(0, 8), [8, 16, 24, 32, 40, 48, 56]);
    assert_eq!(got(1, 32), [32]);
    assert_eq!(got(2, 8), [12, 20, 28, 36, 44, 52]);
    assert_eq!(got(3, 1), [9, 10, 11]);
}

#[test]
fn block_delivered_elsewhere_stays_wanted() {
    let mut arm = Arm::plain();
    let spec = || TaskSpec::new(READ, 8, vec![Extent::new(0, 64)]);
    let first = arm.tasks.register(NOW, spec()).unwrap();
    arm.tasks.foreground(ForegroundEvent::Passed {
        op: READ,
        start: Lbn::new(0),
        blocks: 32,
        at: arm.now,
    });
    let second = arm.tasks.register(NOW, spec()).unwrap();
    arm.tasks.foreground(ForegroundEvent::Passed {
        op: READ,
        start: Lbn::new(0),
        blocks: 64,
        at: arm.now,
    });
    let events = arm.events();
    assert_eq!(delivered(&events, first, 8).len(), 8);
    assert_eq!(delivered(&events, second, 8).len(), 8);
}

#[test]
fn foreground_transfers_deliver_as_specified() {
    for (counts, by_read, by_write) in
        [(Counts::ALL, true, true), (Counts::READS, true, false), (Counts::NONE, false, false)]
    {
        for (op, serves) in [(READ, by_read), (WRITE, by_write)] {
            let mut arm = Arm::plain();
            let spec = TaskSpec { counts, ..TaskSpec::new(READ, 8, vec![Extent::new(16, 8)]) };
            let task = arm.tasks.register(NOW, spec).unwrap();
            arm.tasks.foreground(ForegroundEvent::Passed {
                op,
                start: Lbn::new(17),
                blocks: 20,
                at: arm.now,
            });
            assert_eq!(arm.events(), [], "not the whole block");
            arm.tasks.foreground(ForegroundEvent::Passed {
                op,
                start: Lbn::new(10),
                blocks: 20,
                at: arm.now,
            });
            assert_eq!(is_done(&arm.events(), task), serves, "{op} for {counts:?}");
        }
    }
}

#[test]
fn aborted_blocks_are_not_read() {
    let mut arm = Arm::plain();
    let task = arm.tasks.register(NOW, TaskSpec::new(READ, 8, whole(&arm, 8))).unwrap();
    let part = [Extent::new(60, 1000)];
    // Blocks 8 to 131 lie wholly in 60..1060.
    assert_eq!(arm.tasks.abort(NOW, task, BlockSelection::In(&part)), Ok(124));
    assert_eq!(arm.tasks.abort(NOW, task, BlockSelection::In(&part)), Ok(0), "they are gone");
    let events = serve_until(&mut arm, 20_000, |events| is_done(events, task));
    let blocks = delivered(&events, task, 8);
    assert_eq!(blocks.len() as u64, arm.capacity() / 8 - 124);
    assert!(!blocks.iter().any(|block| (64..1056).contains(block)));
}

#[test]
fn aborted_task_is_silent() {
    let mut arm = Arm::plain();
    let task = arm.tasks.register(NOW, TaskSpec::new(READ, 8, whole(&arm, 8))).unwrap();
    assert_eq!(arm.tasks.abort(NOW, task, BlockSelection::All), Ok(arm.capacity() / 8));
    arm.serve(READ, 900, 64);
    assert_eq!(arm.events(), []);
    assert_eq!(arm.plan(READ, 2000, 8).runs, []);
    assert_eq!(arm.tasks.abort(NOW, task, BlockSelection::All), Err(TaskError::Unknown { task }));
}

#[test]
fn promoted_blocks_merge_up_to_limit() {
    let mut arm = Arm::plain();
    let extents = vec![Extent::new(8, 80), Extent::new(200, 8)];
    let task = arm.tasks.register(NOW, TaskSpec::new(READ, 8, extents)).unwrap();
    arm.tasks.foreground(ForegroundEvent::Passed {
        op: READ,
        start: Lbn::new(40),
        blocks: 8,
        at: NOW,
    });
    let requests = arm.tasks.promote(task, BlockSelection::All, 30).unwrap();
    let ranges: Vec<(u64, u32)> = requests.iter().map(|r| (r.start.get(), r.blocks)).collect();
    assert_eq!(ranges, [(8, 24), (32, 8), (48, 24), (72, 16), (200, 8)]);
    assert!(requests.iter().all(|request| request.op == READ));
    let error = TaskError::MergeLimit { limit: 7, size: 8 };
    assert_eq!(arm.tasks.promote(task, BlockSelection::All, 7), Err(error));
}

#[test]
fn promoted_blocks_come_by_foreground_only() {
    let mut arm = Arm::plain();
    let spec = TaskSpec { counts: Counts::NONE, ..TaskSpec::new(READ, 8, whole(&arm, 8)) };
    let task = arm.tasks.register(NOW, spec).unwrap();
    let requests = arm.tasks.promote(task, BlockSelection::In(&[Extent::new(0, 64)]), 64).unwrap();
    let others = arm.capacity_in(8) as usize - 8;
    let events = serve_until(&mut arm, 20_000, |events| delivered(events, task, 8).len() == others);
    assert!(delivered(&events, task, 8).iter().all(|&block| block >= 64));
    let progress = arm.tasks.progress(task, arm.now).unwrap();
    assert_eq!((progress.wanted, progress.promoted), (8, 8));
    arm.serve(READ, requests[0].start.get(), requests[0].blocks);
    let events = arm.events();
    assert_eq!(delivered(&events, task, 8), [0, 8, 16, 24, 32, 40, 48, 56]);
    assert!(is_done(&events, task));
}

#[test]
fn promoted_read_from_buffer_is_delivered() {
    let mut arm = Arm::plain();
    let task = arm.tasks.register(NOW, TaskSpec::new(READ, 8, vec![Extent::new(0, 8)])).unwrap();
    let Promoted { id, op, start, blocks, .. } =
        arm.tasks.promote_next(task, Lbn::ZERO, 8).unwrap().unwrap();
    let request = Foreground { op, start, blocks, sequence: 1, promotion: Some(id) };
    arm.tasks.foreground(ForegroundEvent::Arrived { request: &request, at: NOW });
    arm.tasks.foreground(ForegroundEvent::Done { request: &request, at: NOW });
    let events = arm.events();
    assert_eq!(delivered(&events, task, 8), [0]);
    assert!(is_done(&events, task));
}

#[test]
fn sample_ends_after_enough_blocks() {
    let mut arm = Arm::plain();
    let spec = TaskSpec { until: Until::Enough(37), ..TaskSpec::new(READ, 8, whole(&arm, 8)) };
    let task = arm.tasks.register(NOW, spec).unwrap();
    let events = serve_until(&mut arm, 5000, |events| is_done(events, task));
    assert_eq!(delivered(&events, task, 8).len(), 37, "not one more");
    assert_eq!(arm.plan(READ, 2000, 8).runs, [], "the rest is aborted");
}

#[test]
fn repeated_scan_delivers_once_per_round() {
    let mut arm = Arm::new(small_drive());
    let spec = TaskSpec { until: Until::Repeated, ..TaskSpec::new(READ, 8, whole(&arm, 8)) };
    let task = arm.tasks.register(NOW, spec).unwrap();
    let rounds = |events: &[Event]| {
        events.iter().filter(|event| matches!(event, Event::Done { .. })).count()
    };
    let events = serve_until(&mut arm, 20_000, |events| rounds(events) == 3);
    let all = arm.capacity() as usize / 8;
    let by_round: Vec<&[Event]> =
        events.split(|event| matches!(event, Event::Done { .. })).collect();
    for round in &by_round[..3] {
        let mut blocks = delivered(round, task, 8);
        blocks.sort_unstable();
        blocks.dedup();
        assert_eq!(blocks.len(), all);
        assert_eq!(delivered(round, task, 8).len(), all);
    }
    let progress = arm.tasks.progress(task, arm.now).unwrap();
    assert_eq!(progress.rounds, 3);
    assert_eq!(progress.delivered_total, 3 * all as u64 + progress.delivered);
    // What is aborted is not wanted in the next round either.
    arm.tasks.abort(arm.now, task, BlockSelection::In(&[Extent::new(0, 80)])).unwrap();
    let events = serve_until(&mut arm, 20_000, |events| rounds(events) == 2);
    assert!(delivered(&events, task, 8).iter().all(|&block| block >= 80));
}

#[test]
fn abort_of_too_many_extents_is_refused() {
    let mut arm = Arm::new(Drive::build(&plain_spec(1600)).unwrap());
    let spec = TaskSpec { until: Until::Repeated, ..TaskSpec::new(READ, 1, whole(&arm, 1)) };
    let task = arm.tasks.register(NOW, spec).unwrap();
    let every_other = |count: u64| -> Vec<Extent> {
        (0..count).rev().map(|nth| Extent::new(2 * nth + 1, 1)).collect()
    };
    let count = REPEATED_EXTENTS_MAX as u64;
    let refused = arm.tasks.abort(NOW, task, BlockSelection::In(&every_other(count)));
    assert_eq!(refused, Err(TaskError::TooManyExtents { count: REPEATED_EXTENTS_MAX + 1 }));
    assert_eq!(arm.tasks.progress(task, NOW).unwrap().wanted, arm.capacity());
    let aborted = arm.tasks.abort(NOW, task, BlockSelection::In(&every_other(count - 1)));
    assert_eq!(aborted, Ok(count - 1));
    // The next round is without them, too.
    for _ in 0..2 {
        arm.tasks.foreground(ForegroundEvent::Passed {
            op: READ,
            start: Lbn::new(0),
            blocks: arm.capacity() as u32,
            at: NOW,
        });
        let wanted = arm.capacity() - (count - 1);
        assert_eq!(arm.tasks.progress(task, NOW).unwrap().wanted, wanted);
    }
}

fn small_drive() -> Drive {
    Drive::build(&plain_spec(4)).unwrap()
}

#[test]
fn progress_predicts_end_by_rate() {
    let mut arm = Arm::plain();
    let begin = SimTime::from_ns(1_000);
    let task = arm.tasks.register(begin, TaskSpec::new(READ, 8, whole(&arm, 8))).unwrap();
    assert_eq!(arm.tasks.progress(task, begin).unwrap().end_estimate, None);
    // A quarter in 500 ns: 1500 ns for the rest.
    arm.tasks.foreground(ForegroundEvent::Passed {
        op: READ,
        start: Lbn::new(0),
        blocks: arm.capacity() as u32 / 4,
        at: begin,
    });
    let progress = arm.tasks.progress(task, SimTime::from_ns(1_500)).unwrap();
    assert_eq!(progress.end_estimate, Some(SimTime::from_ns(3_000)));
    assert_eq!(progress.delivered * 3, progress.wanted);
    assert_eq!((progress.since, progress.rounds), (begin, 0));
}

#[test]
fn standing_task_takes_coming_blocks() {
    let mut arm = Arm::plain();
    let spec = TaskSpec { until: Until::Standing, ..TaskSpec::new(READ, 8, Vec::new()) };
    let task = arm.tasks.register(NOW, spec).unwrap();
    for start in [0, 80, 0] {
        arm.tasks.extend(NOW, task, &[Extent::new(start, 8)]).unwrap();
        arm.tasks.extend(NOW, task, &[Extent::new(start, 8)]).unwrap();
        arm.tasks.foreground(ForegroundEvent::Passed {
            op: READ,
            start: Lbn::new(start),
            blocks: 8,
            at: NOW,
        });
        let events = arm.events();
        assert_eq!(delivered(&events, task, 8), [start], "once, however often it was asked for");
        assert!(!is_done(&events, task));
    }
}

#[test]
fn caller_errors_are_values_without_effect() {
    let mut arm = Arm::plain();
    let end = arm.capacity();
    let capacity = Blocks::new(end);
    let good = TaskSpec::new(READ, 8, vec![Extent::new(0, 64)]);
    let with = |change: &dyn Fn(&mut TaskSpec)| {
        let mut spec = good.clone();
        change(&mut spec);
        spec
    };
    let past = Extent::new(end - 8, 16);
    let endless = Extent::new(u64::MAX, 8);
    let part = Extent::new(0, 12);
    let cases: Vec<(TaskSpec, TaskError)> = vec![
        (with(&|s| s.op = Op::Flush), TaskError::MovesNothing { op: Op::Flush }),
        (with(&|s| s.block_size = 0), TaskError::BlockSize { size: 0 }),
        (
            with(&|s| s.block_size = BLOCK_SIZE_MAX + 1),
            TaskError::BlockSize { size: BLOCK_SIZE_MAX + 1 },
        ),
        (with(&|s| s.extents.clear()), TaskError::Empty),
        (with(&|s| s.extents = vec![Extent::new(3, 0)]), TaskError::Empty),
        (with(&|s| s.extents = vec![past]), TaskError::PastEnd { extent: past, capacity }),
        (with(&|s| s.extents = vec![endless]), TaskError::PastEnd { extent: endless, capacity }),
        (with(&|s| s.extents = vec![part]), TaskError::PartBlock { extent: part, size: 8 }),
        (
            with(&|s| {
                s.op = WRITE;
                s.extents.push(Extent::new(60, 8));
            }),
            TaskError::Overlap { at: Lbn::new(60) },
        ),
        (with(&|s| (s.op, s.until) = (WRITE, Until::Repeated)), TaskError::RepeatedWrite),
        (with(&|s| s.until = Until::Enough(0)), TaskError::Enough { enough: 0, blocks: 8 }),
        (with(&|s| s.until = Until::Enough(9)), TaskError::Enough { enough: 9, blocks: 8 }),
        (with(&|s| s.pace = Pace::Share(0)), TaskError::NoShare),
        (with(&|s| s.pace = Pace::Room(0)), TaskError::NoRoom),
        (with(&|s| s.pace = Pace::Deadline(SimDuration::ZERO)), TaskError::NoTime),
    ];
    let before = arm.tasks.memory();
    for (spec, error) in cases {
        assert_eq!(arm.tasks.register(NOW, spec), Err(error));
    }
    assert_eq!(arm.tasks.memory(), before);
    assert_eq!(arm.tasks.ids().count(), 0);
    let task = arm.tasks.register(NOW, good).unwrap();
    let error = Err(TaskError::PastEnd { extent: past, capacity });
    assert_eq!(arm.tasks.extend(NOW, task, &[past]), error);
    assert_eq!(arm.tasks.abort(NOW, task, BlockSelection::In(&[past])).map(|_| ()), error);
    assert_eq!(arm.tasks.promote(task, BlockSelection::In(&[past]), 64).map(|_| ()), error);
    assert_eq!(arm.tasks.progress(task, NOW).unwrap().wanted, 8);
}

#[test]
fn layers_beyond_limit_are_refused() {
    let mut arm = Arm::plain();
    let spec = |offset| TaskSpec::new(READ, 128, vec![Extent::new(offset, 128)]);
    let tasks: Vec<_> =
        (0..LAYERS_MAX as u64).map(|n| arm.tasks.register(NOW, spec(n)).unwrap()).collect();
    let error = TaskError::TooManyLayers { needed: LAYERS_MAX + 1 };
    assert_eq!(arm.tasks.register(NOW, spec(100)), Err(error));
    arm.tasks.register(NOW, spec(3)).expect("a layer that is there is shared");
    arm.tasks.abort(NOW, tasks[0], BlockSelection::All).unwrap();
    let task = arm.tasks.register(NOW, spec(100)).unwrap();
    arm.tasks.foreground(ForegroundEvent::Passed {
        op: READ,
        start: Lbn::new(100),
        blocks: 128,
        at: NOW,
    });
    assert!(is_done(&arm.events(), task));
}

#[test]
fn repeated_task_of_many_extents_is_refused() {
    let drive = Drive::build(&plain_spec(1100)).unwrap();
    let mut arm = Arm::new(drive);
    let extents = |count: u64| (0..count).map(|n| Extent::new(2 * n, 1)).collect();
    let spec =
        |count| TaskSpec { until: Until::Repeated, ..TaskSpec::new(READ, 1, extents(count)) };
    let most = REPEATED_EXTENTS_MAX as u64;
    let error = TaskError::TooManyExtents { count: REPEATED_EXTENTS_MAX + 1 };
    assert_eq!(arm.tasks.register(NOW, spec(most + 1)), Err(error));
    assert!(arm.tasks.register(NOW, spec(most)).is_ok());
}

#[test]
fn block_beyond_piece_memory_is_refused() {
    use freewheel_freeblock::Options;
    use freewheel_freeblock::tasks::{CADENCE, Tasks};
    let options = Options { held_max: Bytes::from_kib(4), ..Options::default() };
    let mut tasks = Tasks::new(&std::sync::Arc::new(small_drive()), options, CADENCE);
    let spec = |size: u32| TaskSpec::new(READ, size, vec![Extent::new(0, size.into())]);
    let error = TaskError::BeyondMemory { block: Bytes::new(4608), held_max: Bytes::from_kib(4) };
    assert_eq!(tasks.register(NOW, spec(9)), Err(error));
    assert!(tasks.register(NOW, spec(8)).is_ok());
}
