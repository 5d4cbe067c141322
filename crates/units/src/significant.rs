//! Numbers of any unit in significant digits.

/// Four significant digits, without zeros at the end.
pub fn four_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let digits_before = decimal_exponent(value) + 1;
    let decimals = (4 - digits_before).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    if decimals == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

/// The power of ten of the first digit. From the text of the number, which is the same on every machine,
/// unlike the platform's logarithm.
fn decimal_exponent(value: f64) -> i32 {
    let text = format!("{value:e}");
    let (_, exponent) = text.split_once('e').expect("scientific notation has an exponent");
    exponent.parse().expect("an exponent is an integer")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn significant_digits_count_from_first_nonzero() {
        let texts = [0.012_345, 1.0, 33.333_3, 1234.56, 98_760.4].map(four_digits);
        assert_eq!(texts, ["0.01235", "1", "33.33", "1235", "98760"]);
        assert_eq!([-0.5, 999.999_96, 0.0].map(four_digits), ["-0.5", "1000", "0"]);
    }
}
