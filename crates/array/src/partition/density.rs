//! The distribution of a time on an even grid.

use super::moments::Moments;

/// Chances of times 0, `step`, 2 `step` and so on, in seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Density {
    step_s: f64,
    mass: Vec<f64>,
}

impl Density {
    /// A grid up to `longest_s` without any mass yet.
    pub(super) fn empty(step_s: f64, longest_s: f64) -> Self {
        let points = libm::ceil(longest_s / step_s) as usize + 2;
        Self { step_s, mass: vec![0.0; points] }
    }

    /// Adds a time with its chance. Both neighbours on the grid share the chance, so the mean is exact.
    pub(super) fn add(&mut self, time_s: f64, chance: f64) {
        let at = time_s / self.step_s;
        let below = libm::floor(at);
        let above_share = at - below;
        self.mass[below as usize] += chance * (1.0 - above_share);
        self.mass[below as usize + 1] += chance * above_share;
    }

    /// Sum of chance times time to each of the first three powers.
    pub fn moments(&self) -> Moments {
        let mut sum = Moments::default();
        for (number, &mass) in self.mass.iter().enumerate() {
            let time = number as f64 * self.step_s;
            sum.mean += mass * time;
            sum.second += mass * time * time;
            sum.third += mass * time * time * time;
        }
        sum
    }

    /// Distribution of this time plus an independent one that is uniform in 0..`width_s`.
    pub fn plus_uniform(&self, width_s: f64) -> Cumulative {
        let longest = self.mass.len() as f64 * self.step_s + width_s;
        let points = libm::ceil(longest / self.step_s) as usize + 1;
        let integral = StepIntegral::new(self);
        // F(t) is the mean of this time's own distribution function over the last `width_s`.
        Cumulative {
            step_s: self.step_s,
            chance: (0..points)
                .map(|number| {
                    let time = number as f64 * self.step_s;
                    (integral.at(time) - integral.at(time - width_s)) / width_s
                })
                .collect(),
        }
    }
}

/// The integral of a grid's distribution function: straight lines between grid points.
struct StepIntegral {
    step_s: f64,
    at_points: Vec<f64>,
}

impl StepIntegral {
    fn new(density: &Density) -> Self {
        let (mut sum, mut below) = (0.0, 0.0);
        let mut at_points = Vec::with_capacity(density.mass.len() + 1);
        at_points.push(0.0);
        for mass in &density.mass {
            below += mass;
            sum += below * density.step_s;
            at_points.push(sum);
        }
        Self { step_s: density.step_s, at_points }
    }

    fn at(&self, time_s: f64) -> f64 {
        if time_s <= 0.0 {
            return 0.0;
        }
        let at = time_s / self.step_s;
        let last = self.at_points.len() - 1;
        let below = libm::floor(at) as usize;
        if below >= last {
            // All mass lies before: the function is 1 from here on.
            return self.at_points[last] + (at - last as f64) * self.step_s;
        }
        let (from, to) = (self.at_points[below], self.at_points[below + 1]);
        from + (to - from) * (at - below as f64)
    }
}

/// Chance that a time is no longer than each point of a grid.
#[derive(Debug, Clone, PartialEq)]
pub struct Cumulative {
    step_s: f64,
    chance: Vec<f64>,
}

impl Cumulative {
    /// Mean of the longest of `count` independent times: the area above F^count.
    pub fn expected_max_s(&self, count: u32) -> f64 {
        let above = |chance: &f64| 1.0 - libm::pow(*chance, f64::from(count));
        let sum: f64 = self.chance.iter().map(above).sum();
        // The trapezoid rule; the last point has no area above it.
        (sum - above(&self.chance[0]) / 2.0) * self.step_s
    }

    /// Chance of at most `time_s`, by the grid point below.
    pub fn at_most(&self, time_s: f64) -> f64 {
        let number = libm::floor(time_s / self.step_s) as usize;
        self.chance.get(number).copied().unwrap_or(1.0)
    }
}
