//! Traces that cannot say what a study asks are told so, at the top.
#![allow(missing_docs)]

use std::io::Write;

use freewheel_model::sched::PolicySpec;
use freewheel_sim::config::TraceWorkload;
use freewheel_study::{Study, StudyOptions, study};
use freewheel_units::Prng;

const HEADER: &str = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n";
const MS: u64 = 1_000_000;
const DAY: u64 = 86_400_000 * MS;

/// `count` reads of 4 KiB all over the Atlas 10K, `gap_ns` apart, answered after `response_ns` if that
/// was recorded.
fn reads(count: u64, gap_ns: u64, response_ns: Option<u64>) -> Vec<String> {
    let prng = &mut Prng::new(1, "doubts");
    let line = |i: u64| {
        let (offset, arrival) = (prng.below(2_000_000) * 4096, i * gap_ns);
        let complete = response_ns.map_or(String::new(), |ns| (arrival + ns).to_string());
        format!("{arrival},R,{offset},4096,0,{complete}\n")
    };
    (0..count).map(line).collect()
}

/// A trace in which nothing is doubtful: 70 s.
fn sound() -> Vec<String> {
    reads(700, 100 * MS, None)
}

fn studied(lines: &[String], change: impl FnOnce(&mut StudyOptions)) -> Study {
    let mut file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    file.write_all((HEADER.to_owned() + &lines.concat()).as_bytes()).unwrap();
    let trace = TraceWorkload { file: file.path().into(), ..TraceWorkload::default() };
    let mut options = StudyOptions::new(trace, "atlas10k");
    (options.policies, options.scrub) = (vec![PolicySpec::Fcfs], false);
    change(&mut options);
    study(&options, &|_| {}).unwrap()
}

/// The first finding of a study of these lines.
fn first(lines: &[String]) -> String {
    studied(lines, |_| {}).findings[0].headline.clone()
}

/// Beginnings of what is said of a doubtful trace.
const DOUBTS: [&str; 6] = [
    "This drive cannot serve",
    "The trace's ",
    "The trace has ",
    "The trace lasts",
    "The trace records",
    "The largest request",
];

#[test]
fn a_sound_trace_is_not_doubted() {
    let study = studied(&sound(), |_| {});
    for finding in &study.findings {
        let headline = &finding.headline;
        assert!(!DOUBTS.iter().any(|doubt| headline.starts_with(doubt)), "{headline}");
        assert!(!headline.contains("widened"), "{headline}");
    }
}

#[test]
fn a_trace_of_one_second_is_called_a_moment() {
    let headline = first(&reads(101, 10 * MS, None));
    assert_eq!(headline, "The trace lasts 1.0 s: it shows a moment, not a load.");
}

#[test]
fn a_load_beyond_the_drive_is_said_to_be_one_unless_it_waits_for_the_drive() {
    // 400 a second for 65 s, of which the drive serves about 120.
    let lines = |response| reads(26_000, 2_500_000, response);
    let study = studied(&lines(None), |_| {});
    let mean = study.baseline().result.outstanding_mean;
    assert!(mean > 4_000.0, "{mean}");
    let headline = &study.findings[0].headline;
    assert!(headline.starts_with("This drive cannot serve this load: on average"), "{headline}");
    let waits = studied(&lines(Some(2 * MS)), |_| {});
    assert!(waits.dependent_replay);
    assert!(!waits.findings[0].headline.starts_with("This drive"), "{:?}", waits.findings[0]);
}

#[test]
fn a_burst_before_a_long_quiet_time_is_served_and_not_called_an_overload() {
    // 20,000 at once take the drive some three minutes of the ten that the trace lasts.
    let mut lines = reads(20_000, 0, None);
    lines.extend((1..=600).map(|s| format!("{},R,{},4096,0,\n", s * 1_000 * MS, s * 4096)));
    let study = studied(&lines, |_| {});
    assert!(study.baseline().result.outstanding_mean > 64.0);
    assert!(study.baseline().result.utilisation < 0.9);
    for finding in &study.findings {
        assert!(!finding.headline.starts_with("This drive cannot serve"), "{finding:?}");
    }
}

#[test]
fn a_short_burst_is_no_mistaken_unit() {
    for lines in [reads(1, 0, None), reads(99, 100, None), reads(2_000, 0, None)] {
        let study = studied(&lines, |_| {});
        for finding in &study.findings {
            assert!(!finding.headline.contains("unit of its times"), "{finding:?}");
        }
    }
}

#[test]
fn responses_of_43_seconds_are_those_of_a_queue() {
    let headline = first(&reads(700, 100 * MS, Some(43_000 * MS)));
    let begins = "The trace records responses of up to 43.0 s";
    assert!(headline.starts_with(begins), "{headline}");
    // As the traces that ship: some tens of milliseconds.
    assert!(!first(&reads(700, 100 * MS, Some(43 * MS))).starts_with("The trace records"));
}

#[test]
fn a_request_of_931_gib_is_doubted() {
    let mut lines = sound();
    lines.push(format!("{},R,0,1000000000000,0,\n", 70_000 * MS));
    let study = studied(&lines, |options| options.drive = "exos-x24-24tb".into());
    let says = |finding: &freewheel_study::Finding| {
        finding.headline.starts_with("The largest request asks for 931")
    };
    assert!(study.findings.iter().any(says), "{:#?}", study.findings);
}

#[test]
fn requests_of_parts_of_blocks_are_said_to_be_widened() {
    let mut lines = sound();
    lines[3] = format!("{},R,1000,512,0,\n", 300 * MS);
    lines[4] = format!("{},W,4096,700,0,\n", 400 * MS);
    let study = studied(&lines, |_| {});
    assert_eq!(study.trace.info.widened, 2);
    assert_eq!(
        study.findings[0].headline,
        "0.3 % of the requests ask for parts of blocks, widened to whole ones of 512 B."
    );
    assert!(study.findings[0].detail.starts_with("That is 2 of 700."));
    // A share too small to be told is a count.
    let mut lines = reads(3_000, 100 * MS, None);
    lines[3] = format!("{},R,1000,512,0,\n", 300 * MS);
    assert_eq!(
        first(&lines),
        "1 request asks for parts of blocks, widened to whole ones of 512 B."
    );
    lines[4] = format!("{},W,4096,700,0,\n", 400 * MS);
    assert_eq!(
        first(&lines),
        "2 requests ask for parts of blocks, widened to whole ones of 512 B."
    );
}

#[test]
fn what_is_widened_is_counted_over_the_device_that_is_studied() {
    // ASU, LBA, size, opcode, seconds: device 1 is asked for parts of blocks.
    let line = |n: u64| {
        format!("{},{},{},r,{}.0\n", n % 2, n * 8, if n.is_multiple_of(2) { 4096 } else { 100 }, n)
    };
    let mut file = tempfile::Builder::new().suffix(".spc").tempfile().unwrap();
    file.write_all((0..400).map(line).collect::<String>().as_bytes()).unwrap();
    let widened = |device| {
        let trace = TraceWorkload {
            file: file.path().into(),
            device: Some(device),
            ..TraceWorkload::default()
        };
        let mut options = StudyOptions::new(trace, "atlas10k");
        (options.policies, options.scrub) = (vec![PolicySpec::Fcfs], false);
        study(&options, &|_| {}).unwrap().trace.info.widened
    };
    assert_eq!((widened(0), widened(1)), (0, 200));
}

#[test]
fn times_in_a_mistaken_unit_are_doubted_both_ways() {
    let long = first(&reads(200, 695 * DAY / 199, None));
    assert_eq!(
        long,
        "The trace's 200 requests span 695.0 days: is the unit of its times mistaken?"
    );
    // Microseconds read as nanoseconds: 200 requests, of which the drive can serve some two.
    let fast = first(&reads(200, 100, None));
    assert!(fast.starts_with("This drive cannot serve this load: on average"), "{fast}");
    let study = studied(&reads(200, 100, None), |_| {});
    let says = |finding: &freewheel_study::Finding| {
        finding.headline.starts_with("The trace has 200 requests in 0.02 ms")
    };
    assert!(study.findings.iter().any(says), "{:#?}", study.findings);
}

#[test]
fn a_scrub_of_many_years_is_no_estimate() {
    // A gap of 3 ms every 50 minutes.
    let study = studied(&reads(200, 3_000_000 * MS, None), |options| options.scrub = true);
    let estimate = study.scrub.as_ref().unwrap();
    assert!(estimate.seconds().unwrap() > 5.0 * 366.0 * 86_400.0);
    let says = |finding: &freewheel_study::Finding| {
        finding.headline.contains("takes longer than 5 years: too long to estimate")
    };
    assert!(study.findings.iter().any(says), "{:#?}", study.findings);
    // No number of days beyond that anywhere.
    let page = study.html();
    let days = page.match_indices(" days").map(|(end, _)| {
        let begin = page[..end].rfind([' ', '>']).map_or(0, |at| at + 1);
        page[begin..end].parse::<f64>().unwrap_or(0.0)
    });
    assert!(days.fold(0.0, f64::max) <= 1826.25);
}
