//! Large requests beside small ones.

use std::collections::BTreeSet;

use super::*;

const MIB: u64 = 2048;

#[test]
fn reads_see_own_writes_at_any_size() {
    let mut world = TestHost::sized(100, 512, &[], SameTrack::Merge);
    let scrub = TaskOrder { repeat: true, ..world.whole(TaskKind::Scrub) };
    world.scheduler.tasks_mut().create(SimTime::ZERO, scrub.into()).unwrap();
    let mut prng = Prng::new(1, "large requests");
    let half = world.blocks() / 2;
    let mut shadow = world.media.clone();
    let mut wanted: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    for number in 0..400u64 {
        // Two connections of one client, each on its half of the drive.
        let connection = prng.below(2);
        world.client = Client { peer: 7, connection };
        let longest = if prng.chance(0.3) { 6 * MIB } else { 200 };
        let blocks = 1 + prng.below(longest);
        let start = connection * half + prng.below(half - blocks);
        let place = (start * 512) as usize..((start + blocks) * 512) as usize;
        match prng.below(5) {
            0 | 1 => {
                let data = vec![number as u8 | 1; place.len()];
                shadow[place].copy_from_slice(&data);
                world.write(start, data, prng.chance(0.2));
            }
            2 => {
                shadow[place].fill(0);
                world.erase(Erase::Zeroes { keep: true }, start, blocks, prng.chance(0.2));
            }
            _ => drop(wanted.insert(world.read(start, blocks), shadow[place].to_vec())),
        }
        let next = world.now + us(prng.below(100_000));
        world.run_until(next);
    }
    let end = world.now + us(200_000_000);
    world.run_until(end);
    assert_eq!(world.answers.len(), 400, "each is answered once");
    assert!(world.media == shadow);
    let answers: BTreeMap<u64, &Answer> =
        world.answers.iter().map(|(_, answer)| (answer.0, answer)).collect();
    for (id, data) in &wanted {
        assert!(answers[id].1.as_ref().unwrap() == data, "read {id}");
    }
}

#[test]
fn piece_error_is_error_of_request() {
    let mut world = TestHost::sized(100, 512, &[9000], SameTrack::Merge);
    let failed = world.read(0, 10 * MIB);
    let whole = world.read(5 * MIB, 10 * MIB);
    world.run_until(world.now + us(60_000_000));
    let result = |id: u64| &world.answers.iter().find(|(_, answer)| answer.0 == id).unwrap().1.1;
    assert!(result(failed).as_ref().is_err_and(|error| error.message.contains("9000")));
    assert!(result(whole).as_ref().is_ok_and(|data| data.len() == 10 << 20));
    assert!(world.scheduler.is_idle());
}

/// Response times of one client that reads 4 KiB at a time, in order, while `floods` keep requests of
/// 32 MiB in flight, `depth` each.
fn responses_beside(floods: &[Client], depth: u64, op: Op) -> Vec<SimDuration> {
    let mut world = TestHost::sized(400, 512, &[], SameTrack::Merge);
    let mut prng = Prng::new(3, "reads of 4 KiB");
    let victim = Client::alone(1_000_000);
    let (mut of_flood, mut responses) = (BTreeMap::new(), Vec::new());
    let flood = |world: &mut TestHost, client: Client| {
        world.client = client;
        let start = 64 * 512 * (client.connection % 4);
        match op {
            Op::Write => world.write(start, vec![1; 32 << 20], false),
            _ => world.read(start, 32 * MIB),
        }
    };
    for client in floods.iter().flat_map(|&client| (0..depth).map(move |_| client)) {
        of_flood.insert(flood(&mut world, client), client);
    }
    for _ in 0..100 {
        let (asked, start) = (world.now, 8 * prng.below(world.blocks() / 8));
        world.client = victim;
        let read = world.read(start, 8);
        let mut answered = None;
        while answered.is_none() {
            let next = world.now + us(500);
            world.run_until(next);
            assert!(world.now - asked < us(60_000_000), "it starves");
            for (at, (id, _)) in std::mem::take(&mut world.answers) {
                if id == read {
                    answered = Some(at);
                } else if let Some(client) = of_flood.remove(&id) {
                    of_flood.insert(flood(&mut world, client), client);
                }
            }
        }
        responses.push(answered.unwrap() - asked);
    }
    responses.sort();
    responses
}

/// The 99th percentile, and the median.
fn p99(responses: &[SimDuration]) -> (SimDuration, SimDuration) {
    (responses[98], responses[49])
}

#[test]
fn reader_is_not_delayed_by_48_connections() {
    let connections: Vec<Client> =
        (0..48).map(|connection| Client { peer: 0, connection }).collect();
    let one = p99(&responses_beside(&connections[..1], 2, Op::Read));
    let many = p99(&responses_beside(&connections, 1, Op::Read));
    eprintln!("4 KiB reads, p99 and median: beside one {one:?}, beside 48 {many:?}");
    assert!(many.0 <= one.0 * 2, "{many:?}, beside one {one:?}");
}

#[test]
fn read_passes_large_overlapping_writes() {
    let connections: Vec<Client> =
        (0..48).map(|connection| Client { peer: 0, connection }).collect();
    let one = p99(&responses_beside(&connections[..1], 2, Op::Write));
    let many = p99(&responses_beside(&connections, 1, Op::Write));
    eprintln!("4 KiB reads, p99 and median: beside one {one:?}, beside 48 {many:?}");
    assert!(many.0 <= one.0 * 2, "{many:?}, beside one {one:?}");
}

#[test]
fn connections_of_client_move_equal_bytes() {
    let mut world = TestHost::sized(400, 512, &[], SameTrack::Merge);
    let mut sizes = BTreeMap::new();
    for connection in 0..4 {
        world.client = Client { peer: 0, connection };
        // One asks for 32 MiB at a time and the others for 4 MiB.
        let blocks = if connection == 0 { 32 * MIB } else { 4 * MIB };
        for _ in 0..(32 * MIB / blocks) {
            sizes.insert(world.read(connection * 64 * 512, blocks), connection);
        }
    }
    let mut last: BTreeSet<(SimTime, u64)> = BTreeSet::new();
    let end = world.now + us(60_000_000);
    world.run_until(end);
    for connection in 0..4 {
        let of_it = world.answers.iter().filter(|(_, (id, _))| sizes[id] == connection);
        last.insert((of_it.map(|(at, _)| *at).max().unwrap(), connection));
    }
    let (first, end) = (last.first().unwrap().0, last.last().unwrap().0);
    // When the first one is done, none of the others has more left than the scheduler has of a client.
    let (all, left) = (4 * 32, 3 * 4);
    assert!(end.ns() * (all - left) <= first.ns() * all, "{last:?}");
}
