//! Tags: how many requests are in scheduler and drive.

use freewheel_model::sched::linux::{BlockLayer, IoRequest};
use freewheel_model::sched::{KyberSpec, MqDeadlineSpec, PolicySpec};
use freewheel_units::{Op, SimDuration};

use super::load::{at_ms, layer, request};

fn sent(layer: &mut BlockLayer, count: u64, op: Op, fua: bool) -> usize {
    for sequence in 0..count {
        let new = request(sequence, op, 100 * sequence, 8, at_ms(0));
        layer.arrive(at_ms(0), IoRequest { fua, ..new });
    }
    std::iter::from_fn(|| layer.dispatch(at_ms(0))).count()
}

#[test]
fn a_scheduler_has_twice_the_drive_s_tags_and_none_has_no_limit() {
    let count = |depth, text: &str| {
        let mut layer = BlockLayer::new(&text.parse().unwrap(), depth).unwrap().unwrap();
        sent(&mut layer, 1000, Op::Read, false)
    };
    assert_eq!([count(1, "mq-deadline"), count(32, "mq-deadline")], [64, 64]);
    assert_eq!([count(100, "mq-deadline"), count(1000, "mq-deadline")], [200, 256]);
    assert_eq!(count(32, "none"), 1000);
}

#[test]
fn asynchronous_writes_have_three_quarters_of_kyber_s_requests() {
    assert_eq!(sent(&mut layer("kyber"), 100, Op::Write, false), 48);
    assert_eq!(sent(&mut layer("kyber"), 100, Op::Write, true), 64);
    assert_eq!(sent(&mut layer("mq-deadline"), 100, Op::Write, false), 64);
}

#[test]
fn a_read_passes_writes_that_wait_for_a_tag_and_a_completion_gives_one_back() {
    let mut layer = layer("kyber");
    assert_eq!(sent(&mut layer, 100, Op::Write, false), 48);
    layer.arrive(at_ms(1), request(200, Op::Read, 5, 8, at_ms(1)));
    assert_eq!(layer.dispatch(at_ms(1)).map(|request| request.sequence), Some(200));
    assert_eq!(layer.completed(at_ms(2), 200), [200]);
    assert_eq!(layer.dispatch(at_ms(2)), None);
    assert_eq!(layer.completed(at_ms(3), 7), [7]);
    let next = layer.dispatch(at_ms(3)).unwrap();
    assert_eq!((next.sequence, next.queued), (48, at_ms(3)));
}

#[test]
fn none_keeps_the_order_of_arrival_and_merges_nothing() {
    let mut layer = layer("none");
    for (sequence, start) in [(0, 80), (1, 88), (2, 0)] {
        layer.arrive(at_ms(0), request(sequence, Op::Write, start, 8, at_ms(0)));
    }
    let order: Vec<u64> =
        std::iter::from_fn(|| layer.dispatch(at_ms(0))).map(|r| r.sequence).collect();
    assert_eq!(order, [0, 1, 2]);
}

#[test]
fn what_cannot_be_is_refused_by_key() {
    let says = |spec: PolicySpec| BlockLayer::new(&spec, 32).unwrap_err().to_string();
    let few = MqDeadlineSpec { nr_requests: Some(3), ..MqDeadlineSpec::USUAL };
    let text =
        "`nr_requests = 3` is not a parameter of mq-deadline: 4 to 65536 requests are allowed";
    assert_eq!(says(PolicySpec::MqDeadline(few)), text);
    let long = SimDuration::from_secs(7200);
    let long = KyberSpec { read_latency: long, ..KyberSpec::USUAL };
    assert!(says(PolicySpec::Kyber(long)).contains("read_latency"));
    assert!(BlockLayer::new(&PolicySpec::Sptf, 32).unwrap().is_none());
}
