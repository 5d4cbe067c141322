//! Several clients at once.

use std::collections::BTreeSet;

use super::*;

/// Answers to one client while another, who asks for one block after the other far away, waits for its own
/// request: the most of 50 times.
fn most_before(depth: u64) -> usize {
    let mut world = TestHost::sized(100, 512, &[], SameTrack::Merge);
    let mut prng = Prng::new(1, "flood");
    let mut of_flood = BTreeSet::new();
    let (flood, victim) = (Client::alone(1), Client::alone(2));
    let far = world.blocks() - 8;
    let mut most = 0;
    for number in 0..50 {
        world.client = victim;
        let id = world.read(far - 8 * number, 8);
        let mut before = 0;
        world.answers.clear();
        while !world.answers.iter().any(|(_, answer)| answer.0 == id) {
            before +=
                world.answers.drain(..).filter(|(_, answer)| of_flood.remove(&answer.0)).count();
            world.client = flood;
            while (of_flood.len() as u64) < depth {
                let first = 8 * prng.below(256);
                of_flood.insert(world.read(first, 8));
            }
            let next = world.now + us(100);
            world.run_until(next);
            assert!(before < 1000, "it starves");
        }
        most = most.max(before);
    }
    most
}

#[test]
fn flooding_client_delays_others_little() {
    // What is at the drive when one arrives, one that is chosen already, and the lead.
    let few = 2 + 1 + 4;
    for depth in [16, 256] {
        let most = most_before(depth);
        assert!((1..=few).contains(&most), "{depth}: {most}");
    }
}

#[test]
fn promoted_nearest_task_leaves_clients_turns() {
    let mut world = TestHost::sized(100, 512, &[], SameTrack::Merge);
    let scrub = TaskOrder { repeat: true, ..world.whole(TaskKind::Scrub) };
    let id = world.scheduler.tasks_mut().create(world.now, scrub.into()).unwrap();
    world.scheduler.tasks_mut().promote(world.now, id).unwrap();
    let mut prng = Prng::new(1, "requests of a client");
    for _ in 0..50 {
        let asked = world.now;
        let start = 8 * prng.below(world.blocks() / 8);
        let read = world.read(start, 8);
        world.answers.clear();
        while !world.answers.iter().any(|(_, answer)| answer.0 == read) {
            let next = world.now + us(100);
            world.run_until(next);
            // A few turns of 6 ms of the promoted task, and its own.
            assert!(world.now - asked < us(100_000), "a client starves");
        }
    }
    assert!(world.scheduler.tasks().report(id, world.now).unwrap().delivered.get() > 1000);
}

fn flush_asked(world: &mut TestHost, now: SimTime) -> u64 {
    world.scheduler.arrived(Request::Flush, world.client, now)
}

fn at(us: u64) -> SimTime {
    SimTime::from_ns(us * 1000)
}

/// Answers since the last look: of which requests, and whether they are done.
fn heard(world: &mut TestHost) -> Vec<(u64, bool)> {
    world.scheduler.answers().map(|(id, result)| (id, result.is_ok())).collect()
}

#[test]
fn flushes_during_flush_share_next() {
    let mut world = TestHost::without_tasks(&[], SameTrack::Merge);
    let first = flush_asked(&mut world, at(1));
    let sent = world.scheduler.next_command(at(1)).unwrap();
    let later: Vec<u64> = (2..258).map(|us| flush_asked(&mut world, at(us))).collect();
    assert!(world.scheduler.next_command(at(300)).is_none(), "one at a time");
    world.scheduler.came_back(sent.id, at(400), Ok(Vec::new()));
    assert_eq!(heard(&mut world), [(first, true)]);

    let again = world.scheduler.next_command(at(400)).unwrap();
    assert_eq!((again.what, again.id != sent.id), (DeviceOp::Flush, true));
    let last = flush_asked(&mut world, at(500));
    world.scheduler.came_back(again.id, at(600), Ok(Vec::new()));
    assert!(heard(&mut world).into_iter().eq(later.into_iter().map(|id| (id, true))));
    let third = world.scheduler.next_command(at(600)).unwrap();
    world.scheduler.came_back(third.id, at(700), Ok(Vec::new()));
    assert_eq!(heard(&mut world), [(last, true)]);
    assert!(world.scheduler.is_idle() && world.scheduler.next_command(at(700)).is_none());
}
