//! The words about a run's free work, against the sums of the run itself.

use freewheel_report::{free_work_parts, sim_html, stage_table};
use freewheel_sim::RunResult;
use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;
use freewheel_study::FreeWork;

fn experiment(freeblock: &str) -> Experiment {
    experiment_of(3000, freeblock)
}

fn experiment_of(requests: u64, freeblock: &str) -> Experiment {
    built(requests, false, freeblock)
}

fn built(requests: u64, electronics: bool, freeblock: &str) -> Experiment {
    let text = format!(
        "drive = \"atlas10k\"\nelectronics = {electronics}\n{freeblock}\n[workload]\nkind = \"closed\"\noutstanding = 2\nthink_time = \
         \"50ms\"\nrequests = {requests}\npattern = {{ size = \"8KiB\" }}\n"
    );
    Experiment::new(SimConfig::parse(&text, "test", &[]).unwrap()).unwrap()
}

/// A sample of a hundredth of the drive.
const SAMPLE: &str = "[[freeblock.tasks]]\nsample_share = 0.01\nrounds = 2";

fn titles(result: &RunResult) -> Vec<String> {
    free_work_parts(result).iter().map(|part| part.title.clone()).collect()
}

fn is(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-9
}

#[test]
fn free_work_numbers_match_sums() {
    let result = experiment(SAMPLE).run().unwrap();
    let (work, free) = (FreeWork::new(&result).unwrap(), result.free.as_ref().unwrap());
    let (task, own) = (&work.tasks[0], &result.background[0].tasks[0]);
    assert_eq!((work.arms, work.tasks.len(), task.rounds), (1, 1, 2));
    assert!(is(task.rounds_a_day.unwrap(), own.rounds_a_day().unwrap()));
    assert_eq!(task.last_5_percent, own.time_share_of_last(0.05));
    assert_eq!(task.ended_ns, Some(own.rounds.iter().map(|round| round.elapsed_ns).sum()));
    let blocks: u64 = own.all_rounds().map(|round| round.deliveries.blocks()).sum();
    assert_eq!(task.delivered.total(), blocks);
    assert!(is(task.efficiency, work.efficiency));
    let seconds = result.elapsed_ns as f64 / 1e9;
    assert!(is(work.delivered_bytes_per_second * seconds, (blocks * 4096) as f64));
    let potential = free.potential_bytes_per_second * seconds;
    assert!(is(work.efficiency * potential, (blocks * 4096) as f64));
    let head = work.head_use;
    assert!(is(head.rotate_left() + head.free_transfer + head.extra_seek, head.rotate));
    assert!(is(head.rotate + head.seek + head.transfer, result.utilisation));
}

#[test]
fn free_work_omits_what_did_not_happen() {
    let none = experiment("").run().unwrap();
    assert!(FreeWork::new(&none).is_none() && titles(&none).is_empty());
    let gaps = experiment(SAMPLE).run().unwrap();
    assert_eq!(titles(&gaps), ["Background task: sample", "Rotational gaps", "Decisions"]);
    let all = experiment(&format!(
        "[freeblock]\nidle = {{ after = \"5ms\" }}\n{SAMPLE}\npromote_tail = {{ cost = 0.5 }}"
    ));
    let all = all.run().unwrap();
    assert!(titles(&all).contains(&"Idle time".to_owned()), "{:?}", titles(&all));
}

#[test]
fn free_work_separates_idle_and_promotion_cost() {
    let freeblock = "[freeblock]\nidle = { after = \"5ms\" }\n[[freeblock.tasks]]\nsample_share = 0.03\nrounds = 1\n\
                     promote_tail = { cost = 0.5 }";
    let result = experiment(freeblock).run().unwrap();
    let (work, idle) = (FreeWork::new(&result).unwrap(), result.idle.unwrap());
    let cost = work.idle_cost.unwrap();
    let requests = result.response.count as f64;
    assert!(is(cost.response_ns_added * requests, idle.delay_ns as f64 - idle.gain_ns as f64));
    assert!(is(cost.delay_ns_mean * idle.requests_delayed as f64, idle.delay_ns as f64));
    assert!(is(work.head_use.idle_work * result.arms_ns as f64, idle.head_ns as f64));
    let delivered = &work.tasks[0].delivered;
    assert!(delivered.in_idle > 0 && delivered.promoted > 0);
    let in_gaps = delivered.in_gaps + delivered.in_passing;
    let potential =
        result.free.unwrap().potential_bytes_per_second * result.elapsed_ns as f64 / 1e9;
    assert!(is(work.efficiency * potential, (in_gaps * 4096) as f64));
}

#[test]
fn free_work_page_has_stage_times() {
    let experiment = experiment(SAMPLE);
    let result = experiment.run().unwrap();
    let page = sim_html(&experiment, &result);
    let table = stage_table(&result);
    assert!(table.head.iter().all(|head| page.contains(&format!("<th>{head}</th>"))), "{page}");
    let names: Vec<&str> = table.rows.iter().map(|row| row.stage).collect();
    assert_eq!(names, ["queue", "overhead", "seek", "rotate", "transfer", "bus"]);
    for row in &table.rows {
        let cells = format!("<td>{}</td><td>{:.2}</td>", row.stage, row.ns_a_request / 1e6);
        assert!(page.contains(&cells) || row.ns_a_request > 10e6, "{cells}");
    }
    let shares: f64 = table.rows.iter().filter_map(|row| Some(row.shares.as_ref()?[0])).sum();
    assert!(is(shares, 1.0), "{shares}");
}

#[test]
fn free_work_page_has_available_charts() {
    let page = |freeblock: &str| {
        let experiment = experiment(freeblock);
        sim_html(&experiment, &experiment.run().unwrap())
    };
    let charts = |page: &str| {
        page.matches("class=\"chart\"").count() + page.matches("class=\"bars\"").count()
    };
    let (without, with) = (page(""), page(SAMPLE));
    // Head time and response times; with free work use of the head, what decisions look at, and four of
    // a scan's course.
    assert_eq!((charts(&without), charts(&with)), (2, 8));
    let title = |page: &str| {
        let (_, rest) = page.split_once("<h1>").unwrap();
        rest.split_once("</h1>").unwrap().0.to_owned()
    };
    let ran = "2 clients on Quantum Atlas 10K, 9 GB under FCFS";
    assert_eq!(title(&without), ran);
    assert_eq!(title(&with), format!("{ran}, free work: sample"));
    assert!(!without.contains("Free work") && with.contains("Where the latency went"));
    let idle = page(&format!("[freeblock]\nidle = {{ after = \"5ms\" }}\n{SAMPLE}"));
    assert_eq!(charts(&idle), 7);
    assert!(idle.contains("Idle time") && idle.contains("work in idle time"));
}

/// A sample with a deadline that it holds, a scrub with one that it cannot hold, and a scan.
const THREE: &str = "[[freeblock.tasks]]\nsample_share = 0.02\ndeadline = \"1h\"\n\
                     [[freeblock.tasks]]\nkind = \"scrub\"\nblock_size = \"64KiB\"\n\
                     deadline = \"100s\"\n[[freeblock.tasks]]\nname = \"mine\"\npriority = \"low\"";

#[test]
fn free_work_tells_every_task_alike() {
    let experiment = experiment(THREE);
    let result = experiment.run().unwrap();
    let work = FreeWork::new(&result).unwrap();
    let tasks: Vec<&str> = work.tasks.iter().map(|task| &task.name[..]).collect();
    assert_eq!(tasks, ["sample", "scrub", "mine"]);
    let sum: f64 = work.tasks.iter().map(|task| task.delivered_bytes_per_second).sum();
    assert!(is(sum, work.delivered_bytes_per_second));
    assert!(work.tasks.iter().all(|task| task.delivered.total() > 0));
    let parts = free_work_parts(&result);
    for name in tasks {
        let title = format!("Background task: {name}");
        let part = parts.iter().find(|part| part.title == title).unwrap();
        let rows: Vec<&str> = part.rows.iter().map(|(what, _)| *what).collect();
        assert!(["kind", "delivered", "end"].iter().all(|row| rows.contains(row)), "{rows:?}");
        assert_eq!(rows.contains(&"deadline"), name != "mine", "{rows:?}");
    }
    let [sample, scrub, _] = &work.tasks[..] else { panic!("three tasks") };
    let (held, missed) = (sample.deadline.unwrap(), scrub.deadline.unwrap());
    assert_eq!((held.held, held.missed), (sample.rounds, 0));
    assert_ne!(held.will_be_held, Some(false));
    assert_eq!((missed.held, missed.due_ns), (0, 100_000_000_000));
    assert_eq!(missed.will_be_held, Some(false), "100 s have gone");
    let said = words(&result);
    assert!(said.contains("samples: ") && said.contains("will be missed"), "{said}");
    let page = sim_html(&experiment, &result);
    for title in ["How the tasks go on", "How a sample goes on", "scan goes on: mine"] {
        assert!(page.contains(title), "{title}");
    }
}

#[test]
fn free_work_omits_course_seen_too_little() {
    let experiment = experiment_of(20, "[freeblock]");
    let page = sim_html(&experiment, &experiment.run().unwrap());
    assert!(page.contains("How a scan goes on") && page.contains("Too little has come"));
    assert!(!page.contains("Bandwidth around then"));
}

fn words(result: &RunResult) -> String {
    let parts = free_work_parts(result);
    parts
        .iter()
        .flat_map(|part| &part.rows)
        .map(|(what, value)| format!("{what}: {value}\n"))
        .collect()
}

#[test]
fn free_work_adaptive_timeout_judges_starts() {
    for (adapt, judged) in [("", false), (", adapt = {}", true)] {
        let idle = format!("[freeblock]\nidle = {{ after = \"5ms\"{adapt} }}\n{SAMPLE}");
        let result = experiment(&idle).run().unwrap();
        let cost = FreeWork::new(&result).unwrap().idle_cost.unwrap();
        assert_eq!(cost.wrong_starts.is_some(), judged);
        assert_eq!(words(&result).contains("found wrong"), judged, "{}", words(&result));
    }
}

#[test]
fn free_work_kept_gaps_name_remedy() {
    let run = |keep: &str| built(3000, true, &format!("{keep}\n[freeblock]")).run().unwrap();
    let said = words(&run(""));
    assert!(said.contains("gaps: none") && said.contains("`electronics = false`"), "{said}");
    assert!(!said.contains(":\n") && !said.contains(": \n"), "{said}");
    let (key, _) = said.split_once(" in the experiment gives").unwrap();
    let key = key.rsplit_once("; ").unwrap().1.trim_matches('`');
    let given = run(key).free.unwrap().time;
    assert!(given.gaps > 1000 && given.gaps_used * 2 > given.gaps, "{given:?}");
    assert_eq!(run("keep_free_blocks_before = true").result_hash, run("").result_hash);
}

#[test]
fn free_work_single_pass_is_named() {
    let freeblock = "[[freeblock.tasks]]\nkind = \"backup\"\nlength = \"32MiB\"\nblock_size = \"32KiB\"\n\
                     rounds = 1\npromote_tail = { cost = 0.5 }\n[[freeblock.tasks]]\nkind = \"write\"\nstart = \"4GiB\"\n\
                     length = \"1GiB\"";
    let experiment = experiment(freeblock);
    let result = experiment.run().unwrap();
    let work = FreeWork::new(&result).unwrap();
    let [backup, write] = &work.tasks[..] else { panic!("two tasks") };
    assert_eq!((backup.rounds, backup.delivered.total(), backup.expected_end_ns), (1, 1024, None));
    assert!(write.rounds == 0 && write.expected_end_ns > write.ended_ns);
    let settled = write.delivered.total() + write.delivered.superseded;
    assert!(is(write.unfinished * write.blocks as f64, settled as f64));
    let said = words(&result);
    for words in ["backup: 1 complete, in ", "copies: ", "end: it ended after", "superseded: "] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let page = sim_html(&experiment, &result);
    assert!(page.contains("The backup, ") && !page.contains("if a part of the blocks is enough"));
}

#[test]
fn free_work_unfinished_round_charts_elapsed_time() {
    for (freeblock, is_over) in [(SAMPLE, true), ("[freeblock]", false)] {
        let experiment = experiment(freeblock);
        let result = experiment.run().unwrap();
        let page = sim_html(&experiment, &result);
        assert_eq!(page.contains("time of the round so far, %"), !is_over, "{freeblock}");
        assert_eq!(page.contains("time of the round, %"), is_over, "{freeblock}");
        assert_eq!(page.contains(" under way, "), !is_over, "{freeblock}");
    }
}
