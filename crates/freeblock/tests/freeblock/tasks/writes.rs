//! Freeblock writes against foreground requests and other tasks: who goes first, who is dropped.

use freewheel_freeblock::tasks::{
    BlockSelection, Counts, Event, Extent, Promoted, TaskId, TaskSpec, Until,
};
use freewheel_freeblock::{Foreground, ForegroundEvent, ForegroundObserver, FreeRun, Planner};
use freewheel_units::{Lbn, Op, Prng, SimTime};

use super::arm::{Arm, READ, WRITE, delivered, is_done};

const NOW: SimTime = SimTime::ZERO;

fn foreground(op: Op, start: u64, blocks: u32, sequence: u64) -> Foreground {
    Foreground { op, start: Lbn::new(start), blocks, sequence, promotion: None }
}

fn write_task(arm: &mut Arm, start: u64, blocks: u64) -> TaskId {
    arm.tasks.register(NOW, TaskSpec::new(WRITE, 8, vec![Extent::new(start, blocks)])).unwrap()
}

fn superseded(events: &[Event], task: TaskId) -> Vec<(u64, u64)> {
    let of_task = events.iter().filter_map(|event| match event {
        Event::Superseded { task: of, extent, .. } if *of == task => Some(extent),
        _ => None,
    });
    of_task.map(|extent| (extent.start.get(), extent.blocks.get())).collect()
}

/// Serves foreground reads elsewhere, so that everything that may be done in gaps is done.
fn serve_elsewhere(arm: &mut Arm) -> Vec<Event> {
    let mut prng = Prng::new(1, "elsewhere");
    for _ in 0..2000 {
        let start = 2000 + prng.below(arm.capacity() - 2000);
        arm.serve(READ, start, 1);
    }
    arm.events()
}

#[test]
fn foreground_write_supersedes_pending_writes() {
    let mut arm = Arm::plain();
    let task = write_task(&mut arm, 0, 64);
    // Half of block 8, all of 16, half of 24.
    arm.tasks
        .foreground(ForegroundEvent::Arrived { request: &foreground(WRITE, 12, 16, 1), at: NOW });
    let events = arm.events();
    assert_eq!(superseded(&events, task), [(8, 24)]);
    let events = serve_elsewhere(&mut arm);
    let mut written = delivered(&events, task, 8);
    written.sort_unstable();
    assert_eq!(written, [0, 32, 40, 48, 56], "the rest, and they not");
    assert!(is_done(&events, task));
}

#[test]
fn superseded_write_in_gap_is_not_delivered() {
    let mut arm = Arm::plain();
    let task = write_task(&mut arm, 0, 64);
    let gap = arm.plan(READ, 40, 1);
    assert!(!gap.runs.is_empty());
    arm.tasks
        .foreground(ForegroundEvent::Arrived { request: &foreground(WRITE, 0, 64, 1), at: NOW });
    assert_eq!(superseded(&arm.events(), task), [(0, 64)]);
    let mut at = (gap.opportunity.begin, gap.opportunity.from);
    gap.runs.iter().for_each(|run| arm.run(run, &mut at));
    assert_eq!(arm.events(), []);
}

#[test]
fn freeblock_write_waits_for_foreground_writes() {
    let mut arm = Arm::plain();
    let older = [foreground(WRITE, 4, 8, 1), foreground(WRITE, 0, 6, 2)];
    older
        .iter()
        .for_each(|request| arm.tasks.foreground(ForegroundEvent::Arrived { request, at: NOW }));
    let task = write_task(&mut arm, 0, 32);
    let events = serve_elsewhere(&mut arm);
    let mut written = delivered(&events, task, 8);
    written.sort_unstable();
    assert_eq!(written, [16, 24], "blocks 0 and 8 wait");
    assert_eq!(arm.tasks.progress(task, arm.now).unwrap().deferred, 2);
    arm.tasks.foreground(ForegroundEvent::Done { request: &older[0], at: arm.now });
    assert_eq!(delivered(&serve_elsewhere(&mut arm), task, 8), [8], "0 waits for the other");
    arm.tasks.foreground(ForegroundEvent::Done { request: &older[1], at: arm.now });
    let events = serve_elsewhere(&mut arm);
    assert_eq!(delivered(&events, task, 8), [0]);
    assert!(is_done(&events, task));
}

#[test]
fn waiting_freeblock_write_is_superseded() {
    let mut arm = Arm::plain();
    let [older, newer] = [foreground(WRITE, 0, 8, 1), foreground(WRITE, 0, 8, 2)];
    arm.tasks.foreground(ForegroundEvent::Arrived { request: &older, at: NOW });
    let task = write_task(&mut arm, 0, 8);
    arm.tasks.foreground(ForegroundEvent::Arrived { request: &newer, at: NOW });
    let events = arm.events();
    assert_eq!(superseded(&events, task), [(0, 8)]);
    assert!(is_done(&events, task), "it wants nothing any more");
}

#[test]
fn gap_write_holds_newer_data_back() {
    let mut arm = Arm::plain();
    let first = write_task(&mut arm, 0, 64);
    let gap = arm.plan(READ, 40, 1);
    let planned = gap.runs[0].start.get();
    let second = write_task(&mut arm, 0, 64);
    assert_eq!(superseded(&arm.events(), first), [(0, 64)]);
    let mut at = (gap.opportunity.begin, gap.opportunity.from);
    gap.runs.iter().for_each(|run| arm.run(run, &mut at));
    assert_eq!(arm.events(), [], "the older data are on the media");
    arm.finish(&gap, at);
    let written = delivered(&serve_elsewhere(&mut arm), second, 8);
    assert!(written.contains(&planned), "and the newer ones follow");
    assert_eq!(written.len(), 8);
}

#[test]
fn rewritten_block_is_written_once_with_newest() {
    let mut arm = Arm::plain();
    let spec = TaskSpec { until: Until::Standing, ..TaskSpec::new(WRITE, 8, vec![]) };
    let task = arm.tasks.register(NOW, spec).unwrap();
    for _ in 0..3 {
        arm.tasks.extend(NOW, task, &[Extent::new(0, 8)]).unwrap();
    }
    assert_eq!(delivered(&serve_elsewhere(&mut arm), task, 8), [0]);
}

#[test]
fn partly_written_block_is_rewritten_whole() {
    let mut arm = Arm::plain();
    // A track has 64 blocks: the pieces are 0..64 and 64..100.
    let extent = Extent::new(0, 100);
    let spec = TaskSpec { until: Until::Standing, ..TaskSpec::new(WRITE, 100, vec![extent]) };
    let task = arm.tasks.register(NOW, spec).unwrap();
    let piece = |start, blocks| FreeRun { start: Lbn::new(start), blocks, op: WRITE };
    let is_written = |arm: &mut Arm| !delivered(&arm.events(), task, 100).is_empty();
    arm.tasks.done(&piece(0, 64), NOW);
    arm.tasks.extend(NOW, task, &[extent]).unwrap();
    arm.tasks.done(&piece(64, 36), NOW);
    assert!(!is_written(&mut arm), "the first piece holds older data");
    arm.tasks.done(&piece(0, 64), NOW);
    assert!(is_written(&mut arm));
}

#[test]
fn freeblock_read_waits_for_earlier_writes() {
    let mut arm = Arm::plain();
    let writer = write_task(&mut arm, 8, 8);
    let spec = TaskSpec::new(READ, 32, vec![Extent::new(0, 64)]);
    let reader = arm.tasks.register(NOW, spec).unwrap();
    assert_eq!(arm.tasks.progress(reader, NOW).unwrap().deferred, 1);
    arm.tasks.foreground(ForegroundEvent::Passed {
        op: READ,
        start: Lbn::new(0),
        blocks: 32,
        at: NOW,
    });
    assert_eq!(arm.events(), [], "what a foreground read finds there is too old for it");
    let events = serve_elsewhere(&mut arm);
    let of = |task| {
        events.iter().position(|event| match event {
            Event::Delivered { task: of, extent, .. } => *of == task && extent.start.get() < 32,
            _ => false,
        })
    };
    assert!(of(writer).unwrap() < of(reader).unwrap());
    assert!(is_done(&events, reader));
}

#[test]
fn freeblock_read_waits_for_acknowledged_writes() {
    let mut arm = Arm::plain();
    let older = foreground(WRITE, 4, 8, 1);
    arm.tasks.foreground(ForegroundEvent::Arrived { request: &older, at: NOW });
    let spec = TaskSpec::new(READ, 8, vec![Extent::new(0, 32)]);
    let reader = arm.tasks.register(NOW, spec).unwrap();
    assert_eq!(arm.tasks.progress(reader, NOW).unwrap().deferred, 2);
    let mut read = delivered(&serve_elsewhere(&mut arm), reader, 8);
    read.sort_unstable();
    assert_eq!(read, [16, 24], "0 and 8 wait");
    arm.tasks.foreground(ForegroundEvent::Done { request: &older, at: arm.now });
    let mut read = delivered(&serve_elsewhere(&mut arm), reader, 8);
    read.sort_unstable();
    assert_eq!(read, [0, 8]);
}

#[test]
fn freeblock_read_waits_for_abandoned_gap_write() {
    let mut arm = Arm::plain();
    let writer = write_task(&mut arm, 0, 64);
    let gap = arm.plan(READ, 40, 1);
    assert!(!gap.runs.is_empty());
    arm.tasks.abort(NOW, writer, BlockSelection::All).unwrap();
    let spec = TaskSpec::new(READ, 8, vec![Extent::new(0, 64)]);
    let reader = arm.tasks.register(NOW, spec).unwrap();
    assert!(arm.tasks.progress(reader, NOW).unwrap().deferred > 0);
    // The gap is over, and none of it was done.
    arm.plan(READ, 2000, 1);
    assert_eq!(arm.tasks.progress(reader, NOW).unwrap().deferred, 0);
}

#[test]
fn freeblock_read_proceeds_after_dropped_write() {
    let spec = TaskSpec::new(READ, 8, vec![Extent::new(0, 64)]);
    let waiting = |arm: &Arm, reader| arm.tasks.progress(reader, NOW).unwrap().deferred;
    let mut arm = Arm::plain();
    let writer = write_task(&mut arm, 0, 64);
    let reader = arm.tasks.register(NOW, spec).unwrap();
    assert_eq!(waiting(&arm, reader), 8);
    arm.tasks.abort(NOW, writer, BlockSelection::In(&[Extent::new(0, 8)])).unwrap();
    assert_eq!(waiting(&arm, reader), 7);
    let newer = foreground(WRITE, 8, 8, 1);
    arm.tasks.foreground(ForegroundEvent::Arrived { request: &newer, at: NOW });
    assert_eq!(waiting(&arm, reader), 7, "it waits for the newer write in its place");
    arm.tasks.foreground(ForegroundEvent::Done { request: &newer, at: NOW });
    assert_eq!(waiting(&arm, reader), 6);
    arm.tasks.abort(NOW, writer, BlockSelection::All).unwrap();
    assert_eq!(waiting(&arm, reader), 0);
}

#[test]
fn freeblock_read_does_not_delay_write() {
    for (counts, is_served) in [(Counts::ALL, true), (Counts::READS, false)] {
        let mut arm = Arm::plain();
        let spec = TaskSpec { counts, ..TaskSpec::new(READ, 8, vec![Extent::new(0, 64)]) };
        let reader = arm.tasks.register(NOW, spec).unwrap();
        write_task(&mut arm, 0, 64);
        let run = FreeRun { start: Lbn::new(0), blocks: 8, op: WRITE };
        arm.tasks.done(&run, NOW);
        let got = delivered(&arm.events(), reader, 8);
        assert_eq!(got == [0], is_served, "{counts:?}");
    }
}

#[test]
fn foreground_reads_neither_wait_nor_disturb() {
    let mut arm = Arm::plain();
    let task = write_task(&mut arm, 0, 64);
    let read = foreground(READ, 0, 64, 1);
    arm.tasks.foreground(ForegroundEvent::Arrived { request: &read, at: NOW });
    arm.tasks.foreground(ForegroundEvent::Passed {
        op: READ,
        start: Lbn::new(0),
        blocks: 64,
        at: NOW,
    });
    arm.tasks.foreground(ForegroundEvent::Done { request: &read, at: NOW });
    assert_eq!(arm.events(), []);
    let progress = arm.tasks.progress(task, NOW).unwrap();
    assert_eq!((progress.wanted, progress.deferred), (8, 0));
}

fn arrive(arm: &mut Arm, promoted: &Promoted, sequence: u64) -> Foreground {
    let Promoted { id, op, start, blocks, .. } = *promoted;
    let request = Foreground { op, start, blocks, sequence, promotion: Some(id) };
    arm.tasks.foreground(ForegroundEvent::Arrived { request: &request, at: NOW });
    request
}

#[test]
fn promoted_write_ends_with_request() {
    let mut arm = Arm::plain();
    let task = write_task(&mut arm, 0, 16);
    let promoted = arm.tasks.promote(task, BlockSelection::All, 64).unwrap();
    let request = arrive(&mut arm, &promoted[0], 7);
    assert_eq!(arm.events(), [], "it does not supersede itself");
    arm.tasks.foreground(ForegroundEvent::Passed {
        op: WRITE,
        start: Lbn::new(0),
        blocks: 16,
        at: NOW,
    });
    assert_eq!(arm.events(), [], "whoever passed");
    arm.tasks.foreground(ForegroundEvent::Done { request: &request, at: NOW });
    let events = arm.events();
    assert_eq!(delivered(&events, task, 8), [0, 8]);
    assert!(is_done(&events, task));
}

#[test]
fn promoted_write_overtaken_is_not_delivered() {
    let mut arm = Arm::plain();
    let task = write_task(&mut arm, 0, 64);
    let promoted = arm.tasks.promote(task, BlockSelection::In(&[Extent::new(0, 16)]), 64).unwrap();
    let request = arrive(&mut arm, &promoted[0], 7);
    // Half of promoted block 8, and all that are not promoted.
    let other = foreground(WRITE, 12, 52, 8);
    arm.tasks.foreground(ForegroundEvent::Arrived { request: &other, at: NOW });
    assert_eq!(superseded(&arm.events(), task), [(16, 48), (8, 8)]);
    // The policy takes the newer first.
    arm.tasks.foreground(ForegroundEvent::Passed {
        op: WRITE,
        start: Lbn::new(12),
        blocks: 52,
        at: NOW,
    });
    arm.tasks.foreground(ForegroundEvent::Done { request: &other, at: NOW });
    assert_eq!(arm.events(), []);
    arm.tasks.foreground(ForegroundEvent::Done { request: &request, at: NOW });
    let events = arm.events();
    assert_eq!(delivered(&events, task, 8), [0], "8 holds newer data, or should");
    assert!(is_done(&events, task));
}

#[test]
fn promoted_and_newer_data_are_superseded() {
    let mut arm = Arm::plain();
    let spec = TaskSpec { until: Until::Standing, ..TaskSpec::new(WRITE, 8, vec![]) };
    let task = arm.tasks.register(NOW, spec).unwrap();
    arm.tasks.extend(NOW, task, &[Extent::new(0, 8)]).unwrap();
    let promoted = arm.tasks.promote(task, BlockSelection::All, 8).unwrap();
    let request = arrive(&mut arm, &promoted[0], 1);
    arm.tasks.extend(NOW, task, &[Extent::new(0, 8)]).unwrap();
    arm.tasks
        .foreground(ForegroundEvent::Arrived { request: &foreground(WRITE, 0, 8, 2), at: NOW });
    assert_eq!(superseded(&arm.events(), task), [(0, 8), (0, 8)]);
    arm.tasks.foreground(ForegroundEvent::Done { request: &request, at: NOW });
    assert_eq!(arm.events(), []);
}

#[test]
fn promoted_write_holds_newer_data_back() {
    let mut arm = Arm::plain();
    let spec = TaskSpec { until: Until::Standing, ..TaskSpec::new(WRITE, 8, vec![]) };
    let task = arm.tasks.register(NOW, spec).unwrap();
    arm.tasks.extend(NOW, task, &[Extent::new(0, 8)]).unwrap();
    let promoted = arm.tasks.promote(task, BlockSelection::All, 8).unwrap();
    arm.tasks.extend(NOW, task, &[Extent::new(0, 8)]).unwrap();
    let progress = arm.tasks.progress(task, NOW).unwrap();
    assert_eq!((progress.wanted, progress.promoted, progress.deferred), (2, 1, 1));
    assert_eq!(
        arm.tasks.promote(task, BlockSelection::All, 8),
        Ok(vec![]),
        "what waits is not promoted"
    );
    let request = arrive(&mut arm, &promoted[0], 1);
    arm.tasks.foreground(ForegroundEvent::Done { request: &request, at: NOW });
    assert_eq!(delivered(&arm.events(), task, 8), [0], "the older data");
    assert_eq!(delivered(&serve_elsewhere(&mut arm), task, 8), [0], "the newer ones");
}

#[test]
fn read_ignores_write_of_same_data() {
    let mut arm = Arm::plain();
    let spec = TaskSpec::new(WRITE, 8, vec![Extent::new(8, 8)]);
    arm.tasks.register(NOW, TaskSpec { is_rewrite: true, ..spec }).unwrap();
    let spec = TaskSpec::new(READ, 32, vec![Extent::new(0, 64)]);
    let reader = arm.tasks.register(NOW, spec).unwrap();
    assert_eq!(arm.tasks.progress(reader, NOW).unwrap().deferred, 0);
}

#[test]
fn sent_write_stays_pending_beyond_gap() {
    let mut arm = Arm::plain();
    let writer = write_task(&mut arm, 0, 64);
    let gap = arm.plan(READ, 40, 1);
    let sent = gap.runs[0];
    arm.tasks.sent(&sent);
    // The next gap is decided on while the drive is at it; what was not sent is given up.
    arm.plan(READ, 2000, 1);
    let block = Extent::new(sent.start.get() / 8 * 8, 8);
    arm.tasks.extend(NOW, writer, &[block]).unwrap();
    assert!(arm.tasks.progress(writer, NOW).unwrap().deferred >= 1, "behind the older data");
    arm.tasks.done(&sent, NOW);
    let events = arm.events();
    let written = delivered(&events, writer, 8);
    assert!(!written.contains(&block.start.get()), "what was sent holds older data: {written:?}");
    assert_eq!(arm.tasks.progress(writer, NOW).unwrap().deferred, 0);
    let written = delivered(&serve_elsewhere(&mut arm), writer, 8);
    assert!(written.contains(&block.start.get()));
}
