//! Numbers for people, each with its unit. Programs read `--json`.

use std::time::Duration;

use freewheel::measures::{Distribution, grouped};
use indicatif::HumanDuration;

/// Milliseconds without their unit, for columns whose heading has it.
pub fn bare_ms(ns: f64) -> String {
    format!("{:.3}", ns / 1e6)
}

/// Milliseconds.
pub fn ms(ns: f64) -> String {
    format!("{} ms", bare_ms(ns))
}

/// Microseconds.
pub fn us(ns: f64) -> String {
    format!("{:.1} us", ns / 1e3)
}

/// Short times: that of the middle, what hardly any exceeds, and the longest.
pub fn spread(p50_ns: u64, p99_ns: u64, max_ns: u64) -> String {
    let [p50, p99, max] = [p50_ns, p99_ns, max_ns].map(short_time);
    format!("p50 {p50}, p99 {p99}, max {max}")
}

/// Time of decisions on this machine, if any were made; `of` names their subject.
pub fn decisions(of: &str, times: &Distribution) -> Option<String> {
    let spread = || spread(times.quantile_ns(0.5), times.quantile_ns(0.99), times.max_ns());
    (times.count() > 0).then(|| {
        format!(
            "a decision{of} took here: {}; upkeep of the index and other work of the machine are in it, \
             making it anew, and weighing tasks, is not\n",
            spread()
        )
    })
}

/// A short time in the unit that leaves it few digits.
fn short_time(ns: u64) -> String {
    match ns {
        0..1_000_000 => us(ns as f64),
        1_000_000..10_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => seconds(ns),
    }
}

/// A time that is not known closely: "3 days".
pub fn about(ns: u64) -> String {
    HumanDuration(Duration::from_nanos(ns)).to_string()
}

/// Seconds.
pub fn seconds(ns: u64) -> String {
    format!("{:.1} s", ns as f64 / 1e9)
}

/// A rate in decimal megabytes, as makers of drives count.
pub fn rate(bytes_per_second: f64) -> String {
    format!("{:.2} MB/s", bytes_per_second / 1e6)
}

/// A number of things: "1 block", "2 blocks".
pub fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// A share as a percentage.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A capacity in decimal units, as makers of drives count.
pub fn capacity(bytes: u64) -> String {
    let (unit, name) = if bytes >= 1_000_000_000_000 { (1e12, "TB") } else { (1e9, "GB") };
    format!("{:.3} {name}", bytes as f64 / unit)
}

#[cfg(test)]
mod tests {
    use freewheel::measures::SimDuration;

    use super::*;

    #[test]
    fn every_number_has_its_unit() {
        assert_eq!(ms(1_234_567.0), "1.235 ms");
        assert_eq!(
            (counted(1, "block"), counted(12_345, "range")),
            ("1 block".into(), "12,345 ranges".into())
        );
        assert_eq!(us(12_345.0), "12.3 us");
        assert_eq!(spread(800, 54_100_000, 25_100_000_000), "p50 0.8 us, p99 54.1 ms, max 25.1 s");
        assert_eq!(decisions("", &Distribution::default()), None);
        let mut times = Distribution::default();
        times.record(SimDuration::from_us(3));
        let said = decisions(" about a gap", &times).unwrap();
        assert!(
            said.starts_with("a decision about a gap took here: p50 3.0 us, p99 3.0 us"),
            "{said}"
        );
        assert_eq!(about(253_649_900_000_000), "3 days");
        assert_eq!(rate(8_350_000.0), "8.35 MB/s");
        assert_eq!(percent(0.3333), "33.3 %");
        assert_eq!(capacity(9_100_000_000), "9.100 GB");
        assert_eq!(capacity(24_000_000_000_000), "24.000 TB");
    }
}
