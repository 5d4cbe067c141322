//! Properties of experiments with overrides, for any bytes. No input panics. An experiment that is
//! read, written and read again is the same.
//!
//! Goals: one body for the fuzz target and for the ordinary test over the saved corpus
//! (`tests/fuzz_checks/sim.rs`).
//! Non-goals: the values of a clean file; tests of the crate check them.

use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;
use freewheel_sim::library;

const ORIGIN: &str = "fuzz.toml";
/// Begins a line with an override. Such lines come before the experiment.
const OVERRIDE: &str = "#set ";
/// A drive that builds fast.
const SMALL_DRIVE: &str = "tr96";

/// The overrides in the first lines, and the text behind them.
fn parts(text: &str) -> (Vec<String>, &str) {
    let (mut overrides, mut rest) = (Vec::new(), text);
    while let Some(line) = rest.strip_prefix(OVERRIDE) {
        let (first, others) = line.split_once('\n').unwrap_or((line, ""));
        overrides.push(first.to_owned());
        rest = others;
    }
    (overrides, rest)
}

/// Reads `bytes` as an experiment and checks what must hold. Panics otherwise.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (overrides, text) = parts(&text);
    let mut config = match SimConfig::parse(text, ORIGIN, &overrides) {
        Ok(config) => config,
        Err(error) => return check_error(&error.to_string()),
    };
    let written = toml::to_string(&config).expect("an experiment can be written");
    let read = SimConfig::parse(&written, ORIGIN, &[]).expect("a written experiment can be read");
    // As texts: a number that is none is not equal to itself.
    assert_eq!(toml::to_string(&read).expect("again"), written);
    // Any other name is a file's.
    if !library::names().contains(&config.drive.as_str()) {
        config.drive = SMALL_DRIVE.into();
    }
    if let Err(error) = Experiment::check(&config) {
        check_error(&error.to_string());
    }
}

fn check_error(says: &str) {
    assert!(!says.trim().is_empty(), "an error without a word");
}
