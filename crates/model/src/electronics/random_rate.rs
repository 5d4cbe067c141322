//! Requests a second at random places, as data sheets state them: a closed loop, and the commands served once
//! the buffer is as full as it gets.

use std::collections::VecDeque;
use std::sync::Arc;

use freewheel_units::{Blocks, Lbn, Op, Prng, SimTime};

use super::unit::{DriveUnit, NextEvent};
use crate::drive::{Check, Drive, Exact, Quantity};
use crate::sched::{CommandMark, ParsePolicyError, Waiting};
use crate::spec::advertised::RandomRates;
use crate::spec::drive::DriveSpec;

/// Requests that are counted.
const COUNTED: u64 = 30_000;

/// Requests before those, beside twice those that the buffer holds: after that the order of destages no
/// longer depends on how the buffer was filled.
const LEFT_OUT: u64 = 2_000;

/// Random reads and writes as modelled and as advertised, of a drive whose maker states them. An error as
/// of [`DriveUnit::new`].
pub fn random_checks(spec: &DriveSpec, drive: &Drive) -> Result<Vec<Check>, ParsePolicyError> {
    let Some(rates) = &spec.advertised.random else { return Ok(Vec::new()) };
    let drive = Arc::new(drive.clone());
    let mut checks = Vec::new();
    for quantity in Quantity::OF_ELECTRONICS {
        let op = if quantity == Quantity::RandomReads { Op::Read } else { Op::Write };
        if let Some(advertised) = quantity.advertised(&spec.advertised) {
            let modelled = ClosedLoop::new(spec, &drive, rates, op)?.requests_per_second();
            checks.push(Check { quantity, modelled, advertised: Some(advertised) });
        }
    }
    Ok(checks)
}

/// Requests of one kind at random places of all actuators, a constant number.
struct ClosedLoop {
    units: Vec<DriveUnit>,
    /// By unit: those for which it has no room.
    waiting: Vec<VecDeque<Waiting>>,
    prng: Prng,
    op: Op,
    blocks: u64,
    outstanding: u64,
    left_out: u64,
    sequence: u64,
}

impl ClosedLoop {
    fn new(
        spec: &DriveSpec,
        drive: &Arc<Drive>,
        rates: &RandomRates,
        op: Op,
    ) -> Result<Self, ParsePolicyError> {
        let units = (0..drive.actuators()).map(|_| DriveUnit::new(drive, &spec.electronics));
        let units = units.collect::<Result<Vec<_>, _>>()?;
        let dirty = spec.electronics.buffer.as_ref().and_then(|buffer| buffer.dirty);
        let held = dirty.map_or(0, |dirty| u64::from(dirty.extents)) * units.len() as u64;
        Ok(Self {
            waiting: vec![VecDeque::new(); units.len()],
            units,
            prng: Prng::new(1, "random requests"),
            op,
            blocks: rates.blocks.get().into(),
            outstanding: rates.outstanding.get().into(),
            left_out: LEFT_OUT + if op == Op::Write { 2 * held } else { 0 },
            sequence: 0,
        })
    }

    fn requests_per_second(mut self) -> u64 {
        let mut now = SimTime::ZERO;
        for _ in 0..self.outstanding {
            self.submit(now);
        }
        let (mut done, mut begin) = (0, now);
        while done < self.left_out + COUNTED {
            let next = self.units.iter().map(|unit| unit.next_event().map(NextEvent::time));
            let next = next.enumerate().filter_map(|(unit, time)| Some((time?, unit))).min();
            let Some((time, unit)) = next else { return 0 };
            now = time;
            if self.units[unit].advance(now, &mut Exact).is_some() {
                done += 1;
                begin = if done == self.left_out { now } else { begin };
                self.fill(unit, now);
                self.submit(now);
            }
        }
        let ns = u128::from((now - begin).ns()).max(1);
        (u128::from(COUNTED) * 1_000_000_000 / ns) as u64
    }

    fn submit(&mut self, now: SimTime) {
        let unit = self.prng.below(self.units.len() as u64) as usize;
        let drive = self.units[unit].drive();
        let places = (drive.blocks().get() / self.blocks).max(1);
        let start = Lbn::new(self.prng.below(places) * self.blocks);
        let target = drive.target(start, Blocks::new(self.blocks), self.op);
        let sequence = self.sequence;
        self.sequence += 1;
        self.waiting[unit].push_back(Waiting {
            target,
            arrival: now,
            sequence,
            fua: false,
            mark: CommandMark::None,
        });
        self.fill(unit, now);
    }

    fn fill(&mut self, unit: usize, now: SimTime) {
        while self.units[unit].has_room()
            && let Some(waiting) = self.waiting[unit].pop_front()
        {
            self.units[unit].submit(now, &waiting, &mut Exact);
        }
    }
}
