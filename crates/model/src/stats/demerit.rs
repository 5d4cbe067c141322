//! Distance between two distributions.

/// Root mean square of the horizontal distance between two distributions of equally many values, both in
/// ascending order (Ruemmler and Wilkes 1994).
pub fn demerit(measured: &[f64], simulated: &[f64]) -> f64 {
    let squares = measured.iter().zip(simulated).map(|(m, s)| (m - s) * (m - s));
    (squares.sum::<f64>() / measured.len() as f64).sqrt()
}
