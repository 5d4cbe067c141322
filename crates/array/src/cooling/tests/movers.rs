//! One move, step by step.

use freewheel_units::{Blocks, Lbn, SimDuration, SimTime};

use crate::cooling::*;
use crate::placement::{Extent, ExtentId, FileId, Place, Placement};

const EXTENT: ExtentId = ExtentId(3);

fn place(disk: u32, start: u64) -> Place {
    Place { disk, start: Lbn::new(start) }
}

fn part(disk: u32, start: u64, blocks: u64) -> Part {
    Part { place: place(disk, start), blocks: Blocks::new(blocks) }
}

fn span(first: u64, blocks: u64) -> Span {
    Span { first, blocks }
}

/// An extent of 10 blocks at block 20 of disk 0; blocks 0 to 4 of disk 1 are in use.
fn placement() -> Placement {
    let mut placement = Placement::new(2, Blocks::new(40));
    placement.reserve_at(place(0, 20), Blocks::new(10));
    placement
        .insert(EXTENT, Extent { file: FileId(0), blocks: Blocks::new(10), place: place(0, 20) });
    placement.reserve_at(place(1, 0), Blocks::new(5));
    placement
}

fn mover(rate: Option<u64>) -> Mover {
    Mover::new(MoverSpec { piece: Blocks::new(4), rate: rate.map(Blocks::new) })
}

fn at(ms: u64) -> SimTime {
    SimTime::ZERO + SimDuration::from_ms(ms)
}

#[test]
fn move_goes_nearest_to_wanted_block() {
    // Blocks 0 to 4 and 16 to 19 of disk 1 are in use.
    for (near, start) in [(0, 5), (9, 6), (19, 20), (39, 30)] {
        let (mut placement, mut mover) = (placement(), mover(None));
        placement.reserve_at(place(1, 16), Blocks::new(4));
        mover.start_near(&mut placement, EXTENT, 1, Some(Lbn::new(near))).unwrap();
        assert_eq!(mover.current().unwrap().to, place(1, start), "near {near}");
    }
}

#[test]
fn move_is_pieces_record_and_release() {
    let (mut placement, mut mover) = (placement(), mover(None));
    let before = placement.clone();
    mover.start(&mut placement, EXTENT, 1).unwrap();
    assert_eq!(mover.start(&mut placement, EXTENT, 1), Err(StartError::Busy));
    let record = Relocated { extent: EXTENT, from: place(0, 20), to: place(1, 5) };
    let expected = [
        MoveAction::Quiesce(span(0, 4)),
        MoveAction::Read(part(0, 20, 4)),
        MoveAction::Write(part(1, 5, 4)),
        MoveAction::Quiesce(span(4, 4)),
        MoveAction::Read(part(0, 24, 4)),
        MoveAction::Write(part(1, 9, 4)),
        MoveAction::Quiesce(span(8, 2)),
        MoveAction::Read(part(0, 28, 2)),
        MoveAction::Write(part(1, 13, 2)),
        MoveAction::Flush(1),
        MoveAction::Record(record),
        MoveAction::Drain(part(0, 20, 10)),
    ];
    for action in expected {
        let is_recorded = matches!(action, MoveAction::Drain(_));
        assert_eq!(
            placement.extent(EXTENT).place,
            if is_recorded { record.to } else { record.from }
        );
        assert_eq!(mover.poll(at(0)), MoverState::Do(action));
        assert_eq!(mover.poll(at(0)), MoverState::Busy);
        let progress = mover.done(&mut placement);
        match action {
            MoveAction::Record(_) => assert_eq!(progress, Progress::Relocated(record)),
            MoveAction::Drain(_) => assert_eq!(progress, Progress::Finished(record)),
            _ => assert_eq!(progress, Progress::Continues),
        }
    }
    assert_eq!(mover.poll(at(0)), MoverState::Idle);
    // The record alone leads from the map before to the map now.
    let mut recovered = before;
    replay(&mut recovered, &[record]).unwrap();
    assert_eq!(recovered, placement);
    let again = replay(&mut recovered, &[record]);
    assert_eq!(again, Err(ReplayError { number: 0, extent: EXTENT }));
}

#[test]
fn writes_wait_for_piece_in_copy() {
    let (mut placement, mut mover) = (placement(), mover(None));
    mover.start(&mut placement, EXTENT, 1).unwrap();
    assert_eq!(mover.route(EXTENT, span(0, 10)), Route::Valid);
    for _ in 0..3 {
        mover.poll(at(0));
        // The first piece, blocks 0 to 3, is quiesced, read and written.
        assert_eq!(mover.route(EXTENT, span(3, 1)), Route::Wait);
        assert_eq!(mover.route(EXTENT, span(4, 6)), Route::Valid);
        assert_eq!(mover.route(ExtentId(9), span(3, 1)), Route::Valid);
        mover.done(&mut placement);
    }
    assert_eq!(mover.route(EXTENT, span(3, 1)), Route::Both(place(1, 5)));
    assert_eq!(mover.route(EXTENT, span(3, 5)), Route::Both(place(1, 5)));
    assert_eq!(mover.route(EXTENT, span(4, 4)), Route::Valid);
    // The rest: two pieces, the flush and the record.
    for _ in 0..8 {
        mover.poll(at(0));
        mover.done(&mut placement);
    }
    assert_eq!(placement.extent(EXTENT).place, place(1, 5));
    assert_eq!(mover.route(EXTENT, span(3, 5)), Route::Valid);
}

#[test]
fn pieces_keep_rate_and_obey_pause() {
    // 4 blocks at 40 blocks a second: one piece every 100 ms.
    let (mut placement, mut mover) = (placement(), mover(Some(40)));
    mover.start(&mut placement, EXTENT, 1).unwrap();
    let finish_piece = |mover: &mut Mover, placement: &mut Placement, now| {
        for _ in 0..3 {
            assert!(matches!(mover.poll(now), MoverState::Do(_)), "{now}");
            mover.done(placement);
        }
    };
    finish_piece(&mut mover, &mut placement, at(30));
    assert_eq!(mover.poll(at(60)), MoverState::Wait(at(130)));
    mover.pause();
    assert_eq!(mover.poll(at(140)), MoverState::Paused);
    mover.resume();
    // No credit is saved up in a pause.
    finish_piece(&mut mover, &mut placement, at(500));
    assert_eq!(mover.poll(at(510)), MoverState::Wait(at(600)));
    mover.pause();
    mover.resume();
    finish_piece(&mut mover, &mut placement, at(600));
    // A pause does not keep a complete copy from its record.
    mover.pause();
    assert_eq!(mover.poll(at(600)), MoverState::Do(MoveAction::Flush(1)));
}

#[test]
fn abandoned_move_leaves_map_unchanged() {
    let drain = MoverState::Do(MoveAction::Drain(part(1, 5, 10)));
    for steps in 0..10 {
        let (mut placement, mut mover) = (placement(), mover(None));
        let before = placement.clone();
        mover.start(&mut placement, EXTENT, 1).unwrap();
        for _ in 0..steps {
            mover.poll(at(0));
            mover.done(&mut placement);
        }
        mover.poll(at(0));
        mover.failed();
        assert_ne!(placement, before, "the room is still taken");
        assert_eq!(mover.route(EXTENT, span(0, 4)), Route::Valid);
        assert_eq!(mover.poll(at(0)), drain);
        let record = Relocated { extent: EXTENT, from: place(0, 20), to: place(1, 5) };
        assert_eq!(mover.done(&mut placement), Progress::Cancelled(record));
        assert_eq!(placement, before);
    }
}

#[test]
fn move_needs_contiguous_room() {
    let (mut placement, mut mover) = (placement(), mover(None));
    placement.reserve_at(place(1, 12), Blocks::new(20));
    let before = placement.clone();
    assert_eq!(mover.start(&mut placement, EXTENT, 1), Err(StartError::NoRoom(1)));
    assert_eq!((placement, mover.current()), (before, None));
}
