//! Estimates from a random sample of which perhaps only a part has come.
//!
//! Units of a population are drawn with equal chances and apart from their places. Then they come in an
//! order that may prefer places. A sample that has come as a whole estimates a share by its own. Of an
//! incomplete one the places are strata: within each, members that came represent those that did not.

/// Standard deviations to each side of the mean that hold 95 % of a normal distribution.
const Z: f64 = 1.959_964;

/// The value that chi-square exceeds by chance in 5 % of all cases, for 1 to 9 degrees of freedom.
const CHI_SQUARE_5_PERCENT: [f64; 9] =
    [3.841, 5.991, 7.815, 9.488, 11.070, 12.592, 14.067, 15.507, 16.919];

/// A part of the population, by place. Units may be counted in fractions.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stratum {
    /// Units of the sample.
    pub drawn: f64,
    /// Members that have been delivered.
    pub delivered: f64,
    /// Delivered members with the property.
    pub hits: f64,
}

/// A share, and the interval that holds the true one in 95 % of all samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Estimate of the share of units with a property.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Proportion {
    /// The share and its interval. None where a stratum of the sample has no member that came.
    pub estimate: Option<(f64, Interval)>,
    /// The interval without any assumption on the units that have not come: of them none or all may have
    /// the property.
    pub bounds: Interval,
}

/// Difference of the delivered part of a sample from the whole of it.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryBias {
    /// Chance of a drawn unit of each stratum to have come, relative to the mean of all. None where none
    /// was drawn.
    pub relative: Vec<Option<f64>>,
    /// Chi-square of the table of delivered and missing units by stratum.
    pub chi_square: f64,
    /// Value that chance exceeds in 5 % of all cases.
    pub critical: f64,
}

/// Interval of a share that was found among `units` independent ones: the score interval (Wilson 1927).
fn wilson(share: f64, units: f64) -> Interval {
    let z2 = Z * Z;
    let centre = share + z2 / (2.0 * units);
    let half = Z * (share * (1.0 - share) / units + z2 / (4.0 * units * units)).sqrt();
    let scale = 1.0 + z2 / units;
    Interval { low: ((centre - half) / scale).max(0.0), high: ((centre + half) / scale).min(1.0) }
}

fn sum(strata: &[Stratum], of: impl Fn(&Stratum) -> f64) -> f64 {
    strata.iter().map(of).sum()
}

/// Estimates the share of units with a property in a population of this size. None without a sample.
pub fn proportion(strata: &[Stratum], population: f64) -> Option<Proportion> {
    let drawn = sum(strata, |stratum| stratum.drawn);
    if drawn <= 0.0 {
        return None;
    }
    let [delivered, hits] =
        [sum(strata, |stratum| stratum.delivered), sum(strata, |stratum| stratum.hits)];
    let missing = (drawn - delivered).max(0.0);
    // A sample of the whole population is exact; the correction for a finite one (Cochran, Sampling
    // Techniques, section 2.6) says by how much others are better than of an endless one.
    let worth = |units: f64| match population - drawn {
        left if left > 0.0 => units * (population - 1.0).max(left) / left,
        _ => f64::INFINITY,
    };
    let bounds = Interval {
        low: interval(hits / drawn, worth(drawn)).low,
        high: interval((hits + missing) / drawn, worth(drawn)).high,
    };
    let estimate = match missing > 0.0 {
        false => Some((hits / drawn, interval(hits / drawn, worth(drawn)))),
        true => stratified(strata, drawn),
    };
    Some(Proportion { estimate, bounds })
}

fn interval(share: f64, units: f64) -> Interval {
    match units.is_finite() {
        true => wilson(share, units),
        false => Interval { low: share, high: share },
    }
}

/// The mean of the strata's shares by their weights in the sample. Its interval is that of independent
/// units in the number that has the same variance (Kish 1965).
fn stratified(strata: &[Stratum], drawn: f64) -> Option<(f64, Interval)> {
    let (mut share, mut inverse) = (0.0, 0.0);
    for stratum in strata.iter().filter(|stratum| stratum.drawn > 0.0) {
        if stratum.delivered <= 0.0 {
            return None;
        }
        let weight = stratum.drawn / drawn;
        share += weight * stratum.hits / stratum.delivered;
        inverse += weight * weight / stratum.delivered;
    }
    Some((share, wilson(share, 1.0 / inverse)))
}

/// Compares the delivered part of an incomplete sample with the whole by stratum. None where no member has
/// come, none is missing, or there is one stratum alone.
pub fn delivery_bias(strata: &[Stratum]) -> Option<DeliveryBias> {
    let [drawn, delivered] =
        [sum(strata, |stratum| stratum.drawn), sum(strata, |stratum| stratum.delivered)];
    let there = strata.iter().filter(|stratum| stratum.drawn > 0.0).count();
    let critical = CHI_SQUARE_5_PERCENT.get(there.checked_sub(2)?).copied()?;
    if delivered <= 0.0 || delivered >= drawn {
        return None;
    }
    let mean = delivered / drawn;
    let relative = strata
        .iter()
        .map(|stratum| (stratum.drawn > 0.0).then(|| stratum.delivered / stratum.drawn / mean));
    let chi_square = sum(strata, |stratum| {
        let expected = stratum.drawn * mean;
        let away = stratum.delivered - expected;
        match stratum.drawn > 0.0 {
            true => away * away * (1.0 / expected + 1.0 / (stratum.drawn - expected)),
            false => 0.0,
        }
    });
    Some(DeliveryBias { relative: relative.collect(), chi_square, critical })
}

#[cfg(test)]
mod tests {
    use freewheel_units::Prng;

    use super::*;

    fn stratum(drawn: u32, delivered: u32, hits: u32) -> Stratum {
        Stratum { drawn: drawn.into(), delivered: delivered.into(), hits: hits.into() }
    }

    fn near(found: f64, expected: f64, by: f64) {
        assert!((found - expected).abs() <= by, "{found}, and not {expected}");
    }

    #[test]
    fn score_intervals_are_the_published_ones() {
        // Newcombe 1998, table I, method 3.
        for (hits, units, low, high) in [
            (81.0, 263.0, 0.2553, 0.3662),
            (15.0, 148.0, 0.0624, 0.1605),
            (0.0, 20.0, 0.0, 0.1611),
            (1.0, 29.0, 0.0061, 0.1718),
        ] {
            let interval = wilson(hits / units, units);
            near(interval.low, low, 0.000_05);
            near(interval.high, high, 0.000_05);
        }
    }

    #[test]
    fn sample_of_everything_is_exact() {
        let one = [stratum(50, 50, 5)];
        let of = |population| proportion(&one, population).unwrap().estimate.unwrap();
        assert_eq!(of(50.0), (0.1, Interval { low: 0.1, high: 0.1 }));
        let (endless, half) = (of(1e15).1, of(100.0).1);
        near(endless.high, wilson(0.1, 50.0).high, 1e-9);
        // 50 of 100 are worth 50 x 99 / 50 of an endless one.
        near(half.high, wilson(0.1, 99.0).high, 1e-9);
        assert_eq!(proportion(&[], 100.0), None);
    }

    #[test]
    fn incomplete_sample_is_weighed_by_place() {
        // Half of the sample in each place; 8 of 10 and 2 of 10 came, all of the first with the property.
        let strata = [stratum(10, 8, 8), stratum(10, 2, 0)];
        let Proportion { estimate, bounds } = proportion(&strata, 1e15).unwrap();
        let (share, interval) = estimate.unwrap();
        near(share, 0.5, 1e-9);
        // Worth 1 / (0.25 / 8 + 0.25 / 2) = 6.4 units.
        near(interval.low, wilson(0.5, 6.4).low, 1e-9);
        near(bounds.low, wilson(0.4, 20.0).low, 1e-9);
        near(bounds.high, wilson(0.9, 20.0).high, 1e-9);
        let nothing = [stratum(10, 8, 8), stratum(10, 0, 0)];
        assert_eq!(proportion(&nothing, 1e15).unwrap().estimate, None);
    }

    #[test]
    fn bias_matches_chi_square_table() {
        let bias =
            delivery_bias(&[stratum(10, 8, 0), stratum(0, 0, 0), stratum(10, 2, 0)]).unwrap();
        assert_eq!(bias.relative, [Some(1.6), None, Some(0.4)]);
        // 4 x 3^2 / 5, by hand.
        near(bias.chi_square, 7.2, 1e-9);
        assert_eq!(bias.critical, 3.841, "one degree of freedom");
        for none in [
            &[stratum(10, 10, 0), stratum(5, 5, 0)][..],
            &[stratum(10, 0, 0), stratum(5, 0, 0)],
            &[stratum(10, 5, 0)],
        ] {
            assert_eq!(delivery_bias(none), None);
        }
    }

    /// Shares of trials in which the interval holds the true share, in which chi-square is above its limit,
    /// and in which an interval without strata holds the true share. 400 units are drawn of ten places;
    /// `share` of a place has the property, and `chance` is that of a unit there to come.
    fn trials(share: impl Fn(f64) -> f64, chance: impl Fn(f64) -> f64) -> (f64, f64, f64) {
        let mut prng = Prng::new(7, "sampling");
        let truth = (0..10).map(|place| share(f64::from(place))).sum::<f64>() / 10.0;
        let (mut held, mut above, mut naive, mut all) = (0, 0, 0, 0);
        for _ in 0..1000 {
            let mut strata = [Stratum::default(); 10];
            for _ in 0..400 {
                let at = prng.below(10);
                let stratum = &mut strata[at as usize];
                stratum.drawn += 1.0;
                if prng.chance(chance(at as f64)) {
                    stratum.delivered += 1.0;
                    stratum.hits += f64::from(u8::from(prng.chance(share(at as f64))));
                }
            }
            // Of a place with a small chance no member may have come.
            let Some((_, interval)) = proportion(&strata, 1e15).unwrap().estimate else { continue };
            all += 1;
            held += u32::from((interval.low..=interval.high).contains(&truth));
            let bias = delivery_bias(&strata).unwrap();
            above += u32::from(bias.chi_square > bias.critical);
            let delivered = sum(&strata, |stratum| stratum.delivered);
            let plain = wilson(sum(&strata, |stratum| stratum.hits) / delivered, delivered);
            naive += u32::from((plain.low..=plain.high).contains(&truth));
        }
        assert!(all > 900, "{all}");
        [held, above, naive].map(|count| f64::from(count) / f64::from(all)).into()
    }

    #[test]
    fn intervals_cover_truth_in_95_percent() {
        let (held, above, _) = trials(|_| 0.5, |_| 0.6);
        assert!((0.93..0.98).contains(&held), "{held}");
        assert!((0.03..0.08).contains(&above), "by chance alone: {above}");
        let (held, above, naive) = trials(|place| 0.05 * place, |place| 0.95 - 0.09 * place);
        assert!(held > 0.93, "{held}");
        assert!(above > 0.99, "{above}");
        assert!(naive < 0.5, "without strata: {naive}");
    }
}
