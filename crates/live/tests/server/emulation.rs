//! A modelled drive with the server in front.

use std::sync::Arc;
use std::time::{Duration, Instant};

use freewheel_live::emulate::{EmulateError, Emulation, Options};
use freewheel_live::nbd::Limits;
use freewheel_model::electronics::spec::{SectorFormat, WriteCache};
use freewheel_nbd::{Command, Errno, Span};
use freewheel_sim::black_box::{BadBlocks, Behaviour};
use freewheel_sim::library;
use freewheel_units::{Lbn, SimDuration};

use crate::common::{Running, pattern};

fn start(name: &str, options: Options) -> Result<Emulation, EmulateError> {
    Emulation::start(&library::spec(name).unwrap(), name, options)
}

fn atlas(options: Options) -> Running {
    Running::of(start("atlas10k", options).unwrap())
}

fn cached() -> Options {
    let behaviour = Behaviour { write_cache: Some(WriteCache::On), ..Behaviour::default() };
    Options { behaviour, ..Options::default() }
}

#[test]
fn export_is_rotating_disk_of_drive_size() {
    let client = atlas(Options::default()).client();
    let info = client.info;
    assert_eq!((info.size, &*info.name), (9_199_079_936, "atlas10k"));
    assert_eq!((info.block_sizes.minimum, info.block_sizes.preferred), (512, 4096));
    let can = info.features;
    assert!(can.rotational && can.flush && can.fua && can.trim && can.write_zeroes);
    assert!(can.multi_conn && can.cache && !can.read_only && !can.fast_zero);
}

fn of_sector(sector: SectorFormat) -> Running {
    let behaviour = Behaviour { sector: Some(sector), ..Behaviour::default() };
    Running::of(start("exos-7e8-8tb", Options { behaviour, ..Options::default() }).unwrap())
}

#[test]
fn drive_4kn_refuses_partial_sectors() {
    let running = of_sector(SectorFormat::Native4096);
    let mut client = running.client();
    let sizes = client.info.block_sizes;
    assert_eq!((sizes.minimum, sizes.preferred), (4096, 4096));
    client.write(8192, &[6; 4096], false).unwrap();
    assert_eq!(client.read(8192, 4096).unwrap(), [6; 4096]);
    let read = Command::read(8192, 4096);
    for (offset, length) in [(8192, 512), (512, 4096)] {
        assert_eq!(client.refusal(read, &[], Span { offset, length }), Errno::Inval);
    }
    let write = Command::Write { span: Span { offset: 8192, length: 4096 }, fua: false };
    let amid = Span { offset: 8192 + 512, length: 4096 };
    assert_eq!(client.refusal(write, &[7; 4096], amid), Errno::Inval);
    assert_eq!(client.read(8192, 4096).unwrap(), [6; 4096]);
}

#[test]
fn drive_512e_takes_single_blocks() {
    let running = of_sector(SectorFormat::Emulated512);
    let mut client = running.client();
    let sizes = client.info.block_sizes;
    assert_eq!((sizes.minimum, sizes.preferred), (512, 4096));
    client.write(8192 + 512, &[6; 512], true).unwrap();
    assert_eq!(client.read(8192, 1024).unwrap()[512..], [6; 512]);
}

#[test]
fn drive_with_partial_track_sectors_refused() {
    let behaviour = Behaviour { sector: Some(SectorFormat::Native4096), ..Behaviour::default() };
    let error = start("atlas10k", Options { behaviour, ..Options::default() }).err().unwrap();
    let text = error.to_string();
    assert!(text.contains("zones[0].blocks_per_track") && text.contains("4kn"), "{text}");
}

#[test]
fn data_read_back_from_any_connection() {
    let running = atlas(cached());
    let (mut one, mut other) = (running.client(), running.client());
    let data = pattern(96 << 10, 3);
    one.write(9_199_079_936 - (96 << 10), &data, true).unwrap();
    assert!(other.read(9_199_079_936 - (96 << 10), 96 << 10).unwrap() == data);
    let span = |at: u64| Span { offset: 9_199_079_936 - (96 << 10) + at, length: 4096 };
    other.call(Command::Trim { span: span(8192), fua: true }, &[]).result.unwrap();
    let zeroes = Command::WriteZeroes { span: span(16384), fua: false, no_hole: true, fast: false };
    other.call(zeroes, &[]).result.unwrap();
    other.call(Command::Cache { span: span(0) }, &[]).result.unwrap();
    one.flush().unwrap();
    let mut expected = data;
    expected[8192..12288].fill(0);
    expected[16384..20480].fill(0);
    assert!(one.read(9_199_079_936 - (96 << 10), 96 << 10).unwrap() == expected);
}

#[test]
fn forced_write_waits_for_media() {
    let running = atlas(cached());
    let mut client = running.client();
    let began = Instant::now();
    client.write(1 << 30, &[1; 4096], true).unwrap();
    // Settling alone takes half a millisecond, the way there more than two.
    assert!(began.elapsed() > Duration::from_millis(2), "{:?}", began.elapsed());
}

#[test]
fn bad_block_fails_readers_until_written() {
    let bad = BadBlocks::new([Lbn::new(100)], SimDuration::from_ms(1));
    let running = atlas(Options { bad, ..Options::default() });
    let mut client = running.client();
    assert_eq!(client.read(96 * 512, 4096), Err(Errno::Io));
    assert_eq!(client.read(101 * 512, 512).unwrap(), [0; 512]);
    client.write(100 * 512, &[5; 512], false).unwrap();
    assert_eq!(client.read(96 * 512, 4096).unwrap()[4 * 512..5 * 512], [5; 512]);
}

#[test]
fn client_vanished_leaves_drive_to_others() {
    let running = atlas(Options::default());
    let (mut one, mut other) = (running.client(), running.client());
    for at in 0..20 {
        one.ask(Command::read(at << 28, 4096), &[]);
    }
    one.vanish();
    assert_eq!(other.read(1 << 29, 4096).unwrap(), vec![0; 4096]);
}

#[test]
fn client_vanished_frees_zeroes() {
    let running = Running::of(start("exos-x24-24tb", Options::default()).unwrap());
    let (mut one, mut other) = (running.client(), running.client());
    for at in 0..16 {
        let span = Span { offset: at << 32, length: u32::MAX - 4095 };
        let zeroes = Command::WriteZeroes { span, fua: false, no_hole: false, fast: false };
        one.ask(zeroes, &[]);
    }
    one.vanish();
    // The drive itself would take four minutes for all of them.
    let began = Instant::now();
    assert_eq!(other.read(1 << 40, 4096).unwrap(), vec![0; 4096]);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

#[test]
fn drive_of_24_tb_stores_only_written() {
    let running = Running::of(start("exos-x24-24tb", Options::default()).unwrap());
    let mut client = running.client();
    let last = client.info.size - 4096;
    client.write(last, &[8; 4096], false).unwrap();
    // Over the border of two files.
    let data = pattern(8192, 4);
    client.write((8 << 40) - 4096, &data, false).unwrap();
    assert_eq!(client.read(last, 4096).unwrap(), vec![8; 4096]);
    assert!(client.read((8 << 40) - 4096, 8192).unwrap() == data);
}

#[test]
fn drive_not_emulatable_names_remedy() {
    let message = |name| start(name, Options::default()).err().unwrap().to_string();
    let two = message("exos-2x18-18tb");
    assert!(two.contains("2 actuators") && two.contains("actuators = 1"), "{two}");
    let zoned = message("ultrastar-hc620-14tb");
    assert!(zoned.contains("host-managed") && zoned.contains("`zoned`"), "{zoned}");
}

#[test]
fn stop_answers_and_counts_pending_requests() {
    let emulation = Arc::new(start("atlas10k", Options::default()).unwrap());
    let running = Running::new(vec![Arc::clone(&emulation) as _], Limits::default());
    let mut client = running.client();
    // One after the other at the far ends of the disk.
    for at in [0, 8 << 30, 1 << 30, 7 << 30] {
        client.ask(Command::read(at, 4096), &[]);
    }
    assert!(client.reply().result.is_ok());
    running.begin_stop();
    // What the connection had not read by then is refused.
    let taken = (0..3).filter(|_| match client.reply().result {
        Ok(()) => true,
        Err(failure) => {
            assert_eq!(failure.errno, Errno::Shutdown);
            false
        }
    });
    let done = 1 + taken.count() as u64;
    running.stop();
    let account = emulation.device().finish().unwrap();
    let counts = [account.requests, account.lateness.count(), account.handing.count()];
    assert_eq!(counts, [done; 3]);
}
