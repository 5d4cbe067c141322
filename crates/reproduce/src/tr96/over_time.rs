//! Responses and moves over the time of a run, as figures 7 and 8 draw them.

use freewheel_array::files::CoolingWork;
use freewheel_sim::files::FilesResult;
use freewheel_study::figure::{Figure, Line};
use freewheel_units::SimTime;

use crate::tr03::{line, lines};

/// A run with every response after the warm-up.
pub(super) struct Watched {
    pub result: FilesResult,
    pub work: CoolingWork,
    /// Arrival in seconds, and response in ms.
    pub responses: Vec<(f64, f64)>,
}

/// Parts of the time, each with a mean.
const PARTS: usize = 40;

/// Mean responses by the time of arrival, not cooled and cooled, and the moves of cooling.
pub(super) fn figures([old, new]: [&Watched; 2]) -> Vec<Figure> {
    let span_s = old.responses.iter().chain(&new.responses).map(|at| at.0).fold(0.0, f64::max);
    let part = |at_s: f64| ((at_s / span_s * PARTS as f64) as usize).min(PARTS - 1);
    let means = |name: &str, run: &Watched| -> Line {
        let mut sums = [(0.0, 0.0); PARTS];
        for &(at_s, ms) in &run.responses {
            let sum = &mut sums[part(at_s)];
            *sum = (sum.0 + ms, sum.1 + 1.0);
        }
        let some = sums.into_iter().enumerate().filter(|(_, (_, count))| *count > 0.0);
        line(name, some.map(|(part, (sum, count))| (middle(part, span_s), sum / count)).collect())
    };
    let mut moves = [0.0; PARTS];
    for end in new.work.ends.iter().map(|&end| (end - SimTime::ZERO).as_secs_f64()) {
        moves[part(end)] += 1.0;
    }
    let moves = (0..PARTS).map(|part| (middle(part, span_s), moves[part])).collect();
    let responses = vec![means("not cooled", old), means("cooled", new)];
    vec![
        lines("seconds", "mean response, ms", responses),
        lines("seconds", "moves in a fortieth of the time", vec![line("moves", moves)]),
    ]
}

fn middle(part: usize, span_s: f64) -> f64 {
    (part as f64 + 0.5) * span_s / PARTS as f64
}
