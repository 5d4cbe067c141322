//! Memory is one bit a block, independent of the blocks' size.

use freewheel_freeblock::tasks::{BlockSelection, CADENCE, Extent, TaskSpec, Tasks, Until};
use freewheel_freeblock::{ForegroundEvent, ForegroundObserver, Options, Rule};
use freewheel_model::drive::Drive;
use freewheel_units::{Bytes, Lbn, Prng, SimTime};

use super::arm::{Arm, READ, spec_of};

const NOW: SimTime = SimTime::ZERO;

/// One bit a block and two bits a track for pieces. A chunk of 512 B has 16 B beside its bits.
fn bits_of(blocks: u64, tracks: u64) -> u64 {
    (blocks / 8 + tracks / 4) * (512 + 16) / 512 + 4096
}

/// Twenty surfaces of 4096-block tracks: 24 TB.
fn large_drive() -> Drive {
    let drive = Drive::build(&spec_of(573_000, 20, 4096)).unwrap();
    assert!(drive.blocks().bytes() > Bytes::new(24_000_000_000_000));
    drive
}

#[test]
fn drive_of_24_tb_takes_bits() {
    let mut arm = Arm::new(large_drive());
    let idle = arm.tasks.memory();
    let (capacity, tracks) = (arm.capacity(), 573_000 * 20);
    let blocks = capacity / 128;
    let spec = TaskSpec::new(READ, 128, vec![Extent::new(0, blocks * 128)]);
    let first = arm.tasks.register(NOW, spec.clone()).unwrap();
    let one = arm.tasks.memory();
    assert!(one.wanted.get() >= blocks / 8, "{one:?}");
    assert!(one.wanted.get() <= bits_of(blocks, tracks), "{one:?}");
    assert_eq!(one.tasks, Bytes::ZERO, "a task that is alone on a layer needs no bitmap");
    assert_eq!(one.index, idle.index, "the index is as large without tasks");
    // Sharing a layer costs a bit a block and task, and no layer.
    let second = arm.tasks.register(NOW, spec).unwrap();
    let two = arm.tasks.memory();
    assert_eq!(two.wanted, one.wanted);
    assert!(two.tasks.get() <= 2 * bits_of(blocks, 0), "{two:?}");
    arm.tasks.abort(NOW, second, BlockSelection::All).unwrap();
    let left = arm.tasks.memory();
    assert_eq!((left.tasks, left.wanted), (Bytes::ZERO, one.wanted), "alone again");
    assert_eq!(arm.tasks.progress(first, NOW).unwrap().wanted, blocks);
}

#[test]
fn memory_follows_wanted_blocks_not_size() {
    let memory = |size: u32| {
        let mut arm = Arm::new(Drive::build(&spec_of(400, 4, 512)).unwrap());
        let blocks = arm.capacity() / u64::from(size);
        let extents = vec![Extent::new(0, blocks * u64::from(size))];
        let spec = TaskSpec { until: Until::Standing, ..TaskSpec::new(READ, size, extents) };
        let task = arm.tasks.register(NOW, spec).unwrap();
        let memory = arm.tasks.memory();
        assert!(memory.wanted.get() <= bits_of(blocks, 1600), "{size}: {memory:?}");
        // The most that promotion can add is another bit a block.
        arm.tasks.promote(task, BlockSelection::All, size).unwrap();
        let promoted = arm.tasks.memory();
        assert!(promoted.tasks.get() <= bits_of(blocks, 0), "{size}: {promoted:?}");
        for start in (0..arm.capacity()).step_by(1 << 16) {
            let blocks = (arm.capacity() - start).min((1 << 16) + 2048) as u32;
            arm.tasks.foreground(ForegroundEvent::Passed {
                op: READ,
                start: Lbn::new(start),
                blocks,
                at: NOW,
            });
        }
        assert_eq!(arm.tasks.progress(task, NOW).unwrap().wanted, 0);
        assert!(arm.tasks.memory().tasks.get() < 4096 + blocks / 256);
    };
    [1, 8, 128].into_iter().for_each(memory);
}

#[test]
fn data_held_for_pieces_are_counted() {
    let mut arm = Arm::plain();
    // Tracks of 64: the first block of 100 lies on two of them.
    let task = arm.tasks.register(NOW, TaskSpec::new(READ, 100, vec![Extent::new(0, 200)]));
    arm.tasks.foreground(ForegroundEvent::Passed {
        op: READ,
        start: Lbn::new(0),
        blocks: 64,
        at: NOW,
    });
    assert_eq!(arm.tasks.memory().held, Bytes::new(100 * 512));
    arm.tasks.foreground(ForegroundEvent::Passed {
        op: READ,
        start: Lbn::new(64),
        blocks: 40,
        at: NOW,
    });
    let memory = arm.tasks.memory();
    assert_eq!(memory.held, Bytes::ZERO);
    assert_eq!(memory.total(), memory.wanted + memory.tasks + memory.index);
    assert_eq!(arm.tasks.progress(task.unwrap(), NOW).unwrap().delivered, 1);
}

#[test]
fn task_without_data_needs_no_memory() {
    let mut arm = Arm::plain();
    let options = Options { held_max: Bytes::ZERO, ..Options::default() };
    arm.tasks = Tasks::new(&arm.drive, options, CADENCE);
    let spec = TaskSpec::new(READ, 100, vec![Extent::new(0, 200)]);
    arm.tasks.register(NOW, spec.clone()).unwrap_err();
    let spec = TaskSpec { holds_pieces: false, ..spec };
    let task = arm.tasks.register(NOW, spec).unwrap();
    // Tracks of 64: both blocks in pieces, and each piece counts once.
    for (start, blocks) in [(0, 64), (64, 64), (128, 64)] {
        arm.tasks.foreground(ForegroundEvent::Passed {
            op: READ,
            start: Lbn::new(start),
            blocks,
            at: NOW,
        });
        assert_eq!(arm.tasks.memory().held, Bytes::ZERO);
    }
    assert_eq!(arm.tasks.progress(task, NOW).unwrap().delivered, 1);
    arm.tasks.foreground(ForegroundEvent::Passed {
        op: READ,
        start: Lbn::new(192),
        blocks: 8,
        at: NOW,
    });
    assert!(arm.tasks.progress(task, NOW).is_err(), "complete, and over");
}

#[test]
fn piece_data_stay_below_limit() {
    // On tracks of 64 most blocks of 60 come in two pieces, of which each fits into a gap.
    let block = Bytes::new(60 * 512);
    for (rule, room) in [(Rule::Greedy, 1), (Rule::Greedy, 3), (Rule::Paths, 1), (Rule::Paths, 3)] {
        let mut arm = Arm::plain();
        let limit = Bytes::new(block.get() * room);
        let options = Options { rule, held_max: limit, ..Options::default() };
        arm.tasks = Tasks::new(&arm.drive, options, CADENCE);
        let blocks = arm.capacity_in(60);
        let spec = TaskSpec::new(READ, 60, vec![Extent::new(0, blocks * 60)]);
        let task = arm.tasks.register(NOW, spec).unwrap();
        let mut prng = Prng::new(room, "foreground");
        let mut most = Bytes::ZERO;
        for _ in 0..1000 {
            let start = prng.below(arm.capacity());
            arm.serve(READ, start, 1);
            let held = arm.tasks.memory().held;
            assert!(held <= limit, "{held} of {limit}");
            most = most.max(held);
        }
        assert_eq!(most, limit, "{rule:?}");
        let delivered = arm.tasks.progress(task, arm.now).map_or(blocks, |now| now.delivered);
        assert!(delivered > 0, "{rule:?} with room for {room}");
    }
}
