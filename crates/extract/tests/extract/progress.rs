//! Reports of an extraction about its progress.

use std::cell::RefCell;
use std::collections::VecDeque;

use freewheel_extract::{ExtractStep, Extraction, Journal, JournalEntry, extract};
use freewheel_units::SimDuration;

use crate::hidden::{emulated, hidden, options};

/// A report, with its names as text.
#[derive(Debug, Clone, PartialEq)]
struct Told {
    name: String,
    part: String,
    done: u64,
    total: u64,
    commands: u64,
    drive_time: SimDuration,
}

impl From<&ExtractStep<'_>> for Told {
    fn from(step: &ExtractStep<'_>) -> Self {
        let (name, part) = (step.name.into(), step.part.into());
        let &ExtractStep { done, total, commands, drive_time, .. } = step;
        Self { name, part, done, total, commands, drive_time }
    }
}

/// All reports of an extraction that continues after these answers, its result, and all answers.
fn told(past: VecDeque<JournalEntry>) -> (Vec<Told>, Extraction, Vec<JournalEntry>) {
    let hidden = hidden("exos-7e8-8tb", 9);
    let mut drive = emulated(&hidden.spec, &hidden.behaviour, 9);
    let told = RefCell::new(Vec::new());
    let mut answers: Vec<JournalEntry> = past.iter().copied().collect();
    let keep = Box::new(|entry: &JournalEntry| {
        answers.push(*entry);
        Ok(())
    });
    let tell = |step: &ExtractStep<'_>| told.borrow_mut().push(Told::from(step));
    let found = extract(&mut drive, &options(), Journal { past, keep }, &tell).unwrap();
    (told.into_inner(), found, answers)
}

/// Reports of one step, one after the other.
fn steps(told: &[Told]) -> Vec<&[Told]> {
    told.chunk_by(|before, after| before.name == after.name).collect()
}

#[test]
fn progress_is_steady_and_monotonic() {
    let (told, found, _) = told(VecDeque::new());
    let again = SimDuration::from_secs(1);
    for pair in told.windows(2) {
        let silent = pair[1].drive_time - pair[0].drive_time;
        // Only a pause of the extraction itself is longer: two passes of references.
        let longest = if pair[0].name == "rotation" { again * 4 } else { again };
        assert!(silent < longest, "{pair:?}");
        assert!(pair[1].commands >= pair[0].commands, "{pair:?}");
        let is_same = pair[0].name == pair[1].name;
        assert!(!is_same || pair[1].done >= pair[0].done, "{pair:?}");
    }
    let last = told.last().unwrap();
    assert_eq!((last.commands, last.drive_time.ns()), (found.commands, found.drive_ns));
    for step in steps(&told) {
        let ends: Vec<usize> =
            (0..step.len()).filter(|&at| step[at].done >= step[at].total).collect();
        assert_eq!(ends, [step.len() - 1], "a step ends once: {:?}", step.last());
    }
}

/// Three zones, of which each takes thousands of commands.
#[test]
fn zone_progress_names_what_is_measured() {
    let (told, ..) = told(VecDeque::new());
    let all = steps(&told);
    let zones = all.iter().find(|step| step[0].name == "tracks and zones").unwrap();
    let commands = zones.last().unwrap().commands - zones[0].commands;
    // Without anything new for this long.
    let changes: Vec<&Told> = zones
        .chunk_by(|a, b| (a.done, &a.part) == (b.done, &b.part))
        .map(|same| &same[0])
        .collect();
    let longest = changes.windows(2).map(|pair| pair[1].commands - pair[0].commands).max().unwrap();
    // The sectors of the first track take the longest: by the drive 3 to 43 % of the commands (seeds 3 to 13).
    assert!(longest * 2 < commands, "{longest} of {commands}");
    for part in [
        "zone 1: sectors of a track",
        "zone 1: track ",
        "zone 1: tracks",
        "zone 2: skews",
        "zone 3: ",
    ] {
        assert!(zones.iter().any(|told| told.part.starts_with(part)), "{part}");
    }
}

#[test]
fn resumed_extraction_counts_earlier_commands() {
    let (whole, found, answers) = told(VecDeque::new());
    let half = answers.len() / 2;
    let (rest, again, _) = told(answers[..half].iter().copied().collect());
    assert!(rest[0].commands >= half as u64, "{:?}", rest[0]);
    let was_at = whole.iter().rfind(|told| told.commands <= half as u64).unwrap();
    assert_eq!((&rest[0].name, rest[0].total), (&was_at.name, was_at.total));
    assert!(rest[0].done >= was_at.done, "{:?} after {was_at:?}", rest[0]);
    assert!(rest[0].drive_time >= was_at.drive_time);
    assert_eq!(again.spec.zones.len(), found.spec.zones.len());
}
