//! `freewheel reproduce --real-time`: a drive in a process, a scheduler and clients, by the clock.

use super::run::run;

#[test]
fn real_time_scan_beside_virtual_with_lateness() {
    let ran = run(&["reproduce", "fast02.scan", "--real-time", "2s", "--json"]);
    // On a machine with other things to do it may be outside its bands.
    assert!([0, 1].contains(&ran.code), "{}", ran.stderr);
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap();
    let inside = rows.iter().all(|row| row["inside"] == true);
    assert_eq!(ran.code, i32::from(!inside), "{}", ran.stderr);
    let row = |quantity: &str| {
        let row = rows.iter().find(|row| row["quantity"] == quantity).unwrap();
        ["real", "simulated"].map(|key| row[key].as_f64().unwrap())
    };
    for quantity in ["requests", "mean response", "requests, with the scan", "scan"] {
        assert!(row(quantity).iter().all(|&number| number > 0.0), "{quantity}: {document}");
    }
    // Every request is one command, and the scan's commands come in addition.
    for (late, rate) in [(0, "requests"), (1, "requests, with the scan")] {
        let replies = &document["replies"][late];
        let count = replies["lateness"]["count"].as_f64().unwrap();
        assert!(count >= row(rate)[0], "more than a second's: {document}");
        assert!(replies["lateness"]["max_ns"].as_u64().unwrap() > 0, "{document}");
        assert!(replies["handing"]["min_ns"].as_u64().unwrap() > 0, "{document}");
        for times in ["lateness", "handing"] {
            let buckets = replies[times]["histogram"].as_array().unwrap();
            let sum: u64 = buckets.iter().map(|bucket| bucket["count"].as_u64().unwrap()).sum();
            assert_eq!(Some(sum), replies[times]["count"].as_u64(), "{document}");
        }
        let median = ["replies late by, median", "replies late by, median, with the scan"][late];
        let ns = replies["lateness"]["p50_ns"].as_f64().unwrap();
        assert_eq!(row(median), [ns / 1e3, 0.0], "{document}");
    }
}

#[test]
fn real_time_refuses_unfit_with_alternatives() {
    for (args, texts) in [
        (&["osdi00.fig5", "--real-time", "2s"][..], ["fast02.scan alone", "--real-time"]),
        (&["--real-time", "1ms"], ["--real-time 1ms", "1s to"]),
        (&["--real-time", "2s", "--quick"], ["--real-time", "--quick"]),
    ] {
        let ran = run(&[&["reproduce"], args].concat());
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        for text in texts {
            assert!(ran.stderr.contains(text), "{text}: {}", ran.stderr);
        }
    }
}
