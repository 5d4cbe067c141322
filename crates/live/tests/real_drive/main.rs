//! A device as a black box: the same suite for a drive in virtual time, for one in this process in
//! real time, and for one behind NBD; and what only real ones can do.
#![allow(missing_docs)]

#[path = "../common/mod.rs"]
mod common;
mod suite;

use std::sync::Arc;

use freewheel_live::black_box::{RealDrive, RealDriveError};
use freewheel_live::emulate::{Emulation, Options};
use freewheel_live::nbd::Memory;
use freewheel_live::serve::backend::{Backend, Claim, EmulatedBackend, NbdBackend};
use freewheel_model::electronics::spec::SectorFormat;
use freewheel_model::sched::CommandMark;
use freewheel_sim::black_box::{
    Answer, BadBlocks, Behaviour, BlackBox, Command, DriveGone, EmulatedDrive, VirtualDrive,
};
use freewheel_sim::library;
use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

use common::{Running, pattern};
use suite::SUITE;

const NAME: &str = "atlas10k";

fn options(bad: &BadBlocks) -> Options {
    Options { bad: bad.clone(), seed: 1, ..Options::default() }
}

fn virtual_drive(bad: &BadBlocks) -> Box<dyn BlackBox> {
    let spec = library::spec(NAME).unwrap();
    let drive = EmulatedDrive::new(&spec, NAME, &Behaviour::default(), bad.clone(), 1).unwrap();
    Box::new(VirtualDrive::new(drive))
}

fn in_this_process(bad: &BadBlocks) -> Box<dyn BlackBox> {
    let spec = library::spec(NAME).unwrap();
    let drive = RealDrive::new(NAME, |back| {
        let device = EmulatedBackend::start(&spec, NAME, options(bad), back)?;
        Ok::<_, freewheel_live::emulate::EmulateError>(Arc::new(device) as Arc<dyn Backend>)
    });
    Box::new(drive.unwrap())
}

/// With the server that it needs.
struct OverNbd {
    drive: RealDrive,
    _running: Running,
}

impl BlackBox for OverNbd {
    fn blocks(&self) -> Blocks {
        self.drive.blocks()
    }

    fn sector(&self) -> SectorFormat {
        self.drive.sector()
    }

    fn now(&self) -> SimTime {
        self.drive.now()
    }

    fn submit(&mut self, command: Command) {
        self.drive.submit(command);
    }

    fn holds(&self, start: Lbn, blocks: u32) -> bool {
        self.drive.holds(start, blocks)
    }

    fn next_answer(&mut self, until: SimTime) -> Result<Option<Answer>, DriveGone> {
        self.drive.next_answer(until)
    }

    fn sleep_until(&mut self, time: SimTime) {
        self.drive.sleep_until(time);
    }
}

fn over_nbd(bad: &BadBlocks) -> Box<dyn BlackBox> {
    let emulation = Emulation::start(&library::spec(NAME).unwrap(), NAME, options(bad)).unwrap();
    let running = Running::of(emulation);
    let drive = RealDrive::connect(&running.uri(), true).unwrap();
    Box::new(OverNbd { drive, _running: running })
}

fn run(make: suite::Make) {
    for (name, test) in SUITE {
        println!("{name}");
        test(make);
    }
}

#[test]
fn suite_holds_in_virtual_time() {
    run(virtual_drive);
}

#[test]
fn suite_holds_for_local_device() {
    run(in_this_process);
}

#[test]
fn suite_holds_for_export() {
    run(over_nbd);
}

#[test]
fn device_4kn_takes_whole_sectors() {
    let spec = library::spec("exos-7e8-8tb").unwrap();
    let sector = Some(SectorFormat::Native4096);
    let behaviour = Behaviour { sector, ..Behaviour::default() };
    let options = Options { behaviour, ..Options::default() };
    let running = Running::of(Emulation::start(&spec, "exos-7e8-8tb", options).unwrap());
    let mut drive = RealDrive::connect(&running.uri(), true).unwrap();
    assert_eq!(drive.sector(), SectorFormat::Native4096);
    for (id, op) in [(1, Op::Read), (2, Op::Write)] {
        drive.submit(Command {
            id,
            op,
            start: Lbn::new(80),
            blocks: 8,
            fua: false,
            mark: CommandMark::None,
        });
        assert_eq!(drive.next_answer(SimTime::MAX).unwrap().unwrap().bad, None);
    }
    assert!(drive.holds(Lbn::new(80), 8) && !drive.holds(Lbn::new(80), 16));
    let error = drive.with_sector(SectorFormat::Emulated512).err().unwrap().to_string();
    assert!(error.contains("multiples of 4096 bytes") && error.contains("512e"), "{error}");
}

#[test]
fn export_512e_takes_given_sectors() {
    let running = Running::of(Memory::new("memory", 1 << 20));
    let drive = RealDrive::connect(&running.uri(), false).unwrap();
    assert_eq!(drive.sector(), SectorFormat::Native512);
    let drive = drive.with_sector(SectorFormat::Emulated512).unwrap();
    assert_eq!(drive.sector(), SectorFormat::Emulated512);
}

fn read(id: u64, start: u64, blocks: u32) -> Command {
    Command {
        id,
        op: Op::Read,
        start: Lbn::new(start),
        blocks,
        fua: false,
        mark: CommandMark::None,
    }
}

#[test]
fn write_leaves_every_byte_unchanged() {
    let running = Running::of(Memory::new("memory", 1 << 20));
    let data = pattern(1 << 20, 5);
    running.client().write(0, &data, false).unwrap();
    let mut drive = RealDrive::connect(&running.uri(), true).unwrap();
    for id in 0..200_u64 {
        let (start, blocks) = (id * 37 % 2000, (id % 9 + 1) as u32);
        for (id, op) in [(2 * id, Op::Read), (2 * id + 1, Op::Write)] {
            drive.submit(Command {
                id,
                op,
                start: Lbn::new(start),
                blocks,
                fua: false,
                mark: CommandMark::None,
            });
            assert_eq!(drive.next_answer(SimTime::MAX).unwrap().unwrap().bad, None);
        }
    }
    assert!(running.client().read(0, 1 << 20).unwrap() == data);
}

#[test]
#[should_panic(expected = "a block is read before it is written")]
fn drive_writes_only_data_read() {
    let running = Running::of(Memory::new("memory", 1 << 20));
    let mut drive = RealDrive::connect(&running.uri(), true).unwrap();
    drive.submit(read(1, 5, 1));
    drive.next_answer(SimTime::MAX).unwrap();
    drive.submit(Command { op: Op::Write, ..read(2, 4, 2) });
}

#[test]
fn connection_lost_named_on_every_call() {
    let running = Running::of(Memory::new("memory", 1 << 20));
    let mut drive = RealDrive::connect(&running.uri(), false).unwrap();
    drive.submit(read(1, 5, 1));
    drive.next_answer(SimTime::MAX).unwrap();
    let uri = running.uri().to_string();
    running.stop();
    drive.submit(read(2, 5, 1));
    let soon = drive.now() + SimDuration::from_secs(30);
    let gone = drive.next_answer(soon).unwrap_err();
    assert!(gone.0.contains(&uri), "{gone}");
    assert_eq!(drive.next_answer(soon), Err(gone));
}

#[test]
fn file_bypasses_page_cache() {
    let file = tempfile::NamedTempFile::new_in(".").unwrap();
    std::fs::write(file.path(), pattern(1 << 20, 3)).unwrap();
    let mut drive = match RealDrive::open(file.path(), Claim::Read, |_| {}) {
        // A file system that does not know how.
        Err(error @ RealDriveError::PageCache { .. }) => {
            assert!(error.to_string().contains("O_DIRECT"));
            return;
        }
        drive => drive.unwrap(),
    };
    assert_eq!(drive.blocks(), Blocks::new(2048));
    for (id, op) in [(1, Op::Read), (2, Op::Write)] {
        drive.submit(Command { op, ..read(id, 7, 1) });
        let answer = drive.next_answer(SimTime::MAX).unwrap().unwrap();
        // The system says EBADF, which is not told from a bad block.
        assert_eq!(answer.bad.is_some(), op == Op::Write);
    }
    assert!(std::fs::read(file.path()).unwrap() == pattern(1 << 20, 3));
}

#[test]
fn export_without_single_blocks_tells_sizes() {
    let running = Running::of(Memory::new("memory", 1 << 20));
    let export = NbdBackend::connect(&running.uri(), None, Arc::new(|_| {}), |_| {}).unwrap();
    assert_eq!(export.abilities().sector_bytes, 512);
}
