//! Figure 2: units and widths.

use proptest::prelude::*;

use super::*;
use crate::partition::{
    ArrayModel, FileProfile, ForkJoin, Load, LoadLimit, Normalised, Rules, Starts, Stripes,
    effective_parallelism, global_unit, stripes, stripes_of_unit,
};

fn array() -> ArrayModel {
    ArrayModel { disk: tr96(), disks: 32 }
}

fn whole(blocks: u64) -> FileProfile {
    FileProfile { blocks, request: blocks as f64, starts: Starts::Anywhere }
}

#[test]
fn global_units_match_paper() {
    let rules = Rules::default();
    // R = L = 260 KB: 32 disks by phase A. At 140 requests a second the paper finds 3 by phase B; (25)
    // has 2 and 3 nearly equal, and the exact maximum of normals chooses 3.
    assert_eq!(global_unit(&array(), &whole(260), None, &rules), 9);
    let load = Load { rate: 140.0, request: 260.0 };
    let limit = LoadLimit::of(&array(), &load, &rules).unwrap();
    assert_eq!(limit, LoadLimit { parallelism: 2, request: 260.0 });
    let rules = Rules { fork_join: ForkJoin::SharedWaits, ..rules };
    let limit = LoadLimit::of(&array(), &load, &rules).unwrap();
    assert_eq!(limit, LoadLimit { parallelism: 3, request: 260.0 });
    assert_eq!(global_unit(&array(), &whole(260), Some(&limit), &rules), 87);
    let beyond = Load { rate: 1000.0, request: 260.0 };
    assert_eq!(LoadLimit::of(&array(), &beyond, &rules), None);
}

#[test]
fn file_has_global_unit_unless_rounded_up() {
    let limit = LoadLimit { parallelism: 3, request: 260.0 };
    let unit = |blocks, normalised| {
        let rules = Rules { normalised, ..Rules::default() };
        let parallelism = effective_parallelism(&array(), blocks as f64, Some(&limit), &rules);
        stripes(&whole(blocks), parallelism, 32)
    };
    assert_eq!(unit(20, Normalised::Exact), Stripes { unit: 20, width: 1 });
    assert_eq!(unit(500, Normalised::Exact), Stripes { unit: 87, width: 6 });
    assert_eq!(unit(1000, Normalised::Exact), Stripes { unit: 87, width: 12 });
    // 3 x 500 / 260 = 5.8 disks become 6.
    assert_eq!(unit(500, Normalised::RoundedUp), Stripes { unit: 84, width: 6 });
    assert_eq!(unit(20, Normalised::RoundedUp), Stripes { unit: 20, width: 1 });
}

#[test]
fn starts_within_run_need_longer_runs() {
    let file = |request, starts| FileProfile { blocks: 1000, request, starts };
    let unit = |file: &FileProfile, parallelism| stripes(file, parallelism, 32).unit;
    assert_eq!(unit(&file(100.0, Starts::AtRuns), 4.0), 25);
    assert_eq!(unit(&file(100.0, Starts::Anywhere), 4.0), 33);
    // Single blocks and whole files cannot begin within a run, or do not care.
    assert_eq!(unit(&file(1.0, Starts::Anywhere), 4.0), 1);
    assert_eq!(unit(&file(1000.0, Starts::Anywhere), 4.0), 250);
    // One disk at a time: as long as possible.
    assert_eq!(unit(&file(100.0, Starts::Anywhere), 1.0), 1000);
    assert_eq!(stripes_of_unit(0, 5, 32), Stripes { unit: 5, width: 1 });
}

/// Most disks that a request of `request` blocks touches over its possible starts.
fn disks_touched(request: u64, stripes: Stripes, aligned: bool) -> u64 {
    let starts = (0..stripes.unit).filter(|start| !aligned || *start == 0);
    let runs = starts.map(|start| (start + request - 1) / stripes.unit + 1);
    runs.max().unwrap().min(stripes.width.into())
}

proptest! {
    #[test]
    fn request_touches_at_most_intended_disks(
        request in 1u64..200, more in 1u64..2000, parallelism in 1u32..40, disks in 1u32..50,
        aligned: bool
    ) {
        let starts = if aligned { Starts::AtRuns } else { Starts::Anywhere };
        let file = FileProfile { blocks: request + more, request: request as f64, starts };
        let stripes = stripes(&file, parallelism.into(), disks);
        prop_assert!(stripes.unit >= 1 && stripes.width >= 1 && stripes.width <= disks);
        // For P = 1 the run is the whole file, and no start within it matters.
        let touched = disks_touched(request, stripes, aligned || parallelism == 1);
        prop_assert!(touched <= u64::from(parallelism.max(1)), "{} {:?}", touched, stripes);
        // And not many fewer: a shorter run would touch too many.
        if stripes.unit > 1 && parallelism > 1 && request > 1 {
            let unit = stripes.unit - 1;
            let shorter = disks_touched(request, Stripes { unit, width: u32::MAX }, aligned);
            prop_assert!(shorter > u64::from(parallelism));
        }
    }
}
