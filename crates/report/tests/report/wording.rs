//! The wording of findings, as snapshots. `INSTA_UPDATE=always cargo test -p freewheel-report --test
//! wording` writes them anew; read the difference before committing it.

use std::io::Write;

use freewheel_model::sched::PolicySpec;
use freewheel_report::{Finding, StudyReport};
use freewheel_sim::config::TraceWorkload;
use freewheel_sim::source::Fit;
use freewheel_study::changes::NOTICEABLE;
use freewheel_study::{StudyOptions, study};
use freewheel_units::{Prng, SimDuration};

/// Every finding as a terminal shows it, with the details that a page folds away.
fn words(report: &StudyReport) -> String {
    let paragraph = |text: &String| format!("    - {text}\n");
    let finding = |finding: &Finding| {
        let details: String = finding.details.iter().map(paragraph).collect();
        format!("{}{details}", finding.text())
    };
    report.findings.iter().map(finding).collect::<Vec<_>>().join("\n")
}

/// A study of lines without completion times, under two policies.
fn of_lines(lines: impl Iterator<Item = String>, scrub: bool) -> StudyReport {
    let header = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n";
    let mut file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    file.write_all((header.to_owned() + &lines.collect::<String>()).as_bytes()).unwrap();
    let trace = TraceWorkload { file: file.path().into(), ..TraceWorkload::default() };
    let mut options = StudyOptions { changes: false, ..StudyOptions::new(trace, "atlas10k") };
    options.policies = vec![PolicySpec::Fcfs, PolicySpec::Sptf];
    (options.scrub, options.scrub_effort) = (scrub, SimDuration::from_ms(2_000));
    StudyReport::new(study(&options, &|_| {}).unwrap())
}

/// `count` random reads, this many nanoseconds apart.
fn reads(count: u64, gap_ns: u64) -> impl Iterator<Item = String> {
    let mut prng = Prng::new(1, "wording");
    (0..count).map(move |i| format!("{},R,{},4096,0,\n", i * gap_ns, prng.below(2_000_000) * 4096))
}

#[test]
fn wording_of_recorded_load_large_drive() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/recorded/pgbench-ext4.csv.zst");
    let trace = TraceWorkload { file: file.into(), fit: Fit::Scale, ..TraceWorkload::default() };
    let mut options = StudyOptions::new(trace, "exos-x24-24tb");
    options.scrub_effort = SimDuration::from_ms(2_000);
    let report = StudyReport::new(study(&options, &|_| {}).unwrap());
    insta::assert_snapshot!("recorded_load", words(&report));
    insta::assert_snapshot!("recorded_load_terminal", report.text());
    what_memory_buys_has_the_warnings_of_the_ranking(&report);
}

/// The best together makes the longest response longer; its system says so where its price stands, too.
fn what_memory_buys_has_the_warnings_of_the_ranking(report: &StudyReport) {
    let changes = report.study.changes.as_ref().unwrap();
    let together = changes.together.as_ref().unwrap();
    let titles: Vec<String> = together.steps.iter().map(|step| step.title.clone()).collect();
    assert!(together.effect.longest >= NOTICEABLE && titles.len() > 1);
    let page = report.html();
    let (_, bought) = page.split_once("What memory and drives buy").unwrap();
    let (_, row) = bought.split_once(&titles.join(" + ")).unwrap();
    let said = format!("longest response +{:.0} %", 100.0 * together.effect.longest);
    assert!(row.split("</td>").next().unwrap().contains(&said), "{said}");
}

#[test]
fn wording_of_load_drive_serves() {
    insta::assert_snapshot!("light_load", words(&of_lines(reads(4000, 20_000_000), true)));
}

#[test]
fn wording_of_load_drive_cannot_serve() {
    let report = of_lines(reads(13_000, 2_500_000), false);
    insta::assert_snapshot!("overload", words(&report));
    // Terminal, JSON and page render the same findings.
    let (text, page) = (report.text(), report.html());
    let json = serde_json::to_value(&report).unwrap();
    for (number, finding) in report.findings.iter().enumerate() {
        assert_eq!(json["findings"][number]["headline"], *finding.headline);
        let on_page = page.contains(&format!("<strong>{}</strong>", finding.headline));
        assert!(on_page && text.contains(&finding.headline), "{finding:?}");
        assert!(page.contains(&finding.facts()), "{finding:?}");
    }
}
