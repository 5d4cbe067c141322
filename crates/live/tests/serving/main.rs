//! A scheduler in front of somebody else's export, from its clients' side and from below.
#![allow(missing_docs)]

#[path = "../common/mod.rs"]
mod common;
mod control;
mod flushes;
mod hold_ups;
mod world;

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use freewheel_freeblock::tasks::{Extent, TaskKind};
use freewheel_live::serve::backend::{Claim, ExportError, FileBackend, NbdBackend};
use freewheel_live::serve::{BackendChannel, ServedTaskError, TaskOrder, TaskState};
use freewheel_nbd::{BlockSizes, Command, Errno, Features, Span};
use freewheel_units::Prng;

use common::{Running, eventually, pattern};
use world::{Beneath, Front, World};

fn ask<T: Send + 'static>(
    world: &World,
    ask: impl FnOnce(&mut freewheel_live::serve::SchedulerThread) -> T + Send + 'static,
) -> T {
    world.serving.ask(ask).blocking_recv().unwrap()
}

/// Notice about a device that is gone.
fn gone(notices: &Mutex<Vec<String>>) -> Vec<String> {
    let said = notices.lock().unwrap();
    said.iter().filter(|notice| notice.contains("is gone")).cloned().collect()
}

#[test]
fn device_unlike_drive_is_noticed_once() {
    let world = World::over(Beneath::new());
    let mut client = world.front.client();
    let mut prng = Prng::new(6, "an export beneath");
    for _ in 0..2200 {
        client.read(512 * prng.below(100_000), 512).unwrap();
    }
    let said = ask(&world, |thread| thread.status()).notices;
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains("of the last 1000 commands") && said[0].contains("hdparm"),
        "{said:?}"
    );
    assert_eq!(*world.notices.lock().unwrap(), said);
}

#[test]
fn export_beneath_reads_back_during_scrub() {
    let world = World::over(Beneath::new());
    let (mut client, mut below) = (world.front.client(), world.beneath.client());
    let mut prng = Prng::new(1, "an export beneath");
    let mut disk = vec![0; 8 << 20];
    for number in 0..400 {
        let length = 512 * (1 + prng.below(64) as usize);
        let at = 512 * prng.below(((disk.len() - length) / 512) as u64) as usize;
        if prng.chance(0.5) {
            let data = pattern(length, number);
            client.write(at as u64, &data, prng.chance(0.2)).unwrap();
            disk[at..at + length].copy_from_slice(&data);
        } else {
            assert!(client.read(at as u64, length as u32).unwrap() == disk[at..at + length]);
        }
    }
    client.flush().unwrap();
    assert!(below.read(0, disk.len() as u32).unwrap() == disk);
    drop((client, below));
    let scrub = ask(&world, |thread| thread.status()).tasks.remove(0);
    assert_eq!((scrub.state, scrub.unreadable_blocks.get()), (TaskState::Running, 0));
    assert!(world.serving.finish().is_some());
    assert_eq!(gone(&world.notices).len(), 0, "not at an ordinary end");
    assert_eq!(world.beneath.stop().broken, 0);
}

#[test]
fn export_beneath_provides_flush_and_fua() {
    let seen = |flush, fua| {
        let mut beneath = Beneath::new();
        beneath.export.features = Features { flush, fua, ..beneath.export.features };
        let world = World::over(beneath.clone());
        let mut client = world.front.client();
        let offered = client.info.features;
        assert_eq!((offered.flush, offered.fua), (flush, flush || fua));
        client.write(512, &[1; 512], offered.fua).unwrap();
        if flush {
            client.flush().unwrap();
        }
        beneath.changes()
    };
    let write = |fua| Command::Write { span: Span { offset: 512, length: 512 }, fua };
    assert_eq!(seen(true, true), [write(true), Command::Flush]);
    assert_eq!(seen(true, false), [write(false), Command::Flush, Command::Flush]);
    assert_eq!(seen(false, true), [write(true)]);
    assert_eq!(seen(false, false), [write(false)]);
}

#[test]
fn export_beneath_erases_by_own_means() {
    let seen = |trim, write_zeroes| {
        let mut beneath = Beneath::new();
        let fast_zero = write_zeroes;
        beneath.export.features =
            Features { trim, write_zeroes, fast_zero, ..beneath.export.features };
        let world = World::over(beneath.clone());
        let mut client = world.front.client();
        let offered = client.info.features;
        assert!(offered.write_zeroes && !offered.fast_zero);
        assert_eq!(offered.trim, trim, "where blocks cannot be given up, no zeroes are written");
        client.write(0, &[7; 8192], false).unwrap();
        let span = Span { offset: 512, length: 2048 };
        if trim {
            client.call(Command::Trim { span, fua: true }, &[]).result.unwrap();
            assert!(client.read(512, 2048).unwrap().iter().all(|&byte| byte == 0));
        }
        let span = Span { offset: 4096, length: 1024 };
        let zeroes = Command::WriteZeroes { span, fua: false, no_hole: true, fast: false };
        client.call(zeroes, &[]).result.unwrap();
        let read = client.read(0, 8192).unwrap();
        let is_zero = |at: &usize| trim && (512..2560).contains(at) || (4096..5120).contains(at);
        assert!(read.iter().enumerate().all(|(at, &byte)| (byte == 0) == is_zero(&at)));
        let mut changes = beneath.changes();
        assert_eq!(changes.remove(0), Command::write(0, 8192));
        if trim {
            assert_eq!(changes.remove(1), Command::Flush, "fua");
        }
        changes
    };
    let (first, second) = (Span { offset: 512, length: 2048 }, Span { offset: 4096, length: 1024 });
    let trim = Command::Trim { span: first, fua: false };
    let zeroes = Command::WriteZeroes { span: second, fua: false, no_hole: true, fast: false };
    let write = Command::write(4096, 1024);
    assert_eq!(seen(true, true), [trim, zeroes]);
    assert_eq!(seen(false, true), [zeroes]);
    assert_eq!(seen(true, false), [trim, write]);
    assert_eq!(seen(false, false), [write]);
}

#[test]
fn export_beneath_cache_reports_only_success() {
    let mut beneath = Beneath::new();
    beneath.bad = vec![8 << 20];
    let world = World::over(beneath.clone());
    let mut client = world.front.client();
    client.write(1 << 20, &[7; 512], false).unwrap();
    let mut cache = |offset, length| {
        let reply = client.call(Command::Cache { span: Span { offset, length } }, &[]);
        assert!(reply.data.is_empty());
        reply.result.map_err(|failure| failure.errno)
    };
    assert_eq!(cache(1 << 20, 1 << 20), Ok(()));
    // It may have gone in two, and the scrub reads at most a track at once.
    let is_of_it = |span: &Span| span.length >= 512 << 10 && span.end() <= 2 << 20;
    assert!(beneath.reads().iter().any(is_of_it), "{:?}", beneath.reads());
    assert_eq!(cache(8 << 20, 4096), Err(Errno::Io), "it cannot be read");
    let small = Command::Cache { span: Span { offset: 0, length: 4096 } };
    let long = Span { offset: 0, length: 33 << 20 };
    assert_eq!(client.refusal(small, &[], long), Errno::Inval, "longer than a read may be");
    assert_eq!(client.read(1 << 20, 512), Ok(vec![7; 512]));
}

#[test]
fn export_beneath_error_hits_covering_requests() {
    let mut beneath = Beneath::new();
    beneath.bad = (0..40).map(|number| (97 + 211 * number) * 512).collect();
    let bad = beneath.bad.clone();
    let world = World::over(beneath);
    let mut client = world.front.client();
    let mut prng = Prng::new(2, "an export beneath");
    for _ in 0..300 {
        let (at, length) = (512 * prng.below(8000), 512 * (1 + prng.below(24)));
        let is_bad = bad.iter().any(|bad| (at..at + length).contains(bad));
        let read = client.read(at, length as u32);
        assert_eq!(read.err(), is_bad.then_some(Errno::Io), "{length} bytes at {at}");
    }
    assert_eq!(gone(&world.notices).len(), 0);
}

#[test]
fn export_beneath_gets_whole_sectors_only() {
    let mut beneath = Beneath::new();
    beneath.export.block_sizes = BlockSizes { minimum: 4096, ..BlockSizes::default() };
    let world = World::over(beneath);
    let mut client = world.front.client();
    let sizes = client.info.block_sizes;
    assert_eq!((sizes.minimum, sizes.preferred), (4096, 4096));
    let mut prng = Prng::new(4, "an export beneath");
    let mut disk = vec![0; 4 << 20];
    for number in 0..300 {
        let length = 4096 * (1 + prng.below(12) as usize);
        let at = 4096 * prng.below(((disk.len() - length) / 4096) as u64) as usize;
        if prng.chance(0.5) {
            disk[at..at + length].copy_from_slice(&pattern(length, number));
            client.write(at as u64, &pattern(length, number), false).unwrap();
        } else {
            assert!(client.read(at as u64, length as u32).unwrap() == disk[at..at + length]);
        }
    }
    let scan = ask(&world, |thread| {
        thread.create(TaskOrder::served(TaskKind::Scan, Extent::new(0, 800), 4).into())
    });
    assert!(matches!(scan, Err(ServedTaskError::PartSector { .. })), "{scan:?}");
}

#[test]
fn export_beneath_reads_long_requests_in_parts() {
    let mut beneath = Beneath::new();
    beneath.export.block_sizes = BlockSizes { payload_max: 65_536 + 512, ..BlockSizes::default() };
    let world = World::over(beneath);
    let mut client = world.front.client();
    let data = pattern(3_000_320, 3);
    client.write(99 * 512, &data, false).unwrap();
    assert!(client.read(99 * 512, data.len() as u32).unwrap() == data);
}

#[test]
fn export_beneath_silent_is_gone_after_limit() {
    // Not where the scrub comes by first.
    let mut beneath = Beneath::new();
    beneath.silent = Some(60 << 20);
    let world = World::over_for(beneath.clone(), Some(Duration::from_millis(500)));
    let mut clients = [world.front.client(), world.front.client()];
    assert!(clients[0].read(0, 512).is_ok());
    thread::scope(|scope| {
        for (client, at) in clients.iter_mut().zip([60 << 20, (60 << 20) + 4096]) {
            scope.spawn(move || {
                let errors = (0..).find_map(|_| client.read(at, 8192).err());
                assert_eq!(errors, Some(Errno::Shutdown));
            });
        }
    });
    beneath.forget();
    let notice = gone(&world.notices).remove(0);
    assert!(notice.contains("no answer for 500ms"), "{notice}");
    let scrub = ask(&world, |thread| thread.status()).tasks.remove(0);
    assert_eq!((scrub.state, scrub.unreadable_blocks.get()), (TaskState::Lost, 0));
}

#[test]
fn export_beneath_vanished_is_not_unreadable() {
    let world = World::over(Beneath::new());
    let mut client = world.front.client();
    client.write(0, &[7; 4096], false).unwrap();
    let World { beneath, serving, front: _front, notices } = world;
    let uri = beneath.uri().to_string();
    beneath.stop();
    assert!(eventually(|| gone(&notices).len() == 1), "although nothing is asked");
    let notice = gone(&notices).remove(0);
    assert!(notice.contains(&uri), "{notice}");
    for _ in 0..3 {
        assert_eq!(client.read(0, 4096), Err(Errno::Shutdown));
        assert_eq!(client.write(0, &[8; 4096], true), Err(Errno::Shutdown));
        assert_eq!(client.flush(), Err(Errno::Shutdown));
    }
    let told = serving.ask(|thread| {
        let scan = thread.create(TaskOrder::served(TaskKind::Scan, Extent::new(0, 1024), 8).into());
        (thread.status().tasks.remove(0), scan)
    });
    let (scrub, scan) = told.blocking_recv().unwrap();
    assert_eq!((scrub.state, scrub.unreadable_blocks.get()), (TaskState::Lost, 0));
    assert!(matches!(scan, Err(ServedTaskError::Lost { .. })), "{scan:?}");
    assert!(serving.finish().is_some());
    assert_eq!(gone(&notices).len(), 1, "once");
}

#[test]
fn served_file_cut_short_is_gone() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let bytes = world::drive().blocks().bytes().get();
    file.as_file().set_len(bytes).unwrap();
    let way = BackendChannel::new();
    let device = FileBackend::open(file.path(), Claim::Exclusive, None, 4, way.back()).unwrap();
    let Front { serving, front, notices } = Front::of(Arc::new(device), way);
    let mut clients = [front.client(), front.client()];
    for (client, at) in clients.iter_mut().zip([0, bytes - 4096]) {
        client.write(at, &[7; 4096], true).unwrap();
    }
    let half = bytes / 2 / 512 * 512;
    file.as_file().set_len(half).unwrap();
    assert_eq!(clients[0].read(bytes - 4096, 4096), Err(Errno::Shutdown));
    assert!(eventually(|| gone(&notices).len() == 1));
    for client in &mut clients {
        // All other blocks fail too: the drive may have lost more of them.
        for at in [0, bytes - 4096] {
            assert_eq!(client.read(at, 4096), Err(Errno::Shutdown));
            assert_eq!(client.write(at, &[8; 4096], false), Err(Errno::Shutdown));
        }
        assert_eq!(client.flush(), Err(Errno::Shutdown));
    }
    assert_eq!(front.client().read(0, 512), Err(Errno::Shutdown), "a new client");
    assert_eq!(file.as_file().metadata().unwrap().len(), half);
    assert!(serving.finish().is_some_and(|report| report.gone.is_some()));
}

#[test]
fn export_beneath_read_only_names_remedy() {
    let mut beneath = Beneath::new();
    beneath.export.features = Features { read_only: true, ..Features::default() };
    let running = Running::of(beneath);
    let error = NbdBackend::connect(&running.uri(), None, Arc::new(|_| {}), |_| {}).err().unwrap();
    assert!(matches!(error, ExportError::ReadOnly { .. }));
    let uri = running.uri().to_string();
    assert!(error.to_string().starts_with(&uri) && error.to_string().contains("nbdkit without -r"));
    assert!(NbdBackend::connect_to_read(&running.uri(), None, Arc::new(|_| {}), |_| {}).is_ok());
}
