//! Devices without a platter that turns.

use std::collections::BTreeSet;

use freewheel_extract::{ExtractError, Journal, extract};
use freewheel_model::electronics::spec::SectorFormat;
use freewheel_sim::black_box::{Answer, BlackBox, Command, DriveGone};
use freewheel_units::{Blocks, Lbn, Prng, SimDuration, SimTime};

use crate::hidden::options;

/// Answers after a time that is drawn for a block that was never read, and for one that was.
struct Memory {
    now: SimTime,
    prng: Prng,
    took_us: [fn(&mut Prng) -> u64; 2],
    was_read: BTreeSet<u64>,
    asked: Option<Command>,
    commands: u64,
}

impl Memory {
    fn new(seed: u64, took_us: [fn(&mut Prng) -> u64; 2]) -> Self {
        let (now, prng) = (SimTime::ZERO, Prng::new(seed, "memory"));
        Self { now, prng, took_us, was_read: BTreeSet::new(), asked: None, commands: 0 }
    }
}

impl BlackBox for Memory {
    fn blocks(&self) -> Blocks {
        Blocks::new(2_000_000)
    }

    fn sector(&self) -> SectorFormat {
        SectorFormat::Native512
    }

    fn now(&self) -> SimTime {
        self.now
    }

    fn submit(&mut self, command: Command) {
        self.commands += 1;
        self.asked = Some(command);
    }

    fn holds(&self, _: Lbn, _: u32) -> bool {
        false
    }

    fn next_answer(&mut self, _: SimTime) -> Result<Option<Answer>, DriveGone> {
        let Some(command) = self.asked.take() else { return Ok(None) };
        let is_new = self.was_read.insert(command.start.get());
        let took_us = self.took_us[usize::from(!is_new)](&mut self.prng);
        self.now += SimDuration::from_us(took_us);
        Ok(Some(Answer { id: command.id, at: self.now, bad: None }))
    }

    fn sleep_until(&mut self, time: SimTime) {
        self.now = self.now.max(time);
    }
}

/// The error, after no more commands and seconds than that.
fn refused(drive: &mut Memory, commands: u64, seconds: u64) -> ExtractError {
    let error = extract(drive, &options(), Journal::default(), &|_| {}).unwrap_err();
    assert!(drive.commands <= commands, "{} commands: {error}", drive.commands);
    let took = drive.now - SimTime::ZERO;
    assert!(took <= SimDuration::from_secs(seconds), "{took}: {error}");
    error
}

#[test]
fn memory_device_is_refused_within_second() {
    let same: fn(&mut Prng) -> u64 = |prng| 5 + prng.below(60);
    // One of forty is held up, as by a flash that cleans itself.
    let flash: fn(&mut Prng) -> u64 =
        |prng| 70 + prng.below(80) + if prng.below(40) == 0 { 4000 } else { 0 };
    let cached: fn(&mut Prng) -> u64 = |prng| 9 + prng.below(5);
    let network: fn(&mut Prng) -> u64 = |prng| 4000 + prng.below(1000);
    for took_us in [[same, same], [flash, flash], [flash, cached], [network, network]] {
        for seed in 0..20 {
            let error = refused(&mut Memory::new(seed, took_us), 200, 1);
            assert!(matches!(error, ExtractError::NoTurn { .. }), "{error}");
            assert!(error.to_string().contains("no spinning disk"), "{error}");
        }
    }
}

/// Their times differ by as much as those of a disk, and follow no turn.
#[test]
fn answers_without_period_are_refused() {
    let little: fn(&mut Prng) -> u64 = |prng| 300 + prng.below(4000);
    let much: fn(&mut Prng) -> u64 = |prng| 6000 + prng.below(8000);
    for took_us in [little, much] {
        for seed in 0..4 {
            let error = refused(&mut Memory::new(seed, [took_us; 2]), 500, 60);
            assert!(matches!(error, ExtractError::NoRotation), "{error}");
        }
    }
}
