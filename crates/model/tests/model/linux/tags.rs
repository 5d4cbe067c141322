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
fn scheduler_has_twice_drive_tags() {
    let count = |depth, text: &str| {
        let mut layer = BlockLayer::new(&text.parse().unwrap(), depth).unwrap().unwrap();
        sent(&mut layer, 1000, Op::Read, false)
    };
    assert_eq!([count(1, "mq-deadline"), count(32, "mq-deadline")], [64, 64]);
    assert_eq!([count(100, "mq-deadline"), count(1000, "mq-deadline")], [200, 256]);
    assert_eq!([count(1, "none"), count(32, "none"), count(100, "none")], [32, 32, 100]);
}

#[test]
fn kyber_async_writes_get_three_quarters() {
    assert_eq!(sent(&mut layer("kyber"), 100, Op::Write, false), 48);
    assert_eq!(sent(&mut layer("kyber"), 100, Op::Write, true), 64);
    assert_eq!(sent(&mut layer("mq-deadline"), 100, Op::Write, false), 64);
}

#[test]
fn read_passes_writes_waiting_for_tag() {
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

/// Requests of 8 blocks that a scheduler sends after two are done: 64 have tags, and those from `first` on,
/// one after the other, have waited for one.
fn late(text: &str, op: Op, first: u64) -> Vec<(u64, u32)> {
    let mut layer = layer(text);
    let place = |n: u64| if n < first { 10_000 + 100 * n } else { 8 * (n - first) };
    for n in 0..200 {
        layer.arrive(at_ms(0), request(n, op, place(n), 8, at_ms(0)));
    }
    let at_drive: Vec<IoRequest> = (0..32).filter_map(|_| layer.dispatch(at_ms(0))).collect();
    at_drive[..2].iter().for_each(|sent| drop(layer.completed(at_ms(1), sent.sequence)));
    let sent = std::iter::from_fn(|| layer.dispatch(at_ms(1)));
    sent.map(|request| (request.start.get(), request.blocks)).collect()
}

#[test]
fn request_after_tag_wait_joins_waiting_one() {
    // The first of the row gets a tag, the next another until it has joined it, and so do the rest.
    let sent = late("mq-deadline", Op::Write, 64);
    assert!(sent.contains(&(0, 8 * (200 - 64))), "{sent:?}");
    let sent = late("bfq", Op::Read, 64);
    assert!(sent.contains(&(0, 8 * (200 - 64))), "{sent:?}");
    let sent = late("kyber", Op::Read, 64);
    assert!(sent.contains(&(0, 8)), "{sent:?}");
}

#[test]
fn bfq_merges_no_async_writes_when_full() {
    let mut layer = layer("bfq");
    let mut at_drive = Vec::new();
    let mut sizes = Vec::new();
    for n in 0..500 {
        layer.arrive(at_ms(n), request(n, Op::Write, 8 * n, 8, at_ms(n)));
        if at_drive.len() == 32 && n % 2 == 0 {
            layer.completed(at_ms(n), at_drive.remove(0));
        }
        if at_drive.len() < 32
            && let Some(sent) = layer.dispatch(at_ms(n))
        {
            at_drive.push(sent.sequence);
            sizes.push(sent.blocks);
        }
    }
    assert!(sizes.len() > 200 && sizes.iter().all(|&blocks| blocks == 8), "{sizes:?}");
}

#[test]
fn block_layer_refuses_impossible_by_key() {
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
