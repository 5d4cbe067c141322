//! After a failed flush no FLUSH and no FUA succeeds.

use super::*;

fn worn_out() -> DeviceError {
    DeviceError { kind: DeviceErrorKind::Io, message: "worn out".into() }
}

/// A request of every kind that promises durable data, by two clients: their numbers.
fn all_durable(world: &mut TestHost) -> Vec<u64> {
    let mut asked = Vec::new();
    for client in [Client::alone(1), Client::alone(2)] {
        world.client = client;
        asked.push(world.scheduler.arrived(Request::Flush, client, world.now));
        asked.push(world.write(0, vec![7; 4096], true));
        asked.push(world.write(100, vec![7; 100 << 10], true));
        asked.push(world.erase(Erase::Zeroes { keep: true }, 0, 8, true));
        asked.push(world.erase(Erase::Trim, 0, 8, true));
        asked.push(world.erase(Erase::Zeroes { keep: false }, 0, 3000, true));
    }
    asked
}

/// Answers all commands at the device: those of this kind with an error, all others with success.
fn answer_all(world: &mut TestHost, fails: impl Fn(&DeviceOp) -> bool) {
    while let Some(command) = next(&mut world.scheduler, world.now) {
        let DeviceCommand { id, what, data, .. } = command;
        world.now += us(100);
        let result = if fails(&what) { Err(worn_out()) } else { Ok(data) };
        world.scheduler.came_back(id, world.now, result);
    }
}

/// The outcomes since the last look, by request.
fn outcomes(world: &mut TestHost) -> BTreeMap<u64, Result<(), DeviceError>> {
    world.scheduler.answers().map(|(id, result)| (id, result.map(drop))).collect()
}

#[test]
fn failed_flush_fails_all_later_flushes() {
    type Ask = fn(&mut TestHost) -> u64;
    let asks: [(bool, Ask); 5] = [
        (false, |world| world.scheduler.arrived(Request::Flush, world.client, world.now)),
        (false, |world| world.write(8, vec![7; 4096], true)),
        (false, |world| world.write(8, vec![7; 200 << 10], true)),
        (false, |world| world.erase(Erase::Zeroes { keep: false }, 8, 8, true)),
        (true, |world| world.write(8, vec![7; 4096], true)),
    ];
    for (number, (fua, ask)) in asks.into_iter().enumerate() {
        let mut world = TestHost::new(&[], SameTrack::Merge);
        (world.scheduler.abilities.fua, world.scheduler.abilities.trim) = (fua, true);
        assert_eq!(world.scheduler.failed_flush(), None);
        let first = ask(&mut world);
        answer_all(&mut world, |what| match what {
            DeviceOp::Flush => !fua,
            what => *what == DeviceOp::Write { fua: true },
        });
        assert_eq!(outcomes(&mut world)[&first], Err(worn_out()), "{number}");
        for _ in 0..2 {
            let asked = all_durable(&mut world);
            let plain = [world.read(0, 8), world.write(0, vec![8; 4096], false)];
            answer_all(&mut world, |_| false);
            let outcomes = outcomes(&mut world);
            for id in asked {
                let error = outcomes[&id].as_ref().unwrap_err();
                assert_eq!(error.kind, DeviceErrorKind::Io);
                assert!(error.message.contains("an earlier flush failed"), "{error}");
                assert!(error.message.contains("worn out"), "{error}");
            }
            assert!(plain.iter().all(|id| outcomes[id].is_ok()), "{number}: data can be rescued");
        }
        assert!(world.scheduler.failed_flush().is_some());
        let scrub = world.scheduler.tasks().reports(world.now).remove(0);
        assert!(!scrub.state.is_over(), "tasks go on");
    }
}

#[test]
fn failed_flush_fails_requests_under_way() {
    for fua in [false, true] {
        let mut world = TestHost::without_tasks(&[], SameTrack::Merge);
        (world.scheduler.abilities.fua, world.scheduler.abilities.trim) = (fua, true);
        let asked = all_durable(&mut world);
        let mut sent: Vec<DeviceCommand> =
            std::iter::from_fn(|| next(&mut world.scheduler, SimTime::ZERO)).collect();
        let flush = sent.iter().position(|command| command.what == DeviceOp::Flush).unwrap();
        let flush = sent.remove(flush);
        world.scheduler.came_back(flush.id, SimTime::ZERO, Err(worn_out()));
        for DeviceCommand { id, data, .. } in sent {
            world.scheduler.came_back(id, SimTime::ZERO, Ok(data));
        }
        answer_all(&mut world, |_| false);
        let outcomes = outcomes(&mut world);
        assert!(asked.iter().all(|id| outcomes[id].is_err()), "{outcomes:?}");
        assert!(world.scheduler.is_idle());
    }
}

#[test]
fn flush_behind_failed_fua_is_not_believed() {
    let mut world = TestHost::without_tasks(&[], SameTrack::Merge);
    world.scheduler.abilities.fua = true;
    let write = world.write(8, vec![7; 4096], true);
    let flush = world.scheduler.arrived(Request::Flush, world.client, world.now);
    let mut sent: Vec<DeviceCommand> =
        std::iter::from_fn(|| next(&mut world.scheduler, SimTime::ZERO)).collect();
    sent.sort_by_key(|command| command.what == DeviceOp::Flush);
    assert_eq!(sent.len(), 2);
    world.scheduler.came_back(sent[0].id, SimTime::ZERO + us(10_000), Err(worn_out()));
    world.scheduler.came_back(sent[1].id, SimTime::ZERO + us(20_000), Ok(Vec::new()));
    let outcomes = outcomes(&mut world);
    assert!(outcomes[&write].is_err() && outcomes[&flush].is_err(), "one error for both");
}

#[test]
fn refused_fua_write_is_no_failed_flush() {
    let mut world = TestHost::without_tasks(&[], SameTrack::Merge);
    world.scheduler.abilities.fua = true;
    let write = world.write(8, vec![7; 4096], true);
    let sent = next(&mut world.scheduler, SimTime::ZERO).unwrap();
    let full = DeviceError { kind: DeviceErrorKind::NoSpace, message: "it is full".into() };
    world.scheduler.came_back(sent.id, SimTime::ZERO + us(10_000), Err(full.clone()));
    assert_eq!(outcomes(&mut world)[&write], Err(full));
    let flush = world.scheduler.arrived(Request::Flush, world.client, world.now);
    answer_all(&mut world, |_| false);
    assert_eq!(outcomes(&mut world)[&flush], Ok(()));
}
