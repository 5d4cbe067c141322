//! A device that is gone, and clients that are.

use std::collections::BTreeSet;

use super::*;

/// Requests of every kind, by two clients: their numbers.
fn all_kinds(world: &mut TestHost) -> BTreeSet<u64> {
    world.scheduler.abilities.trim = true;
    let mut asked = BTreeSet::new();
    for client in [Client::alone(1), Client::alone(2)] {
        world.client = client;
        let at = 4000 * client.peer;
        asked.extend((0..20).map(|number| world.read(at + 8 * number, 8)));
        asked.insert(world.write(at, vec![7; 4096], true));
        asked.insert(world.read(at, 3000));
        asked.insert(world.write(at + 5, vec![8; 3 << 20], true));
        asked.insert(world.erase(Erase::Trim, at, 64, true));
        asked.insert(world.erase(Erase::Zeroes { keep: true }, at, 3000, true));
        asked.insert(world.scheduler.arrived(Request::Flush, client, world.now));
    }
    asked
}

fn failures(world: &mut TestHost) -> BTreeSet<u64> {
    let answers = world.scheduler.answers().map(|(id, result)| {
        assert_eq!(result.unwrap_err().kind, DeviceErrorKind::Gone, "{id}");
        id
    });
    answers.collect()
}

#[test]
fn gone_device_fails_every_request() {
    for by_a_command in [true, false] {
        let mut world = TestHost::sized(40, 512, &[], SameTrack::Merge);
        let scrub = TaskOrder { repeat: true, ..world.whole(TaskKind::Scrub) };
        world.scheduler.tasks_mut().create(SimTime::ZERO, scrub.into()).unwrap();
        let asked = all_kinds(&mut world);
        let mut sent: Vec<DeviceCommand> =
            std::iter::from_fn(|| next(&mut world.scheduler, SimTime::ZERO)).collect();
        assert!(sent.len() >= 2, "reads, and a flush");
        let gone = DeviceError { kind: DeviceErrorKind::Gone, message: "it ends".into() };
        let now = SimTime::from_ns(5_000_000);
        if by_a_command {
            world.scheduler.came_back(sent.remove(0).id, now, Err(gone))
        } else {
            world.scheduler.device_gone(gone)
        }
        assert_eq!(failures(&mut world), asked);
        // Its other completions are ignored.
        for DeviceCommand { id, data, .. } in sent {
            world.scheduler.came_back(id, now, Ok(data));
        }
        assert_eq!(failures(&mut world), BTreeSet::new());
        for _ in 0..2 {
            let asked = all_kinds(&mut world);
            assert_eq!(failures(&mut world), asked, "at once");
            assert!(next(&mut world.scheduler, now + us(1_000_000)).is_none());
        }
        assert!(world.scheduler.is_idle());
        assert_eq!((world.scheduler.decides_at(), world.scheduler.command_due()), (None, None));
        assert!(world.scheduler.idle_since().is_some(), "no client is counted any more");
    }
}

/// A scheduler with a client that has requests of every kind, of which the drive has some, and another one
/// with one request; the client's connection goes.
#[test]
fn departed_client_requests_end_unless_begun() {
    let mut world = TestHost::sized(100, 512, &[], SameTrack::Merge);
    let (flood, other) = (Client::alone(1), Client::alone(2));
    world.client = flood;
    let mut of_flood = BTreeSet::new();
    // Each of the writes waits for the one before it.
    of_flood.extend((0..50).map(|_| world.write(100, vec![7; 4096], false)));
    of_flood.extend((0..200).map(|number| world.read(1000 + 64 * number, 8)));
    of_flood.extend((0..3).map(|number| world.read(20_000 * number, 20_000)));
    of_flood.extend((0..3).map(|number| world.write(20_000 * number, vec![8; 10 << 20], true)));
    of_flood.extend((0..2).map(|_| world.erase(Erase::Zeroes { keep: true }, 0, 60_000, true)));
    world.client = other;
    let kept = world.read(60_000, 8);
    world.settle();
    assert_eq!(world.inside.len(), 2, "commands at the drive");

    let begun = world.now;
    world.scheduler.left(flood.connection, begun);
    world.run_until(begun + us(1_000_000));
    assert!(world.scheduler.is_idle());
    let answered: BTreeSet<u64> = world.answers.iter().map(|(_, (id, _))| *id).collect();
    assert!(of_flood.is_subset(&answered), "its places are free");
    let done =
        world.answers.iter().filter(|(_, (id, result))| of_flood.contains(id) && result.is_ok());
    assert!(done.count() <= 2, "what the drive had");
    let last = world.answers.iter().map(|(at, _)| *at).max().unwrap();
    assert!(last - begun < us(200_000), "{:?}", last - begun);
    let of_kept = world.answers.iter().find(|(_, (id, _))| *id == kept);
    assert!(of_kept.is_some_and(|(_, (_, result))| result.is_ok()));
    // It leaves no trace in the fair queue: a client with as many requests is served as before.
    world.client = Client::alone(3);
    let read = world.read(500, 8);
    let end = world.now + us(100_000);
    world.run_until(end);
    assert!(world.answers.iter().any(|(_, (id, result))| *id == read && result.is_ok()));
}
