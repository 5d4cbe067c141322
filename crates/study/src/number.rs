//! Numbers of any unit, for people.

/// Four significant digits, without zeros at the end, for quantities of any unit.
pub fn four_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let digits_before = libm::log10(value.abs()).floor() as i32 + 1;
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
}
