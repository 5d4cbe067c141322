//! Incremental repartitioning (tr96 section 2.3) when the load has grown. The paper has no numbers of it.

use freewheel_array::partition::{
    FileProfile, Load, LoadLimit, RepartitionSpec, RepartitionTrigger, Repartitioner, Starts,
    StripedFile, Stripes,
};
use freewheel_array::placement::FileId;
use freewheel_sim::config::ConfigError;
use freewheel_units::Blocks;

use super::workload::{ACTIVE, Array, MEAN_KB, Method};
use crate::{Context, Outcome};

/// Requests a second before and after.
const RATES: [f64; 2] = [10.0, 80.0];
/// Ratios of a response that is shorter.
const SHORTER: [f64; 2] = [0.0, 1.0];
/// k: a tenth of the files that are used.
const FILES_MAX: usize = 200;

pub(crate) fn restripe(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let array = Array::new(context.seed)?;
    let [old, new] = RATES.map(|rate| Load { rate, request: MEAN_KB });
    let parallelism = [&old, &new].map(|load| {
        LoadLimit::of(&array.model, load, &Array::rules()).map(|limit| limit.parallelism)
    });
    let [before, wanted] = parallelism.map(|parallelism| -> Vec<Stripes> {
        let method = Method::Opt { parallelism };
        array.sizes_kb().iter().map(|&kb| array.stripes(method, kb)).collect()
    });
    let loads = array.skewed(RATES[1]);
    let files: Vec<StripedFile> = (0..ACTIVE)
        .map(|number| {
            let kb = array.sizes_kb()[number];
            let profile = FileProfile { blocks: kb, request: kb as f64, starts: Starts::AtRuns };
            let (file, stripes) = (FileId(number as u32), before[number]);
            StripedFile { file, profile, rate: loads[number].rate, stripes }
        })
        .collect();
    let spec = RepartitionSpec {
        least_change_s: 0.001,
        files_max: FILES_MAX,
        trigger: RepartitionTrigger::Worsened,
    };
    let mut check = Repartitioner::new(spec);
    let first = check.check(&array.model, &old, &Array::rules(), &files);
    let restriped = check.check(&array.model, &new, &Array::rules(), &files).unwrap_or_default();
    let mut hottest = before.clone();
    for change in &restriped {
        hottest[change.file.0 as usize] = change.stripes;
    }
    let requests = 20_000;
    let response_ms = |stripes: &[Stripes]| {
        let map = array.place_striped(stripes, Blocks::new(1));
        let result = array.run(&map, &loads, requests, &mut |_| {})?;
        Ok::<f64, ConfigError>(result.response.mean_ns / 1e6)
    };
    let [kept, some, every] =
        [response_ms(&before)?, response_ms(&hottest)?, response_ms(&wanted)?];
    let (of_some, of_every) = (
        mib(&|file| restriped.iter().any(|it| it.file.0 as usize == file), &array),
        mib(&|file| before[file] != wanted[file], &array),
    );
    let [disks_before, disks_after] = parallelism.map(|disks| f64::from(disks.unwrap_or_default()));
    let rows = vec![
        context.holds("the first check has nothing to compare with", first.is_err()),
        context.holds("the higher load triggers it", !restriped.is_empty()),
        context.measured("disks a request of the mean size works, before", "", disks_before),
        context.measured("disks a request of the mean size works, after", "", disks_after),
        context.measured("response with the stripes of the lower load", "ms", kept),
        context
            .row_in(
                "response with the hottest files striped anew over that",
                "",
                SHORTER,
                some / kept,
            )
            .noted(format!("{some:.1} ms; {} files, {of_some:.0} MiB", restriped.len())),
        context
            .row_in("response with all files striped anew over that", "", SHORTER, every / kept)
            .noted(format!("{every:.1} ms; {of_every:.0} MiB")),
    ];
    Ok(Outcome { rows, figures: Vec::new() })
}

fn mib(changed: &dyn Fn(usize) -> bool, array: &Array) -> f64 {
    let kb: u64 =
        (0..ACTIVE).filter(|&file| changed(file)).map(|file| array.sizes_kb()[file]).sum();
    kb as f64 / 1024.0
}
