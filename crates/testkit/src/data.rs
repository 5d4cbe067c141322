//! Files that may not be redistributed, for the tests of `make test-data`.
//!
//! Such a test stands in the target `data` of its crate (`tests/data.rs`, with `test = false` in the manifest),
//! which `cargo test` leaves out.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Environment variable with the folder of the files.
const FOLDER: &str = "FREEWHEEL_DATA";

/// Environment variable with the file to which a line is appended for each file that a test asks for.
const LOG: &str = "FREEWHEEL_DATA_LOG";

/// The path of a file by its name within the folder. Panics with the way out where the file is missing.
pub fn file(name: &str) -> PathBuf {
    find(name).unwrap_or_else(|| {
        log("missing", name);
        panic!(
            "{} is not there: {FOLDER}=DIR names the folder with the files of `make test-data`",
            folder().join(name).display()
        )
    })
}

/// Path of the file; none where it is missing.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = folder().join(name);
    path.is_file().then(|| {
        log("used", name);
        path
    })
}

fn folder() -> PathBuf {
    let folder = std::env::var_os(FOLDER);
    let folder = folder.unwrap_or_else(|| panic!("{FOLDER} is not set: `make test-data` sets it"));
    let folder = PathBuf::from(folder);
    // Tests run in the folders of their crates, not where the name was given.
    assert!(folder.is_absolute(), "{FOLDER}={}: give an absolute path", folder.display());
    folder
}

fn log(what: &str, name: &str) {
    let Some(log) = std::env::var_os(LOG) else { return };
    let mut log = append(Path::new(&log));
    // One write a line, for tests write at the same time.
    log.write_all(format!("{what} {name}\n").as_bytes()).expect("the log of used files");
}

fn append(path: &Path) -> std::fs::File {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.unwrap_or_else(|error| panic!("{LOG}={}: {error}", path.display()))
}
