//! Properties of any bytes at all that are read as DiskSim's parameter files: the importer never panics, a
//! drive that it makes builds and can be kept in a file, and errors have a place.
//!
//! Goals: one body for the fuzz target and for the ordinary test over the saved corpus
//! (`tests/fuzz_checks/disksim.rs`).
//! Non-goals: whether a clean file is read right; the tests of the crate show that.

use freewheel_disksim::{ImportError, Imported, import};
use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::DriveSpec;

/// A line that begins a further file, whose name follows.
const FILE: &str = "#### ";

/// Several files in one text: the first is `drive.parv`, the others begin with a line `#### NAME`.
fn files(text: &str) -> Vec<(&str, &str)> {
    let mut rest = Some(("drive.parv", text));
    let mut files = Vec::new();
    while let Some((name, text)) = rest {
        let (own, others) = match text.split_once(FILE) {
            Some((own, others)) => (own, Some(others)),
            None => (text, None),
        };
        files.push((name, own));
        rest = others.map(|others| others.split_once('\n').unwrap_or((others, "")));
    }
    files
}

/// Imports the files in `bytes` and checks what must hold. Panics otherwise.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let files = files(&text);
    match import(&files, &|_| None) {
        Ok(imported) => check_imported(&imported, &files),
        Err(error) => check_error(&error, &files),
    }
}

fn check_imported(imported: &Imported, files: &[(&str, &str)]) {
    if let Err(error) = Drive::build(&imported.spec) {
        panic!("an imported drive does not build: {error}");
    }
    let written = toml::to_string(&imported.spec).expect("a drive can be written");
    let read: DriveSpec = toml::from_str(&written).expect("a written drive can be read");
    assert_eq!(read, imported.spec, "a drive changes on its way through a file");
    for left in &imported.not_represented {
        assert!(!left.why.is_empty(), "{left:?}");
        check_place(&left.file, left.line, files);
    }
}

fn check_error(error: &ImportError, files: &[(&str, &str)]) {
    assert!(!error.message.is_empty(), "{error:?}");
    check_place(&error.file, error.line, files);
}

/// A place is a line of one of the files, or 0 for a file as a whole.
fn check_place(file: &str, line: u32, files: &[(&str, &str)]) {
    let lines = files.iter().filter(|(name, _)| base(name) == base(file));
    let most = lines.map(|(_, text)| text.lines().count()).max();
    assert!(most.is_some_and(|most| line as usize <= most), "{file}:{line} is nowhere");
}

fn base(name: &str) -> String {
    name.rsplit(['/', '\\']).next().unwrap_or(name).to_owned()
}
