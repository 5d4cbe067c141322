//! A planner inside the drive with the limits of a scheduler outside (fast02 figure 10).

use freewheel_sim::RunResult;
use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;

fn run(keys: &str) -> RunResult {
    let text = format!(
        "drive = \"atlas10k\"\nelectronics = false\nscheduler = {{ policy = \"fcfs\" }}\n\
         freeblock = {{ rule = \"greedy\"{keys} }}\n[workload]\nkind = \"closed\"\nrequests = 3000\n\
         outstanding = 4\npattern = {{ size = \"8KiB\" }}\n"
    );
    Experiment::new(SimConfig::parse(&text, "test", &[]).unwrap()).unwrap().run().unwrap()
}

fn free_bytes(result: &RunResult) -> f64 {
    result.free.unwrap().bytes_per_second
}

#[test]
fn track_limit_reduces_reads_not_requests() {
    let all = run("");
    let merge = run(", same_track = \"merge\"");
    let never = run(", same_track = \"never\"");
    let read = [&never, &merge, &all].map(free_bytes);
    assert!(read[0] < read[1] && read[1] < read[2], "{read:?}");
    assert_eq!(run(", same_track = \"distinct\"").result_hash, all.result_hash);
    for limited in [&merge, &never] {
        assert!(limited.result_hash != all.result_hash);
        assert_eq!(limited.requests_hash, all.requests_hash);
    }
}

#[test]
fn margin_costs_bandwidth_not_requests() {
    let none = run("");
    let margins =
        ["0.1ms", "0.3ms", "0.8ms"].map(|margin| run(&format!(", conservatism = \"{margin}\"")));
    let mut before = free_bytes(&none);
    for result in &margins {
        assert!(free_bytes(result) < before, "{} after {before}", free_bytes(result));
        assert_eq!(result.requests_hash, none.requests_hash);
        before = free_bytes(result);
    }
}

#[test]
fn inside_limits_refused_for_outside_scheduler() {
    for keys in ["conservatism = \"0.3ms\"", "same_track = \"merge\""] {
        let text = format!(
            "drive = \"atlas10k\"\nhost = {{}}\nfreeblock = {{ {keys} }}\n[workload]\nkind = \"closed\"\n"
        );
        let error = SimConfig::parse(&text, "test", &[]).and_then(Experiment::new).unwrap_err();
        assert!(error.to_string().contains("`scheduler.same_track`"), "{error}");
    }
    let text = "drive = \"atlas10k\"\nfreeblock = { conservatism = \"101ms\" }\n[workload]\nkind = \"closed\"\n";
    let error = SimConfig::parse(text, "test", &[]).and_then(Experiment::new).unwrap_err();
    assert!(error.to_string().contains("at most 100ms are allowed"), "{error}");
}
