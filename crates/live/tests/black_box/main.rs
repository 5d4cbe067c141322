//! Properties of a drive as its host sees it, written once: for the one in virtual time, and for the same
//! with a thread that waits for a clock.
#![allow(missing_docs)]

mod real;
mod suite;
mod virtual_time;

use freewheel_live::emulate::Request;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::sched::CommandMark;
use freewheel_sim::black_box::{BadBlocks, Behaviour, EmulatedDrive};
use freewheel_sim::library;
use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

/// A request, and how long after the script's beginning it comes.
#[derive(Debug, Clone, Copy)]
pub struct Ask {
    pub after: SimDuration,
    pub request: Request,
}

/// Outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    pub asked: SimTime,
    /// Time at which the drive meant it to be answered.
    pub due: SimTime,
    /// Time at which the answer was handed over.
    pub handed: SimTime,
    pub bad: Option<Lbn>,
}

impl Outcome {
    pub fn took(&self) -> SimDuration {
        self.due - self.asked
    }
}

/// A drive as its host sees it.
pub trait BlackBox {
    fn blocks(&self) -> Blocks;

    /// Plays a script, whose requests come in the order of their times, and waits for all answers.
    fn play(&mut self, script: &[Ask]) -> Vec<Outcome>;

    /// One request alone.
    fn ask(&mut self, request: Request) -> Outcome {
        self.play(&[Ask { after: SimDuration::ZERO, request }])[0]
    }
}

/// Makes a drive for a test.
pub type Make = fn(EmulatedDrive) -> Box<dyn BlackBox>;

pub fn spec() -> DriveSpec {
    library::spec("atlas10k").unwrap()
}

pub fn drive(behaviour: &Behaviour, bad: BadBlocks) -> EmulatedDrive {
    EmulatedDrive::new(&spec(), "atlas10k", behaviour, bad, 1).unwrap()
}

pub fn request(op: Op, start: u64, blocks: u64) -> Request {
    Request { op, start: Lbn::new(start), blocks, fua: false, mark: CommandMark::None }
}

pub const FLUSH: Request =
    Request { op: Op::Flush, start: Lbn::ZERO, blocks: 0, fua: false, mark: CommandMark::None };
