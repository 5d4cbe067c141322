//! Idle times of a drive, and events while its head is lent.

use freewheel_model::drive::Position;
use freewheel_units::{Op, SimTime};

use super::hand::*;

#[test]
fn drive_idle_when_writes_on_media() {
    let mut unit = unit_with(&electronics());
    write(&mut unit, SimTime::ZERO, 50, 8);
    // Destaged from 0.11 to 5.8 ms.
    let idle = [110, 3000, 5799, 5800].map(|time_us| unit.is_idle(at(time_us)));
    assert_eq!(idle, [false, false, false, true]);
    assert_eq!(unit.departure(at(5800)).last_op, Op::Write);
}

#[test]
fn drive_idle_when_read_ahead_ends() {
    let mut unit = unit_with(&electronics());
    read(&mut unit, SimTime::ZERO, 10, 8);
    // Block 99 has passed after a turn of 10 ms.
    let idle = [1900, 5000, 9950, 10_001].map(|time_us| unit.is_idle(at(time_us)));
    assert_eq!(idle, [false, false, false, true]);
}

#[test]
fn drive_with_lent_head_serves_buffer_only() {
    let mut unit = unit_with(&electronics());
    read(&mut unit, SimTime::ZERO, 10, 8);
    assert!(unit.is_idle(at_ms(20)));
    unit.lend_head(Position { cylinder: 5, surface: 0 }, Op::Read, at_ms(30));
    assert!(!unit.is_idle(at_ms(21)));
    let held = read(&mut unit, at_ms(21), 30, 1);
    assert!(held.hit && held.end < at_ms(22), "{held:?}");
    // The media at 30 ms, on cylinder 10 at 31, block 1000 from 40 ms on.
    let other = read(&mut unit, at_ms(22), 1000, 1);
    assert_eq!((other.queue, other.seek, other.rotate), (us(7950), us(1000), us(9000)));
}
