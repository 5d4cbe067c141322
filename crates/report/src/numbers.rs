//! Numbers with their units as text: one rounding for terminals and pages, and one function a quantity.
//!
//! Results are rounded to two or three digits. Values of a file or of a fit keep the digits that tell them
//! apart: [`fine_ms`], [`fine_ratio`], [`deviation`], [`Bytes::capacity`]. Programs read JSON.
//!
//! No other file of this crate rounds numbers for people. `drawing` has those of pictures. Numbers beside those
//! of a paper keep four digits, by `four_digits`.

use freewheel_model::stats::Distribution;
use freewheel_units::{Bytes, grouped};

/// Three significant digits or more, at most two of them after the point.
fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        // Borders are those of the rounded number: 99.96 is 100 and not 100.0.
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// Two or three significant digits; all that are before the point.
fn two_digits(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 0.95 || size == 0.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// Milliseconds with three significant digits or more, without their unit.
pub(crate) fn ms(ns: f64) -> String {
    three_digits(ns / 1e6)
}

/// Milliseconds of a time that was set and has no part of one, with their unit.
pub(crate) fn whole_ms(ns: u64) -> String {
    format!("{:.0} ms", ns as f64 / 1e6)
}

/// Microseconds with their unit.
pub(crate) fn us(ns: f64) -> String {
    format!("{} us", two_digits(ns / 1e3))
}

/// Requests or other things a second.
pub(crate) fn per_second(count: f64) -> String {
    match count {
        0.0 => "0".into(),
        count if count >= 999.5 => grouped(count.round() as u64),
        count if count < 0.005 => "less than 0.01".into(),
        count => three_digits(count),
    }
}

/// A factor, or how many times as large one number is as another; of large ones three digits.
pub(crate) fn ratio(ratio: f64) -> String {
    if ratio >= 99.95 {
        let whole = ratio.round() as u64;
        let unit = 10_u64.pow((whole.ilog10() + 1).saturating_sub(3));
        grouped(whole.saturating_add(unit / 2) / unit * unit)
    } else {
        two_digits(ratio)
    }
}

/// A factor near one.
pub(crate) fn fine_ratio(ratio: f64) -> String {
    format!("{ratio:.2}")
}

/// A coefficient of variation: standard deviation over mean.
pub(crate) fn variation(coefficient: f64) -> String {
    three_digits(coefficient)
}

/// Turns a minute, without their unit.
pub(crate) fn rpm(turns_a_minute: f64) -> String {
    format!("{turns_a_minute:.0}")
}

/// A part of a turn in degrees, without their unit.
pub(crate) fn degrees(turns: f64) -> String {
    format!("{:.2}", turns * 360.0)
}

/// A part of a turn with its sign.
pub(crate) fn turns(turns: f64) -> String {
    format!("{turns:+.3}")
}

/// A mean resultant length of angles, from 0 to 1.
pub(crate) fn resultant_length(length: f64) -> String {
    format!("{length:.3}")
}

/// The chance to see as much by chance.
pub(crate) fn p_value(p: f64) -> String {
    if p < 1e-4 { "<0.0001".into() } else { format!("{p:.4}") }
}

/// The exponent of a power law.
pub(crate) fn exponent(exponent: f64) -> String {
    format!("{exponent:.3}")
}

/// Milliseconds to a thousandth, for values of a drive file and of a fit; without their unit.
pub(crate) fn fine_ms(ns: f64) -> String {
    format!("{:.3}", ns / 1e6)
}

/// Milliseconds of a turn, the most closely measured time of a drive; without their unit.
pub(crate) fn turn_ms(ns: f64) -> String {
    format!("{:.4}", ns / 1e6)
}

/// A short time in the unit that leaves it few digits.
pub(crate) fn short_time(ns: u64) -> String {
    match ns {
        0..999_500 => us(ns as f64),
        999_500..10_000_000_000 => format!("{} ms", ms(ns as f64)),
        _ => span(ns as f64 / 1e9),
    }
}

/// Short times: the median, one that hardly any exceeds, and the longest.
pub(crate) fn spread(p50_ns: u64, p99_ns: u64, max_ns: u64) -> String {
    let [p50, p99, max] = [p50_ns, p99_ns, max_ns].map(short_time);
    format!("p50 {p50}, p99 {p99}, max {max}")
}

/// Time of decisions on this machine, if any were made; `of` names their subject.
pub(crate) fn decisions(of: &str, times: &Distribution) -> Option<String> {
    (times.count() > 0).then(|| {
        format!(
            "a decision{of} took here: {}; with small changes of the index and other work of the machine, without \
             the time to rebuild the index and to weigh tasks\n",
            spread(times.quantile_ns(0.5), times.quantile_ns(0.99), times.max_ns())
        )
    })
}

/// Seconds, for columns whose heading has the unit.
pub(crate) fn seconds(ns: f64) -> String {
    format!("{:.1}", ns / 1e9)
}

/// Whole seconds of work, without their unit.
pub(crate) fn whole_seconds(seconds: f64) -> String {
    format!("{seconds:.0}")
}

/// A number of things: "1 block", "2 blocks".
pub fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// A response with its unit: milliseconds, and from a minute on what people would say.
pub(crate) fn response(ns: f64) -> String {
    match ns >= 60e9 {
        true if ns < 120e9 => format!("{:.0} s", ns / 1e9),
        true => span(ns / 1e9),
        false => format!("{} ms", ms(ns)),
    }
}

/// Longer times are no statement about a drive: it is replaced before.
pub(crate) const TIME_MAX_S: f64 = freewheel_study::SCRUB_SECONDS_MAX;

/// Text for a longer time.
pub(crate) const TOO_LONG: &str = "longer than 5 years";

/// A length of time in the unit people would use.
pub(crate) fn span(seconds: f64) -> String {
    if seconds > TIME_MAX_S {
        return TOO_LONG.into();
    }
    let (unit_seconds, unit) = unit_of(seconds);
    format!("{:.1} {unit}", seconds / unit_seconds)
}

/// Duration that is not known closely, with two digits.
pub(crate) fn about(seconds: f64) -> String {
    if seconds > TIME_MAX_S {
        return TOO_LONG.into();
    }
    let (unit_seconds, unit) = unit_of(seconds);
    let text = format!("{:.1e}", seconds / unit_seconds);
    let value: f64 = text.parse().expect("a number that was just written");
    let decimals = if value < 10.0 { 1 } else { 0 };
    format!("about {value:.decimals$} {unit}")
}

fn unit_of(seconds: f64) -> (f64, &'static str) {
    match seconds {
        s if s >= 2.0 * 86_400.0 => (86_400.0, "days"),
        s if s >= 2.0 * 3_600.0 => (3_600.0, "hours"),
        s if s >= 120.0 => (60.0, "minutes"),
        _ => (1.0, "s"),
    }
}

/// Rounds a day, with two digits at least.
pub(crate) fn rounds(a_day: f64) -> String {
    let decimals = match a_day {
        r if r >= 1.0 => 1,
        r if r >= 0.1 => 2,
        r if r >= 0.01 => 3,
        _ => 4,
    };
    format!("{a_day:.decimals$}")
}

/// A mean number of things, with a digit that says something.
pub(crate) fn average(count: f64) -> String {
    match count {
        0.0 => "0".into(),
        count if count >= 999.5 => grouped(count.round() as u64),
        count if count >= 0.0095 => three_digits(count),
        count if count >= 0.00095 => format!("{count:.3}"),
        _ => "less than 0.001".into(),
    }
}

/// A share in per cent. One that is not all is not rounded up to all.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    if (99.5..100.0).contains(&value) {
        return format!("{:.2} %", (value * 100.0).floor() / 100.0);
    }
    if value > 0.0 && value < 0.001 {
        return "less than 0.001 %".into();
    }
    let decimals = if value.abs() >= 10.0 || value == 0.0 {
        0
    } else if value.abs() >= 0.1 {
        1
    } else {
        3
    };
    format!("{value:.decimals$} %")
}

/// A share of whole per cent, as limits are.
pub(crate) fn whole_percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A share in per cent that may be very small.
pub(crate) fn fine_percent(share: f64) -> String {
    // Five digits show nothing of a smaller one.
    if (5e-8..0.001).contains(&share) {
        format!("{:.5} %", share * 100.0)
    } else {
        // What is smaller still comes from rounding.
        percent(if share < 5e-8 { 0.0 } else { share })
    }
}

/// A relative difference in per cent with its sign.
pub(crate) fn signed_percent(share: f64) -> String {
    match share {
        // Smaller differences are rounding.
        share if share.abs() < 1e-5 => percent(0.0),
        share if share < 0.0 => format!("-{}", percent(-share)),
        share => format!("+{}", percent(share)),
    }
}

/// Chi-square of a comparison with chance.
pub(crate) fn chi_square(value: f64) -> String {
    format!("{value:.1}")
}

/// Misses of a cache in per cent, without the sign.
pub(crate) fn miss_percent(ratio: f64) -> String {
    let decimals = if ratio > 0.0 && ratio < 0.009_95 { 2 } else { 1 };
    format!("{:.decimals$}", ratio * 100.0)
}

/// A share by which a value is off, with its sign.
pub(crate) fn deviation(share: f64) -> String {
    format!("{:+.2} %", share * 100.0)
}

/// A size in binary units with three digits, without zeros at the end.
pub(crate) fn size(bytes: u64) -> String {
    let text = Bytes::new(bytes).human();
    let (number, unit) = text.split_once(' ').expect("a number and its unit");
    let trimmed = match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    };
    format!("{trimmed} {unit}")
}

/// A sentence's beginning; the text begins with an ASCII letter.
pub(crate) fn capital(text: &str) -> String {
    text[..1].to_uppercase() + &text[1..]
}

/// Bytes a second in decimal megabytes, as data sheets give them.
pub(crate) fn rate(bytes_per_second: f64) -> String {
    let value = bytes_per_second / 1e6;
    let decimals = if value >= 100.0 {
        0
    } else if value >= 1.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$} MB/s")
}

#[cfg(test)]
mod tests {
    use freewheel_units::SimDuration;

    use super::*;

    #[test]
    fn numbers_have_their_units() {
        assert_eq!([counted(1, "block"), counted(12_345, "range")], ["1 block", "12,345 ranges"]);
        assert_eq!(spread(800, 54_100_000, 25_100_000_000), "p50 0.80 us, p99 54.1 ms, max 25.1 s");
        assert_eq!([rate(8_350_000.0), percent(0.3333)], ["8.3 MB/s", "33 %"]);
        assert_eq!([fine_ms(1_234_567.0), ms(1_234_567.0)], ["1.235", "1.23"]);
        assert_eq!(deviation(-0.0123), "-1.23 %");
    }

    #[test]
    fn numbers_of_any_size_have_two_or_three_digits() {
        let rates = [0.5, 9.996, 12.34, 99.99, 240.4, 12_345.6].map(per_second);
        assert_eq!(rates, ["0.50", "10.0", "12.3", "100", "240", "12,346"]);
        assert_eq!([0.0, 0.003].map(per_second), ["0", "less than 0.01"]);
        assert_eq!([999_400, 999_960].map(short_time), ["999 us", "1.00 ms"]);
        assert_eq!([0.0, 0.0004, 0.05, 1.0].map(miss_percent), ["0.0", "0.04", "5.0", "100.0"]);
        let ratios = [0.4, 1.0, 4.14, 99.96, 338.784, 10_216.83].map(ratio);
        assert_eq!(ratios, ["0.40", "1.0", "4.1", "100", "339", "10,200"]);
        assert_eq!([700.0, 3_000.0, -543_210.0].map(us), ["0.70 us", "3.0 us", "-543 us"]);
        assert_eq!([p_value(0.012_34), p_value(0.0)], ["0.0123", "<0.0001"]);
    }

    #[test]
    fn small_shares_keep_digits() {
        let shown = [0.0, 1e-18, 0.000_012_3, 0.25].map(fine_percent);
        assert_eq!(shown, ["0 %", "0 %", "0.00123 %", "25 %"]);
        let signed = [-0.1, 0.005, 0.0, -1e-6].map(signed_percent);
        assert_eq!(signed, ["-10 %", "+0.5 %", "0 %", "0 %"]);
    }

    #[test]
    fn decisions_are_timed_if_any_made() {
        assert_eq!(decisions("", &Distribution::default()), None);
        let mut times = Distribution::default();
        times.record(SimDuration::from_us(3));
        let said = decisions(" about a gap", &times).expect("one was made");
        assert!(
            said.starts_with("a decision about a gap took here: p50 3.0 us, p99 3.0 us"),
            "{said}"
        );
    }

    #[test]
    fn approximate_times_have_two_digits() {
        let days = [989.1, 9.96, 15.7, 2.34].map(|days| about(days * 86_400.0));
        assert_eq!(days, ["about 990 days", "about 10 days", "about 16 days", "about 2.3 days"]);
        assert_eq!([about(7_500.0), about(0.0)], ["about 2.1 hours", "about 0.0 s"]);
    }

    #[test]
    fn response_of_minutes_not_in_milliseconds() {
        let texts = [4.61e6, 217_693e6, 61e9, 59.9e9].map(response);
        assert_eq!(texts, ["4.61 ms", "3.6 minutes", "61 s", "59900 ms"]);
    }

    #[test]
    fn small_mean_is_not_zero() {
        let texts = [12.34, 1.02, 0.04, 0.0042, 0.0002, 0.0].map(average);
        assert_eq!(texts, ["12.3", "1.02", "0.04", "0.004", "less than 0.001", "0"]);
    }

    #[test]
    fn share_below_all_not_rounded_up() {
        let shares = [1.0, 0.9999, 0.999_999, 0.994].map(percent);
        assert_eq!(shares, ["100 %", "99.99 %", "99.99 %", "99 %"]);
    }

    #[test]
    fn time_beyond_five_years_not_numbered() {
        let days = |days: f64| days * 86_400.0;
        assert_eq!(span(days(1826.0)), "1826.0 days");
        assert_eq!([span(days(46_855.0)), about(days(1827.0))], [TOO_LONG, TOO_LONG]);
    }
}
