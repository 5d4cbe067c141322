//! none.

use freewheel_model::sched::PolicySpec;
use freewheel_model::sched::linux::{BlockLayer, IoRequest};
use freewheel_units::{Op, SimDuration, SimTime};
use proptest::prelude::*;

use super::load::{Load, at_ms, follows, request};
use super::naive::{Rules, Tagged, joins_latest};

/// Requests in order of arrival.
#[derive(Default)]
struct NaiveNone(Vec<IoRequest>);

impl Rules for NaiveNone {
    fn join(&mut self, request: &IoRequest) -> bool {
        joins_latest(&mut self.0, request)
    }

    fn take(&mut self, _: SimTime, request: IoRequest) {
        self.0.push(request);
    }

    fn dispatch(&mut self, _: SimTime) -> Option<IoRequest> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }

    fn completed(&mut self, _: SimTime, _: &IoRequest, _: SimTime) {}

    fn waiting(&self, asynchronous: bool) -> usize {
        self.0.iter().filter(|request| !asynchronous || !request.is_sync()).count()
    }
}

fn none(depth: u32) -> BlockLayer {
    BlockLayer::new(&PolicySpec::LinuxNone, depth).unwrap().unwrap()
}

proptest! {
    #[test]
    fn none_sends_by_rules(seed: u64, depth in 1usize..40, places in 20u64..2000) {
        let load = Load { step: SimDuration::from_ms(5), depth, places };
        let tags = depth.max(32);
        let oracle = &mut Tagged::new(NaiveNone::default(), [tags, tags]);
        follows(none(depth as u32), oracle, seed, load);
    }
}

/// Sizes of 40 requests one after the other, which come while the drive is full.
fn sizes(depth: u32) -> Vec<u32> {
    let mut layer = none(depth);
    let mut at_drive = Vec::new();
    for sequence in 0..40 {
        layer.arrive(at_ms(0), request(sequence, Op::Write, 8 * sequence, 8, at_ms(0)));
        if at_drive.len() < depth as usize {
            at_drive.extend(layer.dispatch(at_ms(0)));
        }
    }
    let mut sizes: Vec<u32> = at_drive.iter().map(|request| request.blocks).collect();
    for sent in at_drive {
        layer.completed(at_ms(1), sent.sequence);
        sizes.extend(layer.dispatch(at_ms(1)).map(|request| request.blocks));
    }
    sizes
}

#[test]
fn requests_merge_while_waiting_with_tag() {
    assert_eq!(sizes(1), [8, 39 * 8]);
    assert_eq!(sizes(4), [8, 8, 8, 8, 36 * 8]);
    // The drive takes all that have a tag.
    assert_eq!(sizes(32), [8; 40]);
}

#[test]
fn request_compared_with_latest_eight() {
    for (others, merged) in [(7, true), (8, false)] {
        let mut layer = none(1);
        layer.arrive(at_ms(0), request(0, Op::Read, 5000, 8, at_ms(0)));
        layer.dispatch(at_ms(0));
        layer.arrive(at_ms(0), request(1, Op::Read, 0, 8, at_ms(0)));
        for n in 0..others {
            layer.arrive(at_ms(0), request(2 + n, Op::Read, 100 * (1 + n), 8, at_ms(0)));
        }
        layer.arrive(at_ms(0), request(20, Op::Read, 8, 8, at_ms(0)));
        assert_eq!(layer.dispatch(at_ms(0)).unwrap().blocks == 16, merged, "behind {others}");
    }
}
