//! Refreshes: written in gaps, in idle time and like clients, and never over what a client wrote.

use super::*;
use crate::tasks::{RefreshReport, ServedTaskReport, TaskState};

/// Options of a world beside its refresh.
#[derive(Debug, Clone, Copy)]
struct Settings {
    fua: bool,
    idle: bool,
    repeats: bool,
}

fn world(bad: &[u64], settings: Settings) -> (TestHost, u64) {
    let mut world = TestHost::without_tasks(bad, SameTrack::Merge);
    let blocks = world.blocks();
    world.media = (0..blocks * BLOCK_BYTES).map(|byte| (byte % 251) as u8).collect();
    world.scheduler.abilities.fua = settings.fua;
    world.scheduler.tasks.writes_by(!settings.fua, 1);
    let idle_after = settings.idle.then(|| us(2000));
    let spec = world.whole(TaskKind::Refresh);
    let spec = TaskOrder { idle_after, repeat: settings.repeats, ..spec };
    let id = world.create(spec);
    (world, id)
}

fn report(world: &TestHost, id: u64) -> (ServedTaskReport, RefreshReport) {
    let report = world.scheduler.tasks().report(id, world.now).unwrap();
    let refresh = report.refresh.clone().unwrap();
    (report, refresh)
}

/// Every block of a round ends in one way.
fn assert_all_told(report: &ServedTaskReport, refresh: &RefreshReport) {
    assert_eq!(report.state, TaskState::Done);
    let RefreshReport { refreshed, superseded, busy, differing_blocks, unwritten_blocks, .. } =
        refresh;
    let ends = [*refreshed, *superseded, *busy, *differing_blocks, *unwritten_blocks];
    let ends = ends.iter().map(|blocks| blocks.get()).sum::<u64>();
    assert_eq!(ends + report.unreadable_blocks.get(), report.blocks.get(), "{refresh:?}");
}

#[test]
fn refresh_under_load_keeps_client_writes() {
    for (seed, fua) in [(1, true), (2, false), (3, true), (4, false)] {
        let settings = Settings { fua, idle: false, repeats: true };
        let (mut world, id) = world(&[], settings);
        let reads = load(&mut world, 3000, seed);
        let answers: BTreeMap<u64, &Vec<u8>> =
            world.answers.iter().map(|(_, (id, data))| (*id, data.as_ref().unwrap())).collect();
        for (read, (start, data)) in &reads {
            assert!(answers[read] == data, "read {read} of {start}");
        }
        let (_, refresh) = report(&world, id);
        assert!(refresh.refreshed.get() > 1000, "{refresh:?}");
        assert_eq!(refresh.differing, [], "{refresh:?}");
        let account = *world.scheduler.account();
        assert!(account.free_written_blocks > 500, "{account:?}");
        assert!(account.delay_ns < 500_000_000, "{account:?}");
    }
}

/// Gaps for a refresh, and no writes of clients.
fn reads_of_clients(world: &mut TestHost, seed: u64, until: impl Fn(&TestHost) -> bool) {
    let mut prng = Prng::new(seed, "clients that read");
    for _ in 0..20_000 {
        if until(world) {
            return;
        }
        let start = prng.below(world.blocks() - 8);
        world.read(start, 1 + prng.below(8));
        world.run_until(world.now + us(prng.below(8000)));
    }
    panic!("it takes too long: {:?}", world.scheduler.tasks().reports(world.now));
}

fn is_over(world: &TestHost, id: u64) -> bool {
    report(world, id).0.state.is_over()
}

#[test]
fn refresh_in_gaps_rewrites_and_verifies() {
    for fua in [true, false] {
        let (mut world, id) = world(&[], Settings { fua, idle: false, repeats: false });
        let before = world.media.clone();
        reads_of_clients(&mut world, 5, |world| is_over(world, id));
        assert!(world.media == before);
        let (report, refresh) = report(&world, id);
        assert_all_told(&report, &refresh);
        assert_eq!(refresh.refreshed, report.blocks, "{refresh:?}");
        assert_eq!(report.delivered, report.blocks);
        let written = world.scheduler.account().free_written_blocks;
        assert!(written >= report.blocks.get() * 99 / 100, "{written}: by gaps");
    }
}

#[test]
fn refresh_runs_on_idle_drive() {
    for promotes in [true, false] {
        let (mut world, id) = world(&[], Settings { fua: false, idle: !promotes, repeats: false });
        if promotes {
            world.scheduler.tasks_mut().promote(world.now, id).unwrap();
        }
        world.run_until(world.now + us(200_000_000));
        let (report, refresh) = report(&world, id);
        assert_all_told(&report, &refresh);
        assert_eq!(refresh.refreshed, report.blocks, "{refresh:?}");
    }
}

#[test]
fn refresh_rounds_reread_busy_block() {
    let mut world = TestHost::without_tasks(&[], SameTrack::Merge);
    world.scheduler.tasks.writes_by(false, 1);
    let one_block = TaskOrder::served(TaskKind::Refresh, Extent::new(1000, 8), 8);
    let idle_after = Some(us(2000));
    let id = world.create(TaskOrder { idle_after, repeat: true, ..one_block });
    let mut busy_after = |writes: u32| {
        for _ in 0..writes {
            while world.scheduler.tasks.to_write(Lbn::new(1000), 8).is_none() {
                world.run_until(world.now + us(100));
            }
            world.write(1003, vec![7; 512], false);
        }
        report(&world, id).1.busy.get()
    };
    assert_eq!(busy_after(16), 0);
    assert_eq!(busy_after(1), 8, "it is left, and the round is over");
    assert_eq!(busy_after(16), 8, "of the first round");
    assert_eq!(busy_after(1), 16);
}

#[test]
fn refresh_names_unreadable_sectors() {
    let (mut world, id) = world(&[1000, 1001], Settings { fua: true, idle: true, repeats: false });
    reads_of_clients(&mut world, 6, |world| is_over(world, id));
    let (report, refresh) = report(&world, id);
    assert_all_told(&report, &refresh);
    assert_eq!(report.unreadable, [Extent::new(1000, 2)]);
    assert_eq!(refresh.refreshed.get(), report.blocks.get() - 2);
}

#[test]
fn refresh_names_unwritable_blocks_without_fua() {
    for idle in [false, true] {
        let (mut world, id) = world(&[], Settings { fua: false, idle, repeats: false });
        world.unwritable = 1003..1004;
        reads_of_clients(&mut world, 14, |world| is_over(world, id));
        let (report, refresh) = report(&world, id);
        assert_all_told(&report, &refresh);
        assert_eq!(refresh.unwritten, [Extent::new(1000, 8)], "{refresh:?}");
        assert_eq!(refresh.refreshed.get(), report.blocks.get() - 8);
    }
}

#[test]
fn refresh_names_blocks_that_differ() {
    let (mut world, id) = world(&[], Settings { fua: true, idle: false, repeats: false });
    // Somebody else writes where the first write has just been.
    while world.scheduler.account().free_written_blocks == 0 {
        reads_of_clients(&mut world, 7, |world| !world.scheduler.gap_writes.is_empty());
        world.run_until(world.now + us(50_000));
    }
    let held = world.scheduler.tasks().report(id, world.now).unwrap();
    assert_eq!(held.delivered.get(), 0, "nothing has been read back");
    world.media.iter_mut().for_each(|byte| *byte ^= 1);
    let media = world.media.clone();
    reads_of_clients(&mut world, 8, |world| is_over(world, id));
    let (report, refresh) = report(&world, id);
    assert_all_told(&report, &refresh);
    assert!(refresh.differing_blocks.get() >= 8, "{refresh:?}");
    let changed = world.media.iter().zip(&media).filter(|(one, other)| one != other).count();
    assert!(changed > 0, "what had been read was written: nobody else may write");
}

#[test]
fn client_write_cancels_pending_rewrite() {
    let (mut world, id) = world(&[], Settings { fua: true, idle: false, repeats: false });
    reads_of_clients(&mut world, 9, |world| world.scheduler.account().free_blocks > 2000);
    let kept = |world: &TestHost, start: u64| world.scheduler.tasks.to_write(Lbn::new(start), 8);
    let all: Vec<u64> =
        (0..world.blocks()).step_by(8).filter(|&start| kept(&world, start).is_some()).collect();
    let [whole, part, ..] = all[..] else { panic!("blocks wait for their write") };
    assert_eq!(kept(&world, whole).unwrap(), world.media[(whole * 512) as usize..][..8 * 512]);
    world.write(whole, vec![7; 8 * 512], false);
    world.write(part + 3, vec![9; 512], false);
    assert_eq!([kept(&world, whole), kept(&world, part)], [None, None], "at once");
    world.run_until(world.now + us(100_000));
    assert_eq!(report(&world, id).1.superseded.get(), 8, "the client has refreshed it");
    reads_of_clients(&mut world, 10, |world| is_over(world, id));
    let (report, refresh) = report(&world, id);
    assert_all_told(&report, &refresh);
    assert_eq!(refresh.refreshed.get(), report.blocks.get() - 8);
    assert!(world.media[(whole * 512) as usize..][..8 * 512].iter().all(|byte| *byte == 7));
    assert!(world.media[((part + 3) * 512) as usize..][..512].iter().all(|byte| *byte == 9));
}

/// A device may have done a read before a write that it answers first.
#[test]
fn read_overlapping_client_write_is_dropped() {
    let (mut world, _) = world(&[], Settings { fua: true, idle: false, repeats: false });
    let gap_read = |world: &TestHost| {
        let of = |command: &Command| command.op == Op::Read && command.foreground.is_none();
        let command = world.scheduler.at_device.values().find(|command| of(command))?;
        let start = command.runs[0].start.get().next_multiple_of(8);
        let is_inside = start + 8 <= command.start.get() + u64::from(command.blocks);
        is_inside.then_some((command.id, start))
    };
    let mut prng = Prng::new(11, "clients that read");
    let (id, start) = loop {
        world.read(prng.below(world.blocks() - 8), 8);
        world.settle();
        if let Some(found) = gap_read(&world) {
            break found;
        }
        world.run_until(world.now + us(prng.below(8000)));
    };
    world.slow = Some(id);
    world.write(start + 1, vec![3; 512], false);
    world.run_until(world.now + us(200_000));
    let late = world.late.take().expect("the drive is done with it");
    world.scheduler.came_back(id, world.now, late);
    assert_eq!(world.scheduler.tasks.to_write(Lbn::new(start), 8), None);
    world.slow = None;
    reads_of_clients(&mut world, 12, |world| {
        world.scheduler.tasks.to_write(Lbn::new(start), 8).is_some()
    });
    let kept = world.scheduler.tasks.to_write(Lbn::new(start), 8).unwrap();
    assert!(kept[512..1024].iter().all(|byte| *byte == 3), "read anew");
}

/// A device may reorder its commands: the older data would be on the media in the end.
#[test]
fn client_write_waits_for_running_rewrite() {
    let (mut world, _) = world(&[], Settings { fua: true, idle: false, repeats: false });
    let mut prng = Prng::new(13, "clients that read");
    let rewrite = loop {
        world.read(prng.below(world.blocks() - 8), 8);
        world.settle();
        if let Some((&command, _)) = world.scheduler.gap_writes.first_key_value() {
            break world.scheduler.at_device[&command].clone();
        }
        world.run_until(world.now + us(prng.below(8000)));
    };
    world.slow = Some(rewrite.id);
    let written = world.write(rewrite.start.get() + 2, vec![7; 512], false);
    world.run_until(world.now + us(200_000));
    let is_answered = |world: &TestHost| world.answers.iter().any(|(_, (id, _))| *id == written);
    assert!(!is_answered(&world), "it has not been sent");
    let late = world.late.take().expect("the drive is done with it");
    world.scheduler.came_back(rewrite.id, world.now, late);
    world.slow = None;
    world.run_until(world.now + us(200_000));
    assert!(is_answered(&world));
    let byte = ((rewrite.start.get() + 2) * 512) as usize;
    assert!(world.media[byte..byte + 512].iter().all(|byte| *byte == 7));
}

#[test]
fn failed_flush_ends_refreshes() {
    let (mut world, id) = world(&[], Settings { fua: false, idle: false, repeats: false });
    let why = DeviceError { kind: DeviceErrorKind::Io, message: "no media".into() };
    world.scheduler.fua_failed(&why);
    assert_eq!(report(&world, id).0.state, TaskState::Failed);
    let spec = world.whole(TaskKind::Refresh);
    let refused = world.scheduler.tasks_mut().create(world.now, spec.into()).unwrap_err();
    assert!(refused.to_string().starts_with("nothing can be refreshed: an earlier flush failed"));
}

#[test]
fn refresh_refuses_reader_tail_and_part_sector() {
    let mut world = TestHost::without_tasks(&[], SameTrack::Merge);
    world.scheduler.tasks.writes_by(true, 8);
    let whole = world.whole(TaskKind::Refresh);
    let mut refused = |ordered| {
        let refused = world.scheduler.tasks_mut().create(SimTime::ZERO, ordered).unwrap_err();
        refused.to_string()
    };
    let reader = refused(read_by(whole.clone()));
    assert!(reader.contains("leave `stream` and `skip` out"), "{reader}");
    let part = refused(TaskOrder::served(TaskKind::Refresh, Extent::new(4, 80), 8).into());
    let expected = "the task begins at 4 blocks of 512: this device has sectors of 4096 bytes";
    assert!(part.starts_with(expected), "{part}");
    world.create(whole.clone());
    let second = world.scheduler.tasks_mut().create(SimTime::ZERO, whole.into()).unwrap_err();
    assert!(second.to_string().contains("a refresh is there already"), "{second}");
}
