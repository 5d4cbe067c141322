//! Erasures in front of backups whose data somebody has to take.

use super::*;
use crate::tasks::{ServedTaskReport, TaskState};

/// Bytes that are handed on and not taken, at most, and taken in a tenth of a second: a quarter of what
/// the drive reads.
const BUFFER: u64 = 4 << 20;
const TAKEN: u64 = 512 << 10;

/// A backup of a drive of over 100 MiB, most of which is erased once it has begun.
fn erased(world: &mut TestHost) -> (u64, u64) {
    world.media.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at >> 9) as u8 ^ at as u8);
    let spec = read_by(world.whole(TaskKind::Backup));
    let backup = world.scheduler.tasks_mut().create(world.now, spec).unwrap();
    world.scheduler.tasks_mut().reader_came(world.now, backup, BUFFER, &[]).unwrap();
    let erasure = world.erase(Erase::Zeroes { keep: false }, 0, 200_000, false);
    (backup, erasure)
}

fn report(world: &TestHost, task: u64) -> ServedTaskReport {
    world.scheduler.tasks().report(task, world.now).unwrap()
}

#[test]
fn erase_waits_for_slow_backup_alone() {
    let mut world = TestHost::sized(400, 512, &[], SameTrack::Merge);
    let (backup, erasure) = erased(&mut world);
    let before = world.media.clone();
    let mut image = vec![0; before.len()];
    let (mut handed_on, mut taken, mut most) = (0u64, 0, 0);
    let mut prng = Prng::new(7, "reads beside an erasure");
    while report(&world, backup).state == TaskState::Running {
        let read = world.read(200_000 + prng.below(world.blocks() - 200_008), 8);
        world.run_until(world.now + us(100_000));
        assert!(world.answers.iter().any(|(_, (id, _))| *id == read), "{:?}", world.now);
        for output in world.outputs() {
            let ServedTaskOutput::Data { start, data, .. } = output else { continue };
            image[(start.get() * BLOCK_BYTES) as usize..][..data.len()].copy_from_slice(&data);
            handed_on += data.len() as u64;
        }
        most = most.max(handed_on - taken);
        taken = handed_on.min(taken + TAKEN);
        world.scheduler.tasks_mut().set_room(backup, BUFFER.saturating_sub(handed_on - taken));
    }
    assert_eq!(report(&world, backup).state, TaskState::Done);
    assert!(image == before, "of the moment when it began");
    assert!(most <= BUFFER, "{most} bytes that the reader had not taken");
    assert!(world.answers.iter().any(|(_, (id, result))| *id == erasure && result.is_ok()));
    assert!(world.media[..200_000 * 512].iter().all(|&byte| byte == 0));
}

#[test]
fn erase_gives_up_on_stalled_reader() {
    let mut world = TestHost::sized(400, 512, &[], SameTrack::Merge);
    let (backup, erasure) = erased(&mut world);
    world.scheduler.tasks_mut().set_room(backup, 0);
    world.run_until(world.now + us(50_000_000));
    assert_eq!((report(&world, backup).state, world.answers.len()), (TaskState::Running, 0));
    world.run_until(world.now + us(60_000_000));
    assert_eq!(report(&world, backup).state, TaskState::Failed);
    assert_eq!(world.answers.last().map(|(_, (id, _))| *id), Some(erasure));
}

#[test]
fn write_behind_erase_waits_for_backup_copy() {
    let mut world = TestHost::without_tasks(&[], SameTrack::Merge);
    world.media.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at >> 9) as u8 ^ at as u8);
    let before = world.media.clone();
    let whole = world.whole(TaskKind::Backup);
    let spec = read_by(TaskOrder { block_size: blocks(128), ..whole });
    let backup = world.scheduler.tasks_mut().create(world.now, spec).unwrap();
    world.scheduler.tasks_mut().reader_came(world.now, backup, 1 << 30, &[]).unwrap();
    // The erasure waits for the read, and its copy of blocks 0 to 127 with it.
    world.read(8, 8);
    world.erase(Erase::Zeroes { keep: false }, 8, 8, false);
    world.write(64, vec![9; 4096], false);
    world.erase(Erase::Zeroes { keep: false }, 96, 8, false);
    world.run_until(world.now + us(100_000));
    assert_eq!(world.answers.len(), 4);
    world.scheduler.tasks_mut().promote(world.now, backup).unwrap();
    world.run_until(world.now + us(1_000_000));
    assert_eq!(report(&world, backup).state, TaskState::Done);
    for output in world.outputs() {
        let ServedTaskOutput::Data { start, data, .. } = output else { continue };
        let there = &before[(start.get() * BLOCK_BYTES) as usize..][..data.len()];
        assert!(data == there, "blocks from {start} on, of the moment when it began");
    }
}
