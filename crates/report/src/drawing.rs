//! Numbers in drawings: coordinates, lengths and opacities, and those along axes.

/// A coordinate with one digit after the point.
pub(crate) fn at(coordinate: f64) -> String {
    format!("{coordinate:.1}")
}

/// A point of a line.
pub(crate) fn point(x: f64, y: f64) -> String {
    format!("{},{}", at(x), at(y))
}

/// A part of one: a place in a picture that is stretched, or an opacity.
pub(crate) fn hundredths(share: f64) -> String {
    format!("{share:.2}")
}

/// A share of the width or height that there is.
pub(crate) fn length(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}

/// A share of a column, whose axis has the unit.
pub(crate) fn whole_percent(share: f64) -> String {
    format!("{:.0}", share * 100.0)
}

/// A whole number along an axis.
pub(crate) fn whole(value: f64) -> String {
    format!("{value:.0}")
}

/// A number on an axis: four digits, but for zeros at the end.
pub(crate) fn short(value: f64) -> String {
    if value.abs() >= 10_000.0 {
        let text = format!("{value:.3e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{power}", trimmed(digits));
    }
    // Four digits that say something.
    let decimals = (3 - libm::log10(value.abs().max(0.1)).floor() as i32) as usize;
    trimmed(&format!("{value:.decimals$}"))
}

fn trimmed(digits: &str) -> String {
    match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_neighbouring_labels_differ() {
        for step in [0.005, 0.05, 0.25, 0.5, 2.0, 5000.0, 40_000.0] {
            let labels: Vec<String> = (0..100).map(|at| short(f64::from(at) * step)).collect();
            assert!(labels.windows(2).all(|pair| pair[0] != pair[1]), "{labels:?}");
        }
        assert_eq!([0.1 + 0.2, 1.0 - 1e-9, 15_000.0].map(short), ["0.3", "1", "1.5e4"]);
    }
}
