//! Surfaces of another member of a family.

/// Difference from a whole number of surfaces that comes from a factor with few digits.
const ROUNDING: f64 = 0.01;

/// Whole surfaces, and how much of them holds data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Surfaces {
    pub count: u32,
    /// Share of their blocks; 1 but for a factor that leaves a part of a surface.
    pub used_share: f64,
}

impl Surfaces {
    /// `surfaces` times `factor`.
    pub fn of(surfaces: u32, factor: f64) -> Self {
        let wanted = f64::from(surfaces) * factor;
        let nearest = wanted.round();
        if nearest >= 1.0 && (wanted - nearest).abs() <= ROUNDING {
            return Self { count: nearest as u32, used_share: 1.0 };
        }
        let count = wanted.ceil();
        Self { count: count as u32, used_share: wanted / count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surfaces_are_whole_rest_is_share() {
        let of = |surfaces, factor| {
            let Surfaces { count, used_share } = Surfaces::of(surfaces, factor);
            (count, used_share)
        };
        assert_eq!((of(6, 1.0), of(6, 2.0), of(6, 0.5)), ((6, 1.0), (12, 1.0), (3, 1.0)));
        assert_eq!((of(6, 0.25), of(1, 0.5)), ((2, 0.75), (1, 0.5)));
        // A third in three digits.
        assert_eq!((of(6, 0.333), of(6, 0.667)), ((2, 1.0), (4, 1.0)));
    }
}
