//! Names of tasks in reports.

use freewheel_freeblock::TaskOrder;

/// Names of the tasks in reports: no two equal, unless the experiment gives one name twice.
pub(super) fn names(tasks: &[TaskOrder]) -> Vec<String> {
    let mut taken: Vec<String> = tasks.iter().filter_map(|task| task.name.clone()).collect();
    let mut name = |task: &TaskOrder| {
        let words = task.result_kind().words();
        let numbered = (1u32..).map(|number| match number {
            1 => words.to_owned(),
            _ => format!("{words} {number}"),
        });
        let own = numbered.into_iter().find(|name| !taken.contains(name));
        let own = own.expect("there are more numbers than tasks");
        taken.push(own.clone());
        own
    };
    tasks.iter().map(|task| task.name.clone().unwrap_or_else(|| name(task))).collect()
}

#[cfg(test)]
mod tests {
    use freewheel_freeblock::tasks::TaskKind;

    use super::*;

    #[test]
    fn task_names_default_to_numbered_kind() {
        let scan = TaskOrder::default();
        let sample = TaskOrder { sample_share: Some(0.5), ..TaskOrder::default() };
        let scrub = TaskOrder { kind: TaskKind::Scrub, ..TaskOrder::default() };
        let named = TaskOrder { name: Some("scrub".into()), ..scan.clone() };
        let whole = TaskOrder { sample_share: Some(1.0), ..TaskOrder::default() };
        assert_eq!(
            names(&[scan, sample.clone(), scrub, sample, named, whole]),
            ["scan", "sample", "scrub 2", "sample 2", "scrub", "scan 2"]
        );
    }
}
