//! Counts for people.

/// The digits in groups of three: "11,943,210".
pub fn grouped(count: impl Into<u64>) -> String {
    let digits = count.into().to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grouped_digits_in_threes_from_right() {
        let texts = [0u64, 999, 1_000, 54_321, 11_943_210].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "54,321", "11,943,210"]);
    }
}
