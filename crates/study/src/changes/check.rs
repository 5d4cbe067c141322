//! The best changes again in other circumstances.

use freewheel_sim::config::ConfigError;
use rayon::prelude::*;

use super::combine::{COMBINED, Combination};
use super::variant::{VariantEffect, VariantOfSystem};
use super::{Change, Changes, ChangesBench, Measured};

/// Changes that run again, the best of each part first; the best together do, too.
const CHECKED: usize = 5;

impl ChangesBench<'_> {
    /// Runs the first changes of the ranking and the best together in other circumstances, under the study's own
    /// replay. Circumstances in which the trace does not fit are left out.
    pub(crate) fn check(
        &self,
        changes: &mut Changes,
        variants: &[VariantOfSystem],
    ) -> Result<(), ConfigError> {
        let first: Vec<Change> =
            changes.best(CHECKED).into_iter().map(|tried| tried.change).collect();
        let plan = CheckPlan::new(&first, changes.together.as_ref());
        let all: Vec<(&VariantOfSystem, &Vec<Change>)> =
            variants.iter().flat_map(|of| plan.lists.iter().map(move |list| (of, list))).collect();
        let left = most_checks(variants.len()) - variants.len() * plan.runs();
        self.work.forgo(left);
        let runs: Vec<Option<Measured>> = all
            .par_iter()
            .map(|&(of, list)| match self.run_on(self.own, list, Some(of)) {
                Ok(measured) => Ok(Some(measured)),
                Err(ConfigError::Placement(_)) => Ok(None),
                Err(error) => Err(error),
            })
            .collect::<Result<_, ConfigError>>()?;
        for (of, runs) in variants.iter().zip(runs.chunks(plan.lists.len())) {
            if runs[0].is_none() {
                continue;
            }
            changes.variants.push(of.variant.clone());
            for &(change, new, old) in &plan.pairs {
                let tried = changes.tried.iter_mut().find(|tried| tried.change == change);
                tried
                    .into_iter()
                    .for_each(|tried| tried.variants.extend(effect(new, old, runs, of)));
            }
            if let Some((together, at)) = changes.together.as_mut().zip(plan.together) {
                together.variants.extend(effect(at, 0, runs, of));
            }
        }
        Ok(())
    }
}

fn effect(
    new: usize,
    old: usize,
    runs: &[Option<Measured>],
    of: &VariantOfSystem,
) -> Option<VariantEffect> {
    let effect = runs[new].as_ref()?.from(runs[old].as_ref()?);
    Some(VariantEffect { variant: of.variant.clone(), effect })
}

/// The systems that run in each of the circumstances, the one of today first.
struct CheckPlan {
    lists: Vec<Vec<Change>>,
    /// Each change, and the places of its system and of its control.
    pairs: Vec<(Change, usize, usize)>,
    /// The place of the best together.
    together: Option<usize>,
}

impl CheckPlan {
    fn new(first: &[Change], together: Option<&Combination>) -> Self {
        let mut plan = Self { lists: vec![vec![]], pairs: Vec::new(), together: None };
        for &change in first {
            let new = plan.place_of(vec![change]);
            let old = plan.place_of(change.control().into_iter().collect());
            plan.pairs.push((change, new, old));
        }
        plan.together = together.map(|together| plan.place_of(together.changes()));
        plan
    }

    fn place_of(&mut self, list: Vec<Change>) -> usize {
        let place = self.lists.iter().position(|other| *other == list);
        place.unwrap_or_else(|| {
            self.lists.push(list);
            self.lists.len() - 1
        })
    }

    /// As a number of runs of one change.
    fn runs(&self) -> usize {
        self.lists.iter().map(|list| if list.len() > 1 { COMBINED } else { 1 }).sum()
    }
}

/// The most runs of [`ChangesBench::check`], as a number of runs of one change.
pub(crate) fn most_checks(variants: usize) -> usize {
    variants * (2 + CHECKED + COMBINED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_runs_each_system_once_per_variant() {
        let one = Change::DriveQueue { depth: 1 };
        let plan = CheckPlan::new(&[one, Change::DriveWriteCacheOff], None);
        assert_eq!(plan.pairs, [(one, 1, 0), (Change::DriveWriteCacheOff, 2, 0)]);
        assert_eq!((plan.lists.len(), plan.runs()), (3, 3));
    }
}
