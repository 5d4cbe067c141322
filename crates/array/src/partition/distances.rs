//! Distance that the arm moves between two places that are drawn by capacity.

/// Consecutive cylinders that all hold equally much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CylinderRange {
    pub first: u32,
    /// The cylinder after the last one.
    pub end: u32,
    /// Blocks on each cylinder, or any other weight.
    pub weight: u64,
}

/// Ordered pairs of places at each distance from 0 to `distance_max`, weighted by what both hold.
///
/// The pairs of two ranges rise, stay and fall in straight lines over the distance. Four corners of
/// their second difference describe that, so all ranges cost their number squared and not the
/// cylinders squared.
pub(super) fn pairs_by_distance(ranges: &[CylinderRange], distance_max: u32) -> Vec<u128> {
    // Distances from -max to max, and room for the corners after the last.
    let zero = i64::from(distance_max) + 1;
    let mut corners = vec![0i128; 2 * zero as usize + 3];
    for from in ranges {
        for to in ranges {
            let weight = i128::from(from.weight) * i128::from(to.weight);
            let mut corner = |at: i64, sign: i128| corners[(zero + at) as usize] += sign * weight;
            let (a, b) = (i64::from(from.first), i64::from(from.end));
            let (c, d) = (i64::from(to.first), i64::from(to.end));
            corner(c + 1 - b, 1);
            corner(c + 1 - a, -1);
            corner(d + 1 - b, -1);
            corner(d + 1 - a, 1);
        }
    }
    fold(&twice_summed(&corners), zero as usize, distance_max)
}

fn twice_summed(corners: &[i128]) -> Vec<i128> {
    let (mut slope, mut value) = (0, 0);
    corners
        .iter()
        .map(|corner| {
            slope += corner;
            value += slope;
            value
        })
        .collect()
}

/// Adds movements inwards and outwards.
fn fold(signed: &[i128], zero: usize, distance_max: u32) -> Vec<u128> {
    let of = |distance: usize| match distance {
        0 => signed[zero],
        _ => signed[zero + distance] + signed[zero - distance],
    };
    (0..=distance_max as usize).map(|distance| of(distance) as u128).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every pair of cylinders.
    fn naive(ranges: &[CylinderRange], distance_max: u32) -> Vec<u128> {
        let cylinders = || ranges.iter().flat_map(|r| (r.first..r.end).map(move |c| (c, r.weight)));
        let mut pairs = vec![0; distance_max as usize + 1];
        for (from, weight) in cylinders() {
            for (to, other) in cylinders() {
                pairs[from.abs_diff(to) as usize] += u128::from(weight) * u128::from(other);
            }
        }
        pairs
    }

    proptest! {
        #[test]
        fn distance_pairs_match_enumeration(
            sizes in prop::collection::vec((0u32..5, 1u32..12, 0u64..9), 1..6)
        ) {
            let mut ranges = Vec::new();
            let mut at = 0;
            for (gap, cylinders, weight) in sizes {
                let first = at + gap;
                at = first + cylinders;
                ranges.push(CylinderRange { first, end: at, weight });
            }
            prop_assert_eq!(pairs_by_distance(&ranges, at - 1), naive(&ranges, at - 1));
        }
    }

    #[test]
    fn one_range_has_equation_4_distances() {
        let range = CylinderRange { first: 7, end: 107, weight: 1 };
        let pairs = pairs_by_distance(&[range], 106);
        // 2 (C - z) of C², and C of C² at 0: the printed value there, 2C, counts each pair twice.
        assert_eq!(pairs[0], 100);
        assert!((1..100).all(|z| pairs[z] == 2 * (100 - z as u128)));
        assert_eq!(pairs.iter().sum::<u128>(), 100 * 100);
    }
}
