//! Words of a study, on small traces whose answer is known.

use std::io::Write;

use freewheel_model::sched::PolicySpec;
use freewheel_report::{Confidence, Cost, Finding, StudyReport, Topic, free_work_parts};
use freewheel_sim::background::GapShares;
use freewheel_sim::config::{SimConfig, TraceWorkload};
use freewheel_sim::experiment::Experiment;
use freewheel_sim::source::{Fit, ReplayMode};
use freewheel_study::changes::Goal;
use freewheel_study::{SCRUB_EFFORT, ScrubEnd, StudyError, StudyOptions, study};
use freewheel_units::{Prng, SimDuration};

const HEADER: &str = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n";

/// `count` reads of 4 KiB all over the Atlas 10K, `gap_ms` apart, without completions.
fn random_reads(count: u64, gap_ms: u64) -> String {
    let prng = &mut Prng::new(1, "study test");
    let line = |i: u64| {
        let offset = prng.below(2_000_000) * 4096;
        format!("{},R,{offset},4096,0,\n", i * gap_ms * 1_000_000)
    };
    HEADER.to_string() + &(0..count).map(line).collect::<String>()
}

fn options(text: &str) -> (tempfile::NamedTempFile, StudyOptions) {
    let mut file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let trace = TraceWorkload { file: file.path().into(), ..TraceWorkload::default() };
    let mut options = StudyOptions::new(trace, "atlas10k");
    // Few tests here judge how far an estimate comes.
    (options.changes, options.scrub_effort) = (false, SimDuration::from_ms(1_000));
    (file, options)
}

fn studied(text: &str, change: impl FnOnce(&mut StudyOptions)) -> StudyReport {
    let (_file, mut options) = options(text);
    change(&mut options);
    StudyReport::new(study(&options, &|_| {}).unwrap())
}

fn says(study: &StudyReport, words: &str) -> bool {
    study.findings.iter().any(|finding| finding.headline.contains(words))
}

/// The finding about a topic.
fn about(study: &StudyReport, topic: Topic) -> Option<&Finding> {
    study.findings.iter().find(|finding| finding.topic == topic)
}

fn number(study: &StudyReport, topic: Topic) -> f64 {
    about(study, topic).unwrap().number.as_ref().unwrap().value
}

fn details(finding: &Finding) -> String {
    finding.details.join("\n")
}

#[test]
fn potential_bandwidth_is_rotating_share_of_rate() {
    let study = studied(&random_reads(400, 20), |_| {});
    let run = study.study.baseline();
    let share = run.result.stages.rotate_ns as f64 / run.result.elapsed_ns as f64;
    // 334 to 229 sectors pass in a turn of 5.985 ms: 28.6 to 19.6 MB/s, outer zones larger.
    let media = study.study.drive.media_bytes_per_second;
    assert!((24.0e6..26.0e6).contains(&media), "{media}");
    assert_eq!(study.study.potential_bytes_per_second(run), share * media);
    // A half turn every 20 ms is 15 % of the time.
    assert!((0.13..0.17).contains(&share), "{share}");
}

#[test]
fn potential_excludes_write_back_latency() {
    let writes = random_reads(400, 20).replace(",R,", ",W,");
    let of = |text: &str| {
        studied(text, |o| {
            (o.policies, o.scrub) = (vec![PolicySpec::Fcfs], false);
        })
    };
    let study = of(&writes);
    let run = study.study.baseline();
    let back_ns = run.writing_back_rotate_ns();
    // All are taken by the buffer, so all of the waiting is for writing back.
    assert!(back_ns > 0 && back_ns == run.result.head_time.rotate_ns);
    assert_eq!(study.study.potential_bytes_per_second(run), 0.0);
    assert_eq!(number(&study, Topic::Potential), 0.0);
    let page = study.html();
    assert!(page.contains("latency while writing back"));
    let reads = of(&random_reads(400, 20));
    assert_eq!(reads.study.baseline().writing_back_rotate_ns(), 0);
    assert!(!reads.html().contains("latency while writing back"));
}

#[test]
fn best_policy_has_smallest_mean() {
    // Ten at a time every 100 ms: there is something to choose from.
    let text = random_reads(600, 0).lines().skip(1).enumerate().fold(
        HEADER.to_string(),
        |text, (i, line)| {
            let rest = line.split_once(',').unwrap().1;
            let arrival = i as u64 / 10 * 100_000_000 + i as u64 % 10;
            text + &format!("{arrival},{rest}{}\n", arrival + 60_000_000)
        },
    );
    let study = studied(&text, |_| {});
    let best = study.study.best_policy();
    assert!(
        study
            .study
            .runs
            .iter()
            .all(|run| { run.result.response.mean_ns >= best.result.response.mean_ns })
    );
    assert_ne!(best.title, "FCFS");
    // The one that is named helps under both replays.
    let surest = study.study.surest_policy();
    assert!(study.study.worse_mean_change(surest) < -0.02);
    let policy = about(&study, Topic::Policy).unwrap();
    assert!(policy.headline.starts_with(&surest.title) && policy.cost == Some(Cost::Setting));
    let [before, after] = [study.study.baseline(), surest].map(|run| run.result.response.mean_ns);
    assert_eq!(number(&study, Topic::Policy), 1.0 - after / before);
}

#[test]
fn policies_without_waiting_do_not_help() {
    let study = studied(&random_reads(200, 50), |_| {});
    let policy = about(&study, Topic::Policy).unwrap();
    assert!(policy.cost.is_none() && policy.headline.starts_with("No policy that was compared"));
}

fn recorded(name: &str, drive: &str) -> StudyReport {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/recorded");
    let file = format!("{folder}/{name}.csv.zst").into();
    let trace = TraceWorkload { file, fit: Fit::Scale, ..TraceWorkload::default() };
    let options = StudyOptions { scrub: false, changes: false, ..StudyOptions::new(trace, drive) };
    StudyReport::new(study(&options, &|_| {}).unwrap())
}

#[test]
fn policy_helping_reads_alone_is_named() {
    let mean = |run: &freewheel_study::PolicyRun| run.result.read_response.mean_ns;
    for (name, is_named) in [("pgbench-ext4", true), ("sqlite-ext4", false)] {
        let study = recorded(name, "exos-x24-24tb");
        let own = study.study.baseline();
        assert!(own.own_queue && says(&study, "No policy"));
        let policies = study.study.runs.iter().filter(|run| !run.own_queue);
        let best = policies.min_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap();
        assert_eq!(mean(best) < 0.98 * mean(own), is_named, "{name}");
        let words = format!(" Reads alone do better under {}: ", best.title);
        assert_eq!(says(&study, &words), is_named, "{name}");
    }
}

#[test]
fn policy_doing_harm_is_named() {
    let study = recorded("sqlite-ext4", "atlas10k");
    let mean = |run: &freewheel_study::PolicyRun| run.result.response.mean_ns;
    let worst = study.study.runs.iter().max_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap();
    let percent = 100.0 * (mean(worst) / mean(study.study.baseline()) - 1.0);
    assert!(percent > 50.0, "{percent}");
    let harm = format!(" {} would raise it by {percent:.0} %, to ", worst.title);
    let finding = about(&study, Topic::Policy).unwrap();
    assert!(finding.headline.contains(&harm), "{finding:?}");
    let all = details(finding);
    let told = |run: &freewheel_study::PolicyRun| all.contains(&run.title);
    assert!(study.study.runs.iter().all(told), "{finding:?}");
}

/// The Atlas 10K with a command queue.
fn drive_with_queue() -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    let queue = "\n[electronics.queue]\ndepth = 32\nscheduler = { policy = \"sptf\" }\n";
    let text = freewheel_sim::library::text("atlas10k").unwrap();
    file.write_all((text.into_owned() + queue).as_bytes()).unwrap();
    file
}

#[test]
fn baseline_is_own_queue_of_drive() {
    let drive = drive_with_queue();
    let drive = drive.path().to_str().unwrap();
    let text = random_reads(400, 4);
    let study = studied(&text, |o| {
        o.drive = drive.into();
        o.policies = vec![PolicySpec::Fcfs, PolicySpec::Sptf];
    });
    assert!(study.study.baseline().own_queue);
    let said: String = study.findings.iter().map(details).collect();
    assert!(said.contains("gaps in the drive's queue of 32, by a scheduler inside"), "{said}");
    assert!(said.contains("a request in the drive's queue of 32"), "{said}");
    // Told to give its gaps away, and else the same: its queue as well.
    let (file, _) = options(&text);
    let config = format!(
        "drive = \"{drive}\"\nkeep_free_blocks_before = false\n\
         [workload]\nkind = \"trace\"\nfile = \"{}\"\n",
        file.path().display()
    );
    let result = Experiment::new(SimConfig::parse(&config, "test", &[]).unwrap()).unwrap().run();
    let estimate = study.study.scrub.as_ref().unwrap();
    assert_eq!(estimate.response_ns_mean, result.unwrap().response.mean_ns);
    assert!(estimate.response_ns_mean < study.study.runs[0].result.response.mean_ns);
    let bare = studied(&text, |o| {
        (o.drive, o.electronics, o.scrub) = (drive.into(), false, false);
    });
    assert_eq!((bare.study.baseline().own_queue, &*bare.study.baseline().title), (false, "FCFS"));
}

#[test]
fn policies_not_tried_are_not_mentioned() {
    let study = studied(&random_reads(200, 50), |o| o.policies = vec![PolicySpec::Fcfs]);
    assert!(about(&study, Topic::Policy).is_none());
}

#[test]
fn burst_burying_drive_is_named() {
    // Half a second of 1,000 reads a second, and a minute later the next.
    let burst = random_reads(500, 1) + "60000000000,R,0,4096,0,\n";
    let study = studied(&burst, |_| {});
    assert!(says(&study, "it cannot keep up with the bursts"));
    let calm = studied(&random_reads(200, 50), |_| {});
    assert!(!says(&calm, "cannot keep up"));
}

#[test]
fn address_fit_is_said() {
    let text = random_reads(50, 50);
    assert!(says(&studied(&text, |o| o.trace.fit = Fit::Scale), "spread over the whole drive"));
    assert!(says(&studied(&text, |o| o.trace.fit = Fit::Wrap), "folded onto the drive"));
    let sliver = format!("{HEADER}0,R,0,4096,0,\n1000000,R,8192,4096,0,\n");
    assert!(says(&studied(&sliver, |_| {}), "covers less than 0.001 %"));
}

#[test]
fn few_requests_and_treatment_are_said() {
    let two = studied(&random_reads(2, 20), |o| o.trace.fit = Fit::Scale);
    let said: Vec<&str> = two.findings.iter().map(|finding| &*finding.headline).collect();
    let [few, scaled, assumed] = said[..] else { panic!("{said:?}") };
    assert!(few.ends_with(": 2 of its reads and writes were served."), "{few}");
    assert!(two.study.scrub.is_none() && !two.html().contains("A scrub in the gaps"));
    assert!(studied(&random_reads(99, 20), |_| {}).study.scrub.is_none());
    assert!(scaled.contains("spread over the whole drive") && assumed.contains("assumed"));
    let enough = studied(&random_reads(100, 20), |_| {});
    let confidence = |topic| about(&enough, topic).unwrap().confidence;
    assert_eq!(confidence(Topic::Workload), Confidence::Counted);
    let hint = about(&enough, Topic::FewRequests).is_some();
    for (topic, firm) in
        [(Topic::HeadTime, Confidence::Simulated), (Topic::Scrub, Confidence::Estimated)]
    {
        assert_eq!(confidence(topic), if hint { Confidence::Hint } else { firm });
    }
}

#[test]
fn load_at_drive_pace_is_said() {
    let dependent = (0..100u64).map(|i| {
        let at = i * 20_000_000;
        format!("{at},R,{},4096,0,{}\n", i * 7919 % 2_000_000 * 4096, at + 10_000_000)
    });
    let dependent = studied(&(HEADER.to_string() + &dependent.collect::<String>()), |_| {});
    let arrivals = studied(&random_reads(100, 20), |_| {});
    for (study, has_its_pace) in [(dependent, true), (arrivals, false)] {
        assert_eq!(study.study.dependent_replay, has_its_pace);
        assert_eq!(says(&study, "under your load at this drive's pace"), has_its_pace);
        assert!(says(&study, "under your load"));
        let told = |f: &freewheel_report::Finding| details(f).contains("`--replay arrivals`");
        assert_eq!(study.findings.iter().any(told), has_its_pace);
    }
}

#[test]
fn dependence_names_reference_drive() {
    let (_file, mut options) = options(&random_reads(200, 50));
    options.trace.replay = ReplayMode::Dependent;
    let report = StudyReport::new(study(&options, &|_| {}).unwrap());
    let inferred = &report.study.baseline().result.inferred_completions;
    assert!(report.study.dependent_replay && report.study.fidelity.is_none());
    let says =
        format!("The trace records no completions: those of {} stand in.", inferred[0].drive);
    assert!(report.html().contains(&says), "{says}");
}

#[test]
fn trace_without_reads_and_writes_refused() {
    let (_file, options) = options(&format!("{HEADER}0,F,0,0,0,5\n"));
    assert!(matches!(study(&options, &|_| {}), Err(StudyError::Empty { .. })));
}

/// A time as tiles have it.
fn time(ns: f64) -> String {
    let ms = ns / 1e6;
    match ms {
        _ if ms >= 100.0 => format!("{ms:.0} ms"),
        _ if ms >= 10.0 => format!("{ms:.1} ms"),
        _ => format!("{ms:.2} ms"),
    }
}

#[test]
fn tiles_match_today_in_changes() {
    // Bursts, and after the warm-up single requests: the whole has a longer mean.
    let text = random_reads(600, 0).lines().skip(1).enumerate().fold(
        HEADER.to_string(),
        |text, (i, line)| {
            let rest = line.split_once(',').unwrap().1;
            let at = if i < 250 { i as u64 / 50 * 4_000 } else { 20_000 + 60 * i as u64 };
            text + &format!("{},{rest}\n", at * 1_000_000)
        },
    );
    let of = |goal| {
        studied(&text, |o| {
            (o.policies, o.scrub, o.changes) = (vec![PolicySpec::Fcfs], false, true);
            o.goal = goal;
        })
    };
    let study = of(Goal::P99Reads);
    let changes = study.study.changes.as_ref().unwrap();
    let today = &changes.today;
    let p99 = today.response.p99_ns as f64;
    let reads = time(today.read_response.p99_ns as f64);
    let page = study.html();
    for said in [
        format!("Response</span><strong>{}</strong>", time(today.response.mean_ns)),
        format!("p99 {}, of reads {reads}, worst", time(p99)),
        format!("P99 of reads</span><strong>{reads}</strong>"),
        "over the last 57 % of the requests, 342 in".to_owned(),
    ] {
        assert!(page.contains(&said), "{said}");
    }
    let head = format!("mean response {}, p99 {}", time(today.response.mean_ns), time(p99));
    assert!(study.text().contains(&head), "{head}");
    let time_a_request =
        format!("Drive time a request</span><strong>{}", time(today.drive_time_ns));
    assert!(of(Goal::Throughput).html().contains(&time_a_request), "{time_a_request}");
    let whole = studied(&text, |o| (o.policies, o.scrub) = (vec![PolicySpec::Fcfs], false));
    assert!(whole.study.baseline().result.response.mean_ns > 2.0 * today.response.mean_ns);
    assert!(whole.html().contains("All requests count."));
}

#[test]
fn short_idle_trace_gets_no_hints() {
    // Every other read continues where the one before ended, and the drive's buffer has it.
    let prng = &mut Prng::new(1, "idle");
    let mut text = HEADER.to_string();
    for i in 0..200_u64 {
        let place = prng.below(2_000_000) * 4096;
        text += &format!("{},R,{place},4096,0,\n", i * 40_000_000_000);
        text += &format!("{},R,{},4096,0,\n", i * 40_000_000_000 + 20_000_000_000, place + 4096);
    }
    let short = studied(&text, |o| {
        (o.policies, o.scrub, o.changes) = (vec![PolicySpec::Fcfs], false, true);
    });
    assert!(says(&short, "Nothing is needed"));
    let few = about(&short, Topic::FewRequests).unwrap();
    assert!(few.headline.contains("That nothing is needed does not hang on them"), "{few:?}");
    assert!(!short.html().contains("hint at most"));
    assert_eq!(about(&short, Topic::Changes).unwrap().confidence, Confidence::Simulated);
    assert_eq!(about(&short, Topic::HeadTime).unwrap().confidence, Confidence::Hint);
}

#[test]
fn short_trace_has_no_changes() {
    let changes = |count| {
        studied(&random_reads(count, 20), |o| {
            (o.policies, o.scrub, o.changes) = (vec![PolicySpec::Fcfs], false, true);
        })
    };
    let (without, with) = (changes(175), changes(176));
    assert!(without.study.changes.is_none() && with.study.changes.is_some());
    let few = about(&without, Topic::FewRequests).unwrap();
    let said = few.headline.clone() + &details(few);
    assert!(
        said.contains("No change was tried: fewer than 100 reads and writes are left"),
        "{said}"
    );
    assert_eq!(without.study.baseline().result.response.count, 175);
}

#[test]
fn page_refers_to_nothing_on_network() {
    let page = studied(&random_reads(100, 50), |_| {}).html();
    let outside = ["src=", "@import", "url(", "<link", "<script"];
    assert!(outside.iter().all(|word| !page.contains(word)));
    let links = page.matches("http").count() - page.matches("http://www.w3.org/2000/svg").count();
    assert_eq!(links, 0);
}

fn scrub_of(study: &StudyReport) -> &freewheel_study::ArmScrub {
    study.study.scrub.as_ref().unwrap().slowest()
}

#[test]
fn scrub_time_leaves_load_unchanged() {
    let study = studied(&random_reads(4000, 20), |o| {
        o.trace.fit = Fit::Scale;
        o.policies = vec![PolicySpec::Fcfs];
    });
    let estimate = study.study.scrub.as_ref().unwrap();
    assert_eq!(Some(number(&study, Topic::Scrub)), estimate.seconds());
    let scrub = about(&study, Topic::Scrub).unwrap();
    assert!(scrub.confidence == Confidence::Estimated && scrub.figure.is_some());
    assert_eq!(estimate.foreground_delay_ns, 0);
    assert!(estimate.free_blocks_before_switched_off);
    // At most all that passes under the head in the rotational latency.
    let seconds = scrub_of(&study).seconds.unwrap();
    let share = scrub_of(&study).gap_share;
    let rate = study.study.drive.capacity_bytes as f64 / seconds;
    assert!(rate < share * study.study.drive.media_bytes_per_second, "{rate}");
    let page = study.html();
    assert!(page.contains("A scrub in the gaps"));
    assert!(scrub.details.len() > 1);
    // What is escaped on a page is not in these.
    let typed = page.replace("<code>", "`").replace("</code>", "`");
    let missing = scrub.details.iter().find(|line| !typed.contains(&format!("<p>{line}</p>")));
    assert_eq!(missing, None);
    let without = studied(&random_reads(400, 20), |o| o.scrub = false);
    assert!(without.study.scrub.is_none() && about(&without, Topic::Scrub).is_none());
}

/// A recorded load on a small drive, and the scrub of an experiment with the same.
#[test]
fn scrub_latency_matches_direct_run() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/recorded/pgbench-ext4.csv.zst");
    let trace = TraceWorkload { file: file.into(), fit: Fit::Scale, ..TraceWorkload::default() };
    let mut options = StudyOptions { changes: false, ..StudyOptions::new(trace, "atlas10k") };
    options.policies = vec![PolicySpec::Fcfs];
    let study = StudyReport::new(study(&options, &|_| {}).unwrap());
    let (estimate, arm) = (study.study.scrub.as_ref().unwrap(), scrub_of(&study));
    let text = format!(
        "drive = \"atlas10k\"\nqueue_depth = 1\nkeep_free_blocks_before = false\n\
         [workload]\nkind = \"trace\"\nfile = \"{file}\"\nfit = \"scale\"\n\
         [freeblock]\nrule = \"paths\"\n[[freeblock.tasks]]\nkind = \"scrub\"\nblock_size = \"{}B\"\n",
        estimate.block_bytes
    );
    let config = SimConfig::parse(&text, "test", &[]).unwrap();
    let result = Experiment::new(config).unwrap().run().unwrap();
    let free = result.free.unwrap();
    // All of the latency was counted without a scrub there, and with one here.
    let ratio = arm.potential_bytes_per_second / free.potential_bytes_per_second;
    assert!((ratio - 1.0).abs() < 1e-6, "{ratio}");
    let task = &result.background[0].tasks[0];
    assert!(task.rounds.is_empty());
    let progress = &task.unfinished.progress;
    let read_share = |blocks: u64| blocks as f64 / arm.blocks as f64;
    assert!((0.1..0.2).contains(&read_share(progress.last().unwrap().blocks)));
    // Where requests keep to parts of the drive an end expected that early is wrong, and the words say so.
    assert_eq!(arm.end, ScrubEnd::OutOfReach);
    assert!(task.expected_end_ns.is_some());
    let parts = free_work_parts(&result);
    let (_, end) = parts[0].rows.iter().find(|(what, _)| *what == "end").unwrap();
    assert!(end.contains("judging by the first") && end.contains("take longer"), "{end}");
    for pair in progress.windows(2) {
        let at = read_share(pair[1].blocks);
        let of = |shares: &GapShares| {
            [shares.transfer_share, shares.extra_seek_share, shares.unused_share]
        };
        let next = arm.course.iter().position(|point| point.read_share >= at).unwrap();
        let [before, after] = [&arm.course[next - 1], &arm.course[next]];
        let part = (at - before.read_share) / (after.read_share - before.read_share);
        let simulated = of(&pair[1].gaps.since(&pair[0].gaps).shares());
        let ends = of(&before.shares).into_iter().zip(of(&after.shares));
        // Bursts follow on each other at first; the first leap reads a tenth of the drive.
        let within = if at < 0.04 { 0.04 } else { 0.15 };
        for ((before, after), simulated) in ends.zip(simulated) {
            let estimated = (1.0 - part) * before + part * after;
            assert!((estimated - simulated).abs() < within, "{estimated} {simulated} at {at}");
        }
    }
}

#[test]
fn scrub_needing_gaps_is_not_free() {
    // Every other read is of what passes before the read before it.
    let line = |i: u64| {
        let offset = 4096 * (i / 2 * 7919 % 2_000_000 + 4 - i % 2 * 4);
        format!("{},R,{offset},4096,0,\n", i * 20_000_000)
    };
    let study = studied(&(HEADER.to_string() + &(0..400).map(line).collect::<String>()), |o| {
        o.policies = vec![PolicySpec::Fcfs];
    });
    let estimate = study.study.scrub.as_ref().unwrap();
    assert!(estimate.response_ns_mean > study.study.baseline().result.response.mean_ns);
    let added_ns = estimate.response_ns_mean - study.study.baseline().result.response.mean_ns;
    assert_eq!(about(&study, Topic::Scrub).unwrap().cost, Some(Cost::Response { added_ns }));
}

#[test]
fn scrub_out_of_reach_is_said() {
    // Two places close together.
    let line = |i: u64| format!("{},R,{},4096,0,\n", i * 20_000_000, i % 2 * (8 << 20));
    let study = studied(&(HEADER.to_string() + &(0..400).map(line).collect::<String>()), |o| {
        (o.electronics, o.scrub_effort) = (false, SCRUB_EFFORT);
    });
    let arm = scrub_of(&study);
    let faded = arm.faded.unwrap();
    assert_eq!((arm.end, number(&study, Topic::Scrub)), (ScrubEnd::OutOfReach, faded.seconds));
    assert!(says(&study, "then less than a tenth as fast") && arm.read_share < 0.5);
}

#[test]
fn odd_loads_and_drives_are_answered() {
    // At one instant.
    let line = "0,R,0,4096,0,\n";
    let one = studied(&format!("{HEADER}{line}"), |_| {});
    assert!(says(&one, "too short to judge by"));
    assert!(studied(&(HEADER.to_string() + &line.repeat(100)), |_| {}).study.scrub.is_some());
    let writes: String = (0..300u64)
        .map(|i| format!("{},W,{},4096,0,\n", i * 20_000_000, i * 7919 % 1000 * 4096))
        .collect();
    for drive in ["cheetah9lp", "atlas10k", "exos-2x18-18tb", "ultrastar-hc620-14tb"] {
        let study = studied(&format!("{HEADER}{writes}"), |o| {
            o.drive = drive.into();
            o.policies = vec![PolicySpec::Fcfs];
        });
        let estimate = study.study.scrub.as_ref().unwrap();
        let shares: Vec<f64> = estimate.arms.iter().map(|arm| arm.read_share).collect();
        assert_eq!(shares.len(), if drive.contains("2x18") { 2 } else { 1 });
        let share = estimate.read_share();
        // Arms are of one size.
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        assert!((share - mean).abs() < 1e-9, "{drive}: {share} of {shares:?}");
        let (words, fits) = match estimate.end() {
            ScrubEnd::Complete => ("finishes in about", share == 1.0),
            ScrubEnd::OutOfReach => ("hardly any gap reaches the rest", share < 1.0),
            ScrubEnd::Unfinished => ("the estimate ends there", share < 1.0),
            ScrubEnd::EffortSpent => ("the estimate ends there", (0.0..1.0).contains(&share)),
            ScrubEnd::NoGaps => ("no rotational gap", share == 0.0),
        };
        assert!(fits && says(&study, words), "{drive}: {share}, {:?}", study.findings);
    }
}

#[test]
fn fua_writes_counted_with_wait() {
    let writes = random_reads(400, 40).replace(",R,", ",W,");
    let alternate = |text: &str| {
        let line = |(i, line): (usize, &str)| match i % 4 {
            1 => line.replace(",4096,0,", ",4096,1,") + "\n",
            _ => line.to_owned() + "\n",
        };
        text.lines().enumerate().map(line).collect::<String>()
    };
    let of = |text: &str, electronics: bool| {
        studied(text, |o| {
            (o.policies, o.scrub) = (vec![PolicySpec::Fcfs], false);
            o.electronics = electronics;
        })
    };
    let study = of(&alternate(&writes), true);
    assert_eq!((study.study.trace.info.fua_writes, study.study.trace.info.fua_reads), (100, 0));
    let forced = study.study.baseline().result.fua_write_response.as_ref().unwrap();
    assert_eq!(forced.count, 100);
    let headline = format!(
        "FUA makes 25 % of the writes wait for the media: they take {:.2} ms on average, other writes ",
        forced.mean_ns / 1e6
    );
    assert!(says(&study, &headline), "{headline}: {:?}", study.findings);
    let json = serde_json::to_value(&study).unwrap();
    assert_eq!(json["runs"][0]["result"]["fua_write_response"]["count"], 100);
    assert!(study.html().contains("with FUA"));
    // All writes have it.
    let all = of(&writes.replace(",4096,0,", ",4096,1,"), true);
    assert!(says(&all, "FUA makes 100 % of the writes wait for the media"), "{:?}", all.findings);
    // Every write waits for the media anyway; and none has it.
    assert!(!says(&of(&alternate(&writes), false), "FUA"));
    let plain = of(&writes, true);
    assert!(!says(&plain, "FUA") && plain.study.baseline().result.fua_write_response.is_none());
}

#[test]
fn effort_out_of_range_is_refused() {
    for (ms, is_taken) in [(0, false), (999, false), (1000, true), (86_400_001, false)] {
        let (_file, mut options) = options(&random_reads(100, 20));
        (options.policies, options.scrub_effort) =
            (vec![PolicySpec::Fcfs], SimDuration::from_ms(ms));
        match study(&options, &|_| {}) {
            Ok(_) => assert!(is_taken, "{ms}"),
            Err(error) => {
                assert!(!is_taken, "{error}");
                assert!(error.to_string().contains("1s to 1d are allowed"), "{error}");
            }
        }
        // Without an estimate the effort does not matter.
        options.scrub = false;
        assert!(study(&options, &|_| {}).is_ok());
    }
}

#[test]
fn page_shows_no_backticks() {
    let text = random_reads(200, 50);
    let study = studied(&text, |o| o.drive = "exos-x24-24tb".into());
    assert!(study.findings.iter().any(|finding| details(finding).contains('`')));
    let page = study.html();
    assert!(page.contains("<code>keep_free_blocks_before</code>"));
    let (spec, drive) = freewheel_sim::library::drive("exos-x24-24tb").unwrap();
    for page in [page, freewheel_report::DriveSheet::new(&spec, &drive).html()] {
        let at = page.find('`');
        let around = at.map(|at| &page[at.saturating_sub(80)..(at + 80).min(page.len())]);
        assert_eq!(around, None);
    }
}

#[test]
fn sheet_gives_seek_time_one_distance() {
    let (spec, drive) = freewheel_sim::library::drive("atlas10k").unwrap();
    let sheet = freewheel_report::DriveSheet::new(&spec, &drive);
    let reason = sheet.miss_words().into_iter().find(|(name, _)| *name == "mean seek, read");
    let reason = reason.unwrap().1;
    // Those that the words name, as the table has them.
    let named = [
        (1, "1.2 ms for 1 cylinder"),
        (10_021, "10.8 ms for 10,021"),
        (10_041, "11.2 ms for all 10,041"),
    ];
    for (distance, words) in named {
        let seek = sheet.seeks.iter().find(|seek| seek.distance_cylinders == distance).unwrap();
        assert!(words.starts_with(&format!("{:.1} ms", seek.read_ns as f64 / 1e6)), "{seek:?}");
        assert!(reason.contains(words), "{reason}");
    }
    assert!(sheet.seek_table_words().unwrap().contains("ends at 10,021 cylinders"));
    // A curve of a formula has no end.
    let (spec, drive) = freewheel_sim::library::drive("exos-x24-24tb").unwrap();
    assert_eq!(freewheel_report::DriveSheet::new(&spec, &drive).seek_table_cylinders_max, None);
}
