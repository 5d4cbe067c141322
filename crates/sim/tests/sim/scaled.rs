//! Experiments on scaled drives.

use freewheel_model::drive::scale::{Scaling, YearlyRates};
use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;
use freewheel_sim::{RunResult, library};

const TEXT: &str = "\
drive = 'ultrastar73lzx'
[workload]
kind = 'open'
mean_gap = '20ms'
requests = 800
";

fn config(overrides: &[&str]) -> SimConfig {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).into()).collect();
    SimConfig::parse(TEXT, "test", &overrides).unwrap()
}

fn run(config: SimConfig) -> RunResult {
    Experiment::new(config).unwrap().run().unwrap()
}

fn refusal(overrides: &[&str]) -> String {
    Experiment::new(config(overrides)).unwrap_err().to_string()
}

#[test]
fn scale_matches_drive_scaled_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let year = Scaling::by_years(2.0, &YearlyRates::HISTORICAL);
    for (overrides, scaling) in [
        (&["scale.years=2"][..], year),
        (&["scale.years=2", "scale.rpm=1"], Scaling { rpm: 1.0, ..year }),
        (&["scale.surfaces=4"], Scaling { surfaces: 4.0, ..Scaling::default() }),
    ] {
        let spec = scaling.apply(&library::spec("ultrastar73lzx").unwrap()).unwrap();
        let file = folder.path().join("scaled.toml");
        std::fs::write(&file, toml::to_string(&spec).unwrap()).unwrap();
        let by_hand = config(&[&format!("drive={}", file.display())]);
        assert_eq!(run(config(overrides)), run(by_hand), "{overrides:?}");
    }
}

#[test]
fn scale_without_factors_changes_nothing() {
    let plain = run(config(&[]));
    assert_eq!(run(config(&["scale.years=0"])), plain);
    assert_eq!(run(config(&["scale={ surfaces = 1.0, seek = 1.0 }"])), plain);
    assert_ne!(run(config(&["scale.seek=0.9"])), plain);
}

#[test]
fn scale_factor_impossible_refused() {
    let direct = refusal(&["scale.linear_density=1000"]);
    assert_eq!(direct, "scale: `linear_density` is 1000: 0.01 to 100 are allowed");
    let years = refusal(&["scale.years=-60"]);
    assert!(years.contains("`years` is -60, which makes `seek` 148.8"), "{years}");
    assert!(years.ends_with("take fewer years, or give `seek` itself"), "{years}");
    let built = refusal(&["scale.rpm=50"]);
    assert!(built.starts_with("scale: the scaled drive: `rotation_period`"), "{built}");
    let unknown = SimConfig::parse(TEXT, "test", &["scale.platters=2".into()]).unwrap_err();
    assert!(unknown.to_string().contains("platters"), "{unknown}");
}
