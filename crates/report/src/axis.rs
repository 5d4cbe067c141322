//! Numbers along the axes of charts, on pages and in a terminal.

/// The next number of these digits and a power of ten that is not below `least`.
pub(crate) fn round_step(least: f64, digits: &[f64]) -> f64 {
    let power = 10f64.powi(libm::log10(least.max(f64::MIN_POSITIVE)).floor() as i32);
    let steps = digits.iter().map(|digit| digit * power);
    steps.into_iter().find(|&step| step >= least).unwrap_or(10.0 * power)
}

/// Digits of the steps along an axis that begins anywhere.
pub(crate) const STEPS: [f64; 5] = [1.0, 2.0, 2.5, 5.0, 10.0];

/// Multiples of a round step from `low` to `high`, at most `most` of them.
pub(crate) fn ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let least = (high - low) / (most.max(2) - 1) as f64;
    let step = round_step(least, &STEPS);
    // A multiple that rounding puts beside the end still belongs to the axis.
    let (first, last) = ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor());
    (0..=(last - first).max(0.0) as u32).map(|number| (first + f64::from(number)) * step).collect()
}

/// Places along an axis of powers of ten that have names: powers where they are several, else what lies
/// between them too, and on a short axis equal steps.
pub(crate) fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    const ENOUGH: usize = 4;
    let ways = [&[1.0][..], &[1.0, 2.0, 5.0], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]];
    let found = ways
        .into_iter()
        .map(|digits| -> Vec<f64> {
            let powers = libm::log10(low).floor() as i32..=libm::log10(high).ceil() as i32;
            let all =
                powers.flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)));
            all.filter(|tick| (low..=high).contains(tick)).collect()
        })
        .find(|ticks| ticks.len() >= ENOUGH);
    found.unwrap_or_else(|| {
        let power = 10f64.powi(libm::log10((high - low) / ENOUGH as f64).floor() as i32);
        let count = |step: f64| (high / step).floor() - (low / step).ceil() + 1.0;
        let steps = [5.0, 2.0, 1.0].map(|digit| digit * power);
        let step = steps.into_iter().find(|&step| count(step) >= ENOUGH as f64).unwrap_or(power);
        let first = (low / step).ceil();
        (0..count(step) as u32).map(|number| (first + f64::from(number)) * step).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing::short;

    #[test]
    fn axis_ticks_few_round_within() {
        for (low, high) in [(0.0, 0.003), (0.0, 8.1), (-3.0, 2.1), (0.0, 99.0), (0.0, 12_345.0)] {
            let all = ticks(low, high, 10);
            assert!((4..=10).contains(&all.len()), "{low} to {high}: {all:?}");
            let inside = |tick: &f64| (low - 1e-9..=high * (1.0 + 1e-9)).contains(tick);
            assert!(all.iter().all(inside), "{all:?}");
        }
        assert_eq!(ticks(0.0, 10.0, 6), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(1.0, 1.0, 6).len(), 1);
    }

    #[test]
    fn log_axis_has_several_ticks() {
        for (low, high) in
            [(1e-3, 1e6), (0.03, 110.0), (30.0, 110.0), (25.0, 61.0), (60.0, 61.0), (101.0, 102.01)]
        {
            let ticks = log_ticks(low, high);
            assert!((4..=12).contains(&ticks.len()), "{low} to {high}: {ticks:?}");
            assert!(ticks.iter().all(|tick| (low..=high).contains(tick)), "{ticks:?}");
            let names: Vec<String> = ticks.iter().map(|&tick| short(tick)).collect();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        }
        assert_eq!(log_ticks(0.5, 2000.0), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(log_ticks(30.0, 110.0)[..3], [30.0, 40.0, 50.0]);
    }
}
