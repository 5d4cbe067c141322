//! In real time: with a thread that waits for a clock.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use freewheel_live::emulate::{Device, Finished, Request};
use freewheel_sim::black_box::{BadBlocks, Behaviour, EmulatedDrive};
use freewheel_units::{Blocks, Op, Prng};

use super::suite::SUITE;
use super::virtual_time::Virtual;
use super::{Ask, BlackBox, Outcome, drive, request};

struct Real {
    device: Device,
    blocks: Blocks,
}

impl Real {
    fn new(drive: EmulatedDrive) -> Self {
        let blocks = drive.blocks();
        Self { device: Device::start(drive).unwrap(), blocks }
    }
}

impl BlackBox for Real {
    fn blocks(&self) -> Blocks {
        self.blocks
    }

    fn play(&mut self, script: &[Ask]) -> Vec<Outcome> {
        let clock = self.device.clock();
        let begin = clock.now();
        let (tell, told) = mpsc::channel();
        for (at, ask) in script.iter().enumerate() {
            let wait = (begin + ask.after).saturating_since(clock.now());
            thread::sleep(Duration::from_nanos(wait.ns()));
            let (asked, tell) = (clock.now(), tell.clone());
            let done = move |finished: &Finished| {
                let (due, bad) = (finished.at, finished.bad);
                tell.send((at, Outcome { asked, due, handed: clock.now(), bad })).unwrap();
            };
            self.device.submit(asked, ask.request, None, Box::new(done));
        }
        drop(tell);
        let mut outcomes: Vec<(usize, Outcome)> = told.iter().collect();
        assert_eq!(outcomes.len(), script.len());
        outcomes.sort_by_key(|(at, _)| *at);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }
}

#[test]
fn suite_holds_in_real_time() {
    for (name, test) in SUITE {
        println!("{name}");
        test(|drive| Box::new(Real::new(drive)));
    }
}

#[test]
fn real_time_dues_match_virtual_time() {
    let behaviour = Behaviour::default();
    let mut real = Real::new(drive(&behaviour, BadBlocks::default()));
    let mut other = Virtual::new(drive(&behaviour, BadBlocks::default()));
    let mut prng = Prng::new(5, "places");
    for at in 0..30 {
        let op = if at % 3 == 0 { Op::Write } else { Op::Read };
        let place = request(op, prng.below(2_000_000) * 8, 8);
        let request = Request { fua: at % 6 == 0, ..place };
        let outcome = real.ask(request);
        other.now = outcome.asked;
        assert_eq!(other.ask(request).due, outcome.due, "request {at}");
    }
}

#[test]
fn device_end_counts_answered_drops_rest() {
    let device = Device::start(drive(&Behaviour::default(), BadBlocks::default())).unwrap();
    let (tell, told) = mpsc::channel();
    let ask = |blocks| {
        let tell = tell.clone();
        let done = move |finished: &Finished| tell.send(finished.bad).unwrap();
        device.submit(device.clock().now(), request(Op::Read, 0, blocks), None, Box::new(done));
    };
    (0..5).for_each(|_| ask(8));
    (0..5).for_each(|_| assert_eq!(told.recv(), Ok(None)));
    // This takes minutes.
    ask(10_000_000);
    let account = device.finish().unwrap();
    let counts = [account.requests, account.lateness.count(), account.handing.count()];
    assert_eq!(counts, [5; 3]);
    ask(8);
    assert!(device.finish().is_none());
    assert_eq!(told.try_iter().count(), 0);
}
