//! Curves through measured points by Levenberg-Marquardt, as tr03 fits them (section 3.4), with the errors
//! of their parameters.

use rmpfit::{MPFitter, MPPar, MPResult};

/// A family of curves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// a (x - b)^c, with b below every x (figures 4 and 10).
    Power,
    /// a (1 - e^(-b x)) (figures 19 to 23).
    Saturating,
    /// a x (figure 18).
    Linear,
}

/// A curve, and how well it is known.
#[derive(Debug, Clone)]
pub struct Fit {
    form: Form,
    /// a, b and c of its form, as far as it has them.
    pub parameters: Vec<f64>,
    /// Standard errors of the parameters, from the covariance and the scatter of the points.
    pub errors: Vec<f64>,
    /// Covariance of the parameters, row after row, scaled in the same way.
    pub covariance: Vec<f64>,
    /// Root of the mean squared distance of the points.
    pub distance: f64,
}

impl Form {
    fn at(self, parameters: &[f64], x: f64) -> f64 {
        match (self, parameters) {
            (Self::Power, [a, b, c]) => a * libm::pow(x - b, *c),
            (Self::Saturating, [a, b]) => a * (1.0 - libm::exp(-b * x)),
            (Self::Linear, [a]) => a * x,
            _ => unreachable!("a form has as many parameters as its start"),
        }
    }

    /// Start of the search.
    fn start(self, points: &[(f64, f64)]) -> Vec<f64> {
        let (x, y) = points[points.len() / 2];
        match self {
            Self::Power => vec![y, -x, -0.5],
            Self::Saturating => vec![2.0 * y, 0.7 / x],
            Self::Linear => vec![y / x],
        }
    }
}

/// Points and a form, as the search wants them.
struct Points<'a> {
    form: Form,
    points: &'a [(f64, f64)],
    limits: Vec<MPPar>,
}

impl MPFitter for Points<'_> {
    fn eval(&mut self, parameters: &[f64], deviates: &mut [f64]) -> MPResult<()> {
        for (deviate, (x, y)) in deviates.iter_mut().zip(self.points) {
            *deviate = y - self.form.at(parameters, *x);
        }
        Ok(())
    }

    fn number_of_points(&self) -> usize {
        self.points.len()
    }

    fn parameters(&self) -> &[MPPar] {
        &self.limits
    }
}

/// Fits a curve to points with x above zero. None where the search ends nowhere, or where no point is left
/// to judge the fit by.
pub fn fit(form: Form, points: &[(f64, f64)]) -> Option<Fit> {
    let mut parameters = form.start(points);
    let free = points.len().checked_sub(parameters.len()).filter(|free| *free > 0)?;
    let mut limits: Vec<MPPar> = parameters.iter().map(|_| MPPar::new()).collect();
    if form == Form::Power {
        // The power of a negative number is none.
        let least = points.iter().map(|(x, _)| *x).fold(f64::INFINITY, f64::min);
        limits[1] = MPPar { limited_up: true, limit_up: 0.999 * least, ..MPPar::new() };
    }
    let status = Points { form, points, limits }.mpfit(&mut parameters).ok()?;
    // The points have no errors of their own: their scatter around the curve says how large these are.
    let variance = status.best_norm / free as f64;
    Some(Fit {
        form,
        parameters,
        errors: status.xerror.iter().map(|error| error * variance.sqrt()).collect(),
        covariance: status.covar.iter().map(|entry| entry * variance).collect(),
        distance: (status.best_norm / points.len() as f64).sqrt(),
    })
}

impl Fit {
    /// The curve at `x`.
    pub fn at(&self, x: f64) -> f64 {
        self.form.at(&self.parameters, x)
    }

    /// Parameters with their errors, their correlations, and the distance of the points.
    pub fn words(&self) -> String {
        let names = ["a", "b", "c"];
        let each = names.iter().zip(&self.parameters).zip(&self.errors);
        let each: Vec<String> = each
            .map(|((name, value), error)| format!("{name} = {value:.3} ± {error:.3}"))
            .collect();
        format!(
            "{}; covariance [{}]; points within {:.3}",
            each.join(", "),
            self.matrix(),
            self.distance
        )
    }

    fn matrix(&self) -> String {
        let rows = self.covariance.chunks(self.parameters.len());
        rows.map(|row| {
            row.iter().map(|entry| format!("{entry:.1e}")).collect::<Vec<String>>().join(" ")
        })
        .collect::<Vec<String>>()
        .join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(curve: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (1..=12).map(|x| f64::from(x) / 2.0).map(|x| (x, curve(x))).collect()
    }

    #[test]
    fn fit_recovers_curves_of_each_form() {
        let power = fit(Form::Power, &points(|x| 0.7 * libm::pow(x + 1.3, -1.0))).unwrap();
        for (ours, expected) in power.parameters.iter().zip([0.7, -1.3, -1.0]) {
            assert!((ours - expected).abs() < 1e-4, "{power:?}");
        }
        let saturating =
            fit(Form::Saturating, &points(|x| 60.0 * (1.0 - libm::exp(-0.2 * x)))).unwrap();
        for (ours, expected) in saturating.parameters.iter().zip([60.0, 0.2]) {
            assert!((ours - expected).abs() < 1e-4, "{saturating:?}");
        }
        let linear = fit(Form::Linear, &points(|x| 3.0 * x)).unwrap();
        assert!((linear.parameters[0] - 3.0).abs() < 1e-9 && linear.distance < 1e-9);
    }

    /// The textbook's error of a slope through the origin: scatter over the root of the sum of squares.
    #[test]
    fn fit_slope_error_matches_textbook() {
        let scattered: Vec<(f64, f64)> = (1..=8)
            .map(|x| (f64::from(x), 2.0 * f64::from(x) + if x % 2 == 0 { 0.3 } else { -0.3 }))
            .collect();
        let fit = fit(Form::Linear, &scattered).unwrap();
        let squares: f64 = scattered.iter().map(|(x, _)| x * x).sum();
        let slope = scattered.iter().map(|(x, y)| x * y).sum::<f64>() / squares;
        let residual: f64 = scattered.iter().map(|(x, y)| (y - slope * x).powi(2)).sum();
        let expected = (residual / 7.0 / squares).sqrt();
        assert!((fit.parameters[0] - slope).abs() < 1e-9);
        assert!((fit.errors[0] - expected).abs() < 1e-6, "{} {expected}", fit.errors[0]);
        assert!((fit.covariance[0] - expected * expected).abs() < 1e-6);
    }

    #[test]
    fn fit_of_as_many_parameters_unjudged() {
        assert!(fit(Form::Saturating, &[(1.0, 2.0), (2.0, 3.0)]).is_none());
    }
}
