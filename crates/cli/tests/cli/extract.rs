//! `freewheel extract`, on emulated drives.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use freewheel::extraction::JournalHead;
use freewheel::measures::SimDuration;
use serde_json::Value;

use super::control::{World, interrupt};
use super::nbd::Running;
use super::run::{Bench, SMALL_TRACE, command, document, finish, run, stdout};

/// A drive small enough to be found out in a moment.
const SMALL: &str = r#"
name = "small"
model = "a drive of 80 cylinders"
year = 2000
surfaces = 3
cylinders = 80
rotation_period = "6000001ns"
head_switch = "700us"
seek.read = { form = "three-point", single_ms = 0.6, average_ms = 2.0, full_ms = 4.0 }
overhead = { read = "200us", write = "200us" }
zones = [
    { first_cylinder = 0, last_cylinder = 49, blocks_per_track = 250, track_skew = "40/250", cylinder_skew = "60/250" },
    { first_cylinder = 50, last_cylinder = 79, blocks_per_track = 200, track_skew = "30/200", cylinder_skew = "51/200", spares = 17 },
]
[sources]
name = "assumed: for a test"
"#;

#[test]
fn extracted_drive_builds_with_sources() {
    let bench = Bench::new(SMALL_TRACE);
    bench.put("small.toml", SMALL);
    let target = format!("emulated:{}?reply_jitter=10us&seed=3", bench.at("small.toml"));
    let file = bench.at("found.toml");
    let found = document(&["extract", &target, "-o", &file, "--json"]);
    assert_eq!(found["drive"]["name"], "found");
    for (key, value) in [("surfaces", 3), ("cylinders", 80), ("rotation_period_ns", 6_000_001)] {
        assert_eq!(found["drive"][key], value, "{key}");
    }
    assert_eq!(found["drive"]["blocks"], 50 * 3 * 250 + 30 * 3 * 200 - 17);
    let shown = document(&["drive", "show", &file, "--json"]);
    assert_eq!(shown["drive"], found["drive"]);
    let sources = shown["sources"].as_object().unwrap();
    for key in [
        "rotation_period",
        "zones",
        "seek",
        "head_switch",
        "overhead.read",
        "mapping",
        "zero_latency",
    ] {
        assert!(sources[key].as_str().unwrap().starts_with("extracted: "), "{key}");
    }
    for key in ["overhead.write", "seek.write_settle"] {
        assert!(sources[key].as_str().unwrap().starts_with("assumed: "), "{key}");
    }
    assert!(found["commands"].as_u64().unwrap() > 1000);
    // The file has its validation, and so has the page that shows it.
    let all = &shown["held_out"][0];
    assert_eq!((&all["requests"], &all["count"]), (&"all".into(), &4000.into()));
    assert_eq!(shown["held_out"], found["held_out"]);
    let demerit: SimDuration = all["demerit"].as_str().unwrap().parse().unwrap();
    assert!(demerit < SimDuration::from_us(100), "{demerit}");
    let text = stdout(&["drive", "show", &file]);
    assert!(text.contains("reads of 8 to 256 blocks anywhere"), "{text}");
}

#[test]
fn extract_repeats_by_seed_and_shows_confidence() {
    let bench = Bench::new(SMALL_TRACE);
    bench.put("small.toml", SMALL);
    let target = format!("emulated:{}?seek_jitter=30us", bench.at("small.toml"));
    let file = bench.at("found.toml");
    let find = || {
        let text = stdout(&["extract", &target, "-o", &file]);
        (text, std::fs::read_to_string(&file).unwrap())
    };
    let (text, drive) = find();
    let again = run(&["extract", &target, "-o", &file]);
    assert_eq!(again.code, 1, "what may have taken hours is not written over");
    assert!(again.stderr.contains("is there already"), "{}", again.stderr);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(find(), (text.clone(), drive));
    assert!(text.contains("rotation_period") && text.contains("approximate"), "{text}");
    assert!(text.contains("0 of them writes"), "{text}");
    assert!(text.contains("blocks read afterwards all lie where the file says"), "{text}");
    let shown = stdout(&["drive", "show", &file]);
    assert!(shown.starts_with("found: extracted by timing\n"), "{shown}");
    // A sentence, not code.
    assert!(!text.contains('`') && !shown.contains('`'), "{shown}");
}

#[test]
fn extract_counts_and_names_unreadable_blocks() {
    let bench = Bench::new(SMALL_TRACE);
    bench.put("small.toml", SMALL);
    let file = bench.at("found.toml");
    let extract = |bad: &str| {
        let target = format!("emulated:{}?reply_jitter=10us{bad}", bench.at("small.toml"));
        let text = stdout(&["extract", &target, "-o", &file]);
        std::fs::remove_file(&file).unwrap();
        let found = document(&["extract", &target, "-o", &file, "--json"]);
        std::fs::remove_file(&file).unwrap();
        (text, found)
    };
    let (text, found) = extract("");
    let asked = "not all of the drive's blocks were asked for\n";
    assert!(
        text.contains(&format!("every block that was asked for could be read; {asked}")),
        "{text}"
    );
    assert_eq!((&found["failed"], &found["unreadable"]), (&0.into(), &serde_json::json!([])));
    let (text, found) = extract("&bad=20000-20099&recovery=1ms");
    let bad = found["unreadable"].as_array().unwrap();
    assert!(bad.len() > 8, "{found}");
    assert!(bad.iter().all(|block| (20_000..20_100).contains(&block.as_u64().unwrap())));
    let says = format!(
        "{} blocks could not be read and were passed over: {}, {}, ",
        bad.len(),
        bad[0],
        bad[1]
    );
    let failed =
        format!(", and {} more; {} commands failed; {asked}", bad.len() - 8, found["failed"]);
    assert!(text.contains(&says) && text.contains(&failed), "{text}");
    assert!(found["failed"].as_u64().unwrap() > bad.len() as u64, "reads of several blocks, too");
    assert!(text.contains("\n0 defects that the drive's layout passes over;"), "{text}");
}

/// Blocks of the second zone that were scratched, and lie in its spares now.
const SCRATCHED: std::ops::Range<u64> = 6200..6300;

fn scratched() -> String {
    let places = 30 * 3 * 200;
    let remaps: Vec<String> =
        SCRATCHED.map(|at| format!("[{at}, {}]", places - 1 - (at - SCRATCHED.start))).collect();
    let spares = format!("spares = 117, remaps = [{}]", remaps.join(", "));
    SMALL.replace("spares = 17", &spares)
}

#[test]
fn extract_of_contradicting_drive_exits_1() {
    let bench = Bench::new(SMALL_TRACE);
    bench.put("scratched.toml", &scratched());
    let target = format!("emulated:{}?reply_jitter=10us&seed=3", bench.at("scratched.toml"));
    let file = bench.at("found.toml");
    let ran = run(&["extract", &target, "-o", &file]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("lie elsewhere than the file says"), "{}", ran.stderr);
    assert!(ran.stderr.contains("do not use the file"), "{}", ran.stderr);
    let line = ran.stdout.lines().find(|line| line.starts_with("WRONG: of 2032 blocks")).unwrap();
    assert!(line.contains(": block 43") && line.contains(" us"), "{line}");
    assert!(std::fs::read_to_string(&file).unwrap().contains("WRONG: of 2032 blocks"));
    assert!(stdout(&["drive", "show", &file]).contains("WRONG"));

    std::fs::remove_file(&file).unwrap();
    let ran = run(&["extract", &target, "-o", &file, "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    let misplaced = found["misplaced"].as_array().unwrap();
    assert!(!misplaced.is_empty());
    for block in misplaced {
        let block = block["block"].as_u64().unwrap();
        assert!(SCRATCHED.contains(&(block - 50 * 3 * 250)), "{block}");
    }
    let zones = found["values"].as_array().unwrap().iter().find(|value| value["key"] == "zones");
    assert_eq!(zones.unwrap()["confidence"], "assumed");
}

#[test]
fn extract_refuses_wrong_target_writes_nothing() {
    let bench = Bench::new(SMALL_TRACE);
    let file = bench.at("found.toml");
    for (target, code, text) in [
        ("emulated:nosuch", 2, "nosuch"),
        ("emulated:atlas10k?x=1", 2, "seek_jitter"),
        ("emulated:atlas10k?store=x", 2, "freewheel emulate --store"),
        ("emulated:tr96?queue_policy=look", 1, "`queue_depth` of 2 or more"),
        ("http://localhost", 2, "nbd"),
        ("/dev/nosuch", 1, "/dev/nosuch: "),
        ("nbd+unix:///?socket=/no/such", 1, "/no/such"),
    ] {
        let ran = run(&["extract", target, "-o", &file]);
        assert_eq!(ran.code, code, "{target}: {}", ran.stderr);
        assert!(ran.stderr.contains(text), "{target}: {}", ran.stderr);
        assert!(!Path::new(&file).exists());
    }
    let ran = run(&["extract", "emulated:atlas10k", "--resume", "-o", &file]);
    assert!(ran.code == 2 && ran.stderr.contains("virtual time"), "{}", ran.stderr);
    let cached = "emulated:atlas10k?write_cache=on";
    let ran = run(&["extract", cached, "--write", "-o", &file]);
    assert!(ran.code == 2 && ran.stderr.contains("--write with write_cache=on"), "{}", ran.stderr);
}

#[test]
fn extract_without_rotation_refused_leaves_nothing() {
    // A file, served from memory.
    let world = World::file();
    let target = format!("nbd+unix:///?socket={}", world.path("socket").display());
    let file = world.path("found.toml");
    let ran = run(&["extract", &target, "-o", file.to_str().unwrap()]);
    assert_eq!((ran.code, &*ran.stdout), (1, ""), "{}", ran.stderr);
    for says in ["this is no spinning disk", "help: give a hard disk itself, as /dev/sdX"] {
        assert!(ran.stderr.contains(says), "{}", ran.stderr);
    }
    assert!(!file.exists() && !world.path("found.toml.journal").exists());
}

#[test]
fn extract_ctrl_c_says_how_to_resume() {
    let bench = Bench::new(SMALL_TRACE);
    bench.put("small.toml", SMALL);
    let (socket, file) = (bench.at("socket"), bench.at("found.toml"));
    let _drive = Running::start(&["emulate", &bench.at("small.toml"), "--socket", &socket]);
    let journal = format!("{file}.journal");
    let target = format!("nbd+unix:///?socket={socket}");
    let mut child = command(&["extract", &target, "-o", &file])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    if !wait_for_answers(&mut child, &journal, 20) {
        println!("skipped: it ended before, as it does where others hold up most answers");
        return;
    }
    interrupt(&child);
    let ran = finish(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    let says = format!("note: the measurements are in {journal}; --resume continues from them\n");
    assert!(ran.stderr.ends_with(&says), "{}", ran.stderr);
}

#[test]
fn extract_leaves_unfit_journal_alone() {
    let bench = Bench::new(SMALL_TRACE);
    let (disk, file) = (bench.at("disk"), bench.at("found.toml"));
    let journal = format!("{file}.journal");
    std::fs::write(&disk, vec![0; 2048 * 512]).unwrap();
    let head = JournalHead { blocks: 2048, seed: 1, writes: false };
    let answers = format!("{}\n0 r 7777 1 0 5000\n0 r 8888 1 9000 14000\n", head.line());
    std::fs::write(&journal, &answers).unwrap();
    let mode = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&journal, mode).unwrap();
    };
    // Another user may have written in it.
    mode(0o666);
    let ran = run(&["extract", &disk, "-o", &file, "--resume"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let says = format!("{journal}: has the mode 0666, so that other users may open it");
    assert!(ran.stderr.contains(&says), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(&journal).unwrap(), answers);
    mode(0o644);
    let ran = run(&["extract", &disk, "-o", &file, "--resume"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("7777") && ran.stderr.contains("another drive"), "{}", ran.stderr);
    assert!(ran.stderr.contains("is left as it is"), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(&journal).unwrap(), answers);
}

/// Starts an extraction and kills it when its journal has this number of lines. False when it has ended
/// before, as it does where other tests hold up most of its answers.
fn break_off(args: &[&str], journal: &str, count: usize) -> bool {
    let mut child = command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    if !wait_for_answers(&mut child, journal, count) {
        return false;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    true
}

/// Waits until a journal has this number of lines. False when the extraction has ended before.
fn wait_for_answers(child: &mut Child, journal: &str, count: usize) -> bool {
    let begun = Instant::now();
    let lines = || std::fs::read_to_string(journal).unwrap_or_default().lines().count();
    while lines() < count {
        assert!(begun.elapsed() < Duration::from_secs(300), "{journal} does not grow");
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    true
}

/// The short form of the next test: no value is checked, so a busy machine may run it.
#[test]
fn extract_over_nbd_resumes_after_break() {
    let bench = Bench::new(SMALL_TRACE);
    bench.put("small.toml", SMALL);
    let (socket, file) = (bench.at("socket"), bench.at("found.toml"));
    let drive = Running::start(&["emulate", &bench.at("small.toml"), "--socket", &socket]);
    let target = format!("nbd+unix:///?socket={socket}");
    let args = ["extract", &target, "-o", &file];
    let journal = format!("{file}.journal");
    assert!(break_off(&args, &journal, 100), "it ended before 100 answers");
    // The last line may have been cut.
    let mut kept = std::fs::read_to_string(&journal).unwrap();
    kept.truncate(kept.rfind('\n').unwrap() + 1);
    let refused = run(&args);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("--resume"), "{}", refused.stderr);
    let more = kept.lines().count() + 100;
    assert!(break_off(&[&args[..], &["--resume"]].concat(), &journal, more), "it ended early");
    // It repeats no question: times would differ.
    let text = std::fs::read_to_string(&journal).unwrap();
    assert!(text.starts_with(&kept) && text.lines().count() >= more, "{kept}\n\n{text}");
    drop(drive);
}

#[test]
#[ignore = "times a drive in real time, alone on the machine: `make test-real-time`"]
fn extract_nbd_real_time_despite_break() {
    let bench = Bench::new(SMALL_TRACE);
    // Small enough for some minutes, most of which are requests held against the file.
    let tiny = SMALL
        .replace("cylinders = 80", "cylinders = 26")
        .replace("last_cylinder = 49", "last_cylinder = 15")
        .replace(
            "first_cylinder = 50, last_cylinder = 79",
            "first_cylinder = 16, last_cylinder = 25",
        );
    bench.put("small.toml", &tiny);
    let (socket, file) = (bench.at("socket"), bench.at("found.toml"));
    let mut drive = Running::start(&["emulate", &bench.at("small.toml"), "--socket", &socket]);
    let target = format!("nbd+unix:///?socket={socket}");
    let args = ["extract", &target, "-o", &file];
    // Where others hold up most answers of the drive, it says so and ends, or is off.
    let mut tries = Vec::new();
    for _ in 0..5 {
        match find_interrupted(&args, &file) {
            Ok(()) => return,
            Err(why) => tries.push(why),
        }
    }
    let late_us = late_us_in_99_of_100(&mut drive);
    if late_us > QUIET_US {
        println!(
            "skipped: the machine is not quiet: one reply in 100 was {late_us} us late or later"
        );
        return;
    }
    panic!("none of five goes through, though few replies were late: {tries:#?}");
}

/// The lateness that 99 of 100 replies of the emulated drive keep to on a quiet machine. On a busy
/// machine the extraction's values are not checked.
const QUIET_US: f64 = 90.0;

/// By how much one reply in 100 was late or later, which the drive says at its end.
fn late_us_in_99_of_100(drive: &mut Running) -> f64 {
    drive.signal("-TERM");
    let (text, _) = drive.end();
    let one_in_100 = |name: &str| -> f64 {
        let row = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let times: Vec<&str> = row.split_whitespace().filter(|word| *word != "us").collect();
        // The count, the median, 90 %.
        times[3].parse().unwrap()
    };
    one_in_100("late by") + one_in_100("handed over in")
}

/// Extracts the small drive of 26 cylinders, is killed, is refused without `--resume`, and continues.
/// Says what of it is not as it is.
fn find_interrupted(args: &[&str], file: &str) -> Result<(), String> {
    let journal = format!("{file}.journal");
    if !break_off(args, &journal, 1200) {
        return Err("it ended early".into());
    }
    let refused = run(args);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("--resume"), "{}", refused.stderr);
    let ran = run(&[args, &["--resume", "--json"]].concat());
    if ran.code != 0 {
        return Err(ran.stderr);
    }
    assert!(!Path::new(&journal).exists());
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    let drive = &found["drive"];
    let text = std::fs::read_to_string(file).unwrap();
    let period = drive["rotation_period_ns"].as_u64().unwrap();
    let is_found = drive["surfaces"] == 3
        && drive["cylinders"] == 26
        && drive["blocks"] == 16 * 3 * 250 + 10 * 3 * 200 - 17
        // 2 ppm, as the times are those of two processes on a busy machine.
        && period.abs_diff(6_000_001) <= 12
        && are_skews(&text, "track_skew = ", [40.0, 30.0])
        && are_skews(&text, "cylinder_skew = ", [60.0, 51.0]);
    if is_found { Ok(()) } else { Err(text) }
}

/// True if the zones of 250 and of 200 blocks a track have these skews in blocks, to half a block.
fn are_skews(text: &str, key: &str, skews: [f64; 2]) -> bool {
    let found: Vec<f64> =
        text.lines().filter_map(|line| line.strip_prefix(key)).map(fraction).collect();
    let asked = [skews[0] / 250.0, skews[1] / 200.0];
    found.len() == 2 && found.iter().zip(asked).all(|(found, asked)| (found - asked).abs() < 0.002)
}

/// Value of a fraction in quotes, as "40/250".
fn fraction(text: &str) -> f64 {
    let (over, under) = text.trim_matches('"').split_once('/').unwrap();
    over.parse::<f64>().unwrap() / under.parse::<f64>().unwrap()
}

#[test]
fn extract_differing_surfaces_table_and_picture() {
    let bench = Bench::new(SMALL_TRACE);
    // Two bands of twelve cylinders on surfaces of 250, 240 and 225 blocks a track.
    let differing = SMALL
        .replace("cylinders = 80", "cylinders = 84\nmapping.band.cylinders = 12\nsurface_offsets = [0, 4, 2]")
        .replace("last_cylinder = 49, blocks_per_track = 250", "last_cylinder = 23, blocks_per_track = 250, surface_blocks_per_track = [250, 240, 225]");
    let second = differing.find("    { first_cylinder = 50").unwrap();
    let end = differing[second..].find('\n').unwrap();
    let differing = format!("{}{}", &differing[..second], &differing[second + end + 1..]);
    bench.put("differing.toml", &differing);
    let (target, table) = (format!("emulated:{}", bench.at("differing.toml")), bench.at("t.csv"));
    let page = bench.at("t.html");
    let found = document(&["extract", &target, "--tracks", &table, "--page", &page, "--json"]);
    assert_eq!(found["blocks"], 24 * (250 + 240 + 225));
    let text = std::fs::read_to_string(&table).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|row| row.split(',').collect()).collect();
    let tracks: Vec<[&str; 2]> = rows.iter().map(|row| [row[1], row[2]]).collect();
    let band = [["12", "250"], ["12", "240"], ["12", "225"]];
    assert_eq!(tracks, [band, band].concat());
    assert!(std::fs::read_to_string(&page).unwrap().contains("72 tracks of 225 to 250 blocks"));
    let shown = stdout(&["drive", "show", &bench.at("differing.toml")]);
    assert!(shown.contains("225-250 by surface"), "{shown}");
    let file = bench.at("found.toml");
    let found = document(&["extract", &target, "--surfaces", "-o", &file, "--json"]);
    assert_eq!(found["misplaced"].as_array().unwrap().len(), 0);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("surface_offsets = [0, 4, 2]"), "{text}");
    let merged = bench.at("merged.csv");
    let shown = stdout(&["extract", "--merge", &table, &table, "--tracks", &merged]);
    assert!(shown.contains("zone 1: blocks a track") && shown.contains("250 240 225"), "{shown}");
    assert!(!shown.contains("differs"), "{shown}");
    assert_eq!(std::fs::read_to_string(&merged).unwrap().lines().count(), text_rows(&table));
    let refused = run(&["extract", "--merge", &table, &page, "--tracks", &bench.at("no.csv")]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("t.html: line 1 is not"), "{}", refused.stderr);
}

fn text_rows(file: &str) -> usize {
    std::fs::read_to_string(file).unwrap().lines().count()
}
