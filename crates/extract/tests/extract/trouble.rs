//! Hosts that are busy, drives that break, connections that end.

use freewheel_extract::{ExtractError, Journal, JournalEntry, JournalHead, extract, read_journal};
use freewheel_model::drive::spec::Mapping;
use freewheel_model::electronics::spec::{ElectronicsSpec, SectorFormat};
use freewheel_sim::black_box::{
    Activity, Answer, BadBlocks, BlackBox, Command, DriveGone, EmulatedDrive, VirtualDrive,
};
use freewheel_units::{Blocks, Lbn, Op, Prng, SimDuration, SimTime};

use crate::checks::{check_layout, check_mapping, check_seeks};
use crate::hidden::{emulated, extracted, hidden, options};

/// A drive whose host is busy: one of fifty answers is noticed up to 5 ms late, and one command of
/// fifty is sent late. After this many answers the connection breaks.
struct Troubled {
    drive: VirtualDrive,
    prng: Prng,
    is_busy: bool,
    answers_left: u64,
}

impl Troubled {
    fn late(&mut self) -> SimDuration {
        let is_late = self.is_busy && self.prng.below(50) == 0;
        SimDuration::from_us(if is_late { self.prng.below(5000) } else { 0 })
    }
}

impl BlackBox for Troubled {
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
        self.answers_left = self.answers_left.checked_sub(1).ok_or(DriveGone("it broke".into()))?;
        let answer = self.drive.next_answer(until)?;
        let late = self.late();
        Ok(answer.map(|answer| {
            let at = answer.at + late;
            self.drive.sleep_until(at);
            Answer { at, ..answer }
        }))
    }

    fn sleep_until(&mut self, time: SimTime) {
        let late = self.late();
        self.drive.sleep_until(time + late);
    }
}

#[test]
fn extraction_tolerates_busy_host() {
    for (base, seed) in [
        ("exos-7e8-8tb", 4),
        ("atlas10k", 10),
        ("atlas10k", 7),
        ("exos-7e8-8tb", 9),
        ("exos-7e8-8tb", 12),
    ] {
        let hidden = hidden(base, seed);
        let drive = emulated(&hidden.spec, &hidden.behaviour, seed);
        let prng = Prng::new(seed, "trouble");
        let mut drive = Troubled { drive, prng, is_busy: true, answers_left: u64::MAX };
        let found = extract(&mut drive, &options(), Journal::default(), &|_| {}).unwrap();
        check_layout(&hidden.spec, &found);
        check_mapping(&hidden.spec, &found);
        check_seeks(&hidden.spec, &found);
    }
}

#[test]
fn extraction_tolerates_drives_own_work() {
    let mut hidden = hidden("exos-7e8-8tb", 4);
    let (every, lasts) = (SimDuration::from_secs(1), SimDuration::from_ms(60));
    hidden.behaviour.activity = Some(Activity { every, lasts });
    let found = extracted(&hidden, false);
    check_layout(&hidden.spec, &found);
    check_seeks(&hidden.spec, &found);
}

#[test]
fn unreadable_blocks_are_told_and_skipped() {
    let hidden = hidden("exos-7e8-8tb", 4);
    let per_track = u64::from(hidden.spec.zones[0].blocks_per_track);
    // The first ones of the drive, a track's end, and one of two thousand elsewhere.
    let count = emulated(&hidden.spec, &hidden.behaviour, 1).blocks().get();
    let mut prng = Prng::new(3, "bad blocks");
    let places = [0, 1, per_track - 1, per_track].into_iter();
    let bad: Vec<u64> = places.chain((0..count / 2000).map(|_| prng.below(count))).collect();
    let bad = BadBlocks::new(bad.into_iter().map(Lbn::new), SimDuration::from_ms(300));
    let drive =
        EmulatedDrive::new(&hidden.spec, "hidden", &hidden.behaviour, bad.clone(), 4).unwrap();
    let mut drive = VirtualDrive::new(drive);
    let found = extract(&mut drive, &options(), Journal::default(), &|_| {}).unwrap();
    check_layout(&hidden.spec, &found);
    check_seeks(&hidden.spec, &found);
    assert!(found.unreadable.contains(&0) && found.unreadable.len() > 8);
    let are_bad = |block: &u64| bad.first_in(Lbn::new(*block), 1).is_some();
    assert!(found.unreadable.iter().all(are_bad));
}

/// So small a zone at the end has but one pair of tracks from which its skew is measured.
#[test]
fn unreadable_zone_start_does_not_hang() {
    let mut hidden = hidden("atlas10k", 10);
    let spec = &mut hidden.spec;
    (spec.surfaces, spec.mapping, spec.electronics) =
        (3, Mapping::Cylinder, ElectronicsSpec::default());
    let last = spec.zones.last_mut().unwrap();
    last.last_cylinder = last.first_cylinder + 1;
    (last.slips, last.spares) = (Vec::new(), 5);
    let tracks = u64::from(last.blocks_per_track);
    spec.cylinders = last.last_cylinder + 1;
    let blocks = emulated(spec, &hidden.behaviour, 1).blocks().get();
    // The last track of the last cylinder but one.
    let bad = blocks + 5 - 4 * tracks;
    let bad = BadBlocks::new([Lbn::new(bad)], SimDuration::from_ms(300));
    let drive = EmulatedDrive::new(&hidden.spec, "hidden", &hidden.behaviour, bad, 4).unwrap();
    let mut drive = Troubled {
        drive: VirtualDrive::new(drive),
        prng: Prng::new(1, "trouble"),
        is_busy: false,
        answers_left: 1_000_000,
    };
    let found = extract(&mut drive, &options(), Journal::default(), &|_| {}).unwrap();
    check_layout(&hidden.spec, &found);
}

#[test]
fn interrupted_extraction_resumes_with_same_result() {
    let hidden = hidden("atlas10k", 10);
    let head = JournalHead { blocks: 1, seed: 1, writes: false };
    let mut text = head.line() + "\n";
    let mut sessions = 0;
    let found = loop {
        sessions += 1;
        // Each time the drive stands at another angle, and its clock begins anew.
        let drive = emulated(&hidden.spec, &hidden.behaviour, sessions);
        let prng = Prng::new(sessions, "trouble");
        let mut drive = Troubled { drive, prng, is_busy: false, answers_left: 7_001 };
        drive.drive.sleep_until(SimTime::from_ns(sessions * 1_234_567));
        let past = read_journal(&text, &head).unwrap();
        let keep = Box::new(|entry: &JournalEntry| {
            text += &(entry.line() + "\n");
            Ok(())
        });
        match extract(&mut drive, &options(), Journal { past, keep }, &|_| {}) {
            Ok(found) => break found,
            Err(ExtractError::DriveGone(_)) => {}
            Err(error) => panic!("{error}"),
        }
    };
    assert!(sessions > 4, "{sessions}");
    check_layout(&hidden.spec, &found);
    check_mapping(&hidden.spec, &found);
    check_seeks(&hidden.spec, &found);
    assert_eq!(found.commands as usize, text.lines().count() - 1, "nothing was asked twice");
}

#[test]
fn journal_of_other_drive_is_refused() {
    let hidden = hidden("atlas10k", 10);
    let entry = JournalEntry {
        session: 0,
        op: Op::Read,
        block: u64::MAX,
        blocks: 1,
        sent: SimTime::ZERO,
        end: SimTime::ZERO,
        is_bad: false,
    };
    let journal = Journal { past: [entry].into(), ..Journal::default() };
    let mut drive = emulated(&hidden.spec, &hidden.behaviour, 1);
    let error = extract(&mut drive, &options(), journal, &|_| {}).unwrap_err();
    assert!(error.to_string().contains("another drive"), "{error}");
}
