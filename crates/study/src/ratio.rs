//! Means and shares, 0 where there is no whole.

pub(crate) fn mean<T>(all: &[T], value: impl Fn(&T) -> f64) -> f64 {
    ratio(all.iter().map(value).sum(), all.len() as f64)
}

/// 0 where `whole` is 0.
pub(crate) fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

pub(crate) fn per_second(ns: u128) -> f64 {
    ns as f64 / 1e9
}
