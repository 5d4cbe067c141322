//! Numbers for people are rounded in one place: `report/src/numbers.rs`, and in `drawing.rs` for pictures.
//! The command line rounds none.

use std::fs;
use std::path::{Path, PathBuf};

/// Files of `report` that round numbers.
const ROUNDING: &[&str] = &["report/src/numbers.rs", "report/src/drawing.rs"];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
    let files = paths.flat_map(below);
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// Files of a folder of `crates` with their code, without their tests.
fn codes(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let files = sources(&folder).into_iter().filter(|path| !path.ends_with("tests.rs"));
    let with_code = files.map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        let shipped = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        (path, shipped.to_owned())
    });
    with_code.collect()
}

/// Places of a format string that round, as `{:.1}`, `{share:+.2}`, `{:>16.0}`, `{x:.digits$}` and `{:e}`.
fn roundings(code: &str) -> Vec<&str> {
    let inside = code.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    inside.filter(|place| rounds(place)).collect()
}

fn rounds(place: &str) -> bool {
    let Some((name, format)) = place.split_once(':') else { return false };
    let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    // A path or a field of a struct has blanks or a second colon.
    let is_format = !format.starts_with([':', ' ', '\n']);
    let precision = format.split_once('.').map(|(_, precision)| precision);
    let is_precision = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_digit() || c == '*') || text.ends_with('$')
    };
    is_name && is_format && (precision.is_some_and(is_precision) || format.ends_with(['e', 'E']))
}

#[test]
fn one_file_rounds_numbers_for_people() {
    let mut found = Vec::new();
    for (path, code) in codes("report/src") {
        if !ROUNDING.iter().any(|end| path.ends_with(end)) {
            found.extend(roundings(&code).iter().map(|at| format!("{}: {{{at}}}", path.display())));
        }
    }
    assert!(found.is_empty(), "take or add a function of report/src/numbers.rs: {found:#?}");
    for end in ROUNDING {
        let is_it =
            |(path, code): &(PathBuf, String)| path.ends_with(end) && !roundings(code).is_empty();
        assert!(codes("report/src").iter().any(is_it), "{end} rounds nothing");
    }
}

#[test]
fn command_line_rounds_no_numbers() {
    let mut found = Vec::new();
    for (path, code) in codes("cli/src") {
        found.extend(roundings(&code).iter().map(|at| format!("{}: {{{at}}}", path.display())));
    }
    assert!(found.is_empty(), "words and numbers are made in `report`: {found:#?}");
}

#[test]
fn rounding_is_found_in_any_format() {
    let code = "format!(\"{:.1} {share:+.2} {:>16.0} {x:.digits$} {value:.3e} {n:e} {:.*}\")";
    let found = [":.1", "share:+.2", ":>16.0", "x:.digits$", "value:.3e", "n:e", ":.*"];
    assert_eq!(roundings(code), found);
    let code =
        "Self { mean: 1.5, of: a.b }; format!(\"{} {x} {name:<width$} {:?} {0:>3}. {at:#?}\")";
    assert_eq!(roundings(code), Vec::<&str>::new());
}
