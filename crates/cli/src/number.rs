//! Numbers for people, each with its unit. Programs read `--json`.

/// Milliseconds without their unit, for columns whose heading has it.
pub fn bare_ms(ns: f64) -> String {
    format!("{:.3}", ns / 1e6)
}

/// Milliseconds.
pub fn ms(ns: f64) -> String {
    format!("{} ms", bare_ms(ns))
}

/// Seconds.
pub fn seconds(ns: u64) -> String {
    format!("{:.1} s", ns as f64 / 1e9)
}

/// A rate in decimal megabytes, as makers of drives count.
pub fn rate(bytes_per_second: f64) -> String {
    format!("{:.2} MB/s", bytes_per_second / 1e6)
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

/// Four significant digits, without zeros at the end, for quantities of any unit.
pub fn four_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let digits_before = value.abs().log10().floor() as i32 + 1;
    let decimals = (4 - digits_before).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    if decimals == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_count_from_the_first_that_is_not_zero() {
        let texts = [0.012_345, 1.0, 33.333_3, 1234.56, 98_760.4].map(four_digits);
        assert_eq!(texts, ["0.01235", "1", "33.33", "1235", "98760"]);
    }

    #[test]
    fn every_number_has_its_unit() {
        assert_eq!(ms(1_234_567.0), "1.235 ms");
        assert_eq!(rate(8_350_000.0), "8.35 MB/s");
        assert_eq!(percent(0.3333), "33.3 %");
        assert_eq!(capacity(9_100_000_000), "9.100 GB");
        assert_eq!(capacity(24_000_000_000_000), "24.000 TB");
    }
}
