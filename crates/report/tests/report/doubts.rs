//! Doubtful traces are named at the top of the findings.

use std::io::Write;

use freewheel_model::sched::PolicySpec;
use freewheel_report::{Finding, StudyReport, Topic};
use freewheel_sim::config::TraceWorkload;
use freewheel_sim::source::{Fit, ReplayMode};
use freewheel_study::{StudyOptions, fit_drive, study};
use freewheel_trace::Layer;
use freewheel_units::{Prng, SimDuration};

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

/// A trace without doubts: 70 s.
fn sound() -> Vec<String> {
    reads(700, 100 * MS, None)
}

fn studied(lines: &[String], change: impl FnOnce(&mut StudyOptions)) -> StudyReport {
    studied_text(&(HEADER.to_owned() + &lines.concat()), change)
}

fn studied_text(text: &str, change: impl FnOnce(&mut StudyOptions)) -> StudyReport {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let trace = TraceWorkload { file: file.path().into(), ..TraceWorkload::default() };
    let mut options = StudyOptions { changes: false, ..StudyOptions::new(trace, "atlas10k") };
    (options.policies, options.scrub) = (vec![PolicySpec::Fcfs], false);
    // No test here judges how good an estimate is.
    options.scrub_effort = SimDuration::from_ms(1_000);
    change(&mut options);
    StudyReport::new(study(&options, &|_| {}).unwrap())
}

/// The finding about a topic.
fn about(study: &StudyReport, topic: Topic) -> Option<&Finding> {
    study.findings.iter().find(|finding| finding.topic == topic)
}

/// The first finding of a study of these lines.
fn first(lines: &[String]) -> String {
    studied(lines, |_| {}).findings[0].headline.clone()
}

/// Topics of findings about a doubtful trace.
const DOUBTS: [Topic; 9] = [
    Topic::Overload,
    Topic::MissingCompletions,
    Topic::LongTrace,
    Topic::FastTrace,
    Topic::ShortTrace,
    Topic::LargeRequests,
    Topic::SlowResponses,
    Topic::FastResponses,
    Topic::PartialBlocks,
];

#[test]
fn sound_trace_is_not_doubted() {
    // It records no completions, so how to replay it is for its user to say.
    let asked = studied(&sound(), |options| options.trace.replay = ReplayMode::Arrivals);
    for finding in &asked.findings {
        assert!(!DOUBTS.contains(&finding.topic), "{finding:?}");
    }
    let unasked = studied(&sound(), |_| {});
    assert_eq!(unasked.findings[0].topic, Topic::MissingCompletions);
}

#[test]
fn recorded_responses_shown_for_other_drive() {
    let after = |response| studied(&reads(700, 100 * MS, Some(response)), |_| {});
    let slow = after(40 * MS);
    let said = about(&slow, Topic::RecordedResponses).unwrap();
    assert!(said.headline.starts_with("The recorded system answered in 40.0 ms on average, "));
    assert!(slow.html().contains("; recorded mean 40.0 ms"));
    let mean_ns = slow.study.baseline().result.response.mean_ns as u64;
    assert_eq!(about(&after(mean_ns), Topic::RecordedResponses), None);
}

/// A study of reads that were answered after `response_ns`, on a drive that was fitted to them.
fn fitted(response_ns: u64) -> StudyReport {
    studied(&reads(700, 100 * MS, Some(response_ns)), |options| {
        options.fitted = Some(fit_drive(options, &|_| {}).unwrap());
    })
}

#[test]
fn fit_states_distance_from_recorded_drive() {
    let far = fitted(90 * MS);
    let said = about(&far, Topic::RecordedResponses).unwrap();
    assert!(said.headline.starts_with("The recorded system answered in 90.0 ms on average, this"));
    assert!(said.details[0].contains("drives that were tried is atlas10k with seek times x"));
    assert!(said.details[0].ends_with("It lies at a limit of the search."), "{:?}", said.details);
    assert!(said.details[1].contains("350 requests, in ms: recorded mean 90.0, median 90.0"));
    assert_eq!(about(&far, Topic::FittedDrive), None);
    assert!(far.text().contains("! The recorded system answered in 90.0"), "{}", far.text());
    // 12 ms for each, which the drive takes on average where it turns slower.
    let near = fitted(12 * MS);
    let said = about(&near, Topic::FittedDrive).unwrap();
    let words = "Fitted to half of the requests, the drive has response times distributed like the";
    assert!(said.headline.starts_with(words), "{}", said.headline);
    assert!(!near.text().contains("! Fitted"));
}

/// Reads as blkparse prints them, each in `parts` pieces that were merged.
fn blkparse(count: u64, parts: u64) -> String {
    let event = |i: u64, us: u64, what: &str, first: u64, blocks: u64| {
        let (s, ns) = (i / 10, i % 10 * 100 * MS + us * 1000);
        format!("  8,16   1 {i} {s}.{ns:09} 77  {what}   R {first} + {blocks} [dd]\n")
    };
    let of = |i: u64| {
        let first = i * 7919 % 30_000 * 512;
        let part = |n: u64| {
            let merged = if n > 0 { event(i, n, "M", first + 8 * n, 8) } else { String::new() };
            event(i, n, "Q", first + 8 * n, 8) + &merged
        };
        let queued: String = (0..parts).map(part).collect();
        queued + &event(i, 50, "D", first, 8 * parts) + &event(i, 9000, "C", first, 8 * parts)
    };
    (0..count).map(of).collect()
}

#[test]
fn merged_requests_are_said_first() {
    let said = |parts, layer| {
        let study = studied_text(&blkparse(700, parts), |options| options.trace.layer = layer);
        let headline = study.findings[0].headline.clone();
        (about(&study, Topic::Merged).map(|_| headline), study.study.trace.info.requests)
    };
    let (issued, requests) = said(2, Layer::Auto);
    let issued = issued.unwrap();
    assert!(
        issued.starts_with("The recorded system merged 700 of 1,400 requests before the drive.")
    );
    assert!(issued.contains("find little left to merge") && requests == 700, "{issued}");
    let (queued, requests) = said(2, Layer::Queued);
    let queued = queued.unwrap();
    assert!(queued.contains("today's system merges none of them"), "{queued}");
    assert_eq!(requests, 1400);
    assert_eq!(said(1, Layer::Auto), (None, 700));
}

#[test]
fn burst_making_mean_is_said() {
    let with = |burst: usize| {
        let mut lines = reads(2000, 100 * MS, None);
        // Requests that come together with the 1,500th one.
        for (at, line) in lines.iter_mut().enumerate().skip(1500).take(burst) {
            *line = format!("{},R,{},4096,0,\n", 1500 * 100 * MS, at * 7919 % 2_000_000 * 4096);
        }
        studied(&lines, |options| options.changes = true)
    };
    let said = with(200);
    let burst = about(&said, Topic::Burst).unwrap();
    assert!(burst.headline.contains("the mean is that of a burst"), "{}", burst.headline);
    assert_eq!(about(&with(0), Topic::Burst), None);
}

#[test]
fn idle_drive_needs_nothing() {
    let changes = |gap_ns| {
        let study = studied(&reads(300, gap_ns, None), |options| options.changes = true);
        (about(&study, Topic::Changes).unwrap().headline.clone(), study.text(), study.html())
    };
    let (headline, text, page) = changes(5_000 * MS);
    assert!(headline.starts_with("Nothing is needed: requests are outstanding in at most"));
    assert!(
        text.contains(&headline) && !text.contains("What would help (") && page.contains(&headline)
    );
    let (headline, text, _) = changes(20 * MS);
    assert!(!headline.starts_with("Nothing is needed"), "{headline}");
    assert!(text.contains("What would help ("));
}

#[test]
fn trace_of_one_second_is_moment() {
    let headline = first(&reads(101, 10 * MS, None));
    assert_eq!(headline, "The trace lasts 1.0 s: it shows a moment, not a load.");
}

#[test]
fn overload_named_under_either_replay() {
    // 400 a second for 65 s, of which the drive serves about 120.
    let lines = |response| reads(26_000, 2_500_000, response);
    let study = studied(&lines(None), |_| {});
    let mean = study.study.baseline().result.outstanding_mean;
    assert!(mean > 4_000.0, "{mean}");
    let headline = &study.findings[0].headline;
    assert!(headline.starts_with("This drive cannot serve this load: on average"), "{headline}");
    let waits = studied(&lines(Some(2 * MS)), |_| {});
    assert!(waits.study.dependent_replay);
    assert!(waits.study.baseline().result.outstanding_mean < 2.0);
    let headline = &waits.findings[0].headline;
    let begins = "This drive cannot serve this load at its recorded pace: it works for ";
    assert!(headline.starts_with(begins), "{headline}");
}

#[test]
fn slower_drive_with_idle_not_overloaded() {
    // A request 60 ms after the one before had been answered in 40 ms: the drive takes some 8 ms.
    let sound = studied(&reads(700, 100 * MS, Some(40 * MS)), |_| {});
    assert!(sound.study.dependent_replay);
    // One of 5 ms after a second of quiet: the run lasts longer, and the drive is idle most of the time.
    let slower = studied(&reads(100, 20 * MS, Some(MS / 10)), |_| {});
    assert!(
        slower.study.baseline().result.elapsed_ns as f64
            > 1.05 * slower.study.trace.info.span_ns as f64
    );
    for study in [sound, slower] {
        assert_eq!(about(&study, Topic::Overload), None);
    }
}

/// Words about a load that the drive serves.
fn contradictions(study: &StudyReport) -> Vec<&str> {
    let words = [
        "would cut the mean",
        "would make the mean",
        "No policy outside the drive",
        "lowers the mean response time",
        "your load",
        "Response {",
        "with the bursts",
        "on average here",
        "wait for the media: they take",
    ];
    let text = format!("{:?}", study.findings);
    words.into_iter().filter(|words| text.contains(words)).collect()
}

#[test]
fn overload_findings_claim_no_served_load() {
    let mut lines = reads(26_000, 2_500_000, None);
    // Writes with FUA, and flushes.
    for at in (0..26_000).step_by(10) {
        let arrival = at as u64 * 2_500_000;
        lines[at] = format!("{arrival},W,{},4096,1,\n{},F,0,0,0,\n", at * 4096, arrival + 1);
    }
    let policies = vec![PolicySpec::Fcfs, PolicySpec::Sptf];
    let study = studied(&lines, |options| {
        (options.policies, options.scrub) = (policies.clone(), true);
        (options.drive, options.trace.fit) = ("exos-x24-24tb".into(), Fit::Scale);
    });
    let first = &study.findings[0];
    assert!(first.headline.starts_with("This drive cannot serve"), "{first:?}");
    assert_eq!(contradictions(&study), Vec::<&str>::new(), "{:#?}", study.findings);
    let says = |words: &str| study.findings.iter().any(|f| f.headline.contains(words));
    assert!(says("In this overload the rotational gaps"), "{:#?}", study.findings);
    assert!(says("cannot keep up with the load"), "{:#?}", study.findings);
}

#[test]
fn overload_tells_policies_by_requests_served() {
    let policies = vec![PolicySpec::Fcfs, PolicySpec::Sptf];
    let with = |gap_ns| {
        studied(&reads(70_000_000_000 / gap_ns, gap_ns, None), |options| {
            options.policies.clone_from(&policies);
        })
    };
    let says = |study: &StudyReport, words: &str| {
        study.findings.iter().any(|f| f.headline.contains(words))
    };
    // 170 a second: more than FCFS serves, and less than SPTF.
    let served = with(6 * MS);
    assert!(served.findings[0].headline.starts_with("This drive cannot serve"));
    assert!(says(&served, "Under SPTF this drive can serve this load"), "{:#?}", served.findings);
    // 310 a second: SPTF is done soon after the trace, with a queue that was long all the time.
    let nearly = with(3_200_000);
    let sptf = nearly.study.runs.iter().find(|run| run.policy == PolicySpec::Sptf).unwrap();
    let outlasts = sptf.result.elapsed_ns as f64 / nearly.study.trace.info.span_ns as f64;
    let mean = sptf.result.outstanding_mean;
    assert!(outlasts < 1.05 && mean > 64.0, "{outlasts} {mean}");
    assert!(!says(&nearly, "can serve this load"), "{:#?}", nearly.findings);
    // 1,000 a second are too many for both.
    let unserved = with(MS);
    let words = "No policy that was compared lets this drive serve this load: of 1,000 reads";
    assert!(says(&unserved, words), "{:#?}", unserved.findings);
}

#[test]
fn missing_completions_may_end_dependent_replay() {
    let with_missing = |missing: usize| {
        let mut lines = reads(700, 100 * MS, Some(8 * MS));
        for line in &mut lines[1..=missing] {
            let keep = line.rfind(',').unwrap() + 1;
            line.truncate(keep);
            line.push('\n');
        }
        studied(&lines, |_| {})
    };
    for (missing, is_dependent) in [(1, true), (6, true), (7, false), (699, false)] {
        let study = with_missing(missing);
        assert_eq!(study.study.dependent_replay, is_dependent, "{missing}");
        let headline = &study.findings[0].headline;
        let have = if missing == 1 { "has" } else { "have" };
        let begins = format!("{missing} of the trace's 700 requests {have} no completion time");
        assert!(headline.starts_with(&begins), "{headline}");
        assert_eq!(headline.contains("at their traced times"), !is_dependent, "{headline}");
    }
    // None recorded at all is no surprise, nor what is asked for.
    assert!(!first(&reads(700, 100 * MS, None)).contains("completion time"));
}

#[test]
fn minute_ending_early_is_no_moment() {
    // 60 s, the last request at 59.9 s; and 58 s.
    assert!(!first(&reads(600, 100 * MS, None)).starts_with("The trace lasts"));
    let short = first(&reads(580, 100 * MS, None));
    assert_eq!(short, "The trace lasts 57.9 s: it shows a moment, not a load.");
}

#[test]
fn microseconds_as_nanoseconds_are_recognised() {
    // 10 a second for 70 s, answered in 8 ms, all a thousand times too fast.
    let answered = first(&reads(700, MS / 10, Some(8_000)));
    let study = studied(&reads(700, MS / 10, Some(8_000)), |_| {});
    let says = |study: &StudyReport, words: &str| {
        study.findings.iter().any(|f| (f.headline.clone() + &f.details.concat()).contains(words))
    };
    assert!(says(&study, "responses of 8.0 us on average: is the unit"), "{:#?}", study.findings);
    let hint =
        "If its times are microseconds that were read as nanoseconds, the trace takes 69.9 s";
    assert!(answered.starts_with("This drive cannot serve"), "{answered}");
    assert!(says(&study, hint), "{:#?}", study.findings);
    let unanswered = studied(&reads(700, MS / 10, None), |_| {});
    assert!(says(&unanswered, hint), "{:#?}", unanswered.findings);
    // What no unit explains: 65 s of 400 a second, and answers of 100 us.
    assert!(!says(&studied(&reads(26_000, 2_500_000, None), |_| {}), "microseconds"));
    assert!(!says(&studied(&reads(700, 100 * MS, Some(100_000)), |_| {}), "unit of its times"));
}

#[test]
fn potential_without_estimate_names_gap_condition() {
    for scrub in [true, false] {
        let study = studied(&sound(), |options| {
            options.drive = "exos-x24-24tb".into();
            options.scrub = scrub;
        });
        let headline = &about(&study, Topic::Potential).unwrap().headline;
        assert!(headline.ends_with(", once the drive gives them away."), "{scrub}: {headline}");
    }
}

#[test]
fn burst_before_quiet_is_no_overload() {
    // 20,000 at once take the drive some three minutes of the ten that the trace lasts.
    let mut lines = reads(20_000, 0, None);
    lines.extend((1..=600).map(|s| format!("{},R,{},4096,0,\n", s * 1_000 * MS, s * 4096)));
    let study = studied(&lines, |_| {});
    assert!(study.study.baseline().result.outstanding_mean > 64.0);
    assert!(study.study.baseline().result.utilisation < 0.9);
    assert_eq!(about(&study, Topic::Overload), None);
}

#[test]
fn short_burst_is_no_mistaken_unit() {
    for lines in [reads(1, 0, None), reads(99, 100, None), reads(2_000, 0, None)] {
        let study = studied(&lines, |_| {});
        for topic in [Topic::FastTrace, Topic::LongTrace, Topic::FastResponses] {
            assert_eq!(about(&study, topic), None);
        }
    }
}

#[test]
fn responses_of_43_s_are_queueing() {
    let headline = first(&reads(700, 100 * MS, Some(43_000 * MS)));
    let begins = "The trace records responses of up to 43.0 s";
    assert!(headline.starts_with(begins), "{headline}");
    // As the traces that ship: some tens of milliseconds.
    assert!(!first(&reads(700, 100 * MS, Some(43 * MS))).starts_with("The trace records"));
}

#[test]
fn request_of_4_gib_is_doubted() {
    let mut lines = sound();
    lines.push(format!("{},R,0,4294967296,0,\n", 70_000 * MS));
    let study = studied(&lines, |options| options.drive = "exos-x24-24tb".into());
    let largest = about(&study, Topic::LargeRequests).unwrap().number.as_ref().unwrap().value;
    assert_eq!(largest / f64::from(1 << 30), 4.0);
}

#[test]
fn requests_of_partial_blocks_are_widened() {
    let mut lines = sound();
    lines[3] = format!("{},R,1000,512,0,\n", 300 * MS);
    lines[4] = format!("{},W,4096,700,0,\n", 400 * MS);
    let study = studied(&lines, |_| {});
    assert_eq!(study.study.trace.info.widened, 2);
    assert_eq!(
        study.findings[0].headline,
        "0.3 % of the requests ask for parts of blocks, widened to whole ones of 512 B."
    );
    assert!(study.findings[0].number.as_ref().unwrap().value == 2.0);
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
fn widened_requests_counted_per_studied_device() {
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
        let mut options = StudyOptions { changes: false, ..StudyOptions::new(trace, "atlas10k") };
        (options.policies, options.scrub) = (vec![PolicySpec::Fcfs], false);
        study(&options, &|_| {}).unwrap().trace.info.widened
    };
    assert_eq!((widened(0), widened(1)), (0, 200));
}

#[test]
fn mistaken_time_unit_doubted_both_ways() {
    let long = first(&reads(200, 695 * DAY / 199, None));
    assert_eq!(
        long,
        "The trace's 200 requests span 695.0 days: is the unit of its times mistaken?"
    );
    // Microseconds read as nanoseconds: 200 requests, of which the drive can serve some two.
    let fast = first(&reads(200, 100, None));
    assert!(fast.starts_with("This drive cannot serve this load: on average"), "{fast}");
    let study = studied(&reads(200, 100, None), |_| {});
    let fast = about(&study, Topic::FastTrace).unwrap();
    assert!(fast.headline.starts_with("The trace has 200 requests in 0.02 ms"), "{fast:?}");
}

#[test]
fn scrub_of_many_years_is_no_estimate() {
    // A gap of 3 ms every 50 minutes.
    let study = studied(&reads(200, 3_000_000 * MS, None), |options| options.scrub = true);
    let estimate = study.study.scrub.as_ref().unwrap();
    assert!(estimate.seconds().unwrap() > 5.0 * 366.0 * 86_400.0);
    let scrub = about(&study, Topic::Scrub).unwrap();
    assert!(scrub.headline.contains("longer than 5 years: too long to estimate"), "{scrub:?}");
    // No number of days beyond that anywhere.
    let page = study.html();
    let days = page.match_indices(" days").map(|(end, _)| {
        let begin = page[..end].rfind([' ', '>']).map_or(0, |at| at + 1);
        page[begin..end].parse::<f64>().unwrap_or(0.0)
    });
    assert!(days.fold(0.0, f64::max) <= 1826.25);
}
