//! Incremental repartitioning (tr96 section 2.3): restriping the hottest files when the load has changed.

use super::array_model::{ArrayModel, Choice, Load};
use super::stripes::{FileProfile, LoadLimit, Rules, Stripes, effective_parallelism, stripes};
use crate::placement::FileId;

/// Conditions under which files are restriped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RepartitionSpec {
    /// epsilon in seconds.
    pub least_change_s: f64,
    /// k: files that one invocation restripes at most.
    pub files_max: usize,
    /// The second part of the trigger.
    pub trigger: RepartitionTrigger,
}

/// Quantity that must have changed by more than epsilon, beside P-bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RepartitionTrigger {
    /// The best response is longer than at the last invocation (the paper). A load that falls never
    /// triggers it.
    #[default]
    Worsened,
    /// The new P-bar is faster than the old one under the new load, or the old one cannot sustain it.
    GainUnderNewLoad,
}

/// A file that may be restriped.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs)]
pub struct StripedFile {
    pub file: FileId,
    /// Size and requests now.
    pub profile: FileProfile,
    /// lambda_i: its requests a second now.
    pub rate: f64,
    pub stripes: Stripes,
}

/// A file that is to be striped anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restriped {
    /// Number of the file.
    pub file: FileId,
    /// Striping that the model proposes.
    pub stripes: Stripes,
}

/// Reason why no file is restriped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotTriggered {
    /// No earlier invocation to compare with.
    FirstInvocation,
    /// P-bar is the same.
    SameParallelism,
    /// The change of the response is within epsilon.
    SmallChange,
    /// No degree of parallelism sustains the load.
    Overload,
}

/// The periodic check, which remembers what the last one found.
#[derive(Debug, Clone, PartialEq)]
pub struct Repartitioner {
    spec: RepartitionSpec,
    last: Option<Choice>,
}

impl Repartitioner {
    /// A check without a past.
    pub fn new(spec: RepartitionSpec) -> Self {
        Self { spec, last: None }
    }

    /// The files to restripe now, the hottest first: at most k whose stripes change. Files beyond the k-th
    /// wait for the next trigger, as in the paper.
    pub fn check(
        &mut self,
        array: &ArrayModel,
        load: &Load,
        rules: &Rules,
        files: &[StripedFile],
    ) -> Result<Vec<Restriped>, NotTriggered> {
        let new = array.best(load, rules.fork_join).ok_or(NotTriggered::Overload)?;
        let old = self.last.replace(new).ok_or(NotTriggered::FirstInvocation)?;
        if new.parallelism == old.parallelism {
            return Err(NotTriggered::SameParallelism);
        }
        if self.change_s(array, load, rules, &old, &new) <= self.spec.least_change_s {
            return Err(NotTriggered::SmallChange);
        }
        let limit = LoadLimit { parallelism: new.parallelism, request: load.request };
        let mut hottest_first: Vec<&StripedFile> = files.iter().collect();
        hottest_first
            .sort_by(|a, b| (b.rate * b.profile.request).total_cmp(&(a.rate * a.profile.request)));
        Ok(hottest_first
            .into_iter()
            .filter_map(|file| {
                let request = file.profile.request;
                let parallelism = effective_parallelism(array, request, Some(&limit), rules);
                let stripes = stripes(&file.profile, parallelism, array.disks);
                (stripes != file.stripes).then_some(Restriped { file: file.file, stripes })
            })
            .take(self.spec.files_max)
            .collect())
    }

    fn change_s(
        &self,
        array: &ArrayModel,
        load: &Load,
        rules: &Rules,
        old: &Choice,
        new: &Choice,
    ) -> f64 {
        match self.spec.trigger {
            RepartitionTrigger::Worsened => new.response_s - old.response_s,
            RepartitionTrigger::GainUnderNewLoad => {
                let kept = array.response_s(load, old.parallelism, rules.fork_join);
                kept.map_or(f64::INFINITY, |kept| kept - new.response_s)
            }
        }
    }
}
