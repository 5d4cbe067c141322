//! The words about a run's caches, against the sums of the run itself.

use freewheel_report::{SimReport, cache_rows};
use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;

fn experiment(cache: &str) -> Experiment {
    let text = format!(
        "drive = \"atlas10k\"\n{cache}\n[workload]\nkind = \"closed\"\noutstanding = 2\nrequests = 3000\npattern = {{ \
         local_share = 0.9, local_sd = \"64KiB\" }}\n"
    );
    Experiment::new(SimConfig::parse(&text, "test", &[]).unwrap()).unwrap()
}

#[test]
fn cache_work_absent_without_caches() {
    let experiment = experiment("");
    let result = experiment.run().unwrap();
    let report = SimReport::new(&experiment, &result);
    assert!(cache_rows(&result).is_empty() && !report.html().contains("What the caches did"));
}

#[test]
fn cache_work_has_row_per_used_part() {
    let experiment = experiment(
        "cache = { size = \"1MiB\", prefetch = { kind = \"read-ahead\", amount = \"16KiB\" }, write_buffer = { size = \"1MiB\" } }",
    );
    let result = experiment.run().unwrap();
    let report = SimReport::new(&experiment, &result);
    let (work, rows) = (result.cache.as_ref().unwrap(), cache_rows(&result));
    let parts: Vec<&str> = rows.iter().map(|(part, _)| *part).collect();
    assert_eq!(parts, ["cache: reads", "cache: writes", "prefetched with reads", "at risk"]);
    assert!(work.read_misses > 0 && work.reads > work.read_misses && work.destages > 0);
    let hits = freewheel_units::grouped(work.reads - work.read_misses);
    assert!(rows[0].1.starts_with(&format!("{hits} of ")), "{}", rows[0].1);
    assert!(rows[1].1.contains(&format!("{} destages", work.destages)), "{}", rows[1].1);
    assert!(report.html().contains("What the caches did") && report.html().contains(&rows[3].1));
}
