//! A device that reports a lost write once.

use freewheel_freeblock::tasks::{Extent, TaskKind};
use freewheel_live::serve::backend::DeviceErrorKind;
use freewheel_live::serve::{TaskOrder, TaskState};
use freewheel_nbd::{Command, Errno, Span};
use freewheel_units::SimDuration;

use crate::ask;
use crate::common::eventually;
use crate::world::{Beneath, World};

#[test]
fn flush_failure_reaches_all_clients() {
    let beneath = Beneath::new();
    let world = World::over(beneath.clone());
    let mut clients = [world.front.client(), world.front.client(), world.front.client()];
    for (client, at) in clients.iter_mut().zip(0..) {
        client.write(at << 20, &[7; 4096], false).unwrap();
        client.flush().unwrap();
    }
    beneath.fail_a_flush();
    assert_eq!(clients[0].flush(), Err(Errno::Io));
    let flushes = || beneath.changes().iter().filter(|&what| *what == Command::Flush).count();
    let so_far = flushes();
    clients[1] = world.front.client();
    for client in &mut clients {
        for _ in 0..2 {
            assert_eq!(client.flush(), Err(Errno::Io), "the device would say yes");
            assert_eq!(client.write(0, &[8; 4096], true), Err(Errno::Io));
            assert_eq!(client.write(0, &[8; 256 << 10], true), Err(Errno::Io));
            let span = Span { offset: 0, length: 4096 };
            let zeroes = Command::WriteZeroes { span, fua: true, no_hole: false, fast: false };
            assert_eq!(client.call(zeroes, &[]).result.unwrap_err().errno, Errno::Io);
            // Data can be rescued.
            assert_eq!(client.read(1 << 20, 4096), Ok(vec![7; 4096]));
            client.write(2 << 20, &[9; 4096], false).unwrap();
            assert_eq!(client.read(2 << 20, 4096), Ok(vec![9; 4096]));
        }
    }
    assert_eq!(flushes(), so_far, "the device is not asked again");
    let scan = ask(&world, |thread| {
        let scan = TaskOrder::served(TaskKind::Scan, Extent::new(0, 4096), 128);
        let idle_after = Some(SimDuration::from_ms(1));
        thread.create(TaskOrder { idle_after, ..scan }.into()).unwrap()
    });
    let state = || ask(&world, move |thread| thread.task(scan.id)).unwrap().state;
    assert!(eventually(|| state() == TaskState::Done), "tasks go on");
    let notices = ask(&world, |thread| thread.status()).notices;
    let said: Vec<_> = notices.iter().filter(|text| text.contains("flush failed")).collect();
    assert_eq!(said.len(), 1, "{notices:?}");
    assert!(said[0].contains("a write was lost") && said[0].contains("restart the server"));
    assert!(world.notices.lock().unwrap().contains(said[0]));
    let report = world.serving.finish().unwrap();
    assert!(report.failed_flush.is_some_and(|why| why.kind == DeviceErrorKind::Io));
}
