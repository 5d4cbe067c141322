//! Commands that a drive holds at once.

use freewheel_model::electronics::spec::{BusSpec, ElectronicsSpec};
use freewheel_model::sched::PolicySpec;
use freewheel_units::{Prng, SimDuration};

use super::hand::*;

#[test]
fn queue_submits_when_place_is_free() {
    let wishes = [reads(0, 10, 1), reads(0, 50, 1), reads(0, 80, 1)];
    let outcomes = run_with(&queued(2, PolicySpec::Fcfs), &wishes);
    assert_eq!(ends_us(&outcomes), [1100, 5100, 8100]);
    let submitted = outcomes.iter().map(|outcome| outcome.submitted);
    assert_eq!(submitted.collect::<Vec<_>>(), [at(0), at(0), at(1100)]);
}

#[test]
#[should_panic(expected = "2 places")]
fn queue_overfull_is_caller_error() {
    let mut unit = unit_with(&queued(2, PolicySpec::Fcfs));
    for _ in 0..3 {
        submit(&mut unit, at(0), &reads(0, 10, 1), 0);
    }
}

#[test]
fn fcfs_keeps_order_sptf_does_not() {
    let wishes = [reads(0, 90, 1), reads(0, 50, 1), reads(0, 10, 1)];
    // 9.0, a turn later 5.0, a turn later 1.0.
    assert_eq!(ends_us(&run_with(&queued(3, PolicySpec::Fcfs), &wishes)), [9100, 15_100, 21_100]);
    assert_eq!(ends_us(&run_with(&queued(3, PolicySpec::Sptf), &wishes)), [9100, 5100, 1100]);
    // Of the first two that of block 50; block 10 comes in at 5.1 ms and block 90 is nearer.
    assert_eq!(ends_us(&run_with(&queued(2, PolicySpec::Sptf), &wishes)), [9100, 5100, 11_100]);
}

fn slow_to_process(depth: u32, scheduler: PolicySpec, miss_us: u64) -> ElectronicsSpec {
    let mut spec = electronics();
    (spec.buffer, spec.bus, spec.queue) = (None, None, Some(queue(depth, scheduler)));
    let overheads = spec.overheads.as_mut().unwrap();
    (overheads.read_miss.after_read, overheads.read_miss.after_write) = (us(miss_us), us(miss_us));
    spec
}

#[test]
fn command_being_processed_is_not_chosen() {
    let wishes = [reads(0, 50, 1), reads(0, 10, 1)];
    // At 0.1 ms only the first is ready.
    let outcomes = run_with(&slow_to_process(2, PolicySpec::Sptf, 100), &wishes);
    assert_eq!(ends_us(&outcomes), [5100, 11_100]);
}

#[test]
fn command_processed_during_media_access() {
    let wishes = [reads(0, 30, 1), reads(0, 40, 1)];
    // Ready at 2 ms and at 4 ms, just when block 40 comes by.
    let outcomes = run_with(&slow_to_process(2, PolicySpec::Fcfs, 2000), &wishes);
    assert_eq!(ends_us(&outcomes), [3100, 4100]);
    // One at a time: ready at 3.1 + 2 ms.
    let outcomes = run_with(&slow_to_process(1, PolicySpec::Fcfs, 2000), &wishes);
    assert_eq!(ends_us(&outcomes), [3100, 14_100]);
}

#[test]
fn bus_transfer_overlaps_other_media_access() {
    let mut spec = queued(2, PolicySpec::Fcfs);
    spec.bus = Some(BusSpec { block_time: us(150), ..BusSpec::default() });
    let wishes = [reads(0, 10, 8), reads(0, 18, 8)];
    // Media 1.0 to 1.8, bus 1.0 to 2.2; media 1.8 to 2.6, bus 2.2 to 3.4.
    assert_eq!(ends_us(&run_with(&spec, &wishes)), [2200, 3400]);
    // One at a time: block 18 comes by at 11.8, and eight times 0.15 ms follow.
    spec.queue = None;
    assert_eq!(ends_us(&run_with(&spec, &wishes)), [2200, 13_000]);
}

/// Blocks 10 to 99 in the buffer since 10 ms; from 40.05 ms on the media are at block 500 until
/// 45.1 ms, and block 600 waits.
fn a_hit_behind_two_misses(hits_out_of_turn: bool) -> Vec<Outcome> {
    let mut spec = electronics();
    spec.queue = Some(queue(3, PolicySpec::Fcfs));
    spec.queue.as_mut().unwrap().hits_out_of_turn = hits_out_of_turn;
    let misses = [reads(0, 10, 8), reads(40_000, 500, 1), reads(40_100, 600, 1)];
    run_with(&spec, &[&misses[..], &[reads(40_200, 50, 8)]].concat())
}

#[test]
fn hit_out_of_turn_skips_media_wait() {
    let outcomes = a_hit_behind_two_misses(true);
    // 20 us for a hit and 8 blocks on the bus. Block 600 comes by at 56 ms.
    assert_eq!(ends_us(&outcomes), [1810, 45_110, 56_110, 40_300]);
    assert!(outcomes[3].served.hit);
}

#[test]
fn hit_in_turn_waits_for_earlier() {
    let outcomes = a_hit_behind_two_misses(false);
    // The media are free at 56.1 ms, the bus at 56.11.
    assert_eq!(ends_us(&outcomes), [1810, 45_110, 56_110, 56_190]);
    assert!(outcomes[3].served.hit);
    assert_eq!(outcomes[3].served.overhead, us(50));
}

#[test]
fn read_queued_behind_same_blocks_is_hit() {
    let mut spec = electronics();
    spec.queue = Some(queue(2, PolicySpec::Fcfs));
    let outcomes = run_with(&spec, &[reads(0, 10, 8), reads(0, 10, 8)]);
    // The first is on the bus until 1.81 ms.
    assert_eq!(ends_us(&outcomes), [1810, 1890]);
    assert!(!outcomes[0].served.hit && outcomes[1].served.hit);
}

#[test]
fn hit_out_of_turn_waits_for_data() {
    let mut spec = electronics();
    spec.queue = Some(queue(2, PolicySpec::Fcfs));
    spec.queue.as_mut().unwrap().hits_out_of_turn = true;
    // The media have them at 1.8 ms.
    let outcomes = run_with(&spec, &[reads(0, 10, 8), reads(1000, 10, 8)]);
    assert!(outcomes[1].served.hit);
    assert_eq!(ends_us(&outcomes), [1810, 1890]);
}

/// End of a read elsewhere that comes at 1 ms, beside a stream of reads of which this many are at the drive
/// at once.
fn end_beside_a_stream(depth: u32, streams_first: Option<SimDuration>) -> u64 {
    let mut spec = queued(depth, PolicySpec::Fcfs);
    spec.queue.as_mut().unwrap().streams_first = streams_first;
    // A host with this number in flight sends one for each that is done: here all are there from the start.
    let stream = (0..60).map(|at| reads(0, at * 8, 8));
    let mut wishes: Vec<Wish> = stream.collect();
    wishes.insert(8, reads(0, 1500, 1));
    ends_us(&run_with(&spec, &wishes))[8]
}

#[test]
fn stream_first_until_age_limit() {
    let in_order = end_beside_a_stream(32, None);
    let starved = end_beside_a_stream(32, Some(SimDuration::from_secs(4)));
    let limited = end_beside_a_stream(32, Some(SimDuration::from_ms(20)));
    let alone = end_beside_a_stream(1, Some(SimDuration::from_secs(4)));
    assert!(starved > 3 * in_order, "{starved} us, {in_order} in order");
    assert!(in_order < limited && limited < starved, "{limited} of {starved}");
    assert!((20_000..45_000).contains(&limited), "{limited}");
    assert_eq!(alone, end_beside_a_stream(1, None), "one command at the drive has no order");
}

/// The oracle: all that wait, in the order of arrival, with whether they continued an earlier command.
#[test]
fn streams_keep_order_and_leave_nothing_behind() {
    let mut prng = Prng::new(1, "streams");
    for _ in 0..200 {
        let mut spec = queued(8, PolicySpec::Fcfs);
        spec.queue.as_mut().unwrap().streams_first = Some(us(prng.below(50_000)));
        let mut next = [0u64, 700];
        let wishes: Vec<Wish> = (0..40)
            .map(|_| match prng.below(3) {
                2 => reads(0, 1500 + prng.below(100), 1),
                stream => {
                    let start = next[stream as usize];
                    next[stream as usize] += 4;
                    reads(0, start, 4)
                }
            })
            .collect();
        let ends = ends_us(&run_with(&spec, &wishes));
        for stream in [0, 700] {
            let of_stream = |at: &usize| {
                wishes[*at].blocks == 4 && (wishes[*at].start >= 700) == (stream >= 700)
            };
            let ends: Vec<u64> = (0..wishes.len()).filter(of_stream).map(|at| ends[at]).collect();
            assert!(ends[1..].is_sorted(), "{ends:?}");
        }
    }
}
