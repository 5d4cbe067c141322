//! A search over a coarse grid, and from its best value to the best neighbour, in steps that become shorter.

use std::cmp::Ordering;

/// The first step, in the unit of the neighbours: half of the grid's.
const STEP_MAX: f64 = 0.25;
/// The search ends with steps shorter than this.
const STEP_MIN: f64 = 0.06;
/// A neighbour has to be this much better, as a share, or the step is halved: the rest is noise of the trace.
const GAIN_MIN: f64 = 0.01;
/// Most rounds in a valley.
pub(super) const ROUNDS_MAX: usize = 10;

/// The value that costs least. `grid` is where the search begins, `valley` says which of its values belong
/// together, `neighbours` gives those of a value at a step, and `costs` what each of a list costs; infinity
/// marks one that cannot be. Each valley is searched from its own best value: a slow arm on a fast spindle
/// answers much like a fast arm on a slow one, and the coarse grid does not tell which of them is nearer.
pub(super) fn search<V: Clone + PartialEq, E>(
    grid: &[V],
    valley: impl Fn(&V) -> f64,
    neighbours: impl Fn(&V, f64) -> Vec<V>,
    mut costs: impl FnMut(&[V]) -> Result<Vec<f64>, E>,
) -> Result<V, E> {
    let mut known: Vec<(V, f64)> = grid.iter().cloned().zip(costs(grid)?).collect();
    // The sort is stable: of equal ones the first, which is the drive's own, stays in front.
    known.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut starts: Vec<(V, f64)> = Vec::new();
    for value in &known {
        if starts.iter().all(|start| valley(&start.0) != valley(&value.0)) {
            starts.push(value.clone());
        }
    }
    let mut best = starts[0].clone();
    for start in starts {
        let found = descend(start, &known, &neighbours, &mut costs)?;
        if found.1 < best.1 {
            best = found;
        }
    }
    Ok(best.0)
}

/// From a value to the best neighbour, until short steps lead no further.
fn descend<V: Clone + PartialEq, E>(
    start: (V, f64),
    grid: &[(V, f64)],
    neighbours: impl Fn(&V, f64) -> Vec<V>,
    mut costs: impl FnMut(&[V]) -> Result<Vec<f64>, E>,
) -> Result<(V, f64), E> {
    let (mut best, mut step, mut known) = (start, STEP_MAX, grid.to_vec());
    for _ in 0..ROUNDS_MAX {
        let all = neighbours(&best.0, step);
        let new: Vec<V> = all
            .iter()
            .filter(|value| known.iter().all(|(other, _)| other != *value))
            .cloned()
            .collect();
        let new_costs = costs(&new)?;
        known.extend(new.into_iter().zip(new_costs));
        let least = known.iter().filter(|(value, _)| all.contains(value)).min_by(cheaper);
        match least {
            Some(least) if least.1 < (1.0 - GAIN_MIN) * best.1 => best = least.clone(),
            _ => step /= 2.0,
        }
        if step < STEP_MIN {
            break;
        }
    }
    Ok(best)
}

fn cheaper<V>(a: &&(V, f64), b: &&(V, f64)) -> Ordering {
    a.1.total_cmp(&b.1)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn neighbours(&(x, is_on): &(f64, bool), step: f64) -> Vec<(f64, bool)> {
        vec![(x - step, is_on), (x + step, is_on), (x, !is_on)]
    }

    #[test]
    fn search_finds_hollow_within_step() {
        let cost = |&(x, is_on): &(f64, bool)| {
            let hollow = (x - 2.3).abs().min((x - 9.1).abs() + 0.5);
            hollow + if is_on { 0.1 } else { 1.0 }
        };
        let mut runs = 0;
        let costs = |values: &[(f64, bool)]| {
            runs += values.len();
            Ok::<_, Infallible>(values.iter().map(cost).collect())
        };
        // Near the second is a shallower hollow, which is nearer on the grid.
        let grid = [(1.0, false), (9.0, false)];
        let (x, is_on) = search(&grid, |&(x, _)| x, neighbours, costs).unwrap();
        assert!((x - 2.3).abs() <= 0.07 && is_on, "{x} {is_on}");
        assert!(runs <= 2 + 2 * ROUNDS_MAX * 3, "{runs}");
    }

    #[test]
    fn search_takes_no_impossible_neighbour() {
        let costs = |values: &[(f64, bool)]| {
            let cost = |&(x, _): &(f64, bool)| if x == 0.0 { 1.0 } else { f64::INFINITY };
            Ok::<_, Infallible>(values.iter().map(cost).collect())
        };
        assert_eq!(search(&[(0.0, true)], |_| 0.0, neighbours, costs).unwrap(), (0.0, true));
    }
}
